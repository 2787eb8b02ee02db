"""A text with its escapes resolved: colours, percent signs, entities, JSON's numbers of letters."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

REACH = 2048  # bytes a name and its value may lie apart, with escapes between them
ESCAPE_MARKS = (
    b"\x1b[ \\u001b[ \\x1b[ \\033[ \\e[ "
    b"%0a %09 %20 %22 %25 %26 %27 %2b %2c %2d %2f %3a %3b %3c %3d %3e %40 %5f %7b %7c %24 %21 "
    b"&quot; &amp; &apos; &lt; &gt; &# \\u002 \\u003 \\u005 \\/"
).split()
ESCAPES = re.compile(
    rb"(?:\x1b|\\+(?:u001[bB]|x1[bB]|033|e))\[[0-9;?]{0,20}[A-Za-z]"  # colours
    rb"|%[0-9A-Fa-f]{2}"
    rb"|&(?:amp|quot|apos|lt|gt|#\d{1,4}|#x[0-9A-Fa-f]{1,4});"
    rb"|\\+u[Dd][89ABab][0-9A-Fa-f]{2}\\+u[Dd][C-Fc-f][0-9A-Fa-f]{2}"  # a pair is one character
    rb"|\\+u(?!00[01])[0-9A-Fa-f]{4}|\\+/"
)
_DEPTHS = (1, 2, 4)  # backslashes of an escape in JSON, in JSON in JSON, and once more
_SHORT_ESCAPE = re.compile(rb"\\x([0-9a-f]{2})")
_ENTITIES = {b"amp": b"&", b"quot": b'"', b"apos": b"'", b"lt": b"<", b"gt": b">"}


class TextView(NamedTuple):
    """A text with its escapes resolved, and where each piece of it stood."""

    text: bytes
    starts: list[int]  # of pieces in the view
    origins: list[int]  # of the same pieces in the original
    ends: list[int]

    def original(self, start: int, end: int) -> tuple[int, int]:
        return self._at(start)[0], self._at(end - 1)[1]

    def _at(self, place: int) -> tuple[int, int]:
        index = bisect_right(self.starts, place) - 1
        if self.ends[index]:  # one character that was written as an escape
            return self.origins[index], self.ends[index]
        begin = self.origins[index] + place - self.starts[index]
        return begin, begin + 1


def escape_windows(data: bytes, escapes: list[int], lines: bool) -> Iterator[tuple[int, int]]:
    """Yield stretches of text with escapes in them, as far as a name and its value lie apart."""
    low = high = end = -1  # end: of the line the last one is in
    for at in escapes:
        begin, finish = max(0, at - REACH), min(len(data), at + REACH)
        if lines:
            if at > end:
                begin = data.rfind(b"\n", begin, at) + 1 or begin
                end = line_end(data, at)
            finish = min(finish, end)
        if begin <= high:
            high = max(high, finish)
            continue
        if high > 0:
            yield low, high
        low, high = begin, finish
    if high > 0:
        yield low, high


def text_view(
    data: bytes, low: int, high: int, pattern: re.Pattern[bytes], meant: Callable[[bytes], bytes]
) -> TextView:
    pieces: list[bytes] = []
    view = TextView(b"", [], [], [])
    done, size = low, 0

    def add(piece: bytes, origin: int, end: int) -> None:
        nonlocal size
        if piece:
            view.starts.append(size)
            view.origins.append(origin)
            view.ends.append(end)
            pieces.append(piece)
            size += len(piece)

    for match in pattern.finditer(data, low, high):
        add(data[done : match.start()], done, 0)
        add(meant(match.group()), match.start(), match.end())
        done = match.end()
    add(data[done:high], done, 0)
    return view._replace(text=b"".join(pieces))


def meant_by(escape: bytes) -> bytes:
    """The character an escape stands for; nothing for a colour."""
    if b"[" in escape:
        return b""
    if escape.startswith(b"%"):
        return bytes([int(escape[1:], 16)])
    if escape.startswith(b"&"):
        name = escape[1:-1]
        if name in _ENTITIES:
            return _ENTITIES[name]
        code = int(name[2:], 16) if name[1:2] in b"xX" else int(name[1:])
        return bytes([code]) if 9 <= code < 128 else b" "
    if escape.endswith(b"/"):
        return b"/"
    units = [int(digits[:4], 16) for digits in escape.split(b"u")[1:]]
    pair = b"".join(unit.to_bytes(2, "little") for unit in units)
    return pair.decode("utf-16-le", "replace").encode()


def escaped_word(word: str) -> list[bytes]:
    """Return how JSON writes a word without letters beyond ASCII, in small letters; nothing if it
    has none of those."""
    if word.isascii():
        return []
    plain = word.encode("ascii", "backslashreplace")
    written = _SHORT_ESCAPE.sub(rb"\\u00\1", plain)
    return [written.replace(b"\\", b"\\" * depth) for depth in _DEPTHS]


def line_end(data: bytes, at: int) -> int:
    end = data.find(b"\n", at)
    return len(data) if end < 0 else end
