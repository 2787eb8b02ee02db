"""JSON in ASCII on one line: for files that a program without a JSON library passes on."""

from __future__ import annotations

import msgspec


def ascii_json(value: object) -> bytes:
    """Return a value as JSON in ASCII, on one line."""
    text = msgspec.json.encode(value).decode()
    return "".join(_escaped(character) for character in text).encode()


def _escaped(character: str) -> str:
    if character < "\x7f":
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))
