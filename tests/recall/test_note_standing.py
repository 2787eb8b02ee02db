"""Whether a note still holds: as git and later notes tell when it is read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.story.links.conftest import hooked, plain, repo, shop
from tests.story.links.workshop import Agent, Repo, Workshop, body
from whyfor.model.memory import Observation, StoredObservation
from whyfor.recall.note_standing import supersede_notes

__all__ = ["hooked", "plain", "repo", "shop"]
FOUND = "Plums are slow to load because plums.py reads the disk twice."


@pytest.fixture
def agent(shop: Workshop, repo: Repo) -> Agent:
    """A session that commits a file and says something about it."""
    made = Agent("worker", repo)
    made.prompt("Please add plums to the shop as soon as you can.")
    made.write("plums.py", body("plums"))
    made.say(FOUND)
    made.commit("Add plums")
    shop.ingest(made)
    return made


def notes(shop: Workshop, *options: str) -> dict[str, dict[str, Any]]:
    shown = shop.cli("memory", "--json", *options)
    assert shown.code == 0, shown.err
    found: list[dict[str, Any]] = json.loads(shown.out)
    return {note["title"]: note for note in found}


def test_a_note_about_an_unchanged_file_has_nothing_against_it(
    shop: Workshop, agent: Agent
) -> None:
    found = notes(shop)
    assert {"Add plums", FOUND} <= found.keys()
    for note in found.values():
        assert note["standing"] == {"changed": [], "elsewhere": False, "gone": ""}
    assert found[FOUND]["commit"] == found["Add plums"]["commit"]
    assert found[FOUND]["anchors"] == ["plums.py"]


def test_a_file_that_changed_since_is_said(shop: Workshop, repo: Repo, agent: Agent) -> None:
    path = repo.path / "plums.py"
    before = path.read_bytes()
    path.write_bytes(before + b"# quick\n")
    repo.git("commit", "-qam", "Quicker")
    assert notes(shop)[FOUND]["standing"]["changed"] == ["plums.py"]
    assert "(file changed since)" in " ".join(shop.cli("memory").out.split())
    key = notes(shop)[FOUND]["id"]
    assert "Now: file changed since" in shop.cli("memory", "show", key).out
    assert "(its file has changed since)" in shop.cli("memory", "preview").out
    path.write_bytes(before)  # as it was: the note holds again
    repo.git("commit", "-qam", "Slow again")
    assert notes(shop)[FOUND]["standing"]["changed"] == []


def test_a_note_about_a_deleted_file_is_hidden(shop: Workshop, repo: Repo, agent: Agent) -> None:
    repo.git("rm", "-q", "plums.py")
    repo.git("commit", "-qm", "No more plums")
    assert FOUND not in notes(shop)
    assert FOUND not in shop.cli("memory", "preview").out.partition("## Found and decided")[2]
    assert "left out that no longer hold: --all" in shop.cli("memory").err
    assert notes(shop, "--all")[FOUND]["standing"]["gone"] == "its files were deleted"


def test_a_note_of_a_reverted_commit_is_hidden(shop: Workshop, repo: Repo, agent: Agent) -> None:
    repo.git("revert", "--no-edit", "HEAD")
    (repo.path / "plums.py").write_text("another\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "Other plums")
    assert notes(shop).keys().isdisjoint({FOUND, "Add plums"})
    gone = notes(shop, "--all")["Add plums"]
    assert (gone["standing"]["gone"], gone["state"]) == ("its commit was reverted", "refuted")
    assert "Add plums" in notes(shop, "--all", "--state", "refuted")


def test_a_note_holds_again_when_the_revert_of_its_commit_was_reverted(
    shop: Workshop, repo: Repo, agent: Agent
) -> None:
    repo.git("revert", "--no-edit", "HEAD")
    assert FOUND not in notes(shop)
    repo.git("revert", "--no-edit", "HEAD")
    assert notes(shop)[FOUND]["state"] == "stated"


def test_a_note_from_a_branch_that_is_not_merged_says_so(
    shop: Workshop, repo: Repo, agent: Agent
) -> None:
    repo.git("branch", "plums")
    repo.git("reset", "-q", "--hard", "HEAD~1")
    assert notes(shop)["Add plums"]["standing"] == {
        "changed": [],
        "elsewhere": True,
        "gone": "",
    }
    assert "(on another branch)" in " ".join(shop.cli("memory").out.split())
    repo.git("merge", "-q", "plums")
    assert not notes(shop)["Add plums"]["standing"]["elsewhere"]


def test_a_pinned_note_stays_whatever_git_says(shop: Workshop, repo: Repo, agent: Agent) -> None:
    assert shop.cli("memory", "pin", notes(shop)[FOUND]["id"]).code == 0
    repo.git("rm", "-q", "plums.py")
    repo.git("commit", "-qm", "No more plums")
    assert notes(shop)[FOUND]["standing"]["gone"] == ""


def test_a_written_note_is_judged_by_its_file_too(shop: Workshop, repo: Repo, agent: Agent) -> None:
    assert shop.cli("memory", "add", "Plums are sold by weight.", "--file", "plums.py").code == 0
    assert notes(shop)["Plums are sold by weight."]["standing"]["changed"] == []
    (repo.path / "plums.py").write_text("by_piece = True\n")
    repo.git("commit", "-qam", "By piece")
    assert notes(shop)["Plums are sold by weight."]["standing"]["changed"] == ["plums.py"]


def test_a_replaced_note_is_hidden_and_says_by_what(shop: Workshop, agent: Agent) -> None:
    old = notes(shop)[FOUND]["id"]
    shop.cli("memory", "add", "Plums are read once now.", "--replaces", old)
    assert FOUND not in notes(shop)
    new = notes(shop)["Plums are read once now."]["id"]
    assert notes(shop, "--all")[FOUND]["standing"]["gone"] == f"replaced by {new[:8]}"


def test_without_the_repository_nothing_is_claimed(
    shop: Workshop, repo: Repo, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repo.path.parent)
    repo.path.rename(repo.path.with_name("moved"))
    assert notes(shop)[FOUND]["standing"] == {"changed": [], "elsewhere": False, "gone": ""}


def stored(key: str, title: str, at: int, **more: Any) -> StoredObservation:
    given = {"type": "discovery", "state": "stated", "turn": 1, "anchors": ("a.py",), **more}
    note = Observation(key=key, title=title, at=at, **given)
    return StoredObservation(note, "claude", "s1", None, "shop", "main")


@pytest.mark.parametrize(
    ("older", "replaced"),
    [
        (stored("k1", "The basket reads the price twice", 1), True),
        (stored("k1", "The basket reads the price twice", 1, anchors=("b.py",)), False),
        (stored("k1", "The basket reads the price twice", 1, type="decision"), False),
        (stored("k1", "Nobody closes the file of the basket", 1), False),
        (stored("k1", "The basket reads the price twice", 1, pinned=True), False),
    ],
)
def test_a_later_note_that_says_the_same_anew_takes_its_place(
    older: StoredObservation, replaced: bool
) -> None:
    newer = stored("k2", "The basket reads the price once", 2)
    found = {each.observation.key: each for each in supersede_notes([newer, older])}
    assert found["k1"].superseded_by == ("k2" if replaced else None)
    assert found["k2"].superseded_by is None
