"""A commit as linking needs it: keys instead of lines, so that a long history fits into memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from backstory.git.history import Change, Commit, patch_id
from backstory.story.lines import WIDTH, key, norm, telling

SMALL = 4  # telling lines below which every line counts
_BOT = re.compile(
    r"\[bot\]|\bbot@|[-_]bot\b|dependabot|renovate|github-actions|greenkeeper|pre-commit-ci|snyk|allcontributors", re.I
)
_GENERATED = re.compile(
    r"(^|/)(dist|build|vendor|node_modules|third_party)/|(^|/)[^/]*[-.]lock(\.(json|yaml|yml|toml|hcl))?$|"
    r"(^|/)(package-lock\.json|npm-shrinkwrap\.json|go\.sum|bun\.lockb)$|\.min\.(js|css)$|\.(map|snap)$"
)


class FileFacts(msgspec.Struct, frozen=True):
    """One file of a commit: how many lines come and go, and the keys of those that tell something."""

    path: str
    old_path: str | None
    status: str
    plus: int
    minus: int
    added: bytes = b""
    removed: bytes = b""


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

    @classmethod
    def of(cls, commit: Commit, changes: Sequence[Change]) -> CommitFacts:
        files = tuple(_file(change, every=False) for change in changes)
        if sum(len(file.added) + len(file.removed) for file in files) < SMALL * WIDTH:
            files = tuple(_file(change, every=True) for change in changes)
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
        )

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1

    @property
    def is_bot(self) -> bool:
        return bool(_BOT.search(self.author) or _BOT.search(self.email))


def _file(change: Change, *, every: bool) -> FileFacts:
    generated = bool(_GENERATED.search(change.path))
    added, removed = (b"" if generated else _keys(lines, every=every) for lines in (change.added, change.removed))
    return FileFacts(change.path, change.old_path, change.status, change.plus, change.minus, added, removed)


def _keys(lines: Iterable[str], *, every: bool) -> bytes:
    """Lines that tell something; in a small commit every line that is not blank."""
    texts = map(norm, lines)
    return b"".join(key(text) for text in texts if (text if every else telling(text)))
