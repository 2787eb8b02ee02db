"""Every place a byte could hide in, below Whyfor's home."""

from __future__ import annotations

from pathlib import Path

import apsw
import zstandard

CANARY = "zqcanaryqz"


def traces(home: Path, text: str = CANARY) -> list[str]:
    """Where a text is still found: raw files, segments unpacked, every column of every row, the
    words of the index."""
    raw = text.encode()
    found = [
        str(path.relative_to(home))
        for path in _files(home)
        if raw.lower() in path.read_bytes().lower()
    ]
    for path in _files(home / "segments"):
        if raw in zstandard.ZstdDecompressor().decompress(
            path.read_bytes(), max_output_size=1 << 28
        ):
            found.append(f"unpacked {path.name}")
    return found + in_database(home, text)


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []


def in_database(home: Path, text: str = CANARY) -> list[str]:
    db = apsw.Connection(str(home / "whyfor.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        found = []
        tables = """
            SELECT name FROM sqlite_schema
            WHERE type='table' AND name NOT LIKE 'words%' AND name NOT LIKE 'passages%'
        """
        for (table,) in list(db.execute(tables)):
            for row in db.execute(f"SELECT * FROM {table}"):
                if any(_holds(value, text) for value in row):
                    found.append(f"{table}: {row!r}"[:300])
        for index in ("words", "passages"):
            db.execute(
                f"CREATE VIRTUAL TABLE temp.terms_{index} USING fts5vocab(main, {index}, row)"
            )
            terms = [str(term) for (term,) in db.execute(f"SELECT term FROM temp.terms_{index}")]
            found += [f"term {term}" for term in terms if text.lower() in term]
            rows = db.execute(f"SELECT rowid FROM {index} WHERE {index} MATCH ?", (f'"{text}"',))
            found += [f"match {row}" for row in rows]
        return found
    finally:
        db.close()


def _holds(value: object, text: str) -> bool:
    if isinstance(value, bytes):
        return text.encode() in value
    return isinstance(value, str) and text in value
