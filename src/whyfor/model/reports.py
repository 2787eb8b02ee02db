"""Results of commands, before they are rendered as a table or JSON."""

from __future__ import annotations

import msgspec

from whyfor.model.events import StoredEvent
from whyfor.model.memory import Injection
from whyfor.model.sessions import Project, Session, Tokens
from whyfor.model.stories import CommitStory, StoryLine
from whyfor.model.turns import Turn


class Paused(msgspec.Struct, frozen=True):
    """A pause as it is reported."""

    what: str  # everything | repository | session
    since: int
    until: int | None
    repository: str | None = None  # its work tree
    session: str | None = None  # agent:id

    @property
    def resume(self) -> str:
        """Return the command that ends the pause."""
        from shlex import quote  # here, like others below: every ingest imports this module

        if self.session:
            return f"whyfor resume --session {self.session.lstrip(':')}"
        return (
            f"whyfor resume --repo {quote(self.repository)}" if self.repository else "whyfor resume"
        )

    @property
    def where(self) -> str:
        return (
            f"session {self.session.lstrip(':')}"
            if self.session
            else self.repository or "everywhere"
        )


class PauseReport(msgspec.Struct, frozen=True):
    changed: list[Paused]  # begun or made longer; for resume: ended
    paused: list[Paused]  # in effect now


class KnownProject(msgspec.Struct, frozen=True):
    project: Project
    paths: list[str]
    aliases: list[str]
    sessions: int
    stories: int


class OpenWork(msgspec.Struct, frozen=True):
    """Work of a session that is in no commit yet."""

    session: Session
    prompts: int
    files: list[str]  # it wrote since, and that differ from the last commit now


class LastCapture(msgspec.Struct, frozen=True):
    agent: str
    last_record_at: int | None
    last_hook_at: int | None


class StatusReport(msgspec.Struct, frozen=True):
    head: CommitStory | None
    active: list[Session]
    open: list[OpenWork]
    capture: list[LastCapture]
    paused: list[Paused]
    # files written by sessions that could not be compared with the last commit, and the reasons
    unread: dict[str, str] = {}
    last: Session | None = None  # that was open here in the last day, and is no longer


class CommitRange(msgspec.Struct, frozen=True):
    """What was said between two commits: after the first, up to and including the second."""

    commits: list[CommitStory]  # newest first
    sessions: list[tuple[Session, int]]  # with the messages that were new
    messages: int
    tokens: Tokens
    prompts: list[StoryLine]


class Conversation(msgspec.Struct, frozen=True):
    session: Session
    events: list[StoredEvent]
    turns: list[Turn]
    abandoned: set[int]
    children: list[Session]
    told: list[Injection] = []  # of earlier sessions, by Whyfor
    imported_from: str | None = None  # the import that brought it
    person: str | None = None  # who shared it, if it is not kept here
