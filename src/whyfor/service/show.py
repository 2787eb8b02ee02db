"""show: one session as it is read, page by page, or one thing said or done in it."""

from __future__ import annotations

import shlex

from whyfor.agents import AGENTS
from whyfor.config import Settings
from whyfor.model.conversation import (
    Fragment,
    Item,
    View,
)
from whyfor.model.errors import NotFound
from whyfor.model.sessions import Session
from whyfor.store.open import OpenStore, reading
from whyfor.story.conversation.kinds import WHOLE
from whyfor.story.conversation.reader import ConversationReader


def session_view(settings: Settings, agent: str, session_id: str, at: int | None = None) -> View:
    """The page that has an event (or the first one), and the end."""
    with reading(settings) as library:
        reader = ConversationReader(library, session_named(library, agent, session_id))
        shape, session = reader.shape, reader.session
        page = shape.page_of(at) if at is not None else 0
        listed, left = reader.outline(at)
        files, files_left = reader.files()
        return View(
            session=session,
            version=library.sessions.agent_version(session.id),
            parent=_parent(library, session),
            resume=resume_command(session),
            outline=listed,
            outline_left=left,
            turns=sum(1 for turn in shape.turns.values() if turn.prompt is not None),
            parts=reader.parts(page),
            marks=reader.marks,
            files=files,
            files_left=files_left,
            tokens=reader.tokens,
            last=shape.last,
            children=len(reader.children),
        )


def session_part(settings: Settings, agent: str, session_id: str, at: int) -> Fragment:
    """The page that has an event, alone."""
    with reading(settings) as library:
        reader = ConversationReader(library, session_named(library, agent, session_id))
        listed, _ = reader.outline(at)
        stretch = reader.stretch(reader.shape.page_of(at))
        return Fragment(reader.session, stretch, listed, len(listed), reader.shape.last)


def session_item(settings: Settings, agent: str, session_id: str, seq: int) -> tuple[Session, Item]:
    """One thing said or done, whole."""
    with reading(settings) as library:
        reader = ConversationReader(library, session_named(library, agent, session_id), WHOLE)
        found = reader.one(seq) or reader.one(reader.called(seq))
        if not found:
            raise NotFound(
                f"there is nothing to show at {seq} in this session", "Go back to the session."
            )
        return reader.session, found[0]


def session_named(library: OpenStore, agent: str, session_id: str) -> Session:
    if agent not in AGENTS:
        raise NotFound(f"no such agent: {agent[:40]!r}", f"Agents: {', '.join(AGENTS)}.")
    session = library.sessions.find(session_id, agent)
    if session.session_id != session_id:
        raise NotFound(
            f"no session is called {session_id[:80]!r}", "List them: whyfor sessions --all"
        )
    return session


def resume_command(session: Session) -> str | None:
    """What resumes it in its agent; a subagent has no life of its own."""
    if session.parent_session_id is not None:
        return None
    ident = shlex.quote(session.session_id)
    agent = AGENTS.get(session.agent)
    return agent.resume(ident) if agent else None


def _parent(library: OpenStore, session: Session) -> Session | None:
    if session.parent_session_id is None:
        return None
    try:
        return library.sessions.find(session.parent_session_id, session.agent)
    except NotFound:
        return None  # its transcript was never here, or is forgotten
