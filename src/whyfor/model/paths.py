"""Paths as text, of whatever system: sessions may come from another machine.

A name on disk is bytes, and need not be UTF-8. Python holds the odd bytes as lone surrogates,
which no database, JSON document or terminal takes. Wherever a path of this machine becomes text
that is stored or shown, it goes through `to_text`; wherever such text becomes a path again,
through `to_path`. A path that is plain Unicode is the same in both.

An undecodable byte is written as U+FFFD and its two hexadecimal digits: `caf\\xe9` is `caf�e9`.
A name that happens to have such three characters in it already has its U+FFFD written as its own
three bytes, `�ef�bf�bd`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path

MARK = "\ufffd"
_LITERAL = re.compile("\ufffd(?=[89a-f][0-9a-f])")
_LITERAL_BYTES = "\ufffdef\ufffdbf\ufffdbd"
_ESCAPED = re.compile("\ufffd([89a-f][0-9a-f])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:(?=[\\/]|$)")


def to_text(path: str | PathLike[str]) -> str:
    """Return the path as text that can be encoded; `to_path` gives the same path back."""
    name = fspath(path)
    if name.isascii():
        return name
    if MARK in name:
        name = _LITERAL.sub(_LITERAL_BYTES, name)
    return escape_surrogates(name)


def escape_surrogates(text: str) -> str:
    """Return any text in a form that can be encoded: undecodable bytes as escapes, other lone
    surrogates as U+FFFD."""
    return _SURROGATE.sub(_shown, text)


def to_name(text: str) -> str:
    """Return stored text as the file name that the system uses."""
    if MARK not in text:
        return text
    raw = _ESCAPED.sub(lambda found: chr(0xDC00 + int(found[1], 16)), text)
    return raw.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")


def to_path(text: str) -> Path:
    """Return stored text as a path of this machine."""
    return Path(to_name(text))


def below(path: str, folder: str) -> bool:
    """Return whether a path is the folder or inside it; a trailing slash does not matter."""
    path, folder = path.replace("\\", "/").rstrip("/"), folder.replace("\\", "/").rstrip("/")
    return path == folder or path.startswith(folder + "/")


def is_whole_path(text: str) -> bool:
    """Return whether a text is a path from the top, of any system."""
    return text.startswith(("/", "\\\\")) or _DRIVE.match(text) is not None


def path_within(path: str, folder: str | None) -> str:
    """Return a path as one would say it in a folder, with slashes; unchanged if it is not below
    it."""
    short = shorten_paths(path, folder)
    is_windows = folder is not None and _DRIVE.match(folder) is not None
    return short.replace("\\", "/") if short != path and is_windows else short


def parts_of(path: str) -> tuple[str, ...]:
    """Return a path's parts, whatever system it is of."""
    return tuple(part for part in re.split(r"[/\\]+", path) if part)


def telling_end(parts: tuple[str, ...], others: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the end of a path that no other one of these, itself among them, ends with; two parts
    at least."""
    for count in range(2, len(parts)):
        end = parts[-count:]
        if sum(other[-count:] == end for other in others) == 1:
            return end
    return parts


def shorten_paths(text: str, folder: str | None) -> str:
    """Return a text, such as a command, in which what is below a folder is relative to it."""
    stem = _stem(folder) if folder else None
    return stem.sub("", text) if stem else text


@lru_cache(256)
def _stem(folder: str) -> re.Pattern[str] | None:
    """Return what finds a folder before what is in it: on Windows with slashes of both kinds, in
    any case, and as a Unix shell writes the drive (/c/Users). None for the top of a disk."""
    drive = _DRIVE.match(folder)
    names = [name for name in re.split(r"[\\/]" if drive else "/", folder) if name]
    if drive:
        names = names[1:]
    if not names:
        return None
    before, slash, flags = "", "/", re.NOFLAG
    if drive:
        letter = folder[0]
        before, slash, flags = rf"(?:{letter}:|(?:/mnt)?/{letter})", r"[\\/]+", re.IGNORECASE
    whole = slash + slash.join(map(re.escape, names)) + slash
    return re.compile(rf"(?<![\w.\\/-]){before}{whole}", flags)


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"{MARK}{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else MARK
