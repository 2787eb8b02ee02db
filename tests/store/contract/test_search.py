"""Turns and commits by their words: which are found, in which order, not with which score."""

from __future__ import annotations

import pytest

from tests.store.contract.build import NOW, SHOP, Build, annotation, checkpoint, part
from whyfor.model.query import Atom, Filters, PassageQuery, Query, SessionOwner
from whyfor.store.protocol import SharedStore


def words(*texts: str) -> Query:
    return Query(clauses=tuple((Atom(text),) for text in texts))


@pytest.fixture
def project(build: Build) -> int:
    number = build.project()
    build.session(
        "gate",
        build.event("user.prompt", "mend the north gate", at=NOW),
        build.event("assistant.message", "the hinge is broken", at=NOW + 1),
        build.event("user.prompt", "oil the hinge", at=NOW + 2),
        build.event("tool.call", "oil", name="Bash", at=NOW + 3),
        facts={"cwd": "/shop", "branch": "x"},
    )
    build.session("wall", build.event("user.prompt", "paint the wall", at=NOW + 9), agent="codex")
    return number


@pytest.mark.usefixtures("project")
def test_turns_with_all_words_are_found(store: SharedStore) -> None:
    def found(query: Query, filters: Filters | None = None, *, newest: bool = False) -> list[int]:
        matches = store.search.match(query, filters or Filters(), 9, newest=newest)
        return [match.first_seq for match in matches]

    assert found(words("north", "hinge")) == [1]
    assert found(words("hinge"), newest=True) == [3, 1]
    assert found(words("NORTH")) == [1]
    assert found(words("nowhere")) == []
    assert found(words("hinge"), Filters(agent="codex")) == []
    assert found(words("hinge"), Filters(branch="x", since=NOW + 2)) == [3]
    assert found(words("hinge"), Filters(fields=("prompts",))) == [3]
    assert found(Query(clauses=((Atom("hin", prefix=True),),)), newest=True) == [3, 1]
    assert found(Query(clauses=words("the").clauses, without=(Atom("hinge"),))) == [1]
    assert found(Query(clauses=words("oil").clauses, tools=("Bash",))) == [3]


@pytest.mark.usefixtures("project")
def test_passages_have_any_form_of_all_words_or_of_any(store: SharedStore) -> None:
    def found(*texts: str, every: bool, **filters: object) -> set[tuple[str, int]]:
        wanted = PassageQuery(words(*texts).clauses, every=every, within=Query())
        matches = store.search.passages(wanted, Filters(**filters), 9)  # type: ignore[arg-type]
        numbers = store.sessions.by_number([match.session for match in matches])
        return {(numbers[match.session].session_id, match.turn) for match in matches}

    assert found("gates", "mending", every=True) == {("gate", 1)}
    assert found("gates", "painting", every=True) == set()
    assert found("gates", "painting", every=False) == {("gate", 1), ("wall", 1)}
    assert found("hinges", every=True) == {("gate", 1), ("gate", 2)}
    assert found("hinges", every=True, fields=("answers",)) == {("gate", 1)}
    assert found("hinges", every=True, fields=("thinking",)) == set()
    assert found("hinges", every=True, since=NOW + 2) == {("gate", 2)}


@pytest.mark.usefixtures("project")
def test_the_turn_of_a_passage_must_have_what_was_typed_exactly(store: SharedStore) -> None:
    def turns(within: Query) -> list[int]:
        wanted = PassageQuery(words("hinges").clauses, every=True, within=within)
        return sorted(match.turn for match in store.search.passages(wanted, Filters(), 9))

    assert turns(Query()) == [1, 2]
    assert turns(words("north")) == [1]
    assert turns(Query(without=(Atom("north"),))) == [2]
    assert turns(Query(tools=("Bash",))) == [2]


def test_copies_and_subagents_are_counted_with_the_first_main_session(
    store: SharedStore, build: Build
) -> None:
    first = build.session("first", build.event("user.prompt", "mend the gate", key=1))
    copied = build.event("user.prompt", "mend the gate", key=1)
    own = build.event("user.prompt", "and the wall", key=2)
    copy = build.session("copy", copied, own, facts={"forked_from": "first"})
    child = build.session("child", build.event("user.prompt", "look", key=3), parent="copy")
    deep = build.session("deep", build.event("user.prompt", "look on", key=4), parent="child")
    lost = build.session("lost", build.event("user.prompt", "look", key=5), parent="gone")
    owners = store.search.owners([first, copy, child, deep, lost, 99])
    assert owners == {
        first: SessionOwner(first, "claude:first", 1),
        copy: SessionOwner(copy, "claude:first", 2),
        child: SessionOwner(copy, "claude:first", 1),
        deep: SessionOwner(copy, "claude:first", 1),
        lost: SessionOwner(lost, "claude:lost", 1),
    }


def test_places_are_unranked_and_bounded(store: SharedStore, project: int) -> None:
    nowhere = PassageQuery(words("nowhere").clauses, every=True, within=Query())
    found = store.search.places(words("the"), nowhere, Filters(), 9)
    assert {(one.agent, one.turn, one.project) for one in found} == {
        ("claude", 1, project),
        ("claude", 2, project),
        ("codex", 1, None),
    }
    assert len(store.search.places(words("the"), nowhere, Filters(), 2)) == 2
    said = PassageQuery(words("walls").clauses, every=True, within=Query())
    [place] = store.search.places(words("nowhere"), said, Filters(), 2)
    assert place.agent == "codex"


@pytest.mark.usefixtures("project")
def test_words_of_the_index_are_found_by_how_they_begin(store: SharedStore) -> None:
    assert store.search.words_like("hi", 9) == ["hinge"]
    assert store.search.words_like("zz", 9) == []


def test_commits_are_found_by_subject_and_annotation(
    store: SharedStore, build: Build, project: int
) -> None:
    told = checkpoint(
        "c1", part("gate", 1, 2), subject="Mend gate", annotation=annotation("100% oiled")
    )
    build.checkpoint(project, told)
    build.checkpoint(project, checkpoint("c2", part("gate", 3, 4), superseded_by="c1"))

    def found(*given: str, **filters: object) -> list[str]:
        rows = store.search.commits(list(given), Filters(**filters), 9)  # type: ignore[arg-type]
        return [row.sha for row in rows]

    assert found("gate", "100%") == ["c1"]
    assert found("10_%") == []
    assert found("gate", agents=("codex",)) == []
    assert found("gate", agents=("claude",), branch="x") == ["c1"]
    assert found("gate", projects=()) == []
    assert found("gate", since=NOW + 1) == []
    [row] = store.search.commits(["gate"], Filters(), 9)
    assert (row.project, row.note) == (SHOP.identity, told.annotation)
    assert store.search.agents_of(["c1", "c9"]) == {"c1": ["claude"]}
