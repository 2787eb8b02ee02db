"""Plain FTS5 over whole sessions: reads queries, one a line, and prints the session ids each
finds."""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec

from raw import records, transcripts

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LIMIT = 20


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _session(path: Path, record: object) -> str:
    """The id is in the path (of a subagent's file: the parent's); Gemini has it inside."""
    if isinstance(record, dict) and isinstance(record.get("sessionId"), str):
        return str(record["sessionId"])
    found = _UUID.findall(str(path))
    return found[-1] if found else path.stem


def _decoded(path: Path) -> Iterator[object]:
    for record in records(path):
        try:
            yield msgspec.json.decode(record)
        except msgspec.DecodeError:
            continue


def _texts(home: Path) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = defaultdict(list)
    for path in transcripts(home):
        session = ""
        for record in _decoded(path):
            session = session or _session(path, record)
            texts[session].extend(_strings(record))
    return texts


def _index(home: Path) -> apsw.Connection:
    db = apsw.Connection("")
    db.execute("create virtual table sessions using fts5(id unindexed, text)")
    with db:
        for session, texts in _texts(home).items():
            db.execute("insert into sessions values (?, ?)", (session, "\n".join(texts)))
    return db


def _search(db: apsw.Connection, query: str) -> list[str]:
    words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", query))
    found = db.execute(
        "select id from sessions where sessions match ? order by rank limit ?", (words, _LIMIT)
    )
    return [str(row[0]) for row in found]


def main() -> None:
    db = _index(Path(sys.argv[1]))
    queries = Path(sys.argv[2]).read_text().splitlines()
    sys.stdout.buffer.write(msgspec.json.encode([_search(db, query) for query in queries]))


if __name__ == "__main__":
    main()
