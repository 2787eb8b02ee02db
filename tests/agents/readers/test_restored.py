"""What a writer writes, its own reader reads: the same conversation under a new id, whose tokens
were spent elsewhere."""

from __future__ import annotations

import itertools
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
NEW = ("qwen", "pi", "droid", "copilot", "grok", "kimi")


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


@pytest.mark.parametrize("agent", ["opencode", "kilo"])
def test_a_database_gets_a_document_that_its_program_takes_in(
    agent: str, home: Path, cli: Cli
) -> None:
    """As the program exports it, under new names, with the calls and without the tokens."""
    one = sample(agent)
    one.write(home)
    cli("ingest")
    made = restored(cli, "--session", one.session_id)
    path, session = made["path"], made["session_id"]
    assert made["command"] == f"{agent} import {path} && {agent} --session {session}"
    told = json.loads(Path(path).read_text())
    before = HomeReader(AGENTS[agent], home).look().sessions[one.session_id]
    parts = [part for message in told["messages"] for part in message["parts"]]
    calls = [part["callID"] for part in parts if part["type"] == "tool"]
    assert calls == [event.data["id"] for event in before.kind("tool.call") if event.data]
    names = [each["id"] for each in [*parts, *(m["info"] for m in told["messages"])]]
    stored = (home / f".local/share/{agent}/{agent}.db").read_bytes().decode("latin-1")
    assert len(set(names)) == len(names)
    assert not any(name in stored for name in names)
    assert all(m["info"]["id"] < n["info"]["id"] for m, n in itertools.pairwise(told["messages"]))
    answers = [m["info"] for m in told["messages"] if m["info"]["role"] == "assistant"]
    assert {answer["tokens"]["input"] for answer in answers} == {0}
    mark = {"whyfor": {"restoredFrom": f"{agent}:{one.session_id}"}}
    assert [part["metadata"] for part in parts if "whyfor" in part.get("metadata", {})] == [mark]
    assert cli("ingest").code == 0
    assert len(cli("sessions", "--all", "--json").json) == 1 + len(one.children)


def test_a_conversation_for_opencode_gets_the_model_of_the_settings(home: Path, cli: Cli) -> None:
    goose = sample("goose")
    goose.write(home)
    cli("ingest")
    settings = home / ".config/opencode/opencode.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"model": "quarry/stone-2/large"}')
    made = restored(cli, "--session", goose.session_id, "--agent", "opencode")
    told = json.loads(Path(made["path"]).read_text())
    asked = [m["info"] for m in told["messages"] if m["info"]["role"] == "user"]
    assert {(one["model"]["providerID"], one["model"]["modelID"]) for one in asked} == {
        ("quarry", "stone-2/large")
    }
    texts = [part["text"] for message in told["messages"] for part in message["parts"]]
    assert all(any(prompt in text for text in texts) for prompt in goose.prompts)


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
