"""Which sessions are open in a folder: `status` and `restore` say the same."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.service.restore.test_codex import planted
from tests.transcripts import Transcript
from whyfor import config
from whyfor.live.tracker import StatusTracker
from whyfor.model.signals import Signal
from whyfor.model.times import to_iso
from whyfor.service.restore import RestoredSource, RestoreRequest, open_sessions, restore
from whyfor.store.open import open_store

Cli = Callable[..., Result]
MINUTE = 60_000


@pytest.fixture
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", folder], check=True)
    monkeypatch.chdir(folder)
    return folder


def now() -> int:
    return time.time_ns() // 1_000_000


def claude(home: Path, cwd: Path, ago: int, name: str = "s1", **more: Any) -> str:
    """A session of Claude Code's that spoke so many milliseconds ago."""
    t = Transcript(name, cwd=str(cwd))
    t.prompt("Plant a fern")
    t.say("It stands.")
    begun = now() - ago - 1000
    for number, line in enumerate(t.lines):
        line |= {"timestamp": to_iso(begun + number * 1000), **more}
    t.save(home)
    return str(t.session_id)


def heard(ident: str, event: str, ago: int, **data: Any) -> None:
    """What a hook of that session announced."""
    signal = Signal(now() - ago, "claude", event, None, "claude", ident, "payload", data={**data})
    store = open_store(config.load().database)
    with store.transaction():
        store.capture.writer().add_signals([signal])
    store.close()


def seen(cli: Cli, cwd: Path) -> tuple[list[str], str | None]:
    """Open sessions, and the last of the others, as `status` says; `restore` says the same."""
    found = cli("status", "--json").json
    names = [one["session_id"] for one in found["active"]]
    assert [one.session_id for one in open_sessions(config.load(), cwd)] == names
    return names, found["last"] and found["last"]["session_id"]


def test_a_session_that_ended_a_moment_ago_is_not_open_and_is_named(
    home: Path, cwd: Path, cli: Cli
) -> None:
    ident = claude(home, cwd, 2000)
    cli("ingest")
    heard(ident, "Stop", 1500)
    assert seen(cli, cwd) == ([ident], None)
    heard(ident, "SessionEnd", 1000, reason="other")
    assert seen(cli, cwd) == ([], ident)
    shown = cli("status").out
    assert "No session is open here. The last was Claude Code" in shown
    assert "half hour" not in shown
    assert cli("restore", "--session", ident).code == 0, "nobody is at work"


@pytest.mark.parametrize(
    ("entrypoint", "is_open"), [("cli", True), ("sdk-cli", False), ("claude-vscode", True)]
)
def test_a_run_for_one_turn_is_over_with_it(
    entrypoint: str, is_open: bool, home: Path, cwd: Path, cli: Cli
) -> None:
    """Without hooks only its transcript tells."""
    t = Transcript("s1", cwd=str(cwd))
    t.prompt("Plant a fern")
    t.say("It stands.")
    t.add("system", {}, subtype="turn_duration", durationMs=1000)
    for number, line in enumerate(t.lines):
        line |= {"timestamp": to_iso(now() - 5 * MINUTE + number), "entrypoint": entrypoint}
    t.save(home)
    cli("ingest")
    assert seen(cli, cwd) == (([t.session_id], None) if is_open else ([], t.session_id))


@pytest.mark.parametrize(("source", "phase"), [("exec", "exited"), ("cli", "waiting")])
def test_a_finished_codex_exec_does_not_wait_for_anybody(
    source: str, phase: str, home: Path, cwd: Path, cli: Cli
) -> None:
    rollout = planted(source=source, cwd=str(cwd))
    rollout.records.append(
        {"type": "event_msg", "payload": {"type": "task_complete", "turn_id": "t9"}}
    )
    for number, line in enumerate(rollout.records):
        line["timestamp"] = to_iso(now() - 25 * MINUTE + number)
    rollout.save(home)
    cli("ingest")
    [shown] = cli("top", "--json").json["sessions"]
    assert shown["phase"] == phase
    assert seen(cli, cwd) == (([], rollout.id) if phase == "exited" else ([rollout.id], None))


def test_a_restored_copy_is_neither_active_nor_idle_until_it_is_opened(
    home: Path, cwd: Path, cli: Cli
) -> None:
    ident = claude(home, cwd, MINUTE, entrypoint="sdk-cli")
    cli("ingest")
    wish = RestoreRequest([RestoredSource("claude", ident)], "Restored", "claude", cwd)
    made = restore(config.load(), wish)
    cli("ingest")
    assert made.session_id not in {
        one["session_id"] for one in cli("top", "--json").json["sessions"]
    }
    assert seen(cli, cwd) == ([], ident)
    heard(made.session_id, "SessionStart", 10, source="resume", cwd=str(cwd))
    heard(made.session_id, "UserPromptSubmit", 5)
    [shown] = [
        one for one in cli("top", "--json").json["sessions"] if one["session_id"] == made.session_id
    ]
    assert shown["phase"] == "running"
    assert seen(cli, cwd) == ([made.session_id], ident)


def test_a_copy_that_comes_while_somebody_watches_is_not_shown_either(
    home: Path, cwd: Path, cli: Cli
) -> None:
    ident = claude(home, cwd, MINUTE, entrypoint="sdk-cli")
    cli("ingest")
    tracker = StatusTracker(config.load())
    try:
        tracker.look()
        wish = RestoreRequest([RestoredSource("claude", ident)], "Restored", "claude", cwd)
        restore(config.load(), wish)
        cli("ingest")
        tracker.look()
        tracker.judge()
        assert [each.session.session_id for each in tracker.standings()] == [ident]
    finally:
        tracker.close()


def test_of_a_thread_at_rest_only_the_part_heard_last_is_shown(
    home: Path, cwd: Path, cli: Cli
) -> None:
    first = claude(home, cwd, 3 * MINUTE, entrypoint="sdk-cli")
    fork = Transcript("fork", cwd=str(cwd))
    path = home / ".claude" / "projects" / "-work-shop" / f"{first}.jsonl"
    for line in map(json.loads, path.read_text().splitlines()):
        origin = {"sessionId": first, "messageUuid": line["uuid"]}
        fork.lines.append({**line, "sessionId": fork.session_id, "forkedFrom": origin})
    fork.prompt("And moss")
    fork.say("It grows.")
    for line in fork.lines[-2:]:
        line |= {"timestamp": to_iso(now() - MINUTE), "entrypoint": "sdk-cli"}
    fork.save(home)
    cli("ingest")
    shown = cli("top", "--json").json["sessions"]
    assert [one["session_id"] for one in shown] == [fork.session_id]
    heard(first, "UserPromptSubmit", 5)
    shown = cli("top", "--json").json["sessions"]
    assert [(one["session_id"], one["phase"]) for one in shown] == [(first, "running")]


def test_a_session_elsewhere_is_not_open_here(home: Path, cwd: Path, cli: Cli) -> None:
    ident = claude(home, cwd / "below", 2000, "s1")
    claude(home, cwd.parent / "shop2", 2000, "s2")
    cli("ingest")
    assert seen(cli, cwd) == ([ident], None)
