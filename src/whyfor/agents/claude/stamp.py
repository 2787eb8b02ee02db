"""When and where a record of Claude Code was written."""

from __future__ import annotations

from whyfor.agents.base import RecordStamp, as_str
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso


def stamp(record: Record) -> RecordStamp:
    at = parse_iso(record.get("timestamp"))
    return RecordStamp(
        at=at,
        since=at,
        cwd=as_str(record.get("cwd")) or None,
        session_id=as_str(record.get("sessionId")) or None,
        retells=bool(record.get("isCompactSummary")) or record.get("type") == "summary",
        name=as_str(record.get("id")) or as_str(record.get("uuid")),
        is_link="uuid" in record,
    )
