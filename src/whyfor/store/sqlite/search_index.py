"""The search index: one document per turn, or per 64k characters of a long one.

Boundaries depend on the events alone, so a session indexed piece by piece has the same documents
as one indexed at once; an append re-makes only the last document. What a tool printed has a
column of its own: a later `git log` repeats the words of earlier work and must not outrank it. A
session's title is a document with seq 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import apsw

from whyfor.model.events import SEQ_BITS
from whyfor.store.sqlite.connection import fetch

MAX_DOC = 65_536
COLUMNS = ("prompts", "answers", "thinking", "tools", "results")
_COLUMN = {"user.prompt": 0, "assistant.message": 1, "assistant.thinking": 2, "tool.result": 4}
_TOOLS = 3
_INSERT = f"INSERT INTO words(rowid, {', '.join(COLUMNS)}, files, names) VALUES(?,?,?,?,?,?,?,?)"


class _Doc:
    __slots__ = ("created_at", "first", "last", "names", "size", "texts", "turn")

    def __init__(self, seq: int, turn: int, created_at: int | None) -> None:
        self.first = self.last = seq
        self.turn = turn
        self.created_at = created_at
        self.size = 0
        self.texts: tuple[list[str], ...] = ([], [], [], [], [])
        self.names: set[str] = set()


def index_session(db: apsw.Connection, session: int, dirty_from: int) -> None:
    """Bring the documents of a session up to date from a changed event on."""
    base = session << SEQ_BITS
    top = base + (1 << SEQ_BITS) - 1
    last = fetch(
        db, "SELECT max(id) FROM docs WHERE id BETWEEN ? AND ?", (base + 1, base + dirty_from)
    )[0][0]
    first = base + 1 if last is None else int(last)
    old = fetch(db, "SELECT id FROM docs WHERE id BETWEEN ? AND ?", (first, top))
    if old:
        db.executemany("DELETE FROM words WHERE rowid=?", old)
        db.executemany("DELETE FROM docs WHERE id=?", old)
    files = _files(db, session, first - base)
    rows: list[tuple[int, int, int, int | None]] = []

    def words() -> Iterator[tuple[Any, ...]]:
        for doc in _documents(db, base, first, top):
            ident = base + doc.first
            rows.append((ident, doc.last, doc.turn, doc.created_at))
            paths = {path for seq, path in files if doc.first <= seq <= doc.last} if files else ()
            columns = ("\n".join(texts) for texts in doc.texts)
            yield (ident, *columns, "\n".join(sorted(paths)), "\n".join(sorted(doc.names)))

    db.executemany(_INSERT, words())
    db.executemany("INSERT INTO docs VALUES(?,?,?,?)", rows)


def index_title(db: apsw.Connection, session: int, title: str, created_at: int | None) -> None:
    ident = session << SEQ_BITS
    db.execute("DELETE FROM words WHERE rowid=?", (ident,))
    db.execute("INSERT OR REPLACE INTO docs VALUES(?,0,1,?)", (ident, created_at))
    db.execute("INSERT INTO words(rowid, title) VALUES(?,?)", (ident, title))


def _documents(db: apsw.Connection, base: int, first: int, top: int) -> Iterator[_Doc]:
    doc: _Doc | None = None
    query = (
        "SELECT id, turn, kind, name, text, created_at FROM event_texts WHERE id BETWEEN ? AND ?"
    )
    found: Any = db.execute(query, (first, top))
    for ident, turn, kind, name, text, created_at in found:
        seq = ident - base
        if doc is None or doc.turn != turn or doc.size >= MAX_DOC:
            if doc is not None:
                yield doc
            doc = _Doc(seq, turn, created_at)
        doc.last = seq
        if doc.created_at is None:
            doc.created_at = created_at
        if text:
            doc.size += len(text)
            doc.texts[_COLUMN.get(kind, _TOOLS)].append(text)
        if name:
            doc.names.add(name)
    if doc is not None:
        yield doc


def _files(db: apsw.Connection, session: int, seq: int) -> list[tuple[int, str]]:
    found: Any = db.execute(
        "SELECT seq, path FROM touches WHERE session_id=? AND seq>=?", (session, seq)
    )
    return list(found)
