"""Approvals on record: what hooks, transcripts and telemetry told stays through a rebuild, leaves
with an export, and goes with its session."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.capture.spool import append_decisions
from whyfor.config import Settings
from whyfor.model.approvals import ToldDecision

Cli = Callable[..., Result]
COMMAND = "touch quokka.txt"


@pytest.fixture
def told(home: Path, settings: Settings) -> str:
    """A session that asked once, ran once unasked, and was refused once; return its id."""
    made = Transcript("asked", cwd=str(home), live=True)
    made.prompt("Touch it")
    time.sleep(0.002)
    at = int(time.time() * 1000)
    time.sleep(0.002)
    made.call("Bash", {"command": COMMAND})
    unasked = made.call("Read", {"file_path": "/p/a.py"})
    refused = "The user doesn't want to proceed with this tool use."
    made.call("Bash", {"command": "git push"}, refused, failed=True)
    made.save(home)
    payload = {
        "session_id": made.session_id,
        "transcript_path": "/home/x/.claude/projects/p/s.jsonl",
        "hook_event_name": "PermissionRequest",
        "tool_name": "Bash",
        "tool_input": {"command": COMMAND},
    }
    header = {"v": 1, "at": at, "agent": "claude", "event": "PermissionRequest", "cwd": "/p"}
    line = msgspec.json.encode(header) + b"\t" + msgspec.json.encode(payload)
    spool = settings.home / "spool"
    spool.mkdir(parents=True, mode=0o700)
    (spool / "2026-11-18.spool").write_bytes(b"\n" + line + b"\n")
    decision = ToldDecision(
        agent="claude",
        session_id=made.session_id,
        at=at + 1,
        allowed=True,
        by="agent",
        source="config",
        call=unasked,
        tool="Read",
    )
    append_decisions(settings.home, [decision, decision])
    return made.session_id


def rows(cli: Cli) -> list[tuple[Any, ...]]:
    found = cli("approvals", "--json").json
    return [(row["tool"], row["action"], row["decision"], row["by"]) for row in found]


def test_the_record_is_the_same_after_a_rebuild_and_goes_with_its_session(
    told: str, cli: Cli
) -> None:
    assert cli("ingest").code == 0
    before = cli("approvals", "--json").json
    assert sorted(rows(cli)) == [
        ("Bash", "git push", "denied", "terminal"),
        ("Bash", COMMAND, "allowed", "terminal"),
        ("Read", "/p/a.py", "allowed", "agent"),
    ]
    assert {row["evidence"] for row in before} == {
        "telemetry: config",
        "the call ran",
        "the words of its result",
    }
    assert cli("rebuild").code == 0
    assert cli("approvals", "--json").json == before
    assert cli("approvals", "--pending", "--json").json == []
    assert cli("approvals", "--agent", "codex", "--json").json == []
    assert cli("forget", told, "--yes").code == 0
    assert rows(cli) == []
    assert cli("rebuild").code == 0
    assert rows(cli) == []
