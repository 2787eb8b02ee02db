"""The feed: all events of all sessions in the order they came to be known, and a place in it
that outlives a server.

The store numbers events per session only. Their order here is by (observed_at, id); a place is
told by the last event before it and by how many events there are up to it. The number proves the
place: if what follows the event does not make up the difference to what is stored now (a clock
went back, a session was forgotten), the place is lost, and that is said; nothing is skipped or
told twice in silence.

What changed after it was stored has numbers of its own: a place is also the last of those. It is
told after the events there are, so that nobody hears of a change before the thing itself.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator

import msgspec

from whyfor.model.checkpoints import ChangeRecord, Checkpoint
from whyfor.model.events import EventRef, StoredEvent
from whyfor.model.sessions import NamedSession
from whyfor.model.wire.stream import SessionNames, stream_commit, stream_event
from whyfor.store.protocol import Store

_CHUNK = 100
_CURSOR = re.compile(r"(\d{1,15})-(\d{1,15})-(\d{1,19})(?:-(\d{1,15}))?", re.ASCII)
_Names = dict[int, NamedSession]


class Cursor(msgspec.Struct, frozen=True):
    """A position in the feed."""

    total: int = 0  # events up to here
    at: int = 0  # when the last of them was observed
    id: int = 0  # its id
    change: int = 0  # the last that is known of what changed later

    def __str__(self) -> str:
        return f"{self.total}-{self.at}-{self.id}-{self.change}"

    @property
    def place(self) -> tuple[int, int]:
        return (self.at, self.id)


def parse_cursor(text: str) -> Cursor | None:
    found = _CURSOR.fullmatch(text)
    return Cursor(*(int(number or 0) for number in found.groups())) if found else None


class FeedItem(msgspec.Struct, frozen=True):
    """One item for subscribers."""

    type: str  # event | commit | status | reset
    cursor: Cursor | None  # where the feed is after it; a status has no place of its own
    session: str  # agent:id
    parent: str | None
    project: str | None
    kind: str  # of the event
    data: bytes  # JSON
    others: frozenset[str] = frozenset()  # further sessions it is of, and those they work for


class FeedGap(Exception):
    """Raised when the items after a position can no longer be listed exactly."""


class Feed:
    """One reader's position in the feed."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.seen: dict[int, int] = {}  # by session: its last seq that was told
        self.cursor = Cursor()

    def to_end(self) -> None:
        """Move to the end: only items added later are returned."""
        change = self.store.feed.ends()[
            1
        ]  # first: what changes meanwhile is told rather than missed
        lengths = self.store.feed.lengths()
        if any(lengths.get(session, 0) < seq for session, seq in self.seen.items()):
            self.seen, self.cursor = {}, Cursor()
        place = self.cursor.place
        for session, length in lengths.items():
            if self.seen.get(session) != length:
                at, seq = self.store.conversation.observed(session, length)
                self.seen[session] = seq
                place = max(place, (at, EventRef(session, seq).number))
        self.cursor = Cursor(sum(self.seen.values()), *place, change)

    def to(self, cursor: Cursor) -> None:
        """Move right behind a position. Raises FeedGap if that is no longer possible."""
        self._check(cursor.change)
        lengths = self.store.feed.lengths()
        self.seen = {
            session: self._behind(session, last, cursor.place) for session, last in lengths.items()
        }
        self.cursor = cursor
        if sum(self.seen.values()) != cursor.total:
            raise FeedGap

    def news(self, limit: int) -> list[FeedItem]:
        """Return up to `limit` items after the position; empty when caught up. Raises FeedGap if a
        session became shorter."""
        self._check(self.cursor.change)
        found = self._new(limit)
        while len(found) < limit and (
            more := self.store.feed.after(self.cursor.change, limit - len(found))
        ):
            found += self._changed(more)
        return found

    def _check(self, change: int) -> None:
        floor, last = self.store.feed.ends()
        if not floor <= change <= last:
            raise FeedGap

    # -- what is new -----------------------------------------------------------------------------

    def _new(self, limit: int) -> list[FeedItem]:
        grown = self._grown()
        names = self.store.sessions.names(grown) if grown else {}
        merged = heapq.merge(*(self._events(session) for session in grown))
        found: list[FeedItem] = []
        for at, ident, event in merged:
            session = EventRef.of(ident).session
            total = self.cursor.total + event.seq - self.seen.get(session, 0)
            self.seen[session] = event.seq
            self.cursor = Cursor(total, *max(self.cursor.place, (at, ident)), self.cursor.change)
            found.append(_item(self.cursor, names[session], event))
            if len(found) >= limit:
                break
        return found

    def _grown(self) -> list[int]:
        """Return the sessions with new events; usually a few among thousands."""
        lengths, known = self.store.feed.lengths(), self.seen.get
        changed = [session for session, last in lengths.items() if known(session) != last]
        new = sum(1 for session in changed if session not in self.seen)
        if len(lengths) - new < len(self.seen) or any(
            lengths[session] < known(session, 0) for session in changed
        ):
            raise FeedGap
        return changed

    def _events(self, session: int) -> Iterator[tuple[int, int, StoredEvent]]:
        after = self.seen.get(session, 0)
        while chunk := self.store.conversation.stretch(session, after, _CHUNK):
            for event in chunk:
                yield event.observed_at, EventRef(session, event.seq).number, event
            after = chunk[-1].seq

    def _behind(self, session: int, last: int, place: tuple[int, int]) -> int:
        """Return the last event of a session that is not after a position; events are observed in
        the order of their seq."""
        known = 0
        low, high = 0, last + 1  # up to low nothing is after it, from high on all is
        middle = last  # most sessions are at rest
        while high - low > 1:
            at, seq = self.store.conversation.observed(session, middle)
            if (at, EventRef(session, seq).number) <= place:
                low, known = middle, seq
            else:
                high = min(high, max(seq, 1))
            middle = (low + high) // 2
        return known

    # -- what is otherwise -----------------------------------------------------------------------

    def _changed(self, changes: list[ChangeRecord]) -> list[FeedItem]:
        sessions = {change.event.session for change in changes if change.event is not None}
        sessions.update(*(change.sessions for change in changes))
        names = self.store.sessions.names(sorted(sessions))
        stories = self.store.checkpoints.of_commits(
            [change.commit for change in changes if change.commit]
        )
        found: list[FeedItem] = []
        for change in changes:
            self.cursor = msgspec.structs.replace(self.cursor, change=change.number)
            if change.commit is not None:
                found.append(_story(self.cursor, change, stories.get(change.commit), names))
            elif change.event is not None:
                found += self._again(change.event, names)
        return found

    def _again(self, place: EventRef, names: _Names) -> list[FeedItem]:
        """Return an event that changed, as it is now; nothing if it was not sent yet, because it
        will be."""
        session, seq = place.session, place.seq
        if session not in names or seq > self.seen.get(session, 0):
            return []
        events = self.store.conversation.events(session, seq, seq)
        return [_item(self.cursor, names[session], event, changed=True) for event in events]


def _item(
    cursor: Cursor, name: NamedSession, event: StoredEvent, *, changed: bool = False
) -> FeedItem:
    whose = SessionNames(name.agent, name.session_id, name.parent, name.project)
    told = msgspec.json.encode(stream_event(event, whose, changed=changed))
    of = f"{whose.agent}:{whose.parent_session_id}" if whose.parent_session_id else None
    return FeedItem("event", cursor, whose.name, of, whose.project, event.kind, told)


def _story(
    cursor: Cursor, change: ChangeRecord, checkpoint: Checkpoint | None, names: _Names
) -> FeedItem:
    told = stream_commit(change.commit or "", change.project, checkpoint)
    had = [names[session] for session in change.sessions if session in names]
    others = {f"{name.agent}:{name.session_id}" for name in had}
    others |= {f"{name.agent}:{name.parent}" for name in had if name.parent}
    data = msgspec.json.encode(told)
    return FeedItem("commit", cursor, "", None, told.project, "", data, frozenset(others))
