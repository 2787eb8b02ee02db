"""Projects, pauses and the reports of commands, as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.reports import (
    KnownProject,
    LastCapture,
    OpenWork,
    Paused,
    PauseReport,
    StatusReport,
)
from whyfor.model.sessions import Project
from whyfor.model.wire.base import copy_fields, time_text
from whyfor.model.wire.commits import WireCommit, wire_commit
from whyfor.model.wire.sessions import WireSession, wire_session


class WireProject(msgspec.Struct, frozen=True):
    identity: str
    evidence: str
    name: str
    remote: str | None
    root_commit: str | None
    path: str | None


class WireListedProject(WireProject, frozen=True):
    sessions: int
    last_at: str | None
    here: bool  # its repository can be asked for commits


class WireKnownProject(WireProject, frozen=True):
    paths: list[str]
    aliases: list[str]
    sessions: int
    stories: int


class WirePause(msgspec.Struct, frozen=True):
    what: str
    since: str | None
    until: str | None
    repository: str | None
    session: str | None
    resume: str  # the command that ends it


class WirePauseBegun(msgspec.Struct, frozen=True):
    begun: list[WirePause]
    paused: list[WirePause]


class WirePauseEnded(msgspec.Struct, frozen=True):
    ended: list[WirePause]
    paused: list[WirePause]


class WireCapture(msgspec.Struct, frozen=True):
    agent: str
    last_record_at: str | None
    last_hook_at: str | None


class WireTitledCapture(msgspec.Struct, frozen=True):
    agent: str
    title: str
    last_record_at: str | None
    last_hook_at: str | None


class WireServerHealth(msgspec.Struct, frozen=True):
    version: str
    agents: list[WireTitledCapture]
    paused: list[WirePause]
    trouble: list[str]  # what keeps this server from being up to date; empty is fine
    listeners: int


class WireOpenWork(msgspec.Struct, frozen=True):
    session: WireSession
    prompts: int
    files: list[str]


class WireUnread(msgspec.Struct, frozen=True):
    path: str
    reason: str


class WireStatusReport(msgspec.Struct, frozen=True):
    head: WireCommit | None
    active: list[WireSession]
    open: list[WireOpenWork]
    capture: list[WireCapture]
    paused: list[WirePause]
    unread: list[WireUnread]
    last: WireSession | None


def wire_listed_project(
    found: Project, sessions: int, last_at: int | None, *, here: bool
) -> WireListedProject:
    return copy_fields(WireListedProject, found, sessions=sessions, last_at=last_at, here=here)


def wire_known_project(found: KnownProject) -> WireKnownProject:
    own = msgspec.structs.asdict(found.project)
    return copy_fields(WireKnownProject, found, **own)


def wire_pause(found: Paused) -> WirePause:
    return copy_fields(WirePause, found)


def wire_pauses_begun(found: PauseReport) -> WirePauseBegun:
    return WirePauseBegun(*_pauses(found))


def wire_pauses_ended(found: PauseReport) -> WirePauseEnded:
    return WirePauseEnded(*_pauses(found))


def _pauses(found: PauseReport) -> tuple[list[WirePause], list[WirePause]]:
    return [wire_pause(each) for each in found.changed], [wire_pause(each) for each in found.paused]


def wire_titled_capture(found: LastCapture, title: str) -> WireTitledCapture:
    return copy_fields(WireTitledCapture, found, title=title)


def wire_status_report(found: StatusReport) -> WireStatusReport:
    return WireStatusReport(
        head=wire_commit(found.head) if found.head else None,
        active=[wire_session(each) for each in found.active],
        open=[_open_work(each) for each in found.open],
        capture=[copy_fields(WireCapture, each) for each in found.capture],
        paused=[wire_pause(each) for each in found.paused],
        unread=[WireUnread(*each) for each in sorted(found.unread.items())],
        last=wire_session(found.last) if found.last else None,
    )


def _open_work(found: OpenWork) -> WireOpenWork:
    return copy_fields(WireOpenWork, found, session=wire_session(found.session))


def wire_report(found: Any, **other: Any) -> Any:
    """A command's own report: its fields by their names, then `other`; a named tuple is an
    object, a time is text."""
    if isinstance(found, Paused):
        return wire_pause(found)
    if isinstance(found, msgspec.Struct):
        fields = msgspec.structs.asdict(found)
    elif hasattr(found, "_asdict"):
        fields = found._asdict()
    elif isinstance(found, list):
        return [wire_report(each) for each in found]
    else:
        return found
    return {name: time_text(name, wire_report(value)) for name, value in (fields | other).items()}
