"""Who wrote the lines of a commit, in which turn, and what a person had said last by then.

What linking kept of the sessions' acts is set against the lines; what was said is read only
where lines come from.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from whyfor.agents.tools import names_of
from whyfor.git.patch import Hunk, PatchFile, PatchLine
from whyfor.model.checkpoints import Part
from whyfor.model.events import SpokenWord
from whyfor.model.sessions import Session
from whyfor.model.stories import Commit
from whyfor.store.open import OpenStore
from whyfor.story.links.activity import SessionActivity, acts
from whyfor.story.links.attribution import (
    BELOW,
    LineAuthor,
    LinkedWrites,
    SessionWrites,
    file_authors,
    traced,
)
from whyfor.story.links.by_content import SLACK
from whyfor.story.links.line_keys import LineKeys
from whyfor.story.links.paths import Places

AGENT, PERSON, UNKNOWN = "agent", "person", "unknown"
Pens = dict[int, LineAuthor | None]  # of one file, by the number of the line


class AuthorLabel(msgspec.Struct, frozen=True):
    """Who wrote some lines: a turn of a session, a person, or nobody we know of."""

    kind: str  # agent | person | unknown
    label: str  # T2, you, ?
    agent: str = ""


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
        commit: Commit,
        parts: Sequence[Part],
        files: Sequence[PatchFile],
        folders: Iterable[str],
    ) -> None:
        self.library = library
        self.commit = commit
        self.sources = [self._source(part, place, len(parts)) for place, part in enumerate(parts)]
        self.children = [self._children(source.session) for source in self.sources]
        self.acts = [self._kept(source.session.id, source.part.last) for source in self.sources]
        self.acts_below = [[self._kept(child.id) for child in own] for own in self.children]
        places = Places(folders)
        lines = self._line_sources()
        self.pens = [self._pens(file, lines, places) for file in files]

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

    def _children(self, session: Session) -> list[Session]:
        return [
            child
            for child in self.library.sessions.children([session.session_id])
            if child.agent == session.agent
        ]

    def _kept(self, session: int, last: int | None = None) -> SessionActivity:
        """As linking kept them, and what came since, as far as it matters here."""
        kept = self.library.links.activity(session)
        known = msgspec.msgpack.decode(kept[1], type=SessionActivity) if kept else SessionActivity()
        after = kept[0] if kept else 0
        if last is None or after < last:
            known = acts(
                self.library.conversation.events(
                    session, after + 1, *([] if last is None else [last])
                ),
                known,
            )
        return known

    # -- lines ------------------------------------------------------------------------------------

    def _pens(self, file: PatchFile, sources: list[LinkedWrites], places: Places) -> Pens:
        blocks = [block for hunk in file.hunks for block in _blocks(hunk)]
        keyed = [LineKeys.of(line.text for line in block) for block in blocks]
        paths = (file.path, file.old_path)
        known = file_authors(sources, self.commit, paths, keyed, places)
        found: Pens = {}
        for block, own in zip(blocks, known, strict=True):
            for line, pen in zip(block, own, strict=True):
                if line.new is not None:
                    found[line.new] = pen
        return found

    def _line_sources(self) -> list[LinkedWrites]:
        found = []
        for source, own, below in zip(self.sources, self.acts, self.acts_below, strict=True):
            written = [act for child in below for act in child.written]
            writes = SessionWrites(own.written, written)
            found.append(LinkedWrites(source.session.id, writes, source.part.last))
        return found

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many added lines are whose: by agent, of a person, of nobody known."""
        found: dict[str, int] = {}
        for pens in self.pens:
            for pen in pens.values():
                name = (
                    self.sources[pen.session].part.agent
                    if pen
                    else PERSON
                    if self.traced
                    else UNKNOWN
                )
                found[name] = found.get(name, 0) + 1
        return found

    @cached_property
    def traced(self) -> bool:
        """Whether what no session wrote must be a person's: nothing ran here that writes without
        a trace."""
        if not self.sources:
            return False
        own = [(source.session.id, source.part.first, source.part.last) for source in self.sources]
        below = [(child.id, 0, None) for children in self.children for child in children]
        shells = names_of("shell")
        if not all(
            traced(self.library.conversation.commands(*span, shells)) for span in (*own, *below)
        ):
            return False
        begun = [
            at
            for session, first, _ in own
            if (at := self.library.conversation.time_from(session, first)) is not None
        ]
        known = [session for session, *_ in (*own, *below)]
        return bool(begun) and not self.library.sessions.others_active(
            known, min(begun), self.commit.committed_at + SLACK
        )

    # -- what was said ----------------------------------------------------------------------------

    @cached_property
    def words(self) -> list[list[SpokenWord]]:
        """Of each session, from where its first line in the commit was written to the last words
        after it."""
        return [self._words(number, source) for number, source in enumerate(self.sources)]

    def _words(self, number: int, source: ContributingSession) -> list[SpokenWord]:
        used = [
            pen.seq for pens in self.pens for pen in pens.values() if pen and pen.session == number
        ]
        first = min([seq for seq in used if seq != BELOW] + [source.part.first])
        session = source.session.id
        begin = self.library.conversation.prompt_before(session, first + 1) or first
        return self.library.conversation.words(
            session, begin, self.library.conversation.turn_end(session, source.part.last)
        )

    @cached_property
    def _people(self) -> list[list[SpokenWord]]:
        return [[word for word in words if word.by == "person"] for words in self.words]

    def _asked(self, pen: LineAuthor) -> SpokenWord | None:
        """What a person had said last when it was written."""
        said = self._people[pen.session]
        if pen.seq == BELOW:
            return next(
                (word for word in reversed(said) if word.at is not None and word.at <= pen.at), None
            )
        at = bisect_right(said, pen.seq, key=lambda word: word.seq)
        return said[at - 1] if at else None

    def who(self, pen: LineAuthor | None) -> AuthorLabel:
        if pen is None:
            return AuthorLabel(PERSON, "you") if self.traced else AuthorLabel(UNKNOWN, "?")
        source, asked = self.sources[pen.session], self._asked(pen)
        return AuthorLabel(
            AGENT, f"T{asked.turn if asked else '?'}{source.letter}", source.part.agent
        )

    def because(
        self, who: AuthorLabel, pen: LineAuthor | None, pens: Pens
    ) -> tuple[tuple[object, ...], PromptReason]:
        """Why a line is there; lines of the same reason have the same key."""
        if pen is None:
            last = max((known.at for known in pens.values() if known), default=None)
            return (who.kind,), PromptReason(who, since=last if who.kind == PERSON else None)
        source, asked = self.sources[pen.session], self._asked(pen)
        if asked is None:
            return (pen.session, None), PromptReason(who, session=source.session)
        words = [word for word in self.words[pen.session] if word.turn == asked.turn]
        question = [word.text for word in words if word.role == "question" and word.seq < asked.seq]
        closing = [word.text for word in words if word.role == "closing words"]
        answer = asked.role == "answer"
        return (pen.session, asked.seq), PromptReason(
            who,
            session=source.session,
            turn=asked.turn,
            asked=asked,
            question=question[-1] if answer and question else None,
            closing=closing[-1] if closing and not answer else None,
        )


def _blocks(hunk: Hunk) -> Iterator[list[PatchLine]]:
    """Added lines that stand together."""
    block: list[PatchLine] = []
    for line in hunk.lines:
        if line.sign == "+":
            block.append(line)
        elif block and line.sign == " ":
            yield block
            block = []
    if block:
        yield block
