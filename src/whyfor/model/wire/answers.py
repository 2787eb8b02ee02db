"""Short answers of commands, as JSON."""

from __future__ import annotations

import msgspec

from whyfor.model.wire.sessions import WireSession


class WireUnlinked(msgspec.Struct, frozen=True):
    commit: str
    unlinked: list[str]  # sessions
    restored: list[str]  # sessions whose unlinking was undone


class WireAlias(msgspec.Struct, frozen=True):
    project: str | None
    sessions: int
    commits: int
    stories: int


class WireServer(msgspec.Struct, frozen=True):
    link: str
    address: str
    pid: int
    already: bool  # it ran before


class WireDemo(msgspec.Struct, frozen=True):
    home: str | None  # null: it is gone again
    repository: str | None
    whyfor_home: str | None
    records: int
    sessions: list[WireSession]


class WireText(msgspec.Struct, frozen=True):
    text: str  # what the command prints: a script, a page, a path
