"""What is remembered of sessions."""

from __future__ import annotations

import pytest

from tests.store.contract.build import NOW, SHOP, Build
from whyfor.model.errors import Ambiguous, NotFound
from whyfor.model.events import Touch
from whyfor.model.memory import (
    CommandCount,
    MemoryFilter,
    Observation,
    Quote,
    SessionMemory,
    SessionSummary,
    StoredObservation,
    TouchedFile,
    WaitingSession,
)
from whyfor.model.query import Filters
from whyfor.store.protocol import Store

SUMMARY = SessionSummary(request=(Quote(1, 0, 6, "Fix it"),), investigated=("/shop/a.py",))


def note(key: str, at: int = NOW, **more: object) -> Observation:
    given = {"type": "discovery", "state": "stated", "title": key, "turn": 1, **more}
    return Observation(key=key, at=at, **given)  # type: ignore[arg-type]


def remember(store: Store, session: int, *notes: Observation, version: int = 1) -> None:
    memory = SessionMemory(SUMMARY, notes, (CommandCount("pytest", "pytest -q", 4, 2, 1, NOW),))
    last = store.sessions.last_seqs([session])[session]
    with store.transaction():
        store.memory.save(WaitingSession(session, "claude", "a", 1, last), memory, version)


def keys(found: list[StoredObservation]) -> list[str]:
    return [each.observation.key for each in found]


def test_a_session_waits_until_its_memory_is_as_new_as_it_is(store: Store, build: Build) -> None:
    session = build.session("a", build.event("user.prompt", "Fix it"))
    assert store.memory.waiting(1) == [WaitingSession(session, "claude", "a", 1, 1)]
    remember(store, session)
    assert store.memory.waiting(1) == []
    assert [each.number for each in store.memory.waiting(2)] == [session]
    build.session("a", build.event("assistant.message", "Done"))
    assert store.memory.waiting(1) == [WaitingSession(session, "claude", "a", 1, 2)]


def test_a_memory_takes_the_place_of_the_one_before(store: Store, build: Build) -> None:
    session = build.session("a", build.event("user.prompt", "Fix it"))
    remember(store, session, note("a1", files_written=("/shop/a.py",)), note("a2"))
    remember(store, session, note("a2"), note("a3", NOW + 1))
    assert keys(store.memory.observations(MemoryFilter(), None)) == ["a3", "a2"]
    assert store.memory.observations(MemoryFilter(file="/shop/a.py"), None) == []
    assert store.memory.summary(session) == SUMMARY


def test_notes_are_found_by_type_state_file_and_session(store: Store, build: Build) -> None:
    shop = build.project(SHOP)
    session = build.session(
        "a", build.event("user.prompt", "x"), facts={"cwd": "/shop", "branch": "main"}
    )
    other = build.session("b", build.event("user.prompt", "y"), agent="codex")
    rule = note("a1", NOW + 2, type="rule", files_read=("/shop/lib/a%b.py",))
    guess = note("a2", NOW + 1, state="hypothesis")
    remember(store, session, rule, guess)
    remember(store, other, note("b1"))

    def found(**wanted: object) -> list[str]:
        return keys(store.memory.observations(MemoryFilter(**wanted), None))  # type: ignore[arg-type]

    assert found() == ["a1", "a2", "b1"]
    assert found(types=("rule", "decision")) == ["a1"]
    assert found(states=("hypothesis",)) == ["a2"]
    assert found(file="lib/a%b.py") == ["a1"]
    assert found(file="b/a%b.py") == []
    assert found(file="ib/a%b.py") == []
    assert found(sessions=Filters(agent="codex")) == ["b1"]
    assert found(sessions=Filters(since=NOW + 1)) == ["a1", "a2"]
    assert found(sessions=Filters(projects=(shop,))) == ["a1", "a2"]
    assert keys(store.memory.observations(MemoryFilter(), 1)) == ["a1"]
    assert store.memory.observation("a1") == StoredObservation(
        rule, "claude", "a", None, SHOP.identity, "main"
    )


def test_a_note_is_found_by_the_beginning_of_its_key(store: Store, build: Build) -> None:
    session = build.session("a", build.event("user.prompt", "x"))
    remember(store, session, note("abc1"), note("abd2"))
    assert store.memory.observation("abd").observation.key == "abd2"
    with pytest.raises(Ambiguous):
        store.memory.observation("ab")
    for missing in ("x", "", "abc12"):
        with pytest.raises(NotFound):
            store.memory.observation(missing)


def test_commands_are_counted_over_the_sessions_of_a_project(store: Store, build: Build) -> None:
    shop = build.project(SHOP)
    for name in ("a", "b"):
        prompt = build.event("user.prompt", "x")
        remember(store, build.session(name, prompt, facts={"cwd": "/shop"}))
    assert store.memory.commands([shop]) == [CommandCount("pytest", "pytest -q", 8, 4, 2, NOW)]
    assert store.memory.commands([]) == []


def test_files_are_those_that_a_projects_sessions_used_last(store: Store, build: Build) -> None:
    shop = build.project(SHOP)
    for name, at in (("a", NOW), ("b", NOW + 5_000)):
        read = build.event("tool.call", name="Read", at=at)
        more = [
            Touch(read.key, "/shop/both.py", "read"),
            Touch(read.key, f"/shop/{name}.py", "write"),
        ]
        build.session(name, read, facts={"cwd": "/shop"}, more=more)
    assert store.memory.files([shop], 10) == [
        TouchedFile("/shop/both.py", NOW + 5_000, 2, False),
        TouchedFile("/shop/b.py", NOW + 5_000, 1, True),
        TouchedFile("/shop/a.py", NOW, 1, True),
    ]
    assert len(store.memory.files([shop], 1)) == 1


def test_what_is_forgotten_is_not_remembered(store: Store, build: Build) -> None:
    session = build.session("a", build.event("user.prompt", "x"))
    remember(store, session, note("a1", files_read=("/shop/a.py",)))
    with store.transaction():
        store.forget.empty_session(session)
    assert store.memory.observations(MemoryFilter(), None) == []
    assert store.memory.observations(MemoryFilter(file="/shop/a.py"), None) == []
    assert store.memory.summary(session) is None
    assert [each.number for each in store.memory.waiting(1)] == [session]
