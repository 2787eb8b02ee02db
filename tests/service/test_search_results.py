"""Notes and commits stand among the sessions that a search finds."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.service.init.tools import git
from tests.transcripts import Transcript

Cli = Callable[..., Result]
WRITTEN = "Refunds run at night, never while the bank is open"


@pytest.fixture
def kept(home: Path, cli: Cli, repo: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The commit that came of a session about refunds; and a note about them by hand."""
    (repo / "refunds.py").write_text("later()\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "Move refunds to the night")
    sha = git(repo, "rev-parse", "HEAD").stdout.strip()
    made = Transcript("may", cwd=str(repo))
    made.prompt("Move the refunds to the night.")
    made.call(
        "Bash",
        {"command": "git commit -qm 'Move refunds to the night'"},
        f"[main {sha[:7]}] Move refunds to the night\n 1 file changed",
    )
    made.say("The refunds now run at night.")
    made.save(home)
    monkeypatch.chdir(repo)
    assert cli("ingest").code == 0
    assert cli("link", sha, made.session_id).code == 0
    assert cli("memory", "add", WRITTEN).code == 0
    return sha


def found(cli: Cli, *words: str) -> list[dict[str, Any]]:
    result = cli("search", *words, "--json")
    assert result.code == 0, result.err
    hits: list[dict[str, Any]] = json.loads(result.out)
    return hits


def test_notes_and_commits_follow_the_best_session(kept: str, cli: Cli) -> None:
    session, note, commit = found(cli, "refunds", "night")
    assert (session["type"], note["type"], commit["type"]) == ("session", "note", "commit")
    assert note["snippet"] == WRITTEN
    assert [WRITTEN[a:b] for a, b in note["marks"]] == ["Refunds", "night"]
    assert (note["note_type"], note["by"], note["session_id"]) == ("discovery", "person", "")
    assert (commit["sha"], commit["subject"]) == (kept, "Move refunds to the night")
    assert commit["agents"] == ["claude"]
    shown = cli("search", "refunds", "night")
    lines = [line for line in shown.out.splitlines() if not line.startswith("   ")]
    assert [line.split()[0] for line in lines] == ["Cc", "note", "commit"]
    assert f"note {note['id'][:8]}" in shown.out
    assert f"commit {kept[:9]}" in shown.out
    newest = found(cli, "refunds", "night", "--sort", "time")
    assert {hit["type"] for hit in newest} == {"session", "note", "commit"}
    assert newest[-1]["type"] == "session"  # it is of May


def test_turns_and_parts_of_them_are_all_that_is_shown_where_they_are_asked_for(
    kept: str, cli: Cli
) -> None:
    for more in (["--turns"], ["--in", "prompts"]):
        assert {hit["type"] for hit in found(cli, "refunds", "night", *more)} == {"session"}
    # what must be there besides words, a note cannot have
    assert {hit["type"] for hit in found(cli, "refunds", "tool:Bash")} == {"session"}
    assert {hit["type"] for hit in found(cli, "refunds", "-bank")} == {"session", "commit"}


def test_a_note_that_is_wrong_or_told_with_its_session_does_not_stand_alone(
    kept: str, cli: Cli
) -> None:
    [note] = [hit for hit in found(cli, "refunds", "bank") if hit["type"] == "note"]
    assert cli("memory", "wrong", note["id"]).code == 0
    assert [hit["type"] for hit in found(cli, "refunds", "bank")] == []
    told = cli("search", "refunds", "bank")
    assert told.code == 0
    assert "Nothing found" in told.err
