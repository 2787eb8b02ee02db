"""whyfor restore --brief: a summary, then the last turns word for word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.transcripts import Transcript

from .helpers import lines, texts

Cli = Callable[..., Result]
DECIDED = "I chose SQLite instead of a flat file because two processes write at once."


@pytest.fixture
def long(home: Path, cwd: Path, cli: Cli) -> Transcript:
    """A session of twelve turns: a decision at its beginning, much talk, an open end."""
    made = Transcript("long", cwd=str(cwd))
    made.prompt("Keep the orders. Never delete an order.")
    made.say(DECIDED)
    for number in range(2, 12):
        made.prompt(f"Question {number}")
        made.call("Bash", {"command": f"echo {number}"}, f"printed {number} " * 400)
        made.say(f"Answer {number}. " + "And so on. " * 100)
    made.prompt("Last question")
    made.call("Bash", {"command": "echo last"}, "printed last")
    made.say("Last answer.")
    made.save(home)
    assert cli("ingest").code == 0
    return made


def test_a_brief_has_the_decisions_and_the_last_turns(long: Transcript, cli: Cli) -> None:
    made = cli("restore", long.session_id, "--brief", "--turns", "2", "--yes", "--json").json
    assert (made["brief"]["turns"], made["brief"]["of_turns"]) == (2, 12)
    assert made["brief"]["tokens_before"] > 10_000
    assert made["brief"]["tokens_after"] < made["brief"]["tokens_before"] / 4
    assert cli("ingest").code == 0
    intro = lines(made["path"])[0]["message"]["content"]
    assert DECIDED in intro and "Never delete an order." in intro
    assert "the last 2 turns of 12 follow word for word" in intro
    original = texts("claude", long.session_id)
    at = original.index(("user.prompt", "Question 11"))
    assert texts("claude", made["session_id"]) == original[at:]
    assert "Answer 10" not in Path(made["path"]).read_text()


def test_the_brief_says_its_tokens_before_and_after(long: Transcript, cli: Cli) -> None:
    told = cli("restore", "--session", long.session_id, "--brief", "--yes")
    assert told.code == 0
    assert "5 turns of 12 word for word, after a summary: about " in " ".join(told.out.split())


def test_every_record_of_a_brief_follows_the_one_before(long: Transcript, cli: Cli) -> None:
    made = cli("restore", long.session_id, "--brief", "--yes", "--json").json
    tree = [record for record in lines(made["path"]) if record.get("uuid")]
    assert [record["parentUuid"] for record in tree] == [
        None,
        *(record["uuid"] for record in tree[:-1]),
    ]
    assert {record["sessionId"] for record in tree} == {made["session_id"]}


def test_a_short_session_is_restored_whole_and_that_is_said(
    home: Path, cwd: Path, cli: Cli
) -> None:
    short = Transcript("short", cwd=str(cwd))
    short.prompt("Hello")
    short.say("Hello yourself.")
    short.save(home)
    assert cli("ingest").code == 0
    made = cli("restore", short.session_id, "--brief", "--yes", "--json").json
    assert made["brief"] is None
    assert any("restored whole" in warning for warning in made["warnings"])


@pytest.mark.parametrize("agent", ["codex", "gemini"])
def test_a_brief_goes_on_in_another_agent(agent: str, long: Transcript, cli: Cli) -> None:
    made = cli(
        "restore", long.session_id, "--brief", "--turns", "1", "--agent", agent, "--yes", "--json"
    ).json
    said = Path(made["path"]).read_text()
    assert DECIDED in said and "Last answer." in said
    assert "Question 7" not in said


def test_a_brief_is_a_copy_that_counts_for_nothing(long: Transcript, cli: Cli) -> None:
    before = cli("stats", "--json").json
    notes = cli("memory", "--json").json
    cli("restore", long.session_id, "--brief", "--yes")
    assert cli("ingest").code == 0
    after = cli("stats", "--json").json
    assert (after["tokens"], after["sessions"]) == (before["tokens"], before["sessions"])
    assert cli("memory", "--json").json == notes


def test_turns_without_brief_and_unknown_names_are_refused(long: Transcript, cli: Cli) -> None:
    assert cli("restore", long.session_id, "--turns", "3").code == 2
    assert cli("restore", "zzzzzz", "--brief").code == 2
    assert cli("restore", long.session_id, "--brief", "--turns", "0").code == 2
