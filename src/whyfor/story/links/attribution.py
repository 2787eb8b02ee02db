"""Who wrote each line a commit adds: the last writing of it by a session linked to the commit,
else not known.

A line that says little (a bracket, nothing at all) goes with its neighbours. That no session
wrote a line does not mean that a person did: a formatter that an agent ran writes too. Only
where nothing of the kind ran, it was a person.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence

import msgspec

from whyfor.story.links.activity import WrittenEdit
from whyfor.story.links.line_keys import each, key, norm, telling

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


def attribute(
    blocks: Sequence[Sequence[str]], writes: Iterable[tuple[int, WrittenEdit]]
) -> list[list[LineAuthor | None]]:
    """For each block of lines that stand together in one file, who wrote which; `writes` are
    those of that file."""
    added: Writings = {}
    removed: dict[int, int] = {}
    for session, act in sorted(writes, key=lambda item: item[1].at):
        pen = LineAuthor(session, act.seq, act.at)
        for number in set(each(act.removed)) - set(each(act.added)):
            removed[number] = act.at
        for number in set(each(act.added)):
            added.setdefault(number, []).append(pen)
    return [_block(block, added, removed) for block in blocks]


def _block(
    lines: Sequence[str], added: Writings, removed: dict[int, int]
) -> list[LineAuthor | None]:
    words = [norm(line) for line in lines]
    numbers = [each(key(text))[0] if text else 0 for text in words]
    sure = [at for at, text in enumerate(words) if telling(text)]
    found: list[LineAuthor | None] = [None] * len(words)
    for at in sure or range(len(words)):
        found[at] = _last(numbers[at], added, removed)
    for at, text in enumerate(words) if sure else ():
        if not telling(text) and (beside := _beside(at, sure, found)):
            wrote = (
                {pen.session for pen in added.get(numbers[at], ())}
                if text
                else {pen.session for pen in beside}
            )
            same = len({pen.session for pen in beside}) == 1
            found[at] = next(
                (pen for pen in beside if pen.session in wrote and (text or same)), None
            )
    return found


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
