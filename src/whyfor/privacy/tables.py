"""The secrets below a name that heads a column: of a table, of comma separated values, of an SQL
insert."""

from __future__ import annotations

import re
from collections.abc import Iterator

from whyfor.privacy.judge import is_assigned_secret
from whyfor.privacy.names import SecretName
from whyfor.privacy.values import JUDGED, Span

ROWS = 40
TABLE = 16 << 10  # bytes of one, from the name on
_LINE = re.compile(rb"\r?\n|(?:\\+r)?\\+n")
_CELL_END = re.compile(rb"\\*[\"'`]?[ \t]*(?:[|,;\t]|\r?\n|\\+[rnt])")
_MARKS = (b"|", b"\t", b"\\t", b",", b";")
_STRING_START = re.compile(rb"[:\[{] ?\"")  # of JSON: the table begins in it
_TITLE = re.compile(rb"(?:[A-Za-z_#][\w -]{0,30})?")
_NUMBER = re.compile(rb"[ \t]*\d{1,6}(?:\xe2\x86\x92|\\+u2192|\t|\\+t)")  # of a line
_STRING_END = re.compile(rb"\\*\" ?[,}\]]")
_AROUND_CELL = b" \"'`\\*"
_INSERT = re.compile(rb"(?i)[\w\s,`\"\\]{0,200}\)\s{0,4}(?:\\+n)?values\s{0,4}\(")
_COLUMN_END = re.compile(rb"\\*[\"`]?[ ]?[,)]")
_SQL_VALUE = re.compile(rb"\s*(?:N?'(?P<text>[^'\n\\]{0,256})'|[^,()'\n]{0,80})\s*(?P<end>[,)])")


def cells_below(name: SecretName) -> Iterator[Span]:
    """Yield the secrets in the column that the name heads."""
    data = name.data
    if not _CELL_END.match(data, name.after, name.high):
        return
    stop = _LINE.search(data, name.after, min(name.high, name.after + 600))
    if stop is None:
        return
    begin = _head_start(name)
    head = data[begin : stop.start()]
    mark = next((mark for mark in _MARKS if mark in head), None)
    if mark is None:
        return
    column = data.count(mark, begin, name.start)
    cells = head.split(mark)
    if sum(bool(cell.strip(_AROUND_CELL)) for cell in cells) < 2:
        return  # a list, one item in a line
    # a cell that holds more than the name may say anything, and so may a line that is no head
    alone = cells[column].strip(_AROUND_CELL) == data[name.begin : name.after]
    loose = not alone or not all(_TITLE.fullmatch(cell.strip(_AROUND_CELL)) for cell in cells)
    for line, text in _table_rows(data, stop.end(), min(name.high, name.start + TABLE)):
        row = _STRING_END.split(text, 1)[0].split(mark)  # of a record: no further than its string
        if len(row) != len(cells):
            row = text.split(mark)
        if len(row) != len(cells):
            return
        word = row[column].strip(_AROUND_CELL)
        if is_assigned_secret(word[:JUDGED].decode("utf-8", "replace"), name.rule, 2, loose):
            left = sum(len(cell) + len(mark) for cell in row[:column])
            at = line + left + row[column].find(word)
            yield at, at + len(word)


def _head_start(name: SecretName) -> int:
    """Return where the line of the name begins, in a record the string that it is in."""
    data, floor = name.data, max(name.low, name.start - 400)
    line = max(data.rfind(b"\n", floor, name.start), data.rfind(b"\\n", floor, name.start) + 1)
    begin = line + 1 if line > floor else floor
    for string in _STRING_START.finditer(data, begin, name.start):
        begin = string.end()
    number = _NUMBER.match(data, begin, name.start)
    return number.end() if number else begin


def _table_rows(data: bytes, start: int, high: int) -> Iterator[tuple[int, bytes]]:
    """Yield where each of the next lines starts, and its text; ROWS at most."""
    for _ in range(ROWS):
        stop = _LINE.search(data, start, min(high, start + 2000))
        end = stop.start() if stop else min(high, start + 2000)
        number = _NUMBER.match(data, start, end)
        start = number.end() if number else start
        yield start, data[start:end]
        if stop is None:
            return
        start = stop.end()


def inserted_value(name: SecretName) -> Span | None:
    """Return the secret that an SQL insert puts into the column of this name."""
    if not _COLUMN_END.match(name.data, name.after, name.high):
        return None
    match = _INSERT.match(name.data, name.after, name.high)
    if match is None:
        return None
    opening = name.data.rfind(b"(", max(name.low, name.start - 400), name.start)
    if opening < 0:
        return None
    at = match.end()
    for _ in range(name.data.count(b",", opening, name.start)):
        value = _SQL_VALUE.match(name.data, at, name.high)
        if value is None:
            return None
        at = value.end()
    value = _SQL_VALUE.match(name.data, at, name.high)
    if value is None or value["text"] is None:
        return None
    word = value["text"].decode("utf-8", "replace")
    secret = is_assigned_secret(word, name.rule, name.strength, loose=False)
    return value.span("text") if secret else None
