"""In which turn an edit was made, and what a person had said last by then: the same answer for a
commit's page, a line and a list of lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from whyfor.model.events import SpokenWord
from whyfor.model.lines import LineWriter
from whyfor.store.protocol import SharedStore
from whyfor.story.links.attribution import BELOW


class TurnReader:
    """Reads what was said in sessions, as far as lines come from there."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._spans: dict[int, tuple[int, int]] = {}
        self._words: dict[int, list[SpokenWord]] = {}
        self._people: dict[int, list[SpokenWord]] = {}

    def expect(self, session: int, first: int, last: int) -> None:
        """Say that a stretch of a session will be asked about; best before anything is asked."""
        known = self._spans.get(session)
        if known is not None:
            first, last = min(first, known[0]), max(last, known[1])
        if (first, last) != known:
            self._spans[session] = (first, last)
            self._words.pop(session, None)
            self._people.pop(session, None)

    def expect_writers(self, writers: Iterable[LineWriter]) -> None:
        """The same for edits."""
        for writer in writers:
            if writer.seq != BELOW:
                self.expect(writer.session, writer.seq, writer.seq)
            elif writer.session not in self._spans:
                self.expect(writer.session, 1, self._store.conversation.last_seq(writer.session))

    def words(self, session: int) -> list[SpokenWord]:
        """What was said from the request of the first edit to the end of the turn of the last."""
        if session not in self._words:
            first, last = self._spans.get(session, (1, 1))
            talk = self._store.conversation
            begin = talk.prompt_before(session, first + 1) or first
            self._words[session] = talk.words(session, begin, talk.turn_end(session, last))
            people = [word for word in self._words[session] if word.by == "person"]
            self._people[session] = people
        return self._words[session]

    def asked(self, session: int, seq: int, at: int) -> SpokenWord | None:
        """What a person had said last when something was written; None if that is not kept. What a
        subagent wrote is placed by its time."""
        self.words(session)
        said = self._people[session]
        if seq == BELOW:
            before = [word for word in said if word.at is not None and word.at <= at]
            return before[-1] if before else None
        place = bisect_right(said, seq, key=lambda word: word.seq)
        return said[place - 1] if place else None

    def question(self, session: int, asked: SpokenWord) -> str | None:
        """The question that a person's answer answers; None if it is no answer."""
        if asked.role != "answer":
            return None
        found = None
        for word in self.words(session):
            if word.turn == asked.turn and word.role == "question" and word.seq < asked.seq:
                found = word.text
        return found

    def closing(self, session: int, asked: SpokenWord) -> str | None:
        """The agent's last words of the turn."""
        found = None
        for word in self.words(session):
            if word.turn == asked.turn and word.role == "closing words":
                found = word.text
        return found
