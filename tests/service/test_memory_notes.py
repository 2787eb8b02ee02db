"""What a person or an agent writes into memory: it is truth, and it goes when it is forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.service.forget.traces import CANARY, traces
from tests.service.init.tools import git
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.service.memory import NewNote, add_note, forget_note, get_notes

Cli = Callable[..., Result]
FOUND = "The basket is slow because every price is read from the disk twice."


@pytest.fixture
def session(home: Path, cli: Cli, repo: Path) -> Transcript:
    """A session in a repository, with one derived finding."""
    (repo / "basket.py").write_text("slow()\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "Begin")
    made = Transcript("may", cwd=str(repo))
    made.prompt("Make the checkout faster.")
    made.say(FOUND)
    made.save(home)
    assert cli("ingest").code == 0
    return made


def done(cli: Cli, *arguments: str) -> dict[str, Any]:
    said = cli("memory", *arguments, "--json")
    assert said.code == 0, said.err
    found: dict[str, Any] = json.loads(said.out)
    return found


def listed(cli: Cli, *options: str) -> list[dict[str, Any]]:
    said = cli("memory", "--json", *options)
    assert said.code == 0, said.err
    found: list[dict[str, Any]] = json.loads(said.out)
    return found


def test_what_a_person_writes_survives_a_rebuild(session: Transcript, cli: Cli) -> None:
    note = done(cli, "add", "Use pnpm, not npm", "--file", "basket.py")
    assert (note["type"], note["state"], note["by"]) == ("rule", "stated", "person")
    assert (note["files_written"], note["branch"]) == (["basket.py"], "main")
    (finding,) = listed(cli, "--type", "discovery")
    short = finding["id"][:6]
    done(cli, "pin", short)
    done(cli, "edit", short, "Prices are read once per basket.")
    done(cli, "add", "Refunds run at night", "--type", "decision", "--replaces", note["id"][:7])
    before = listed(cli)
    detail = done(cli, "show", short)
    assert cli("rebuild").code == 0
    assert listed(cli) == before
    assert done(cli, "show", short) == detail
    by_title = {each["title"]: each for each in listed(cli, "--all")}
    edited = by_title["Prices are read once per basket."]
    assert (edited["id"], edited["by"], edited["pinned"]) == (finding["id"], "person", True)
    assert edited["session_id"] == session.session_id
    replaced = by_title["Use pnpm, not npm"]["superseded_by"]
    assert replaced == by_title["Refunds run at night"]["id"]


def test_a_grown_session_keeps_what_was_said_of_its_notes(
    session: Transcript, home: Path, cli: Cli
) -> None:
    (finding,) = listed(cli)
    done(cli, "wrong", finding["id"])
    session.prompt("Go on.")
    session.say("The cache is cold because nothing warms it at the start of the day.")
    session.save(home)
    assert cli("ingest").code == 0
    states = {each["id"]: each["state"] for each in listed(cli)}
    assert states[finding["id"]] == "refuted"
    assert len(states) == 2
    done(cli, "forget", finding["id"])
    session.say("All is well now.")
    session.save(home)
    assert cli("ingest").code == 0
    assert cli("rebuild").code == 0
    assert finding["id"] not in {each["id"] for each in listed(cli)}


def test_a_preview_tells_pinned_notes_first_and_leaves_wrong_ones_out(
    session: Transcript, cli: Cli
) -> None:
    (finding,) = listed(cli)
    done(cli, "add", "Ask before a release.")
    note = done(cli, "add", "Orders are kept for ten years.")
    assert FOUND in cli("memory", "preview").out
    done(cli, "pin", note["id"])
    done(cli, "wrong", finding["id"])
    shown = cli("memory", "preview").out
    assert FOUND not in shown
    assert shown.index("ten years") < shown.index("Ask before")
    done(cli, "unpin", note["id"])
    assert not done(cli, "show", note["id"])["note"]["pinned"]


def test_former_words_are_kept_until_the_note_is_forgotten(
    session: Transcript, cli: Cli, settings: Settings
) -> None:
    note = done(cli, "add", f"The password of the door is {CANARY}")
    done(cli, "edit", note["id"], "The door has a keypad.")
    shown = cli("memory", "show", note["id"][:8]).out
    assert "It read before" in shown
    assert CANARY in shown
    assert traces(settings.home)
    done(cli, "forget", note["id"][:8])
    assert traces(settings.home) == []
    assert "no note is called" in cli("memory", "show", note["id"]).err
    assert cli("rebuild").code == 0
    assert traces(settings.home) == []
    assert note["id"] not in {each["id"] for each in listed(cli)}
    assert cli("doctor").code in (0, 1)  # journal and database agree
    assert "whyfor rebuild" not in cli("doctor").out


def test_forgetting_a_session_forgets_what_was_said_of_its_notes(
    session: Transcript, cli: Cli, settings: Settings, repo: Path
) -> None:
    (finding,) = listed(cli)
    done(cli, "edit", finding["id"], f"It is the {CANARY}.")
    name = ("claude", session.session_id)
    add_note(settings, repo, NewNote(text=f"An agent saw {CANARY}", by="agent", session=name))
    own = done(cli, "add", "Keep the receipts.")
    assert cli("forget", session.session_id, "--yes").code == 0
    assert traces(settings.home) == []
    assert [each["id"] for each in listed(cli)] == [own["id"]]
    assert cli("rebuild").code == 0
    assert [each["id"] for each in listed(cli)] == [own["id"]]


def test_forgetting_a_text_forgets_notes_that_hold_it(
    session: Transcript, cli: Cli, settings: Settings
) -> None:
    done(cli, "add", f"Call {CANARY} before noon.")
    own = done(cli, "add", "Keep the receipts.")
    forgotten = cli("forget", "--match", CANARY, "--yes", "--json")
    assert forgotten.json["notes"] == 1
    assert traces(settings.home) == []
    assert own["id"] in {each["id"] for each in listed(cli)}


def test_a_journal_that_was_lost_gets_the_notes_back(
    session: Transcript, cli: Cli, settings: Settings
) -> None:
    done(cli, "add", "Keep the receipts.")
    done(cli, "pin", done(cli, "add", "Use pnpm, not npm")["id"])
    before = listed(cli)
    settings.journal.unlink()
    assert cli("rebuild").code == 0
    assert listed(cli) == before


def test_private_text_never_becomes_a_note(
    session: Transcript, cli: Cli, settings: Settings
) -> None:
    note = done(cli, "add", f"The door <private>opens with {CANARY}</private> is in the back.")
    assert CANARY not in note["narrative"]
    assert traces(settings.home) == []
    refused = cli("memory", "add", f"<private>{CANARY}</private>")
    assert refused.code != 0
    assert "the note says nothing" in refused.err


def test_what_cannot_be_is_said(session: Transcript, cli: Cli, repo: Path) -> None:
    for arguments, message in {
        ("add", "x" * 3_000): "the note has 3,000 characters",
        ("add", "Keep it.", "--type", "idea"): "no such type: idea",
        ("add", "Keep it.", "--replaces", "zzz"): "no note is called 'zzz'",
        ("pin", "zzz"): "no note is called 'zzz'",
        ("edit", "zzz", "New"): "no note is called 'zzz'",
        ("forget", "zzz"): "no note is called 'zzz'",
    }.items():
        said = cli("memory", *arguments)
        assert said.code != 0
        assert message in said.err


def test_a_note_can_be_written_where_no_session_ran(cli: Cli, repo: Path) -> None:
    note = done(cli, "add", "Use tabs, not spaces")
    assert [each["id"] for each in listed(cli, "--project", ".")] == [note["id"]]
    assert cli("rebuild").code == 0
    assert [each["id"] for each in listed(cli, "--project", ".")] == [note["id"]]


def test_an_agent_is_named_as_the_writer(
    session: Transcript, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHYFOR_SESSION", f"claude:{session.session_id}")
    note = done(cli, "add", "The cache is cold at night.")
    assert (note["by"], note["agent"], note["session_id"]) == (
        "agent",
        "claude",
        session.session_id,
    )


def test_several_notes_are_read_at_once(
    session: Transcript, cli: Cli, settings: Settings, repo: Path
) -> None:
    first = add_note(settings, repo, NewNote(text="Keep the receipts.")).observation.key
    (finding,) = listed(cli, "--agent", "claude")
    found = get_notes(settings, [finding["id"][:9], "zzz", first])
    assert [each.note.observation.key for each in found.notes] == [finding["id"], first]
    assert found.missing == ["zzz"]
    forget_note(settings, first)
    assert get_notes(settings, [first]).missing == [first]
