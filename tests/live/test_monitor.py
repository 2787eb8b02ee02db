"""What the monitor says of sessions that run, and what it writes down."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.live.loop import LiveLoop
from whyfor.live.monitor import Monitor
from whyfor.model.attention import AttentionQuery, Firing
from whyfor.service.attention import attention_history, attention_now, mute
from whyfor.service.ingest import ingest, sweep
from whyfor.service.rebuild import rebuild

from .test_ingester import Quiet
from .test_tracker import Process

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
NOBODY = "Claude requested permissions to use Bash, but you haven't granted it yet."


class Desk:
    """A loop with a monitor that turns when it is told to."""

    def __init__(self, settings: Settings) -> None:
        self.hub = Quiet()
        self.hub.firings = []
        self.monitor = Monitor(settings)
        self.watching = LiveLoop(settings, self.hub, sweep, monitor=self.monitor)

    def sees(self, *causes: str) -> list[Firing]:
        end = time.monotonic() + 20
        while sorted(each.found.cause for each in self.hub.firings) != sorted(causes):
            wait = self.watching.turn()
            assert time.monotonic() < end, self.hub.firings
            time.sleep(min(wait, 0.05))
        return self.hub.firings


@pytest.fixture
def desk(settings: Settings) -> Iterator[Desk]:
    desk = Desk(settings)
    yield desk
    desk.watching.close()


@pytest.fixture
def blocked(home: Path) -> Iterator[Transcript]:
    """A session that runs into a wall, with its process."""
    talk = Transcript("blocked", live=True, ago=timedelta(seconds=20))
    talk.prompt("Clean up")
    for _ in range(3):
        talk.call("Bash", {"command": "rm -r build"}, NOBODY, failed=True)
    talk.save(home)
    process = Process(home, talk.session_id, "busy")
    yield talk
    process.kill()


def test_a_wall_is_told_kept_muted_and_cleared(
    desk: Desk, settings: Settings, home: Path, blocked: Transcript
) -> None:
    (firing,) = desk.sees("wall")
    assert (firing.level, firing.session) == ("act", f"claude:{blocked.session_id}")
    assert firing.found.fact == "rm -r build: refused 3 times and nobody is asked."
    (now,) = attention_now(settings)
    assert (now.firing.id, now.title) == (firing.id, "Clean up")

    mute(settings, firing.id)
    (now,) = attention_now(settings)
    assert now.firing.muted  # before anything was read
    end = time.monotonic() + 20
    while not desk.hub.firings[0].muted:
        desk.watching.turn()
        assert time.monotonic() < end
        time.sleep(0.05)

    blocked.call("Bash", {"command": "ls"}, "build")
    blocked.save(home)
    desk.sees()
    desk.watching.close()
    ingest(settings)
    (kept,) = attention_history(settings, AttentionQuery())
    assert kept.firing.muted and kept.firing.cleared_at is not None
    assert kept.firing.found.step == firing.found.step


def test_what_was_told_survives_a_rebuild_and_is_not_told_again(
    desk: Desk, settings: Settings, blocked: Transcript
) -> None:
    (firing,) = desk.sees("wall")
    desk.watching.close()
    ingest(settings)
    rebuild(settings)
    (kept,) = attention_history(settings, AttentionQuery())
    assert kept.firing.id == firing.id
    again = Desk(settings)
    (same,) = again.sees("wall")
    assert same.told_at == kept.firing.told_at and again.hub.told == []
    again.watching.close()


def test_a_session_that_is_gone_needs_nobody(desk: Desk, home: Path, blocked: Transcript) -> None:
    desk.sees("wall")
    for path in (home / ".claude" / "sessions").glob("*.json"):
        subprocess.run(["kill", str(json.loads(path.read_text())["pid"])], check=True)
    desk.sees()


def test_two_sessions_that_edit_one_file_are_told_of(desk: Desk, home: Path) -> None:
    processes = []
    for name in ("first", "second"):
        talk = Transcript(name, live=True)
        talk.prompt(f"The {name} prompt")
        given = {"file_path": "/code/shop/a.py", "old_string": name, "new_string": "x"}
        talk.call("Edit", given)
        talk.save(home)
        processes.append(Process(home, talk.session_id, "busy"))
    (firing,) = desk.sees("collision")
    assert "a.py" in firing.found.fact and "“The first prompt”" in firing.found.fact
    for process in processes:
        process.kill()


def test_a_day_over_its_budget_is_told(desk: Desk, settings: Settings, home: Path) -> None:
    settings.home.mkdir(parents=True, exist_ok=True)
    (settings.home / "config.toml").write_text("[cost]\nday_budget = 0.000001\n")
    talk = Transcript("dear", live=True)
    talk.prompt("Think hard")
    talk.block({"type": "text", "text": "Thought."}, output=90_000, model="claude-opus-4-5")
    talk.save(home)
    (firing,) = desk.sees("spend")
    assert firing.session == "" and firing.found.share and firing.found.share > 1
    assert firing.found.fact.startswith("$2.25 of your ")
