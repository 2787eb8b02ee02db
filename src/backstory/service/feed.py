"""The feed: all events of all sessions in the order they came to be known, and a place in it that outlives a server.

The store numbers events per session only. Their order here is by (observed_at, id); a place is told by the last event
before it and by how many events there are up to it. The number proves the place: if what follows the event does not
make up the difference to what is stored now (a clock went back, a session was forgotten), the place is lost, and that
is said; nothing is skipped or told twice in silence.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator

import msgspec

from backstory.model.events import StoredEvent
from backstory.model.times import to_iso
from backstory.store.browse import Browser
from backstory.store.schema import SEQ_BITS

TEXT_MAX = 4000  # characters of an event that travel; the whole of it is in the session's events
_CHUNK = 100
_CURSOR = re.compile(r"(\d{1,15})-(\d{1,15})-(\d{1,19})", re.ASCII)


class Cursor(msgspec.Struct, frozen=True):
    """A place in the feed."""

    total: int = 0  # events up to here
    at: int = 0  # when the last of them was observed
    id: int = 0  # its id

    def __str__(self) -> str:
        return f"{self.total}-{self.at}-{self.id}"

    @property
    def place(self) -> tuple[int, int]:
        return (self.at, self.id)


def parse_cursor(text: str) -> Cursor | None:
    found = _CURSOR.fullmatch(text)
    return Cursor(*map(int, found.groups())) if found else None


class Item(msgspec.Struct, frozen=True):
    """One thing for those who listen."""

    type: str  # event | status | reset
    cursor: Cursor | None  # where the feed is after it; a status has no place of its own
    session: str  # agent:id
    parent: str | None
    project: str | None
    kind: str  # of the event
    data: bytes  # JSON


class Told(msgspec.Struct, frozen=True):
    """An event as it travels."""

    session: str  # agent:id
    agent: str
    session_id: str
    parent_session_id: str | None
    project: str | None
    seq: int
    turn: int
    kind: str
    source: str
    confidence: str
    created_at: str | None
    observed_at: str | None
    actor: str
    name: str | None
    text: str
    cut: bool  # there is more of the text


class Lost(Exception):
    """What comes after a place cannot be told exactly any more."""


class Feed:
    """A reader's own way through the feed."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.seen: dict[int, int] = {}  # by session: its last seq that was told
        self.cursor = Cursor()

    def to_end(self) -> None:
        """What is there now is known."""
        last = {session: self.browser.observed(session, seq) for session, seq in self.browser.lengths().items()}
        self.seen = {session: seq for session, (_, seq) in last.items()}
        places = ((at, (session << SEQ_BITS) + seq) for session, (at, seq) in last.items())
        self.cursor = Cursor(sum(self.seen.values()), *max(places, default=(0, 0)))

    def to(self, cursor: Cursor) -> None:
        """Right behind a place, or Lost."""
        lengths = self.browser.lengths()
        self.seen = {session: self._behind(session, last, cursor.place) for session, last in lengths.items()}
        self.cursor = cursor
        if sum(self.seen.values()) != cursor.total:
            raise Lost

    def news(self, limit: int) -> list[Item]:
        """The next events, at most so many; none is left if there are none. Lost if sessions became shorter."""
        grown = self._grown()
        names = self.browser.names(grown) if grown else {}
        merged = heapq.merge(*(self._events(session) for session in grown))
        found: list[Item] = []
        for at, ident, event in merged:
            session = ident >> SEQ_BITS
            total = self.cursor.total + event.seq - self.seen.get(session, 0)
            self.seen[session] = event.seq
            self.cursor = Cursor(total, *max(self.cursor.place, (at, ident)))
            found.append(_item(self.cursor, names[session], event))
            if len(found) >= limit:
                break
        return found

    def _grown(self) -> list[int]:
        """Sessions with something new; thousands have nothing."""
        lengths, known = self.browser.lengths(), self.seen.get
        changed = [session for session, last in lengths.items() if known(session) != last]
        new = sum(1 for session in changed if session not in self.seen)
        if len(lengths) - new < len(self.seen) or any(lengths[session] < known(session, 0) for session in changed):
            raise Lost
        return changed

    def _events(self, session: int) -> Iterator[tuple[int, int, StoredEvent]]:
        after = self.seen.get(session, 0)
        while chunk := self.browser.stretch(session, after, _CHUNK):
            for event in chunk:
                yield event.observed_at, (session << SEQ_BITS) + event.seq, event
            after = chunk[-1].seq

    def _behind(self, session: int, last: int, place: tuple[int, int]) -> int:
        """The last event of a session that is not after a place; they are observed in the order of their seq."""
        known = 0
        low, high = 0, last + 1  # up to low nothing is after it, from high on all is
        middle = last  # most sessions are at rest
        while high - low > 1:
            at, seq = self.browser.observed(session, middle)
            if (at, (session << SEQ_BITS) + seq) <= place:
                low, known = middle, seq
            else:
                high = min(high, max(seq, 1))
            middle = (low + high) // 2
        return known


def _item(cursor: Cursor, names: tuple[str, str, str | None, str | None], event: StoredEvent) -> Item:
    agent, session_id, parent, project = names
    told = Told(
        session=f"{agent}:{session_id}",
        agent=agent,
        session_id=session_id,
        parent_session_id=parent,
        project=project,
        seq=event.seq,
        turn=event.turn,
        kind=event.kind,
        source=event.source,
        confidence=event.confidence,
        created_at=to_iso(event.created_at),
        observed_at=to_iso(event.observed_at),
        actor=event.actor,
        name=event.name,
        text=event.text[:TEXT_MAX],
        cut=len(event.text) > TEXT_MAX,
    )
    of = f"{agent}:{parent}" if parent else None
    return Item("event", cursor, told.session, of, project, event.kind, msgspec.json.encode(told))
