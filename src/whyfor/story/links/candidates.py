"""Sessions that may have a part in a repository's commits, and what is known of each."""

from __future__ import annotations

from functools import cached_property

import msgspec

from whyfor.model.sessions import CandidateSession
from whyfor.store.protocol import Store
from whyfor.story.links.activity import (
    CommitCommand,
    SessionActivity,
    WrittenEdit,
    acts,
    merge_activity,
)
from whyfor.story.links.ranges import EventOutline, RangeClaim
from whyfor.story.links.ranges import outline as outlined
from whyfor.story.links.shell_records import ShellRecords, with_records
from whyfor.story.repositories import Repository


class Candidates:
    """Sessions of the project, others that wrote below its folders, and the subagents of both."""

    def __init__(self, store: Store, repository: Repository) -> None:
        self.store = store
        self.repository = repository
        self.rows = self._candidates()
        self.by_name = {(row.agent, row.session_id): row for row in self.rows}
        # acts read in this run, to be kept: session, last event, acts
        self.fresh: list[tuple[int, int, bytes]] = []
        self._acts: dict[int, SessionActivity] = {}
        self._shells = ShellRecords(store)
        self._outlines: dict[int, EventOutline] = {}

    @property
    def begun(self) -> int | None:
        """When the first of them began."""
        return min(
            (row.started_at for row in self.rows if row.started_at is not None), default=None
        )

    def _candidates(self) -> list[CandidateSession]:
        wrote = self.store.sessions.writing_below(self.repository.folders)
        return self.store.links.candidates(self.repository.id, wrote)

    def find(self, agent: str, session_id: str) -> CandidateSession | None:
        """A main session by name; it need not be of this project."""
        row = self.by_name.get((agent, session_id))
        if row is None:
            row = self.store.links.candidate(agent, session_id)
            if row is None:
                return None
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

    def children(self, row: CandidateSession) -> list[CandidateSession]:
        """The subagents that a session called."""
        return self._called_by.get((row.agent, row.session_id), [])

    @cached_property
    def _called_by(self) -> dict[tuple[str, str], list[CandidateSession]]:
        found: dict[tuple[str, str], list[CandidateSession]] = {}
        for row in self.rows:
            if row.parent is not None:
                found.setdefault((row.agent, row.parent), []).append(row)
        return found

    def acts_of(self, row: CandidateSession) -> SessionActivity:
        found = self._acts.get(row.id)
        if found is None:
            last, body = self.store.links.activity(row.id) or (0, None)
            found = (
                msgspec.msgpack.decode(body, type=SessionActivity)
                if body is not None
                else SessionActivity()
            )
            if last < row.last_seq:
                found = acts(self.store.conversation.events(row.id, last + 1), found)
                self.fresh.append((row.id, row.last_seq, msgspec.msgpack.encode(found)))
            if row.given:
                found = found.after(row.given)
            found = with_records(found, self._shells.of(row.id))
            self._acts[row.id] = found
        return found

    def outline(self, session: int) -> EventOutline:
        if session not in self._outlines:
            self._outlines[session] = outlined(self.store.conversation.moments(session))
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
    def news(self) -> list[WrittenEdit | CommitCommand]:
        """What sessions did that no run has looked at."""
        found: list[WrittenEdit | CommitCommand] = []
        for row in self.rows:
            if row.linked < row.last_seq:
                found += self.acts_of(row).since(row.linked)
        return found

    @cached_property
    def news_since(self) -> int | None:
        """The time of the earliest thing a session did that no run has looked at."""
        times = [act.at for act in self.news]
        times += [
            row.started_at for row in self.rows if row.linked < 0 and row.started_at is not None
        ]
        return min(times) if times else None

    def inherited(self, session: int, claims: list[RangeClaim]) -> int:
        """Where that part of a fork ends which it was given by another session, and which has
        its story there."""
        origins = self.store.links.origins(session)
        spoken = self.store.conversation.copied_marks
        own = spoken(session) if origins else {}
        ends = [next((row.given for row in self.rows if row.id == session), 0)]
        for origin in origins:
            copies = {seq: own[line] for line, seq in spoken(origin).items() if line in own}
            cuts = self.store.checkpoints.cuts(origin)
            cuts |= {claim.cut for claim in claims if claim.session == origin}
            if told := [cut for cut in cuts if cut <= max(copies, default=0)]:
                end = self.outline(origin).turn_end(max(told))
                ends += [copy for seq, copy in copies.items() if seq <= end]
        return max(ends)
