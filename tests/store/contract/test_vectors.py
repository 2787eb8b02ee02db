"""Vectors of sessions."""

from __future__ import annotations

from tests.store.contract.build import NOW, Build
from tests.store.contract.test_memory import remember
from whyfor.model.memory import WaitingSession
from whyfor.model.query import Filters
from whyfor.model.vectors import SessionVectors, TurnMark, VectorBits, VectorCounts
from whyfor.store.protocol import Store

MARKS = (TurnMark(1, 1, b"one"), TurnMark(2, 5, b"two"))


def vectors(model: str = "m", fill: bytes = b"\x01") -> SessionVectors:
    return SessionVectors(model, MARKS, fill * 2, fill * 16)


def ready(store: Store, build: Build, name: str = "a") -> WaitingSession:
    """A session that something is remembered of."""
    number = build.session(name, build.event("user.prompt", "Fix it"))
    remember(store, number)
    return WaitingSession(number, "claude", name, 1, 1)


def save(store: Store, session: WaitingSession, made: SessionVectors) -> bool:
    with store.transaction():
        return store.vectors.save(session, made)


def test_a_session_waits_for_vectors_of_each_model(store: Store, build: Build) -> None:
    session = ready(store, build)
    build.session("sub", build.event("user.prompt", "Do it"), parent="a")
    assert store.vectors.waiting("m") == [session]
    assert not store.vectors.exist("m")
    assert save(store, session, vectors())
    assert store.vectors.waiting("m") == []
    assert store.vectors.exist("m")
    assert store.vectors.waiting("other") == [session]
    assert store.vectors.load("m", [session.number]) == {session.number: vectors()}
    assert store.vectors.load("other", [session.number]) == {}
    assert store.vectors.bits("m", Filters()) == [VectorBits(session.number, b"\x01\x01")]
    assert store.vectors.bits("other", Filters()) == []
    counts = store.vectors.count("m")
    assert (counts.sessions, counts.vectors, counts.waiting) == (1, 2, 0)
    assert counts.bytes > len(vectors().codes)
    assert save(store, session, vectors("other", b"\x02"))  # only the last ones are kept
    assert store.vectors.load("m", [session.number]) == {}
    assert store.vectors.count("m").waiting == 1


def test_newer_words_make_vectors_old_but_not_useless(store: Store, build: Build) -> None:
    session = ready(store, build)
    save(store, session, vectors())
    build.session("a", build.event("assistant.message", "Done"))
    assert not save(store, session, vectors(fill=b"\x03"))  # made of what was there before
    remember(store, session.number)
    [waiting] = store.vectors.waiting("m")
    assert (waiting.number, waiting.last_seq) == (session.number, 2)
    assert store.vectors.load("m", [session.number]) == {session.number: vectors()}
    assert save(store, waiting, vectors(fill=b"\x04"))
    assert store.vectors.waiting("m") == []


def test_the_newest_sessions_come_first_and_filters_hold(store: Store, build: Build) -> None:
    old = ready(store, build, "a")
    number = build.session("b", build.event("user.prompt", "More", at=NOW + 10**9), agent="codex")
    last = WaitingSession(number, "codex", "b", 1, 1)
    remember(store, number)
    assert [each.number for each in store.vectors.waiting("m")] == [number, old.number]
    assert [each.number for each in store.vectors.waiting("m", 1)] == [number]
    for session in (old, last):
        assert save(store, session, vectors())
    found = store.vectors.bits("m", Filters(agent="codex"))
    assert [each.session for each in found] == [number]
    assert store.vectors.bits("m", Filters(fields=("prompts",))) == []
    assert store.vectors.bits("m", Filters(committed=True)) == []


def test_what_is_deleted_has_no_vectors(store: Store, build: Build) -> None:
    first, second = ready(store, build, "a"), ready(store, build, "b")
    save(store, first, vectors())
    save(store, second, vectors())
    with store.transaction():
        store.memory.delete(first.number)
    assert [each.session for each in store.vectors.bits("m", Filters())] == [second.number]
    with store.transaction():
        store.vectors.clear()
    assert store.vectors.count("m") == VectorCounts(waiting=1)


def test_rare_words_tell_more_than_common_ones(store: Store, build: Build) -> None:
    for name in "abcdefgh":
        build.session(name, build.event("user.prompt", f"The harbour gates {name * 5}"))
    found = store.search.rarity(["harbour", "ccccc", "gate", "unknown"])
    assert found["unknown"] > found["ccccc"] > found["harbour"] == found["gate"] > 0
