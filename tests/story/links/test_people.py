"""A colleague's commit that came by fetching: what a session wrote of the like is no evidence,
unless it is nearly all of it. What its own person commits keeps its links."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.story.links.workshop import Agent, Cli, Clock, Repo, Workshop, body


@pytest.fixture
def mine(tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """Ada's clone of a repository that Bob has a clone of too; git knows who she is."""
    clock = Clock()
    hub = tmp_path / "hub.git"
    first = Repo.made(tmp_path / "first", clock)
    first.git("clone", "-q", "--bare", str(first.path), str(hub))
    for name in ("ada", "bob"):
        first.git("clone", "-q", str(hub), str(tmp_path / name / "shop"))
    ada = Repo(tmp_path / "ada" / "shop", clock)
    ada.git("config", "user.name", "Ada")
    ada.git("config", "user.email", "ada@example.org")
    monkeypatch.chdir(ada.path)
    return Workshop(home, ada, cli, hooked=False)


@pytest.fixture
def bob(mine: Workshop, tmp_path: Path) -> Repo:
    return Repo(tmp_path / "bob" / "shop", mine.repo.clock, author="Bob")


def _own_commit(agent: Agent) -> str:
    """Ada commits what her session wrote."""
    agent.prompt("Add a shelf")
    agent.write("shelf.py", body("shelf"))
    return agent.repo.commit("A shelf")


def _fetched(mine: Workshop, bob: Repo, files: dict[str, str]) -> str:
    made = bob.commit("Work of mine", files)
    bob.git("push", "-q", "origin", "HEAD:main")
    mine.repo.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    return made


def test_a_few_lines_of_a_colleagues_commit_are_no_link(mine: Workshop, bob: Repo) -> None:
    agent = Agent("s1", mine.repo)
    own = _own_commit(agent)
    agent.prompt("Try a cart")
    agent.write("cart.py", body("cart", 4))
    (mine.repo.path / "cart.py").unlink()  # nobody keeps it
    theirs = _fetched(mine, bob, {"cart.py": body("cart", 4) + body("wheels", 12)})
    mine.ingest(agent)
    links = mine.links()
    assert links[theirs] == {}
    assert links[own] == {agent.session_id: "content"}


def test_the_same_lines_are_a_link_in_a_commit_of_her_own(mine: Workshop) -> None:
    agent = Agent("s1", mine.repo)
    _own_commit(agent)
    agent.prompt("Try a cart")
    agent.write("cart.py", body("cart", 4))
    own = mine.repo.commit("A cart", {"cart.py": body("cart", 4) + body("wheels", 12)})
    mine.ingest(agent)
    assert mine.links()[own] == {agent.session_id: "content"}


def test_nearly_all_of_a_colleagues_commit_is_a_link(mine: Workshop, bob: Repo) -> None:
    """Bob committed what he was sent."""
    agent = Agent("s1", mine.repo)
    _own_commit(agent)
    agent.prompt("Write a cart for Bob")
    agent.write("cart.py", body("cart", 20))
    (mine.repo.path / "cart.py").unlink()
    theirs = _fetched(mine, bob, {"cart.py": body("cart", 20)})
    mine.ingest(agent)
    assert mine.links()[theirs] == {agent.session_id: "content"}
