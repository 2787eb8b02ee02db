"""Gaps: bytes of a source that are not stored. Their positions are those of the source, so that all
offsets stay valid."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Gap = tuple[int, int]  # where in the source, and how many bytes

FILLER = b"[private]"  # shown in the place of text that is not stored


def without(data: bytes, start: int, gaps: Iterable[Gap]) -> bytes:
    """Return the bytes of a source without the gaps; `start` is the offset of `data`."""
    kept, at = [], 0
    for place, size in gaps:
        kept.append(data[at : place - start])
        at = place - start + size
    kept.append(data[at:])
    return b"".join(kept)


def clipped(gaps: Iterable[Gap], first: int, last: int) -> list[Gap]:
    """Return the parts of the gaps inside one range of the source."""
    found = ((max(first, place), min(last, place + size)) for place, size in gaps)
    return [(low, high - low) for low, high in found if low < high]


def runs(kept: bytes, start: int, gaps: Iterable[Gap]) -> Iterator[tuple[int, bytes]]:
    """Yield the stored bytes between the gaps, each run with its offset in the source."""
    offset, at = start, 0
    for place, size in gaps:
        if place > offset:
            yield offset, kept[at : at + place - offset]
        at += place - offset
        offset = place + size
    if at < len(kept):
        yield offset, kept[at:]


def between(pieces: Iterable[tuple[int, bytes]], first: int, last: int) -> list[tuple[int, bytes]]:
    """Return the parts of the runs inside one range of the source."""
    found = []
    for offset, run in pieces:
        low, high = max(first, offset), min(last, offset + len(run))
        if low < high:
            found.append((low, run[low - offset : high - offset]))
    return found


def holes(start: int, gaps: Iterable[Gap]) -> list[Gap]:
    """Return the gaps by their positions among the stored bytes."""
    found, missing = [], 0
    for place, size in gaps:
        found.append((place - start - missing, size))
        missing += size
    return found


def filled(kept: bytes, at: int, inside: Sequence[Gap]) -> bytes:
    """Return the stored bytes, which start at position `at` among all stored bytes, with a
    placeholder in each hole."""
    parts, done = [], 0
    for place, _ in inside:
        parts += [kept[done : place - at], FILLER]
        done = place - at
    return b"".join([*parts, kept[done:]])


def join_gaps(gaps: Iterable[Gap]) -> list[Gap]:
    """Return the gaps in order, with adjacent ones merged."""
    found: list[Gap] = []
    for place, size in sorted(gaps):
        if found and place <= found[-1][0] + found[-1][1]:
            before = found.pop()
            found.append((before[0], max(before[1], place + size - before[0])))
        elif size:
            found.append((place, size))
    return found
