"""What linking asks and keeps."""

from __future__ import annotations

from tests.store.contract.build import NOW, SHOP, Build
from whyfor.model.events import Usage
from whyfor.model.signals import Signal
from whyfor.store.protocol import Store


def test_sessions_with_something_nobody_has_looked_at(store: Store, build: Build) -> None:
    project = build.project()
    number = build.session("a", build.event("user.prompt", "go"), facts={"cwd": "/shop"})
    build.session("nowhere", build.event("user.prompt", "go"))
    assert store.links.grown() == [(number, project)]
    assert store.links.lengths(project) == [(number, 1)]
    with store.transaction():
        store.links.save_looked(project, [(number, 1)])
    assert store.links.grown() == []
    build.session("a", build.event("user.prompt", "on"))
    assert store.links.grown() == [(number, project)]


def test_projects_that_gits_hooks_told_of(store: Store, build: Build) -> None:
    project = build.project(SHOP, "/shop")
    build.signals(Signal(NOW, "git", "post-commit", repository="/shop", sha="c1"))
    build.signals(Signal(NOW, "git", "post-commit", repository="/unknown", sha="c2"))
    assert store.links.hooked_projects(0) == {project}
    assert store.links.hooked_projects(store.signals.newest()) == set()


def test_candidates_are_of_the_project_or_named_with_their_parents(
    store: Store, build: Build
) -> None:
    project = build.project()
    own = build.session("own", build.event("user.prompt", "go", at=NOW), facts={"cwd": "/shop"})
    parent = build.session("parent", build.event("user.prompt", "go"))
    child = build.session("child", build.event("user.prompt", "go"), parent="parent")
    build.session("stranger", build.event("user.prompt", "go"))
    with store.transaction():
        store.links.save_looked(project, [(own, 1)])
    found = {row.id: row.linked for row in store.links.candidates(project, [child])}
    assert found == {own: 1, parent: -1, child: -1}
    named = store.links.candidate("claude", "own")
    assert named is not None
    assert (named.id, named.project_id, named.started_at, named.linked) == (own, project, NOW, -1)
    assert store.links.candidate("codex", "own") is None


def test_activity_and_tips_are_kept_until_replaced(store: Store, build: Build) -> None:
    number = build.session("a", build.event("user.prompt", "go"))
    assert store.links.activity(number) is None
    assert store.links.tips(1) is None
    for body, tips in ((b"one", ["c1"]), (b"three", [])):
        with store.transaction():
            store.links.save_activity([(number, 1, body)])
            store.links.save_tips(1, tips)
        assert store.links.activity(number) == (1, body)
        assert store.links.tips(1) == tips
    assert store.links.activity(number, 4) is None
    assert store.links.activity(number, 5) == (1, b"three")


def test_a_fork_is_known_by_its_word_or_by_what_it_did_not_pay_for(
    store: Store, build: Build
) -> None:
    paid = [Usage(7, NOW, "m", output=1)]
    origin = build.session("origin", build.event("user.prompt", "go", at=NOW), more=paid)
    says = build.session("says", build.event("user.prompt", "go"), facts={"forked_from": "origin"})
    silent = build.session("silent", build.event("user.prompt", "go", at=NOW + 9), more=paid)
    assert store.links.origins(says) == [origin]
    assert store.links.origins(silent) == [origin]
    assert store.links.origins(origin) == []
