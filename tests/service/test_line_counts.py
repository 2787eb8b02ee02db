"""How many lines of a commit a session wrote: one answer, wherever it is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.story.links.workshop import Agent, Clock, Repo, Workshop, body, part_of
from whyfor.config import Settings
from whyfor.service.commit import commit_page

Cli = Callable[..., Result]
_WRITTEN = """def total(order):
    lines = [line.price for line in order]

    if not lines:
        return 0
    return sum(lines)
"""
_BY_HAND = "# rounded by the till, not by us\n"


@pytest.fixture
def shop(tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    repo = Repo.made(tmp_path / "code" / "shop", Clock())
    monkeypatch.chdir(repo.path)
    return Workshop(home, repo, cli, hooked=False)


@pytest.fixture
def agent(shop: Workshop) -> Agent:
    """It writes a file; a person adds a line, and commits."""
    found = Agent("s1", shop.repo)
    found.prompt("Add up an order")
    found.write("total.py", _WRITTEN)
    found.say("It is added up.")
    shop.repo.write("total.py", _BY_HAND + _WRITTEN)
    shop.repo.commit("Add up an order")
    shop.ingest(found)
    return found


def test_every_face_counts_the_same_lines(
    shop: Workshop, agent: Agent, cli: Cli, settings: Settings
) -> None:
    sha = shop.repo.head
    wanted = "6 of 7 added lines"
    page = commit_page(settings, sha)
    assert (page.counts["claude"], sum(page.counts.values())) == (6, 7)
    assert [proof.words for proof in page.proofs if proof.evidence == "content"] == [
        f"{wanted} were written there"
    ]
    for told in (shop.show(sha), shop.log()[sha]):
        part = part_of(told, agent)
        assert (part["why"], part["lines"], part["share"]) == (wanted, 6, 0.857)
    assert wanted in cli("show", sha).out
    for form in ("markdown", "html", "json"):
        assert wanted in cli("export", sha, "--format", form).out


def test_the_count_is_the_same_after_linking_again_and_rebuilding(
    shop: Workshop, agent: Agent, cli: Cli
) -> None:
    sha = shop.repo.head
    first = part_of(shop.show(sha), agent)
    assert cli("link").code == 0
    assert part_of(shop.show(sha), agent) == first
    assert cli("rebuild").code == 0
    assert part_of(shop.show(sha), agent) == first


def test_two_sessions_count_their_own_lines(shop: Workshop, cli: Cli, settings: Settings) -> None:
    one, two = Agent("s1", shop.repo), Agent("s2", shop.repo)
    one.prompt("Add up an order")
    one.write("total.py", _WRITTEN)
    two.prompt("Say what is owed")
    two.write("owed.py", "def owed(order):\n    return total(order) - paid(order)\n")
    sha = shop.repo.commit("Totals")
    shop.ingest(one, two)
    parts = shop.show(sha)["checkpoint"]["sessions"]
    told = {part["session_id"]: (part["why"], part["lines"]) for part in parts}
    assert told == {
        one.session_id: ("6 of 8 added lines", 6),
        two.session_id: ("2 of 8 added lines", 2),
    }
    page = commit_page(settings, sha)
    assert page.counts == {"claude": 8}


def test_a_commit_that_only_removes_lines_is_told_without_a_count(
    shop: Workshop, cli: Cli, settings: Settings
) -> None:
    shop.repo.commit("A total", {"total.py": _WRITTEN})
    agent = Agent("s1", shop.repo)
    agent.prompt("Take out the check")
    agent.edit("total.py", "    if not lines:\n        return 0\n", "")
    sha = shop.repo.commit("No check")
    shop.ingest(agent)
    part = part_of(shop.show(sha), agent)
    words = [proof.words for proof in commit_page(settings, sha).proofs]
    assert words == [part["why"]] == ["wrote lines that it changes"]
    assert part["lines"] is None


def test_a_file_too_long_to_look_at_is_unknown_and_hides_no_other(shop: Workshop, cli: Cli) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Write the rules")
    agent.write("rules.py", body("rule", 8))
    shop.repo.write("made.txt", "made\n" * 70_000)
    agent.commit("Rules")
    shop.ingest(agent)
    files = {file["path"]: file for file in cli("lines", "--json").json["files"]}
    assert files["rules.py"]["agent"] == 8
    assert (files["made.txt"]["unknown"], files["made.txt"]["person"]) == (70_000, 0)
