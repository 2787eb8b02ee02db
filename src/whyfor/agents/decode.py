"""From bytes to records: one JSON object per line, and what to do with lines that are not."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from whyfor.agents.base import LARGE, MAX_DECODED, can_decode
from whyfor.model.casts import CAST, is_cast_event
from whyfor.model.findings import Record
from whyfor.model.gaps import Gap, filled, holes
from whyfor.model.paths import escape_surrogates
from whyfor.model.sources import UnparsedRecord

MAX_LINE = MAX_DECODED
"""Longest line stored in one piece, in bytes; a longer one is split and not decoded."""
TOO_LARGE = "too large to be decoded"
MAX_DOCUMENT = 256 << 20
"""Bytes of a file that is one JSON value."""
_decode = msgspec.json.Decoder().decode


def split_lines(data: bytes, start: int, gaps: Sequence[Gap] = ()) -> Iterator[tuple[int, bytes]]:
    """Non-blank lines with their offsets. Only a newline ends a line: U+2028 and friends may
    stand in JSON."""
    if gaps:
        yield from _lines_around(data, start, gaps)
        return
    offset = start
    for line in data.split(b"\n"):
        if line and not line.isspace():
            yield offset, line.removesuffix(b"\r")
        offset += len(line) + 1


def line_at(data: bytes, start: int, gaps: Sequence[Gap], offset: int) -> bytes:
    """Return the line that begins at an offset; empty if none does."""
    if gaps:
        return next((line for at, line in split_lines(data, start, gaps) if at == offset), b"")
    end = data.find(b"\n", offset - start)
    return data[offset - start : end if end >= 0 else len(data)].removesuffix(b"\r")


def _lines_around(data: bytes, start: int, gaps: Sequence[Gap]) -> Iterator[tuple[int, bytes]]:
    """The same where bytes are missing: a gap before a line was lines of its own, one inside it
    was words."""
    missing = deque(holes(start, gaps))
    offset, at = start, 0
    for line in data.split(b"\n"):
        while missing and missing[0][0] == at:
            offset += missing.popleft()[1]
        inside = []
        while missing and missing[0][0] <= at + len(line):
            inside.append(missing.popleft())
        if inside or (line and not line.isspace()):
            yield offset, filled(line, at, inside).removesuffix(b"\r")
        offset += len(line) + sum(size for _, size in inside) + 1
        at += len(line) + 1


def fill_gaps(data: bytes, start: int, gaps: Sequence[Gap], *, text: bool = False) -> bytes:
    """Kept bytes that can be read, with a word in each gap; in JSON, a gap where a line begins
    was lines of its own."""
    inside = [hole for hole in holes(start, gaps) if text or (hole[0] and data[hole[0] - 1] != 10)]
    return filled(data, 0, inside) if inside else data


def decode_line(line: bytes, offset: int) -> list[Record] | UnparsedRecord:
    """The objects on a line: one, or several that were glued together by a lost newline."""
    if len(line) >= LARGE:
        return read_line(line, offset)[0]
    try:
        value = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _salvage(line, offset)
    if isinstance(value, dict):
        return [value]
    if is_cast_event(value):
        return [{CAST: value}]
    return UnparsedRecord(offset, len(line), "not an object")


def read_line(line: bytes, offset: int) -> tuple[list[Record] | UnparsedRecord, bool]:
    """The same, and whether the line is sound: nothing of it had to be mended."""
    if problem := too_large(line, offset, MAX_DECODED):
        return problem, False
    try:
        value = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _salvage(line, offset), False
    if isinstance(value, dict):
        return [value], True
    if is_cast_event(value):
        return [{CAST: value}], True
    return UnparsedRecord(offset, len(line), "not an object"), False


def decode_document(data: bytes) -> list[Record] | UnparsedRecord:
    """A whole file that is one JSON value, or several in a row; an array stands for its objects."""
    if problem := too_large(data, 0, MAX_DOCUMENT):
        return problem
    try:
        values = [_decode(data)]
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _salvage(data, 0, arrays=True)
    return _objects(values, 0, len(data), arrays=True)


def too_large(data: bytes, offset: int, limit: int) -> UnparsedRecord | None:
    """Return the problem with this JSON, if it must not be decoded; its bytes are kept all the
    same."""
    if len(data) > limit:
        return UnparsedRecord(offset, len(data), TOO_LARGE)
    return (
        None
        if can_decode(data)
        else UnparsedRecord(offset, len(data), "too large for the memory there is")
    )


def _salvage(line: bytes, offset: int, *, arrays: bool = False) -> list[Record] | UnparsedRecord:
    size = len(line)
    bare = line.strip(b"\x00 \t\r\n")
    if not bare:
        return UnparsedRecord(offset, size, "NUL bytes")
    text = bare.decode("utf-8", "replace").lstrip("\ufeff")
    if not text:
        return []
    import json  # here: lines that need it are rare

    # Control characters inside strings are somebody's carelessness, not damage.
    lenient = json.JSONDecoder(strict=False)
    values: list[Any] = []
    at = 0
    try:
        while at < len(text):
            value, at = lenient.raw_decode(text, at)
            if not isinstance(value, dict) and not (arrays and isinstance(value, list)):
                return UnparsedRecord(offset, size, "not an object")
            values.append(_without_surrogates(value))
            while at < len(text) and text[at] in " \t\r\n\x00":
                at += 1
    except (ValueError, RecursionError) as error:
        return UnparsedRecord(offset, size, _reason(error, text))
    return _objects(values, offset, size, arrays=arrays)


def _objects(
    values: list[Any], offset: int, size: int, *, arrays: bool
) -> list[Record] | UnparsedRecord:
    found: list[Record] = []
    for value in values:
        if arrays and isinstance(value, list):
            found += [item for item in value if isinstance(item, dict)]
        elif isinstance(value, dict):
            found.append(value)
        else:
            return UnparsedRecord(offset, size, "not an object")
    return found or UnparsedRecord(offset, size, "not an object")


def _reason(error: Exception, text: str) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    at = getattr(error, "pos", 0)
    unclosed = "Unterminated" in str(error)
    return "truncated" if unclosed or at >= len(text) - 1 else "invalid JSON"


def _place(name: str, value: Any) -> Any:
    """A folder whose name is not UTF-8 is written so that it can be found again."""
    return escape_surrogates(value) if name == "cwd" and isinstance(value, str) else value


def _without_surrogates(value: Any) -> Any:
    """Half a surrogate pair is legal in JSON and in Python's str, but in no database."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if isinstance(value, dict):
        return {_without_surrogates(k): _without_surrogates(_place(k, v)) for k, v in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    return value
