"""Sessions at work now: what each of them does, and which files it touched lately."""

from __future__ import annotations

import msgspec

from whyfor.config import Settings
from whyfor.live.monitor import Monitor
from whyfor.live.tracker import StatusTracker
from whyfor.model.attention import Firing
from whyfor.model.errors import NotFound
from whyfor.model.status import LiveStatus
from whyfor.story.command_families import check_in

LATELY = 3_600_000  # ms


class SessionAtWork(msgspec.Struct, frozen=True):
    """An open session, the files it wrote within an hour, and what needs a person."""

    standing: LiveStatus
    files: list[str]  # absolute, the last one first
    firings: list[Firing]

    @property
    def name(self) -> str:
        return self.standing.name

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for a person: to be allowed something, or for an answer."""
        status = self.standing.status
        return status.approval is not None or bool(status.questions)

    @property
    def is_testing(self) -> bool:
        """Whether it runs a command that builds, tests or checks."""
        status = self.standing.status
        command = (status.activity or "").partition(": ")[2]
        return status.phase == "running" and check_in(command) is not None


def sessions_at_work(settings: Settings) -> list[SessionAtWork]:
    """Return the sessions that are open now; nothing is written for it."""
    monitor = Monitor(settings, record=False)
    tracker = StatusTracker(settings, monitor=monitor)
    try:
        tracker.look()
        tracker.judge()
        standings = tracker.standings()
        tracker.watch()
    except NotFound:  # nothing was read yet
        return []
    finally:
        tracker.close()
    return [
        SessionAtWork(
            each,
            monitor.files_of(each, LATELY),
            [one for one in monitor.firings if one.session == each.name],
        )
        for each in standings
        if monitor.is_live(each)
    ]
