"""When and where a record of Codex was written."""

from __future__ import annotations

from whyfor.agents.base import RecordStamp, get_dict, get_str
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso


def stamp(record: Record) -> RecordStamp:
    at = parse_iso(record.get("timestamp"))
    kind = record.get("type")
    place = record
    if kind in ("session_meta", "turn_context"):
        place = get_dict(record, "payload")
    return RecordStamp(
        at=at,
        since=at,
        cwd=get_str(place, "cwd") or None,
        retells=kind == "compacted",
        name=get_str(record, "id"),
    )
