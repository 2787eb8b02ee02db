"""Which lines of two texts are the same: fast for long texts, and without a worst case.

Lines that stand once in both texts hold the rest in place; what is between two of them is small,
or is not compared at all.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence, Set
from typing import NamedTuple

SMALL = 90_000  # pairs of lines between two fixed ones that are compared one by one
_DEEP = 40  # how often a gap is searched for lines that are unique in it
_STRIDE = 64  # lines that are compared at once

Hunk = tuple[int, int, int, int]


class Block(NamedTuple):
    """So many lines that are the same, from these places on."""

    old: int
    new: int
    size: int


def same_blocks(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Block]:
    """Return the blocks of lines that both texts have, in order. No line is in two of them."""
    found: list[Block] = []
    for block in _blocks(list(old), list(new), 0, 0, _DEEP):
        last = found[-1] if found else Block(-1, -1, 0)
        if (last.old + last.size, last.new + last.size) == block[:2]:
            found[-1] = Block(last.old, last.new, last.size + block.size)
        else:
            found.append(block)
    return found


def changed_hunks(before: Sequence[str], after: Sequence[str]) -> list[Hunk]:
    """Return where two texts differ, as git tells it: the first line that comes and how many come,
    the first line that goes and how many go."""
    found = []
    at = to = 0
    for block in [*same_blocks(before, after), None]:
        old, new = (block.old, block.new) if block else (len(before), len(after))
        if old > at or new > to:
            found.append((to + 1, new - to, at + 1, old - at))
        if block:
            at, to = block.old + block.size, block.new + block.size
    return found


def _blocks(
    old: list[Hashable], new: list[Hashable], at: int, to: int, deep: int
) -> Iterator[Block]:
    """Yield blocks of equal lines; `at` and `to` are where these parts of the texts begin."""
    if not old or not new:
        return
    head = _common(old, new)
    if head:
        yield Block(at, to, head)
    rest = min(len(old), len(new)) - head
    if not rest:
        return
    tail = min(_common(old[::-1], new[::-1]), rest)
    old, new = old[head : len(old) - tail], new[head : len(new) - tail]
    yield from _middle(old, new, at + head, to + head, deep)
    if tail:
        yield Block(at + head + len(old), to + head + len(new), tail)


def _middle(
    old: list[Hashable], new: list[Hashable], at: int, to: int, deep: int
) -> Iterator[Block]:
    if not old or not new:
        return
    fixed = _unique_in_both(old, new) if deep else []
    if not fixed:
        yield from _one_by_one(old, new, at, to)
        return
    before = after = 0
    for here, there in fixed:
        if here > before and there > after:
            gap = old[before:here], new[after:there]
            yield from _blocks(*gap, at + before, to + after, deep - 1)
        yield Block(at + here, to + there, 1)
        before, after = here + 1, there + 1
    yield from _blocks(old[before:], new[after:], at + before, to + after, deep - 1)


def _one_by_one(old: list[Hashable], new: list[Hashable], at: int, to: int) -> Iterator[Block]:
    if len(old) * len(new) > SMALL or set(old).isdisjoint(new):
        return
    from difflib import SequenceMatcher  # here: most texts are compared without it

    for block in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
        if block.size:
            yield Block(at + block.a, to + block.b, block.size)


def _common(old: list[Hashable], new: list[Hashable]) -> int:
    """How many lines both begin with."""
    found = 0
    most = min(len(old), len(new))
    while found < most and old[found : found + _STRIDE] == new[found : found + _STRIDE]:
        found += _STRIDE
    while found < most and old[found] == new[found]:
        found += 1
    return min(found, most)


def _unique_in_both(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[tuple[int, int]]:
    """The longest run of lines, in order in both, each of which stands once in either."""
    both = set(old).intersection(new)
    if not both:
        return []
    places = _once(new, both)
    pairs = [(at, places[line]) for line, at in _once(old, both).items() if line in places]
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


def _once(lines: Sequence[Hashable], among: Set[Hashable]) -> dict[Hashable, int]:
    """The places of those of the lines among others that stand there once, in order."""
    found: dict[Hashable, int] = {}
    often: set[Hashable] = set()
    for at, line in enumerate(lines):
        if line not in among:
            continue
        if line in found:
            often.add(line)
        else:
            found[line] = at
    return {line: at for line, at in found.items() if line not in often}
