"""Base class for writing transcripts, independent of the agent."""

from __future__ import annotations

import difflib
import itertools
import json
import uuid
from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from whyfor.demo.places import Demo, announce, commit, git, write_file


class Log(ABC):
    """A transcript that is being written: an advancing clock and counted ids."""

    agent = ""
    seconds = 7  # from one line to the next

    def __init__(self, demo: Demo, session: str, at: datetime, branch: str = "main") -> None:
        self.demo = demo
        self.session = session
        self.started = self.at = at
        self.branch = branch
        self.lines: list[dict[str, Any]] = []
        self.number = itertools.count(1)

    def tick(self) -> str:
        self.at += timedelta(seconds=self.seconds)
        return self.at.isoformat().replace("+00:00", ".000Z")

    def until(self, at: datetime) -> None:
        """Set the clock so that the next entry is written at this time."""
        self.at = at - timedelta(seconds=self.seconds)

    def hook(self, event: str, **facts: str) -> None:
        """Write the hook event that the agent would send now."""
        payload = {
            "session_id": self.session,
            "transcript_path": str(self.path),
            "cwd": str(self.demo.repository),
        }
        announce(
            self.demo, self.agent, event, self.at, {**payload, "hook_event_name": event, **facts}
        )

    def ident(self) -> str:
        return str(uuid.uuid5(uuid.UUID(self.session), str(next(self.number))))

    def made(self, subject: str, seconds: int) -> tuple[str, str]:
        """Commit `seconds` later, while the call runs; return the short hash and git's output."""
        sha = commit(self.demo.repository, subject, self.at + timedelta(seconds=seconds))
        return (
            sha,
            f"[main {sha}] {subject}\n "
            f"{git(self.demo.repository, 'show', '--shortstat', '--format=')}",
        )

    @property
    @abstractmethod
    def path(self) -> Path:
        """Return where the agent stores the transcript."""

    @abstractmethod
    def prompt(self, text: str) -> None:
        """Write a prompt by a person."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Write an answer of the agent."""

    @abstractmethod
    def run(self, command: str) -> str:
        """Start a shell command and return the call's id."""

    @abstractmethod
    def end(self, call: str, result: str, *, failed: bool = False) -> None:
        """Write the result of a call."""

    def save(self) -> None:
        self.save_as(self.path)

    def save_as(self, path: Path) -> None:
        write_file(
            path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines)
        )


def hunks(old: str, new: str) -> list[dict[str, Any]]:
    """Return the changed lines in the form that agents record."""
    before, after = old.splitlines(), new.splitlines()
    found = []
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(
        3
    ):
        lines: list[str] = []
        for step, first, last, new_first, new_last in group:
            if step == "equal":
                lines += [f" {line}" for line in before[first:last]]
            else:
                lines += [f"-{line}" for line in before[first:last]]
                lines += [f"+{line}" for line in after[new_first:new_last]]
        (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
        sizes = {"oldStart": a + 1, "oldLines": b - a, "newStart": c + 1, "newLines": d - c}
        found.append({**sizes, "lines": lines})
    return found
