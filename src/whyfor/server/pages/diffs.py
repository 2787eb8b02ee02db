"""Lines of an edit or a commit, highlighted, with the words that differ."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from markupsafe import Markup, escape

from whyfor.model.characters import show_code
from whyfor.model.conversation import DiffRow
from whyfor.server.render import render_lines

_PIECE = re.compile(r"<[^>]*>|&[^;\s]+;|[^<&]")


def painted(rows: Sequence[DiffRow], path: str, old_path: str | None = None) -> list[Markup]:
    """Return each row's text, highlighted; the old and the new side are highlighted separately.
    Without a path there are no colours."""
    texts = [_line(row.text) for row in rows]
    sides = {
        sign: iter(
            _side(name, tuple(t for t, row in zip(texts, rows, strict=True) if row.sign in signs))
        )
        for sign, signs, name in (("-", "- ", old_path or path), ("+", "+ ", path))
    }
    made = []
    for row, text in zip(rows, texts, strict=True):
        if row.sign == "…":
            made.append(escape(text))
            continue
        found = {side: next(sides[side]) for side in "-+" if row.sign in (side, " ")}
        code = found.get("+", found.get("-", Markup("")))
        made.append(emphasised(code, row.marks) if row.marks and text == row.text else code)
    return made


def rows_size(rows: Sequence[DiffRow]) -> int:
    return sum(len(row.text) + 1 for row in rows)


def _line(text: str) -> str:
    return visible(text.removesuffix("\r")).replace("\n", " ")


@lru_cache(maxsize=256)
def _side(path: str, texts: tuple[str, ...]) -> tuple[Markup, ...]:
    if not path:
        return tuple(escape(text) for text in texts)
    found = render_lines("\n".join(texts), path)
    return tuple(found) if len(found) == len(texts) else tuple(escape(text) for text in texts)


def visible(text: str) -> str:
    """Replace control and direction characters by their names, because they can make code look like
    other code."""
    return show_code(text)


def emphasised(code: Markup, marks: Sequence[tuple[int, int]]) -> Markup:
    """Put <em> around parts of a highlighted line without breaking tags or entities."""
    parts: list[str] = []
    place, inside = 0, False
    for piece in _PIECE.findall(str(code)):
        wanted = not piece.startswith("<") and any(start <= place < end for start, end in marks)
        if inside != wanted:
            parts.append('<em class="w">' if wanted else "</em>")
            inside = wanted
        parts.append(piece)
        place += not piece.startswith("<")
    return Markup("".join(parts) + ("</em>" if inside else ""))
