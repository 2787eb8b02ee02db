"""What is live: whoever ingests says that there is news, whoever listens hears of every event
once, in order.

The store is the truth and the memory: the hub keeps the newest items only, one ring for all who
listen. Who is too slow for the ring reads on from the store, from where it is; nobody has a
queue that could grow.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from itertools import islice
from typing import TypeVar

import msgspec

from whyfor.config import Settings
from whyfor.live.feed import Cursor, Feed, FeedGap, FeedItem
from whyfor.model.attention import Firing
from whyfor.model.errors import Busy, NotFound, WhyforError
from whyfor.model.status import LiveStatus
from whyfor.model.wire.attention import stream_firing
from whyfor.model.wire.stream import stream_status
from whyfor.store.open import FollowedStore, reading_local

POLL = 0.5  # seconds between looks, when nobody says that there is news
HEARTBEAT = 15.0
RING_ITEMS = 2000
RING_BYTES = 8 << 20
BATCH = 500
LISTENERS = 64
_Result = TypeVar("_Result")


class StreamFilter(msgspec.Struct, frozen=True):
    """What a subscriber wants to receive; empty means everything."""

    sessions: frozenset[str] = frozenset()  # agent:id; their subagents come with them
    projects: frozenset[str] = frozenset()  # identities
    # of events; "status" for status changes, "commit" for stories, "attention" for firings
    kinds: frozenset[str] = frozenset()

    def fits(self, item: FeedItem) -> bool:
        if item.type == "reset":
            return True
        kind = item.kind if item.type == "event" else item.type
        return (
            (not self.kinds or kind in self.kinds)
            and (not self.projects or item.project in self.projects)
            and (
                not self.sessions or bool(self.sessions & {item.session, item.parent, *item.others})
            )
        )


class Hub:
    """Connects one ingester with many subscribers. `publish` and `stand` may be called from any
    thread."""

    def __init__(
        self, settings: Settings, *, poll: float = POLL, heartbeat: float = HEARTBEAT
    ) -> None:
        self.settings = settings
        self.poll = poll
        self.heartbeat = heartbeat
        self.error: WhyforError | None = None  # why nothing is heard of the store
        self.trouble: str | None = None  # what whoever ingests has to say
        self.cursor = Cursor()
        self.listeners = 0
        # sessions that somebody listens to by name: agent:id
        self.looked_at: Counter[str] = Counter()
        self.closed = False
        self._ring: deque[tuple[int, FeedItem]] = deque()
        self._bytes = 0
        self._next = 0  # the position the next item gets
        self._base = Cursor()  # where the feed was before the ring's first item
        self._standings: dict[str, LiveStatus] = {}
        self._firings: dict[str, Firing] = {}
        self._news = asyncio.Event()
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._source = _Source(settings)

    # -- for whoever ingests ----------------------------------------------------------------------

    def publish(self) -> None:
        """Say that there is something new in the store; from any thread, as often as needed."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._woken.set)

    def stand(self, standings: Iterable[LiveStatus]) -> None:
        """Set the statuses of all sessions worth showing; all others are dropped."""
        found = {standing.name: standing for standing in standings}
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stand, found)
        else:
            self._standings = found

    def _stand(self, found: dict[str, LiveStatus]) -> None:
        before, self._standings = self._standings, found
        changed = [
            standing for name, standing in found.items() if _differ(before.get(name), standing)
        ]
        gone = [standing for name, standing in before.items() if name not in found]
        for item in [
            *map(standing_item, changed),
            *(standing_item(each, gone=True) for each in gone),
        ]:
            self._add(item)
        if changed or gone:
            self._tell_all()

    def attend(self, firings: list[Firing], told: list[Firing]) -> None:  # noqa: ARG002 - StatusSink
        """Set what a person should know now; subscribers are told what changed."""
        found = {firing.id: firing for firing in firings}
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._attend, found)
        else:
            self._firings = found

    def _attend(self, found: dict[str, Firing]) -> None:
        before, self._firings = self._firings, found
        changed = [each for ident, each in found.items() if before.get(ident) != each]
        gone = [each for ident, each in before.items() if ident not in found]
        for item in [
            *map(firing_item, changed),
            *(firing_item(each, gone=True) for each in gone),
        ]:
            self._add(item)
        if changed or gone:
            self._tell_all()

    def mute(self, firing: Firing, *, undo: bool) -> None:
        """Show at once that a person muted a cause of a session."""
        told = (firing.session, firing.found.cause)
        found = [
            msgspec.structs.replace(each, muted=not undo)
            if (each.session, each.found.cause) == told
            else each
            for each in self.firings
        ]
        self.attend(found, [])

    @property
    def firings(self) -> list[Firing]:
        """What a person should know now, the most urgent first."""
        return list(self._firings.values())

    @property
    def standings(self) -> list[LiveStatus]:
        return list(self._standings.values())

    # -- running ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="whyfor-hub")
        await self._look()
        self._base = self.cursor
        task = asyncio.create_task(self._look_on())
        try:
            yield
        finally:
            self.close()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self._apart(self._source.close)
            self._thread.shutdown()

    def close(self) -> None:
        """End all subscriptions; call it from the loop's thread."""
        self.closed = True
        self._tell_all()

    async def _look_on(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), self.poll)
            self._woken.clear()
            begun = time.monotonic()
            await self._look()
            # however often there is news
            await asyncio.sleep(min(self.poll, time.monotonic() - begun))

    async def _look(self) -> None:
        """Read all that is new, batch by batch. An error is kept to be shown, and the read is
        repeated later.

        Without subscribers nothing is read: one that comes later from an earlier position reads it
        from the store.
        """
        try:
            if not self.listeners:
                await self._apart(self._source.pass_by)
                self._skip(self._source.cursor)
            while self.listeners and (items := await self._apart(self._source.look)):
                for item in items:
                    self._add(item)
                self._tell_all()
            self.error = None
        except WhyforError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - the one place where this loop's errors become words
            self.error = WhyforError(
                f"unexpected: {type(error).__name__}: {error}", "This is a bug."
            )
        self.cursor = self._source.cursor

    def _skip(self, cursor: Cursor) -> None:
        if cursor != self.cursor:
            self._ring.clear()
            self._bytes = 0
            self._next += 1  # who began to listen meanwhile has not heard what was passed by
            self._base = self.cursor = cursor
            self._tell_all()

    async def _apart(self, work: Callable[[], _Result]) -> _Result:
        assert self._loop is not None and self._thread is not None
        return await self._loop.run_in_executor(self._thread, work)

    def _add(self, item: FeedItem) -> None:
        # what was told before may be what was forgotten
        if item.type == "reset" and item.cursor is not None:
            self._ring.clear()
            self._bytes = 0
            self._base = item.cursor
        self._ring.append((self._next, item))
        self._next += 1
        self._bytes += len(item.data)
        while len(self._ring) > RING_ITEMS or self._bytes > RING_BYTES:
            _, old = self._ring.popleft()
            self._bytes -= len(old.data)
            self._base = old.cursor or self._base
        if item.cursor is not None:
            self.cursor = item.cursor

    def _tell_all(self) -> None:
        before, self._news = self._news, asyncio.Event()
        before.set()

    # -- for whoever listens ----------------------------------------------------------------------

    async def subscribe(
        self, wanted: StreamFilter, after: Cursor | None = None
    ) -> AsyncIterator[FeedItem | Cursor]:
        """Yield the items from a position on (default: from now), and from time to time only the
        position, so that silence is not taken for the end.

        The first one, which comes at once, is the position. Raises Busy instead if there are too
        many subscribers.
        """
        if self.listeners >= LISTENERS:
            raise Busy(f"{LISTENERS} clients listen already", "Close some of them.")
        self.listeners += 1
        self.looked_at.update(wanted.sessions)
        try:
            async for item in _Listener(self, wanted, after or self.cursor).items():
                yield item
        finally:
            self.listeners -= 1
            self.looked_at = self.looked_at - Counter(wanted.sessions)

    def start(self, cursor: Cursor) -> int | None:
        """Return the ring position right after a position in the feed; None if it is not in the
        ring."""
        if cursor == self.cursor:
            return self._next
        if cursor == self._base:
            return self._ring[0][0] if self._ring else self._next
        return next((position + 1 for position, item in self._ring if item.cursor == cursor), None)

    def since(self, position: int) -> list[FeedItem] | None:
        """Return the items after a ring position; None if some of them are gone already."""
        first = self._ring[0][0] if self._ring else self._next
        if position < first:
            return None
        return [item for _, item in islice(self._ring, position - first, None)]

    async def waited(self, news: asyncio.Event) -> bool:
        try:
            await asyncio.wait_for(news.wait(), self.heartbeat)
        except TimeoutError:
            return False
        return True

    @property
    def news(self) -> asyncio.Event:
        """Return an event that is set when there are more items than now."""
        return self._news


class _Listener:
    """One subscription: from the store until it reaches the ring buffer, then along the ring
    buffer."""

    def __init__(self, hub: Hub, wanted: StreamFilter, cursor: Cursor) -> None:
        self.hub = hub
        self.wanted = wanted
        self.cursor = cursor
        self.position = hub.start(cursor)

    async def items(self) -> AsyncIterator[FeedItem | Cursor]:
        yield self.cursor
        for item in self._standings():
            yield item
        while not self.hub.closed:
            news = self.hub.news
            items = await self._next()
            for item in items:
                self.cursor = item.cursor or self.cursor
                if self.wanted.fits(item):
                    yield item
            if not items and not await self.hub.waited(news):
                yield self.cursor

    async def _next(self) -> list[FeedItem]:
        if self.position is None:
            self.position = self.hub.start(self.cursor)
        items = self.hub.since(self.position) if self.position is not None else None
        if items is not None and self.position is not None:
            self.position += len(items)
            return items
        missed = self.position is not None
        self.position = None
        found = await asyncio.to_thread(_after, self.hub.settings, self.cursor, self.hub.cursor)
        return [*self._standings(), *found] if missed else found

    def _standings(self) -> list[FeedItem]:
        """Send all that holds now again, because changes may have been missed."""
        items = [
            *map(standing_item, self.hub.standings),
            *map(firing_item, self.hub.firings),
        ]
        return [item for item in items if self.wanted.fits(item)]


def _after(settings: Settings, cursor: Cursor, now: Cursor) -> list[FeedItem]:
    """The next events after a place; if that place is lost, a word of it, and where the feed is
    now."""
    try:
        with reading_local(settings) as library:
            feed = Feed(library)
            feed.to(cursor)
            return feed.news(BATCH)
    except (FeedGap, NotFound):
        return [reset(now)]


def reset(cursor: Cursor) -> FeedItem:
    """Return the item that tells a subscriber to read again everything it shows."""
    return FeedItem("reset", cursor, "", None, None, "", b"{}")


def standing_item(standing: LiveStatus, *, gone: bool = False) -> FeedItem:
    session = standing.session
    told = stream_status(standing, gone=gone)
    of = f"{session.agent}:{session.parent_session_id}" if session.parent_session_id else None
    return FeedItem(
        "status", None, standing.name, of, session.project, "", msgspec.json.encode(told)
    )


def firing_item(firing: Firing, *, gone: bool = False) -> FeedItem:
    told = msgspec.json.encode(stream_firing(firing, gone=gone))
    others = frozenset(firing.found.others)
    return FeedItem("attention", None, firing.session, None, None, "", told, others)


def _differ(before: LiveStatus | None, now: LiveStatus) -> bool:
    """Return whether two statuses differ in more than their age."""
    if before is None:
        return True
    same = msgspec.structs.replace(before.status, heard_at=now.status.heard_at)
    return (same, *_shown(before)) != (now.status, *_shown(now))


def _shown(standing: LiveStatus) -> tuple[object, ...]:
    session = standing.session
    return standing.summary, standing.pid, session.title, session.branch, session.project


class _Source:
    """The hub's own connection, in its own thread, and its own position in the feed."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.cursor = Cursor()
        self._feed: Feed | None = None
        self._store = FollowedStore(settings)
        self._begun = False
        self._version = -1

    def look(self) -> list[FeedItem]:
        """Return the next batch; empty if nothing changed."""
        return self._guarded(self._look)

    def pass_by(self) -> None:
        """Skip what is new without reading it."""
        self._guarded(self._pass_by)

    def _guarded(self, work: Callable[[], list[FeedItem]]) -> list[FeedItem]:
        try:
            return work()
        except NotFound:  # nothing is kept yet
            self.close()
            self._begun = True
            return []
        except OSError as error:
            self.close()
            raise WhyforError(f"cannot read the store: {error}", "See: whyfor doctor") from None
        except WhyforError:
            self.close()
            raise

    def close(self) -> None:
        self._store.close()
        self._feed = None

    def _look(self) -> list[FeedItem]:
        feed = self._opened()
        version = feed.store.version()
        if version == self._version:
            return []
        try:
            if feed.cursor != self.cursor:
                feed.to(self.cursor)
            items = feed.news(BATCH)
        except FeedGap:
            feed = self._feed = Feed(feed.store)
            feed.to_end()
            items = [reset(feed.cursor)]
        self.cursor = feed.cursor
        if len(items) < BATCH:
            self._version = version
        return items

    def _pass_by(self) -> list[FeedItem]:
        feed = self._opened()
        version = feed.store.version()
        if version != self._version:
            feed.to_end()
            self.cursor, self._version = feed.cursor, version
        return []

    def _opened(self) -> Feed:
        """What was there before the server is known; from then on nothing is, unless it was told
        or passed by."""
        store = self._store.current()
        if self._feed is None or self._feed.store is not store:
            self._version = -1
            self._feed = Feed(store)
            if not self._begun:
                self._feed.to_end()
                self.cursor = self._feed.cursor
                self._begun = True
        return self._feed
