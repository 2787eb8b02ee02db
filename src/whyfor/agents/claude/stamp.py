"""When and where a record of Claude Code was written."""

from __future__ import annotations

from whyfor.agents.base import RecordStamp, get_str
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso


def stamp(record: Record) -> RecordStamp:
    at = parse_iso(record.get("timestamp"))
    return RecordStamp(
        at=at,
        since=at,
        cwd=get_str(record, "cwd") or None,
        session_id=get_str(record, "sessionId") or None,
        retells=bool(record.get("isCompactSummary")) or record.get("type") == "summary",
        name=get_str(record, "id") or get_str(record, "uuid"),
        is_link="uuid" in record,
    )
