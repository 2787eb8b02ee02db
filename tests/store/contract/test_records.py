"""Sources, segments and the writer: what a machine and a server have alike."""

from __future__ import annotations

import pytest

from tests.store.contract.build import NOW, SHOP, Build
from whyfor.model.findings import Bucket
from whyfor.model.sources import HiddenState, StoredSegment
from whyfor.store.protocol import SharedStore


def test_a_source_comes_back_without_its_state_until_that_is_asked_for(
    store: SharedStore, build: Build
) -> None:
    source = build.source("/a.jsonl", "a", position=5, size=9)
    source.state = {"seen": 1}
    writer = store.records.writer()
    with store.transaction():
        writer.save_source(source)
    [(key, again)] = store.records.writer().sources().items()
    assert (key, again.position, again.state) == (("claude", "/a.jsonl"), 5, {})
    assert writer.source("claude", "/b.jsonl") is None
    writer.load_state(again)
    assert again == source


def test_segments_are_told_by_session_source_and_age(store: SharedStore, build: Build) -> None:
    build.session("a", build.event("user.prompt", "go"))
    source = build.source("/a.jsonl", "a", generation=1)
    build.segment(source, 0, 4, "old")
    build.segment(source, 0, 10, "one", generation=1, gaps=[(2, 3)])
    build.segment(source, 10, 15, "two", generation=1)
    build.segment(source, 15, 17, "tail", generation=1, partial=True)
    one = StoredSegment(1, 0, 10, "one", [(2, 3)])
    two, tail = StoredSegment(1, 10, 15, "two"), StoredSegment(1, 15, 17, "tail")
    session = store.sessions.find("a")
    assert store.records.segments(session) == [("/a.jsonl", each) for each in (one, two, tail)]
    assert [each.path for each in store.records.sources_of(session)] == ["/a.jsonl"]
    assert store.records.pieces(source) == [one, two, tail]
    assert one.kept == 7
    writer = store.records.writer()
    assert writer.stored_segments(source) == [one, two]
    assert writer.newest_segments(source, 2) == [two, one]
    assert writer.gaps(source) == [(2, 3)]
    source.position = 15
    assert writer.unfinished_segment(source) == "tail"
    with store.transaction():
        writer.move_segment(source, 1, 10, "moved")
    assert sorted(store.records.digests()) == [
        (digest, "/a.jsonl") for digest in ("moved", "old", "one", "tail")
    ]


def test_what_must_not_be_kept_is_remembered_of_each_source(
    store: SharedStore, build: Build
) -> None:
    source = build.source("/a.jsonl", "a")
    with store.transaction():
        store.records.writer().hide(source, {"calls": ["c1"]})
    assert store.records.writer().hiding() == [
        HiddenState(source.id, 0, "claude", "a", {"calls": ["c1"]})
    ]


def test_what_an_attempt_wrote_is_taken_back_and_the_rest_stays(
    store: SharedStore, build: Build
) -> None:
    writer = store.records.writer()
    good, bad = Bucket("good"), Bucket("bad")
    good.events.append(build.event("user.prompt", "go"))
    bad.events.append(build.event("user.prompt", "no"))
    with store.transaction():
        writer.apply("claude", good, NOW, mutable=False)
        with pytest.raises(ZeroDivisionError), writer.attempt():
            writer.apply("claude", bad, NOW, mutable=False)
            raise ZeroDivisionError
        writer.finish()
    assert set(store.sessions.numbers([("claude", "good"), ("claude", "bad")])) == {
        ("claude", "good")
    }


def test_a_folder_belongs_to_the_project_it_was_learnt_for(
    store: SharedStore, build: Build
) -> None:
    number = build.project(SHOP, "/shop")
    writer = store.records.writer()
    assert (writer.place("/shop"), writer.place("/elsewhere")) == (number, None)
    assert writer.project(number) == SHOP
    build.session("a", build.event("user.prompt", "go", key=77), facts={"cwd": "/old/shop/src"})
    assert writer.whereabouts("claude", "a") == "/old/shop/src"
    assert writer.homeless("claude", Bucket("b"))
    assert writer.has_event("claude", "a", 77)
    assert not writer.has_event("claude", "a", 78)
    with store.transaction():
        store.records.writer().adopt("/old/shop", SHOP)
    assert store.sessions.find("a").project == SHOP.identity
