"""sessions, show and search: the verbs that give things back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.capture import decode
from whyfor.config import Settings
from whyfor.git.identity import identify, normalise
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.query import FIELDS, Filters, Hit
from whyfor.model.reports import Conversation
from whyfor.model.sessions import Session
from whyfor.model.times import parse_when
from whyfor.recall import query as queries
from whyfor.recall.search import search as find
from whyfor.store.open import OpenStore, reading
from whyfor.store.protocol import Store
from whyfor.story.rewinds import abandoned
from whyfor.story.tokens import turns_of


class SessionFilter(msgspec.Struct, frozen=True):
    """Filters as people give them."""

    project: str | None = None
    agent: str | None = None
    since: str | None = None
    until: str | None = None
    branch: str | None = None
    fields: str | None = None
    # a project's, exactly; for clients, whose words must not become paths
    identity: str | None = None


class SessionFamily(msgspec.Struct, frozen=True):
    """A session with its subagents."""

    session: Session
    children: list[Session]


def sessions(
    settings: Settings, where: SessionFilter, *, limit: int, everything: bool
) -> list[SessionFamily]:
    """Newest first; subagents under their parent."""
    with reading(settings) as library:
        filters = understand(library, where)
        found = library.sessions.matching(filters, limit=limit or None, subagents=False)
        children: dict[str, list[Session]] = {}
        if everything:
            for child in library.sessions.children([s.session_id for s in found]):
                children.setdefault(f"{child.agent}:{child.parent_session_id}", []).append(child)
        listed = [SessionFamily(s, children.pop(f"{s.agent}:{s.session_id}", [])) for s in found]
        if everything and not limit:
            listed += _orphans(library, filters, listed)
        return listed


def _orphans(store: Store, filters: Filters, listed: list[SessionFamily]) -> list[SessionFamily]:
    """Subagents whose parent's transcript is not here (deleted, or never written)."""
    shown = {s.id for item in listed for s in (item.session, *item.children)}
    return [
        SessionFamily(s, [])
        for s in store.sessions.matching(filters, limit=None, subagents=True)
        if s.id not in shown
    ]


def conversation(settings: Settings, reference: str) -> Conversation:
    with reading(settings) as library:
        session = find_session(library, reference)
        events = list(library.conversation.events(session.id))
        children = library.sessions.children([session.session_id])
        return Conversation(
            session, events, turns_of(library, session, events), abandoned(events), children
        )


def raw(settings: Settings, reference: str) -> Iterator[bytes]:
    """The stored records of a session's transcript, byte for byte, piece by piece; a word stands
    for private ones."""
    with reading(settings) as library:
        session = find_session(library, reference)
        segments = library.capture.segments(session)
        if not segments:
            raise NotFound(
                f"{session.session_id} has no transcript of its own",
                f"It was told by its parent: whyfor show {session.parent_session_id} --raw",
            )
        main = segments[0][0]
        for path, stored in segments:
            if path == main:
                data = library.blobs.get(stored.address)
                yield decode.whole(data, stored.start, stored.gaps)


def find_session(library: OpenStore, reference: str) -> Session:
    agent, _, rest = reference.partition(":")
    return (
        library.sessions.find(rest, agent)
        if agent in AGENTS and rest
        else library.sessions.find(reference)
    )


def search(
    settings: Settings, words: str, where: SessionFilter, *, limit: int, newest: bool
) -> list[Hit]:
    query = queries.parse(words)
    with reading(settings) as library:
        return find(library, query, understand(library, where), limit=limit, newest=newest)


# -- filters -------------------------------------------------------------------------------------


def understand(store: Store, where: SessionFilter) -> Filters:
    if where.agent and where.agent not in AGENTS:
        raise BadInput(f"no such agent: {where.agent}", f"Agents: {', '.join(AGENTS)}.")
    now = datetime.now().astimezone()
    return Filters(
        agent=where.agent,
        projects=_chosen(store, where),
        since=parse_when(where.since, now) if where.since else None,
        until=parse_when(where.until, now, end=True) if where.until else None,
        branch=where.branch,
        fields=_fields(where.fields),
    )


def _fields(text: str | None) -> tuple[str, ...]:
    names = tuple(name for name in re.split(r"[,\s]+", text or "") if name)
    for name in names:
        if name not in FIELDS:
            raise BadInput(f"nothing to search in: {name}", f"Search in: {', '.join(FIELDS)}.")
    return names


def _chosen(store: Store, where: SessionFilter) -> tuple[int, ...] | None:
    if where.identity:
        found = tuple(
            number
            for number, project in store.projects.known()
            if project.identity == where.identity
        )
        if not found:
            raise NotFound(
                f"no project is called {where.identity[:200]!r}",
                "See which there are: whyfor projects",
            )
        return found
    return _projects(store, where.project) if where.project else None


def _projects(store: Store, text: str) -> tuple[int, ...]:
    """By folder, identity, remote URL or name; else by any part of the identity."""
    known = store.projects.known()
    given = Path(text).expanduser()
    if text.startswith((".", "/", "~")) and given.exists():
        identity = identify(str(given.resolve()), named=True).identity
        if found := [number for number, project in known if project.identity == identity]:
            return tuple(found)
    wanted = {
        text,
        normalise(text),
        str(given.absolute()) if text.startswith((".", "/", "~")) else text,
    }
    exact = [
        n
        for n, p in known
        if {p.identity, p.path, p.remote} & wanted or p.name.lower() == text.lower()
    ]
    exact += [number for cwd, number in store.projects.places().items() if cwd in wanted]
    found = exact or [
        n for n, p in known if text.lower() in p.identity.lower() or text.lower() in p.name.lower()
    ]
    if not found:
        raise NotFound(f"no project fits {text!r}", "See which there are: whyfor stats")
    return tuple(dict.fromkeys(found))
