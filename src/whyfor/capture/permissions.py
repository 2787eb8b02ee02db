"""Our files are readable by their owner only, also after a copy or a restored backup made them more
open."""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

_OURS = (
    *(
        "segments",
        "spool",
        "hook",
        "recordings",
        "redacted",
        "journal.jsonl*",
        "ingest.lock",
        "config.toml",
    ),
    *("whyfor.db*", "rebuild.db*", "top.lock"),
)
# the dashboard's key among them: closing what others may have read would only hide it
_SERVED = ("serve.*",)
_TOKEN = "serve.token"
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_NAMED = 4  # files that are named one by one


class Exposure(msgspec.Struct, frozen=True):
    """A file of ours that others can access, and the command that fixes it."""

    what: str
    mend: str


def tighten(home: Path) -> None:
    """Remove other users' access to our files. They are listed by name, because others may use the
    directory itself."""
    for path in _found(home, _OURS):
        with suppress(OSError):  # now somebody else's: writing will fail and say so
            mode = path.stat().st_mode
            if mode & _OTHERS:
                path.chmod(mode & stat.S_IRWXU)


def exposures(home: Path) -> list[Exposure]:
    """Return which of our files other users can access; empty if none, or if that cannot be found
    out."""
    if not hasattr(os, "geteuid") or not home.is_dir():
        return []
    return [*_of_owner(home), *_of_home(home), *_of_contents(home), *_of_folders_above(home)]


def _ours(home: Path) -> list[Path]:
    return _found(home, (*_OURS, *_SERVED))


def _found(home: Path, patterns: tuple[str, ...]) -> list[Path]:
    found: list[Path] = []
    for pattern in patterns:
        found += sorted(home.glob(pattern))
    return found


def _of_owner(home: Path) -> Iterator[Exposure]:
    us = os.geteuid()
    foreign = [path for path in (home, *_ours(home)) if _owner(path) not in (us, None)]
    if foreign:
        what = (
            f"{_listed(foreign)} belongs to another user (uid {_owner(foreign[0])}), who can read "
            "and change it"
        )
        yield Exposure(what, f"Take it over: sudo chown -R {us} {shlex.quote(str(foreign[0]))}")


def _of_home(home: Path) -> Iterator[Exposure]:
    mode = _mode(home)
    if mode & _OTHERS:
        what = f"{home} is open to other users of this machine (mode {mode:04o}): {_can(mode)}"
        yield Exposure(what, f"Close it: chmod 700 {shlex.quote(str(home))}")


def _of_contents(home: Path) -> Iterator[Exposure]:
    opened = [path for path in _ours(home) if _mode(path) & _OTHERS and not path.is_symlink()]
    if not opened:
        return
    together = 0
    for path in opened:
        together |= _mode(path)
    command = shlex.join(["chmod", "-R", "go-rwx", *map(str, opened)])
    what = f"{_listed(opened)} can be reached by other users of this machine: {_can(together)}"
    yield Exposure(what, f"Close it: {command}")
    token = home / _TOKEN
    if token in opened:
        what = f"the dashboard's key, {_TOKEN}, may have been read by others"
        remove = f"rm {shlex.quote(str(token))}"
        yield Exposure(what, f"Delete it, and the next serve makes a new one: {remove}")


def _of_folders_above(home: Path) -> Iterator[Exposure]:
    """Return directories above ours that others may write to: they could replace our directory,
    with hooks of their own."""
    for folder in home.resolve().parents:
        mode = _mode(folder)
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            what = (
                f"{folder}, above {home}, can be written by everybody (mode {mode:04o}): they can "
                "replace what is in it"
            )
            yield Exposure(
                what, f"Close it, or mark it sticky: chmod o-w {shlex.quote(str(folder))}"
            )


def _can(mode: int) -> str:
    """Return what other users can do with a file of this mode."""
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        return "they can change what is recorded, and what your agents' hooks run"
    if mode & (stat.S_IRGRP | stat.S_IROTH):
        return "they can read what is in it"
    return "they can enter it"


def _listed(paths: list[Path]) -> str:
    names = ", ".join(str(path) for path in paths[:_NAMED])
    more = len(paths) - _NAMED
    return f"{names} and {more} more" if more > 0 else names


def _mode(path: Path) -> int:
    """Return the bits of a file's mode; 0 if it cannot be read."""
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return 0


def _owner(path: Path) -> int | None:
    try:
        return path.stat().st_uid
    except OSError:
        return None
