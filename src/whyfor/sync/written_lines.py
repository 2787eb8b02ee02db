"""Whose the lines of a shared commit are: counted where its repository is, because a server has
none."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from msgspec.structs import replace

from whyfor.model.checkpoints import Checkpoint, WrittenLines
from whyfor.model.lines import MODIFIED_LINE, FileLines
from whyfor.store.protocol import Store
from whyfor.story.lines.turn_authors import TurnReader


def with_written_lines(store: Store, told: Checkpoint) -> Checkpoint:
    """Return a checkpoint that says of its files how many lines come from which turn, of the
    sessions that it tells of; unchanged if that was not computed yet."""
    known = store.lines.of_commits([told.commit]).get(told.commit)
    if known is None:
        return told
    turns = TurnReader(store)
    for file in known.files:
        turns.expect_writers(file.writers)
    names = _names(store, known.files, {part.name for part in told.parts})
    counted = {file.path: tuple(_counts(file, turns, names)) for file in known.files}
    files = []
    for changed in told.files:
        own = counted.get(changed.path, ())
        left = changed.added - sum(one.lines for one in own)
        if own and known.inferred and left > 0:
            own = (*own, WrittenLines("", 0, known.committed_at, left))
        files.append(replace(changed, written=own))
    return replace(told, files=files)


def without_parts(told: Checkpoint, names: Iterable[str]) -> Checkpoint:
    """Return a checkpoint without the parts and the lines of these sessions."""
    gone = set(names)
    files = []
    for changed in told.files:
        kept = tuple(one for one in changed.written if one.session not in gone)
        files.append(replace(changed, written=kept))
    parts = [part for part in told.parts if part.name not in gone]
    return replace(told, files=files, parts=parts)


def _names(store: Store, files: Iterable[FileLines], told: Container[str]) -> dict[int, str]:
    """The names of the sessions that may be told, by their numbers."""
    numbers = {writer.session for file in files for writer in file.writers}
    found = store.sessions.by_number(list(numbers))
    return {number: one.name for number, one in found.items() if one.name in told}


def _counts(file: FileLines, turns: TurnReader, names: dict[int, str]) -> Iterator[WrittenLines]:
    counts: dict[tuple[str, int], WrittenLines] = {}
    for writer, evidence in file.by_line().values():
        name = names.get(writer.session)
        if name is None:
            continue
        asked = turns.asked(writer.session, writer.seq, writer.at)
        key = (name, asked.seq if asked else 0)
        before = counts.get(key, WrittenLines(*key, 0, 0))
        counts[key] = replace(
            before,
            at=max(before.at, writer.at),
            lines=before.lines + 1,
            modified=before.modified + (evidence == MODIFIED_LINE),
        )
    yield from counts.values()
