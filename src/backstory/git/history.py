"""Commits and what they change, asked for in batches: two processes for a whole history, plumbing only."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from backstory.model.errors import BadInput

MAX_LINES = 50_000  # of one commit; beyond that a commit is generated or vendored, and its size says enough
_FIELDS = ("%H", "%P", "%an", "%ae", "%at", "%ct", "%s", "%b")
_FORMAT = "%x1f".join(_FIELDS) + "%x1e"
# Porcelain obeys people's configuration (colours, external diffs, prefixes); plumbing with these does not.
_DIFF = ("-r", "-p", "-U0", "-M", "--root", "--no-color", "--no-ext-diff", "--no-textconv", "--full-index")


class Commit(msgspec.Struct, frozen=True):
    sha: str
    parents: tuple[str, ...]
    author: str
    email: str
    authored_at: int  # ms; survives a rebase
    committed_at: int  # ms; does not
    subject: str
    body: str

    @property
    def is_merge(self) -> bool:
        return len(self.parents) > 1


class Change(msgspec.Struct):
    """What a commit does to one file."""

    path: str
    old_path: str | None
    added: list[str]
    removed: list[str]


def commits(folder: Path, revisions: Iterable[str], *, limit: int | None = None) -> list[Commit]:
    """Oldest first, parents before children."""
    asked = [*revisions]
    count = [f"--max-count={limit}"] if limit is not None else []
    arguments = ["log", "--topo-order", "--reverse", *count, f"--format={_FORMAT}", *asked, "--"]
    done = subprocess.run(_git(folder, *arguments), capture_output=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise BadInput(
            f"git does not understand {' '.join(asked)!r}: {told[0] if told else 'no reason given'}",
            "Give a commit, a branch, or a range such as main..HEAD.",
        )
    text = done.stdout.decode("utf-8", "replace")
    return [_commit(record) for record in text.split("\x1e") if record.strip()]


def _commit(record: str) -> Commit:
    sha, parents, author, email, authored, committed, subject, body = record.strip("\n").split("\x1f", 7)
    return Commit(
        sha, tuple(parents.split()), author, email, int(authored) * 1000, int(committed) * 1000, subject, body.strip()
    )


def changes(folder: Path, shas: Iterable[str]) -> Iterator[tuple[str, list[Change]]]:
    """For each commit that is no merge: its files with the lines it adds and takes away."""
    wanted = "".join(f"{sha}\n" for sha in shas)
    if not wanted:
        return
    with subprocess.Popen(
        _git(folder, "diff-tree", "--stdin", *_DIFF), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as git:
        assert git.stdin is not None
        assert git.stdout is not None
        feeder = _feed(git, wanted.encode())
        yield from _parsed(git.stdout)
        feeder.join()


def _feed(git: subprocess.Popen[bytes], data: bytes) -> threading.Thread:
    """From a thread: git answers while it is still being asked, and both pipes are finite."""

    def write() -> None:
        assert git.stdin is not None
        try:
            git.stdin.write(data)
            git.stdin.close()
        except BrokenPipeError:
            pass

    thread = threading.Thread(target=write, daemon=True)
    thread.start()
    return thread


def _parsed(stream: Iterable[bytes]) -> Iterator[tuple[str, list[Change]]]:
    sha: str | None = None
    found: list[Change] = []
    change: Change | None = None
    old: str | None = None
    left = 0  # lines of the current hunk still to come: inside a hunk nothing is a header
    budget = MAX_LINES
    for raw in stream:
        if left > 0:
            left -= 1
            if raw.startswith(b"\\"):
                left += 1  # "\ No newline at end of file" is not one of the hunk's lines
            elif change is not None and budget > 0:
                budget -= 1
                line = raw[1:].rstrip(b"\r\n").decode("utf-8", "replace")
                (change.added if raw[:1] == b"+" else change.removed).append(line)
            continue
        if len(raw) == 41 and raw[:1] in b"0123456789abcdef":
            if sha is not None:
                yield sha, found
            sha, found, change, budget = raw.strip().decode(), [], None, MAX_LINES
        elif raw.startswith(b"diff --git "):
            change, old = None, None
        elif raw.startswith(b"--- "):
            old = _path(raw)
        elif raw.startswith(b"+++ "):
            path = _path(raw) or old
            change = Change(path or "", old if old != path else None, [], [])
            found.append(change)
        elif raw.startswith((b"rename to ", b"Binary files ")):
            name = raw.split(b" ", 2)[2].strip().decode("utf-8", "replace")
            if raw.startswith(b"rename"):
                found.append(Change(_unquoted(name), None, [], []))
        elif raw.startswith(b"@@ "):
            left = _hunk(raw)
    if sha is not None:
        yield sha, found


def _hunk(header: bytes) -> int:
    """@@ -a,b +c,d @@: b lines go and d lines come."""
    total = 0
    for part in header.split(b" ")[1:3]:
        _, _, count = part.partition(b",")
        total += int(count) if count else 1
    return total


def _path(raw: bytes) -> str | None:
    name = _unquoted(raw[4:].rstrip(b"\t\r\n").decode("utf-8", "replace"))
    return None if name == "/dev/null" else name[2:] if name[:2] in ("a/", "b/") else name


def _unquoted(name: str) -> str:
    """Names with odd characters come quoted like C strings."""
    if not name.startswith('"'):
        return name
    return (
        name[1:-1]
        .encode("latin-1", "replace")
        .decode("unicode_escape")
        .encode("latin-1", "replace")
        .decode("utf-8", "replace")
    )


def _git(folder: Path, *arguments: str) -> list[str]:
    return ["git", "--no-optional-locks", "-C", str(folder), "-c", "core.quotePath=false", *arguments]
