"""Lay out texts of plain characters, each one column wide: the same lines as rich makes, for a
fraction of the time. Whatever is not that plain is left to rich."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

# ASCII, our own marks, and what agents write most: all of them one column wide
_PLAIN = re.compile(r"[ -~\n–—‘’“”…·×▸←↑→↓✕▌•─│├└┄■↶]*")
_WORD = re.compile(r"\s*\S+\s*")

_Run = tuple[int, int, Style]
"""A part of a text, from and to, and how it looks."""


def quick_lines(
    console: Console, text: Text, width: int, justify: str | None = None
) -> list[list[Segment]] | None:
    """Return the lines that `text` is laid out to, of at most `width`; None if it is left to
    rich."""
    plain = text.plain
    justify = text.justify or justify
    left_aligned = justify in (None, "default", "left")
    if width < 1 or not left_aligned or text.no_wrap or text.overflow:
        return None
    if not plain.strip() or not _PLAIN.fullmatch(plain):
        return None
    base = console.get_style(text.style, default="")
    runs = _runs(console, text, base)
    if runs is None or any(style.link for _, _, style in runs):
        return None
    found: list[list[Segment]] = []
    padded = width if justify == "left" else 0
    at = 0
    for line in plain.split("\n"):
        for start, stop in _pieces(line, width):
            laid = _styled(plain, runs, at + start, at + stop)
            if stop - start < padded:
                laid.append(Segment(" " * (padded - stop + start), base))
            found.append(laid)
        at += len(line) + 1
    return found


def quick_padding(
    console: Console, text: Text, left: int, width: int, justify: str | None = None
) -> list[list[Segment]] | None:
    """Return the same for a text with blanks before each of its lines, and after it up to the
    longest."""
    inside = min(max(map(len, text.plain.splitlines()), default=0), width - left)
    lines = quick_lines(console, text, inside, justify)
    if lines is None:
        return None
    for line in lines:
        missing = inside - sum(len(segment.text) for segment in line)
        line.insert(0, Segment(" " * left))
        if missing:
            line.append(Segment(" " * missing))
    return lines


def _runs(console: Console, text: Text, base: Style) -> list[_Run] | None:
    """Return the parts of a text in order; None if its spans overlap."""
    runs: list[_Run] = []
    at = 0
    for span in text.spans:
        if span.start < at:
            return None
        if span.start > at:
            runs.append((at, span.start, base))
        runs.append((span.start, span.end, base + console.get_style(span.style, default="")))
        at = span.end
    if at < len(text.plain):
        runs.append((at, len(text.plain), base))
    return runs


def _styled(plain: str, runs: list[_Run], start: int, stop: int) -> list[Segment]:
    found: list[Segment] = []
    for low, high, style in runs:
        if high <= start:
            continue
        if low >= stop:
            break
        found.append(Segment(plain[max(low, start) : min(high, stop)], style))
    return found


def _pieces(line: str, width: int) -> Iterator[tuple[int, int]]:
    """Yield where the pieces of a line begin and end, without blanks that stick out."""
    if len(line) <= width:
        yield 0, len(line)
        return
    breaks = _breaks(line, width)
    for start, stop in zip([0, *breaks], [*breaks, len(line)], strict=True):
        words = line[start:stop].rstrip()
        yield start, start + min(max(len(words), min(width, stop - start)), width)


def _breaks(line: str, width: int) -> list[int]:
    """Return where a line is cut: between words, inside a word that is longer than a line."""
    found: list[int] = []
    used = 0
    for match in _WORD.finditer(line):
        start, end = match.span()
        size = len(match[0].rstrip())
        if width - used >= size:
            used += end - start
        elif size > width:
            cuts = range(start, end, width)
            found += [cut for cut in cuts if cut]
            used = end - cuts[-1]
        elif used and start:
            found.append(start)
            used = end - start
    return found
