"""A session at a glance, beside the list: how to resume it, what was asked and said, and what came
of it."""

from __future__ import annotations

import msgspec

from whyfor.config import Settings
from whyfor.model.checkpoints import Checkpoint
from whyfor.model.events import SpokenWord
from whyfor.model.listing import ListedSession
from whyfor.model.paths import path_within, to_path
from whyfor.model.sessions import Person
from whyfor.store.open import OpenStore, local_store, reading
from whyfor.story.resume import agent_command, resume_anywhere
from whyfor.story.session_ends import end_texts
from whyfor.story.session_lookup import session_named

_SAID = 900  # characters of what was said last
_FILES = 8


class SessionPeek(msgspec.Struct, frozen=True):
    row: ListedSession
    resume: str | None
    folder_gone: bool  # the folder it ran in is not on this machine
    request: SpokenWord | None  # what was asked first
    closing: SpokenWord | None  # what the agent said last
    commits: list[Checkpoint]  # newest first
    files: list[str]
    files_left: int
    ends: dict[int, str]
    who: Person | None  # of a team
    title_source: str | None  # where the row's title comes from, see model/titles.py


def session_peek(settings: Settings, agent: str, session_id: str) -> SessionPeek:
    """Return what is worth knowing of the row that a session stands in; NotFound if there is no
    such session."""
    with reading(settings) as library:
        session = session_named(library, agent, session_id)
        head = library.listing.heads_of([session.id])[session.id]
        row = library.listing.rows([head])[head]
        members = library.listing.members([head])[head]
        files = sorted(library.sessions.written_paths(members))
        gone, resume = False, None
        if local_store(library):  # what a teammate's machine has cannot be resumed here
            gone = bool(row.cwd) and not to_path(row.cwd or "").is_dir()
            resume = resume_anywhere(row.agent, row.session_id, row.cwd, settings.user_home)
            if resume is None and not gone and not row.lone:
                resume = agent_command(row.agent, row.session_id)
        return SessionPeek(
            row=row,
            resume=None if row.lone else resume,
            folder_gone=gone,
            request=_request(library, head),
            closing=_closing(library, row.id),
            commits=_commits(library, members),
            files=[path_within(path, row.cwd) for path in files[:_FILES]],
            files_left=max(0, len(files) - _FILES),
            ends=end_texts(library, [row]),
            who=library.people_of([row.id]).get(row.id),
            title_source=library.sessions.by_number([row.id])[row.id].title_source,
        )


def _request(library: OpenStore, session: int) -> SpokenWord | None:
    seq = library.conversation.first_request(session, 0, library.conversation.last_seq(session))
    return library.conversation.last_request(session, seq, seq) if seq is not None else None


def _closing(library: OpenStore, session: int) -> SpokenWord | None:
    seq = library.conversation.last_of_kind(session, "assistant.message")
    found = library.conversation.events_at(session, [seq], _SAID + 1) if seq is not None else []
    if not found:
        return None
    said = found[0]
    text = said.text[:_SAID]
    return SpokenWord(
        "closing words", said.seq, said.turn, said.created_at, text, len(said.text) > _SAID
    )


def _commits(library: OpenStore, sessions: list[int]) -> list[Checkpoint]:
    found = library.checkpoints.of_sessions(sessions).values()
    live = [checkpoint for checkpoint in found if checkpoint.superseded_by is None]
    return sorted(live, key=lambda checkpoint: -checkpoint.committed_at)
