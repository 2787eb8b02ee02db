"""A clone of a real repository, and sessions that wrote a share of its commits.

What such a commit adds, its session wrote: edit by edit, in the agent's own form. The rest of the
commits are people's. Commits have the sizes, names and repeated lines of real work, which made-up
histories have not.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import msgspec

from histories import History, Truth
from sessions import Claude, Codex, Session

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_STEP = 1500  # ms between two edits


@dataclass
class Hunk:
    """Lines that take the place of others, and where, counted from 0 in the new file."""

    at: int
    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


@dataclass
class Changed:
    path: str
    is_new: bool = False
    hunks: list[Hunk] = field(default_factory=list)


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-C", str(repository), *arguments]
    done = subprocess.run(command, capture_output=True, check=True)
    return done.stdout.decode("utf-8", "replace")


def changed_files(repository: Path, sha: str) -> Iterator[Changed]:
    """What a commit changes, file by file; without binary files and what goes as a whole."""
    diff = git(repository, "show", "--format=", "-U3", "--no-renames", "--no-ext-diff", sha)
    file: Changed | None = None
    is_new = False
    left = 0
    for line in diff.split("\n"):
        if left and file is not None:
            left -= _take(file.hunks[-1], line)
        elif line.startswith("diff --git "):
            if file is not None and file.hunks:
                yield file
            file, is_new = None, False
        elif line.startswith("new file mode 100"):
            is_new = True
        elif line.startswith("+++ b/"):
            file = Changed(line[6:], is_new)
        elif file is not None and (head := _HUNK.match(line)):
            minus, plus = int(head[2] or 1), int(head[4] or 1)
            file.hunks.append(Hunk(max(0, int(head[3]) - 1)))
            left = minus + plus
    if file is not None and file.hunks:
        yield file


def _take(hunk: Hunk, line: str) -> int:
    """Add a line of a hunk, by its sign; return for how many of the counted ones it stands."""
    sign, text = line[:1], line[1:]
    if sign == "\\":
        return 0
    if sign != "+":
        hunk.old.append(text)
    if sign != "-":
        hunk.new.append(text)
    return 1 + (sign not in ("+", "-"))


def write_session(session: Session, repository: Path, sha: str, committed: int) -> bool:
    """Let a session do what a commit changes, before it was made. False if that is nothing."""
    changed = list(changed_files(repository, sha))
    steps = sum(len(file.hunks) for file in changed)
    at = committed - 60_000 - steps * _STEP
    session.prompt(
        at - 30_000, f"Please {git(repository, 'show', '-s', '--format=%s', sha).strip()}"
    )
    for file in changed:
        for hunk in file.hunks:
            at += _STEP
            if file.is_new:
                session.create(at, file.path, hunk.new)
            else:
                session.edit(at, file.path, hunk.at, hunk.old, hunk.new)
    return steps > 0


def write(source: Path, folder: Path, share: float, seed: int) -> None:
    """The clone below `folder`, the home with the transcripts, and truth.json."""
    rng = Random(f"{seed}:{share}")
    repository = folder / "shop"
    folder.mkdir(parents=True, exist_ok=True)
    git(source, "clone", "-q", "--no-local", str(source), str(repository))
    git(repository, "remote", "set-url", "origin", "https://example.org/made-up/shop.git")
    truth: list[Truth] = []
    for line in git(repository, "log", "--no-merges", "--reverse", "--format=%H %ct").splitlines():
        sha, _, second = line.partition(" ")
        sessions: list[str] = []
        if rng.random() < share:
            kind = rng.choices((Claude, Codex), (3, 1))[0]
            session = kind(rng, str(repository))
            if write_session(session, repository, sha, int(second) * 1000):
                session.save(folder / "home", {})
                sessions = [session.id]
        truth.append(Truth(sha, "agent's" if sessions else "person's", sessions, True))
    (folder / "truth.json").write_bytes(msgspec.json.encode(History(truth, [], ["HEAD"])))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--share", type=float, default=0.05, help="of the commits, with a session")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    write(chosen.source.resolve(), chosen.folder.resolve(), chosen.share, chosen.seed)


if __name__ == "__main__":
    main()
