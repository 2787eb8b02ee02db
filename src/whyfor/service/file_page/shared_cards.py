"""Who wrote a file, by the lines that were counted where its repository is."""

from __future__ import annotations

from whyfor.model.blame import LineWho
from whyfor.model.checkpoints import ChangedFile, Checkpoint, WrittenLines
from whyfor.model.file_page import CardCommit
from whyfor.model.lines import AGENT, MODIFIED_LINE, LineWriter
from whyfor.service.file_page.writers import NOT_WRITTEN, KnownCommits, WriterCards
from whyfor.store.open import OpenStore
from whyfor.story.lines.turn_authors import TurnReader


class SharedCards(WriterCards):
    """Makes cards of the lines that commits added to a file."""

    def __init__(self, store: OpenStore) -> None:
        super().__init__(KnownCommits({}, None), TurnReader(store))
        self.store = store

    def add_change(self, checkpoint: Checkpoint, changed: ChangedFile) -> None:
        """Count the lines that a commit added; who wrote those that nobody counted is unknown."""
        left = changed.added
        for one in changed.written:
            number = self._number(one.session)
            if one.session and number is None:
                continue
            left -= one.lines
            if number is None:
                card = self.person_card(checkpoint.author, checkpoint.email)
                self.count_lines(card, one.lines, one.at, _commit(checkpoint))
            else:
                self._add_turn(checkpoint, one, number)
        if left > 0:
            card = self.unknown_card(NOT_WRITTEN)
            self.count_lines(card, left, checkpoint.committed_at, _commit(checkpoint))

    def _number(self, name: str) -> int | None:
        agent, _, session_id = name.partition(":")
        return self.store.sessions.numbers([(agent, session_id)]).get((agent, session_id))

    def _add_turn(self, checkpoint: Checkpoint, one: WrittenLines, number: int) -> None:
        writer = LineWriter(number, one.seq, one.at, None, number)
        self.turns.expect_writers([writer])
        asked = self.turns.asked(number, one.seq, one.at)
        agent, _, session_id = one.session.partition(":")
        for kind, lines in ((AGENT, one.lines - one.modified), (MODIFIED_LINE, one.modified)):
            if lines > 0:
                who = LineWho(
                    kind=kind,
                    agent=agent,
                    session_id=session_id,
                    turn=asked.turn if asked else None,
                    asked=asked,
                    writer=writer,
                )
                self.count_lines(self.turn_card(who), lines, one.at, _commit(checkpoint, who))


def _commit(checkpoint: Checkpoint, who: LineWho | None = None) -> CardCommit:
    for part in checkpoint.parts if who else ():
        if who and (part.agent, part.session_id) == (who.agent, who.session_id):
            found = (part.evidence, part.confidence)
            return CardCommit(checkpoint.commit, checkpoint.subject, *found)
    return CardCommit(checkpoint.commit, checkpoint.subject)
