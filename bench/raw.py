"""The raw limit: decode every record under a folder and keep nothing. Prints records, bytes and
failures."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

AGENT_FOLDERS = (".claude", ".codex", ".gemini", ".copilot")


def transcripts(home: Path) -> Iterator[Path]:
    for folder in AGENT_FOLDERS:
        yield from sorted(path for path in (home / folder).rglob("*.json*") if path.is_file())


def records(path: Path) -> Iterator[bytes]:
    """Lines, or the whole file where it is one pretty-printed document."""
    if path.suffix == ".json":
        yield path.read_bytes()
        return
    with path.open("rb") as file:
        yield from file


def main() -> None:
    decode = msgspec.json.Decoder().decode
    count = size = failed = 0
    for path in transcripts(Path(sys.argv[1])):
        for record in records(path):
            count += 1
            size += len(record)
            try:
                decode(record)
            except msgspec.DecodeError:
                failed += 1
    print(count, size, failed)


if __name__ == "__main__":
    main()
