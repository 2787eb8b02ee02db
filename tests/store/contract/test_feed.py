"""What is new or otherwise since a moment."""

from __future__ import annotations

from tests.store.contract.build import NOW, SHOP, Build, checkpoint, part
from whyfor.model.events import EventRef
from whyfor.store.protocol import SharedStore


def test_lengths_are_of_sessions_that_have_events(store: SharedStore, build: Build) -> None:
    build.session("empty")
    number = build.session("a", build.event("user.prompt", "go"), build.event("error", "no"))
    assert store.feed.lengths() == {number: 2}


def test_an_event_that_changed_and_a_story_are_told_in_order(
    store: SharedStore, build: Build
) -> None:
    project = build.project()
    number = build.session("a", build.event("user.prompt", "go", key=1, at=NOW))
    floor, last = store.feed.ends()
    assert store.feed.after(last, 9) == []
    build.session("a", build.event("user.prompt", "go on", key=1, at=NOW))
    build.checkpoint(project, checkpoint("c1", part("a", 1, 1)))
    event, story = store.feed.after(last, 9)
    assert (event.event, event.commit) == (EventRef(number, 1), None)
    assert (story.event, story.commit, story.project) == (None, "c1", SHOP.identity)
    assert story.sessions == {number}
    assert last < event.number < story.number
    assert store.feed.ends() == (floor, story.number)
    assert store.feed.after(event.number, 9) == [story]
    assert store.feed.after(last, 1) == [event]
    assert store.feed.of_sessions() == {number: event.number}


def test_the_same_again_is_no_change(store: SharedStore, build: Build) -> None:
    for _ in range(2):
        build.session("a", build.event("user.prompt", "go", key=1, at=NOW))
    assert store.feed.after(0, 9) == []


def test_after_a_new_beginning_nothing_earlier_is_known(store: SharedStore, build: Build) -> None:
    project = build.project()
    build.session("a", build.event("user.prompt", "go"))
    build.checkpoint(project, checkpoint("c1", part("a", 1, 1)))
    before = store.feed.ends()[1]
    with store.transaction():
        store.feed.begin_anew()
        store.feed.prune()
    floor, last = store.feed.ends()
    assert before < floor <= last
    assert store.feed.after(0, 9) == []
