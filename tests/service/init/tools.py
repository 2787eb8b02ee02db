"""Git, and what our hooks announced."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.git_clock import git_environment

PATIENCE = 20.0


def git(
    folder: Path, *arguments: str, check: bool = True, **options: Any
) -> subprocess.CompletedProcess[str]:
    options.setdefault("env", git_environment())
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=check, capture_output=True, text=True, **options
    )


def script(path: Path, text: str, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(mode)
    return path


def awaited(condition: Callable[[], bool]) -> bool:
    """Hooks work in the background: give them the time they need, and no more."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Spool:
    def __init__(self, home: Path) -> None:
        self.folder = home / "spool"

    def all(self) -> list[dict[str, Any]]:
        """Every envelope so far, its payload beside the header."""
        found = []
        for path in sorted(self.folder.glob("*.spool")):
            for line in path.read_bytes().split(b"\n"):
                header, tab, payload = line.partition(b"\t")
                if tab:
                    found.append({**json.loads(header), "payload": payload.decode()})
        return found

    def events(self) -> list[str]:
        return [envelope["event"] for envelope in self.all()]

    def next(self, *events: str) -> list[dict[str, Any]]:
        """The envelopes, once exactly these events have arrived, in any order."""
        assert awaited(lambda: len(self.events()) >= len(events)), self.events()
        assert sorted(self.events()) == sorted(events)
        return self.all()

    def clear(self) -> None:
        for path in self.folder.glob("*.spool"):
            path.unlink()
