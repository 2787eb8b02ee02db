"""When and where a row of OpenCode was written."""

from __future__ import annotations

from whyfor.agents.base import RecordStamp, get_dict, get_str
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso


def stamp(record: Record) -> RecordStamp:
    row = get_dict(record, "row")
    return RecordStamp(
        since=parse_iso(row.get("time_created")),
        until=parse_iso(row.get("time_updated")),
        cwd=get_str(row, "directory") or None,
        retells=record.get("type") == "session",
        name=get_str(record, "id"),
    )
