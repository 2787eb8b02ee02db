"""What a writer writes, its own reader reads: the same conversation under a new id, whose tokens
were spent elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.agents.contract import HomeReader
from tests.agents.samples import sample
from tests.conftest import Result
from whyfor.agents import AGENTS

Cli = Callable[..., Result]
NEW = ("qwen", "pi", "droid")


def told(reader: HomeReader, session: str) -> list[tuple[str, str]]:
    kinds = ("user.prompt", "assistant.message", "tool.call", "tool.result")
    return [
        (event.kind, event.text)
        for event in reader.sessions[session].events.values()
        if event.kind in kinds
    ]


def restored(cli: Cli, *arguments: str) -> Any:
    done = cli("restore", *arguments, "--json")
    assert done.code == 0, done.err
    return done.json


@pytest.mark.parametrize("agent", NEW)
def test_a_restored_session_says_what_the_original_said(agent: str, home: Path, cli: Cli) -> None:
    one = sample(agent)
    one.write(home)
    cli("ingest")
    made = restored(cli, "--session", one.session_id)
    assert made["command"] == AGENTS[agent].resume(made["session_id"])
    reader = HomeReader(AGENTS[agent], home).look()
    assert reader.unknown == {}
    assert told(reader, made["session_id"]) == told(reader, one.session_id)
    copy = reader.sessions[made["session_id"]]
    assert copy.total() == {}
    assert copy.facts["restored_from"] == f"{agent}:{one.session_id}"
    cli("ingest")
    rows = {row["session_id"]: row for row in cli("sessions", "--all", "--json").json}
    assert rows[one.session_id]["prompts"] == 2


@pytest.mark.parametrize("agent", NEW)
def test_another_agents_conversation_is_told_in_its_format(
    agent: str, home: Path, cli: Cli
) -> None:
    goose = sample("goose")
    goose.write(home)
    cli("ingest")
    made = restored(cli, "--session", goose.session_id, "--agent", agent)
    reader = HomeReader(AGENTS[agent], home).look()
    session = reader.sessions[made["session_id"]]
    prompts = [event.text for event in session.kind("user.prompt")]
    assert prompts == list(goose.prompts)
    said = "\n".join(event.text for event in session.kind("assistant.message"))
    assert all(text in said for text in goose.answers)
    assert session.facts["cwd"]


def test_every_answer_of_pis_says_what_it_used(home: Path, cli: Cli) -> None:
    """Pi adds these up when it resumes, and stops where one is missing."""
    for name in ("pi", "goose"):
        one = sample(name)
        one.write(home)
        cli("ingest")
        made = restored(cli, "--session", one.session_id, "--agent", "pi")
        records = [json.loads(line) for line in Path(made["path"]).read_text().splitlines()]
        answers = [r["message"] for r in records if r.get("message", {}).get("role") == "assistant"]
        assert answers
        assert all(answer["usage"]["input"] == 0 for answer in answers)
        assert all(answer["usage"]["cost"]["total"] == 0 for answer in answers)
