"""The texts of edits in the shapes of the five agents, in the order in which linking lists them."""

from __future__ import annotations

from typing import Any

import pytest

from whyfor.story.lines.replay import replay
from whyfor.story.lines.text_edits import shell_texts, text_lines, tool_texts
from whyfor.story.links.edits import by_shell, by_tool

BASE = "one = 1\ntwo = 2\nthree = 3\n"
AFTER = "one = 1\ntwo = 'second'\nthree = 3\n"
PATCH = """*** Begin Patch
*** Update File: a.py
@@ one
 one = 1
-two = 2
+two = 'second'
*** Add File: b.py
+fresh = 1
*** Update File: c.py
*** Move to: d.py
@@
-old = 1
+new = 1
*** Delete File: e.py
*** End Patch"""
DIFF = """Index: a.py
===================================================================
--- a.py\tCurrent
+++ a.py\tProposed
@@ -1,3 +1,3 @@
 one = 1
-two = 2
+two = 'second'
 three = 3
"""
HUNK = {
    "oldStart": 1,
    "oldLines": 3,
    "newStart": 1,
    "newLines": 3,
    "lines": [" one = 1", "-two = 2", "+two = 'second'", " three = 3"],
}
SHAPES: dict[str, tuple[Any, dict[str, Any]]] = {
    "claude, with the patch": (
        {"file_path": "a.py", "old_string": "two = 2", "new_string": "two = 'second'"},
        {"patch": [HUNK]},
    ),
    "claude, without it": (
        {"file_path": "a.py", "old_string": "two = 2", "new_string": "two = 'second'"},
        {},
    ),
    "claude, several edits": (
        {
            "file_path": "a.py",
            "edits": [
                {"old_string": "two = 2", "new_string": "two = 22"},
                {"old_string": "22", "new_string": "'second'", "replace_all": True},
            ],
        },
        {},
    ),
    "claude, the whole file": ({"file_path": "a.py", "content": AFTER}, {}),
    "codex, a patch": (PATCH, {}),
    "codex, changes": (
        {"changes": {"a.py": {"type": "update", "unified_diff": DIFF[DIFF.index("@@") :]}}},
        {},
    ),
    "codex, changes of older versions": (
        {"changes": {"a.py": {"update": {"unified_diff": DIFF[DIFF.index("@@") :]}}}},
        {},
    ),
    "gemini": (
        {"file_path": "a.py", "old_string": "two = 2", "new_string": "two = 'second'"},
        {"diff": DIFF, "path": "a.py"},
    ),
    "copilot, a replacement": (
        {"path": "a.py", "old_str": "two = 2\n", "new_str": "two = 'second'\n"},
        {},
    ),
    "opencode": (
        {"filePath": "a.py", "oldString": "two = 2", "newString": "two = 'second'"},
        {"diff": DIFF},
    ),
}


@pytest.mark.parametrize("given, outcome", SHAPES.values(), ids=SHAPES)
def test_every_agents_edit_is_replayed_exactly(given: Any, outcome: dict[str, Any]) -> None:
    told = [edit for edit in tool_texts(given, outcome) if edit.path == "a.py"]
    for end in ("\n", "\r\n"):
        base = text_lines(BASE.replace("\n", end))
        found = replay(base, told, text_lines(AFTER.replace("\n", end)))
        assert found.unplaced == []
        owned = [(line.owner >= 0, line.evidence) for line in found.lines]
        assert owned == [(False, "exact"), (True, "exact"), (False, "exact")]


@pytest.mark.parametrize("given, outcome", SHAPES.values(), ids=SHAPES)
def test_the_files_come_in_the_order_of_linking(given: Any, outcome: dict[str, Any]) -> None:
    linked = [edit.path for edit in by_tool(given, outcome, "", {})]
    assert [edit.path for edit in tool_texts(given, outcome)] == linked


def test_a_patch_tells_of_added_moved_and_deleted_files() -> None:
    told = tool_texts(PATCH, {})
    assert [(edit.path, edit.kind, edit.old) for edit in told] == [
        ("a.py", "edit", None),
        ("b.py", "edit", None),
        ("d.py", "moved", "c.py"),
        ("d.py", "edit", None),
        ("e.py", "gone", None),
    ]
    assert told[1].whole == ("fresh = 1",)


def test_text_that_is_put_in_after_a_line() -> None:
    given = {"command": "insert", "path": "a.py", "insert_line": 1, "new_str": "half = 1.5\n"}
    final = ["one = 1", "half = 1.5", "two = 2", "three = 3"]
    found = replay(text_lines(BASE), tool_texts(given, {}), final)
    assert [line.owner for line in found.lines] == [-1, 0, -1, -1]


def test_a_cell_of_a_notebook_is_compared_as_it_stands_in_the_file() -> None:
    given = {"notebook_path": "a.ipynb", "new_source": 'print("hi")\nx = 1'}
    (told,) = tool_texts(given, {})
    assert told.loose == (
        '"print(\\"hi\\")\\n",',
        '"x = 1\\n",',
        '"x = 1"',
    )  # the last line of a cell has no end


@pytest.mark.parametrize(
    "command, kinds",
    [
        ("cat > a.py <<'EOF'\none\ntwo\nEOF", ["edit"]),
        ("echo one >> a.py && rm b.py && mv c.py d.py", ["edit", "gone", "moved", "moved"]),
        ("sed -i s/a/b/ a.py", ["touched"]),
        ("ls -l", []),
    ],
)
def test_shell_commands_tell_what_they_wrote(command: str, kinds: list[str]) -> None:
    told = shell_texts(command, failed=False)
    assert [edit.kind for edit in told] == kinds
    assert all(edit.shell for edit in told)
    linked = [edit.path for edit in by_shell(command, "", {}, failed=False)]
    assert [edit.path for edit in told] == linked


def test_a_here_document_is_the_whole_file_and_an_echo_comes_at_its_end() -> None:
    (whole,) = shell_texts("cat > a.py <<'EOF'\none\ntwo\nEOF", failed=False)
    assert whole.whole == ("one", "two")
    (added,) = shell_texts("echo three >> a.py", failed=False)
    assert added.added == ("three",)


def test_lines_are_split_at_both_ends_of_line_and_the_last_may_have_none() -> None:
    assert text_lines("a\r\nb\nc") == ["a", "b", "c"]
    assert text_lines("") == []
    assert text_lines("\n") == [""]
