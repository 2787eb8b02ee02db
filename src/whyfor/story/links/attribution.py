"""Who may have written lines, by comparing them alone: the last writing of each, else not known.
The way of last resort, for edits that have no place in a text: see story/lines/replay.py.

A line that says little (a bracket, nothing at all) goes with its neighbours. That no session
wrote a line does not mean that a person did: a formatter that an agent ran writes too. Only
where nothing of the kind ran, it was a person.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from whyfor.story.links.activity import WrittenEdit
from whyfor.story.links.line_keys import LineKeys, each

BELOW = 0  # stands for the place of a subagent's writing

_HARMLESS = frozenset(
    "git ls cat head tail grep rg wc pwd cd true test stat file tree diff which env date "
    "sleep pytest gh jq".split()
)
_PARTS = re.compile(r"&&|\|\||[;|\n&]")
_WRITES = re.compile(
    r">|\btee\b|\bgit\s+(?:-\S+\s+)*(?:checkout|restore|apply|stash|merge|pull|rebase|revert|am|mv|reset)\b"
)


class LineAuthor(msgspec.Struct, frozen=True):
    """One writing of one session."""

    session: int
    seq: int
    at: int


Writings = dict[int, list[LineAuthor]]  # by line, in the order of time


class FileWrite(NamedTuple):
    """One writing of a file: the keys of the lines that came, and of those that went for good."""

    at: int
    seq: int
    path: str
    added: frozenset[int]
    removed: frozenset[int]

    @classmethod
    def of(cls, act: WrittenEdit) -> FileWrite:
        added = frozenset(each(act.added))
        return cls(act.at, act.seq, act.path, added, frozenset(each(act.removed)) - added)


def attribute(
    blocks: Sequence[LineKeys], writes: Iterable[tuple[int, FileWrite]]
) -> list[list[LineAuthor | None]]:
    """For each block of lines that stand together in one file, who wrote which; `writes` are
    those of that file."""
    wanted: set[int] = set().union(*(block.numbers for block in blocks))
    added: Writings = {}
    removed: dict[int, int] = {}
    for session, write in sorted(writes, key=lambda item: item[1].at):
        pen = LineAuthor(session, write.seq, write.at)
        for number in wanted & write.removed:
            removed[number] = write.at
        for number in wanted & write.added:
            added.setdefault(number, []).append(pen)
    if not added:
        return [[None] * len(block.numbers) for block in blocks]
    return [_block(block, added, removed) for block in blocks]


def _block(lines: LineKeys, added: Writings, removed: dict[int, int]) -> list[LineAuthor | None]:
    sure = [at for at, tells in enumerate(lines.telling) if tells]
    found: list[LineAuthor | None] = [None] * len(lines.numbers)
    for at in sure or range(len(found)):
        found[at] = _last(lines.numbers[at], added, removed)
    for at, number in enumerate(lines.numbers) if sure else ():
        if not lines.telling[at] and (beside := _beside(at, sure, found)):
            found[at] = _like_its_neighbours(number, beside, added)
    return found


def _like_its_neighbours(
    number: int, beside: list[LineAuthor], added: Writings
) -> LineAuthor | None:
    """Who wrote a line that says little: a neighbour's writer who wrote the like; of a blank line
    the writer of both neighbours."""
    if number:
        wrote = {pen.session for pen in added.get(number, ())}
        return next((pen for pen in beside if pen.session in wrote), None)
    same = len({pen.session for pen in beside}) == 1
    return beside[0] if same else None


def _last(number: int, added: Writings, removed: dict[int, int]) -> LineAuthor | None:
    """Who wrote it last, unless it was taken away again."""
    known = added.get(number)
    return known[-1] if known and removed.get(number, -1) <= known[-1].at else None


def _beside(at: int, sure: list[int], found: list[LineAuthor | None]) -> list[LineAuthor]:
    """The writers of the nearest lines that say something, above and below; none if one of them
    is not known."""
    place = bisect_left(sure, at)
    pens = [found[near] for near in (*sure[max(0, place - 1) : place], *sure[place : place + 1])]
    known = [pen for pen in pens if pen is not None]
    return known if len(known) == len(pens) else []


def traced(commands: Iterable[str]) -> bool:
    """Whether nothing that ran could have written a line without leaving a trace: only what
    reads, tests, commits."""
    return all(
        not _WRITES.search(command)
        and all(_program(part) in _HARMLESS for part in _PARTS.split(command) if part.strip())
        for command in commands
    )


def _program(part: str) -> str:
    words = part.split()
    while words and re.fullmatch(r"\w+=\S*", words[0]):
        words.pop(0)
    if words[:2] in (["python", "-m"], ["python3", "-m"]) and len(words) > 2:
        words = words[2:]
    if words[:2] == ["sed", "-n"]:
        return "cat"
    return words[0].rsplit("/", 1)[-1] if words else "true"
