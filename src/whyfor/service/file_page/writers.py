"""The lines of a file in runs of one writer, a card for each writer, and their shares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from whyfor.model.blame import BlameRow, LineWho
from whyfor.model.checkpoints import Checkpoint
from whyfor.model.file_page import CardCommit, LineShare, LineSpan, WriterCard
from whyfor.model.lines import AGENT, MODIFIED_LINE, PERSON, UNKNOWN_AUTHOR
from whyfor.service.agents import agent_mark
from whyfor.story.lines.turn_authors import TurnReader

BEFORE = "from before capture"
NO_SESSION = "in commits without a session"
NOT_WRITTEN = "no session wrote them"
_COMMITS = 3  # of a card
_CardKey = tuple[object, ...]


class KnownCommits(msgspec.Struct, frozen=True):
    """What is known of the commits that lines come from, and of whoever looks at them."""

    linked: dict[str, Checkpoint]
    begun: int | None  # when the first session of the project began, in ms
    mail: str | None = None  # of the person who looks

    def unknown_reason(self, row: BlameRow) -> str:
        """Why nobody is known for a line."""
        if row.commit in self.linked:
            return NOT_WRITTEN
        if self.begun is None or row.time * 1000 < self.begun:
            return BEFORE
        return NO_SESSION


class WriterCards:
    """Makes the cards of a file's lines."""

    def __init__(self, known: KnownCommits, turns: TurnReader) -> None:
        self.known = known
        self.turns = turns
        self.cards: dict[_CardKey, WriterCard] = {}
        self.reasons: dict[str, int] = {}

    def add(self, rows: Sequence[BlameRow]) -> list[LineSpan]:
        """Return lines in runs of one writer, and count them."""
        spans: list[LineSpan] = []
        run: list[BlameRow] = []
        before: WriterCard | None = None
        for row in rows:
            card = self._card(row)
            self._count(card, row)
            if before is not None and card is not before:
                spans.append(_span(before, run))
                run = []
            run.append(row)
            before = card
        if before is not None:
            spans.append(_span(before, run))
        return spans

    def listed(self) -> list[WriterCard]:
        """Return all cards, the newest first, unknown ones last."""

        def order(card: WriterCard) -> tuple[bool, int]:
            return card.kind == UNKNOWN_AUTHOR, -card.at

        return sorted(self.cards.values(), key=order)

    def shares(self) -> list[LineShare]:
        """Return how many lines are whose: agents, changed lines, people, unknown."""
        counts: dict[tuple[str, str, bool], int] = {}
        for card in self.cards.values():
            is_named = card.kind in (AGENT, PERSON)
            key = (card.kind, card.name if is_named else "", card.is_you)
            counts[key] = counts.get(key, 0) + card.lines
        ranks = {AGENT: 0, MODIFIED_LINE: 1, PERSON: 2, UNKNOWN_AUTHOR: 3}
        found = [LineShare(kind, name, n, you) for (kind, name, you), n in counts.items()]
        return sorted(found, key=lambda share: (ranks[share.kind], not share.is_you, -share.lines))

    def _count(self, card: WriterCard, row: BlameRow) -> None:
        who = row.who
        at = who.writer.at if who.writer else row.time * 1000
        is_new = all(one.sha != row.commit for one in card.commits)
        self.count_lines(card, 1, at, self._commit(row) if is_new else None)

    def count_lines(self, card: WriterCard, lines: int, at: int, commit: CardCommit | None) -> None:
        """Count lines of a card, and the commit that they come from if it is new there."""
        card.lines += lines
        card.at = max(card.at, at)
        if card.kind == UNKNOWN_AUTHOR:
            self.reasons[card.reason] = self.reasons.get(card.reason, 0) + lines
        known = {one.sha for one in card.commits}
        if commit is not None and len(card.commits) < _COMMITS and commit.sha not in known:
            card.commits.append(commit)

    def _commit(self, row: BlameRow) -> CardCommit:
        checkpoint = self.known.linked.get(row.commit)
        for part in checkpoint.parts if checkpoint else ():
            if (part.agent, part.session_id) == (row.who.agent, row.who.session_id):
                return CardCommit(row.commit, row.summary, part.evidence, part.confidence)
        return CardCommit(row.commit, row.summary)

    def _card(self, row: BlameRow) -> WriterCard:
        who = row.who
        if who.agent:
            return self.turn_card(who)
        if who.kind == PERSON:
            return self.person_card(row.author, row.mail)
        reason = self.known.unknown_reason(row)
        # who committed it is a hint, no more
        return self.unknown_card(reason, row.author if reason == NO_SESSION else "")

    def turn_card(self, who: LineWho) -> WriterCard:
        """Return the card of a turn."""
        asked = who.asked.seq if who.asked else None
        key: _CardKey = (who.kind, who.agent, who.session_id, asked)
        if key not in self.cards:
            self.cards[key] = self._agent_card(who)
        return self.cards[key]

    def person_card(self, author: str, mail: str) -> WriterCard:
        """Return the card of a person, who is inferred."""
        key: _CardKey = (PERSON, author, mail)
        if key not in self.cards:
            own = self.known.mail
            is_you = own is not None and mail.strip("<>").lower() == own.lower()
            label = "you" if is_you else author.split(" ")[0]
            self.cards[key] = WriterCard(PERSON, author, label, is_you=is_you)
        return self.cards[key]

    def unknown_card(self, reason: str, name: str = "") -> WriterCard:
        """Return the card of lines that nobody is known for."""
        key: _CardKey = (UNKNOWN_AUTHOR, reason, name)
        if key not in self.cards:
            self.cards[key] = WriterCard(UNKNOWN_AUTHOR, name, "?", reason=reason)
        return self.cards[key]

    def _agent_card(self, who: LineWho) -> WriterCard:
        turn = f" T{who.turn}" if who.turn is not None else ""
        changed = "~" if who.kind == MODIFIED_LINE else ""
        card = WriterCard(
            kind=who.kind,
            name=who.agent,
            label=f"{agent_mark(who.agent)}{turn}{changed}",
            session_id=who.session_id,
            turn=who.turn,
            asked=who.asked,
        )
        if who.asked is not None and who.writer is not None:
            number = who.writer.session
            card.question = self.turns.question(number, who.asked)
            card.closing = self.turns.closing(number, who.asked)
        return card


def _span(card: WriterCard, rows: list[BlameRow]) -> LineSpan:
    return LineSpan(rows[0].line, rows[-1].line, card, rows)


def span_at(spans: Iterable[LineSpan], line: int | None) -> LineSpan | None:
    """Return the run that has a line; None if none has."""
    if line is None:
        return None
    return next((span for span in spans if span.first <= line <= span.last), None)
