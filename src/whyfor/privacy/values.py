"""The value that stands after a name: how far it goes."""

from __future__ import annotations

import re

Span = tuple[int, int]  # first and behind the last

BARE = 512
JUDGED = 160  # bytes of a value that decide
_BARE = re.compile(rb"(?:[^\s\"'`<>\\,;(){}\[\]|&]|&(?![\s\"'`;&]|#?\w{1,40}[=;])){4,512}")
_LINE_NUMBER = rb"\d{1,6}(?:\xe2\x86\x92|\\+u2192|[:|\t]|\\+t)"
MORE = re.compile(  # a value that goes on in the next line, or in the string beside it
    rb"(?:\\\r?\n|\\{3}n|\\{6,7}n)(?:[ \t]*" + _LINE_NUMBER + rb"|[+\->])?[ \t]*(?=[\w+/=.~-])"
    rb"|\\*[\"'`](?:[ \t+.&]|\\?\r?\n|\\+n|" + _LINE_NUMBER + rb"){1,14}"
    rb"\\*[\"'`](?=[\w+/=.~-])"
)
_REST = re.compile(rb"[A-Za-z0-9+/_=.~-]{3,512}")
INNER_BREAK = re.compile(rb"\\+[nrt]|\\?\n")
STOP = re.compile(rb"[\s\"'`<>\\,;(){}\[\]|&]")


def value_span(data: bytes, match: re.Match[bytes], high: int) -> Span | None:
    """Return the span of what stands after the match: up to the closing quote, or as far as a
    bare word goes, and what it goes on with."""
    start = match.end()
    quote = match["q"]
    closing = closing_quote(data, start, quote, high) if quote else None
    if closing is not None:
        cut = INNER_BREAK.search(data, start, closing)
        end = cut.start() if cut else closing
        return trimmed(data, start, _continued(data, end, high), quoted=True)
    bare = _BARE.match(data, start, high)
    if bare is None or data[bare.end() : bare.end() + 1] in (b"(", b"["):
        return None
    return trimmed(data, start, _continued(data, bare.end(), high))


def closing_quote(data: bytes, start: int, quote: bytes, high: int) -> int | None:
    """Where the string ends: its quote once more, with as many backslashes as before and not one
    more."""
    end, limit = start - 1, min(high, start + 2048)
    while (end := data.find(quote, end + 1, limit)) >= 0:
        if data[end - 1 : end] != b"\\" or (quote[:1] == b"\\" and data[end - 2 : end] != b"\\\\"):
            return end
    return None  # never closed here: as if it were not quoted


def _continued(data: bytes, end: int, high: int) -> int:
    for _ in range(64):
        more = MORE.match(data, end, min(high, end + 80))
        rest = _REST.match(data, more.end(), high) if more else None
        if rest is None or data[rest.end() : rest.end() + 1] in (b":", b"=", b"("):
            break
        end = rest.end()
    return end


def extended(data: bytes, span: Span, high: int) -> Span:
    """Return the span of the whole value that was judged by its beginning."""
    start, end = span
    if end - start < BARE and end < high and STOP.match(data, end):
        return span
    if data[end : end + 1] in (b".", b",", b":", b";", b"!", b"?", b"*", b"_", b"'"):
        return span
    stop = STOP.search(data, end, high)
    return start, stop.start() if stop else high


def trimmed(data: bytes, start: int, end: int, *, quoted: bool = False) -> Span:
    text = data[start:end]
    kept = text.rstrip(b" \t\\") if quoted else text.rstrip(b".,:;!?*'")
    return start, start + len(kept)


def judged_text(data: bytes, span: Span) -> str:
    return data[span[0] : min(span[1], span[0] + JUDGED)].decode("utf-8", "replace")
