"""The write side: each thing once, in its place, however the records came in."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whyfor.model.events import Event, StoredEvent, Touch, Usage
from whyfor.model.findings import Bucket
from whyfor.model.query import Atom, Filters, Query
from whyfor.model.sessions import Session, Tokens
from whyfor.model.sources import Source, UnparsedRecord
from whyfor.model.titles import TITLE_AGENT, TITLE_PERSON
from whyfor.store.journal import SegmentEntry
from whyfor.store.sql.conversation import SqlConversation
from whyfor.store.sql.sessions import SqlSessions
from whyfor.store.sql.stats import SqlStats
from whyfor.store.sql.write import MAX_TEXT, EventWriter
from whyfor.store.sqlite.capture import SqliteCapture
from whyfor.store.sqlite.connection import StoreConnection, connect, fetch, transaction
from whyfor.store.sqlite.search import SqliteSearch

NOW = 1777629600000
ACTORS = {"user.prompt": "user", "tool.result": "tool"}


def event(kind: str, key: int, text: str = "", at: int | None = None, **more: Any) -> Event:
    return Event(
        kind,
        key,
        None if at is None else NOW + at,
        more.pop("actor", ACTORS.get(kind, "assistant")),
        text,
        **more,
    )


def bucket(*events: Event, session: str = "s1", parent: str | None = None) -> Bucket:
    made = Bucket(session, parent)
    made.events += events
    return made


def apply(
    db: StoreConnection, *buckets: Bucket, mutable: bool = False, writer: EventWriter | None = None
) -> int:
    """One batch, as ingest does it; returns the number of new events."""
    writer = writer or EventWriter(db)
    with transaction(db):
        new = sum(writer.apply("claude", made, NOW, mutable=mutable) for made in buckets)
        writer.finish()
    return new


@pytest.fixture
def db(tmp_path: Path) -> StoreConnection:
    return connect(tmp_path / "whyfor.db")


def events(db: StoreConnection) -> list[StoredEvent]:
    return list(SqlConversation(db).events(session(db).id))


def session(db: StoreConnection) -> Session:
    return SqlSessions(db).find("s1")


def found(db: StoreConnection, word: str) -> list[int]:
    """Turns whose documents hold a word."""
    query = Query(clauses=((Atom(word),),))
    return sorted(match.turn for match in SqliteSearch(db).match(query, Filters(), 10))


# -- events --------------------------------------------------------------------------------------


def test_the_same_event_twice_is_one(db: StoreConnection) -> None:
    said = event("user.prompt", 1, "Go")
    writer = EventWriter(db)
    assert apply(db, bucket(said, said), writer=writer) == 1
    assert apply(db, bucket(said, event("assistant.message", 2, "Gone.")), writer=writer) == 1
    writer.settle("claude", "s1")
    assert apply(db, bucket(said), writer=writer) == 0
    assert apply(db, bucket(said)) == 0
    assert [e.text for e in events(db)] == ["Go", "Gone."]
    assert (session(db).prompts, session(db).messages) == (1, 2)


def test_the_same_event_in_another_session_is_another(db: StoreConnection) -> None:
    said = event("user.prompt", 1, "Go")
    assert apply(db, bucket(said), bucket(said, session="s2")) == 2


def test_an_event_that_cannot_change_stays_as_it_was_first_written(db: StoreConnection) -> None:
    apply(db, bucket(event("assistant.message", 1, "first")))
    apply(db, bucket(event("assistant.message", 1, "second")))
    assert [e.text for e in events(db)] == ["first"]


def test_seq_rises_by_one_whatever_the_batches(db: StoreConnection) -> None:
    for start in range(0, 30, 10):
        keys = range(max(0, start - 3), start + 10)  # three of them are known already
        apply(db, bucket(*(event("assistant.message", key, str(key)) for key in keys)))
    assert [(e.seq, e.text) for e in events(db)] == [(n + 1, str(n)) for n in range(30)]


def test_a_turn_begins_with_each_prompt(db: StoreConnection) -> None:
    kinds = [
        "session.started",
        "user.prompt",
        "assistant.message",
        "tool.call",
        "user.prompt",
        "tool.result",
    ]
    made = [event(kind, key) for key, kind in enumerate(kinds)]
    apply(db, bucket(*made[:3]))
    apply(db, bucket(*made[3:]))
    assert [e.turn for e in events(db)] == [0, 1, 1, 1, 2, 2]


def test_an_agents_prompt_to_its_subagent_begins_a_turn_but_nobody_typed_it(
    db: StoreConnection,
) -> None:
    apply(db, bucket(event("user.prompt", 1, "Look", actor="assistant"), event("tool.call", 2)))
    assert [e.turn for e in events(db)] == [1, 1]
    assert (session(db).prompts, session(db).messages, session(db).tool_calls) == (0, 1, 1)


def test_a_command_a_person_ran_is_no_call_of_the_agents(db: StoreConnection) -> None:
    apply(
        db,
        bucket(
            event("tool.call", 1, "make", actor="user", name="Bash"),
            event("tool.call", 2, name="Bash"),
        ),
    )
    assert session(db).tool_calls == 1


def test_a_session_lasts_from_its_earliest_to_its_latest_event(db: StoreConnection) -> None:
    apply(db, bucket(event("user.prompt", 1, at=500), event("assistant.message", 2)))
    apply(
        db,
        bucket(
            event("tool.call", 3, at=100),
            event("tool.result", 4, at=900),
            event("error", 5, at=300),
        ),
    )
    assert (session(db).started_at, session(db).ended_at) == (NOW + 100, NOW + 900)


def test_a_result_kept_apart_belongs_to_the_turn_of_its_call(db: StoreConnection) -> None:
    apply(db, bucket(event("user.prompt", 1), event("tool.call", 2), event("user.prompt", 3)))
    apart = bucket(event("tool.result", 4, "the walrus"))
    apart.facts["answers"] = 2
    apply(db, apart)
    assert [(e.turn, e.text) for e in events(db)][-1] == (1, "the walrus")
    assert found(db, "walrus") == [1]


def test_a_nul_is_shown_and_an_endless_text_is_cut(db: StoreConnection) -> None:
    apply(
        db, bucket(event("tool.result", 1, "a\x00b"), event("tool.result", 2, "x" * (MAX_TEXT + 9)))
    )
    assert [e.text for e in events(db)] == ["a␀b", "x" * MAX_TEXT]


# -- what may change -----------------------------------------------------------------------------


def test_a_later_version_replaces_an_event_in_its_place(db: StoreConnection) -> None:
    apply(
        db,
        bucket(event("user.prompt", 1, "Go"), event("assistant.message", 2, "walrus")),
        mutable=True,
    )
    apply(
        db,
        bucket(event("user.prompt", 3, "On"), event("assistant.message", 4, "ending")),
        mutable=True,
    )
    newer = event("assistant.message", 2, "penguin", data={"model": "m"}, name="n")
    assert apply(db, bucket(newer), mutable=True) == 0

    kept = events(db)
    assert [(e.seq, e.turn, e.text) for e in kept] == [
        (1, 1, "Go"),
        (2, 1, "penguin"),
        (3, 2, "On"),
        (4, 2, "ending"),
    ]
    assert (kept[1].data, kept[1].name) == ({"model": "m"}, "n")
    assert [found(db, word) for word in ("walrus", "penguin", "ending")] == [[], [1], [2]]
    assert session(db).messages == 4


def test_of_several_versions_in_one_batch_the_last_counts_in_the_place_of_the_first(
    db: StoreConnection,
) -> None:
    versions = [event("assistant.message", 1, text) for text in ("o", "on", "one")]
    assert (
        apply(db, bucket(versions[0], event("tool.call", 2, "two"), *versions[1:]), mutable=True)
        == 2
    )
    assert [e.text for e in events(db)] == ["one", "two"]


def test_a_file_that_a_later_version_touched_is_touched(db: StoreConnection) -> None:
    apply(
        db, bucket(event("user.prompt", 1, "Go"), event("tool.result", 2, "running")), mutable=True
    )
    later = bucket(event("tool.result", 2, "done"))
    later.touches.append(Touch(2, "/w/a.py", "write"))
    apply(db, later, mutable=True)
    assert session(db).files_modified == ["/w/a.py"]


def test_a_first_prompt_that_was_completed_later_is_the_title(db: StoreConnection) -> None:
    apply(db, bucket(event("user.prompt", 1, ""), event("user.prompt", 2, "Second")), mutable=True)
    apply(db, bucket(event("user.prompt", 1, "First")), mutable=True)
    assert session(db).title == "First"


VERSIONS = st.lists(
    st.tuples(
        st.sampled_from(["user.prompt", "assistant.message", "tool.call", "tool.result"]),
        st.text("ab ", max_size=4),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(VERSIONS, st.data(), st.booleans())
def test_any_cut_into_batches_gives_the_same_rows(
    said: list[tuple[str, str]], data: st.DataObject, mutable: bool
) -> None:
    made = [event(kind, key, text, at=key, name="T") for key, (kind, text) in enumerate(said)]
    again = data.draw(
        st.lists(st.tuples(st.sampled_from(made), st.text("cd ", max_size=4)), max_size=6)
    )
    # The title hangs on the text of the first prompt, which has a test of its own.
    newer = [(old, old.text if old.kind == "user.prompt" else text) for old, text in again]
    stream = made + [event(old.kind, old.key, text, at=old.key, name="T") for old, text in newer]
    usage = [
        Usage(n % 3, NOW + n, "m", input=n, output=None if n % 2 else n) for n in range(len(stream))
    ]
    cuts = data.draw(st.sets(st.integers(1, len(stream)), max_size=5))

    whole, pieces = connect(Path(":memory:")), connect(Path(":memory:"))
    apply(whole, piece(stream, usage, 0, len(stream)), mutable=mutable)
    for first, last in pairwise([0, *sorted(cuts), len(stream)]):
        apply(pieces, piece(stream, usage, first, last), mutable=mutable)
    assert rows(pieces) == rows(whole)


def piece(stream: list[Event], usage: list[Usage], first: int, last: int) -> Bucket:
    made = bucket()
    for number in range(first, last):
        made.events.append(stream[number])
        made.usage.append(usage[number])
        made.touches.append(Touch(stream[number].key, f"/w/{stream[number].key}", "write"))
    return made


def rows(db: StoreConnection) -> dict[str, list[tuple[Any, ...]]]:
    db.execute("CREATE VIRTUAL TABLE temp.vocabulary USING fts5vocab(main, words, instance)")
    names = ("sessions", "events", "usage", "touches", "docs", "temp.vocabulary")
    return {name: sorted(fetch(db, f"SELECT * FROM {name}"), key=repr) for name in names}


# -- usage, touches, facts -----------------------------------------------------------------------


def spent(*items: Usage, session: str = "s1") -> Bucket:
    made = Bucket(session)
    for item in items:
        made.usage.append(item)
    return made


def test_of_a_response_told_many_times_the_maximum_of_each_field_counts(
    db: StoreConnection,
) -> None:
    told = [
        Usage(1, NOW, "m", input=5, output=1),
        Usage(1, NOW, "m", input=5, cache_read=7, output=90),
    ]
    apply(db, spent(*told))
    apply(db, spent(Usage(1, NOW, "m", input=3, output=80), Usage(2, NOW, "m2", input=1)))
    assert session(db).tokens == Tokens(
        input=6, cache_read=7, cache_write=None, output=90, reasoning=None, unpriced=2
    )
    assert session(db).models == ["m", "m2"]


def test_what_nobody_told_is_unknown_and_a_zero_is_a_zero(db: StoreConnection) -> None:
    apply(db, spent(Usage(1, NOW, "m", input=0)))
    assert session(db).tokens == Tokens(input=0, unpriced=1)


def test_usage_belongs_to_the_turn_of_its_response(db: StoreConnection) -> None:
    made = bucket()
    for number, kind in enumerate(
        ("user.prompt", "assistant.message", "user.prompt", "error"), start=1
    ):
        made.events.append(event(kind, number))
        if number % 2 == 0:
            made.usage.append(Usage(number // 2, NOW, "m", input=1))
    apply(db, made)
    apply(db, spent(Usage(3, NOW, "m", input=1)))
    assert fetch(db, "SELECT key, turn FROM usage ORDER BY key") == [(1, 1), (2, 2), (3, 2)]


def test_of_two_sessions_with_one_response_one_counts_it(db: StoreConnection) -> None:
    said = [event("assistant.message", 1, at=1)]
    for name, end in (("s1", 5), ("s2", 9), ("s3", 7)):
        made = bucket(*said, event("error", 2, at=end), session=name)
        made.usage.append(Usage(1, NOW, "m", input=10))
        apply(db, made)
    counted = {
        s.session_id: s.tokens.input
        for s in SqlSessions(db).matching(Filters(), limit=None, subagents=True)
    }
    assert counted == {"s1": 10, "s2": None, "s3": None}


def test_files_are_listed_in_the_order_they_were_first_written(db: StoreConnection) -> None:
    made = bucket(*(event("tool.result", key) for key in range(4)))
    made.touches += [
        Touch(1, "/b", "write"),
        Touch(0, "/z", "read"),
        Touch(2, "/a", "write"),
        Touch(3, "/b", "write"),
    ]
    made.touches.append(Touch(99, "/of-an-event-nobody-saw", "write"))
    apply(db, made)
    apply(db, made)
    assert session(db).files_modified == ["/b", "/a"]


def titled(rank: int, text: str) -> Bucket:
    made = Bucket("s1")
    made.title(rank, text)
    return made


def test_a_title_gives_way_only_to_one_of_its_rank_or_above(db: StoreConnection) -> None:
    titles = []
    for made in (
        bucket(event("user.prompt", 1, "\n  Fix   it \nnow")),
        bucket(event("user.prompt", 2, "And this")),
        titled(TITLE_PERSON, "Mine"),
        titled(TITLE_AGENT, "The agent's"),
        titled(TITLE_PERSON, "Mine, renamed"),
    ):
        apply(db, made)
        titles.append(session(db).title)
    assert titles == ["Fix it", "Fix it", "Mine", "Mine", "Mine, renamed"]
    assert (found(db, "renamed"), found(db, "Mine")) == ([1], [1])


def test_the_first_folder_and_the_last_branch_are_the_sessions(db: StoreConnection) -> None:
    for cwd, branch in (("/w", "main"), ("/w/sub", "feature"), ("/x", None)):
        made = Bucket("s1")
        made.facts.update(cwd=cwd, branch=branch)
        apply(db, made)
    assert (session(db).cwd, session(db).branch) == ("/w", "feature")


# -- sources and problems ------------------------------------------------------------------------


def source(path: str = "/s.jsonl") -> Source:
    return Source(
        id=0, agent="claude", path=path, session_id="s1", framing="lines", state={"open": [1]}
    )


def test_a_source_comes_back_as_it_was_saved(db: StoreConnection) -> None:
    kept = source()
    writer = EventWriter(db)
    writer.save_source(kept)
    kept.position, kept.end_hash, kept.state = 512, "ab", {"open": {}}
    writer.save_source(kept)
    later = EventWriter(db)
    found = later.sources()["claude", "/s.jsonl"]
    later.load_state(found)
    assert found == kept


def test_what_could_not_be_parsed_is_counted_by_session_file_and_reason(
    db: StoreConnection,
) -> None:
    writer = EventWriter(db)
    kept, other = source(), source("/other.jsonl")
    batches: Iterable[tuple[Source, list[UnparsedRecord], dict[str, int]]] = (
        (
            kept,
            [UnparsedRecord(0, 10, "truncated"), UnparsedRecord(10, 5, "NUL bytes")],
            {"hologram": 2},
        ),
        (kept, [UnparsedRecord(90, 10, "truncated")], {"hologram": 1, "teleport": 1}),
        (other, [UnparsedRecord(0, 10, "truncated")], {"hologram": 1}),
    )
    for whose, problems, unknown in batches:
        with transaction(db):
            if whose.id == 0:
                writer.save_source(whose)
            writer.add_problems(whose, problems, unknown)
            writer.finish()

    capture = SqliteCapture(db)
    assert session(db).unparsed == 4
    assert capture.unparsed("claude") == [
        ("/s.jsonl", "truncated", 2),
        ("/other.jsonl", "truncated", 1),
        ("/s.jsonl", "NUL bytes", 1),
    ]
    assert capture.unknown_types("claude") == {"hologram": 4, "teleport": 1}
    totals = SqlStats(db).totals()
    assert (totals.unparsed, totals.unknown_types) == (4, 5)


def test_a_whole_segment_takes_the_place_of_the_partial_one_it_repeats(db: StoreConnection) -> None:
    kept = source()
    writer = EventWriter(db)
    writer.save_source(kept)
    for end, digest, partial in ((120, "a", True), (300, "b", False)):
        writer.add_segment(
            kept,
            SegmentEntry(
                agent="claude",
                path=kept.path,
                generation=0,
                start=100,
                end=end,
                digest=digest,
                observed_at=NOW,
                framing="lines",
                session_id="s1",
                partial=partial,
            ),
        )
    assert fetch(db, "SELECT start, stop, digest, partial FROM segments") == [(100, 300, "b", 0)]
