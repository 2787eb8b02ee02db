"""A commit as linking needs it: keys instead of lines, so that a long history fits into memory."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import compress
from typing import TypeVar

import msgspec

from whyfor.git.history import FileChange, patch_id
from whyfor.git.line_changes import LineChange
from whyfor.model.stories import Commit
from whyfor.story.links.line_keys import BLANK, WIDTH, LineKeys, each, line_keys
from whyfor.story.links.people import people_of

SMALL = 4  # telling lines below which every line counts
_FILES = 400  # of a commit whose lines are looked at
_LINES = 60_000  # that a commit may add to be looked at
AnyChange = TypeVar("AnyChange", FileChange, LineChange)
_BOT = re.compile(
    r"\[bot\]|\bbot@|[-_]bot\b|dependabot|renovate|github-actions|greenkeeper|pre-commit-ci|snyk|allcontributors",
    re.I,
)
_GENERATED = re.compile(
    r"(^|/)(dist|build|vendor|node_modules|third_party)/|(^|/)[^/]*[-.]lock(\.(json|yaml|yml|toml|hcl))?$|"
    r"(^|/)(package-lock\.json|npm-shrinkwrap\.json|go\.sum|bun\.lockb)$|\.min\.(js|css)$|\.(map|snap)$"
)


class FileFacts(msgspec.Struct, frozen=True):
    """One file of a commit: how many lines come and go, and the keys of those that tell something.

    Of a small commit the others are kept too: there every line counts, if not as much.
    """

    path: str
    old_path: str | None
    status: str
    plus: int
    minus: int
    added: bytes = b""
    removed: bytes = b""
    minor_added: bytes = b""
    minor_removed: bytes = b""
    # all added lines in their order, if a session wrote in the file; see `blocks`
    lines: bytes = b""
    flags: bytes = b""
    starts: tuple[int, ...] = ()

    @property
    def blocks(self) -> list[LineKeys]:
        """Return the added lines, those that stand together in one."""
        ends = [*self.starts[1:], len(self.flags)]
        return [
            LineKeys(each(self.lines[first * WIDTH : end * WIDTH]), self.flags[first:end])
            for first, end in zip(self.starts, ends, strict=False)
        ]


class CommitFacts(msgspec.Struct, frozen=True):
    sha: str
    parents: tuple[str, ...]
    author: str
    email: str
    authored_at: int
    committed_at: int
    subject: str
    body: str
    patch_id: str | None
    files: tuple[FileFacts, ...]
    people: frozenset[str] = frozenset()
    # where lines come in the files that a session may have written; None if all changes were not
    # looked at for that
    places: tuple[LineChange, ...] | None = None

    @classmethod
    def of(
        cls,
        commit: Commit,
        changes: Sequence[FileChange],
        written: Container[str] = (),
        *,
        places: bool = False,
    ) -> CommitFacts:
        """Of the files in `written` every added line is kept, and if `places` are asked for, where
        they come."""
        files = [_file(change, minor=False, whole=change.path in written) for change in changes]
        if sum(len(file.added) + len(file.removed) for file in files) < SMALL * WIDTH:
            files = [_file(change, minor=True, whole=change.path in written) for change in changes]
        return cls(
            sha=commit.sha,
            parents=commit.parents,
            author=commit.author,
            email=commit.email,
            authored_at=commit.authored_at,
            committed_at=commit.committed_at,
            subject=commit.subject,
            body=commit.body,
            patch_id=patch_id(changes),
            files=tuple(files),
            people=people_of(commit),
            places=_places(changes, written) if places else None,
        )

    @classmethod
    def of_files(
        cls, commit: Commit, changes: Sequence[FileChange], paths: Iterable[str]
    ) -> CommitFacts:
        """Of a commit whose changes were read of some of its files only; of the others, in
        `paths`, nothing but the names are known."""
        facts = cls.of(commit, changes)
        read = {change.path for change in changes}
        others = [FileFacts(path, None, "M", 0, 0) for path in paths if path not in read]
        return msgspec.structs.replace(facts, patch_id=None, files=(*facts.files, *others))

    @property
    def is_within_limits(self) -> bool:
        """Return whether the lines of all its files are looked at."""
        return len(self.files) <= _FILES and sum(file.plus for file in self.files) <= _LINES

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1

    @property
    def is_bot(self) -> bool:
        return bool(_BOT.search(self.author) or _BOT.search(self.email))


def within_limits(changes: Sequence[AnyChange]) -> Iterator[AnyChange]:
    """Yield the files of a commit whose lines are looked at: not of too many, nor too long ones."""
    lines = 0
    for change in changes[:_FILES]:
        if lines + change.plus <= _LINES:
            lines += change.plus
            yield change


def _places(changes: Sequence[FileChange], written: Container[str]) -> tuple[LineChange, ...]:
    return tuple(
        LineChange.of(change) for change in within_limits(changes) if change.path in written
    )


def _file(change: FileChange, *, minor: bool, whole: bool) -> FileFacts:
    facts = FileFacts(change.path, change.old_path, change.status, change.plus, change.minus)
    generated = _GENERATED.search(change.path) is not None
    if generated and not whole:
        return facts
    replace = msgspec.structs.replace
    added, telling_added = line_keys(change.added)
    if whole:
        starts = tuple(change.starts)
        facts = replace(facts, lines=b"".join(added), flags=telling_added, starts=starts)
    if generated:
        return facts
    removed, telling_removed = line_keys(change.removed)
    facts = replace(
        facts,
        added=b"".join(compress(added, telling_added)),
        removed=b"".join(compress(removed, telling_removed)),
    )
    if not minor:
        return facts
    return replace(
        facts,
        minor_added=_minor(added, telling_added),
        minor_removed=_minor(removed, telling_removed),
    )


def _minor(keys: list[bytes], flags: bytes) -> bytes:
    """Of lines that are not blank and tell nothing."""
    return b"".join(
        key for key, tells in zip(keys, flags, strict=True) if not tells and key != BLANK
    )
