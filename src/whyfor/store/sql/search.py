"""What a search asks beside words: turns, commits, whose sessions they are; never writes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from whyfor.model.checkpoints import Annotation, LinkedCommit
from whyfor.model.events import SEQ_MASK as _MASK
from whyfor.model.query import Filters, Match, SessionOwner
from whyfor.store.sql.database import StoreDatabase, fetch, first_row
from whyfor.store.sql.filters import THREAD, as_json


class SqlSearch:
    """The part of a search that does not depend on how words are stored."""

    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def turn_of(self, session: int, key: int) -> Match | None:
        row = first_row(
            self.db,
            """
            SELECT e.id, d.turn, d.created_at
            FROM events e
            JOIN docs d ON d.id = (SELECT max(id) FROM docs WHERE id <= e.id)
            WHERE e.session_id=? AND e.key=?
            """,
            (session, key),
        )
        if row is None:
            return None
        ident, turn, created = row
        return Match(session, ident & _MASK, ident & _MASK, turn, created, 0.0)

    def commits(self, words: list[str], filters: Filters, limit: int) -> list[LinkedCommit]:
        where = ["c.evidence IS NOT NULL", "c.superseded_by IS NULL"]
        values: list[Any] = []
        for word in words:
            where.append("(c.subject LIKE ? ESCAPE '\\' OR c.annotation LIKE ? ESCAPE '\\')")
            values += [_like(word)] * 2
        if filters.projects is not None:
            where.append("c.project_id IN (SELECT value FROM json_each(?))")
            values.append(as_json(filters.projects))
        if filters.person is not None:
            where.append("c.person = ?")
            values.append(filters.person)
        for sign, limit_at in ((">=", filters.since), ("<=", filters.until)):
            if limit_at is not None:
                where.append(f"c.committed_at {sign} ?")
                values.append(limit_at)
        agents = [*filters.agents, filters.agent] if filters.agent else list(filters.agents)
        if agents or filters.branch:
            of = ["s.agent IN (SELECT value FROM json_each(?))"] if agents else []
            of += ["s.branch = ?"] if filters.branch else []
            where.append(
                "EXISTS (SELECT 1 FROM parts q JOIN sessions s ON s.id=q.session_id WHERE "
                "q.sha=c.sha "
                f"AND {' AND '.join(of)})"
            )
            values += [as_json(agents)] if agents else []
            values += [filters.branch] if filters.branch else []
        if filters.task:
            where.append(
                "EXISTS (SELECT 1 FROM parts q JOIN task_runs r ON r.session_id=q.session_id "
                "WHERE q.sha=c.sha AND r.key=?)"
            )
            values.append(filters.task)
        rows = fetch(
            self.db,
            "SELECT c.sha, c.subject, c.committed_at, c.evidence, c.confidence, p.identity, "
            "c.annotation "
            f"FROM checkpoints c JOIN projects p ON p.id=c.project_id WHERE {' AND '.join(where)} "
            "ORDER BY c.committed_at DESC, c.sha LIMIT ?",
            (*values, limit),
        )
        return [
            LinkedCommit(sha, subject, at, evidence, confidence, project, _note(note))
            for sha, subject, at, evidence, confidence, project, note in rows
        ]

    def agents_of(self, shas: list[str]) -> dict[str, list[str]]:
        sql = (
            "SELECT DISTINCT q.sha, s.agent FROM parts q JOIN sessions s ON s.id=q.session_id "
            "WHERE q.sha IN (SELECT value FROM json_each(?)) ORDER BY 1, 2"
        )
        found: dict[str, list[str]] = {}
        for sha, agent in fetch(self.db, sql, (as_json(shas),)):
            found.setdefault(sha, []).append(agent)
        return found

    def owners(self, sessions: Iterable[int]) -> dict[int, SessionOwner]:
        found: dict[int, tuple[int | None, str, int]] = {}
        asked = set(sessions)
        while asked:
            rows = fetch(
                self.db,
                f"""
                SELECT s.id, p.id, {THREAD}, s.own_from
                FROM sessions s
                LEFT JOIN sessions p ON p.agent=s.agent AND p.session_id=s.parent
                WHERE s.id IN (SELECT value FROM json_each(?))
                """,
                (as_json(sorted(asked)),),
            )
            found |= {number: (parent, thread, own) for number, parent, thread, own in rows}
            parents = {parent for parent, _, _ in found.values() if parent is not None}
            asked = parents - found.keys()
        return {number: _owner(number, found) for number in sessions if number in found}


def _owner(session: int, found: dict[int, tuple[int | None, str, int]]) -> SessionOwner:
    """Follow a session up to the main session it worked for."""
    main = session
    seen = {main}
    while (parent := found[main][0]) is not None and parent not in seen:
        main = parent
        seen.add(main)
    return SessionOwner(main, found[main][1], found[session][2])


def _like(word: str) -> str:
    for char in "\\%_":
        word = word.replace(char, "\\" + char)
    return f"%{word}%"


def _note(body: str | None) -> Annotation | None:
    return msgspec.json.decode(body, type=Annotation) if body else None
