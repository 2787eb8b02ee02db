"""Pauses as the journal told them, kept beside it so that no ingest has to read the journal through."""

from __future__ import annotations

import apsw
import msgspec

from whyfor.store.journal import PauseEntry
from whyfor.store.sqlite import fetch


def load(db: apsw.Connection) -> list[PauseEntry]:
    return [msgspec.json.decode(body, type=PauseEntry) for (body,) in fetch(db, "SELECT body FROM pauses ORDER BY id")]


def save(db: apsw.Connection, pause: PauseEntry) -> None:
    db.execute("INSERT OR REPLACE INTO pauses VALUES(?,?)", (pause.id, msgspec.json.encode(pause).decode()))
