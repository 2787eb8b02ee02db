"""A call that was denied reads so in every face, and never as one that failed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from tests.conftest import Result
from tests.service.restore.test_codex import planted
from tests.transcripts import Transcript
from whyfor import config
from whyfor.cli.screen.items import render_item
from whyfor.model.conversation import ToolCallItem
from whyfor.service.show import session_item, session_view

Cli = Callable[..., Result]
DENIALS = {
    "by a person": "The user doesn't want to proceed with this tool use. The tool use was rejected.",
    "with a reason": "The user doesn't want to proceed with this tool use. They said: use git mv",
    "by a rule": "Permission to use Bash with command rm -rf x has been denied.",
    "by nobody there": "Claude requested permissions to write to a.py, but you haven't granted it.",
}


def told(home: Path, result: str) -> str:
    t = Transcript("s1")
    t.prompt("Clean up")
    t.call("Bash", {"command": "rm -rf build"}, result, failed=True)
    t.say("As you like.")
    t.save(home)
    return str(t.session_id)


def rejected(home: Path) -> str:
    rollout = planted()
    rollout.call("remove")
    rollout.records.append(
        {
            "timestamp": "2026-05-01T10:00:40.000Z",
            "type": "response_item",
            "payload": {
                "type": "function_call_output",
                "call_id": "remove",
                "output": "exec command rejected by user",
            },
        }
    )
    rollout.save(home)
    return str(rollout.id)


@pytest.mark.parametrize("how", [*DENIALS, "codex"])
def test_a_denied_call_reads_denied(how: str, home: Path, cli: Cli) -> None:
    ident = rejected(home) if how == "codex" else told(home, DENIALS[how])
    cli("ingest")
    shown = cli("show", ident).out
    assert "denied" in shown and "✕" not in shown
    assert "failed" not in shown
    for form in ("markdown", "html"):
        written = cli("export", ident, "--format", form, "--tools").out
        assert "denied" in written and ">failed<" not in written and "` failed" not in written
    turns = cli("show", ident, "--turns", "--json").json["turns"]
    assert sum(turn["failures"] for turn in turns) == 0
    events = cli("show", ident, "--json").json["events"]
    call = [event["seq"] for event in events if event["kind"] == "tool.call"][-1]
    agent = "codex" if how == "codex" else "claude"
    outline = session_view(config.load(), agent, ident).outline
    assert sum(entry.turn.failures for entry in outline) == 0
    _, item = session_item(config.load(), agent, ident, call)
    assert isinstance(item, ToolCallItem) and item.denied
    console = Console(width=120)
    with console.capture() as caught:
        console.print(render_item(item, False))
    assert "denied" in caught.get() and "✕" not in caught.get()


def test_a_call_that_failed_reads_failed(home: Path, cli: Cli) -> None:
    ident = told(home, "Permission denied: build")
    cli("ingest")
    assert "✕ failed" in cli("show", ident).out
    turns = cli("show", ident, "--turns", "--json").json["turns"]
    assert sum(turn["failures"] for turn in turns) == 1
    outline = session_view(config.load(), "claude", ident).outline
    assert sum(entry.turn.failures for entry in outline) == 1
