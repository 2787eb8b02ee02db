"""Turns and commits by their words: which are found, in which order, not with which score."""

from __future__ import annotations

import pytest

from tests.store.contract.build import NOW, SHOP, Build, annotation, checkpoint, part
from whyfor.model.query import Atom, Filters, Query
from whyfor.store.protocol import Store


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
def test_turns_with_all_words_are_found(store: Store) -> None:
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
def test_any_word_will_do_if_asked_and_rare_words_cover_more(store: Store) -> None:
    query = words("north", "paint")
    assert store.search.match(query, Filters(), 9) == []
    loose = store.search.match(query, Filters(), 9, any_clause=True)
    assert len(loose) == 2
    share = store.search.coverage(words("paint", "the"), (), loose)
    by_turn = {match.session: share[match.session, match.first_seq] for match in loose}
    wall = store.sessions.find("wall").id
    assert by_turn[wall] == 1.0
    assert all(0 < value < 1 for session, value in by_turn.items() if session != wall)


def test_places_are_unranked_and_bounded(store: Store, project: int) -> None:
    found = store.search.places(words("the"), Filters(), 9)
    assert {(one.agent, one.turn, one.project) for one in found} == {
        ("claude", 1, project),
        ("claude", 2, project),
        ("codex", 1, None),
    }
    assert len(store.search.places(words("the"), Filters(), 2)) == 2


@pytest.mark.usefixtures("project")
def test_words_of_the_index_are_found_by_how_they_begin(store: Store) -> None:
    assert store.search.words_like("hi", 9) == ["hinge"]
    assert store.search.words_like("zz", 9) == []


def test_commits_are_found_by_subject_and_annotation(
    store: Store, build: Build, project: int
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
