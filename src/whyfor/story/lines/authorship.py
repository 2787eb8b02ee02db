"""Who wrote the lines of a commit, in which turn, and what a person had said last by then.

The lines are those of story/lines/commit_lines.py; what was said is read only where lines come
from.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec

from whyfor.git.patch import PatchFile
from whyfor.model.checkpoints import Part
from whyfor.model.events import SpokenWord
from whyfor.model.lines import (
    AGENT,
    MODIFIED_LINE,
    PERSON,
    UNKNOWN_AUTHOR,
    CommitLines,
    LineWriter,
)
from whyfor.model.sessions import Session
from whyfor.store.open import OpenStore
from whyfor.story.lines.turn_authors import TurnReader


class TurnAuthor(msgspec.Struct, frozen=True):
    """One writing of one session."""

    session: int  # its place among the sessions of the commit
    seq: int  # 0 for what a subagent wrote
    at: int
    evidence: str
    call: str | None = None
    writer: int = 0  # the number of the session that made the call


Pens = dict[int, TurnAuthor | None]  # of one file, by the number of the line


class AuthorLabel(msgspec.Struct, frozen=True):
    """Who wrote some lines: a turn of a session, a person, or nobody we know of."""

    kind: str  # agent | modified | person | unknown
    label: str  # T2, you, ?
    agent: str = ""
    evidence: str = ""  # of an agent's line


class PromptReason(msgspec.Struct):
    """Why some lines of a hunk are there: what a person had said last when they were written."""

    who: AuthorLabel
    lines: int = 0
    session: Session | None = None
    turn: int = 0
    asked: SpokenWord | None = None  # a prompt or an answer
    question: str | None = None  # that it answers
    closing: str | None = None  # the agent's last words of that turn
    since: int | None = None  # of a person: when an agent last wrote here


class ContributingSession(msgspec.Struct, frozen=True):
    """A session that the commit has something of."""

    part: Part
    session: Session
    turns: tuple[int, int]
    letter: str  # tells sessions apart where there are several
    begins: int  # the event to read it from


class Authorship:
    """Of one commit."""

    def __init__(
        self,
        library: OpenStore,
        parts: Sequence[Part],
        files: Sequence[PatchFile],
        lines: CommitLines | None,
    ) -> None:
        self.library = library
        self.sources = [self._source(part, place, len(parts)) for place, part in enumerate(parts)]
        self.inferred = lines is not None and lines.inferred
        self._places = {source.session.id: n for n, source in enumerate(self.sources)}
        self._known = {file.path: file.by_line() for file in lines.files} if lines else {}
        self.pens = [self._pens(file) for file in files]

    def _source(self, part: Part, place: int, total: int) -> ContributingSession:
        number = self.library.sessions.numbers([(part.agent, part.session_id)])[
            part.agent, part.session_id
        ]
        session = self.library.sessions.by_number([number])[number]
        letter = chr(ord("a") + place) if total > 1 and place < 26 else ""
        turns = self.library.conversation.turns(session.id, part.first, part.last)
        begins = (
            self.library.conversation.first_request(session.id, part.first, part.last) or part.first
        )
        return ContributingSession(part, session, turns, letter, begins)

    # -- lines ------------------------------------------------------------------------------------

    def _pens(self, file: PatchFile) -> Pens:
        """Of each added line of a file, who wrote it."""
        known = self._known.get(file.path, {})
        found: Pens = {}
        for hunk in file.hunks:
            for line in hunk.lines:
                if line.sign == "+" and line.new is not None:
                    found[line.new] = self.author_of(known.get(line.new))
        return found

    def author_of(self, known: tuple[LineWriter, str] | None) -> TurnAuthor | None:
        """Return the author of a line of this commit; None if it is not known."""
        if known is None:
            return None
        writer, evidence = known
        place = self._places.get(writer.session)
        if place is None:
            return None
        return TurnAuthor(place, writer.seq, writer.at, evidence, writer.call, writer.writer)

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many added lines are whose: by agent, an agent's that somebody modified, a person's,
        nobody's we know of."""
        found: dict[str, int] = {}
        for pens in self.pens:
            for pen in pens.values():
                kind = self._kind(pen)
                name = self.sources[pen.session].part.agent if pen and kind == AGENT else kind
                found[name] = found.get(name, 0) + 1
        return found

    def _kind(self, pen: TurnAuthor | None) -> str:
        if pen is None:
            return PERSON if self.inferred else UNKNOWN_AUTHOR
        return MODIFIED_LINE if pen.evidence == MODIFIED_LINE else AGENT

    # -- what was said ----------------------------------------------------------------------------

    @cached_property
    def turns(self) -> TurnReader:
        """What was said in the sessions, from where lines of the commit come from."""
        found = TurnReader(self.library)
        for source in self.sources:
            found.expect(source.session.id, source.part.first, source.part.last)
        for known in self._known.values():
            found.expect_writers(writer for writer, _ in known.values())
        return found

    def asked(self, pen: TurnAuthor) -> SpokenWord | None:
        """What a person had said last when it was written."""
        session = self.sources[pen.session].session.id
        return self.turns.asked(session, pen.seq, pen.at)

    def who(self, pen: TurnAuthor | None) -> AuthorLabel:
        kind = self._kind(pen)
        if pen is None:
            return AuthorLabel(kind, "you" if kind == PERSON else "?")
        source, asked = self.sources[pen.session], self.asked(pen)
        changed = "~" if kind == MODIFIED_LINE else ""
        label = f"T{asked.turn if asked else '?'}{source.letter}{changed}"
        return AuthorLabel(kind, label, source.part.agent, pen.evidence)

    def because(
        self, who: AuthorLabel, pen: TurnAuthor | None, pens: Pens
    ) -> tuple[tuple[object, ...], PromptReason]:
        """Why a line is there; lines of the same reason have the same key."""
        if pen is None:
            last = max((known.at for known in pens.values() if known), default=None)
            return (who.kind,), PromptReason(who, since=last if who.kind == PERSON else None)
        source, asked = self.sources[pen.session], self.asked(pen)
        if asked is None:
            return (who.label, pen.session, None), PromptReason(who, session=source.session)
        number = source.session.id
        return (who.label, pen.session, asked.seq), PromptReason(
            who,
            session=source.session,
            turn=asked.turn,
            asked=asked,
            question=self.turns.question(number, asked),
            closing=self.turns.closing(number, asked) if asked.role != "answer" else None,
        )
