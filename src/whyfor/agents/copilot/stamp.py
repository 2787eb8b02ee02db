"""The stamp of a Copilot CLI record."""

from __future__ import annotations

from whyfor.agents.base import RecordStamp, as_dict, as_str
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso


def stamp(record: Record) -> RecordStamp:
    """Return when and where a record was written."""
    at = parse_iso(record.get("timestamp"))
    kind = as_str(record.get("type"))
    place = record
    if kind.startswith("session."):
        place = as_dict(as_dict(record.get("data")).get("context"))
    return RecordStamp(
        at=at,
        since=at or parse_iso(record.get("startTime")),
        cwd=as_str(place.get("cwd")) or None,
        session_id=as_str(record.get("sessionId")) or None,
        retells=kind in ("session.compaction_complete", "session.title_changed"),
        name=as_str(record.get("id")),
    )
