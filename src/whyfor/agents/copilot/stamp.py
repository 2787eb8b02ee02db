"""The stamp of a Copilot CLI record."""

from __future__ import annotations

from whyfor.agents.base import RecordStamp, get_dict, get_str
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso


def stamp(record: Record) -> RecordStamp:
    """Return when and where a record was written."""
    at = parse_iso(record.get("timestamp"))
    kind = get_str(record, "type")
    place = record
    if kind.startswith("session."):
        place = get_dict(get_dict(record, "data"), "context")
    return RecordStamp(
        at=at,
        since=at or parse_iso(record.get("startTime")),
        cwd=get_str(place, "cwd") or None,
        session_id=get_str(record, "sessionId") or None,
        retells=kind in ("session.compaction_complete", "session.title_changed"),
        name=get_str(record, "id"),
    )
