"""Which lines of two texts are the same: fast for long texts, and without a worst case.

Lines that stand once in both texts hold the rest in place; what is between two of them is small,
or is not compared at all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

SMALL = 90_000  # pairs of lines between two fixed ones that are compared one by one
_DEEP = 40  # how often a gap is searched for lines that are unique in it


class Block(NamedTuple):
    """So many lines that are the same, from these places on."""

    old: int
    new: int
    size: int


def same_blocks(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Block]:
    """Return the blocks of lines that both texts have, in order. No line is in two of them."""
    pairs = list(_pairs(old, new, 0, 0, _DEEP))
    found: list[Block] = []
    for at, to in pairs:
        last = found[-1] if found else None
        if last is not None and last.old + last.size == at and last.new + last.size == to:
            found[-1] = Block(last.old, last.new, last.size + 1)
        else:
            found.append(Block(at, to, 1))
    return found


def _pairs(
    old: Sequence[Hashable], new: Sequence[Hashable], at: int, to: int, deep: int
) -> Iterator[tuple[int, int]]:
    """Yield the places of equal lines; `at` and `to` are where these parts of the texts begin."""
    head = _common(old, new)
    for step in range(head):
        yield at + step, to + step
    rest = min(len(old), len(new)) - head
    tail = min(_common(old[::-1], new[::-1]), rest)
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    yield from _middle(old, new, at + head, to + head, deep)
    for step in range(tail):
        yield at + head + len(old) + step, to + head + len(new) + step


def _middle(
    old: Sequence[Hashable], new: Sequence[Hashable], at: int, to: int, deep: int
) -> Iterator[tuple[int, int]]:
    if not old or not new:
        return
    fixed = _unique_in_both(old, new) if deep else []
    if not fixed:
        yield from _one_by_one(old, new, at, to)
        return
    last = (-1, -1)
    for here, there in [*fixed, (len(old), len(new))]:
        before, after = last[0] + 1, last[1] + 1
        yield from _pairs(old[before:here], new[after:there], at + before, to + after, deep - 1)
        if here < len(old):
            yield at + here, to + there
        last = (here, there)


def _one_by_one(
    old: Sequence[Hashable], new: Sequence[Hashable], at: int, to: int
) -> Iterator[tuple[int, int]]:
    if len(old) * len(new) > SMALL:
        return
    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        for step in range(block.size):
            yield at + block.a + step, to + block.b + step


def _common(old: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    """How many lines both begin with."""
    found = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        found += 1
    return found


def _unique_in_both(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The longest run of lines, in order in both, each of which stands once in either."""
    places = _once(new)
    pairs = [(at, places[line]) for line, at in _once(old).items() if line in places]
    ends: list[int] = []
    tails: list[int] = []
    before: list[int] = []
    for number, (_, to) in enumerate(pairs):
        at = bisect_left(ends, to)
        before.append(tails[at - 1] if at else -1)
        ends[at : at + 1] = [to]
        tails[at : at + 1] = [number]
    found: list[tuple[int, int]] = []
    number = tails[-1] if tails else -1
    while number >= 0:
        found.append(pairs[number])
        number = before[number]
    return found[::-1]


def _once(lines: Sequence[Hashable]) -> dict[Hashable, int]:
    """The places of the lines that stand there once, in order."""
    found: dict[Hashable, int] = {}
    often: set[Hashable] = set()
    for at, line in enumerate(lines):
        if line in found:
            often.add(line)
        else:
            found[line] = at
    return {line: at for line, at in found.items() if line not in often}
