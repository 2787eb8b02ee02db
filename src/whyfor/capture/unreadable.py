"""Files that cannot be read: which failures concern one file only, and what is remembered of them
between runs."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import NamedTuple

import msgspec

from whyfor import __version__
from whyfor.agents import UnknownAgent
from whyfor.capture.tail import Stat, TooLarge
from whyfor.files import replace
from whyfor.model.errors import StoreFault, WhyforError
from whyfor.model.paths import to_text

FILE = "unreadable.json"
_MAX_REASON = 300
_SYSTEM_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.ENFILE)


class Unreadable(NamedTuple):
    path: str
    reason: str


class PartFailed(Exception):
    """One session of a database could not be read; the others can."""

    def __init__(self, path: str, error: Exception) -> None:
        super().__init__(path)
        self.path = path
        self.error = error


def stops_everything(error: Exception, path: Path, home: Path) -> bool:
    """Return whether a failure while reading a file has another cause than that file, so that the
    run must end."""
    if isinstance(error, UnknownAgent):
        return False
    if isinstance(error, StoreFault):
        return False  # of these bytes; whether the database is damaged is looked at after the run
    if isinstance(error, WhyforError) or type(error).__module__.startswith("obstore"):
        return True
    if not isinstance(error, OSError):
        return False
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return True
    if error.filename is None:
        return True  # all that is asked of the agents' files names them
    name = Path(str(error.filename))
    if name == path:
        return False
    return error.errno in _SYSTEM_ERRORS or name.is_relative_to(home)


def reason_of(error: BaseException) -> str:
    """Return the reason of a failure in one line."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, UnknownAgent):
        return error.message
    lines = str(error).splitlines()
    if isinstance(error, StoreFault):
        return to_text(lines[0])[:_MAX_REASON]
    said = f": {lines[0]}" if lines else ""
    return to_text(f"{type(error).__name__}{said}")[:_MAX_REASON]


class _Entry(msgspec.Struct, omit_defaults=True):
    reason: str
    refused: bool = False  # for what it is: it is not opened again until it changes
    inode: int = 0
    size: int = 0
    mtime: int = 0


class _Content(msgspec.Struct):
    version: str
    files: dict[str, _Entry]


class UnreadableFiles:
    """The files that the last runs could not read, by stored path; saved in Whyfor's home."""

    def __init__(self, home: Path) -> None:
        self._file = home / FILE
        self._files: dict[str, _Entry] = {}
        self._changed = False
        try:
            content = msgspec.json.decode(self._file.read_bytes(), type=_Content)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return
        self._files = content.files
        if content.version != __version__:  # it may read what another version refused
            for entry in self._files.values():
                entry.refused = False

    def reasons(self) -> dict[str, str]:
        """Return why each file could not be read."""
        return {path: entry.reason for path, entry in self._files.items()}

    def refusal(self, path: str, now: Stat) -> str | None:
        """Return why a file was refused, if it is still the same file."""
        entry = self._files.get(path)
        if entry is None or not entry.refused:
            return None
        return entry.reason if (entry.inode, entry.size, entry.mtime) == now else None

    def add(self, path: str, error: Exception, now: Stat | None = None) -> None:
        """Remember that a file could not be read; with its state, it is refused until that
        changes."""
        entry = _Entry(reason_of(error))
        if isinstance(error, TooLarge) and now is not None:
            entry = _Entry(entry.reason, True, *now)
        if self._files.get(path) != entry:
            self._files[path] = entry
            self._changed = True

    def remove(self, path: str) -> None:
        """Drop a file that was read or is gone."""
        if path in self._files:
            del self._files[path]
            self._changed = True

    def save(self) -> None:
        """Save the list if it changed; raises OSError."""
        if not self._changed:
            return
        if self._files:
            replace(self._file, msgspec.json.encode(_Content(__version__, self._files)))
        else:
            self._file.unlink(missing_ok=True)
        self._changed = False
