"""Projects, their places and aliases."""

from __future__ import annotations

from tests.store.contract.build import NOW, SHOP, Build, checkpoint, part
from whyfor.model.sessions import Project
from whyfor.store.journal import AliasEntry
from whyfor.store.protocol import SharedStore


def test_a_project_is_found_by_its_identity_and_its_places(
    store: SharedStore, build: Build
) -> None:
    number = build.project(SHOP, "/shop", "/clone")
    assert store.projects.known() == [(number, SHOP)]
    assert store.projects.find(SHOP.identity) == (number, SHOP)
    assert store.projects.find("nobody/knows") is None
    assert store.projects.places() == {"/shop": number, "/clone": number}


def test_a_folder_before_it_had_a_remote_may_be_the_same_project(
    store: SharedStore, build: Build
) -> None:
    before = Project("path:/shop", "path", "shop", path="/shop", root_commit="r00t")
    build.project(before)
    assert store.projects.former(SHOP) == [("path:/shop", "r00t")]
    assert store.projects.former(before) == []
    assert store.projects.former(Project("x", "remote", "x")) == []


def test_counts_are_of_main_sessions_and_of_commits_with_a_story(
    store: SharedStore, build: Build
) -> None:
    number = build.project()
    facts = {"cwd": "/shop"}
    build.session("a", build.event("user.prompt", "go", at=NOW), facts=facts)
    build.session("child", build.event("user.prompt", "go"), parent="a", facts=facts)
    build.checkpoint(number, checkpoint("c1", part("a", 1, 1)))
    build.checkpoint(number, checkpoint("c2"))
    assert store.projects.session_counts() == {number: 1}
    assert store.projects.story_counts() == {number: 1}
    assert store.projects.active() == {number: (1, NOW)}


def test_a_path_that_a_person_gave_to_a_project(store: SharedStore, build: Build) -> None:
    build.project()
    with store.transaction():
        store.projects.save_alias(AliasEntry("/old/shop", SHOP, NOW))
    assert store.projects.aliases() == {SHOP.identity: ["/old/shop"]}
    assert store.records.writer().adopted("/old/shop/src") == SHOP
    assert store.records.writer().adopted("/old/shopping") is None
