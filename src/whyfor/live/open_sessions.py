"""Which sessions people have open in a folder now: the one answer for `status` and `restore`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.base import RegisteredProcess
from whyfor.config import Settings
from whyfor.live.tracker import StatusTracker
from whyfor.model.paths import below, to_path, to_text
from whyfor.model.sessions import Session
from whyfor.model.status import LiveStatus
from whyfor.model.times import DAY, wall_clock
from whyfor.store.open import reading

GROWING = 60_000  # ms: a transcript that nobody read since it grew so lately is being written
UNSURE = 10 * 60_000  # ms a session may be at work that says nothing and whose process is not known
_OPEN = ("running", "waiting_approval", "waiting")


class SessionsHere(msgspec.Struct, frozen=True):
    """Sessions that are open in a folder, the one heard last first; and the last of the others
    that ran there within a day."""

    open: list[Session]
    last: Session | None = None


def sessions_here(settings: Settings, folder: Path) -> SessionsHere:
    """Judge what ran in a folder or below it, from the store and from the agents' own lists of
    processes; raises NotFound if there is no store."""
    here = to_text(folder)
    processes = [each for each in _processes(settings) if below(each[1].cwd, here)]
    ran, growing = _recent(settings, here)
    tracker = StatusTracker(settings)
    try:
        tracker.attend({*ran, *((agent, process.session_id) for agent, process in processes)})
        tracker.judge()
        found = tracker.standings()
    finally:
        tracker.close()
    found.sort(key=lambda each: -(each.status.heard_at or 0))
    registered = {f"{agent}:{process.session_id}" for agent, process in processes}
    is_here = [each for each in found if below(each.session.cwd or "", here)]
    shown = [each for each in found if each in is_here or each.name in registered]
    running = [each.session for each in shown if _is_open(each) or each.name in growing]
    others = [each.session for each in shown if each.session not in running]
    return SessionsHere(running, others[0] if others else None)


def _is_open(each: LiveStatus) -> bool:
    """Whether somebody can go on with it where it is: it works or waits, or its process is there.
    One of which nobody can tell counts for some minutes."""
    status = each.status
    if status.phase == "unknown":
        return bool(each.alive) or wall_clock() - (status.heard_at or 0) < UNSURE
    return status.phase in _OPEN or (status.phase == "idle" and bool(each.alive))


def _processes(settings: Settings) -> Iterator[tuple[str, RegisteredProcess]]:
    """Processes that run now, by their agents' own lists."""
    for name, agent in AGENTS.items():
        listed = agent.processes(settings.user_home, settings.env)
        for process in listed.running() if listed else ():
            yield name, process


def _recent(settings: Settings, here: str) -> tuple[set[tuple[str, str]], set[str]]:
    """Sessions that ran here in the last day, or of which no transcript says yet where they run;
    and those of them whose transcript grows."""
    now = wall_clock()
    with reading(settings) as library:
        keys = library.sessions.active_since(now - DAY)
        numbers = library.sessions.numbers(keys)
        places = library.sessions.by_number(list(numbers.values()))
        files = library.sessions.begun_in(here)
    found = set()
    for key in keys:
        session = places.get(numbers.get(key, 0))
        if session is None or below(session.cwd or "", here):
            found.add(key)
    growing = {
        (known.agent, known.session_id)
        for known in files
        if _grows(to_path(known.path), known.size, now - GROWING)
    }
    return found | growing, {f"{agent}:{ident}" for agent, ident in growing}


def _grows(path: Path, size: int | None, limit: int) -> bool:
    """Written to since it was read, and not long ago."""
    try:
        now = path.stat()
    except OSError:
        return False
    return now.st_size != size and now.st_mtime * 1000 > limit
