"""Where a segment's bytes are: in an object of their own, or in a part of one that several were
merged into."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Address(NamedTuple):
    """Written as the object's digest, and for a part of it as digest@start+size."""

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
    """The same bytes after all merges; an object is always smaller than the one it was merged
    into."""
    name, start, size = parse_address(address)
    if name not in merged:
        return address
    while held := merged.get(name):
        name, offset, whole = held
        start, size = start + offset, whole if size is None else size
    return str(Address(name, start, size))
