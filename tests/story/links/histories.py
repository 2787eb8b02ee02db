"""Miniature histories: what sessions did and what was committed, minute by minute."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha1
from typing import Any

from whyfor.git.history import FileChange
from whyfor.model.stories import Commit
from whyfor.story.links.activity import CommitCommand, SessionActivity, WrittenEdit
from whyfor.story.links.commits import CommitFacts
from whyfor.story.links.infer import Link, Linker
from whyfor.story.links.line_keys import keys

MINUTE = 60_000
DAY = 24 * 60 * MINUTE
START = 1_780_000_000_000
ROOT = "/code/shop/"


def sha(name: str) -> str:
    return sha1(name.encode()).hexdigest()


def body(name: str, count: int = 6) -> list[str]:
    """Lines that nobody else writes by chance."""
    return [f"{name}_value_{n} = compute({n}, '{name}')" for n in range(count)]


def change(
    path: str, added: Iterable[str] = (), removed: Iterable[str] = (), **more: Any
) -> FileChange:
    plus = [line.encode() for line in added]
    minus = [line.encode() for line in removed]
    return FileChange(path, added=plus, removed=minus, plus=len(plus), minus=len(minus), **more)


class Session:
    """A session's acts, one after the other."""

    def __init__(self, root: str = ROOT) -> None:
        self.acts = SessionActivity()
        self.root = root
        self._seq = 0

    def _next(self, minute: float) -> tuple[int, int, str]:
        self._seq += 1
        at = START + round(minute * MINUTE)
        self.acts.first_at = min(at, self.acts.first_at or at)
        self.acts.last_at = max(at, self.acts.last_at or at)
        return at, self._seq, f"call-{id(self)}-{self._seq}"

    def wrote(
        self,
        minute: float,
        path: str,
        added: Iterable[str] = (),
        removed: Iterable[str] = (),
        **more: Any,
    ) -> WrittenEdit:
        at, seq, call = self._next(minute)
        old = more.pop("old", None)
        act = WrittenEdit(
            at,
            seq,
            call,
            self.root + path,
            keys(added),
            keys(removed),
            old=old and self.root + old,
            **more,
        )
        self.acts.written.append(act)
        return act

    def ran(
        self,
        minute: float,
        command: str,
        *printed: tuple[str, str],
        seconds: float = 2,
        rewrites: bool = False,
        failed: bool = False,
    ) -> CommitCommand:
        at, seq, call = self._next(minute)
        commits = "git commit" in command
        act = CommitCommand(
            at, at + round(seconds * 1000), seq, call, command, printed, commits, rewrites, failed
        )
        self.acts.made.append(act)
        return act


class History:
    """Commits in order; each is the child of the one before unless told otherwise."""

    def __init__(self) -> None:
        self.commits: list[CommitFacts] = []
        self._last: str | None = None

    def commit(  # noqa: PLR0913 - a record has as many fields
        self,
        name: str,
        minute: float,
        *changes: FileChange,
        authored: float | None = None,
        parents: Sequence[str] | None = None,
        subject: str | None = None,
        text: str = "",
        author: str = "Ada",
    ) -> str:
        above = (
            ([self._last] if self._last else [])
            if parents is None
            else [sha(parent) for parent in parents]
        )
        made = Commit(
            sha=sha(name),
            parents=tuple(above),
            author=author,
            email="ada@example.org",
            authored_at=_seconds(minute if authored is None else authored),
            committed_at=_seconds(minute),
            subject=subject or f"Change {name}",
            body=text,
        )
        self.commits.append(CommitFacts.of(made, changes))
        self._last = made.sha
        return made.sha

    def link(self, sessions: dict[int, Session], **more: Any) -> tuple[list[Link], dict[str, str]]:
        known = {name: more.pop(name) for name in ("foreign", "folders") if name in more}
        return Linker({number: session.acts for number, session in sessions.items()}, **known).link(
            self.commits, **more
        )

    def told(self, sessions: dict[int, Session], **more: Any) -> dict[str, dict[int, str]]:
        """By the commit's sha, each linked session and its evidence."""
        found: dict[str, dict[int, str]] = {commit.sha: {} for commit in self.commits}
        for link in self.link(sessions, **more)[0]:
            if link.evidence != "nearby":
                found[link.commit][link.session] = link.evidence
        return found


def _seconds(minute: float) -> int:
    """Git counts whole seconds."""
    return (START + round(minute * MINUTE)) // 1000 * 1000
