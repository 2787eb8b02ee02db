"""The write side: from what the readers found to rows, each thing exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import apsw
import msgspec

from whyfor.model.events import SEQ_BITS, Event
from whyfor.model.findings import TITLE_DERIVED, TITLE_PROMPT, Bucket, Spent
from whyfor.model.paths import below
from whyfor.model.sessions import Project
from whyfor.model.signals import Process, Signal
from whyfor.model.sources import Source, UnparsedRecord
from whyfor.store.sqlite.changes import ChangeLog
from whyfor.store.sqlite.connection import fetch, first_row
from whyfor.store.sqlite.copies import mark_copies
from whyfor.store.sqlite.listing_index import renew_listing
from whyfor.store.sqlite.projects import SqliteProjects
from whyfor.store.sqlite.search_index import index_session, index_title
from whyfor.store.sqlite.segments import Segments

MAX_TEXT = 1_000_000  # characters of one event; the record in its segment is always whole
_DEPTH = 8  # subagents that call subagents
_FIELDS = ("input", "cache_read", "cache_write", "output", "reasoning")
_COUNTED = ("user.prompt", "assistant.message")
_encode = msgspec.json.Encoder().encode


class SessionCounters:
    """A session while it is being written: counters that go to its row when the batch ends."""

    __slots__ = ("dirty_from", "id", "indexed_title", "known", "named", "row", "usage_changed")

    def __init__(self, id: int, row: dict[str, Any], *, created: bool) -> None:
        self.id = id
        self.row = row
        # keys, while cheaper to remember than to look up
        self.known: set[int] | None = set() if created else None
        self.dirty_from: int | None = None  # first seq whose search index is out of date
        self.usage_changed = False
        self.named = False  # a legacy title names one of its messages
        self.indexed_title = _own_title(row)

    def copy(self) -> SessionCounters:
        """Return the same as it is now; its keys are looked up from then on."""
        other = SessionCounters(self.id, dict(self.row), created=False)
        for name in ("dirty_from", "usage_changed", "named", "indexed_title"):
            setattr(other, name, getattr(self, name))
        return other


def _own_title(row: dict[str, Any]) -> str | None:
    """A title that says more than the first prompt does."""
    return row["title"] if row["title_rank"] > TITLE_PROMPT else None


_ROW = """
    parent subagent project_id cwd branch title title_rank version forked_from started_at ended_at
    last_seq turn prompts messages tool_calls unparsed copied_to restored_from copy_of copy_kind
    own_from original
""".split()


class EventWriter(Segments):
    """Applies findings inside the caller's transactions; one per ingest, under the ingest lock."""

    def __init__(self, db: apsw.Connection) -> None:
        super().__init__(db)
        self._live: dict[tuple[str, str], SessionCounters] = {}
        self._changed: dict[int, SessionCounters] = {}
        self._leaves: set[int] | None = None  # keys of messages that legacy titles name
        self._titles_added = False
        self._before: dict[tuple[str, str], SessionCounters | None] | None = (
            None  # sessions as they were before an attempt
        )
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

    # -- sources ---------------------------------------------------------------------------------

    def sources(self) -> dict[tuple[str, str], Source]:
        """All of them without their states, which are read only for those that changed."""
        names = [name for name in Source.__struct_fields__ if name != "state"]
        found = {}
        for row in fetch(self.db, f"SELECT {', '.join(names)} FROM sources"):
            source = Source(**dict(zip(names, row, strict=True)))
            found[source.agent, source.path] = source
        return found

    def source(self, agent: str, path: str) -> Source | None:
        """Return one of them, without its state."""
        names = [name for name in Source.__struct_fields__ if name != "state"]
        sql = f"SELECT {', '.join(names)} FROM sources WHERE agent=? AND path=?"
        row = first_row(self.db, sql, (agent, path))
        return Source(**dict(zip(names, row, strict=True))) if row else None

    def load_state(self, source: Source) -> None:
        row = first_row(self.db, "SELECT state FROM sources WHERE id=?", (source.id,))
        source.state = msgspec.json.decode(row[0]) if row else {}

    def save_source(self, source: Source) -> None:
        values = [getattr(source, name) for name in Source.__struct_fields__]
        values[Source.__struct_fields__.index("state")] = _encode(source.state).decode()
        names = Source.__struct_fields__
        if source.id == 0:
            marks = ", ".join("?" * (len(names) - 1))
            self.db.execute(
                f"INSERT INTO sources({', '.join(names[1:])}) VALUES({marks})", values[1:]
            )
            source.id = self.db.last_insert_rowid()
        else:
            marks = ", ".join(f"{name}=?" for name in names[1:])
            self.db.execute(f"UPDATE sources SET {marks} WHERE id=?", [*values[1:], source.id])

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
        rows = [(source.id, source.generation, p.start, p.size, p.reason) for p in problems]
        self.db.executemany("INSERT OR IGNORE INTO unparsed VALUES(?,?,?,?,?)", rows)
        self.db.executemany(
            "INSERT INTO unknown_types VALUES(?,?,?,?) ON CONFLICT DO UPDATE SET records = "
            "records + excluded.records",
            [(source.agent, name, source.id, count) for name, count in unknown.items()],
        )
        if problems:
            self._count_unparsed(source, len(problems))

    def _count_unparsed(self, source: Source, number: int) -> None:
        """Of its session, if it is a session's."""
        if source.session_id:
            live = self.live(source.agent, source.session_id, source.parent)
            live.row["unparsed"] += number
            self._changed[live.id] = live

    # -- signals ---------------------------------------------------------------------------------

    def add_signals(self, signals: list[Signal]) -> None:
        names = (
            "at",
            "agent",
            "event",
            "cwd",
            "session_agent",
            "session_id",
            "how",
            "repository",
            "sha",
        )
        rows = [
            (*(getattr(signal, name) for name in names), _encode(signal.data).decode())
            for signal in signals
        ]
        self.db.executemany(
            f"INSERT INTO signals({', '.join(names)}, data) VALUES({', '.join('?' * len(names))}, "
            "?)",
            rows,
        )

    def session_around(self, chain: list[Process], at: int) -> tuple[str, str] | None:
        """Agent and id of the session that the nearest of these processes was in at that time."""
        sql = (
            "SELECT session_agent, session_id FROM signals WHERE how='payload' AND "
            "json_extract(data, '$.process')=? "
            "AND at<=? ORDER BY at DESC, id DESC LIMIT 1"
        )
        for process in chain:
            if process.start and (
                found := first_row(self.db, sql, (f"[{process.pid},{process.start}]", at))
            ):
                return found[0], found[1]
        return None

    # -- projects --------------------------------------------------------------------------------

    def place(self, cwd: str) -> int | None:
        row = first_row(self.db, "SELECT project_id FROM places WHERE cwd=?", (cwd,))
        return int(row[0]) if row else None

    def project(self, number: int) -> Project | None:
        row = first_row(
            self.db,
            "SELECT identity, evidence, name, remote, root_commit, path FROM projects WHERE id=?",
            (number,),
        )
        return Project(*row) if row else None

    def former(self, project: Project) -> list[tuple[str, str | None]]:
        return SqliteProjects(self.db).former(project)

    def learn_place(self, cwd: str, project: Project, former: list[str], observed_at: int) -> int:
        """This folder belongs to this project, as of now; what was known under former identities
        joins it."""
        project_id = self._project(project)
        for identity in former:
            self._join(identity, project_id)
        self.db.execute(
            "INSERT INTO places VALUES(?,?,?) ON CONFLICT DO UPDATE SET "
            "project_id=excluded.project_id, "
            "observed_at=excluded.observed_at",
            (cwd, project_id, observed_at),
        )
        return project_id

    def adopt(self, path: str, project: Project) -> int:
        """Everything recorded at or below a path belongs to this project."""
        number = self._project(project)
        for table in ("sessions", "places"):
            for (cwd,) in fetch(self.db, f"SELECT DISTINCT cwd FROM {table} WHERE cwd IS NOT NULL"):
                if below(cwd, path):
                    self.db.execute(f"UPDATE {table} SET project_id=? WHERE cwd=?", (number, cwd))
        for live in self._live.values():
            if live.row["cwd"] is not None and below(live.row["cwd"], path):
                live.row["project_id"] = number
        own = fetch(self.db, "SELECT id FROM sessions WHERE project_id=?", (number,))
        self._inherit_projects([session for (session,) in own])
        return number

    def adopted(self, cwd: str) -> Project | None:
        """The project a person gave a path to: of several that hold it, the longest."""
        known = fetch(
            self.db,
            "SELECT a.path, p.identity, p.evidence, p.name, p.remote, p.root_commit, p.path FROM "
            "aliases a "
            "JOIN projects p ON p.identity=a.identity",
        )
        found = [row for row in known if below(cwd, row[0])]
        return Project(*max(found, key=lambda row: len(row[0]))[1:]) if found else None

    def _project(self, project: Project) -> int:
        found = first_row(self.db, "SELECT id FROM projects WHERE identity=?", (project.identity,))
        if found is not None:
            return int(found[0])
        names = ("identity", "evidence", "name", "remote", "root_commit", "path")
        self.db.execute(
            f"INSERT INTO projects({', '.join(names)}) VALUES(?,?,?,?,?,?)",
            [getattr(project, name) for name in names],
        )
        return self.db.last_insert_rowid()

    def _join(self, identity: str, project_id: int) -> None:
        old = first_row(self.db, "SELECT id FROM projects WHERE identity=?", (identity,))
        if old is None:
            return
        for table in ("sessions", "places", "commits", "checkpoints"):
            self.db.execute(
                f"UPDATE {table} SET project_id=? WHERE project_id=?", (project_id, old[0])
            )
        for table in ("linked", "tips"):  # what is not known any more is looked at again
            self.db.execute(f"DELETE FROM {table} WHERE project_id=?", (old[0],))
        self.db.execute("DELETE FROM projects WHERE id=?", (old[0],))
        for live in self._live.values():
            if live.row["project_id"] == old[0]:
                live.row["project_id"] = project_id

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
            f"SELECT id, {', '.join(_ROW)} FROM sessions WHERE agent=? AND session_id=?",
            (agent, session_id),
        )
        if row is not None:
            return SessionCounters(
                int(row[0]), dict(zip(_ROW, row[1:], strict=True)), created=False
            )
        self.db.execute(
            "INSERT INTO sessions(agent, session_id, parent) VALUES(?,?,?)",
            (agent, session_id, parent),
        )
        fresh: dict[str, Any] = dict.fromkeys(_ROW)
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
        self._usage(live, bucket.usage, [opening, *turns])
        self._facts(live, bucket)
        if bucket.copied is not None:
            copied = [places[event.key][0] for event in bucket.events[: bucket.copied]]
            live.row["copied_to"] = max(copied, default=before)
        return int(live.row["last_seq"] - before)

    def settle(self, agent: str, session_id: str) -> None:
        """The source is read: stop remembering its keys."""
        if live := self._live.get((agent, session_id)):
            live.known = None

    def _events(
        self, live: SessionCounters, bucket: Bucket, observed_at: int, mutable: bool
    ) -> dict[int, tuple[int, int]]:
        """Insert the new, replace the changed; returns seq and turn of the bucket's events by
        key."""
        events = _latest(bucket.events) if mutable else bucket.events
        places = self._existing(live, [event.key for event in events])  # key → seq, turn
        row = live.row
        rows: list[tuple[Any, ...]] = []
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
            rows.append(
                (
                    base + seq,
                    live.id,
                    event.key,
                    turn,
                    event.kind,
                    "transcript",
                    "high",
                    event.created_at,
                    observed_at,
                    event.actor,
                    event.name,
                    _clean(event.text),
                    _encode(event.data).decode() if event.data else None,
                    *_outcome(event),
                )
            )
        if rows:
            self.db.executemany("INSERT INTO events VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)", rows)
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
        self.db.executemany("INSERT OR IGNORE INTO touches VALUES(?,?,?,?,?)", rows)
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
            if row["title_rank"] < TITLE_PROMPT and event.text.strip():
                row["title_rank"], row["title"] = TITLE_PROMPT, _headline(event.text)
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
        text = _clean(event.text)
        self.db.execute(
            """
            UPDATE events
            SET text=?1, data=?2, name=?3, kind=?4, failed=?6, interrupted=?7, denied=?8
            WHERE id=?5 AND (text<>?1 OR data IS NOT ?2 OR name IS NOT ?3 OR kind<>?4)
            """,
            (text, data, event.name, event.kind, ident, *_outcome(event)),
        )
        if self.db.changes():
            self._dirty(live, seq)
            self._log.add_event(ident)
        first_prompt = event.kind == "user.prompt" and turn == 1 and event.text.strip()
        if first_prompt and live.row["title_rank"] <= TITLE_PROMPT:
            live.row["title_rank"], live.row["title"] = TITLE_PROMPT, _headline(event.text)

    def _dirty(self, live: SessionCounters, seq: int) -> None:
        live.dirty_from = seq if live.dirty_from is None else min(live.dirty_from, seq)

    def _usage(self, live: SessionCounters, usage: Spent, turns: list[int]) -> None:
        if not usage:
            return
        live.usage_changed = True
        merged: dict[int, list[Any]] = {}
        for item, at in zip(usage, usage.at, strict=True):
            turn = turns[at]
            values = [getattr(item, name) for name in _FIELDS]
            if have := merged.get(item.key):
                have[3:] = [
                    b if a is None else a if b is None else max(a, b)
                    for a, b in zip(have[3:], values, strict=True)
                ]
            else:
                merged[item.key] = [turn, item.created_at, item.model, *values]
        best = ", ".join(
            f"{f}=max(coalesce({f}, excluded.{f}), coalesce(excluded.{f}, {f}))" for f in _FIELDS
        )
        self.db.executemany(
            f"INSERT INTO usage(session_id, key, turn, created_at, model, {', '.join(_FIELDS)}) "
            f"VALUES(?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET {best}",
            [(live.id, key, *row) for key, row in merged.items()],
        )

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
            row["title_rank"], row["title"] = facts["title_rank"], _headline(facts["title"])
        if bucket.leaf_titles:
            self._titles_added = True
            self._known_leaves().update(key for key, _ in bucket.leaf_titles)
            self.db.executemany(
                "INSERT OR REPLACE INTO leaf_titles VALUES(?,?)", bucket.leaf_titles
            )

    def _known_leaves(self) -> set[int]:
        if self._leaves is None:
            self._leaves = {key for (key,) in fetch(self.db, "SELECT key FROM leaf_titles")}
        return self._leaves

    # -- the end of a batch ----------------------------------------------------------------------

    def finish(self) -> None:
        """Bring what is derived from whole sessions up to date, before the transaction ends."""
        marks = ", ".join(f"{name}=?" for name in _ROW)
        self.db.executemany(
            f"UPDATE sessions SET {marks} WHERE id=?",
            [(*(live.row[name] for name in _ROW), live.id) for live in self._changed.values()],
        )
        self._inherit_projects(list(self._changed))
        # also when only its end moved: that may change who counts
        shared = {number: self._shared_usage(number) for number in self._changed}
        copies = self._mark_copies(shared)
        affected: set[int] = set()
        # In order of id, titles first: full text search keeps its words in memory only while ids
        # rise.
        for live in sorted(self._changed.values(), key=lambda live: live.id):
            affected |= self._share_usage(shared[live.id])
            if live.usage_changed:
                affected.add(live.id)
                live.usage_changed = False
            self._index_title(live)
            if live.dirty_from is not None:
                index_session(self.db, live.id, live.dirty_from)
                live.dirty_from = None
        self._totals(affected)
        self._name_by_leaves()
        renew_listing(self.db, self._changed.keys() | affected | copies)
        self._changed.clear()
        self._log.prune()

    def _inherit_projects(self, callers: list[int]) -> None:
        """A subagent that does not say where it ran belongs to the project of its caller."""
        for _ in range(_DEPTH):
            rows = fetch(
                self.db,
                """
                UPDATE sessions SET project_id=p.project_id
                FROM sessions p
                WHERE p.agent=sessions.agent AND p.session_id=sessions.parent
                  AND sessions.cwd IS NULL AND sessions.project_id IS NOT p.project_id
                  AND (sessions.id IN (SELECT value FROM json_each(?1)) OR sessions.parent IN (
                    SELECT session_id FROM sessions
                    WHERE id IN (SELECT value FROM json_each(?1))))
                RETURNING id, project_id
                """,
                (_encode(callers).decode(),),
            )
            projects = dict(rows)
            for live in self._live.values():
                if live.id in projects:
                    live.row["project_id"] = projects[live.id]
            callers = list(projects)
            if not callers:
                return

    def _mark_copies(self, shared: dict[int, list[tuple[int, int]]]) -> set[int]:
        """Find out again which sessions begin with another's records; returns those of which
        something else is known now."""
        found = mark_copies(
            self.db, {number: {owner for _, owner in rows} for number, rows in shared.items()}
        )
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
        title = _own_title(live.row)
        if title != live.indexed_title and title:
            index_title(self.db, live.id, title, live.row["started_at"])
            live.indexed_title = title

    def _shared_usage(self, session: int) -> list[tuple[int, int]]:
        """Responses of a session that others hold too: key and session, for each that does."""
        return fetch(
            self.db,
            "SELECT a.key, b.session_id FROM usage a JOIN usage b ON b.key=a.key WHERE "
            "a.session_id=? AND EXISTS("
            "SELECT 1 FROM usage c WHERE c.key=a.key AND c.session_id<>a.session_id)",
            (session,),
        )

    def _share_usage(self, shared: list[tuple[int, int]]) -> set[int]:
        """Forks copy responses: of the sessions that hold one, the original counts it, or the one
        that ended first."""
        if not shared:
            return set()
        owners = {int(owner) for _, owner in shared}
        rank = {
            int(ident): (is_copy, ended or 0, name)
            for ident, is_copy, ended, name in fetch(
                self.db,
                "SELECT id, coalesce(forked_from, copy_of) IS NOT NULL, ended_at, session_id "
                "FROM sessions "
                "WHERE id IN (SELECT value FROM json_each(?))",
                (_encode(sorted(owners)).decode(),),
            )
        }
        best: dict[int, int] = {}
        for key, owner in shared:
            if key not in best or rank[owner] < rank[best[key]]:
                best[key] = owner
        self.db.executemany(
            "UPDATE usage SET counts=? WHERE session_id=? AND key=?",
            [(int(best[key] == owner), owner, key) for key, owner in shared],
        )
        return owners

    def recount(self, keys: list[int], sessions: list[int]) -> None:
        """Others that held these are gone: one of these sessions counts each of them now."""
        self.db.execute(
            "UPDATE usage SET counts=1 WHERE key IN (SELECT value FROM json_each(?))",
            (_encode(keys).decode(),),
        )
        shared = [self._share_usage(self._shared_usage(session)) for session in sessions]
        affected = set(sessions).union(*shared)
        self._totals(affected)

    def _totals(self, sessions: Iterable[int]) -> None:
        sums = ", ".join(f"sum({name})" for name in _FIELDS)
        sets = ", ".join(f"{name}=?" for name in _FIELDS)
        for session in sessions:
            total = first_row(
                self.db, f"SELECT {sums} FROM usage WHERE session_id=? AND counts", (session,)
            )
            models = [
                row[0]
                for row in fetch(
                    self.db,
                    "SELECT model FROM usage WHERE session_id=? AND model IS NOT NULL GROUP BY "
                    "model "
                    "ORDER BY min(created_at), model",
                    (session,),
                )
            ]
            self.db.execute(
                f"UPDATE sessions SET {sets}, models=? WHERE id=?",
                [*(total or ()), _encode(models).decode(), session],
            )


def _latest(events: list[Event]) -> list[Event]:
    """Of several versions of an event the last one counts, in the place of the first."""
    by_key: dict[int, Event] = {}
    for event in events:
        by_key[event.key] = event
    return list(by_key.values())


def _outcome(event: Event) -> tuple[bool, bool, bool]:
    """Whether it failed, was interrupted, was denied."""
    data = event.data
    if data and event.kind == "tool.result":
        return data.get("failed") is True, False, data.get("rejected") is True
    if data and event.kind == "turn.completed":
        return False, data.get("interrupted") is True, False
    if data and event.kind == "approval.resolved":
        return False, False, data.get("decision") == "denied"
    return False, False, False


def _clean(text: str) -> str:
    """An escaped NUL is legal JSON but cuts SQL text short; show it instead."""
    if len(text) > MAX_TEXT:
        text = text[:MAX_TEXT]
    return text.replace("\x00", "\u2400") if "\x00" in text else text


def _headline(text: str) -> str:
    """The first line with words in it, short enough for a table."""
    for line in text.splitlines():
        if line.strip():
            return _clean(" ".join(line.split())[:200])
    return ""
