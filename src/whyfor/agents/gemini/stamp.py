"""When a record of Gemini CLI was written; where, it does not say."""

from __future__ import annotations

from whyfor.agents.base import RecordStamp, as_dict, get_dict, get_list, get_str
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso


def stamp(record: Record) -> RecordStamp:
    at = parse_iso(record.get("timestamp"))
    found = RecordStamp(
        at=at,
        since=at or parse_iso(record.get("startTime")),
        session_id=get_str(record, "sessionId") or None,
        name=get_str(record, "id"),
    )
    changes = get_dict(record, "$set")
    calls = get_list(record, "toolCalls")
    if calls:
        # written again with what came of it
        times = [parse_iso(as_dict(call).get("timestamp")) for call in calls]
        found.until = max((time for time in times if time is not None), default=None)
    elif changes:
        found.since = parse_iso(changes.get("lastUpdated"))
        found.retells = not changes.keys().isdisjoint(("messages", "summary"))
    return found
