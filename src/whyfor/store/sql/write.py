"""The write side: from what the readers found to rows, each thing exactly once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from whyfor.model.events import SEQ_BITS, Event, LongText
from whyfor.model.findings import Bucket
from whyfor.model.sources import Source, UnparsedRecord
from whyfor.model.titles import TITLE_DERIVED
from whyfor.store.sql.changes import ChangeLog
from whyfor.store.sql.copies import mark_copies
from whyfor.store.sql.counters import SESSION_ROW, SessionCounters, own_title
from whyfor.store.sql.database import StoreDatabase, fetch, first_row
from whyfor.store.sql.filters import as_json
from whyfor.store.sql.listing_index import renew_listing
from whyfor.store.sql.places import PlaceWriter
from whyfor.store.sql.search_index import index_session, index_title
from whyfor.store.sql.signals import SignalWriter
from whyfor.store.sql.sources import SourceWriter
from whyfor.store.sql.titles import headline, name_by_prompt
from whyfor.store.sql.usage import add_usage, share_usage, shared_usage, total_usage

MAX_TEXT = 1_000_000  # characters of one event; the record in its segment is always whole
_ADD_LONG = """
    INSERT INTO long_texts VALUES(?,?,?,?,?,?)
    ON CONFLICT(id) DO UPDATE SET
      source_id=excluded.source_id, generation=excluded.generation, at=excluded.at,
      size=excluded.size, lines=excluded.lines
"""
_COUNTED = ("user.prompt", "assistant.message")
_WITH_OUTCOME = frozenset(("tool.result", "turn.completed", "approval.resolved"))
_NO_OUTCOME = (False, False, False)
_encode = msgspec.json.Encoder().encode


class EventWriter(SourceWriter, PlaceWriter, SignalWriter):
    """Applies findings inside the caller's transactions; one per ingest, under the ingest lock."""

    def __init__(self, db: StoreDatabase) -> None:
        super().__init__(db)
        self._live: dict[tuple[str, str], SessionCounters] = {}
        self._changed: dict[int, SessionCounters] = {}
        self._leaves: set[int] | None = None  # keys of messages that legacy titles name
        self._titles_added = False
        self._before: dict[tuple[str, str], SessionCounters | None] | None = (
            None  # sessions as they were before an attempt
        )
        self._settled: tuple[str, str] | None = None  # the session whose source was read last
        self._log = ChangeLog(db)

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Do something that may fail, inside the caller's transaction: what it wrote is taken
        back, the rest stays."""
        self._before, titles = {}, self._titles_added
        self.db.execute("SAVEPOINT attempt")
        try:
            yield
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK TO attempt")
            self._set_back(self._before)
            self._titles_added, self._leaves = titles, None
            raise
        finally:
            self._before = None
            if self.db.in_transaction:
                self.db.execute("RELEASE attempt")

    def _set_back(self, sessions: dict[tuple[str, str], SessionCounters | None]) -> None:
        for key, before in sessions.items():
            now = self._live.pop(key, None)
            if now is not None and before is None:
                self._changed.pop(now.id, None)
            if before is not None:
                self._live[key] = before
                if before.id in self._changed:
                    self._changed[before.id] = before

    def restart(self, source: Source, generation: int) -> None:
        """Read again from its first byte: what was counted of the old generation no longer
        counts."""
        self._count_unparsed(source, -source.unparsed)
        self.db.execute("DELETE FROM unparsed WHERE source_id=?", (source.id,))
        self.db.execute("DELETE FROM unknown_types WHERE source_id=?", (source.id,))
        self.db.execute("DELETE FROM hiding WHERE source_id=?", (source.id,))
        source.generation = generation
        source.position = source.tail = source.records = source.unparsed = 0
        source.state = {}

    def add_problems(
        self, source: Source, problems: list[UnparsedRecord], unknown: dict[str, int]
    ) -> None:
        if unknown:
            self.db.executemany(
                """
                INSERT INTO unknown_types VALUES(?,?,?,?)
                ON CONFLICT(agent, name, source_id)
                DO UPDATE SET records = unknown_types.records + excluded.records
                """,
                [(source.agent, name, source.id, count) for name, count in unknown.items()],
            )
        if problems:
            rows = [(source.id, source.generation, p.start, p.size, p.reason) for p in problems]
            self.db.executemany(
                "INSERT INTO unparsed VALUES(?,?,?,?,?) ON CONFLICT DO NOTHING", rows
            )
            self._count_unparsed(source, len(problems))

    def _count_unparsed(self, source: Source, number: int) -> None:
        """Of its session, if it is a session's."""
        if source.session_id:
            live = self.live(source.agent, source.session_id, source.parent)
            live.row["unparsed"] += number
            self._changed[live.id] = live

    # -- sessions and events ---------------------------------------------------------------------

    def live(self, agent: str, session_id: str, parent: str | None) -> SessionCounters:
        key = (agent, session_id)
        live = self._live.get(key)
        if self._before is not None and key not in self._before:
            self._before[key] = live.copy() if live else None
        if live is None:
            live = self._live[key] = self._load(agent, session_id, parent)
        return live

    def _load(self, agent: str, session_id: str, parent: str | None) -> SessionCounters:
        row = first_row(
            self.db,
            f"SELECT id, {', '.join(SESSION_ROW)} FROM sessions WHERE agent=? AND session_id=?",
            (agent, session_id),
        )
        if row is not None:
            return SessionCounters(
                int(row[0]), dict(zip(SESSION_ROW, row[1:], strict=True)), created=False
            )
        self.db.execute(
            "INSERT INTO sessions(agent, session_id, parent) VALUES(?,?,?)",
            (agent, session_id, parent),
        )
        fresh: dict[str, Any] = dict.fromkeys(SESSION_ROW)
        fresh.update(parent=parent, title_rank=-1)
        counts = ("last_seq", "turn", "prompts", "messages", "tool_calls", "unparsed", "copied_to")
        fresh.update(dict.fromkeys(counts, 0), own_from=1)
        return SessionCounters(self.db.last_insert_rowid(), fresh, created=True)

    def whereabouts(self, agent: str, session_id: str) -> str | None:
        """The folder a session is known to have begun in."""
        if live := self._live.get((agent, session_id)):
            found = live.row["cwd"]
        else:
            row = first_row(
                self.db,
                "SELECT cwd FROM sessions WHERE agent=? AND session_id=?",
                (agent, session_id),
            )
            found = row[0] if row else None
        return found if isinstance(found, str) else None

    def homeless(self, agent: str, bucket: Bucket) -> bool:
        """A session belongs to the folder it began in; only until that is known does a folder
        matter."""
        return self.live(agent, bucket.session_id, bucket.parent).row["cwd"] is None

    def apply(self, agent: str, bucket: Bucket, observed_at: int, *, mutable: bool) -> int:
        """Store what a run of records says about a session; returns the number of new events."""
        live = self.live(agent, bucket.session_id, bucket.parent)
        self._changed[live.id] = live
        before = live.row["last_seq"]
        opening = live.row["turn"]
        places = self._events(live, bucket, observed_at, mutable)
        turns = [places[event.key][1] for event in bucket.events]
        if bucket.usage:
            live.usage_changed = True
            add_usage(self.db, live.id, bucket.usage, [opening, *turns])
        self._facts(live, bucket)
        if bucket.copied is not None:
            copied = [places[event.key][0] for event in bucket.events[: bucket.copied]]
            live.row["copied_to"] = max(copied, default=before)
        return int(live.row["last_seq"] - before)

    def settle(self, agent: str, session_id: str) -> None:
        """The source is read: stop remembering the keys of the session before. Those of this one
        stay, because of some agents the next file is of the same session."""
        key = (agent, session_id)
        if self._settled not in (None, key) and (live := self._live.get(self._settled)):
            live.known = None
        self._settled = key

    def _events(
        self, live: SessionCounters, bucket: Bucket, observed_at: int, mutable: bool
    ) -> dict[int, tuple[int, int]]:
        """Insert the new, replace the changed; returns seq and turn of the bucket's events by
        key."""
        events = _latest(bucket.events) if mutable else bucket.events
        places = self._existing(live, [event.key for event in events])  # key → seq, turn
        row = live.row
        rows: list[tuple[Any, ...]] = []
        long: list[tuple[int, ...]] = []
        fixed = self._answered_turn(live, bucket)
        leaves = self._known_leaves()
        base = live.id << SEQ_BITS
        for event in events:
            if (place := places.get(event.key)) is not None:
                if mutable:
                    self._replace(live, *place, event)
                continue
            seq = row["last_seq"] = row["last_seq"] + 1
            self._count(row, event)
            turn = row["turn"] if fixed is None else fixed
            places[event.key] = (seq, turn)
            if event.key in leaves:
                live.named = True
            if event.whole is not None:
                long.append(_long_row(base + seq, event.whole))
            rows.append(
                (
                    base + seq,
                    live.id,
                    event.key,
                    turn,
                    event.kind,
                    bucket.source,
                    bucket.confidence,
                    event.created_at,
                    observed_at,
                    event.actor,
                    event.name,
                    _stored_text(event),
                    _encode(event.data).decode() if event.data else None,
                    *_outcome(event),
                )
            )
        if rows:
            self.db.executemany("INSERT INTO events VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", rows)
            if long:
                self.db.executemany(_ADD_LONG, long)
            self._dirty(live, rows[0][0] - base)
            if live.known is not None:
                live.known.update(places)
        self._touches(live, bucket, places)
        return places

    def _touches(
        self, live: SessionCounters, bucket: Bucket, places: dict[int, tuple[int, int]]
    ) -> None:
        """A file may be named by a later record than the event that touched it."""
        if not bucket.touches:
            return
        earlier = self._existing(
            live, [touch.key for touch in bucket.touches if touch.key not in places]
        )
        found = {**earlier, **places}
        rows = [
            (live.id, touch.path, touch.action, *found[touch.key])
            for touch in bucket.touches
            if touch.key in found
        ]
        self.db.executemany("INSERT INTO touches VALUES(?,?,?,?,?) ON CONFLICT DO NOTHING", rows)
        for seq, _ in earlier.values():
            self._dirty(live, seq)

    def _existing(self, live: SessionCounters, keys: list[int]) -> dict[int, tuple[int, int]]:
        """Which of these the session has already: key → seq and turn."""
        if live.known is not None:
            keys = [key for key in keys if key in live.known]
        if not keys:
            return {}
        found = fetch(
            self.db,
            "SELECT key, id, turn FROM events WHERE session_id=? AND key IN (SELECT value FROM "
            "json_each(?))",
            (live.id, _encode(keys).decode()),
        )
        base = live.id << SEQ_BITS
        return {key: (ident - base, turn) for key, ident, turn in found}

    def _count(self, row: dict[str, Any], event: Event) -> None:
        kind = event.kind
        if kind == "user.prompt":
            row["turn"] += 1
            row["prompts"] += event.actor == "user"
            name_by_prompt(row, event.text, row["title_rank"] + 1)
        elif kind == "tool.call":
            row["tool_calls"] += event.actor != "user"
        if kind in _COUNTED:
            row["messages"] += 1
        when = event.created_at
        if when is not None:
            if row["started_at"] is None or when < row["started_at"]:
                row["started_at"] = when
            if row["ended_at"] is None or when > row["ended_at"]:
                row["ended_at"] = when

    def _answered_turn(self, live: SessionCounters, bucket: Bucket) -> int | None:
        """A result that was kept apart belongs to the turn of its call, however late we see it."""
        call = bucket.facts.get("answers")
        if call is None:
            return None
        found = first_row(
            self.db, "SELECT turn FROM events WHERE session_id=? AND key=?", (live.id, call)
        )
        return int(found[0]) if found else None

    def has_event(self, agent: str, session_id: str, key: int) -> bool:
        found = first_row(
            self.db,
            "SELECT 1 FROM sessions s JOIN events e ON e.session_id=s.id AND e.key=? "
            "WHERE s.agent=? AND s.session_id=?",
            (key, agent, session_id),
        )
        return found is not None

    def _replace(self, live: SessionCounters, seq: int, turn: int, event: Event) -> None:
        """A later version of an event takes its place."""
        data = _encode(event.data).decode() if event.data else None
        ident = (live.id << SEQ_BITS) + seq
        text = _stored_text(event)
        self.db.execute(
            """
            UPDATE events
            SET text=?1, data=?2, name=?3, kind=?4, failed=?6, interrupted=?7, denied=?8
            WHERE id=?5 AND (
              text<>?1 OR data IS DISTINCT FROM ?2 OR name IS DISTINCT FROM ?3 OR kind<>?4)
            """,
            (text, data, event.name, event.kind, ident, *_outcome(event)),
        )
        changed = self.db.changes() > 0
        if self._replace_long(ident, event) or changed:
            self._dirty(live, seq)
            self._log.add_event(ident)
        if event.kind == "user.prompt" and turn == 1:
            name_by_prompt(live.row, event.text, live.row["title_rank"])

    def _replace_long(self, ident: int, event: Event) -> bool:
        """Keep where the whole of its text is now; returns whether it is of another size."""
        before = first_row(self.db, "SELECT size FROM long_texts WHERE id=?", (ident,))
        if event.whole is not None:
            self.db.execute(_ADD_LONG, _long_row(ident, event.whole))
        elif before is not None:
            self.db.execute("DELETE FROM long_texts WHERE id=?", (ident,))
        after = event.whole.size if event.whole else None
        return after != (before[0] if before else None)

    def _dirty(self, live: SessionCounters, seq: int) -> None:
        live.dirty_from = seq if live.dirty_from is None else min(live.dirty_from, seq)

    def _facts(self, live: SessionCounters, bucket: Bucket) -> None:
        facts, row = bucket.facts, live.row
        if row["cwd"] is None and (cwd := facts.get("cwd")):
            row["cwd"], row["project_id"] = cwd, None
        if row["project_id"] is None and row["cwd"]:
            row["project_id"] = self.place(row["cwd"])
        for name in ("branch", "version", "subagent", "forked_from", "restored_from"):
            if facts.get(name):
                row[name] = facts[name]
        if facts.get("title_rank", -1) >= row["title_rank"] and facts.get("title"):
            row["title_rank"], row["title"] = facts["title_rank"], headline(facts["title"])
        if bucket.leaf_titles:
            self._titles_added = True
            self._known_leaves().update(key for key, _ in bucket.leaf_titles)
            self.db.executemany(
                """
                INSERT INTO leaf_titles VALUES(?,?)
                ON CONFLICT(key) DO UPDATE SET title=excluded.title
                """,
                bucket.leaf_titles,
            )

    def _known_leaves(self) -> set[int]:
        if self._leaves is None:
            self._leaves = {key for (key,) in fetch(self.db, "SELECT key FROM leaf_titles")}
        return self._leaves

    # -- the end of a batch ----------------------------------------------------------------------

    def finish(self) -> None:
        """Bring what is derived from whole sessions up to date, before the transaction ends."""
        marks = ", ".join(f"{name}=?" for name in SESSION_ROW)
        self.db.executemany(
            f"UPDATE sessions SET {marks} WHERE id=?",
            [(*map(live.row.get, SESSION_ROW), live.id) for live in self._changed.values()],
        )
        self.inherit_projects(list(self._changed))
        # also when only its end moved: that may change who counts
        shared = {number: shared_usage(self.db, number) for number in self._changed}
        copies = self._mark_copies(shared)
        affected: set[int] = set()
        # In order of id, titles first: full text search keeps its words in memory only while ids
        # rise.
        for live in sorted(self._changed.values(), key=lambda live: live.id):
            affected |= share_usage(self.db, shared[live.id])
            if live.usage_changed:
                affected.add(live.id)
                live.usage_changed = False
            self._index_title(live)
            if live.dirty_from is not None:
                index_session(self.db, live.id, live.dirty_from)
                live.dirty_from = None
        total_usage(self.db, affected)
        self._name_by_leaves()
        renew_listing(self.db, self._changed.keys() | affected | copies)
        self._changed.clear()
        self._log.prune()

    def _mark_copies(self, shared: dict[int, list[tuple[int, int]]]) -> set[int]:
        """Find out again which sessions begin with another's records; returns those of which
        something else is known now."""
        owners: dict[int, set[int]] = {}
        for number, rows in shared.items():
            owners[number] = {owner for _, owner in rows}
        found = mark_copies(self.db, owners)
        for live in self._live.values():
            if live.id in found:
                live.row.update(found[live.id])
        return set(found)

    def _name_by_leaves(self) -> None:
        """Legacy titles name a message, mostly of another session: the latest one named gives
        the session its title."""
        named = [live.id for live in self._changed.values() if live.named]
        if not named and not self._titles_added:
            return
        where = "" if self._titles_added else "AND s.id IN (SELECT value FROM json_each(?))"
        values = [TITLE_DERIVED] if self._titles_added else [TITLE_DERIVED, _encode(named).decode()]
        titles: dict[int, str] = dict(
            fetch(
                self.db,
                "SELECT e.session_id, t.title FROM sessions s CROSS JOIN leaf_titles t "
                "JOIN events e ON e.session_id=s.id AND e.key=t.key "
                f"WHERE s.agent='claude' AND s.title_rank<=? {where} ORDER BY e.id",
                values,
            )
        )
        for session, title in sorted(titles.items()):
            self.db.execute(
                "UPDATE sessions SET title=?, title_rank=? WHERE id=?",
                (title, TITLE_DERIVED, session),
            )
            index_title(self.db, session, title, None)
        for live in self._live.values():
            if live.id in titles:
                live.row["title"], live.row["title_rank"] = titles[live.id], TITLE_DERIVED
                live.indexed_title = titles[live.id]
        self._titles_added = False

    def _index_title(self, live: SessionCounters) -> None:
        title = own_title(live.row)
        if title != live.indexed_title and title:
            index_title(self.db, live.id, title, live.row["started_at"])
            live.indexed_title = title

    def recount(self, keys: list[int], sessions: list[int]) -> None:
        """Others that held these are gone: one of these sessions counts each of them now."""
        self.db.execute(
            "UPDATE usage SET counts=TRUE WHERE key IN (SELECT value FROM json_each(?))",
            (as_json(keys),),
        )
        held = (shared_usage(self.db, session) for session in sessions)
        shared = [share_usage(self.db, rows) for rows in held]
        total_usage(self.db, set(sessions).union(*shared))


def _latest(events: list[Event]) -> list[Event]:
    """Of several versions of an event the last one counts, in the place of the first."""
    by_key: dict[int, Event] = {}
    for event in events:
        by_key[event.key] = event
    return list(by_key.values())


def _outcome(event: Event) -> tuple[bool, bool, bool]:
    """Whether it failed, was interrupted, was denied."""
    data = event.data
    if not data or event.kind not in _WITH_OUTCOME:
        return _NO_OUTCOME
    if event.kind == "tool.result":
        return data.get("failed") is True, False, data.get("rejected") is True
    if event.kind == "turn.completed":
        return False, data.get("interrupted") is True, False
    return False, False, data.get("decision") == "denied"


def _stored_text(event: Event) -> str:
    """What a call was given stands in its data already: its text is read from there."""
    if event.kind == "tool.call" and event.data and event.data.get("input"):
        return ""
    return _clean(event.text)


def _long_row(ident: int, whole: LongText) -> tuple[int, ...]:
    return ident, whole.source, whole.generation, whole.at, whole.size, whole.lines


def _clean(text: str) -> str:
    """An escaped NUL is legal JSON but cuts SQL text short; show it instead."""
    if len(text) > MAX_TEXT:
        text = text[:MAX_TEXT]
    return text.replace("\x00", "\u2400") if "\x00" in text else text
