"""Find sessions: by id, by part of an id, or by the filters people give."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from whyfor.agents import AGENTS
from whyfor.config import Settings
from whyfor.git.identity import identify, normalise
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.paths import to_text
from whyfor.model.query import FIELDS, Filters, SessionFilter
from whyfor.model.reports import Conversation
from whyfor.model.sessions import Session
from whyfor.model.times import parse_when
from whyfor.store.open import OpenStore, local_store, reading
from whyfor.store.protocol import SharedStore
from whyfor.story.injections import session_injections
from whyfor.story.rewinds import abandoned
from whyfor.story.tasks.board import require_key
from whyfor.story.tokens import turns_of
from whyfor.story.whole_text import whole_events


def load_conversation(settings: Settings, reference: str, *, whole: bool = True) -> Conversation:
    """Return a session with its events; unless `whole`, long results of tools are shortened."""
    with reading(settings) as library:
        session = find_session(library, reference)
        found = library.conversation.events(session.id)
        events = list(whole_events(library, session.id, found) if whole else found)
        children = library.sessions.children([session.session_id])
        return Conversation(
            session,
            events,
            turns_of(library, session, events),
            abandoned(events),
            children,
            session_injections(library, session),
            imported_from(settings, library, session),
        )


def imported_from(settings: Settings, library: OpenStore, session: Session) -> str | None:
    """Return the name of the import that brought a session; None if its agent wrote it here."""
    folder = to_text(settings.imports) + os.sep
    paths = [source.path for source in library.records.sources_of(session)]
    if not paths or not all(path.startswith(folder) for path in paths):
        return None
    return paths[0].removeprefix(folder).partition(os.sep)[0]


_SHORT = 8  # characters of an id, where they fit one session alone


def short_ids(settings: Settings, names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Map agent:id of sessions to what people can type for each of them."""
    with reading(settings) as library:
        return printed_session_ids(library, names)


def printed_session_ids(library: SharedStore, names: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Map agent:id of sessions to what is printed of each: every command takes it for this
    session alone."""
    return library.sessions.short_ids(names, _SHORT)


def find_session(library: SharedStore, reference: str) -> Session:
    agent, _, rest = reference.partition(":")
    return (
        library.sessions.find(rest, agent)
        if agent in AGENTS and rest
        else library.sessions.find(reference)
    )


def parse_filters(store: SharedStore, where: SessionFilter) -> Filters:
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
        file=_file(where.file),
        task=require_key(store, where.task) if where.task else None,
        person=parse_person(store, where.who or ""),
    )


def parse_person(store: SharedStore, text: str) -> int | None:
    """Return whose sessions are asked for; None for everybody's. Raises BadInput if it is no
    number, or this is no team's."""
    if not text:
        return None
    if local_store(store) is not None or not (text.isascii() and text.isdigit() and len(text) < 10):
        raise BadInput(f"no such person: {text[:40]!r}", "Choose one in the list.")
    return int(text)


def _file(text: str | None) -> str | None:
    """Return the end of a path as people type it; one that leads up is meant from here."""
    if text is None:
        return None
    plain = text.replace("\\", "/").removeprefix("./")
    return os.path.abspath(text) if plain.startswith("../") or plain == "." else plain  # noqa: PTH100 - links stay as typed


def _fields(text: str | None) -> tuple[str, ...]:
    names = tuple(name for name in re.split(r"[,\s]+", text or "") if name)
    for name in names:
        if name not in FIELDS:
            raise BadInput(f"nothing to search in: {name}", f"Search in: {', '.join(FIELDS)}.")
    return names


def _chosen(store: SharedStore, where: SessionFilter) -> tuple[int, ...] | None:
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


def _projects(store: SharedStore, text: str) -> tuple[int, ...]:
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


def session_named(library: OpenStore, agent: str, session_id: str) -> Session:
    if agent not in AGENTS:
        raise NotFound(f"no such agent: {agent[:40]!r}", f"Agents: {', '.join(AGENTS)}.")
    session = library.sessions.find(session_id, agent)
    if session.session_id != session_id:
        raise NotFound(
            f"no session is called {session_id[:80]!r}", "List them: whyfor sessions --all"
        )
    return session
