"""A place in the feed: from any place on, everything that follows, once and in order; or it is
said that it is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from whyfor.live.feed import Cursor, Feed, FeedGap, FeedItem, parse_cursor
from whyfor.model.events import SEQ_BITS
from whyfor.store.sql import changes
from whyfor.store.sql.changes import ChangeLog
from whyfor.store.sqlite.connection import StoreConnection, connect, fetch, transaction
from whyfor.store.sqlite.store import SqliteStore

BATCHES = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 5), st.integers(1, 3)), max_size=12)


class Store:
    """A database with nothing but sessions and events; time goes on by itself."""

    def __init__(self, path: Path, db: StoreConnection) -> None:
        self.path = path
        self.db = db
        self.now = 1000

    def add(self, session: int, events: int, later: int = 1) -> None:
        """One batch, as an ingest commits it."""
        self.now += later
        with transaction(self.db):
            self._add(session, events)

    def _add(self, session: int, events: int) -> None:
        sql = "INSERT OR IGNORE INTO sessions(id, agent, session_id) VALUES(?, 'claude', ?)"
        self.db.execute(sql, (session, f"s{session}"))
        (last,) = next(self.db.execute("SELECT last_seq FROM sessions WHERE id=?", (session,)))
        for seq in range(last + 1, last + events + 1):
            self.db.execute(
                "INSERT INTO events "
                "VALUES(?,?,?,1,'user.prompt','transcript','high',?,?,'user',NULL,?,NULL,0,0,0)",
                (
                    (session << SEQ_BITS) + seq,
                    session,
                    seq,
                    self.now,
                    self.now,
                    f"s{session} {seq}",
                ),
            )
        self.db.execute("UPDATE sessions SET last_seq=? WHERE id=?", (last + events, session))

    def change(self, session: int, seq: int, text: str) -> None:
        """A later version of an event takes its place."""
        ident = (session << SEQ_BITS) + seq
        with transaction(self.db):
            self.db.execute("UPDATE events SET text=? WHERE id=?", (text, ident))
            if self.db.changes():
                ChangeLog(self.db).add_event(ident)

    def texts(self) -> dict[tuple[str, int], str]:
        rows = fetch(self.db, "SELECT session_id, id & 16777215, text FROM events")
        return {(f"claude:s{session}", seq): text for session, seq, text in rows}

    def feed(self) -> Feed:
        return Feed(SqliteStore(self.path, self.db))


@contextmanager
def _store(folder: Path, name: str = "x") -> Iterator[Store]:
    db = connect(folder / f"{name}.db")
    try:
        db.pragma("synchronous", "off")
        db.execute(
            "DELETE FROM events; DELETE FROM sessions; DELETE FROM changes; DELETE FROM marks"
        )
        yield Store(folder / f"{name}.db", db)
    finally:
        db.close()


def _all(feed: Feed, limit: int = 3) -> list[FeedItem]:
    found: list[FeedItem] = []
    while items := feed.news(limit):
        found += items
    return found


@hypothesis_settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(BATCHES, BATCHES)
def test_whoever_comes_back_misses_nothing_and_hears_nothing_twice(
    tmp_path: Path, before: list[tuple[int, int, int]], after: list[tuple[int, int, int]]
) -> None:
    with _store(tmp_path) as store:
        live = store.feed()
        heard: list[FeedItem] = []
        for batch in before + after:
            store.add(*batch)
            heard += _all(live)
        cursors = [Cursor(), *(item.cursor for item in heard if item.cursor)]
        for place, cursor in enumerate(cursors):
            again = store.feed()
            again.to(parse_cursor(str(cursor)) or Cursor())
            assert _all(again) == heard[place:]


CHANGED = st.lists(st.tuples(st.booleans(), st.integers(1, 3), st.integers(1, 4)), max_size=12)


def _copied(items: list[FeedItem], copy: dict[tuple[str, int], str]) -> dict[tuple[str, int], str]:
    """What a client has that was told these."""
    for item in items:
        told = json.loads(item.data)
        key = (told["session"], told["seq"])
        assert told["changed"] == (key in copy), (
            "new is told once, and only what is known can change"
        )
        copy[key] = told["text"]
    return copy


@hypothesis_settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(CHANGED)
def test_a_copy_is_right_from_whatever_place_it_goes_on(
    tmp_path: Path, steps: list[tuple[bool, int, int]]
) -> None:
    with _store(tmp_path) as store:
        live = store.feed()
        heard: list[FeedItem] = []
        for number, (changes, session, seq) in enumerate(steps):
            if changes:
                store.change(session, seq, f"otherwise {number}")
            else:
                store.add(session, seq)
            if number % 2:
                heard += _all(live, 2)
        heard += _all(live, 2)
        assert _copied(heard, {}) == store.texts()
        for place in range(len(heard) + 1):
            again = store.feed()
            again.to((heard[place - 1].cursor if place else None) or Cursor())
            copy = _copied(heard[:place], {})
            for item in _all(again):  # of what is told as it is now, a change may be told as well
                told = json.loads(item.data)
                copy[told["session"], told["seq"]] = told["text"]
            assert copy == store.texts()
            assert again.cursor == live.cursor


def test_of_a_change_nobody_hears_before_the_thing_itself(tmp_path: Path) -> None:
    with _store(tmp_path) as store:
        feed = store.feed()
        store.add(1, 2)
        store.change(1, 1, "otherwise")
        seen = feed.store.feed.after(0, 9)
        assert feed._changed(seen) == []
        feed.cursor = Cursor()
        assert [json.loads(item.data)["text"] for item in _all(feed)] == [
            "otherwise",
            "s1 2",
            "otherwise",
        ]


@pytest.mark.parametrize("how", ["anew", "pruned", "future"])
def test_changes_that_are_not_known_any_more_lose_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    with _store(tmp_path) as store:
        store.add(1, 9)
        feed = store.feed()
        feed.to_end()
        cursor = feed.cursor
        if how == "anew":
            ChangeLog(store.db).begin_anew()
        elif how == "pruned":
            monkeypatch.setattr(changes, "KEPT", 1)
            monkeypatch.setattr(changes, "_SPARE", 1)
            for seq in (1, 2, 3):
                store.change(1, seq, "otherwise")
            ChangeLog(store.db).prune()
        else:
            feed.cursor = cursor = msgspec.structs.replace(cursor, change=cursor.change + 1)
        with pytest.raises(FeedGap):
            feed.news(10)
        with pytest.raises(FeedGap):
            store.feed().to(cursor)
        feed.to_end()
        assert feed.news(10) == []


def test_a_feed_set_to_the_end_does_not_read_what_it_skips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _store(tmp_path) as store:
        store.add(1, 3)
        feed = store.feed()
        feed.to_end()
        store.add(1, 2)
        store.add(2, 2)
        store.change(1, 1, "otherwise")
        looked: list[int] = []
        observed = feed.store.conversation.observed

        def noted(session: int, seq: int) -> tuple[int, int]:
            looked.append(session)
            return observed(session, seq)

        monkeypatch.setattr(feed.store.conversation, "observed", noted)
        monkeypatch.setattr(
            feed.store.conversation, "stretch", lambda *_: pytest.fail("it was read")
        )
        feed.to_end()
        assert looked == [1, 2]
        fresh = store.feed()
        fresh.to_end()
        assert (feed.cursor, feed.seen) == (fresh.cursor, fresh.seen)
        feed.to_end()
        assert looked == [1, 2], "only what has grown is looked at"


def test_what_is_there_at_the_beginning_is_known(tmp_path: Path) -> None:
    with _store(tmp_path) as store:
        store.add(1, 3)
        store.add(2, 2)
        feed = store.feed()
        feed.to_end()
        assert (feed.cursor.total, _all(feed)) == (5, [])
        store.add(1, 1)
        assert [item.session for item in _all(feed)] == ["claude:s1"]


def test_order_is_that_of_coming_to_be_known_not_of_sessions(tmp_path: Path) -> None:
    with _store(tmp_path) as store:
        for session in (2, 1, 2, 1):
            store.add(session, 1)
        assert [item.session for item in _all(store.feed())] == ["claude:s2", "claude:s1"] * 2


@pytest.mark.parametrize("how", ["clock", "forgotten", "future", "never"])
def test_a_place_that_cannot_be_found_again_is_lost_not_guessed(tmp_path: Path, how: str) -> None:
    with _store(tmp_path) as store:
        store.add(1, 3, 100)
        store.add(2, 3, 100)
        feed = store.feed()
        feed.to_end()
        cursor = feed.cursor
        if how == "clock":  # went back: what comes now looks older than what was told
            store.now = 500
            store.add(3, 2)
        elif how == "forgotten":
            store.db.execute("DELETE FROM events WHERE session_id=1")
            store.db.execute("DELETE FROM sessions WHERE id=1")
            store.add(2, 3)
        elif how == "future":
            cursor = Cursor(cursor.total + 1, cursor.at, cursor.id)
        else:
            cursor = Cursor(2, 1, 1)
        with pytest.raises(FeedGap):
            store.feed().to(cursor)


def test_one_who_listens_is_not_led_astray_by_a_clock_that_goes_back(tmp_path: Path) -> None:
    with _store(tmp_path) as store:
        store.add(1, 2, 1000)
        feed = store.feed()
        heard = _all(feed)
        store.now = 10
        store.add(2, 2)
        heard += _all(feed)
        store.add(1, 1)
        heard += _all(feed)
        assert [(item.session, item.cursor.total) for item in heard if item.cursor] == [
            *(
                ("claude:s1", 1),
                ("claude:s1", 2),
                ("claude:s2", 3),
                ("claude:s2", 4),
                ("claude:s1", 5),
            )
        ]


def test_one_who_listens_is_told_when_something_was_taken_away(tmp_path: Path) -> None:
    with _store(tmp_path) as store:
        store.add(1, 5)
        feed = store.feed()
        feed.to_end()
        store.db.execute("DELETE FROM sessions WHERE id=1")
        with pytest.raises(FeedGap):
            feed.news(10)


def test_events_that_are_not_there_any_more_leave_no_one_behind(tmp_path: Path) -> None:
    """Seqs have holes where something was forgotten."""
    with _store(tmp_path) as store:
        store.add(1, 6)
        store.add(2, 2)
        store.db.execute(
            "DELETE FROM events WHERE id IN (?, ?)", ((1 << SEQ_BITS) + 3, (1 << SEQ_BITS) + 6)
        )
        heard = _all(store.feed())
        assert len(heard) == 6
        for place, item in enumerate(heard, start=1):
            again = store.feed()
            again.to(item.cursor or Cursor())
            assert _all(again) == heard[place:]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "1-2",
        "1-2-3-4-5",
        "1-2-3-",
        "-1-2-3",
        "1-2-" + "9" * 30,
        "１-2-3",
        "1-2-3\n",
        "1 -2-3",
    ],
)
def test_what_is_no_cursor_is_none(text: str) -> None:
    assert parse_cursor(text) is None
