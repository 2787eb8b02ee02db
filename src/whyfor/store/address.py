"""Where the bytes of a segment are: a whole object, or a part of one that several were merged
into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Address(NamedTuple):
    """Written as `digest` for a whole object, and as `digest@start+size` for a part of one."""

    object: str
    start: int = 0
    size: int | None = None  # none is all of it

    def __str__(self) -> str:
        return self.object if self.size is None else f"{self.object}@{self.start}+{self.size}"


# an object → the one that holds it, from which byte on, how many
Merged = Mapping[str, tuple[str, int, int]]


def parse_address(address: str) -> Address:
    name, _, part = address.partition("@")
    if not part:
        return Address(name)
    start, _, size = part.partition("+")
    return Address(name, int(start), int(size))


def follow_merges(address: str, merged: Merged) -> str:
    """Return the address of the same bytes after all merges. A merge always produces a larger
    object, so this ends."""
    name, start, size = parse_address(address)
    if name not in merged:
        return address
    while held := merged.get(name):
        name, offset, whole = held
        start, size = start + offset, whole if size is None else size
    return str(Address(name, start, size))
