"""whyfor sessions: one row for a conversation, with its resumes, forks and copies."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.service.restore.helpers import bring_back
from tests.transcripts import Transcript
from whyfor.service.restore import RestoredSource

Cli = Callable[..., Result]


@pytest.fixture
def cwd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "code"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def thread(home: Path, cwd: Path, cli: Cli) -> dict[str, str]:
    """A session of five turns, a fork with two more, and a copy that nobody opened; their ids."""
    first = Transcript("first", cwd=str(cwd))
    for number in range(5):
        first.prompt(f"Plant fern {number}")
        first.say("It stands.")
    first.save(home)
    fork = Transcript("fork", cwd=str(cwd), day="2026-05-02")
    for line in first.lines:
        origin = {"sessionId": first.session_id, "messageUuid": line["uuid"]}
        fork.lines.append({**line, "sessionId": fork.session_id, "forkedFrom": origin})
    for number in range(2):
        fork.prompt(f"Plant moss {number}")
        fork.say("It grows.")
    fork.save(home)
    other = Transcript("other", cwd=str(cwd), day="2026-04-01")
    other.prompt("Rake the gravel")
    other.save(home)
    assert cli("ingest").code == 0
    copy = bring_back(cwd, RestoredSource("claude", first.session_id))
    assert cli("ingest").code == 0
    return {
        "first": first.session_id,
        "fork": fork.session_id,
        "copy": copy.session_id,
        "other": other.session_id,
    }


def lines_of(text: str) -> dict[str, list[str]]:
    """The lines of a table by the id they begin with."""
    found = {}
    for line in text.splitlines()[1:]:
        words = line.split()
        ident = next((word for word in words if re.fullmatch(r"[0-9a-f]{8}", word)), "")
        found[ident] = words
    return found


def test_a_thread_is_one_row_that_counts_each_turn_once(thread: dict[str, str], cli: Cli) -> None:
    shown = cli("sessions").out
    rows = lines_of(shown)
    assert list(rows) == [thread["fork"][:8], thread["other"][:8]], shown
    assert "[forked once, restored once]" in shown
    told = " ".join(rows[thread["fork"][:8]])
    assert "Plant fern 0 7 " in told, "five turns in the first and two in the fork"


def test_all_unfolds_a_thread_and_marks_its_copies(thread: dict[str, str], cli: Cli) -> None:
    shown = cli("sessions", "--all").out
    rows = lines_of(shown)
    assert list(rows) == [thread[name][:8] for name in ("fork", "first", "copy", "other")], shown
    first, copy = (" ".join(rows[thread[name][:8]]) for name in ("first", "copy"))
    assert "├ started: Plant fern 0 5" in first
    assert "└ restored copy: nothing new in it 0" in copy


def test_json_has_every_part_marked_and_counted_for_itself(
    thread: dict[str, str], cli: Cli
) -> None:
    found = {each["session_id"]: each for each in cli("sessions", "--json").json}
    assert list(found) == [thread[name] for name in ("fork", "first", "copy", "other")]
    told = [(found[thread[name]]["copy_kind"], found[thread[name]]["prompts"]) for name in thread]
    assert told == [(None, 5), ("forked", 2), ("restored", 0), (None, 1)]
    assert len(cli("sessions", "--limit", "1", "--json").json) == 3, "a row is not cut in two"


def test_projects_of_the_same_name_are_told_apart(home: Path, cwd: Path, cli: Cli) -> None:
    for place in ("/a/shop", "/b/shop", "/b/till"):
        told = Transcript(place, cwd=place)
        told.prompt("Look around")
        told.call("Bash", {"command": "ls"}, "a.py")
        told.say("Nothing seen.")
        told.save(home)
    assert cli("ingest").code == 0
    for words in (["sessions"], ["stats"], ["search", "look around"]):
        shown = cli(*words).out
        assert "a/shop" in shown and "b/shop" in shown, words
        assert "till" in shown and "b/till" not in shown, words
