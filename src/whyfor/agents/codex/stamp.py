"""When and where a record of Codex was written."""

from __future__ import annotations

from whyfor.agents.base import RecordStamp, as_dict, as_str
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso


def stamp(record: Record) -> RecordStamp:
    at = parse_iso(record.get("timestamp"))
    kind = record.get("type")
    place = record
    if kind in ("session_meta", "turn_context"):
        place = as_dict(record.get("payload"))
    return RecordStamp(
        at=at,
        since=at,
        cwd=as_str(place.get("cwd")) or None,
        retells=kind == "compacted",
        name=as_str(record.get("id")),
    )
