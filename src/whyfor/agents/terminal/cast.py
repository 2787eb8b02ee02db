"""Asciicast: the header of a recording, and its events. Version 3 counts time from event to event,
version 2 from the beginning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from whyfor.agents.base import as_int, as_list, get_dict, get_str
from whyfor.model.casts import CAST, CastEvent
from whyfor.model.findings import Record
from whyfor.model.ids import fold_bytes

COLUMNS, ROWS = 80, 24
_SIZE_MAX = 1000  # rows or columns; more is damage
_INTERVAL_MAX = 366 * 86_400.0  # seconds


class TerminalSize(msgspec.Struct, frozen=True):
    columns: int = COLUMNS
    rows: int = ROWS


def is_header(record: Record) -> bool:
    """Return whether a record begins a recording."""
    return is_older(record) or (record.get("version") == 3 and isinstance(record.get("term"), dict))


def is_older(record: Record) -> bool:
    """Return whether it begins one of version 2."""
    return record.get("version") == 2 and "width" in record and "height" in record


def recording_name(header: Record, head: bytes) -> str:
    """Return the session's id: the one the recorder gave it, else one made of the header."""
    own = get_str(get_dict(header, "whyfor"), "session")
    if own:
        return own
    line = head.partition(b"\n")[0].removesuffix(b"\r")
    return f"cast-{fold_bytes(0, line) & (2**64 - 1):016x}"


def header_time(header: Record) -> int | None:
    """Return when a recording began, in ms; None if it does not say."""
    told = header.get("timestamp")
    if isinstance(told, bool) or not isinstance(told, int | float):
        return None
    return as_int(round(told * 1000)) if 0 < told < 1e11 else None


def header_size(header: Record) -> TerminalSize:
    if is_older(header):
        return terminal_size(header.get("width"), header.get("height"))
    term = get_dict(header, "term")
    return terminal_size(term.get("cols"), term.get("rows"))


def terminal_size(columns: object, rows: object) -> TerminalSize:
    """Return the size, with the usual one in place of what cannot be."""
    wide, high = as_int(columns) or 0, as_int(rows) or 0
    return TerminalSize(
        wide if 0 < wide <= _SIZE_MAX else COLUMNS, high if 0 < high <= _SIZE_MAX else ROWS
    )


def resized(text: str) -> TerminalSize:
    """Return the size that a resize event tells: 100x40."""
    columns, _, rows = text.partition("x")
    whole = columns.isdecimal() and rows.isdecimal() and len(text) < 12
    return terminal_size(int(columns), int(rows)) if whole else TerminalSize()


def cast_event(record: Record) -> CastEvent | None:
    """Return an event of a recording; None if the record is none."""
    told = as_list(record.get(CAST))
    if len(told) != 3:
        return None
    interval, code, text = told
    if isinstance(interval, bool) or not isinstance(interval, int | float):
        return None
    is_sane = 0 <= interval < _INTERVAL_MAX and isinstance(code, str) and isinstance(text, str)
    return CastEvent(float(interval), code, text) if is_sane else None


def cast_events(records: Iterable[Record]) -> Iterator[CastEvent]:
    for record in records:
        found = cast_event(record)
        if found is not None:
            yield found
