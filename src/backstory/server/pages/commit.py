"""Commit: its story, and its change with the turns that wrote it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec
from litestar import get
from litestar.params import FromPath, FromQuery
from litestar.response import Template
from markupsafe import Markup

from backstory.model.checkpoints import Annotation
from backstory.server.page import Kept, page
from backstory.server.render import lines as coloured
from backstory.service.authorship import Who
from backstory.service.behind import Behind, FileTold, HunkTold, Row, behind
from backstory.service.stories import MERGE

STEPS = ("Problem", "Solution", "Effect")
OPEN = 400  # lines of diffs that are unfolded to begin with
_WORD = re.compile(r"[^\W_]+|_|\s+|[^\w\s]")
_PIECE = re.compile(r"<[^>]*>|&[^;\s]+;|[^<&]")
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_LONG = 400  # characters of a line in which changed words are looked for


class Shown(msgspec.Struct, frozen=True):
    """A line of a diff, ready to be put into a table."""

    sign: str
    old: int | None
    new: int | None
    code: Markup
    who: Who | None
    first: bool


@get("/commits/{sha:str}", include_in_schema=False, sync_to_thread=True)
def show(
    settings: Kept, sha: FromPath[str], project: FromQuery[str] = "", file: FromQuery[int | None] = None
) -> Template:
    found = behind(settings, sha, project=project, only=file)
    note = found.told.checkpoint.annotation if found.told.checkpoint else None
    return page(
        "commit.html",
        here="timeline",
        behind=found,
        told=found.told,
        note=note,
        steps=steps(note) if note else [],
        alternatives=[alternative(text) for text in note.alternatives] if note else [],
        unfolded=unfolded(found, file),
        only=file,
        table=table,
        bar=list(bar(found)),
        merge=found.told.reason == MERGE,
        when=when,
    )


def when(millis: int) -> str:
    """today 13:53"""
    at, now = datetime.fromtimestamp(millis / 1000), datetime.now()
    day = {0: "today", 1: "yesterday"}.get((now.date() - at.date()).days, f"{at:%Y-%m-%d}")
    return f"{day} {at:%H:%M}"


def steps(note: Annotation) -> list[tuple[str, str]]:
    """An intent is a problem, a solution and an effect; what was derived is what was asked, done and said."""
    parts = [part.strip() for part in note.intent.split("→") if part.strip()]
    if note.by == "derived":
        names: Sequence[str] = ("Asked", "Done", "Said")[: len(parts)] if len(parts) == 3 else ("", "", "")
    else:
        names = STEPS if len(parts) == 3 else ("", "", "")
    return [(names[at] if at < 3 else "", part) for at, part in enumerate(parts)]


def alternative(text: str) -> tuple[str, str]:
    """What was considered, and why it was left."""
    what, _, why = re.sub(r"\s+[—–-]\s+", ": ", text, count=1).partition(": ")
    return (what, why) if why and len(what) <= 80 else (text, "")


def unfolded(found: Behind, only: int | None) -> set[int]:
    """Which files are open to begin with: as many as one reads, or the one that was asked for."""
    if only is not None:
        return {only}
    opened: set[int] = set()
    left = OPEN
    for file in found.files:
        size = sum(len(hunk.rows) for hunk in file.hunks)
        if size and (size <= left or not opened):
            opened.add(file.number)
            left -= size
    return opened


def bar(found: Behind) -> Iterator[tuple[str, int, float, float]]:
    """Who wrote how many of the added lines: name, lines, where its bar begins and how wide it is (of 300)."""
    total = sum(found.counts.values())
    at = 0.0
    order = [name for name in found.counts if name not in ("person", "unknown")] + ["person", "unknown"]
    for name in order:
        if number := found.counts.get(name, 0):
            wide = 300 * number / total
            yield name, number, round(at, 2), round(max(wide - 1, 1), 2)
            at += wide


# -- code ------------------------------------------------------------------------------------------


def table(hunk: HunkTold, file: FileTold) -> list[Shown]:
    """The lines of a hunk in colours, changed words marked; what cannot be seen is made visible."""
    texts = [visible(row.line.text) for row in hunk.rows]
    sides = {
        sign: iter(
            coloured("\n".join(t for t, row in zip(texts, hunk.rows, strict=True) if row.line.sign in signs), name)
        )
        for sign, signs, name in (("+", "+ ", file.path), ("-", "- ", file.old_path or file.path))
    }
    marks = _changed(hunk.rows, texts)
    found = []
    for number, row in enumerate(hunk.rows):
        sign = row.line.sign
        before, after = (next(sides[side], Markup("")) if sign in (side, " ") else Markup("") for side in "-+")
        code = before if sign == "-" else after
        if number in marks:
            code = emphasised(code, marks[number])
        found.append(Shown(sign, row.line.old, row.line.new, code, row.who, row.first))
    return found


def visible(text: str) -> str:
    """Control characters and marks of direction can make code look like other code: their names are shown instead."""
    return _HIDDEN.sub(lambda found: _name(ord(found[0])), text)


def _name(code: int) -> str:
    return chr(0x2400 + code) if code < 32 else f"⟨U+{code:04X}⟩"


def _changed(rows: Sequence[Row], texts: Sequence[str]) -> dict[int, list[tuple[int, int]]]:
    """Where lines were changed rather than replaced: of each the characters that differ from its counterpart's."""
    found: dict[int, list[tuple[int, int]]] = {}
    at = 0
    while at < len(rows):
        gone = _run(rows, at, "-")
        come = _run(rows, at + gone, "+")
        if gone == come:
            for number in range(gone):
                old, new = at + number, at + gone + number
                if marks := _differences(texts[old], texts[new]):
                    found[old], found[new] = marks
        at += max(gone + come, 1)
    return found


def _run(rows: Sequence[Row], at: int, sign: str) -> int:
    end = at
    while end < len(rows) and rows[end].line.sign == sign:
        end += 1
    return end - at


def _differences(old: str, new: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]] | None:
    """Nothing if hardly anything is the same: then the line is another one."""
    if max(len(old), len(new)) > _LONG:
        return None
    before, after = _WORD.findall(old), _WORD.findall(new)
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    same = sum(len("".join(before[m.a : m.a + m.size]).strip()) for m in matcher.get_matching_blocks())
    if same * 2 < max(len(old.strip()), len(new.strip())):
        return None
    places: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for step, a, b, c, d in matcher.get_opcodes():
        if step != "equal":
            for words, first, last, into in ((before, a, b, places[0]), (after, c, d, places[1])):
                start = len("".join(words[:first]))
                if last > first:
                    into.append((start, start + len("".join(words[first:last]))))
    return places


def emphasised(code: Markup, marks: Sequence[tuple[int, int]]) -> Markup:
    """Put <em> around characters of a coloured line; tags and entities stay whole."""
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


router = [show]
