"""Plain FTS5 over 2,000-character chunks of prose: reads a database and queries, one a line, and
prints the session ids each finds. What anybody could build in an afternoon; ours must not be
worse."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec

_CHUNK = 2_000  # characters
_LIMIT = 20  # sessions
_CHUNKS = 2_000  # that are looked at for them
_PROSE = """
    SELECT coalesce(p.session_id, s.session_id), e.text
    FROM events e
    JOIN sessions s ON s.id = e.session_id
    LEFT JOIN sessions p ON p.agent = s.agent AND p.session_id = s.parent
    WHERE e.kind IN ('user.prompt', 'assistant.message') AND e.text <> ''
    ORDER BY e.id
"""


def _texts(database: str) -> dict[str, str]:
    """What was said, by session; what a subagent said by the session that called it."""
    found: dict[str, list[str]] = {}
    for session, text in apsw.Connection(database, apsw.SQLITE_OPEN_READONLY).execute(_PROSE):
        found.setdefault(str(session), []).append(str(text))
    return {session: "\n".join(texts) for session, texts in found.items()}


def _chunks(text: str) -> Iterator[str]:
    for start in range(0, len(text), _CHUNK):
        yield text[start : start + _CHUNK]


def _index(database: str) -> apsw.Connection:
    db = apsw.Connection("")
    db.execute("CREATE VIRTUAL TABLE chunks USING fts5(id UNINDEXED, text)")
    with db:
        for session, text in _texts(database).items():
            rows = [(session, chunk) for chunk in _chunks(text)]
            db.executemany("INSERT INTO chunks VALUES (?, ?)", rows)
    return db


def _search(db: apsw.Connection, query: str) -> list[str]:
    words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
    found = db.execute(
        "SELECT id FROM chunks WHERE chunks MATCH ? ORDER BY rank LIMIT ?", (words, _CHUNKS)
    )
    return list(dict.fromkeys(str(row[0]) for row in found))[:_LIMIT]


def main() -> None:
    db = _index(sys.argv[1])
    queries = Path(sys.argv[2]).read_text().splitlines()
    sys.stdout.buffer.write(msgspec.json.encode([_search(db, query) for query in queries]))


if __name__ == "__main__":
    main()
