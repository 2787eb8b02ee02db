"""Commits become notes, by the product's own links, and follow them when they change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.story.links.conftest import hooked, plain, repo, shop
from tests.story.links.workshop import Agent, Repo, Workshop, body
from whyfor.model.checkpoints import Annotation, Checkpoint
from whyfor.recall.commit_notes import commit_type

__all__ = ["hooked", "plain", "repo", "shop"]


def notes(shop: Workshop, *options: str) -> list[dict[str, Any]]:
    shown = shop.cli("memory", "--json", *options)
    assert shown.code == 0, shown.err
    found: list[dict[str, Any]] = json.loads(shown.out)
    return found


def worked(repo: Repo) -> tuple[Agent, str]:
    agent = Agent("worker", repo)
    agent.prompt("Please add plums to the shop as soon as you can.")
    agent.write("plums.py", body("plums"))
    sha = agent.commit("Add plums")
    agent.say("Plums are slow to load because plums.py reads the disk twice.")
    return agent, sha


def test_a_linked_commit_is_a_verified_note_with_its_request(shop: Workshop, repo: Repo) -> None:
    agent, sha = worked(repo)
    shop.ingest(agent)
    (note,) = notes(shop, "--type", "feature")
    assert (note["title"], note["state"]) == ("Add plums", "verified")
    assert note["narrative"] == "Please add plums to the shop as soon as you can."
    assert note["files_written"] == ["plums.py"]
    assert note["facts"][0] == f"commit {sha[:10]}"
    assert note["commit"] == sha
    assert note["session_id"] == agent.session_id


def test_a_note_follows_a_commit_that_is_amended_or_unlinked(shop: Workshop, repo: Repo) -> None:
    agent, sha = worked(repo)
    shop.ingest(agent)
    agent.run("git commit -q --amend -m 'Fix the plums'")
    shop.ingest(agent)
    (note,) = [each for each in notes(shop) if each["commit"] and each["type"] != "discovery"]
    assert (note["title"], note["type"]) == ("Fix the plums", "bugfix")
    assert note["commit"] != sha
    assert shop.cli("unlink", note["commit"], agent.session_id).code == 0
    shop.ingest(agent)
    assert [each for each in notes(shop) if each["title"] == "Fix the plums"] == []


def test_a_rebuild_gives_the_same_notes_of_commits(shop: Workshop, repo: Repo) -> None:
    agent, _ = worked(repo)
    shop.ingest(agent)
    before = notes(shop)
    assert {note["type"] for note in before} >= {"feature", "discovery"}
    assert shop.cli("rebuild").code == 0
    assert notes(shop) == before


@pytest.mark.parametrize(
    ("subject", "kind"),
    [
        ("feat(shop): plums", "feature"),
        ("fix!: the price of plums", "bugfix"),
        ("chore: bump plums", "change"),
        ("Fix the price", "bugfix"),
        ("Add plums", "feature"),
        ("Rename plum to fruit", "refactor"),
        ("Plums", "change"),
        ("Prefix every name", "change"),
    ],
)
def test_the_type_of_a_commit(subject: str, kind: str) -> None:
    assert commit_type(checkpoint(subject)) == kind


def test_a_tag_that_somebody_wrote_counts_more_than_the_subject() -> None:
    note = Annotation("Plums", "", [], "", "BUGFIX", "person")
    assert commit_type(checkpoint("Add plums", note)) == "bugfix"


def checkpoint(subject: str, annotation: Annotation | None = None) -> Checkpoint:
    return Checkpoint(
        commit="c1",
        project="shop",
        subject=subject,
        author="",
        email="",
        authored_at=0,
        committed_at=0,
        parents=[],
        is_merge=False,
        patch_id=None,
        files=[],
        parts=[],
        evidence=None,
        confidence=None,
        group_root="",
        superseded_by=None,
        annotation=annotation,
    )
