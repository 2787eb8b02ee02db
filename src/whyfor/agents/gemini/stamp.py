"""When a record of Gemini CLI was written; where, it does not say."""

from __future__ import annotations

from whyfor.agents.base import RecordStamp, as_dict, as_list, as_str
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso


def stamp(record: Record) -> RecordStamp:
    at = parse_iso(record.get("timestamp"))
    found = RecordStamp(
        at=at,
        since=at or parse_iso(record.get("startTime")),
        session_id=as_str(record.get("sessionId")) or None,
        name=as_str(record.get("id")),
    )
    changes = as_dict(record.get("$set"))
    calls = as_list(record.get("toolCalls"))
    if calls:
        # written again with what came of it
        times = [parse_iso(as_dict(call).get("timestamp")) for call in calls]
        found.until = max((time for time in times if time is not None), default=None)
    elif changes:
        found.since = parse_iso(changes.get("lastUpdated"))
        found.retells = not changes.keys().isdisjoint(("messages", "summary"))
    return found
