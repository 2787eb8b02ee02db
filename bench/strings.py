"""The texts in a transcript's records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec


def leaves(value: object, key: str = "") -> Iterator[tuple[str, str]]:
    """(key, text) of every string, in order."""
    if isinstance(value, str):
        yield key, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, key)


def texts(path: Path, limit: int) -> list[list[str]]:
    """The strings of each record of a session, up to that many bytes of it."""
    found: list[list[str]] = []
    with path.open("rb") as lines:
        read = 0
        for line in lines:
            with suppress(msgspec.DecodeError):
                found.append([text for _, text in leaves(msgspec.json.decode(line))])
            read += len(line)
            if read > limit:
                break
    return found
