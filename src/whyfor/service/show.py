"""show: one session as it is read, page by page, or one thing said or done in it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from whyfor.agents import decode
from whyfor.config import Settings
from whyfor.git.place import name_place
from whyfor.model.conversation import (
    Fragment,
    Item,
    View,
)
from whyfor.model.errors import NotFound
from whyfor.model.sessions import Person, Session
from whyfor.model.stories import FullStory
from whyfor.store.open import OpenStore, local_store, reading
from whyfor.story.commit_lookup import is_commit, require_commit
from whyfor.story.commit_stories import conversation_lines, full_story, stories_of
from whyfor.story.conversation.kinds import WHOLE
from whyfor.story.conversation.reader import ConversationReader
from whyfor.story.conversation.transcript import TranscriptFilter, transcript
from whyfor.story.injections import session_injections
from whyfor.story.resume import resume_command
from whyfor.story.session_lookup import find_session, load_conversation, session_named
from whyfor.story.tasks.board import spelled_keys

__all__ = [
    "TranscriptFilter",
    "conversation_lines",
    "is_commit",
    "is_task",
    "load_conversation",
    "raw_records",
    "resume_command",
    "session_item",
    "session_part",
    "session_person",
    "session_view",
    "show_commit",
    "transcript",
]


def is_task(settings: Settings, text: str) -> bool:
    """Return whether a text is the key of a task."""
    try:
        with reading(settings) as store:
            return bool(spelled_keys(store, text))
    except NotFound:
        return False


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
            resume=resume_command(session) if local_store(library) else None,
            who=library.people_of([session.id]).get(session.id),
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
            unlinked=_unlinked(library, session),
            told=session_injections(library, session),
        )


def _unlinked(library: OpenStore, session: Session) -> list[str]:
    taken = library.checkpoints.unlinked_from(session.agent, session.session_id)
    return [entry.commit for entry in taken]


def session_part(settings: Settings, agent: str, session_id: str, at: int) -> Fragment:
    """The page that has an event, alone."""
    with reading(settings) as library:
        reader = ConversationReader(library, session_named(library, agent, session_id))
        listed, _ = reader.outline(at)
        stretch = reader.stretch(reader.shape.page_of(at))
        return Fragment(reader.session, stretch, listed, len(listed), reader.shape.last)


def session_person(settings: Settings, agent: str, session_id: str) -> Person | None:
    """Return whose a session is, on a team; None on a laptop."""
    if settings.lend is None:
        return None
    with reading(settings) as library:
        session = session_named(library, agent, session_id)
        return library.people_of([session.id]).get(session.id)


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


def _parent(library: OpenStore, session: Session) -> Session | None:
    if session.parent_session_id is None:
        return None
    try:
        return library.sessions.find(session.parent_session_id, session.agent)
    except NotFound:
        return None  # its transcript was never here, or is forgotten


def show_commit(settings: Settings, reference: str | None, cwd: Path) -> FullStory:
    here = name_place(cwd)
    with reading(settings) as library:
        told = stories_of(library, here, [require_commit(library, reference, here)])[0]
        return full_story(library, here, told)


def raw_records(settings: Settings, reference: str) -> Iterator[bytes]:
    """The stored records of a session's transcript, byte for byte, piece by piece; a word stands
    for private ones."""
    with reading(settings) as library:
        session = find_session(library, reference)
        segments = library.records.segments(session)
        if not segments:
            raise NotFound(
                f"{session.session_id} has no transcript of its own",
                f"It was told by its parent: whyfor show {session.parent_session_id} --raw",
            )
        main = segments[0][0]
        for path, stored in segments:
            if path == main:
                data = library.blobs.get(stored.address)
                yield decode.fill_gaps(data, stored.start, stored.gaps)
