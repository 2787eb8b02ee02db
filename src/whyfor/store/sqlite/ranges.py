"""What lies in stretches of sessions, and what is known of commits at large. Reads no more than
is shown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw
import msgspec

from whyfor.store.sqlite.connection import fetch
from whyfor.store.sqlite.schema import SEQ_BITS

_MASK = (1 << SEQ_BITS) - 1
_NEAR = 40  # events after a question among which its answer is
_QUESTIONS = 50  # of one stretch whose answers are looked for
WORD_MAX = 8000  # characters of one thing that was said


class SpokenWord(msgspec.Struct, frozen=True):
    """One thing that was said: by a person (prompt, answer) or an agent (question, its last
    words of a turn)."""

    role: str  # request | answer | question | closing words
    seq: int
    turn: int
    at: int | None
    text: str
    cut: bool = False  # there is more of it

    @property
    def by(self) -> str:
        return "person" if self.role in ("request", "answer") else "agent"


class CommitMark(msgspec.Struct, frozen=True):
    """What a list of commits needs to know of one: how it is linked, its tag, whose words are in
    it."""

    evidence: str | None
    tag: str | None
    agents: frozenset[str]


class Ranges:
    def __init__(self, db: apsw.Connection) -> None:
        self.db = db

    def numbers(self, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int]:
        """Of sessions by agent and whole id."""
        rows = fetch(
            self.db,
            "SELECT s.agent, s.session_id, s.id FROM json_each(?) j JOIN sessions s ON "
            "s.agent=json_extract(j.value, '$[0]') AND s.session_id=json_extract(j.value, '$[1]')",
            (_json(sorted(set(names))),),
        )
        return {(agent, session): number for agent, session, number in rows}

    # -- one stretch of a session -----------------------------------------------------------------

    def words(self, session: int, first: int, last: int) -> list[SpokenWord]:
        """What was said in a stretch, in order; of what the agent said, the last words of each
        turn."""
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
            f"SELECT max(id) - ?, turn, created_at, {text} FROM events WHERE id BETWEEN ? AND ? "
            "AND "
            "kind='assistant.message' AND trim(text)<>'' GROUP BY turn",
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
            "SELECT id - ?, turn, created_at, json_extract(data, '$.answers') FROM events WHERE id "
            "> ? AND id <= ? AND "
            "kind='tool.result' AND json_type(data, '$.answers')='object' LIMIT 1",
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

    def done(self, session: int, first: int, last: int) -> tuple[int, int]:
        """How many tools were called and questions asked in a stretch."""
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
        """The last thing a person asked for in a stretch, in as many words as fit a line."""
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
        """Where a person first asks for something in a stretch."""
        base = session << SEQ_BITS
        sql = (
            "SELECT id - ? FROM events WHERE id BETWEEN ? AND ? AND kind='user.prompt' AND "
            "actor='user' LIMIT 1"
        )
        rows = fetch(self.db, sql, (base, base + first, base + last))
        return int(rows[0][0]) if rows else None

    def turns(self, session: int, first: int, last: int) -> tuple[int, int]:
        """The turns a stretch begins and ends in."""
        base = session << SEQ_BITS
        sql = "SELECT turn FROM events WHERE id BETWEEN ? AND ? AND turn > 0 ORDER BY id {} LIMIT 1"
        ends = [
            fetch(self.db, sql.format(order), (base + first, base + last))
            for order in ("ASC", "DESC")
        ]
        return (int(ends[0][0][0]), int(ends[1][0][0])) if all(ends) else (0, 0)

    def turn_end(self, session: int, seq: int) -> int:
        """The last event before a person asks for something else."""
        base = session << SEQ_BITS
        rows = fetch(
            self.db,
            "SELECT id - ? - 1 FROM events WHERE id > ? AND id <= ? AND kind='user.prompt' AND "
            "actor='user' "
            "ORDER BY id LIMIT 1",
            (base, base + seq, base + _MASK),
        )
        return int(rows[0][0]) if rows else _MASK

    def when(self, session: int, seq: int) -> int | None:
        """The time of the first event from a place on that says when it was."""
        base = session << SEQ_BITS
        sql = (
            "SELECT created_at FROM events WHERE id BETWEEN ? AND ? AND created_at IS NOT NULL "
            "ORDER BY id LIMIT 1"
        )
        rows = fetch(self.db, sql, (base + seq, base + _MASK))
        return int(rows[0][0]) if rows else None

    def others(self, sessions: list[int], since: int, until: int) -> bool:
        """Whether another session of the same project was active at some time."""
        rows = fetch(
            self.db,
            "SELECT 1 FROM sessions WHERE started_at <= ?3 AND ended_at >= ?2 AND id NOT IN "
            "(SELECT value FROM "
            "json_each(?1)) AND project_id IN (SELECT project_id FROM sessions WHERE id IN (SELECT "
            "value FROM "
            "json_each(?1))) LIMIT 1",
            (_json(sessions), since, until),
        )
        return bool(rows)

    def commands(
        self, session: int, first: int, last: int | None, names: Iterable[str]
    ) -> list[str]:
        """What was run through tools of these names."""
        base = session << SEQ_BITS
        rows = fetch(
            self.db,
            "SELECT coalesce(json_extract(data, '$.input.command'), json_extract(data, "
            "'$.input.cmd'), text) "
            "FROM events WHERE id BETWEEN ? AND ? AND kind='tool.call' AND lower(name) IN "
            "(SELECT value FROM json_each(?))",
            (base + first, base + (_MASK if last is None else last), _json(list(names))),
        )
        return [str(row[0]) for row in rows]

    def active(self, session: int, until: int) -> list[tuple[int, int]]:
        """When something was said and done in a session, piece by piece, from when to when."""
        base = session << SEQ_BITS
        sql = (
            "SELECT d.created_at, max(d.created_at, coalesce(e.created_at, 0)) FROM docs d LEFT "
            "JOIN events e ON "
            "e.id = ? + d.last_seq WHERE d.id BETWEEN ? AND ? AND d.created_at <= ?"
        )
        return [(since, to) for since, to in fetch(self.db, sql, (base, base, base + _MASK, until))]

    def acts(self, session: int) -> tuple[int, bytes] | None:
        """What linking kept of a session's acts, and up to which event."""
        rows = fetch(self.db, "SELECT last_seq, body FROM acts WHERE session_id=?", (session,))
        return (int(rows[0][0]), rows[0][1]) if rows else None

    # -- commits at large -------------------------------------------------------------------------

    def known(self, shas: Iterable[str]) -> dict[str, CommitMark]:
        """Of commits that have a story."""
        rows = fetch(
            self.db,
            "SELECT c.sha, c.evidence, json_extract(c.annotation, '$.tag'), (SELECT "
            "group_concat(DISTINCT s.agent) "
            "FROM parts q JOIN sessions s ON s.id=q.session_id WHERE q.sha=c.sha) FROM checkpoints "
            "c "
            "WHERE c.evidence IS NOT NULL AND c.sha IN (SELECT value FROM json_each(?))",
            (_json(list(shas)),),
        )
        return {
            sha: CommitMark(evidence, tag, frozenset((names or "").split(",")))
            for sha, evidence, tag, names in rows
        }

    def kept(self, project: int, since: int, limit: int) -> list[str]:
        """Commits with a story that were not replaced, newest first."""
        sql = (
            "SELECT sha FROM checkpoints WHERE project_id=? AND committed_at >= ? AND "
            "superseded_by IS NULL AND "
            "(evidence IS NOT NULL OR is_merge) ORDER BY committed_at DESC, sha LIMIT ?"
        )
        return [row[0] for row in fetch(self.db, sql, (project, since, limit))]

    def before(self, project: int, shas: Iterable[str]) -> dict[str, list[str]]:
        """What commits were before they were rewritten."""
        sql = (
            "SELECT superseded_by, sha FROM checkpoints WHERE project_id=? AND superseded_by IN "
            "(SELECT value FROM json_each(?)) ORDER BY committed_at DESC, sha"
        )
        found: dict[str, list[str]] = {}
        for heir, sha in fetch(self.db, sql, (project, _json(list(shas)))):
            found.setdefault(heir, []).append(sha)
        return found

    def group_sizes(self, roots: Iterable[str]) -> dict[str, int]:
        """How many commits each group has, replaced ones aside."""
        sql = (
            "SELECT group_root, count(*) FROM checkpoints WHERE superseded_by IS NULL AND "
            "group_root IN "
            "(SELECT value FROM json_each(?)) GROUP BY 1"
        )
        return dict(fetch(self.db, sql, (_json(list(roots)),)))

    def lately(self, project: int, since: int, limit: int) -> list[tuple[int, int]]:
        """Main sessions in which something was said since: their number, and the last event a
        commit has of it."""
        return fetch(
            self.db,
            "SELECT s.id, coalesce((SELECT max(last) FROM parts q WHERE q.session_id=s.id), 0) "
            "FROM sessions s "
            "WHERE s.project_id=? AND s.parent IS NULL AND s.ended_at > ? ORDER BY s.ended_at "
            "DESC LIMIT ?",
            (project, since, limit),
        )

    def written(self, session: int, after: int) -> set[str]:
        """Files a session wrote after an event."""
        sql = "SELECT DISTINCT path FROM touches WHERE session_id=? AND action='write' AND seq > ?"
        return {row[0] for row in fetch(self.db, sql, (session, after))}

    def sessions_since(self, project: int, since: int) -> int:
        """Main sessions in which something was said since; 0 is all."""
        sql = "SELECT count(*) FROM sessions WHERE project_id=? AND parent IS NULL"
        later = (" AND ended_at >= ?", (since,)) if since else ("", ())
        return int(fetch(self.db, sql + later[0], (project, *later[1]))[0][0])

    def begun(self, project: int) -> int | None:
        """When the first session of a project began."""
        rows = fetch(self.db, "SELECT min(started_at) FROM sessions WHERE project_id=?", (project,))
        return int(rows[0][0]) if rows[0][0] is not None else None

    def hooked(self, sha: str) -> list[tuple[str, str]]:
        """Sessions in whose process a hook saw the commit made."""
        sql = (
            "SELECT DISTINCT session_agent, session_id FROM signals WHERE sha=? AND "
            "event='post-commit' AND "
            "session_id IS NOT NULL"
        )
        return [(agent, session) for agent, session in fetch(self.db, sql, (sha,))]


def _word(role: str, row: tuple[Any, ...]) -> SpokenWord:
    seq, turn, at, text, cut = row
    return SpokenWord(role, seq, turn, at, text, bool(cut))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
