"""The timeline: what is in no commit yet, and when sessions were there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.story.links.workshop import Agent, Clock, Repo, Workshop, body
from whyfor.config import Settings
from whyfor.model.stories import CommitFilter
from whyfor.service.projects import project_summaries
from whyfor.service.timeline import TimelineView, timeline

Cli = Callable[..., Result]


@pytest.fixture
def shop(tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    repo = Repo.made(tmp_path / "code" / "shop", Clock())
    monkeypatch.chdir(repo.path)
    return Workshop(home, repo, cli, hooked=False)


def _view(settings: Settings) -> TimelineView:
    (known,) = project_summaries(settings)
    return timeline(settings, known.project.identity, CommitFilter())


def _fork(agent: Agent, name: str) -> Agent:
    """A session that begins with the records of another."""
    found = Agent(name, agent.repo)
    found.lines = [{**line, "sessionId": found.session_id} for line in agent.lines]
    return found


def test_only_files_that_differ_from_the_last_commit_are_in_no_commit_yet(
    shop: Workshop, settings: Settings
) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart and a till")
    agent.write("cart.py", body("cart"))
    agent.write("till.py", body("till"))
    agent.say("Both are there.")
    shop.ingest(agent)
    pending = _view(settings).pending
    assert pending is not None
    assert ([one.session_id for one in pending.sessions], pending.files) == ([agent.session_id], 2)
    (shop.repo.path / "till.py").unlink()
    pending = _view(settings).pending
    assert pending is not None
    assert pending.files == 1
    (shop.repo.path / "cart.py").unlink()
    assert _view(settings).pending is None, "the tree is clean"


def test_a_file_in_another_work_tree_is_compared_with_the_commit_there(
    shop: Workshop, settings: Settings, tmp_path: Path
) -> None:
    shop.repo.git("worktree", "add", "-q", str(tmp_path / "code" / "beside"))
    beside = shop.repo.at(tmp_path / "code" / "beside")
    agent = Agent("s1", beside)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    shop.ingest(agent)
    pending = _view(settings).pending
    assert pending is not None
    assert pending.files == 1
    (beside.path / "cart.py").unlink()
    assert _view(settings).pending is None


def test_a_copy_is_drawn_only_from_where_it_goes_on_by_itself(
    shop: Workshop, settings: Settings
) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    first = agent.commit("Add a cart")
    agent.say("The cart is there.")
    fork = _fork(agent, "s2")
    shop.repo.clock.tick(86_400)
    fork.prompt("Add a till")
    fork.write("till.py", body("till"))
    second = fork.commit("Add a till")
    fork.say("The till is there.")
    shop.ingest(agent, fork)
    view = _view(settings)
    lanes = {row.entry.told.commit.sha: row.lanes for row in view.rows if row.entry}
    assert len(lanes[second]) == 1
    assert [piece.below != "" for piece in lanes[first]].count(True) == 1, "the fork begins above"
    assert view.pending is None


def test_restored_copies_are_no_work_that_waits_for_a_commit(
    shop: Workshop, settings: Settings
) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart and a till")
    agent.write("cart.py", body("cart"))
    agent.write("till.py", body("till"))
    agent.commit("Add a cart and a till")
    agent.say("Both are there.")
    shop.ingest(agent)
    for _ in range(3):
        assert shop.cli("restore", "HEAD", "--yes", "--json").code == 0
    shop.ingest()
    copies = [one for one in shop.cli("sessions", "--all", "--json").json if one["copy_of"]]
    assert len(copies) == 3
    assert _view(settings).pending is None, "the tree is clean"

    shop.repo.write("cart.py", "a person's own change\n")
    pending = _view(settings).pending
    told = [] if pending is None else [one.session_id for one in pending.sessions]
    assert not {one["session_id"] for one in copies} & set(told), "nobody opened a copy"
    shop.repo.git("checkout", "-q", "cart.py")

    opened = Agent("s2", shop.repo)
    opened.session_id = copies[0]["session_id"]
    place = next(shop.home.rglob(f"{opened.session_id}.jsonl"))
    opened.prompt("And a bell")
    opened.write("bell.py", body("bell"))
    with place.open("a", encoding="utf-8") as file:
        file.write(opened.text())
    shop.ingest()
    pending = _view(settings).pending
    assert pending is not None
    assert [one.session_id for one in pending.sessions] == [opened.session_id]
    assert pending.files == 1
