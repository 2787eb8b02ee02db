"""The work feed, as JSON."""

from __future__ import annotations

import msgspec

from whyfor.model.wire.base import copy_fields
from whyfor.model.work_feed import WorkEntry


class WireWorkEntry(msgspec.Struct, frozen=True):
    """Something that happened in a session, in one line."""

    at: str | None
    kind: str  # prompt | question | approval | failure | commit | done | attention
    text: str
    agent: str | None
    session_id: str | None
    title: str | None
    project: str | None
    seq: int | None  # the event that shows it
    sha: str | None  # of a commit
    state: str  # of an approval: waiting, allowed, denied …; of attention: its level
    times: int  # how often the same failure came again and again


def wire_entry(entry: WorkEntry) -> WireWorkEntry:
    return copy_fields(WireWorkEntry, entry)
