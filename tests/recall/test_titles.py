"""What sessions are called."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.model.titles import title_of_prompt, title_source

Cli = Callable[..., Result]


@pytest.mark.parametrize(
    ("prompt", "title", "source"),
    [
        ("Mend the gate\nand the wall", "Mend the gate", "request"),
        ("Implement the following plan:\n\n# Plan: A tree view\n\n## Why", "A tree view", "plan"),
        ("implement the following plan\n\nPaint the wall", "Paint the wall", "plan"),
        ("<objective>\nRun all plans.\n</objective>", "Run all plans.", "template"),
        ("<note>Be kind to all</note>\nMend the gate", "Mend the gate", "request"),
        ("```\nTypeError: x\n```\nwhy does it fail?", "why does it fail?", "request"),
        ("2026-05-01T10:00:00 ERROR no\nwhat is this?", "what is this?", "request"),
        ("[[ ## query ## ]]\nWhat is it?", "What is it?", "request"),
        ("/clear\n# Task: paint it", "Task: paint it", "request"),
        ("resume please", "resume please", "request"),
        ("直して", "直して", "request"),
        ("<open", "<open", "request"),
    ],
)
def test_a_prompt_names_its_session(prompt: str, title: str, source: str) -> None:
    found = title_of_prompt(prompt)
    assert found is not None
    assert (found.text, title_source(found.rank)) == (title, source)


def test_a_prompt_without_words_names_nothing() -> None:
    assert title_of_prompt(" \n") is None
    assert title_of_prompt("<a>\n</a>") is None


def session_of(cli: Cli, made: Transcript, home: Path) -> tuple[str | None, str | None]:
    made.save(home)
    assert cli("ingest").code == 0
    [found] = cli("sessions", "--json").json
    return found["title"], found["title_source"]


def test_a_title_names_files_without_their_links_and_shows_where_it_was_cut(
    cli: Cli, home: Path
) -> None:
    made = Transcript("a")
    made.prompt("Let [gate.ts](src/parts/gate.ts) open [both ways](docs/a.md)")
    assert session_of(cli, made, home)[0] == "Let gate.ts open both ways"
    other = Transcript("b", day="2026-06-01")
    other.prompt("wall " * 60)
    other.save(home)
    assert cli("ingest").code == 0
    long = cli("sessions", "--json").json[0]["title"]
    assert len(long) == 200 and long.endswith("…")


def test_the_first_request_is_the_title_whatever_was_said_before(cli: Cli, home: Path) -> None:
    made = Transcript("a")
    made.prompt("resume please")
    made.say("Where were we?")
    assert session_of(cli, made, home) == ("resume please", "request")
    made.call("Bash", {"command": "git commit -m 'Oil the hinge'"})
    assert session_of(cli, made, home) == ("Oil the hinge", "commit")
    made.prompt("Now mend the gate")
    made.prompt("And paint the wall")
    assert session_of(cli, made, home) == ("Now mend the gate", "request")
    made.prompt("Implement the following plan:\n\n# Plan: Build a shed")
    assert session_of(cli, made, home) == ("Build a shed", "plan")
    before: Any = cli("sessions", "--json").json
    assert cli("rebuild").code == 0
    assert cli("sessions", "--json").json == before


def test_a_session_that_a_command_began_is_called_by_it(cli: Cli, home: Path) -> None:
    made = Transcript("a")
    for name, words in (("/model", "opus"), ("/plan:carry-out", "14")):
        made.prompt(f"<command-name>{name}</command-name><command-args>{words}</command-args>")
    made.call("Bash", {"command": "make tiles"})
    made.prompt("resume please")
    assert session_of(cli, made, home) == ("/plan:carry-out 14", "request")
    made.prompt("Now mend the gate")
    assert session_of(cli, made, home) == ("Now mend the gate", "request")


def test_a_session_without_words_is_called_by_what_it_ran(cli: Cli, home: Path) -> None:
    made = Transcript("a")
    made.call("Bash", {"command": "make tiles"})
    made.call("Bash", {"command": "ls"})
    made.call("Bash", {"command": "make tiles"})
    assert session_of(cli, made, home) == ("No words: ran make tiles twice", "work")
