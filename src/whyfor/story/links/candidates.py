"""Sessions that may have a part in a repository's commits, and what is known of each."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import apsw
import msgspec

from whyfor.store.sqlite.connection import fetch
from whyfor.store.sqlite.read import StoreRows
from whyfor.store.sqlite.schema import SEQ_BITS
from whyfor.story.links.activity import SessionActivity, acts, merge_activity
from whyfor.story.links.ranges import EventOutline, RangeClaim
from whyfor.story.links.ranges import outline as outlined
from whyfor.story.repositories import Repository, wrote_below


class CandidateSession(msgspec.Struct, frozen=True, array_like=True):
    id: int
    agent: str
    session_id: str
    parent: str | None
    project_id: int | None
    started_at: int | None
    ended_at: int | None
    last_seq: int
    linked: int  # how much of it earlier runs have looked at


class Candidates:
    """Sessions of the project, others that wrote below its folders, and the subagents of both."""

    def __init__(self, db: apsw.Connection, repository: Repository) -> None:
        self.db = db
        self.repository = repository
        self.rows = self._candidates()
        self.by_name = {(row.agent, row.session_id): row for row in self.rows}
        # acts read in this run, to be kept: session, last event, acts
        self.fresh: list[tuple[int, int, bytes]] = []
        self._acts: dict[int, SessionActivity] = {}
        self._outlines: dict[int, EventOutline] = {}

    @property
    def begun(self) -> int | None:
        """When the first of them began."""
        return min(
            (row.started_at for row in self.rows if row.started_at is not None), default=None
        )

    def _candidates(self) -> list[CandidateSession]:
        wrote = wrote_below(self.db, self.repository.folders)
        sql = (
            "SELECT s.id, s.agent, s.session_id, s.parent, s.project_id, s.started_at, s.ended_at, "
            "s.last_seq, "
            "coalesce(l.last_seq, -1) FROM sessions s LEFT JOIN linked l ON l.session_id=s.id AND "
            "l.project_id=? "
        )
        number = self.repository.id
        listed = msgspec.json.encode(sorted(wrote)).decode()
        rows = fetch(
            self.db,
            sql
            + "WHERE s.project_id=? OR s.id IN (SELECT value FROM json_each(?)) OR s.session_id IN "
            "(SELECT parent FROM sessions WHERE id IN (SELECT value FROM json_each(?)))",
            (number, number, listed, listed),
        )
        return [CandidateSession(*row) for row in rows]

    def find(self, agent: str, session_id: str) -> CandidateSession | None:
        """A main session by name; it need not be of this project."""
        row = self.by_name.get((agent, session_id))
        if row is None:
            rows = fetch(
                self.db,
                "SELECT id, agent, session_id, parent, project_id, started_at, ended_at, last_seq, "
                "-1 FROM sessions "
                "WHERE agent=? AND session_id=?",
                (agent, session_id),
            )
            if not rows:
                return None
            row = CandidateSession(*rows[0])
            self.rows.append(row)
            self.by_name[agent, session_id] = row
        return self.main(row)

    def main(self, row: CandidateSession) -> CandidateSession:
        """The session a subagent worked for; itself if it is none, or if its parent is not here."""
        seen = {row.id}
        while (
            row.parent is not None
            and (above := self.by_name.get((row.agent, row.parent)))
            and above.id not in seen
        ):
            row = above
            seen.add(row.id)
        return row

    def acts_of(self, row: CandidateSession) -> SessionActivity:
        found = self._acts.get(row.id)
        if found is None:
            kept = fetch(self.db, "SELECT last_seq, body FROM acts WHERE session_id=?", (row.id,))
            last, body = kept[0] if kept else (0, None)
            found = (
                msgspec.msgpack.decode(body, type=SessionActivity)
                if body is not None
                else SessionActivity()
            )
            if last < row.last_seq:
                found = acts(StoreRows(self.db).events(row.id, last + 1), found)
                self.fresh.append((row.id, row.last_seq, msgspec.msgpack.encode(found)))
            self._acts[row.id] = found
        return found

    def outline(self, session: int) -> EventOutline:
        if session not in self._outlines:
            base = session << SEQ_BITS
            rows: Any = self.db.execute(
                "SELECT id - ?, turn, kind, actor, created_at FROM events WHERE id BETWEEN ? AND ?",
                (base, base, base + (1 << SEQ_BITS) - 1),
            )
            self._outlines[session] = outlined(rows)
        return self._outlines[session]

    def since(self, since: int) -> tuple[dict[int, SessionActivity], set[int]]:
        """Acts of main sessions, those of their subagents among them; and which of them ran
        elsewhere."""
        groups: dict[int, list[SessionActivity]] = {}
        foreign: set[int] = set()
        for row in self.rows:
            if row.ended_at is not None and row.ended_at < since:
                continue
            main = self.main(row)
            own = self.acts_of(row)
            if main.id != row.id:
                shape = self.outline(main.id)
                own = own.placed(shape.at)
            groups.setdefault(main.id, []).append(own)
            if main.project_id != self.repository.id:
                foreign.add(main.id)
        return {number: merge_activity(own) for number, own in groups.items()}, foreign

    @cached_property
    def news_since(self) -> int | None:
        """The time of the earliest thing a session did that no run has looked at."""
        times = [
            act.at
            for row in self.rows
            if row.linked < row.last_seq
            for act in self.acts_of(row).since(row.linked)
        ]
        times += [
            row.started_at for row in self.rows if row.linked < 0 and row.started_at is not None
        ]
        return min(times) if times else None

    def inherited(self, session: int, claims: list[RangeClaim]) -> int:
        """Where that part of a fork ends which it was given by another session, and which has
        its story there."""
        origins = fetch(
            self.db,
            "SELECT o.id FROM sessions s JOIN sessions o ON o.session_id=s.forked_from WHERE "
            "s.id=?1 UNION "
            "SELECT b.session_id FROM usage a JOIN usage b ON b.key=a.key AND b.counts WHERE "
            "a.session_id=?1 AND NOT "
            # not every fork says that it is one, but what was paid for is not paid for again
            "a.counts",
            (session,),
        )
        own = self._spoken(session) if origins else {}
        ends = [0]
        for (origin,) in origins:
            copies = {seq: own[line] for line, seq in self._spoken(origin).items() if line in own}
            cuts = {
                row[0]
                for row in fetch(self.db, "SELECT cut FROM parts WHERE session_id=?", (origin,))
            }
            cuts |= {claim.cut for claim in claims if claim.session == origin}
            if told := [cut for cut in cuts if cut <= max(copies, default=0)]:
                end = self.outline(origin).turn_end(max(told))
                ends += [copy for seq, copy in copies.items() if seq <= end]
        return max(ends)

    def _spoken(self, session: int) -> dict[tuple[int, str, str], int]:
        """By what an event is known again in a copy."""
        base = session << SEQ_BITS
        rows = fetch(
            self.db,
            "SELECT created_at, kind, text, id - ? FROM events WHERE id BETWEEN ? AND ? AND "
            "created_at IS NOT NULL AND "
            "kind IN ('user.prompt', 'assistant.message', 'tool.call', 'tool.result', "
            "'turn.completed')",
            (base, base, base + (1 << SEQ_BITS) - 1),
        )
        return {(at, kind, text): seq for at, kind, text, seq in rows}
