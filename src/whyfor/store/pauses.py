"""Which records fall into a pause, by their time and place."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from whyfor.model.paths import below, to_name, to_text
from whyfor.store.journal import PauseEntry


class PauseSet:
    """Answers, for a record, whether it falls into a pause."""

    def __init__(self, pauses: Iterable[PauseEntry]) -> None:
        self._pauses = list(pauses)
        self._within: dict[tuple[str, str], bool] = {}

    def __bool__(self) -> bool:
        return bool(self._pauses)

    def covers(self, at: int | None, cwd: str | None, agent: str, session_id: str) -> bool:
        """Return whether a record falls into a pause; without a time, whether recording is paused
        now."""
        when = time.time_ns() // 1_000_000 if at is None else at
        return any(
            pause.since <= when
            and (pause.until is None or when < pause.until)
            and self._concerns(pause, cwd, agent, session_id)
            for pause in self._pauses
        )

    def overlaps(
        self, first: int | None, last: int | None, cwd: str | None, agent: str, session_id: str
    ) -> bool:
        """Return whether there was a pause at any time between two moments. For records that repeat
        everything said between them."""
        return any(
            (last is None or pause.since <= last)
            and (first is None or pause.until is None or first < pause.until)
            and self._concerns(pause, cwd, agent, session_id)
            for pause in self._pauses
        )

    def _concerns(self, pause: PauseEntry, cwd: str | None, agent: str, session_id: str) -> bool:
        if pause.session_id:
            return pause.session_id == session_id and pause.agent in ("", agent)
        if not pause.repository or cwd is None:  # of nowhere known: it may be there
            return True
        key = (pause.id, cwd)
        if key not in self._within:
            self._within[key] = _inside(pause, cwd)
        return self._within[key]


def _inside(pause: PauseEntry, cwd: str) -> bool:
    """Return whether a folder is in one of the repository's work trees, as recorded then or as
    git's own files say now."""
    real = os.path.realpath(to_name(cwd)) if cwd.startswith("/") else cwd
    if any(below(path, folder) for path in {cwd, to_text(real)} for folder in pause.folders):
        return True
    common = git_folder(real)
    return common is not None and os.path.realpath(common) == os.path.realpath(
        to_name(pause.repository)
    )


def git_folder(folder: str) -> str | None:
    """Return the git directory of the repository around a folder, the one its work trees share,
    without running git."""
    for at in (Path(folder), *Path(folder).parents):
        pointer = at / ".git"
        try:
            if pointer.is_dir():
                return str(pointer)
            if pointer.is_file():
                own = at / pointer.read_text(errors="replace").removeprefix("gitdir:").strip()
                shared = own / "commondir"
                return (
                    str(own / shared.read_text(errors="replace").strip())
                    if shared.is_file()
                    else str(own)
                )
        except (OSError, ValueError):
            return None
    return None
