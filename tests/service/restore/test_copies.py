"""A restored session is a copy: known as one, and counted only for what happens in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.service.restore.helpers import bring_back, talked
from tests.service.restore.test_codex import planted
from tests.service.restore.test_gemini import SESSION, TALK, log, message, save
from whyfor.config import Settings
from whyfor.service.now import quiet_now
from whyfor.service.restore import RestoredSource

Cli = Callable[..., Result]
MORE: dict[str, list[dict[str, Any]]] = {
    "claude": [
        {
            "parentUuid": None,
            "type": "user",
            "message": {"role": "user", "content": "And an aloe"},
            "uuid": "0a1b2c3d-0000-4000-8000-00000000000a",
            "timestamp": "2026-06-01T10:00:00.000Z",
        }
    ],
    "codex": [
        {
            "timestamp": "2026-06-01T10:00:00.000Z",
            "type": "response_item",
            "payload": {
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": "And an aloe"}],
            },
        },
        {
            "timestamp": "2026-06-01T10:00:00.000Z",
            "type": "event_msg",
            "payload": {"type": "user_message", "message": "And an aloe"},
        },
    ],
    "gemini": [
        {
            **message("new", 0, "user", [{"text": "And an aloe"}]),
            "timestamp": "2026-06-01T10:00:00.000Z",
        }
    ],
}


def begin(agent: str, home: Path) -> str:
    """A session of an agent's; returns its id."""
    if agent == "claude":
        transcript = talked()
        transcript.save(home)
        return transcript.session_id
    if agent == "codex":
        rollout = planted()
        rollout.save(home)
        return str(rollout.id)
    save(home, log(*TALK))
    return SESSION


def listed(cli: Cli) -> dict[str, dict[str, Any]]:
    found = cli("sessions", "--all", "--json").json
    return {item["session_id"]: item for item in found}


@pytest.mark.parametrize("into", ["claude", "codex", "gemini"])
@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_a_copy_counts_only_for_what_happens_in_it(
    agent: str, into: str, home: Path, cwd: Path, cli: Cli
) -> None:
    original = begin(agent, home)
    cli("ingest")
    before, tokens = listed(cli)[original], cli("stats", "--json").json["tokens"]
    assert before["prompts"] > 0 and before["copy_of"] is None and before["own_from"] == 1

    made = bring_back(cwd, RestoredSource(agent, original), agent=into)
    cli("ingest")
    copy = listed(cli)[made.session_id]
    assert (copy["copy_of"], copy["copy_kind"]) == (f"{agent}:{original}", "restored")
    assert copy["own_from"] > 1
    assert [copy[name] for name in ("prompts", "messages", "tool_calls", "files_modified")] == [
        *(0, 0, 0),
        [],
    ]
    assert listed(cli)[original] == before
    assert cli("stats", "--json").json["tokens"] == tokens

    with Path(made.path).open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(line) + "\n" for line in MORE[into])
    cli("ingest")
    now = listed(cli)[made.session_id]
    assert now["own_from"] == copy["own_from"]
    assert (now["prompts"], now["messages"]) == (1, 1)

    cli("rebuild")
    assert listed(cli)[made.session_id] == now


def test_several_sessions_restored_as_one_are_a_copy_of_the_first(
    home: Path, cwd: Path, cli: Cli
) -> None:
    talks = [talked("s1"), talked("s2", day="2026-05-02")]
    for talk in talks:
        talk.save(home)
    cli("ingest")
    made = bring_back(cwd, *(RestoredSource("claude", talk.session_id) for talk in talks))
    cli("ingest")
    copy = listed(cli)[made.session_id]
    assert (copy["copy_of"], copy["prompts"], copy["messages"]) == (
        f"claude:{talks[0].session_id}",
        *(0, 0),
    )


def test_a_copy_that_nobody_opened_is_nothing_that_ended(
    home: Path, cwd: Path, cli: Cli, settings: Settings
) -> None:
    original = begin("claude", home)
    cli("ingest")
    before = quiet_now(settings, 0)
    assert [one.row.session_id for one in before.ended] == [original]
    for _ in range(2):
        bring_back(cwd, RestoredSource("claude", original))
    cli("ingest")
    after = quiet_now(settings, 0)
    assert [one.row.session_id for one in after.ended] == [original]
    assert after.ended_total == before.ended_total == 1
    assert (after.tokens, after.last_at, after.rows) == (before.tokens, before.last_at, before.rows)
    assert len(after.threads) == len(before.threads)
