"""Lines of a diff with their colours, and the words that differ in them."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from functools import lru_cache

from markupsafe import Markup, escape

from backstory.model.text import clean
from backstory.server.render import lines
from backstory.service.changes import Row

_PIECE = re.compile(r'<span class="(\w+)">(.*?)</span>|([^<]+)', re.S)


def painted(rows: Sequence[Row], path: str) -> list[Markup]:
    """Each row's text; both sides are coloured as what they are, a text of their own. No path, no colours."""
    if not path:
        return [_marked(escape(clean(row.text)), row) for row in rows]
    old, new = (iter(_side(path, _text(rows, other))) for other in "+-")
    made = []
    for row in rows:
        if row.sign == "…":
            made.append(escape(clean(row.text)))
            continue
        before = next(old) if row.sign != "+" else None
        after = next(new) if row.sign != "-" else None
        made.append(_marked(after if after is not None else before or Markup(""), row))
    return made


def size(rows: Sequence[Row]) -> int:
    return sum(len(row.text) + 1 for row in rows)


def _text(rows: Sequence[Row], other: str) -> str:
    return "\n".join(_one_line(row.text) for row in rows if row.sign not in (other, "…")) + "\n"


def _one_line(text: str) -> str:
    return clean(text).replace("\n", " ")


@lru_cache(maxsize=256)
def _side(path: str, text: str) -> tuple[Markup, ...]:
    found = lines(text, path)
    wanted = text.count("\n")
    return (*found[:wanted], *[Markup("")] * (wanted - len(found)))


def _marked(line: Markup, row: Row) -> Markup:
    """With what differs in <em>. Marks are places in the raw text: where cleaning changed it they are left out."""
    if not row.marks or _one_line(row.text) != row.text:
        return line
    made: list[Markup] = []
    at = 0
    for name, inner, plain in _PIECE.findall(str(line)):
        text = html.unescape(inner or plain)
        told = _emphasised(text, at, row.marks)
        made.append(Markup('<span class="{}">{}</span>').format(name, told) if name else told)
        at += len(text)
    return Markup("").join(made)


def _emphasised(text: str, at: int, marks: Sequence[tuple[int, int]]) -> Markup:
    made, done = Markup(""), 0
    for start, end in marks:
        low, high = max(start - at, done), min(end - at, len(text))
        if low < high:
            made += escape(text[done:low]) + Markup('<em class="w">{}</em>').format(text[low:high])
            done = high
    return made + escape(text[done:])
