"""Edits of all agents as diffs: what each of them writes down of one, and what can be told from
it."""

from __future__ import annotations

from typing import Any

import pytest

from whyfor.model.conversation import DiffRow, FileDiff
from whyfor.model.events import StoredEvent
from whyfor.server.pages.diffs import painted
from whyfor.story.conversation.diffs import file_diffs, mark_differences


def _event(kind: str, name: str | None, data: dict[str, Any], text: str = "") -> StoredEvent:
    return StoredEvent(1, 1, kind, "transcript", "high", None, 0, "assistant", text, name, data)


def told(name: str, given: Any, outcome: dict[str, Any] | None = None) -> list[FileDiff]:
    text = given if isinstance(given, str) else ""
    return file_diffs(
        _event("tool.call", name, {"input": given}, text),
        _event("tool.result", None, outcome or {}),
    )


def plain(change: FileDiff) -> list[tuple[str, int | None, int | None, str]]:
    return [(row.sign, row.old, row.new, row.text) for row in change.rows]


SAME_EDIT = [
    (" ", 4, 4, "def f():"),
    ("-", 5, None, "    return 1"),
    ("+", None, 5, "    return 2"),
]
UNIFIED = (
    "--- a/f.py\n+++ b/f.py\n@@ -4,2 +4,2 @@\n def f():\n-    return 1\n+    return 2\n\\ No "
    "newline at end of file\n"
)
HUNK = {"oldStart": 4, "newStart": 4, "lines": [" def f():", "-    return 1", "+    return 2"]}


@pytest.mark.parametrize(
    ("name", "given", "outcome"),
    [
        ("Edit", {"file_path": "f.py", "old_string": "1", "new_string": "2"}, {"patch": [HUNK]}),
        ("replace", {"file_path": "f.py", "old_string": "1", "new_string": "2"}, {"diff": UNIFIED}),
        ("edit", {"filePath": "f.py", "oldString": "1", "newString": "2"}, {"diff": UNIFIED}),
        ("apply_patch", {"changes": {"f.py": {"type": "update", "unified_diff": UNIFIED}}}, {}),
        ("apply_patch", {"changes": {"f.py": {"update": {"unified_diff": UNIFIED}}}}, {}),
    ],
    ids=["claude", "gemini", "opencode", "codex", "codex, older"],
)
def test_a_kept_patch_has_its_numbers(name: str, given: Any, outcome: dict[str, Any]) -> None:
    (change,) = told(name, given, outcome)
    assert (change.path, change.added, change.removed) == ("f.py", 1, 1)
    assert plain(change) == SAME_EDIT


def test_a_patch_without_numbers_has_none() -> None:
    text = (
        "*** Begin Patch\n*** Update File: f.py\n@@ class A:\n-one\n+two\n@@\n-three\n"
        "*** Add File: new.py\n+x = 1\n*** Delete File: old.py\n*** Update File: a.py\n"
        "*** Move to: b.py\n+y\n*** End Patch"
    )
    found = told("apply_patch", text)
    assert [(c.path, c.what, c.old_path) for c in found] == [
        ("f.py", "edited", None),
        ("new.py", "written", None),
        ("old.py", "deleted", None),
        ("b.py", "moved", "a.py"),
    ]
    assert plain(found[0]) == [
        ("-", None, None, "one"),
        ("+", None, None, "two"),
        ("…", None, None, ""),
        ("-", None, None, "three"),
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"path": "f.py", "command": "str_replace", "old_str": "a\nb\nc", "new_str": "a\nB\nc"},
        {"file_path": "f.py", "edits": [{"old_string": "a\nb\nc", "new_string": "a\nB\nc"}]},
    ],
    ids=["copilot", "several"],
)
def test_what_was_asked_for_is_compared(given: dict[str, Any]) -> None:
    (change,) = told("edit", given)
    assert [(row.sign, row.text) for row in change.rows] == [
        (" ", "a"),
        ("-", "b"),
        ("+", "B"),
        (" ", "c"),
    ]
    assert {row.old for row in change.rows} | {row.new for row in change.rows} == {None}


def test_a_new_file_is_numbered_from_one() -> None:
    (change,) = told("Write", {"file_path": "f.py", "content": "a\nb\n"})
    assert (change.what, plain(change)) == ("written", [("+", None, 1, "a"), ("+", None, 2, "b")])


def test_an_edit_that_failed_changed_nothing() -> None:
    assert (
        told("Edit", {"file_path": "f.py", "old_string": "1", "new_string": "2"}, {"failed": True})
        == []
    )


def test_a_line_that_looks_like_a_header_is_a_line() -> None:
    diff = "--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- a comment\n+++ another\n x\n"
    (change,) = told(
        "replace", {"file_path": "q.sql", "old_string": "1", "new_string": "2"}, {"diff": diff}
    )
    assert plain(change) == [
        ("-", 1, None, "-- a comment"),
        ("+", None, 1, "++ another"),
        (" ", 2, 2, "x"),
    ]


@pytest.mark.parametrize(
    "odd", [None, [], "x", {"patch": [1, {"lines": [2, None]}]}, {"diff": "@@ -9999999999 +1 @@"}]
)
def test_odd_shapes_are_no_diff_and_no_error(odd: Any) -> None:
    outcome = odd if isinstance(odd, dict) else {"patch": odd}
    for given in (
        {"file_path": "f.py", "old_string": "1", "new_string": "2"},
        {"file_path": 3, "content": 4},
        odd,
    ):
        assert all(isinstance(change, FileDiff) for change in told("Edit", given, outcome))


def test_words_that_differ_are_marked_and_nothing_in_them_is_markup() -> None:
    rows = [DiffRow("-", "price = <b>(1) & tax"), DiffRow("+", "price = <b>(22) & tax")]
    mark_differences(rows)
    assert [[row.text[a:b] for a, b in row.marks] for row in rows] == [["1"], ["22"]]
    for path in ("f.py", "", "f.unknown"):
        old, new = painted(rows, path)
        assert '<em class="w">22</em>' in new.replace('<span class="s">', "").replace("</span>", "")
        assert "&lt;b" in old and "<b>" not in old
    moved = [
        DiffRow("-", "    return ends_after_three(server)"),
        DiffRow("+", "        return ends_after_four(server)"),
    ]
    mark_differences(moved)
    assert [[row.text[a:b] for a, b in row.marks] for row in moved] == [["three"], ["four"]], (
        "an indent is no word"
    )


def test_what_cannot_be_seen_is_shown() -> None:
    assert "⟨U+202E⟩" in painted([DiffRow("+", "a\u202eb")], "")[0]
    assert "␛" in painted([DiffRow("+", "a\x1b[31mb")], "f.py")[0]
