"""whyfor context: what an agent should know before it works on a branch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.service.init.tools import git
from tests.transcripts import Transcript

Cli = Callable[..., Result]
SECRET = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"


def work(made: Transcript, home: Path, file: str, words: str) -> None:
    repo = Path(made.cwd)
    made.prompt(f"Work on {file} with {SECRET}")
    made.call("Edit", {"file_path": str(repo / file), "old_string": "one", "new_string": "two"})
    made.say(words)
    made.save(home)


@pytest.fixture
def branches(repo: Path, home: Path, cli: Cli) -> Path:
    """A branch about cards, and newer sessions on main about stamps."""
    for name in ("cards.py", "stamps.py"):
        (repo / name).write_text("one\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "Begin")
    git(repo, "checkout", "-qb", "pay-by-card")
    (repo / "cards.py").write_text("two\n")
    git(repo, "commit", "-qam", "Accept cards")
    why = "Cards fail because the terminal rounds cents."
    old = Transcript("old", cwd=str(repo), branch="pay-by-card", day="2026-01-01")
    work(old, home, "cards.py", why)
    for number in range(20):
        other = f"Stamp {number} is late because the post is slow."
        new = Transcript(f"new {number}", cwd=str(repo), day=f"2026-05-{number + 1:02}")
        work(new, home, "stamps.py", other)
    assert cli("ingest").code == 0
    return repo


def test_a_branch_is_told_of_its_own_sessions_commits_and_files_first(
    branches: Path, cli: Cli
) -> None:
    told = cli("context", "--json").json
    lines: dict[str, list[dict[str, str]]] = {}
    for line in told["lines"]:
        lines.setdefault(line["section"], []).append(line)
    assert ["Accept cards" in line["text"] for line in lines["commits"]] == [True]
    assert "cards.py" in lines["sessions"][0]["text"]
    assert "rounds cents" in lines["findings"][0]["text"]
    assert told["tokens"] <= told["budget"]
    assert SECRET[:20] not in told["text"]


def test_another_branch_and_other_files_can_be_asked_about(branches: Path, cli: Cli) -> None:
    on_main = cli("context", "--branch", "main", "--json").json
    findings = [line["text"] for line in on_main["lines"] if line["section"] == "findings"]
    assert "post is slow" in findings[0]
    asked = cli("context", "--branch", "main", "--files", "cards.py", "README.md", "--json").json
    findings = [line["text"] for line in asked["lines"] if line["section"] == "findings"]
    assert "rounds cents" in findings[0]


def test_a_smaller_budget_is_kept(branches: Path, cli: Cli) -> None:
    told = cli("context", "--tokens", "200", "--json").json
    assert 0 < told["tokens"] <= 200


def test_what_cannot_be_told_is_an_error_with_a_hint(
    branches: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = cli("context", "--branch", "nowhere")
    assert (wrong.code, "no such branch" in wrong.err) == (2, True)
    assert cli("context", "cards.py").code == 2
    assert cli("context", "--branch=--output=x").code == 2
    monkeypatch.chdir(tmp_path)
    assert "not in a git repository" in cli("context").err


def test_it_is_printed_as_agents_get_it(branches: Path, cli: Cli) -> None:
    told = cli("context")
    assert told.code == 0
    assert told.out.startswith("<whyfor-memory>")
    assert "tokens" in told.err
