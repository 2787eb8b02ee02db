"""sessions: list them, and read one page by page, as the pages and the API show it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from whyfor.agents import AGENTS
from whyfor.capture.exclusions import excluded_note as excluded_note
from whyfor.config import Settings
from whyfor.model.cursor import open_cursor, seal_cursor
from whyfor.model.errors import NotFound
from whyfor.model.events import StoredEvent
from whyfor.model.listing import ListedSession, ListFilter
from whyfor.model.query import SessionFilter
from whyfor.model.sessions import Session
from whyfor.model.status import LiveStatus, Status, Summary
from whyfor.model.turns import Turn
from whyfor.store.open import OpenStore, reading
from whyfor.story.recent_turns import recent_turns
from whyfor.story.session_lookup import parse_filters
from whyfor.story.session_lookup import short_ids as short_ids
from whyfor.story.summary import summarise
from whyfor.story.tokens import turns_of
from whyfor.story.whole_text import whole_events


class SessionFamily(msgspec.Struct, frozen=True):
    """A conversation in one row: the session that was active last, and what is folded into it."""

    session: Session
    children: list[Session]  # copies and what they are copies of, oldest first; then subagents
    row: ListedSession


def sessions(
    settings: Settings,
    where: SessionFilter,
    *,
    limit: int,
    everything: bool,
    sort: str = "last",
) -> list[SessionFamily]:
    """Latest or most first; subagents only with `everything`. All of them if `limit` is 0."""
    with reading(settings) as library:
        filters = parse_filters(library, where)
        which = ListFilter(
            agent=filters.agent,
            projects=filters.projects,
            branch=filters.branch,
            since=filters.since,
            until=filters.until,
            file=filters.file,
            task=filters.task,
        )
        rows = [row for _, row in library.listing.page(which, sort, limit or None)]
        members = _members(library, rows, everything=everything)
        known = library.sessions.by_number([number for each in members for number in each])
        return [
            SessionFamily(known[row.id], [known[number] for number in numbers[1:]], row)
            for row, numbers in zip(rows, members, strict=True)
        ]


def _members(library: OpenStore, rows: list[ListedSession], *, everything: bool) -> list[list[int]]:
    """By row: the session it shows, the other parts, and subagents if everything is wanted."""
    whole = library.listing.members([row.head for row in rows]) if everything else {}
    found = []
    for row in rows:
        parts = [row.id, *(part.id for part in row.parts)]
        found.append(list(dict.fromkeys([*parts, *whole.get(row.head, ())])))
    return found


EVENTS_BYTES = 4 << 20  # of text and data in one page of events; one event at least


_AT_REST = Status("idle", "nothing was heard of it lately", "low")


_Whole = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]


class SessionPage(msgspec.Struct, frozen=True):
    items: list[Session]
    next: str | None


class EventPage(msgspec.Struct, frozen=True):
    session: Session
    items: list[StoredEvent]
    more: bool  # there are events after the last of these


def session_page(
    settings: Settings,
    where: SessionFilter,
    *,
    limit: int,
    after: str | None = None,
    subagents: bool = False,
) -> SessionPage:
    """Newest first."""
    before = open_cursor(after, tuple[_Whole, _Whole]) if after else None
    with reading(settings) as library:
        filters = parse_filters(library, where)
        found = library.sessions.page(filters, before, limit + 1, subagents=subagents)
    more = len(found) > limit
    return SessionPage(
        [session for _, session in found[:limit]],
        seal_cursor(found[limit - 1][0]) if more else None,
    )


def one_session(settings: Settings, agent: str, session_id: str) -> tuple[Session, list[Session]]:
    """A session and its subagents."""
    with reading(settings) as library:
        session = _session(library, agent, session_id)
        children = library.sessions.children([session.session_id])
    return session, [child for child in children if child.agent == agent]


def event_page(
    settings: Settings, agent: str, session_id: str, *, after: int, limit: int
) -> EventPage:
    """Events after a seq, in order, as many as fit."""
    with reading(settings) as library:
        session = _session(library, agent, session_id)
        found: list[StoredEvent] = []
        size = 0
        stored = library.conversation.events(session.id, after + 1)
        for event in whole_events(library, session.id, stored):
            size += len(event.text) + len(msgspec.json.encode(event.data))
            if len(found) >= limit or (found and size > EVENTS_BYTES):
                return EventPage(session, found, more=True)
            found.append(event)
        return EventPage(session, found, more=False)


def turn_page(
    settings: Settings, agent: str, session_id: str, *, after: int, limit: int
) -> tuple[list[Turn], bool]:
    """Turns after one, and whether there are more."""
    with reading(settings) as library:
        session = _session(library, agent, session_id)
        found = [
            turn
            for turn in turns_of(library, session, library.conversation.events(session.id))
            if turn.turn > after
        ]
    return found[:limit], len(found) > limit


def summary_of(
    settings: Settings, agent: str, session_id: str, standings: Iterable[LiveStatus]
) -> Summary:
    """A session's last turns in three lines: as it stands, if anybody attends to it."""
    with reading(settings) as library:
        session = _session(library, agent, session_id)
        standing = next((each for each in standings if each.session.id == session.id), None)
        if standing and standing.summary:
            return standing.summary
        found, _ = recent_turns(library, session.id)
    return summarise(found, standing.status if standing else _AT_REST)


def _session(library: OpenStore, agent: str, session_id: str) -> Session:
    if agent not in AGENTS:
        raise NotFound(f"no such agent: {agent[:40]!r}", f"Agents: {', '.join(AGENTS)}.")
    return library.sessions.find(session_id, agent)
