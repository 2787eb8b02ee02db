"""Rows of an agent's database as JSON lines, and a checksum that shows whether one changed."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import apsw
import msgspec

from whyfor.agents.base import MAX_DECODED
from whyfor.agents.databases.connection import Database
from whyfor.hook.private import marked, spans, without


def row_line(
    db: Database, table: str, columns: list[str], name: str, ident: Any, **more: Any
) -> bytes:
    """Return a row with all its columns as a JSON line; `name` is the column that identifies it,
    `more` stands beside the row. Of one that is too large, return only that it exists."""
    names = ['"' + column.replace('"', '""') + '"' for column in columns]
    try:
        row = _row(db, table, names, name, ident)
    except apsw.TooBigError:
        about = {"type": f"{table} of more than {MAX_DECODED >> 20} MB", "row": {"id": ident}}
        return msgspec.json.encode(about) + b"\n"
    except UnicodeDecodeError:
        raw = _row(db, table, [f"CAST({column} AS BLOB)" for column in names], name, ident)
        row = tuple(v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in raw)
    told = {"type": table, "row": dict(zip(columns, row, strict=True)), **more}
    return msgspec.json.encode(told) + b"\n"


def line_sum(line: bytes) -> int:
    """Return a checksum that shows whether a row changed. Private text is left out, so that it
    cannot be guessed from the checksum."""
    return crc32(without(line, (spans(line) if marked(line) else None) or []))


def _row(db: Database, table: str, names: list[str], name: str, ident: Any) -> tuple[Any, ...]:
    sql = f"SELECT {', '.join(names)} FROM {table} WHERE {name}=?"
    return next(db.query(sql, ident))
