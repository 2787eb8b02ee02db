"""One note for each command of a project, whatever the number of its sessions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.model.memory import CommandCount, ProjectCommand
from whyfor.recall.command_notes import command_notes

Cli = Callable[..., Result]
NOW = 1_777_629_600_000


def test_a_note_says_how_often_a_command_passed_and_failed() -> None:
    count = CommandCount("pytest", "pytest -q", 9, 6, 2, NOW, 17)
    ((session, note),) = command_notes("shop", [ProjectCommand(count, 4, 3, 2)])
    assert (session, note.turn, note.at) == (3, 2, NOW)
    assert (note.type, note.state, note.title) == ("command", "verified", "`pytest -q` works")
    assert note.facts == ("ran 9 times in 4 sessions, passed 6, failed 2",)
    assert (note.evidence[0].seq, note.concepts) == (17, ("pytest",))


def test_a_note_keeps_its_id_whichever_session_ran_the_command_last() -> None:
    one, other = (
        CommandCount("pytest", f"pytest {name}", runs, runs, 0, NOW + runs, runs)
        for name, runs in (("-q", 1), ("-x", 5))
    )
    keys = [
        note.key
        for count in (one, other)
        for _, note in command_notes("shop", [ProjectCommand(count, 1, 1, 1)])
    ]
    assert keys[0] == keys[1]
    elsewhere = [note.key for _, note in command_notes("till", [ProjectCommand(one, 1, 1, 1)])]
    assert elsewhere != keys[:1]


def ran(home: Path, name: str, *outcomes: bool) -> Transcript:
    made = Transcript(name)
    made.prompt("Test it.")
    for passed in outcomes:
        made.call("Bash", {"command": "make test"}, "" if passed else "Exit 1", failed=not passed)
    made.save(home)
    return made


def told(cli: Cli) -> list[tuple[str, str]]:
    found = cli("memory", "--type", "command", "--all", "--json").json
    return [(note["id"], note["facts"][0]) for note in found]


def test_sessions_add_to_one_note_that_a_rebuild_makes_again(home: Path, cli: Cli) -> None:
    ran(home, "one", True, False)
    last = ran(home, "two", True, True)
    assert cli("ingest").code == 0
    ((key, fact),) = told(cli)
    assert fact == "ran 4 times in 2 sessions, passed 3, failed 1"
    assert cli("rebuild").code == 0
    assert told(cli) == [(key, fact)]
    assert cli("forget", last.session_id, "--yes").code == 0
    assert told(cli) == [(key, "ran 2 times in 1 session, passed 1, failed 1")]
