"""Every byte Whyfor keeps, to look for what must not be among them."""

from __future__ import annotations

from pathlib import Path

import apsw
import zstandard


def kept(home: Path) -> bytes:
    """All files raw, segments unpacked too, and every value in every table."""
    found = []
    for path in sorted(home.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            found.append(str(path.relative_to(home)).encode() + b"\n" + data)
            if path.suffix == ".zst":
                found.append(zstandard.ZstdDecompressor().decompress(data, max_output_size=1 << 28))
    database = home / "whyfor.db"
    if database.exists():
        db = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")]
        for table in tables:
            found += [repr(row).encode() for row in db.execute(f'SELECT * FROM "{table}"')]
        db.close()
    return b"\n".join(found)


def assert_nowhere(word: str, home: Path) -> None:
    everything = kept(home)
    at = everything.find(word.encode())
    assert at < 0, everything[max(0, at - 300) : at + 100]
