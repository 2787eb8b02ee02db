"""Pauses: when and where nothing is recorded.

A pause is a small file in the hooks' directory, which a hook can read without importing anything.
When it has ended and is in the journal, the file is deleted. Ingest uses all pauses, ended or not.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from whyfor.files import make_folders, replace
from whyfor.git.place import GitDir
from whyfor.git.run import ask
from whyfor.model.paths import to_name, to_path, to_text
from whyfor.store.journal import PauseEntry
from whyfor.store.pauses import PauseSet

FOLDER = "hook/paused"
_TICK = 50_000_000  # ns


class Pauses(PauseSet):
    """All pauses; reloads them when one began or ended."""

    def __init__(self, home: Path | None, kept: Iterable[PauseEntry]) -> None:
        self._home = home  # None: only stored pauses count
        self._kept = list(kept)
        super().__init__(self._kept)
        self._stamp: int | None = None
        self.refresh()

    def refresh(self) -> None:
        """Reload if something changed. It is cheap, because a long ingest calls it before each
        file."""
        stamp = _stamp(self._home / FOLDER) if self._home else None
        if self._home and stamp != self._stamp:
            # A clock that ticks every few ms gives two changes one time: what is that fresh is
            # looked at again.
            self._stamp = stamp if stamp and time.time_ns() - stamp > _TICK else None
            self._pauses = merge_pauses(self._kept, pending_pauses(self._home))


def work_trees(repository: str) -> list[str]:
    """Return the folders in which the repository is checked out, as git lists them; deleted ones
    may be included."""
    listed = (
        ask(GitDir(to_path(repository)), "worktree", "list", "--porcelain") or ""
    ).splitlines()
    return [line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")]


# -- what hooks go by ----------------------------------------------------------------------------


def pending_pauses(home: Path) -> list[PauseEntry]:
    """Return the pauses in the hooks' directory: those in effect, and those that ended since the
    last ingest."""
    try:
        names = sorted(
            path.name for path in (home / FOLDER).iterdir() if not path.name.startswith(".")
        )
    except (FileNotFoundError, NotADirectoryError):
        return []
    found = (read_pause(home / FOLDER / name) for name in names)
    return [pause for pause in found if pause is not None]


def read_pause(path: Path) -> PauseEntry | None:
    try:
        lines = path.read_bytes().decode("utf-8", "surrogateescape").split("\n")
    except FileNotFoundError:
        return None
    fields: dict[str, Any] = {"folders": []}
    for line in lines:
        name, _, value = line.partition(" ")
        if name in ("since", "until") and value.isdigit():
            fields[name] = int(value)
        elif name == "session":
            fields["agent"], _, fields["session_id"] = value.partition(":")
        elif name == "repository":
            fields["repository"] = to_text(value)
        elif name == "folder":
            fields["folders"].append(to_text(value))
    return PauseEntry(id=path.name, **fields) if "since" in fields else None


def write_pause(home: Path, pause: PauseEntry) -> None:
    """Write a pause. It is in effect when this returns; no lock is needed."""
    lines = [f"since {pause.since}"]
    if pause.until is not None:
        lines.append(f"until {pause.until}")
    if pause.session_id:
        lines.append(f"session {pause.agent}:{pause.session_id}")
    if pause.repository:
        lines.append(f"repository {to_name(pause.repository)}")
    lines += [f"folder {to_name(folder)}" for folder in pause.folders]  # hooks compare bytes
    make_folders(home / FOLDER)
    replace(
        home / FOLDER / pause.id,
        "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"),
    )


def merge_pauses(kept: Iterable[PauseEntry], fresh: Iterable[PauseEntry]) -> list[PauseEntry]:
    """Merge two lists, each pause once. One that has ended in either list has ended."""
    found = {pause.id: pause for pause in kept}
    for pause in fresh:
        before = found.get(pause.id)
        folders = list(dict.fromkeys([*(before.folders if before else []), *pause.folders]))
        found[pause.id] = msgspec.structs.replace(pause, folders=folders)
    return sorted(found.values(), key=lambda pause: pause.since)


def _stamp(folder: Path) -> int | None:
    try:
        return folder.stat().st_mtime_ns  # every change there is a file renamed into the folder
    except (FileNotFoundError, NotADirectoryError):
        return None
