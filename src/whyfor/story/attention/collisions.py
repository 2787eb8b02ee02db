"""Collisions: two sessions at work that change the same file or branch within minutes."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.attention import Concern
from whyfor.model.paths import path_within

NEAR = 600_000  # ms between two edits of one file that get in each other's way


class Writer(msgspec.Struct, frozen=True):
    """A session at work, and what it wrote when: absolute paths."""

    name: str  # agent:id
    title: str
    wrote: dict[str, int]
    cwd: str = ""
    worktree: str = ""  # the checkout it works in, if that is known
    branch: str = ""
    committed_at: int = 0  # when it changed its branch: commit, merge, rebase, …


def find_collisions(writers: Iterable[Writer], now: int) -> dict[str, Concern]:
    """Return a finding for each session that is in another's way, by its name. Of each pair the
    one that came later is told."""
    by_file: dict[str, list[tuple[int, Writer]]] = {}
    by_branch: dict[tuple[str, str], list[tuple[int, Writer]]] = {}
    for writer in writers:
        for path, at in writer.wrote.items():
            if now - at <= NEAR:
                by_file.setdefault(path, []).append((at, writer))
        if writer.committed_at and writer.worktree and now - writer.committed_at <= NEAR:
            place = (writer.worktree, writer.branch)
            by_branch.setdefault(place, []).append((writer.committed_at, writer))
    found: dict[str, Concern] = {}
    for path, edits in by_file.items():
        _tell_pair(found, edits, f"file {path}", path)
    for (worktree, branch), edits in by_branch.items():
        where = branch or worktree
        _tell_pair(found, edits, f"branch {where}", "")
    return found


def _tell_pair(
    found: dict[str, Concern], edits: list[tuple[int, Writer]], key: str, path: str
) -> None:
    latest = sorted(edits, key=lambda each: (each[0], each[1].name))
    if len({writer.name for _, writer in latest}) < 2:
        return
    at, last = latest[-1]
    others = [writer for _, writer in latest[:-1] if writer.name != last.name]
    if last.name in found:
        return
    other = others[-1]
    what = path_within(path, last.cwd) if path else key.removeprefix("branch ")
    verb = "edited" if path else "committed to"
    found[last.name] = Concern(
        cause="collision",
        key=f"{key} {other.name}",
        at=at,
        fact=f"It {verb} {what}; so did “{other.title or other.name}” within minutes.",
        evidence="tool calls of both sessions, high",
        step="Let one of them wait, or give it a worktree of its own.",
        others=(other.name,),
    )
