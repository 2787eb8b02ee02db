"""What each session does, from the store, its hooks and its process; and no more of them than
can be attended to."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.agents.readers.test_opencode import Writer
from tests.hook import Installed
from whyfor.agents.claude.processes import Registry
from whyfor.capture import doorbell as wake
from whyfor.capture.doorbell import Doorbell
from whyfor.config import Settings
from whyfor.live.loop import LiveLoop
from whyfor.live.tracker import ACTIVE, StatusTracker
from whyfor.model.status import LiveStatus, Summary
from whyfor.service.ingest import ingest, sweep
from whyfor.store.sqlite.connection import connect, transaction

from .test_ingester import Agent, Quiet

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")


class Process:
    """Stands for an agent's process, with a file in Claude Code's registry."""

    def __init__(self, home: Path, session_id: str, status: str, **more: object) -> None:
        self.child = subprocess.Popen(["sleep", "60"])
        self.path = home / ".claude" / "sessions" / f"{self.child.pid}.json"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.tell(session_id, status, **more)

    def tell(self, session_id: str, status: str, **more: object) -> None:
        stat = Path(f"/proc/{self.child.pid}/stat").read_text()
        told = {
            "pid": self.child.pid,
            "procStart": stat.rpartition(")")[2].split()[19],
            "sessionId": session_id,
        }
        at = round(time.time() * 1000)
        self.path.write_text(
            json.dumps({**told, "cwd": "/code", "status": status, "statusUpdatedAt": at, **more})
        )

    def kill(self) -> None:
        self.child.kill()
        self.child.wait()


class Desk:
    """A loop that turns when it is told to, until a session stands as it should."""

    def __init__(self, settings: Settings) -> None:
        self.hub = Quiet()
        self.watching = LiveLoop(settings, self.hub, sweep)

    def sees(self, **phases: str) -> dict[str, LiveStatus]:
        """By the session's title."""
        end = time.monotonic() + 20
        while True:
            wait = self.watching.turn()
            found = {
                (each.session.title or each.session.session_id): each for each in self.hub.standings
            }
            now = {name.removeprefix("Hello "): each.status.phase for name, each in found.items()}
            if now == phases:
                return {name.removeprefix("Hello "): each for name, each in found.items()}
            assert time.monotonic() < end, now
            time.sleep(min(wait, 0.05))


@pytest.fixture
def desk(settings: Settings) -> Any:
    desk = Desk(settings)
    yield desk
    desk.watching.close()


def test_what_the_process_says_of_itself_counts(desk: Desk, home: Path) -> None:
    quokka = Agent(home, "quokka")
    desk.sees(quokka="running")
    process = Process(home, quokka.id, "waiting", waitingFor="permission prompt")
    desk.sees(quokka="waiting_approval")
    process.tell(quokka.id, "busy")
    found = desk.sees(quokka="running")
    assert found["quokka"].status.evidence == "process: busy"
    process.kill()
    found = desk.sees(quokka="exited")
    assert found["quokka"].status.confidence == "high"


def test_a_process_that_has_another_session_open_has_left_the_first(desk: Desk, home: Path) -> None:
    quokka, numbat = Agent(home, "quokka"), Agent(home, "numbat")
    process = Process(home, quokka.id, "busy")
    desk.sees(quokka="running", numbat="running")
    process.tell(numbat.id, "idle")
    desk.sees(quokka="exited", numbat="waiting")
    process.kill()


def test_a_session_of_which_only_hooks_have_told_stands_and_goes(
    desk: Desk, settings: Settings
) -> None:
    hook = Installed(settings.home)
    hook.run(
        "claude",
        "SessionStart",
        payload=b'{"session_id":"s-1","transcript_path":"/x","source":"startup"}',
    )
    found = desk.sees(**{"s-1": "idle"})
    assert found["s-1"].session.id == 0
    hook.run(
        "claude",
        "SessionEnd",
        payload=b'{"session_id":"s-1","transcript_path":"/x","reason":"other"}',
    )
    desk.sees()


def test_no_more_sessions_are_attended_to_than_there_is_room_for(desk: Desk, home: Path) -> None:
    agents = [Agent(home, f"s{number}") for number in range(ACTIVE + 20)]
    for _ in range(200):
        desk.watching.turn()
        if len(desk.hub.standings) == ACTIVE:
            break
    assert len(desk.hub.standings) == ACTIVE
    assert len(desk.watching._attending._attended) == ACTIVE
    assert len(agents) > ACTIVE


def test_the_registry_is_read_again_when_it_was_half_written(home: Path) -> None:
    folder = home / ".claude" / "sessions"
    folder.mkdir(parents=True)
    registry = Registry(home, {})
    (folder / "7.json").write_text("")
    (folder / "8.json").write_text('{"pid": -1}')
    (folder / "9.txt").write_text("{}")
    assert registry.look() == []
    (folder / "7.json").write_text('{"pid":7,"sessionId":"s","procStart":"odd","status":"busy"}')
    (told,) = registry.look()
    assert (told.pid, told.start, told.status, told.at) == (7, 0, "busy", 0)
    assert registry.look() == [] and registry.known == {"s": told}
    (folder / "7.json").unlink()
    assert registry.look() == [] and registry.known == {}


def test_a_path_that_no_file_can_have_does_no_harm(
    desk: Desk, settings: Settings, home: Path
) -> None:
    hook = Installed(settings.home)
    root = home / ".claude" / "projects"
    for path in (
        f"{root}/{'x' * 300}.jsonl",
        f"{root}/a\\u0000b.jsonl",
        "",
        "/etc/passwd",
        "\\ud800",
    ):
        payload = f'{{"session_id":"s-1","transcript_path":"{path}","source":"startup"}}'
        hook.run("claude", "SessionStart", payload=payload.encode())
    desk.sees(**{"s-1": "idle"})
    assert desk.hub.trouble is None


def test_where_there_are_no_pipes_waiting_ends_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wake, "_PIPES", False)
    (tmp_path / "hook").mkdir()
    bell = Doorbell(tmp_path)
    bell.hang()
    assert os.listdir(tmp_path / "hook") == []  # noqa: PTH208
    assert not bell.wait(0.01)
    bell.ring()
    begun = time.monotonic()
    assert not bell.wait(30)
    assert time.monotonic() - begun < 10
    bell.close()


# -- summaries, and what changes without an event ------------------------------------------------


class Looking:
    """Attending by a clock of its own, which starts with the last word said."""

    def __init__(self, settings: Settings, now: int) -> None:
        self.settings = settings
        self.now = now
        self.attending = StatusTracker(settings, lambda: self.now / 1000, lambda: self.now)

    def sees(self, later: int = 0) -> LiveStatus:
        """After an ingest, so many seconds later."""
        self.now += later * 1000
        ingest(self.settings)
        self.attending.look()
        self.attending.judge()
        (found,) = self.attending.standings()
        return found


@pytest.fixture
def opencode(home: Path) -> Any:
    folder = home / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    writer = Writer(folder / "opencode.db")
    writer.clock = time.time_ns() // 1_000_000
    writer.session(title="New session - 2026-05-01T10:00:00")
    writer.user("m1")
    writer.part("p1", "m1", "text", text="Fix the roof.")
    writer.assistant("m2")
    writer.tool("p2", "m2", "bash", {"command": "ls"}, "running")
    yield writer
    writer.db.close()


def test_a_summary_is_made_when_a_turn_begins_and_seldom_while_it_lasts(
    settings: Settings, opencode: Writer
) -> None:
    looking = Looking(settings, opencode.clock)
    first = looking.sees()
    assert (first.status.phase, first.summary) == (
        "running",
        Summary("bash: ls", "nothing yet", "Fix the roof."),
    )
    opencode.tool("p2", "m2", "bash", {"command": "ls"}, output="roof")
    opencode.tool("p3", "m2", "bash", {"command": "make roof"}, "running")
    made = looking.attending._attended["opencode", "ses_1"].made
    found = looking.sees(5)
    assert found.summary == Summary("bash: make roof", "nothing yet", "Fix the roof."), (
        "what it does is always said"
    )
    assert looking.attending._attended["opencode", "ses_1"].made == made, (
        "but nothing is read for it"
    )
    opencode.tool("p3", "m2", "bash", {"command": "make roof"}, output="ok")
    opencode.part("p4", "m2", "text", text="The roof is fixed. It took a while.")
    opencode.user("m3")
    opencode.part("p5", "m3", "text", text="And the door?")
    assert looking.sees(5).summary == Summary("thinking", "The roof is fixed", "And the door?")
    opencode.assistant("m4")
    opencode.tool("p6", "m4", "bash", {"command": "knock"}, "running")
    made = looking.attending._attended["opencode", "ses_1"].made
    looking.sees(5)
    assert looking.attending._attended["opencode", "ses_1"].made == made
    looking.sees(30)
    assert looking.attending._attended["opencode", "ses_1"].made != made


def test_what_is_completed_in_place_is_judged_anew(settings: Settings, opencode: Writer) -> None:
    """Nothing became longer: the same call has its answer now, the same prompt other words."""
    looking = Looking(settings, opencode.clock)
    looking.sees()
    opencode.part("p1", "m1", "text", text="Fix the roof, and the door.")
    found = looking.sees(5)
    assert (found.session.title, found.summary and found.summary.prompt) == (
        "Fix the roof, and the door.",
        "Fix the roof.",
    )
    looking.sees(31)
    assert looking.sees().summary == Summary(
        "bash: ls", "nothing yet", "Fix the roof, and the door."
    )


def test_another_project_or_branch_is_seen_without_an_event(
    settings: Settings, opencode: Writer
) -> None:
    looking = Looking(settings, opencode.clock)
    before = looking.sees().session
    db = connect(settings.database)
    with transaction(db):
        db.execute(
            "INSERT INTO projects(id, identity, evidence, name) VALUES(99, 'example.com/shop', "
            "'remote', 'shop')"
        )
        db.execute("UPDATE sessions SET project_id=99, branch='topic'")
    db.close()
    now = looking.sees(3).session
    assert (
        (before.project, before.branch)
        != (now.project, now.branch)
        == ("example.com/shop", "topic")
    )
