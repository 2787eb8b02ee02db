"""What a person should know about sessions, as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.model.attention import Firing, ListedFiring
from whyfor.model.times import to_iso
from whyfor.model.wire.base import copy_fields


class WireFiring(msgspec.Struct, frozen=True):
    """Something a person should know, how we know, and what to do about it."""

    id: str
    cause: str
    word: str
    level: str  # act | look | know
    agent: str | None  # null: about several sessions together
    session_id: str | None
    title: str | None
    project: str | None
    branch: str | None
    fact: str
    evidence: str
    confidence: str
    step: str
    command: str | None
    share: float | None
    seq: int | None
    others: list[str]  # further sessions: agent:id
    began_at: str | None
    told_at: str | None
    cleared_at: str | None
    muted: bool


class WireReplay(msgspec.Struct, frozen=True):
    """What would have been told of stored sessions."""

    sessions: int
    firings: list[WireFiring]


class WireAlertWay(msgspec.Struct, frozen=True):
    """One way a person is alerted."""

    way: str  # desktop | command | url | terminal
    to: str
    error: str | None  # of a test: why nothing arrived


class WireAlerts(msgspec.Struct, frozen=True):
    ways: list[WireAlertWay]
    levels: list[str]
    quiet: str
    problems: list[str]


class StreamFiring(msgspec.Struct, frozen=True):
    """The same in the stream, as far as the monitor knows it."""

    id: str
    session: str  # agent:id; empty: about several sessions together
    cause: str
    word: str
    level: str
    fact: str
    evidence: str
    step: str
    muted: bool
    told_at: str | None
    gone: bool  # it does not hold any more


def wire_firing(listed: ListedFiring) -> WireFiring:
    return copy_fields(
        WireFiring,
        listed.firing.found,
        **_fields(listed.firing),
        title=listed.title,
        project=listed.project,
        branch=listed.branch,
    )


def stream_firing(firing: Firing, *, gone: bool) -> StreamFiring:
    found = firing.found
    return copy_fields(
        StreamFiring,
        found,
        id=firing.id,
        session=firing.session,
        word=firing.word,
        level=firing.level,
        muted=firing.muted,
        told_at=to_iso(firing.told_at),
        gone=gone,
    )


def _fields(firing: Firing) -> dict[str, Any]:
    return {
        "id": firing.id,
        "word": firing.word,
        "level": firing.level,
        "agent": firing.agent,
        "session_id": firing.session_id,
        "others": list(firing.found.others),
        "began_at": to_iso(firing.found.at),
        "told_at": to_iso(firing.told_at),
        "cleared_at": to_iso(firing.cleared_at),
        "muted": firing.muted,
    }


def wire_alerts(found: msgspec.Struct) -> WireAlerts:
    return msgspec.convert(msgspec.to_builtins(found), WireAlerts)
