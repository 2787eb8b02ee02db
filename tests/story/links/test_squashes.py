"""A squash tells what its sources tell, and takes nothing from them: with real git."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.story.links.workshop import Agent, Repo, Workshop, body, linked

NAMES = ("cart", "till", "door")


def branch(shop: Workshop, *, name: str = "feat") -> tuple[Agent, list[str]]:
    """One request per commit, on a branch that stays."""
    shop.repo.git("checkout", "-q", "-b", name)
    agent = Agent("s1", shop.repo)
    made = []
    for thing in NAMES:
        agent.prompt(f"Add a {thing}")
        agent.write(f"{thing}.py", body(thing))
        made.append(agent.commit(f"Add a {thing}"))
        agent.say(f"The {thing} is there.")
    shop.repo.git("checkout", "-q", "main")
    return agent, made


def said(shop: Workshop, commit: str) -> list[str]:
    return [line["text"] for line in shop.show(commit)["related"]]


def words(*things: str) -> list[str]:
    return [text for thing in things for text in (f"Add a {thing}", f"The {thing} is there.")]


def checkpoint(shop: Workshop, commit: str) -> dict[str, Any]:
    found: dict[str, Any] = shop.show(commit)["checkpoint"]
    return found


@pytest.mark.parametrize("read_between", [False, True], ids=["at-once", "read-between"])
@pytest.mark.parametrize("message", [None, "Cart, till and door"], ids=["listed", "reworded"])
def test_merged_as_a_squash_while_the_branch_stays(
    shop: Workshop, read_between: bool, message: str | None
) -> None:
    agent, made = branch(shop)
    if read_between:
        shop.ingest(agent)
    shop.repo.git("merge", "-q", "--squash", "feat")
    shop.repo.git("commit", "-q", *(["-m", message] if message else ["--no-edit"]))
    squash = shop.repo.head
    shop.ingest(agent)
    assert said(shop, squash) == words(*NAMES)
    assert [said(shop, sha) for sha in made] == [words(thing) for thing in NAMES]
    assert checkpoint(shop, squash)["squashed_from"] == made
    assert [checkpoint(shop, sha)["squashed_from"] for sha in made] == [[], [], []]
    assert shop.log()[squash]["checkpoint"]["squashed_from"] == made
    assert linked(shop.show(squash)) == linked(shop.show(made[0]))


@pytest.mark.parametrize("read_between", [False, True], ids=["at-once", "read-between"])
def test_squashed_by_a_forge_and_fetched_while_the_branch_stays(
    shop: Workshop, tmp_path: Path, read_between: bool
) -> None:
    """The forge makes the commit elsewhere, with its own committer."""
    agent, made = branch(shop)
    shop.repo.git("clone", "-q", "--bare", str(shop.repo.path), str(tmp_path / "hub.git"))
    shop.repo.git("remote", "add", "origin", str(tmp_path / "hub.git"))
    shop.repo.git("clone", "-q", str(tmp_path / "hub.git"), str(tmp_path / "forge"))
    if read_between:
        shop.ingest(agent)
    forge = Repo(tmp_path / "forge", shop.repo.clock)
    forge.clock.tick(3600)
    forge.git("merge", "-q", "--squash", "origin/feat")
    forge.git(
        "commit", "-q", "-m", "Cart, till and door (#7)",
        env={"GIT_COMMITTER_NAME": "GitHub", "GIT_COMMITTER_EMAIL": "noreply@github.com"},
    )  # fmt: skip
    forge.git("push", "-q", "origin", "main")
    shop.repo.git("pull", "-q", "origin", "main")
    shop.ingest(agent)
    assert said(shop, shop.repo.head) == words(*NAMES)
    assert [said(shop, sha) for sha in made] == [words(thing) for thing in NAMES]
    assert checkpoint(shop, shop.repo.head)["squashed_from"] == made


@pytest.mark.parametrize("how", ["squash", "fixup"])
@pytest.mark.parametrize("read_between", [False, True], ids=["at-once", "read-between"])
def test_squashed_in_a_rebase(shop: Workshop, how: str, read_between: bool) -> None:
    agent, made = branch(shop)
    shop.repo.git("checkout", "-q", "feat")
    if read_between:
        shop.ingest(agent)
    edit = f"sed -i '2s/^pick/{how}/'"
    shop.repo.git("rebase", "-q", "-i", "main", env={"GIT_SEQUENCE_EDITOR": edit})
    squash, third = shop.repo.sha("HEAD~1"), shop.repo.head
    shop.ingest(agent)
    assert said(shop, squash) == words("cart", "till")
    assert said(shop, third) == words("door")
    assert [said(shop, sha) for sha in made] == [words(thing) for thing in NAMES]
    assert checkpoint(shop, squash)["squashed_from"] == made[:2]
    assert [checkpoint(shop, sha)["superseded_by"] for sha in made] == [squash, squash, third]


@pytest.mark.parametrize("read_between", [False, True], ids=["at-once", "read-between"])
def test_a_group_lists_the_squash_and_not_what_it_replaced(
    shop: Workshop, read_between: bool
) -> None:
    """One request, three commits; then the first two become one."""
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart, a till and a door")
    made = []
    for thing in NAMES:
        agent.write(f"{thing}.py", body(thing))
        made.append(agent.commit(f"Add a {thing}"))
    if read_between:
        shop.ingest(agent)
    edit = "sed -i '2s/^pick/squash/'"
    shop.repo.git("rebase", "-q", "-i", f"{made[0]}^", env={"GIT_SEQUENCE_EDITOR": edit})
    squash, third = shop.repo.sha("HEAD~1"), shop.repo.head
    shop.ingest(agent)
    assert shop.show(third)["group"] == shop.show(squash)["group"] == [squash, third]
    assert shop.show(made[0])["group"] == [made[0], squash, third]


def test_a_squash_with_lines_changed_again_on_the_branch(shop: Workshop) -> None:
    """Little is left of the first commit's lines; it is a source all the same."""
    shop.repo.git("checkout", "-q", "-b", "feat")
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    first = agent.commit("Add a cart")
    agent.prompt("Make it another")
    agent.write("cart.py", body("wagon"))
    second = agent.commit("Make it a wagon")
    shop.repo.git("checkout", "-q", "main")
    shop.repo.git("merge", "-q", "--squash", "feat")
    shop.repo.git("commit", "-q", "-m", "A wagon")
    shop.ingest(agent)
    assert said(shop, shop.repo.head) == ["Add a cart", "Make it another"]
    assert [said(shop, sha) for sha in (first, second)] == [["Add a cart"], ["Make it another"]]


def test_a_squash_of_several_sessions_and_what_one_of_them_did_elsewhere(shop: Workshop) -> None:
    """A commit on another branch, between those that were squashed, is not in its story."""
    agent, other = Agent("s1", shop.repo), Agent("s2", shop.repo)
    shop.repo.git("checkout", "-q", "-b", "feat")
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    first = agent.commit("Add a cart")
    shop.repo.git("checkout", "-q", "main")
    agent.prompt("Fix the bell")
    agent.write("bell.py", body("bell"))
    bell = agent.commit("Fix the bell")
    shop.repo.git("checkout", "-q", "feat")
    other.prompt("Add a till")
    other.write("till.py", body("till"))
    second = other.commit("Add a till")
    agent.prompt("Add a door")
    agent.write("door.py", body("door"))
    third = agent.commit("Add a door")
    shop.repo.git("checkout", "-q", "main")
    shop.repo.git("merge", "-q", "--squash", "feat")
    shop.repo.git("commit", "-q", "-m", "All of it")
    shop.ingest(agent, other)
    squash = shop.repo.head
    assert sorted(said(shop, squash)) == ["Add a cart", "Add a door", "Add a till"]
    assert said(shop, bell) == ["Fix the bell"]
    assert checkpoint(shop, squash)["squashed_from"] == [first, second, third]
    lines = [line["text"] for line in shop.show(squash)["conversation"]]
    assert not any("bell" in text for text in lines)


def test_a_squash_by_the_agent_itself_has_that_request_too(shop: Workshop) -> None:
    agent, made = branch(shop)
    agent.prompt("Squash it into main")
    agent.run("git merge -q --squash feat && git commit -m 'Cart, till and door'")
    agent.say("Done.")
    shop.ingest(agent)
    assert said(shop, shop.repo.head) == [*words(*NAMES), "Squash it into main", "Done."]
    assert [said(shop, sha) for sha in made] == [words(thing) for thing in NAMES]


def test_a_second_squash_of_a_growing_branch_has_only_what_is_new(shop: Workshop) -> None:
    """The first went into main, which the branch did not merge back."""
    agent, made = branch(shop)
    shop.repo.git("merge", "-q", "--squash", "feat")
    shop.repo.git("commit", "-q", "-m", "Cart, till and door")
    shop.repo.git("checkout", "-q", "feat")
    for thing in ("bell", "lamp"):
        agent.prompt(f"Add a {thing}")
        agent.write(f"{thing}.py", body(thing))
        made.append(agent.commit(f"Add a {thing}"))
        agent.say(f"The {thing} is there.")
    shop.repo.git("checkout", "-q", "main")
    shop.repo.git("merge", "-q", "--squash", "feat")
    shop.repo.git("commit", "-q", "-m", "Bell and lamp")
    shop.ingest(agent)
    assert said(shop, shop.repo.head) == words("bell", "lamp")
    assert checkpoint(shop, shop.repo.head)["squashed_from"] == made[3:]
    assert checkpoint(shop, shop.repo.sha("HEAD~1"))["squashed_from"] == made[:3]
