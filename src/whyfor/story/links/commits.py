"""A commit as linking needs it: keys instead of lines, so that a long history fits into memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from whyfor.git.history import FileChange, patch_id
from whyfor.model.stories import Commit
from whyfor.story.links.line_keys import WIDTH, key, norm, telling
from whyfor.story.links.people import people_of

SMALL = 4  # telling lines below which every line counts
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

    @classmethod
    def of(cls, commit: Commit, changes: Sequence[FileChange]) -> CommitFacts:
        files = tuple(_file(change, minor=False) for change in changes)
        if sum(len(file.added) + len(file.removed) for file in files) < SMALL * WIDTH:
            files = tuple(_file(change, minor=True) for change in changes)
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
            files=files,
            people=people_of(commit),
        )

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1

    @property
    def is_bot(self) -> bool:
        return bool(_BOT.search(self.author) or _BOT.search(self.email))


def _file(change: FileChange, *, minor: bool) -> FileFacts:
    facts = FileFacts(change.path, change.old_path, change.status, change.plus, change.minus)
    if _GENERATED.search(change.path):
        return facts
    added, less_added = _keys(change.added)
    removed, less_removed = _keys(change.removed)
    facts = msgspec.structs.replace(facts, added=added, removed=removed)
    return (
        msgspec.structs.replace(facts, minor_added=less_added, minor_removed=less_removed)
        if minor
        else facts
    )


def _keys(lines: Iterable[str]) -> tuple[bytes, bytes]:
    """Of lines that tell something, and of the others that are not blank."""
    found: tuple[list[bytes], list[bytes]] = [], []
    for line in lines:
        if text := norm(line):
            found[not telling(text)].append(key(text))
    return b"".join(found[0]), b"".join(found[1])
