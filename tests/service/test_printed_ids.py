"""An id that is printed is one that can be typed: of sessions that begin alike, as much as tells
them apart."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.samples import sample
from tests.conftest import Result
from tests.story.links.workshop import Agent, Clock, Repo, Workshop, body
from whyfor.config import Settings
from whyfor.service.commit import commit_page

Cli = Callable[..., Result]
_ID = "aaaaaaaa-aaaa-4aaa-8aaa-00000000000"


@pytest.fixture
def shop(tmp_path: Path, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    repo = Repo.made(tmp_path / "code" / "shop", Clock())
    monkeypatch.chdir(repo.path)
    return Workshop(home, repo, cli, hooked=False)


@pytest.fixture
def agents(shop: Workshop) -> list[Agent]:
    """Two sessions with a commit each; their ids differ in the last digit."""
    found = []
    for number, name in enumerate(("cart", "till")):
        agent = Agent(name, shop.repo)
        agent.session_id = f"{_ID}{number}"
        agent.prompt(f"Add a {name}")
        agent.write(f"{name}.py", body(name))
        agent.commit(f"Add a {name}")
        found.append(agent)
    shop.ingest(*found)
    return found


def _takes(cli: Cli, ident: str) -> str:
    done = cli("show", ident, "--json")
    assert done.code == 0, done.err
    return str(done.json["session"]["session_id"])


def test_the_commit_page_names_sessions_by_ids_that_work(
    shop: Workshop, agents: list[Agent], cli: Cli, settings: Settings
) -> None:
    first, second = agents
    assert cli("link", "HEAD", first.session_id).code == 0
    page = commit_page(settings, shop.repo.head)
    named = [proof.code for proof in page.proofs if proof.evidence == "person"]
    assert [_takes(cli, ident) for ident in named] == [first.session_id]
    assert {_takes(cli, ident) for ident in page.ids.values()} == {
        first.session_id,
        second.session_id,
    }


def test_a_session_that_was_unlinked_is_told_by_an_id_that_works(
    shop: Workshop, agents: list[Agent], cli: Cli
) -> None:
    _, second = agents
    assert cli("unlink", "HEAD", second.session_id).code == 0
    told = re.search(r"unlinked +Claude Code (\S+),", cli("show", "HEAD").out)
    assert told
    assert _takes(cli, told[1]) == second.session_id


def test_restore_names_a_session_by_an_id_that_works(agents: list[Agent], cli: Cli) -> None:
    first, _ = agents
    done = cli("restore", "HEAD", "--session", first.session_id)
    told = re.search(r"session (\S+) has no part in", done.err)
    assert told
    assert _takes(cli, told[1]) == first.session_id


def test_a_word_that_all_ids_of_an_agent_begin_with_is_not_all_that_is_printed(
    home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    kimi = sample("kimi")
    assert kimi.session_id.startswith("session_")
    kimi.write(home)
    assert cli("ingest").code == 0
    monkeypatch.setenv("COLUMNS", "80")
    told = cli("sessions", "--all")
    printed = re.search(r"session_\w+", told.out)
    assert printed and len(printed[0]) > len("session_a")
    assert _takes(cli, printed[0]) == kimi.session_id
    assert max(len(line) for line in told.out.splitlines()) <= 80
