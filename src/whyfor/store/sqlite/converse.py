"""The read side of one conversation that is shown piece by piece: what is where, without its
words. Never writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw
import msgspec

from whyfor.model.events import StoredEvent
from whyfor.model.sessions import Tokens
from whyfor.model.signals import Signal
from whyfor.store.sqlite.connection import fetch, first
from whyfor.store.sqlite.schema import SEQ_BITS

_MASK = (1 << SEQ_BITS) - 1
_TOKENS = ("input", "cache_read", "cache_write", "output", "reasoning")


class EventHead(msgspec.Struct, gc=False):
    """One event without its words. The size of a long text is known without reading it."""

    seq: int
    turn: int
    kind: str
    at: int | None
    size: int
    failed: int | None  # a result
    undone: int | None  # turns that were taken back with it
    rewound: str | None


class CallRef(msgspec.Struct, gc=False):
    """What ties an event to a call: a call itself, its result, a request to allow it, a
    question, a subagent."""

    seq: int
    kind: str
    ident: str
    size: int


class Conversations:
    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def _all(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        return fetch(self.db, sql, values)

    def beats(self, session: int) -> list[EventHead]:
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ?1, turn, kind, created_at, octet_length(text), "
            "CASE WHEN kind='tool.result' THEN data ->> '$.failed' END, "
            "CASE WHEN kind='status.changed' THEN data ->> '$.rolled_back_turns' END, "
            "CASE WHEN kind='status.changed' THEN data ->> '$.rewound_to' END "
            "FROM events WHERE id BETWEEN ?1 AND ?2"
        )
        return [EventHead(*row) for row in self._all(sql, (base, base + _MASK))]

    def ties(self, session: int, first: int, last: int) -> list[CallRef]:
        base = session << SEQ_BITS
        sql = (
            "SELECT * FROM (SELECT id - ?1, kind, coalesce(data ->> '$.id', data ->> '$.request') "
            "AS ident, "
            "octet_length(text) FROM events WHERE id BETWEEN ?1 + ?2 AND ?1 + ?3 AND kind IN "
            "('tool.call', "
            "'tool.result', 'approval.requested', 'approval.resolved', 'question.asked', "
            "'subagent.started')) "
            "WHERE ident IS NOT NULL"
        )
        return [
            CallRef(seq, kind, str(ident), size)
            for seq, kind, ident, size in self._all(sql, (base, first, last))
        ]

    def answers(self, session: int, after: int, idents: Iterable[str]) -> list[CallRef]:
        """Results of calls, however long after them."""
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ?1, kind, data ->> '$.id', octet_length(text) FROM events "
            "WHERE id BETWEEN ?1 + ?2 AND ?1 + ?3 AND kind='tool.result' "
            "AND data ->> '$.id' IN (SELECT value FROM json_each(?4))"
        )
        wanted = msgspec.json.encode(list(idents)).decode()
        return [CallRef(*row) for row in self._all(sql, (base, after, _MASK, wanted))]

    def places(
        self, session: int, seqs: Iterable[int] | None = None
    ) -> list[tuple[int, str | None, str | None]]:
        """Where events (or all) stand in a conversation that is a tree: seq, own id, id of what
        they follow."""
        base = session << SEQ_BITS
        sql = "SELECT id - ?1, data ->> '$.uuid', data ->> '$.parent' FROM events WHERE "
        if seqs is None:
            return self._all(sql + "id BETWEEN ?1 AND ?2", (base, base + _MASK))
        return self._all(
            sql + "id IN (SELECT value + ?1 FROM json_each(?2)) ORDER BY id",
            (base, str(list(seqs))),
        )

    def ids(self, session: int, kind: str) -> dict[int, str | None]:
        """The agent's own names of events of a kind."""
        base = session << SEQ_BITS
        sql = "SELECT id - ?1, data ->> '$.id' FROM events WHERE id BETWEEN ?1 AND ?2 AND kind=?3"
        return dict(self._all(sql, (base, base + _MASK, kind)))

    def events(self, session: int, seqs: Iterable[int], text_max: int) -> list[StoredEvent]:
        """These, in order; of a text that is longer only its beginning."""
        base = session << SEQ_BITS
        rows = self._all(
            "SELECT id - ?1, turn, kind, source, confidence, created_at, observed_at, actor, "
            "substr(text, 1, ?3), "
            "name, data FROM events WHERE id IN (SELECT value + ?1 FROM json_each(?2)) ORDER BY id",
            (base, str(sorted(set(seqs))), text_max),
        )
        decode = msgspec.json.decode
        return [StoredEvent(*row[:10], decode(row[10]) if row[10] else None) for row in rows]  # type: ignore[call-arg]

    def lines(self, session: int, seqs: Iterable[int]) -> dict[int, int]:
        """How many lines the texts of events have."""
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ?1, 1 + length(text) - length(replace(text, char(10), '')) FROM events "
            "WHERE id IN (SELECT value + ?1 FROM json_each(?2))"
        )
        return dict(self._all(sql, (base, str(list(seqs)))))

    def openings(self, session: int, seqs: Iterable[int], length: int) -> dict[int, str]:
        """How the texts of events begin."""
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ?1, substr(text, 1, ?3) FROM events WHERE id IN (SELECT value + ?1 FROM "
            "json_each(?2)) "
            "ORDER BY id"
        )
        return dict(self._all(sql, (base, str(list(seqs)), length)))

    def spent(self, session: int) -> dict[int, Tokens]:
        """Tokens by turn, subagents aside."""
        sums = ", ".join(f"sum({name})" for name in _TOKENS)
        sql = f"SELECT turn, {sums} FROM usage WHERE session_id=? AND counts GROUP BY turn"
        return {turn: Tokens(*rest) for turn, *rest in self._all(sql, (session,))}

    def signals(self, agent: str, session_id: str) -> list[Signal]:
        """What the hooks of a session announced, in order."""
        names = "at, agent, event, cwd, session_agent, session_id, how, repository, sha, data"
        rows = self._all(
            f"SELECT {names} FROM signals WHERE session_agent=? AND session_id=? ORDER BY at, id",
            (agent, session_id),
        )
        facts = [dict(zip(names.split(", "), row, strict=True)) for row in rows]
        return [Signal(**{**fact, "data": msgspec.json.decode(fact["data"])}) for fact in facts]

    def tasks(self, sessions: Iterable[int], length: int) -> dict[int, tuple[str, int | None]]:
        """How subagents' tasks begin, and when each was given."""
        found = {}
        for session in sessions:
            base = session << SEQ_BITS
            sql = (
                "SELECT substr(text, 1, ?), created_at FROM events WHERE id BETWEEN ? AND ? AND "
                "kind='user.prompt' "
                "ORDER BY id LIMIT 1"
            )
            if row := first(self.db, sql, (length, base, base + _MASK)):
                found[session] = (str(row[0]), row[1])
        return found

    def steps(self, session: int, kinds: tuple[str, ...], limit: int) -> list[int]:
        """Where the first events of some kinds are."""
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ?1 FROM events WHERE id BETWEEN ?1 AND ?2 AND kind IN (SELECT value FROM "
            "json_each(?3)) "
            "ORDER BY id LIMIT ?4"
        )
        found = self._all(sql, (base, base + _MASK, msgspec.json.encode(kinds).decode(), limit))
        return [seq for (seq,) in found]

    def last(self, session: int, kind: str) -> int | None:
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ?1 FROM events WHERE id BETWEEN ?1 AND ?2 AND kind=?3 ORDER BY id DESC "
            "LIMIT 1"
        )
        row = first(self.db, sql, (base, base + _MASK, kind))
        return int(row[0]) if row else None

    def key(self, session: int, seq: int) -> int | None:
        """By which an event is known again when its records are read once more."""
        row = first(self.db, "SELECT key FROM events WHERE id=?", ((session << SEQ_BITS) + seq,))
        return int(row[0]) if row else None

    def version(self, session: int) -> str | None:
        """Of the agent's program."""
        row = first(self.db, "SELECT version FROM sessions WHERE id=?", (session,))
        return row[0] if row else None

    def written(self, session: int, most: int) -> bytes | None:
        """What the session wrote, packed as linking keeps it; None if that is not known, or too
        much."""
        row = first(
            self.db,
            "SELECT body FROM acts WHERE session_id=? AND octet_length(body) <= ?",
            (session, most),
        )
        return bytes(row[0]) if row else None
