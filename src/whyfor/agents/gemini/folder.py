"""Which folder a session ran in. Its records do not say it; what lies beside them does.

In order: a marker in the project's own folder, the list of projects, and, for sessions from
before there were these, the name of the folder itself. That is the SHA-256 of the path: of the
paths that its sessions name, and of the folders above them, the one with this hash is the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import msgspec

from whyfor.agents.base import as_dict, get_dict

_SMALL = 1 << 20
_READ_MAX = 64 << 20  # bytes of a project's sessions that are searched for its path
_HASH = re.compile(r"[0-9a-f]{64}")
# A value that is a path, spaces and all; or a path inside a text. Both as JSON writes them.
_VALUE = re.compile(rb'"((?:[A-Za-z]:\\\\|/)[^"\n]{0,400})"')
_INSIDE = re.compile(rb"(?:[A-Za-z]:\\\\|/)[^\s\"'`<>|:;,*?()]*")


def session_folder(path: Path) -> str | None:
    """Return the folder that a session's file is about; None if nothing tells."""
    chats = path.parent if path.parent.name == "chats" else path.parent.parent
    if chats.name != "chats":
        return None
    project = chats.parent
    if marked := _beginning(project / ".project_root").decode("utf-8", "replace").strip():
        return marked
    try:
        known = msgspec.json.decode(_beginning(project.parent.parent / "projects.json"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        known = None
    for folder, slug in get_dict(as_dict(known), "projects").items():
        if project.name in (slug, _hash(folder)):
            return str(folder)
    if _HASH.fullmatch(project.name) is None:
        return None
    return _named_folder(chats, tuple(_files(chats)))


@lru_cache(maxsize=16)
def _named_folder(chats: Path, files: tuple[tuple[str, int], ...]) -> str | None:
    """Return the folder with the project's hash, of those that its sessions name."""
    wanted, left = chats.parent.name, _READ_MAX
    tried: set[bytes] = set()
    for name, _ in files:
        data = _beginning(chats / name, left)
        left -= len(data)
        for found in (*_VALUE.findall(data), *_INSIDE.findall(data)):
            for folder in _upwards(found, tried):
                text = folder.replace(b"\\\\", b"\\").decode("utf-8", "replace")
                if _hash(text) == wanted:
                    return text
        if left <= 0:
            break
    return None


def _upwards(path: bytes, tried: set[bytes]) -> Iterator[bytes]:
    """Yield a path and the folders above it, as far as nobody has tried them."""
    separator = b"/" if path.startswith(b"/") else b"\\\\"
    path = path.rstrip(b"./\\")
    while path and path not in tried:
        tried.add(path)
        yield path
        if path.endswith(b":"):
            yield path + separator  # the root of a drive
        path = path.rpartition(separator)[0]


def _files(chats: Path) -> Iterator[tuple[str, int]]:
    """Yield the sessions beside each other, with their sizes: as long as these are the same, so is
    what they name."""
    try:
        for path in sorted(chats.glob("session-*.json*")):
            yield path.name, path.stat().st_size
    except OSError:
        return


def _hash(folder: str) -> str:
    from hashlib import sha256  # here: OpenSSL takes longer to load than most runs take to look

    return sha256(folder.encode("utf-8", "replace")).hexdigest()


def _beginning(path: Path, most: int = _SMALL) -> bytes:
    """Return what a plain file begins with; empty for all else, so that nobody waits for a pipe."""
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as file:
            return file.read(most)
    except OSError:
        return b""
