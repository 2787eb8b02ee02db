"""When and where a row of OpenCode was written."""

from __future__ import annotations

from whyfor.agents.base import RecordStamp, as_dict, as_str
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso


def stamp(record: Record) -> RecordStamp:
    row = as_dict(record.get("row"))
    return RecordStamp(
        since=parse_iso(row.get("time_created")),
        until=parse_iso(row.get("time_updated")),
        cwd=as_str(row.get("directory")) or None,
        retells=record.get("type") == "session",
        name=as_str(record.get("id")),
    )
