"""Edits as diffs for display: lines with numbers where the agent recorded them, and the words that
differ."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from whyfor.agents.edits import (
    PATCH,
    AskedChange,
    asked_edits,
    changes_in,
    first_text,
    is_edit,
    patch_in,
    patched_files,
    path_in,
    told_changes,
)
from whyfor.model.conversation import DiffRow, FileDiff
from whyfor.model.events import StoredEvent

CONTEXT = 3
_COMPARED = 1500  # lines on either side; more are not compared but shown one after the other
_PAIRED = 8  # lines taken away, and put in, among which partners are looked for
_LINE = 400  # characters of a line whose words are compared
_ALIKE = 0.55
_MARKED = 0.6  # of a line; if more of it differs, marks say nothing
_HUNK = re.compile(r"^@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_WHAT = {"add": "written", "update": "edited", "delete": "deleted"}
_WORD = re.compile(r"[^\W_]+|_+|\s+|[^\w\s]")


def edits(call: StoredEvent) -> bool:
    """Return whether a call asks for an edit."""
    return is_edit(call.get("input"), call.text)


def file_diffs(call: StoredEvent, result: StoredEvent | None) -> list[FileDiff]:
    """Return what a call changed, by file: from the exact patch if there is one, else from its
    arguments. A failed call changed nothing."""
    given, outcome = call.get("input"), (result.data or {}) if result else {}
    if outcome.get("failed") or not is_edit(given, call.text):
        return []
    path = path_in(given) or first_text(outcome, "path")
    patch = outcome.get("patch")
    if isinstance(patch, list) and path:
        return [FileDiff(path, rows=_structured(patch))]
    diff = first_text(outcome, "diff")
    if diff:
        return list(_unified(diff, path))
    return _argument_diffs(given, call.text, path)


def _argument_diffs(given: object, text: str, path: str) -> list[FileDiff]:
    """Return what a call was asked to change, by file."""
    for patch in (patch_in(given), text):
        if PATCH in patch:
            return [_patched(file) for file in patched_files(patch)]
    told = changes_in(given)
    if told is not None:
        return [_told(file) for file in told_changes(told)]
    return [_asked(path, given)] if path and isinstance(given, dict) else []


# -- in the agents' shapes -----------------------------------------------------------------------


def _structured(patch: list[Any]) -> list[DiffRow]:
    """Read Claude Code's patch: hunks with line numbers and signed lines."""
    rows: list[DiffRow] = []
    for hunk in patch:
        if isinstance(hunk, dict) and isinstance(hunk.get("lines"), list):
            start = [_number(hunk.get(name)) for name in ("oldStart", "newStart")]
            _append(
                rows, _signed([line for line in hunk["lines"] if isinstance(line, str)], *start)
            )
    return rows


def _unified(diff: str, path: str) -> Iterator[FileDiff]:
    """Read a unified diff of one or several files. If the call names no file, the diff's headers
    do. A hunk's header says how many lines it has."""
    at, rows, lines = path, list[DiffRow](), list[str]()
    start, left = (0, 0), [0, 0]
    for line in diff.split("\n"):
        if any(left) or line.startswith("\\"):
            left = [left[0] - (line[:1] != "+"), left[1] - (line[:1] != "-")]
            lines.append(line)
            if not any(number > 0 for number in left):
                _append(rows, _signed(lines, *start))
                left, lines = [0, 0], []
        elif hunk := _HUNK.match(line):
            start, left = (int(hunk[1]), int(hunk[3])), [int(hunk[2] or 1), int(hunk[4] or 1)]
        elif line.startswith("+++ "):
            if rows:
                yield FileDiff(at, rows=rows)
            at, rows = path or re.sub(r"^[ab]/", "", line[4:].split("\t")[0].strip()), []
    _append(rows, _signed(lines, *start))
    if rows:
        yield FileDiff(at, rows=rows)


def _patched(file: AskedChange) -> FileDiff:
    """Return one file of a patch: without numbers, `@@` between places."""
    what = "moved" if file.moved_to else _WHAT[file.what]
    rows = _signed(file.lines)
    if file.moved_to:
        return FileDiff(file.moved_to, what, rows, file.path)
    return FileDiff(file.path, what, rows)


def _told(file: AskedChange) -> FileDiff:
    """Return one file of a list of changes by path."""
    if file.what == "delete":
        return FileDiff(file.path, "deleted")
    if not file.diff:
        return _whole(file.path, file.content or "")
    rows = [row for change in _unified(file.diff, file.path) for row in change.rows]
    if file.moved_to:
        return FileDiff(file.moved_to, "moved", rows, file.path)
    return FileDiff(file.path, "edited", rows)


def _asked(path: str, given: dict[str, Any]) -> FileDiff:
    rows: list[DiffRow] = []
    for asked in asked_edits(given):
        if asked.whole is not None and not asked.old:
            return _whole(path, asked.whole)
        _append(rows, _difference(asked.old, asked.new))
    return FileDiff(path, rows=rows)


def _whole(path: str, content: str) -> FileDiff:
    lines = content.removesuffix("\n").split("\n") if content else []
    return FileDiff(
        path, "written", [DiffRow("+", line, None, number) for number, line in enumerate(lines, 1)]
    )


# -- lines ---------------------------------------------------------------------------------------


def _signed(lines: Iterable[str], old: int | None = None, new: int | None = None) -> list[DiffRow]:
    rows: list[DiffRow] = []
    for line in lines:
        sign = line[:1] or " "
        if sign == "\\":  # no newline at the end of the file
            continue
        if line.startswith("@@"):
            if rows:
                rows.append(DiffRow("…", line[2:].strip(" @")))
            continue
        if sign not in "+- ":
            sign, line = " ", f" {line}"
        rows.append(
            DiffRow(sign, line[1:], old if sign != "+" else None, new if sign != "-" else None)
        )
        old = old + 1 if old is not None and sign != "+" else old
        new = new + 1 if new is not None and sign != "-" else new
    while rows and rows[-1].sign == " " and not rows[-1].text and rows[-1].old is None:
        rows.pop()
    return rows


def _append(rows: list[DiffRow], more: list[DiffRow]) -> None:
    if rows and more:
        rows.append(DiffRow("…", ""))
    rows += more


def _difference(old: str, new: str) -> list[DiffRow]:
    """Compare the old and the new text of an edit; their place in the file is unknown."""
    before = old.removesuffix("\n").split("\n") if old else []
    after = new.removesuffix("\n").split("\n") if new else []
    if len(before) > _COMPARED or len(after) > _COMPARED:
        return [*(DiffRow("-", line) for line in before), *(DiffRow("+", line) for line in after)]
    rows: list[DiffRow] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=len(before) > 200)
    for group in matcher.get_grouped_opcodes(CONTEXT):
        part: list[DiffRow] = []
        for step, low, high, start, stop in group:
            if step == "equal":
                part += [DiffRow(" ", line) for line in before[low:high]]
            else:
                part += [DiffRow("-", line) for line in before[low:high]]
                part += [DiffRow("+", line) for line in after[start:stop]]
        _append(rows, part)
    return rows


def _number(value: object) -> int | None:
    return (
        value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**9
        else None
    )


# -- words ---------------------------------------------------------------------------------------


def mark_differences(rows: Sequence[DiffRow]) -> None:
    """Mark the words that differ between removed lines and the lines that replaced them."""
    at = 0
    while at < len(rows):
        gone = at
        while gone < len(rows) and rows[gone].sign == "-":
            gone += 1
        come = gone
        while come < len(rows) and rows[come].sign == "+":
            come += 1
        if at < gone < come:
            _pair(rows[at:gone][:_PAIRED], rows[gone:come][:_PAIRED])
        at = max(come, at + 1)


def _pair(gone: Sequence[DiffRow], come: Sequence[DiffRow]) -> None:
    """Pair each removed line with the most similar added line that is left, in order."""
    words = [_words(row.text) for row in come]
    least = 0
    for old in gone:
        own = _words(old.text)
        scores = [(_likeness(own, words[index]), -index) for index in range(least, len(come))]
        score, place = max(scores, default=(0.0, 0))
        if score > _ALIKE:
            _mark(old, come[-place])
            least = 1 - place


def _words(line: str) -> Counter[str]:
    return Counter(_WORD.findall(line.strip())) if len(line) <= _LINE else Counter()


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    """Return the share of letters that both lines have, in any order, without spaces."""
    total = sum(
        len(word) * number
        for words in (one, other)
        for word, number in words.items()
        if not word.isspace()
    )
    shared = sum(len(word) * number for word, number in (one & other).items() if not word.isspace())
    return 2 * shared / total if total else 0.0


def _mark(old: DiffRow, new: DiffRow) -> None:
    before, after = _WORD.findall(old.text), _WORD.findall(new.text)
    steps = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    differ = [step[1:] for step in steps if step[0] != "equal"]
    at, to = _places(before), _places(after)
    gone = [(at[low], at[high]) for low, high, _, _ in differ if low < high]
    come = [(to[start], to[stop]) for _, _, start, stop in differ if start < stop]
    if _share(gone, old.text) <= _MARKED and _share(come, new.text) <= _MARKED:
        old.marks = [(start, stop) for start, stop in gone if old.text[start:stop].strip()]
        # an indent is no word
        new.marks = [(start, stop) for start, stop in come if new.text[start:stop].strip()]


def _share(marks: Sequence[tuple[int, int]], text: str) -> float:
    return sum(end - start for start, end in marks) / max(1, len(text.strip()))


def _places(words: Sequence[str]) -> list[int]:
    found = [0]
    for word in words:
        found.append(found[-1] + len(word))
    return found
