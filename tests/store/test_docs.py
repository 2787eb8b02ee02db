"""The search index: its documents depend on the events alone, not on when they were indexed."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from whyfor.model.events import SEQ_BITS, Event, Touch
from whyfor.model.findings import Bucket
from whyfor.model.titles import TITLE_AGENT
from whyfor.store.sql.search_index import (
    CALL,
    MAX_DOC,
    PART_BITS,
    PASSAGE,
    RESULT_HEAD,
    RESULT_TAIL,
)
from whyfor.store.sql.write import EventWriter
from whyfor.store.sqlite.connection import StoreConnection, connect, fetch, transaction

NOW = 1777629600000
Rows = list[tuple[Any, ...]]
COLUMN = {
    "user.prompt": "prompts",
    "assistant.message": "answers",
    "assistant.thinking": "thinking",
    "tool.call": "tools",
    "error": "tools",
    "tool.result": "results",
}


def indexed(*batches: list[Event]) -> StoreConnection:
    """A session written in batches, each indexed before the next."""
    db = connect(Path(":memory:"))
    writer = EventWriter(db)
    for events in batches:
        made = Bucket("s1")
        made.events += events
        made.touches += [
            Touch(e.key, f"/w/{e.text[:3]}.py", "write") for e in events if e.kind == "tool.result"
        ]
        with transaction(db):
            writer.apply("claude", made, NOW, mutable=False)
            writer.finish()
    return db


def documents(db: StoreConnection) -> Rows:
    """First and last seq, turn and time."""
    mask = (1 << SEQ_BITS) - 1
    return [(ident & mask, *rest) for ident, *rest in fetch(db, "SELECT * FROM docs ORDER BY id")]


def words(db: StoreConnection) -> Rows:
    """Every word with the document, the column and the place it stands at."""
    db.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary USING fts5vocab(main, words, instance)"
    )
    return fetch(db, "SELECT doc, col, offset, term FROM temp.vocabulary ORDER BY 1, 2, 3, 4")


def passages(db: StoreConnection) -> Rows:
    """Every stem with the passage (seq of its first event, part), the column and the place."""
    db.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.stems USING fts5vocab(main, passages, instance)"
    )
    rows = fetch(db, "SELECT doc, col, offset, term FROM temp.stems ORDER BY 1, 2, 3, 4")
    mask = (1 << SEQ_BITS) - 1
    parts = (1 << PART_BITS) - 1
    return [((doc >> PART_BITS) & mask, doc & parts, *rest) for doc, *rest in rows]


def event(key: int, kind: str, text: str, name: str | None = None) -> Event:
    return Event(kind, key, NOW + key, "user", text, name)


# Sizes around the bound of a document, so that long turns are cut at every kind of place.
SIZES = st.sampled_from(
    [0, 1, 40, PASSAGE // 2, PASSAGE + 1, MAX_DOC // 3, MAX_DOC - 1, MAX_DOC, MAX_DOC + 1]
)
EVENTS = st.lists(
    st.tuples(st.sampled_from([*COLUMN, "session.started"]), SIZES), min_size=1, max_size=14
)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(EVENTS, st.sets(st.integers(1, 13), max_size=6))
def test_a_session_indexed_piece_by_piece_has_the_documents_of_one_indexed_at_once(
    said: list[tuple[str, int]], cuts: set[int]
) -> None:
    events = [
        event(number, kind, (f"w{number} " * size)[:size], name=f"Tool{number % 2}")
        for number, (kind, size) in enumerate(said)
    ]
    edges = [0, *sorted(cut for cut in cuts if cut < len(events)), len(events)]
    whole = indexed(events)
    pieces = indexed(*(events[first:last] for first, last in pairwise(edges)))
    assert documents(pieces) == documents(whole)
    assert words(pieces) == words(whole)
    assert passages(pieces) == passages(whole)


def test_a_turn_is_one_document() -> None:
    kinds = [
        "session.started",
        "user.prompt",
        "assistant.message",
        "user.prompt",
        "tool.call",
        "tool.result",
    ]
    db = indexed([event(number, kind, "x") for number, kind in enumerate(kinds)])
    assert documents(db) == [(1, 1, 0, NOW), (2, 3, 1, NOW + 1), (4, 6, 2, NOW + 3)]


def test_a_long_turn_is_cut_where_its_document_is_full() -> None:
    half = "y" * (MAX_DOC // 2)
    db = indexed(
        [
            event(0, "user.prompt", "x"),
            *(event(number, "assistant.message", half) for number in range(1, 6)),
        ]
    )
    # A document ends with the event that fills it: one character and two halves, two halves, the
    # rest.
    assert [(first, last, turn) for first, last, turn, _ in documents(db)] == [
        (1, 3, 1),
        (4, 5, 1),
        (6, 6, 1),
    ]


def test_one_long_event_is_one_document() -> None:
    db = indexed([event(0, "user.prompt", "z" * 5 * MAX_DOC), event(1, "error", "tail")])
    assert [(first, last) for first, last, *_ in documents(db)] == [(1, 1), (2, 2)]


def test_what_was_said_stands_in_the_column_of_who_said_it() -> None:
    db = indexed(
        [event(number, kind, f"word{number}", name="Bash") for number, kind in enumerate(COLUMN)]
    )
    expected = {(f"word{number}", column) for number, column in enumerate(COLUMN.values())}
    files = {("w", "files"), ("wor", "files"), ("py", "files"), ("bash", "names")}
    assert {(term, column) for _, column, _, term in words(db)} == expected | files


def test_what_is_said_and_what_is_done_in_a_turn_are_passages_of_their_own() -> None:
    db = indexed(
        [
            event(0, "user.prompt", "Encrypting keys"),
            event(1, "tool.call", "openssl " + "x" * CALL + " beyond", name="Bash"),
            event(2, "tool.result", "printed"),
            event(3, "assistant.thinking", "thought"),
            event(4, "assistant.message", "Encrypted the key"),
            event(5, "user.prompt", "next"),
        ]
    )
    found = {(seq, column, term) for seq, _, column, _, term in passages(db) if term[:2] != "xx"}
    assert found == {
        (1, "prompts", "encrypt"),
        (1, "prompts", "kei"),
        (2, "calls", "openssl"),
        (1, "answers", "encrypt"),
        (1, "answers", "the"),
        (1, "answers", "kei"),
        (6, "prompts", "next"),
    }


def test_a_long_text_is_cut_into_passages_between_words() -> None:
    text = " ".join(f"word{number}" for number in range(600))
    db = indexed([event(0, "user.prompt", text), event(1, "assistant.message", "short")])
    found = passages(db)
    assert {term for _, _, column, _, term in found if column == "prompts"} == set(text.split())
    sizes = {part: 0 for _, part, *_ in found}
    for _, part, *_, term in found:
        sizes[part] += len(term) + 1
    assert list(sizes) == list(range(len(sizes))) and len(sizes) > 4
    assert max(sizes.values()) <= PASSAGE + 1
    huge = indexed([event(0, "user.prompt", text * 200)])
    assert {part for _, part, *_ in passages(huge)} <= set(range(1 << PART_BITS))


def test_of_a_long_result_head_and_tail_are_indexed() -> None:
    text = "first " + "x " * RESULT_HEAD + "middle " + "y " * RESULT_TAIL + "last"
    terms = {term for *_, term in words(indexed([event(0, "tool.result", text)]))}
    assert {"first", "last"} <= terms and "middle" not in terms
    short = "first " + "x" * (RESULT_HEAD - 10) + " middle " + "y" * (RESULT_TAIL - 20) + " last"
    assert "middle" in {term for *_, term in words(indexed([event(0, "tool.result", short)]))}


def test_only_the_last_document_is_made_again_when_a_session_grows() -> None:
    turns = [
        [event(10 * turn, "user.prompt", f"p{turn}"), event(10 * turn + 1, "error", "e")]
        for turn in range(3)
    ]
    db = indexed(*turns)
    changed: list[int] = []
    db.set_update_hook(
        lambda kind, base, table, row: changed.append(row) if table == "docs" else None
    )
    made = Bucket("s1")
    made.events.append(event(99, "assistant.message", "more"))
    writer = EventWriter(db)
    with transaction(db):
        writer.apply("claude", made, NOW, mutable=False)
        writer.finish()
    ident = fetch(db, "SELECT max(id) FROM docs")[0][0]
    assert set(changed) == {ident}


def test_a_title_is_a_document_that_a_new_title_replaces() -> None:
    db = indexed([event(0, "user.prompt", "prompt")])
    for title in ("Bug hunt", "Bug found"):
        made = Bucket("s1")
        made.title(TITLE_AGENT, title)
        writer = EventWriter(db)
        with transaction(db):
            writer.apply("claude", made, NOW, mutable=False)
            writer.finish()
    assert [(first, last) for first, last, *_ in documents(db)] == [(0, 0), (1, 1)]
    assert sorted(term for _, column, _, term in words(db) if column == "title") == ["bug", "found"]
