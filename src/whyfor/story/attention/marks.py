"""Firings as they were written down: told, cleared, muted."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.attention import AttentionMark, Firing, firing_id
from whyfor.model.signals import Signal


class AttentionRecord(msgspec.Struct, frozen=True):
    """What is on record: firings by id, oldest first, and what is muted: session and cause."""

    firings: dict[str, Firing]
    muted: frozenset[tuple[str, str]]


def read_marks(signals: Iterable[Signal]) -> AttentionRecord:
    """Return the firings that signals tell of, in the order they were told. A line that cannot be
    read is passed over."""
    firings: dict[str, Firing] = {}
    muted: dict[tuple[str, str], None] = {}
    for signal in signals:
        try:
            mark = msgspec.convert(signal.data.get("attention"), AttentionMark)
        except msgspec.ValidationError:
            continue
        session = f"{signal.session_agent}:{signal.session_id}" if signal.session_id else ""
        if mark.state == "muted":
            muted[session, mark.cause] = None
        elif mark.state == "unmuted":
            muted.pop((session, mark.cause), None)
        else:
            _apply(firings, session, mark, signal)
    told = {
        ident: msgspec.structs.replace(each, muted=(each.session, each.found.cause) in muted)
        for ident, each in firings.items()
    }
    return AttentionRecord(told, frozenset(muted))


def _apply(firings: dict[str, Firing], session: str, mark: AttentionMark, signal: Signal) -> None:
    ident = firing_id(session, mark.cause, mark.key)
    known = firings.get(ident)
    if mark.state == "told" and mark.found is not None:
        firings[ident] = Firing(
            agent=signal.session_agent,
            session_id=signal.session_id,
            found=mark.found,
            told_at=signal.at if known is None else known.told_at,
        )
    elif mark.state == "cleared" and known is not None:
        firings[ident] = msgspec.structs.replace(known, cleared_at=signal.at)
