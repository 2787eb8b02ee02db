"""Checkpoints and what they rest on: signals, links, overrides, notes, aliases. Writes in the
caller's transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from whyfor.model.checkpoints import (
    Annotation,
    ChangedFile,
    Checkpoint,
    CommitMark,
    Note,
    Part,
    SeenCommit,
    StoryTitle,
)
from whyfor.model.events import SEQ_BITS
from whyfor.model.sessions import Tokens
from whyfor.store.journal import NoteEntry, OverrideEntry
from whyfor.store.sql.changes import ChangeLog, put_mark
from whyfor.store.sql.database import StoreDatabase, fetch, first_row, value
from whyfor.store.sql.filters import as_json

_CHECKPOINT = (
    "c.sha, p.identity, c.subject, c.author, c.email, c.authored_at, c.committed_at, c.parents, "
    "c.is_merge, "
    "c.patch_id, c.files, c.evidence, c.confidence, c.group_root, c.superseded_by, c.annotation, "
    "c.squashed_from"
)
_FROM = "FROM checkpoints c JOIN projects p ON p.id=c.project_id"
# of Part and of the table, in this order
_PART = (
    "evidence confidence role cut first last messages new_messages prompts turns continued lines "
    "share why pieces"
).split()
_decode = msgspec.json.decode


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


class SqlCheckpoints:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def _all(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        return fetch(self.db, sql, values)

    # -- reading ---------------------------------------------------------------------------------

    def of_commits(self, shas: Iterable[str]) -> dict[str, Checkpoint]:
        return self._checkpoints(
            "c.sha IN (SELECT value FROM json_each(?))", (_encode(list(shas)),)
        )

    def like(self, project: int, since: int, patches: list[str]) -> dict[str, Checkpoint]:
        return self._checkpoints(
            "c.project_id=? AND (c.committed_at >= ? AND c.authored_at >= ? OR c.patch_id IN "
            "(SELECT value FROM json_each(?)))",
            (project, since, since, _encode(patches)),
        )

    def live(self, project: int) -> list[str]:
        sql = (
            "SELECT sha FROM checkpoints WHERE project_id=? AND evidence IS NOT NULL AND "
            "superseded_by IS NULL"
        )
        return [row[0] for row in self._all(sql, (project,))]

    def of_sessions(self, sessions: Iterable[int]) -> dict[str, Checkpoint]:
        return self._checkpoints(
            "c.sha IN (SELECT sha FROM parts WHERE session_id IN (SELECT value FROM json_each(?)))",
            (_encode(list(sessions)),),
        )

    def all(self) -> dict[str, Checkpoint]:
        return self._checkpoints("TRUE", ())

    def of_group(self, root: str) -> dict[str, Checkpoint]:
        return self._checkpoints("c.group_root=?", (root,))

    def beginning(self, column: str, text: str) -> list[str]:
        assert column in ("sha", "id")
        sql = f"SELECT sha FROM checkpoints WHERE {column} >= ? AND {column} < ? LIMIT 10"
        return [row[0] for row in self._all(sql, (text, text + "\U0010ffff"))] if text else []

    def _checkpoints(self, where: str, values: tuple[Any, ...]) -> dict[str, Checkpoint]:
        """Oldest first."""
        rows = self._all(
            f"SELECT {_CHECKPOINT} {_FROM} WHERE {where} ORDER BY c.committed_at, c.sha", values
        )
        parts = self._parts([row[0] for row in rows])
        return {row[0]: _checkpoint(row, parts.get(row[0], [])) for row in rows}

    def _parts(self, shas: list[str]) -> dict[str, list[Part]]:
        found: dict[str, list[Part]] = {}
        sql = (
            f"SELECT q.sha, s.agent, s.session_id, {', '.join('q.' + name for name in _PART)} FROM "
            "parts q "
            "JOIN sessions s ON s.id=q.session_id WHERE q.sha IN (SELECT value FROM json_each(?)) "
            "ORDER BY q.sha, q.evidence<>'person', q.evidence<>'hook', q.evidence<>'output', "
            "q.lines DESC, q.session_id"
        )
        for sha, agent, session_id, *rest in self._all(sql, (_encode(shas),)):
            values = dict(zip(_PART, rest, strict=True))
            values["continued"] = bool(values["continued"])
            values["pieces"] = _decode(values["pieces"], type=tuple[tuple[int, int], ...])
            found.setdefault(sha, []).append(Part(agent=agent, session_id=session_id, **values))
        return found

    def seen(self, shas: Iterable[str]) -> dict[str, tuple[str | None, list[dict[str, Any]]]]:
        sql = (
            "SELECT sha, reason, nearby FROM commits WHERE sha IN (SELECT value FROM json_each(?))"
        )
        return {
            sha: (reason, _decode(nearby) if nearby else [])
            for sha, reason, nearby in self._all(sql, (_encode(list(shas)),))
        }

    def notes(self, shas: Iterable[str]) -> dict[str, tuple[str, Note]]:
        sql = (
            "SELECT sha, by, body FROM notes WHERE sha IN (SELECT value FROM json_each(?)) ORDER "
            "BY at"
        )
        found: dict[str, tuple[str, Note]] = {}
        for sha, by, body in self._all(sql, (_encode(list(shas)),)):
            note = _decode(body, type=Note)
            if sha in found:
                known = msgspec.structs.asdict(found[sha][1])
                said = {
                    name: value
                    for name, value in msgspec.structs.asdict(note).items()
                    if value is not None
                }
                note = Note(**{**known, **said})
            found[sha] = (by, note)
        return found

    def overrides(self, shas: Iterable[str]) -> dict[str, list[tuple[str, str, str]]]:
        sql = (
            "SELECT sha, agent, session_id, action FROM overrides WHERE sha IN (SELECT value FROM "
            "json_each(?))"
        )
        found: dict[str, list[tuple[str, str, str]]] = {}
        for sha, agent, session_id, action in self._all(sql, (_encode(list(shas)),)):
            found.setdefault(sha, []).append((agent, session_id, action))
        return found

    def unlinked(self, shas: Iterable[str]) -> list[OverrideEntry]:
        among = "sha IN (SELECT value FROM json_each(?))"
        return self._unlinked(among, (_encode(list(shas)),))

    def unlinked_from(self, agent: str, session_id: str) -> list[OverrideEntry]:
        return self._unlinked("agent=? AND session_id=?", (agent, session_id))

    def _unlinked(self, among: str, asked: tuple[Any, ...]) -> list[OverrideEntry]:
        sql = (
            "SELECT sha, agent, session_id, action, at FROM overrides "
            f"WHERE action='unlink' AND {among} ORDER BY at, sha"
        )
        return [OverrideEntry(*row) for row in self._all(sql, asked)]

    def said(self, shas: Iterable[str]) -> list[OverrideEntry | NoteEntry]:
        return self._said(
            "WHERE sha IN (SELECT value FROM json_each(?)) ORDER BY at", (_encode(list(shas)),)
        )

    def all_said(self) -> list[OverrideEntry | NoteEntry]:
        return self._said("ORDER BY at", ())

    def _said(self, among: str, asked: tuple[Any, ...]) -> list[OverrideEntry | NoteEntry]:
        overrides = self._all(
            f"SELECT sha, agent, session_id, action, at FROM overrides {among}", asked
        )
        notes = self._all(f"SELECT sha, by, at, body FROM notes {among}", asked)
        return [
            *(OverrideEntry(*row) for row in overrides),
            *(NoteEntry(sha, by, at, _decode(body, type=Note)) for sha, by, at, body in notes),
        ]

    def spent(self, spans: Iterable[tuple[int, int, int]]) -> Tokens:
        total: list[int | None] = [None] * 7
        for session, first_seq, last_seq in spans:
            begun = self._when(session, first_seq) if first_seq > 1 else None
            beyond = self._when(session, last_seq + 1)
            rows = self._all(
                "SELECT input, cache_read, cache_write, output, reasoning, cost, partial "
                "FROM usage WHERE counts AND "
                "(session_id=? OR session_id IN (SELECT c.id FROM sessions c JOIN sessions m ON "
                "c.parent=m.session_id "
                "AND c.agent=m.agent WHERE m.id=?)) "
                "AND (CAST(? AS BIGINT) IS NULL OR created_at >= ?) "
                "AND (CAST(? AS BIGINT) IS NULL OR created_at < ?)",
                (session, session, begun, begun, beyond, beyond),
            )
            for row in rows:
                total = [
                    b if a is None else a if b is None else a + b
                    for a, b in zip(total, row, strict=True)
                ]
        return Tokens(*total)

    def _when(self, session: int, seq: int) -> int | None:
        """The time of the first event from a place on that says when it was."""
        base = session << SEQ_BITS
        row = first_row(
            self.db,
            "SELECT created_at FROM events WHERE id BETWEEN ? AND ? AND created_at IS NOT NULL "
            "ORDER BY id LIMIT 1",
            (base + seq, base + (1 << SEQ_BITS) - 1),
        )
        return int(row[0]) if row else None

    def mark(self, name: str) -> int:
        row = first_row(self.db, "SELECT value FROM marks WHERE name=?", (name,))
        return int(row[0]) if row else 0

    def known(self, shas: Iterable[str]) -> dict[str, CommitMark]:
        rows = fetch(
            self.db,
            """
            SELECT c.sha, c.evidence, c.annotation ->> '$.tag', s.agent, s.branch
            FROM checkpoints c
            LEFT JOIN parts q ON q.sha=c.sha
            LEFT JOIN sessions s ON s.id=q.session_id
            WHERE c.evidence IS NOT NULL AND c.sha IN (SELECT value FROM json_each(?))
            """,
            (as_json(list(shas)),),
        )
        found: dict[str, tuple[str | None, str | None, set[str], set[str]]] = {}
        for sha, evidence, tag, agent, branch in rows:
            _, _, agents, branches = found.setdefault(sha, (evidence, tag, set(), set()))
            agents.update([agent] if agent else [])
            branches.update([branch] if branch else [])
        return {
            sha: CommitMark(evidence, tag, frozenset(agents), frozenset(branches))
            for sha, (evidence, tag, agents, branches) in found.items()
        }

    def author_dates(self, project: int) -> set[int]:
        sql = "SELECT authored_at FROM checkpoints WHERE project_id=? AND evidence IS NOT NULL"
        return {at for (at,) in self._all(sql, (project,))}

    def kept_since(self, project: int, since: int, limit: int) -> list[str]:
        sql = (
            "SELECT sha FROM checkpoints WHERE project_id=? AND committed_at >= ? AND "
            "superseded_by IS NULL AND "
            "(evidence IS NOT NULL OR is_merge) ORDER BY committed_at DESC, sha LIMIT ?"
        )
        return [row[0] for row in fetch(self.db, sql, (project, since, limit))]

    def rewritten_from(self, project: int, shas: Iterable[str]) -> dict[str, list[str]]:
        sql = (
            "SELECT superseded_by, sha FROM checkpoints WHERE project_id=? AND superseded_by IN "
            "(SELECT value FROM json_each(?)) ORDER BY committed_at DESC, sha"
        )
        found: dict[str, list[str]] = {}
        for heir, sha in fetch(self.db, sql, (project, as_json(list(shas)))):
            found.setdefault(heir, []).append(sha)
        return found

    def group_sizes(self, roots: Iterable[str]) -> dict[str, int]:
        sql = (
            "SELECT group_root, count(*) FROM checkpoints WHERE superseded_by IS NULL AND "
            "group_root IN "
            "(SELECT value FROM json_each(?)) GROUP BY 1"
        )
        return dict(fetch(self.db, sql, (as_json(list(roots)),)))

    def project_of(self, sha: str) -> int | None:
        sql = (
            "SELECT project_id FROM checkpoints WHERE sha=?1 UNION SELECT project_id FROM commits "
            "WHERE sha=?1"
        )
        rows = fetch(self.db, sql, (sha,))
        return int(rows[0][0]) if rows else None

    def committed(self, sessions: list[int]) -> dict[int, int]:
        sql = (
            "SELECT p.session_id, count(*) FROM parts p JOIN checkpoints c ON c.sha=p.sha "
            "WHERE c.superseded_by IS NULL AND p.session_id IN (SELECT value FROM json_each(?)) "
            "GROUP BY 1"
        )
        return dict(fetch(self.db, sql, (str(sessions),)))

    def cuts(self, session: int) -> set[int]:
        rows = fetch(self.db, "SELECT cut FROM parts WHERE session_id=?", (session,))
        return {cut for (cut,) in rows}

    def last_linked(self, session: int) -> int:
        sql = "SELECT coalesce(max(last), 0) FROM parts WHERE session_id=?"
        return int(value(self.db, sql, (session,)))

    def titles(self) -> list[StoryTitle]:
        rows = fetch(
            self.db,
            """
            SELECT sha, id, coalesce(annotation ->> 'title', subject)
            FROM checkpoints
            WHERE evidence IS NOT NULL
            """,
        )
        return [StoryTitle(*row) for row in rows]

    # -- writing ---------------------------------------------------------------------------------

    def save(self, project: int, checkpoint: Checkpoint) -> None:
        before = self._clear(checkpoint.commit)[1]
        self.db.execute(
            "INSERT INTO checkpoints VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                checkpoint.commit,
                checkpoint.id,
                project,
                checkpoint.subject,
                checkpoint.author,
                checkpoint.email,
                checkpoint.authored_at,
                checkpoint.committed_at,
                _encode(checkpoint.parents),
                checkpoint.is_merge,
                checkpoint.patch_id,
                _encode(checkpoint.files),
                checkpoint.evidence,
                checkpoint.confidence,
                checkpoint.group_root,
                checkpoint.superseded_by,
                _encode(checkpoint.annotation) if checkpoint.annotation else None,
                _encode(checkpoint.squashed_from),
            ),
        )
        marks = ", ".join("?" * len(_PART))
        for part in checkpoint.parts:
            self.db.execute(
                f"INSERT INTO parts(sha, session_id, {', '.join(_PART)}) SELECT ?, id, {marks} "
                "FROM sessions "
                "WHERE agent=? AND session_id=?",
                (
                    checkpoint.commit,
                    *_part_values(part),
                    part.agent,
                    part.session_id,
                ),
            )
        sessions = before | self._told_by(checkpoint.commit)
        ChangeLog(self.db).add_story(checkpoint.commit, project, sessions)
        self._outdate_notes(sessions)

    def remove(self, commit: str) -> None:
        project, before = self._clear(commit)
        if project is not None:
            ChangeLog(self.db).add_story(commit, project, before)
            self._outdate_notes(before)

    def _outdate_notes(self, sessions: set[int]) -> None:
        """Have the notes of sessions made again: those from commits are others now."""
        self.db.executemany(
            "UPDATE memories SET version=-1 WHERE session_id=?", [(each,) for each in sessions]
        )

    def _clear(self, commit: str) -> tuple[int | None, set[int]]:
        """Delete what is stored of a commit; return its project and the sessions that had a part in
        it."""
        row = first_row(self.db, "SELECT project_id FROM checkpoints WHERE sha=?", (commit,))
        sessions = self._told_by(commit)
        self.db.execute("DELETE FROM checkpoints WHERE sha=?", (commit,))
        self.db.execute("DELETE FROM parts WHERE sha=?", (commit,))
        return (int(row[0]) if row else None), sessions

    def _told_by(self, commit: str) -> set[int]:
        return {row[0] for row in self._all("SELECT session_id FROM parts WHERE sha=?", (commit,))}

    def saw(self, project: int, rows: Iterable[SeenCommit]) -> None:
        self.db.executemany(
            """
            INSERT INTO commits(project_id, sha, authored_at, committed_at, reason, nearby)
            VALUES(?,?,?,?,?,?)
            ON CONFLICT(sha) DO UPDATE SET
              project_id=excluded.project_id, authored_at=excluded.authored_at,
              committed_at=excluded.committed_at, reason=excluded.reason, nearby=excluded.nearby
            """,
            [(project, *row) for row in rows],
        )

    def set_mark(self, name: str, value: int) -> None:
        put_mark(self.db, name, value)

    def override(self, entry: OverrideEntry) -> None:
        self.db.execute(
            """
            INSERT INTO overrides VALUES(?,?,?,?,?)
            ON CONFLICT(sha, agent, session_id) DO UPDATE SET action=excluded.action, at=excluded.at
            """,
            (entry.commit, entry.agent, entry.session_id, entry.action, entry.at),
        )

    def note(self, entry: NoteEntry) -> None:
        self.db.execute(
            """
            INSERT INTO notes VALUES(?,?,?,?)
            ON CONFLICT(sha, at) DO UPDATE SET by=excluded.by, body=excluded.body
            """,
            (entry.commit, entry.at, entry.by, _encode(entry.note)),
        )


def _checkpoint(row: tuple[Any, ...], parts: list[Part]) -> Checkpoint:
    (
        sha,
        project,
        subject,
        author,
        email,
        authored,
        committed,
        parents,
        merge,
        patch,
        files,
        *rest,
    ) = row
    evidence, confidence, root, superseded, annotation, squashed_from = rest
    return Checkpoint(
        commit=sha,
        project=project,
        subject=subject,
        author=author,
        email=email,
        authored_at=authored,
        committed_at=committed,
        parents=_decode(parents),
        is_merge=bool(merge),
        patch_id=patch,
        files=_decode(files, type=list[ChangedFile]),
        parts=parts,
        evidence=evidence,
        confidence=confidence,
        group_root=root,
        superseded_by=superseded,
        annotation=_decode(annotation, type=Annotation) if annotation else None,
        squashed_from=_decode(squashed_from, type=list[str]),
    )


def _part_values(part: Part) -> list[Any]:
    values = [getattr(part, name) for name in _PART]
    return [_encode(value) if isinstance(value, tuple) else value for value in values]
