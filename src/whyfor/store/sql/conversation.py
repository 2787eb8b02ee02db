"""The events of one session, whole, in pieces or counted; never writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from whyfor.model.events import (
    SEQ_BITS,
    CallRef,
    EventHead,
    EventMoment,
    EventRef,
    LongText,
    Response,
    SpokenWord,
    StoredEvent,
    call_text,
)
from whyfor.model.events import SEQ_MASK as _MASK
from whyfor.model.sessions import Tokens
from whyfor.model.sources import Source
from whyfor.model.work_feed import FailedEvent
from whyfor.store.sql.database import StoreDatabase, fetch, first_row, stepped, value
from whyfor.store.sql.filters import as_json

_NEAR = 40  # events after a question among which its answer is
_QUESTIONS = 50  # of one stretch whose answers are looked for
WORD_MAX = 8000  # characters of one message
_EVENT = "id, turn, kind, source, confidence, created_at, observed_at, actor, text, name, data"
_SIZES = "SELECT id, size FROM long_texts "
# of its words; what a call was given is in its data
_SIZE = "CASE WHEN kind='tool.call' AND text='' THEN octet_length(data) ELSE octet_length(text) END"
# the beginning of a text, and what is beside it unless that is large
_CUT = "ELSE substr(text, 1, ?1) END"
_SMALL_DATA = "CASE WHEN octet_length(data) <= ?2 OR kind='tool.call' THEN data END"
_TOKENS = ("input", "cache_read", "cache_write", "output", "reasoning", "cost", "partial")


class SqlConversation:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def events(
        self, session: int, first: int = 0, last: int = _MASK, *, sizes: bool = True
    ) -> Iterator[StoredEvent]:
        base = session << SEQ_BITS
        span = (base + first, base + last)
        found = stepped(
            self.db, f"SELECT {_EVENT} FROM events WHERE id BETWEEN ? AND ? ORDER BY id", span
        )
        long = dict(fetch(self.db, _SIZES + "WHERE id BETWEEN ? AND ?", span)) if sizes else {}
        for ident, *row in found:
            yield _event(ident - base, row, long.get(ident, 0))

    def events_at(self, session: int, seqs: Iterable[int], text_max: int) -> list[StoredEvent]:
        base = session << SEQ_BITS
        wanted = (as_json([base + seq for seq in sorted(set(seqs))]),)
        where = "WHERE id IN (SELECT value FROM json_each(?))"
        text = f"CASE kind WHEN 'tool.call' THEN text ELSE substr(text, 1, {text_max:d}) END"
        columns = _EVENT.replace("text", text)
        rows = fetch(self.db, f"SELECT {columns} FROM events {where} ORDER BY id", wanted)
        sizes = dict(fetch(self.db, _SIZES + where, wanted))
        found = [_event(ident - base, row, sizes.get(ident, 0)) for ident, *row in rows]
        for event in found:
            event.text = event.text[:text_max]
        return found

    def long_texts(self, session: int) -> dict[int, tuple[Source, LongText]]:
        base = session << SEQ_BITS
        rows = fetch(
            self.db,
            """
            SELECT l.id, l.source_id, l.generation, l.at, l.size, l.lines,
                   o.agent, o.path, o.session_id, o.framing, o.parent, o.sidecar, o.cwd
            FROM long_texts l
            JOIN sources o ON o.id=l.source_id
            WHERE l.id BETWEEN ? AND ?
            """,
            (base, base + _MASK),
        )
        found = {}
        for ident, *place in rows:
            text = LongText(*place[:5])
            agent, path, session_id, framing, parent, sidecar, cwd = place[5:]
            source = Source(text.source, agent, path, session_id, framing, parent, sidecar, cwd)
            found[ident - base] = (source, text)
        return found

    def stretch(self, session: int, after: int, limit: int) -> list[StoredEvent]:
        base = session << SEQ_BITS
        span = (base + after + 1, base + _MASK)
        rows = fetch(
            self.db,
            f"SELECT {_EVENT} FROM events WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?",
            (*span, limit),
        )
        if not rows:
            return []
        sizes = dict(fetch(self.db, _SIZES + "WHERE id BETWEEN ? AND ?", (span[0], rows[-1][0])))
        return [_event(ident - base, row, sizes.get(ident, 0)) for ident, *row in rows]

    def tail(self, session: int, limit: int, cut: int) -> list[StoredEvent]:
        base = session << SEQ_BITS
        text = f"CASE WHEN kind IN ('tool.result', 'assistant.thinking') THEN '' {_CUT}"
        columns = _EVENT.replace("data", _SMALL_DATA).replace("text", text)
        rows = fetch(
            self.db,
            f"SELECT {columns} FROM events WHERE id BETWEEN ?3 AND ?4 ORDER BY id DESC LIMIT ?5",
            (cut, 4 * cut, base, base + _MASK, limit),
        )
        found = [_event(ident - base, row, 0) for ident, *row in reversed(rows)]
        for event in found:
            event.text = event.text[:cut]
        return found

    def long_calls(self, session: int, among: int, size: int) -> list[StoredEvent]:
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ?1 FROM (SELECT id, kind, text, data FROM events WHERE id BETWEEN ?1 AND "
            "?2 ORDER BY id DESC "
            "LIMIT ?3) e WHERE kind IN ('tool.call', 'approval.requested') AND "
            "max(octet_length(text), "
            "coalesce(octet_length(data), 0)) > ?4 ORDER BY id DESC"
        )
        rows = fetch(self.db, sql, (base, base + _MASK, among, size))
        return [event for (seq,) in rows for event in self.events(session, seq, seq)]

    def heads(self, session: int) -> list[EventHead]:
        base = session << SEQ_BITS
        sql = (
            f"SELECT id - ?1, turn, kind, created_at, {_SIZE}, "
            "CASE WHEN failed AND NOT denied THEN substr(text, 1, 80) END, "
            "CASE WHEN kind='status.changed' "
            "THEN CAST(data ->> '$.rolled_back_turns' AS INTEGER) END, "
            "CASE WHEN kind='status.changed' THEN data ->> '$.rewound_to' END "
            "FROM events WHERE id BETWEEN ?1 AND ?2 ORDER BY id"
        )
        found = [EventHead(*row) for row in fetch(self.db, sql, (base, base + _MASK))]
        self._whole_sizes(session, found)
        return found

    def _whole_sizes(self, session: int, found: Iterable[EventHead | CallRef]) -> None:
        """Give shortened texts the sizes of the whole ones."""
        base = session << SEQ_BITS
        rows = fetch(self.db, _SIZES + "WHERE id BETWEEN ? AND ?", (base, base + _MASK))
        sizes = {ident - base: size for ident, size in rows}
        for each in found if sizes else ():
            each.size = sizes.get(each.seq, each.size)

    def call_refs(self, session: int, first: int, last: int) -> list[CallRef]:
        base = session << SEQ_BITS
        sql = (
            "SELECT * FROM (SELECT id - ?1 AS seq, kind, "
            "coalesce(data ->> '$.id', data ->> '$.request') AS ident, "
            f"{_SIZE} FROM events WHERE id BETWEEN ?1 + ?2 AND ?1 + ?3 AND kind IN "
            "('tool.call', "
            "'tool.result', 'approval.requested', 'approval.resolved', 'question.asked', "
            "'subagent.started')) e "
            "WHERE ident IS NOT NULL ORDER BY seq"
        )
        found = [
            CallRef(seq, kind, str(ident), size)
            for seq, kind, ident, size in fetch(self.db, sql, (base, first, last))
        ]
        self._whole_sizes(session, found)
        return found

    def result_refs(self, session: int, after: int, idents: Iterable[str]) -> list[CallRef]:
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ?1, kind, data ->> '$.id', octet_length(text) FROM events "
            "WHERE id BETWEEN ?1 + ?2 AND ?1 + ?3 AND kind='tool.result' "
            "AND data ->> '$.id' IN (SELECT value FROM json_each(?4)) ORDER BY id"
        )
        wanted = as_json(list(idents))
        found = [CallRef(*row) for row in fetch(self.db, sql, (base, after, _MASK, wanted))]
        self._whole_sizes(session, found)
        return found

    def tree(
        self, session: int, seqs: Iterable[int] | None = None
    ) -> list[tuple[int, str | None, str | None]]:
        base = session << SEQ_BITS
        sql = "SELECT id - ?1, data ->> '$.uuid', data ->> '$.parent' FROM events WHERE "
        if seqs is None:
            return fetch(self.db, sql + "id BETWEEN ?1 AND ?2 ORDER BY id", (base, base + _MASK))
        return fetch(
            self.db,
            sql + "id IN (SELECT value FROM json_each(?2)) ORDER BY id",
            (base, as_json([base + seq for seq in seqs])),
        )

    def ids(self, session: int, kind: str) -> dict[int, str | None]:
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ?1, data ->> '$.id' FROM events "
            "WHERE id BETWEEN ?1 AND ?2 AND kind=?3 ORDER BY id"
        )
        return dict(fetch(self.db, sql, (base, base + _MASK, kind)))

    def line_counts(self, session: int, seqs: Iterable[int]) -> dict[int, int]:
        base = session << SEQ_BITS
        sql = (
            "SELECT e.id - ?1, coalesce(l.lines, "
            "1 + length(e.text) - length(replace(e.text, char(10), ''))) "
            "FROM events e LEFT JOIN long_texts l ON l.id=e.id "
            "WHERE e.id IN (SELECT value FROM json_each(?2))"
        )
        return dict(fetch(self.db, sql, (base, as_json([base + seq for seq in seqs]))))

    def openings(self, session: int, seqs: Iterable[int], length: int) -> dict[int, str]:
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ?1, substr(text, 1, ?3) FROM events WHERE id IN (SELECT value FROM "
            "json_each(?2)) "
            "ORDER BY id"
        )
        return dict(fetch(self.db, sql, (base, as_json([base + seq for seq in seqs]), length)))

    def tokens_by_turn(self, session: int) -> dict[int, Tokens]:
        sums = ", ".join(f"sum({name})" for name in _TOKENS)
        sql = f"SELECT turn, {sums} FROM usage WHERE session_id=? AND counts GROUP BY turn"
        return {turn: Tokens(*rest) for turn, *rest in fetch(self.db, sql, (session,))}

    def responses(self, session: int, since: int = 0) -> list[Response]:
        sql = """
            SELECT coalesce(created_at, 0), turn, model,
                   CASE WHEN lump=0 AND input IS NOT NULL
                        THEN input + coalesce(cache_read, 0) + coalesce(cache_write, 0) END,
                   CASE WHEN counts THEN cost END
            FROM usage
            WHERE session_id=? AND coalesce(created_at, 0) >= ?
            ORDER BY coalesce(created_at, 0), key
        """
        return [Response(*row) for row in fetch(self.db, sql, (session, since))]

    def failures(self, session: int, since: int = 0) -> list[FailedEvent]:
        base = session << SEQ_BITS
        sql = """
            SELECT id - ?1, created_at, kind, substr(text, 1, 300),
                   CAST(data ->> '$.exit_code' AS INTEGER)
            FROM events
            WHERE id BETWEEN ?1 AND ?2 AND created_at >= ?3
              AND (kind='error' OR failed AND NOT denied)
            ORDER BY id
        """
        rows = fetch(self.db, sql, (base, base + _MASK, since))
        return [FailedEvent(*row) for row in rows]

    def tasks(self, sessions: Iterable[int], length: int) -> dict[int, tuple[str, int | None]]:
        found = {}
        for session in sessions:
            base = session << SEQ_BITS
            sql = (
                "SELECT substr(text, 1, ?), created_at FROM events WHERE id BETWEEN ? AND ? AND "
                "kind='user.prompt' "
                "ORDER BY id LIMIT 1"
            )
            if row := first_row(self.db, sql, (length, base, base + _MASK)):
                found[session] = (str(row[0]), row[1])
        return found

    def first_of_kinds(self, session: int, kinds: tuple[str, ...], limit: int) -> list[int]:
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ?1 FROM events WHERE id BETWEEN ?1 AND ?2 AND kind IN (SELECT value FROM "
            "json_each(?3)) "
            "ORDER BY id LIMIT ?4"
        )
        found = fetch(self.db, sql, (base, base + _MASK, as_json(kinds), limit))
        return [seq for (seq,) in found]

    def last_of_kind(self, session: int, kind: str) -> int | None:
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ?1 FROM events WHERE id BETWEEN ?1 AND ?2 AND kind=?3 ORDER BY id DESC "
            "LIMIT 1"
        )
        row = first_row(self.db, sql, (base, base + _MASK, kind))
        return int(row[0]) if row else None

    def last_seq(self, session: int) -> int:
        return self.observed(session, _MASK)[1]

    def observed(self, session: int, seq: int) -> tuple[int, int]:
        base = session << SEQ_BITS
        sql = (
            "SELECT observed_at, id - ?1 FROM events WHERE id BETWEEN ?1 AND ?2 ORDER BY id DESC "
            "LIMIT 1"
        )
        rows = fetch(self.db, sql, (base, base + seq))
        return (rows[0][0], rows[0][1]) if rows else (0, 0)

    def key_of(self, session: int, seq: int) -> int | None:
        found = value(self.db, "SELECT key FROM events WHERE id=?", ((session << SEQ_BITS) + seq,))
        return int(found) if found is not None else None

    def keys(self, session: int, last: int = _MASK) -> dict[int, int]:
        base = session << SEQ_BITS
        sql = "SELECT key, id - ? FROM events WHERE id BETWEEN ? AND ?"
        return dict(fetch(self.db, sql, (base, base, base + last)))

    def prompt_before(self, session: int, seq: int) -> int:
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ? FROM events WHERE id >= ? AND id < ? AND kind='user.prompt' AND "
            "actor='user' "
            "ORDER BY id DESC LIMIT 1"
        )
        found = fetch(self.db, sql, (base, base, base + seq))
        return int(found[0][0]) if found else 0

    def words(self, session: int, first: int, last: int) -> list[SpokenWord]:
        base = session << SEQ_BITS
        text = f"substr(text, 1, {WORD_MAX}), length(text) > {WORD_MAX}"
        span = (base, base + first, base + last)
        asked = fetch(
            self.db,
            f"SELECT id - ?, kind, turn, created_at, {text} FROM events WHERE id BETWEEN ? AND ? "
            "AND "
            "(kind='question.asked' OR (kind='user.prompt' AND actor='user' AND trim(text)<>''))",
            span,
        )
        closing = fetch(
            self.db,
            f"SELECT id - ?1, turn, created_at, {text} FROM events WHERE id IN ("
            "SELECT max(id) FROM events WHERE id BETWEEN ?2 AND ?3 AND "
            "kind='assistant.message' AND trim(text)<>'' GROUP BY turn)",
            span,
        )
        found = [
            SpokenWord(
                "request" if kind == "user.prompt" else "question", seq, turn, at, said, bool(cut)
            )
            for seq, kind, turn, at, said, cut in asked
        ]
        questions = [word.seq for word in found if word.role == "question"][:_QUESTIONS]
        found += [_word("closing words", row) for row in closing]
        found += [word for seq in questions if (word := self._answer(base, seq, last))]
        return sorted(found, key=lambda word: word.seq)

    def _answer(self, base: int, question: int, last: int) -> SpokenWord | None:
        rows = fetch(
            self.db,
            "SELECT id - ?, turn, created_at, data -> '$.answers' FROM events WHERE id "
            "> ? AND id <= ? AND "
            "kind='tool.result' AND json_type(data, '$.answers')='object' ORDER BY id LIMIT 1",
            (base, base + question, base + min(question + _NEAR, last)),
        )
        if not rows:
            return None
        seq, turn, at, answers = rows[0]
        said = "; ".join(map(str, msgspec.json.decode(answers).values()))
        return (
            SpokenWord("answer", seq, turn, at, said[:WORD_MAX], len(said) > WORD_MAX)
            if said
            else None
        )

    def work_counts(self, session: int, first: int, last: int) -> tuple[int, int]:
        base = session << SEQ_BITS
        rows = fetch(
            self.db,
            "SELECT coalesce(sum(kind='tool.call'), 0), coalesce(sum(kind='question.asked'), 0) "
            "FROM events "
            "WHERE id BETWEEN ? AND ?",
            (base + first, base + last),
        )
        return int(rows[0][0]), int(rows[0][1])

    def last_request(self, session: int, first: int, last: int) -> SpokenWord | None:
        base = session << SEQ_BITS
        rows = fetch(
            self.db,
            "SELECT id - ?, turn, created_at, substr(text, 1, 600), length(text) > 600 FROM events "
            "WHERE id BETWEEN ? "
            "AND ? AND kind='user.prompt' AND actor='user' AND trim(text)<>'' ORDER BY id DESC "
            "LIMIT 1",
            (base, base + first, base + last),
        )
        return _word("request", rows[0]) if rows else None

    def first_request(self, session: int, first: int, last: int) -> int | None:
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ? FROM events WHERE id BETWEEN ? AND ? AND kind='user.prompt' AND "
            "actor='user' ORDER BY id LIMIT 1"
        )
        rows = fetch(self.db, sql, (base, base + first, base + last))
        return int(rows[0][0]) if rows else None

    def turns(self, session: int, first: int, last: int) -> tuple[int, int]:
        base = session << SEQ_BITS
        sql = "SELECT turn FROM events WHERE id BETWEEN ? AND ? AND turn > 0 ORDER BY id {} LIMIT 1"
        ends = [
            fetch(self.db, sql.format(order), (base + first, base + last))
            for order in ("ASC", "DESC")
        ]
        return (int(ends[0][0][0]), int(ends[1][0][0])) if all(ends) else (0, 0)

    def turn_end(self, session: int, seq: int) -> int:
        base = session << SEQ_BITS
        rows = fetch(
            self.db,
            "SELECT id - ? - 1 FROM events WHERE id > ? AND id <= ? AND kind='user.prompt' AND "
            "actor='user' "
            "ORDER BY id LIMIT 1",
            (base, base + seq, base + _MASK),
        )
        return int(rows[0][0]) if rows else _MASK

    def time_from(self, session: int, seq: int) -> int | None:
        base = session << SEQ_BITS
        sql = (
            "SELECT created_at FROM events WHERE id BETWEEN ? AND ? AND created_at IS NOT NULL "
            "ORDER BY id LIMIT 1"
        )
        rows = fetch(self.db, sql, (base + seq, base + _MASK))
        return int(rows[0][0]) if rows else None

    def commands(
        self, session: int, first: int, last: int | None, names: Iterable[str]
    ) -> list[str]:
        base = session << SEQ_BITS
        rows = fetch(
            self.db,
            "SELECT coalesce(data ->> '$.input.command', data ->> '$.input.cmd', text) "
            "FROM events WHERE id BETWEEN ? AND ? AND kind='tool.call' AND lower(name) IN "
            "(SELECT value FROM json_each(?)) ORDER BY id",
            (base + first, base + (_MASK if last is None else last), as_json(list(names))),
        )
        return [str(row[0]) for row in rows]

    def active_times(self, session: int, until: int, first: int = 1) -> list[tuple[int, int]]:
        base = session << SEQ_BITS
        sql = (
            "SELECT d.created_at, max(d.created_at, coalesce(e.created_at, 0)) FROM docs d LEFT "
            "JOIN events e ON "
            "e.id = ? + d.last_seq WHERE d.id BETWEEN ? AND ? AND d.created_at <= ? ORDER BY d.id"
        )
        return [
            (since, to)
            for since, to in fetch(self.db, sql, (base, base + first, base + _MASK, until))
        ]

    def moments(self, session: int) -> Iterator[EventMoment]:
        base = session << SEQ_BITS
        sql = """
            SELECT id - ?1, turn, kind, actor, created_at
            FROM events
            WHERE id BETWEEN ?1 AND ?2
            ORDER BY id
        """
        for row in stepped(self.db, sql, (base, base + _MASK)):
            yield EventMoment._make(row)

    def copied_marks(self, session: int) -> dict[tuple[int, str, str], int]:
        base = session << SEQ_BITS
        rows = fetch(
            self.db,
            """
            SELECT created_at, kind,
              CASE text WHEN '' THEN coalesce(data -> '$.input', '') ELSE text END, id - ?1
            FROM events
            WHERE id BETWEEN ?1 AND ?2 AND created_at IS NOT NULL
              AND kind IN ('user.prompt', 'assistant.message', 'tool.call', 'tool.result',
                           'turn.completed')
            ORDER BY id
            """,
            (base, base + _MASK),
        )
        return {(at, kind, text): seq for at, kind, text, seq in rows}

    def prompts_since(self, session: int, seq: int) -> int:
        base = session << SEQ_BITS
        return int(
            value(
                self.db,
                """
                SELECT count(*)
                FROM events
                WHERE session_id=? AND id > ? AND kind='user.prompt' AND actor='user'
                """,
                (session, base + seq),
            )
        )

    def time_of(self, event: EventRef) -> int | None:
        ident = (event.session << SEQ_BITS) + event.seq
        found = value(self.db, "SELECT created_at FROM events WHERE id=?", (ident,))
        return int(found) if found is not None else None


def _event(seq: int, row: list[Any], whole_size: int) -> StoredEvent:
    """From the columns after its number."""
    *fields, text, name, data = row
    body = msgspec.json.decode(data) if data else None
    if not text and body and fields[1] == "tool.call":
        text = call_text(body)
    return StoredEvent(seq, *fields, text, name, body, whole_size)  # type: ignore[call-arg]  # seven


def _word(role: str, row: tuple[Any, ...]) -> SpokenWord:
    seq, turn, at, text, cut = row
    return SpokenWord(role, seq, turn, at, text, bool(cut))
