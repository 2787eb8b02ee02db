"""What a person says of a commit: it is shown, and can be taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.story.links.workshop import Agent, Cli, Clock, Repo, Workshop, body, linked
from whyfor import config
from whyfor.service.commit import commit_page
from whyfor.service.show import session_view


@pytest.fixture
def shop(tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    repo = Repo.made(tmp_path / "code" / "shop", Clock())
    monkeypatch.chdir(repo.path)
    return Workshop(home, repo, cli, hooked=False)


def cart(shop: Workshop) -> tuple[Agent, str]:
    agent = Agent("s1", shop.repo)
    agent.prompt("Add a cart")
    agent.write("cart.py", body("cart"))
    made = agent.commit("Add a cart")
    shop.ingest(agent)
    return agent, made


# -- unlink --------------------------------------------------------------------------------------


def test_an_unlinked_session_is_named_with_the_way_back(shop: Workshop) -> None:
    agent, made = cart(shop)
    done = shop.cli("unlink", made)
    assert f"whyfor unlink --undo {made}" in done.out
    told = shop.show(made)
    assert told["checkpoint"] is None
    assert told["reason"] == "unlinked by a person"
    assert [one["session_id"] for one in told["unlinked"]] == [agent.session_id]
    shown = shop.cli("show", made).out
    assert "No story: unlinked by a person." in shown
    assert f"whyfor unlink --undo {made[:10]}" in shown
    assert "unlinked by a person" in shop.cli("log").out


def test_an_unlinking_is_undone_and_the_evidence_is_what_it_was(shop: Workshop) -> None:
    agent, made = cart(shop)
    before = shop.show(made)
    assert shop.cli("unlink", made).code == 0
    undone = shop.cli("unlink", "--undo", made, "--json")
    assert undone.json["restored"] == [f"claude:{agent.session_id}"]
    assert shop.show(made) == before
    assert linked(before) == {agent.session_id: "output"}
    assert shop.cli("rebuild").code == 0
    assert shop.show(made) == before
    again = shop.cli("unlink", "--undo", made)
    assert again.code != 0
    assert "no session was unlinked" in again.err


def test_one_of_two_sessions_unlinked_is_named_beside_the_other(shop: Workshop) -> None:
    one, two = Agent("s1", shop.repo), Agent("s2", shop.repo)
    for agent, name in ((one, "cart"), (two, "till")):
        agent.prompt(f"Add a {name}")
        agent.write(f"{name}.py", body(name))
    made = shop.repo.commit("Cart and till")
    shop.ingest(one, two)
    assert shop.cli("unlink", made, one.session_id).code == 0
    told = shop.show(made)
    assert linked(told) == {two.session_id: "content"}
    assert [gone["session_id"] for gone in told["unlinked"]] == [one.session_id]
    assert "--undo" in shop.cli("show", made).out
    assert "--undo" in shop.cli("unlink", made, one.session_id).err
    assert shop.cli("unlink", "--undo", made, one.session_id).code == 0
    assert set(linked(shop.show(made))) == {one.session_id, two.session_id}


def test_a_session_says_which_commits_it_was_taken_off(shop: Workshop) -> None:
    agent, made = cart(shop)
    settings = config.load()
    assert session_view(settings, "claude", agent.session_id).unlinked == []
    assert shop.cli("unlink", made).code == 0
    assert session_view(settings, "claude", agent.session_id).unlinked == [made]
    assert commit_page(settings, made).told.reason == "unlinked by a person"


# -- note ----------------------------------------------------------------------------------------


def test_a_note_on_a_persons_commit_is_shown(shop: Workshop) -> None:
    made = shop.repo.commit("By hand", {"hand.py": body("hand")})
    agent, _ = cart(shop)
    assert agent.session_id not in linked(shop.show(made))
    noted = ("--title", "Wash the floor", "--intent", "It was dirty", "--tag", "CHORE")
    assert shop.cli("note", made, *noted).code == 0
    shown = shop.cli("show", made).out
    assert "Wash the floor" in shown
    assert "It was dirty" in shown
    assert "No story" in shown
    note = shop.show(made)["note"]
    assert (note["title"], note["intent"], note["tag"], note["by"]) == (
        "Wash the floor", "It was dirty", "CHORE", "person",
    )  # fmt: skip
    assert "Wash the floor" in shop.cli("log").out
    assert "It was dirty" in shop.cli("export", made).out
    page = commit_page(config.load(), made)
    assert page.told.annotation is not None
    assert page.told.annotation.title == "Wash the floor"


def test_a_note_on_a_linked_commit_is_told_once(shop: Workshop) -> None:
    _, made = cart(shop)
    assert shop.show(made)["note"] is None, "what is derived is no note"
    assert shop.cli("note", made, "--title", "A cart at last").code == 0
    told = shop.show(made)
    assert told["note"]["title"] == told["checkpoint"]["annotation"]["title"] == "A cart at last"
    assert shop.cli("show", made).out.count("A cart at last") == 1
