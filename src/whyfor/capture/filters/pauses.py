"""Pauses: when and where a person wanted nothing recorded.

Each is a small file in the folder of hooks, which a hook can read without importing anything,
until it has ended and stands in the journal; all of them, ended or not, are what ingest goes by.
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
    """The same of all there are; looks again when one began or ended meanwhile."""

    def __init__(self, home: Path | None, kept: Iterable[PauseEntry]) -> None:
        self._home = home  # none: only what is kept counts
        self._kept = list(kept)
        super().__init__(self._kept)
        self._stamp: int | None = None
        self.refresh()

    def refresh(self) -> None:
        """Cheap when nothing changed: a long ingest asks before each file."""
        stamp = _stamp(self._home / FOLDER) if self._home else None
        if self._home and stamp != self._stamp:
            # A clock that ticks every few ms gives two changes one time: what is that fresh is
            # looked at again.
            self._stamp = stamp if stamp and time.time_ns() - stamp > _TICK else None
            self._pauses = merge_pauses(self._kept, pending_pauses(self._home))


def work_trees(repository: str) -> list[str]:
    """Where the repository is checked out, as git lists it now; of a deleted one it may still
    know."""
    listed = (
        ask(GitDir(to_path(repository)), "worktree", "list", "--porcelain") or ""
    ).splitlines()
    return [line.removeprefix("worktree ") for line in listed if line.startswith("worktree ")]


# -- what hooks go by ----------------------------------------------------------------------------


def pending_pauses(home: Path) -> list[PauseEntry]:
    """Pauses in the folder of hooks: those in effect, and those that ended since the last
    ingest."""
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
    """In effect from the moment this returns; it waits for no lock."""
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
    """Each once; a pause that ended in one of the two accounts has ended."""
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
