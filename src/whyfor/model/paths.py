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
from os import PathLike, fspath
from pathlib import Path

MARK = "\ufffd"
_LITERAL = re.compile("\ufffd(?=[89a-f][0-9a-f])")
_LITERAL_BYTES = "\ufffdef\ufffdbf\ufffdbd"
_ESCAPED = re.compile("\ufffd([89a-f][0-9a-f])")
_SURROGATE = re.compile("[\ud800-\udfff]")


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


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"{MARK}{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else MARK
