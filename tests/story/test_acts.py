"""What sessions of each agent did, in the shapes their records have."""

from __future__ import annotations

from itertools import count
from typing import Any

import msgspec
import pytest

from whyfor.model.events import StoredEvent
from whyfor.story.links.activity import (
    CommitCommand,
    SessionActivity,
    WrittenEdit,
    acts,
    merge_activity,
)
from whyfor.story.links.line_keys import keys
from whyfor.story.shell import effects

START = 1_780_000_000_000


class Events:
    """A session's events, five seconds apart."""

    def __init__(self, cwd: str = "/code/shop") -> None:
        self.all: list[StoredEvent] = []
        self._seqs = count(1)
        self.add("session.started", "", data={"cwd": cwd})

    def add(
        self, kind: str, text: str, name: str | None = None, data: dict[str, Any] | None = None
    ) -> StoredEvent:
        seq = next(self._seqs)
        at = START + seq * 5000
        event = StoredEvent(
            seq, 1, kind, "transcript", "high", at, at, "assistant", text, name, data
        )
        self.all.append(event)
        return event

    def call(self, name: str, given: Any, said: str = "ok", **outcome: Any) -> StoredEvent:
        ident = f"call_{len(self.all)}"
        text = (
            given
            if isinstance(given, str)
            else "\n".join(v for v in given.values() if isinstance(v, str))
        )
        self.add("tool.call", text, name, {"id": ident, "input": given})
        return self.add("tool.result", said, None, {"id": ident, **outcome})

    @property
    def acts(self) -> SessionActivity:
        return acts(self.all)


def _told(found: SessionActivity) -> list[tuple[str, bytes, bytes]]:
    return [(act.path, act.added, act.removed) for act in found.written]


# -- edits ---------------------------------------------------------------------------------------


def test_the_patch_the_program_kept_is_exact() -> None:
    events = Events()
    hunk = {
        "oldStart": 1,
        "lines": [" kept", "-old = 1", "+new = 1", "+more = 2", "\\ No newline at end of file"],
    }
    done = events.call(
        "Edit", {"file_path": "/code/shop/a.py", "old_string": "1", "new_string": "x"}, patch=[hunk]
    )
    (act,) = events.acts.written
    assert (act.path, act.added, act.removed) == (
        "/code/shop/a.py",
        keys(["new = 1", "more = 2"]),
        keys(["old = 1"]),
    )
    assert (act.at, act.seq, act.call, act.kind) == (done.created_at, done.seq, "call_1", "edit")


def test_without_a_patch_the_call_tells_what_changed() -> None:
    events = Events()
    events.call(
        "Edit",
        {
            "file_path": "/code/shop/a.py",
            "old_string": "same\nold",
            "new_string": "same\nnew\nmore",
        },
    )
    pieces = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]
    events.call("MultiEdit", {"file_path": "/code/shop/b.py", "edits": pieces})
    assert _told(events.acts) == [
        ("/code/shop/a.py", keys(["new", "more"]), keys(["old"])),
        ("/code/shop/b.py", keys(["b"]), keys(["a"])),
        ("/code/shop/b.py", keys(["d"]), keys(["c"])),
    ]


def test_a_whole_file_is_new_only_against_what_the_session_wrote_there_before() -> None:
    events = Events()
    events.call("Write", {"file_path": "/code/shop/a.py", "content": "one\ntwo\n"})
    events.call("Write", {"file_path": "/code/shop/a.py", "content": "one\nthree\n"})
    first, second = events.acts.written
    assert (first.kind, first.added) == ("whole", keys(["one", "two"]))
    assert (second.kind, second.added, second.removed) == ("edit", keys(["three"]), keys(["two"]))


def test_cells_of_a_notebook_are_lines_of_its_file() -> None:
    events = Events()
    events.call(
        "NotebookEdit",
        {"notebook_path": "/code/shop/n.ipynb", "new_source": 'import os\nprint("hi")'},
    )
    (act,) = events.acts.written
    in_file = ['    "import os\\n",', '    "print(\\"hi\\")"']
    assert all(keys([line]) in act.added for line in in_file)


PATCH = """*** Begin Patch
*** Update File: src/a.py
@@ def f():
-    return 1
+    return 2
*** Add File: src/b.py
+first
+second
*** Update File: src/old.py
*** Move to: src/new.py
@@
+moved
*** Delete File: src/gone.py
*** End Patch"""


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("apply_patch", PATCH),
        ("apply_patch", {"input": PATCH}),
        ("shell", {"command": ["apply_patch", PATCH], "workdir": "/code/shop"}),
        ("shell_command", {"command": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
        ("exec_command", {"cmd": f"cd /code/shop && apply_patch <<'EOF'\n{PATCH}\nEOF"}),
    ],
)
def test_codex_patches_change_several_files_at_once(name: str, given: Any) -> None:
    events = Events()
    events.call(name, given)
    found = [(act.path, act.kind, act.added, act.removed, act.old) for act in events.acts.written]
    root = "/code/shop/src"
    assert found == [
        (f"{root}/a.py", "edit", keys(["return 2"]), keys(["return 1"]), None),
        (f"{root}/b.py", "edit", keys(["first", "second"]), b"", None),
        (f"{root}/new.py", "moved", b"", b"", f"{root}/old.py"),
        (f"{root}/new.py", "edit", keys(["moved"]), b"", None),
        (f"{root}/gone.py", "gone", b"", b"", None),
    ]


@pytest.mark.parametrize("nested", [False, True])
def test_codex_accounts_of_file_changes_are_read_in_both_dialects(nested: bool) -> None:
    def told(kind: str, **fields: Any) -> dict[str, Any]:
        return {kind: fields} if nested else {"type": kind, **fields}

    events = Events()
    changes = {
        "/code/shop/a.py": told("update", unified_diff="@@ -1 +1 @@\n-old\n+new\n", move_path=None),
        "/code/shop/b.py": told("add", content="one\ntwo\n"),
        "/code/shop/c.py": told("delete", content="was\n"),
        "/code/shop/d.py": told(
            "update", unified_diff="@@ -1 +1 @@\n+x\n", move_path="/code/shop/e.py"
        ),
    }
    events.call("apply_patch", {"changes": changes})
    found = [(act.path[-4:], act.kind, act.added, act.removed) for act in events.acts.written]
    assert found == [
        ("a.py", "edit", keys(["new"]), keys(["old"])),
        ("b.py", "edit", keys(["one", "two"]), b""),
        ("c.py", "gone", b"", b""),
        ("e.py", "moved", b"", b""),
        ("e.py", "edit", keys(["x"]), b""),
    ]


def test_gemini_and_opencode_diffs_are_exact() -> None:
    events = Events()
    diff = (
        "Index: a.py\n=====\n--- a.py\tCurrent\n+++ a.py\tProposed\n@@ -1,2 +1,2 @@\n "
        "kept\n-old\n+new\n"
    )
    events.call(
        "replace",
        {"file_path": "a.py", "old_string": "o", "new_string": "n"},
        diff=diff,
        path="/code/shop/a.py",
    )
    several = (
        "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-1\n+2\n--- a/y.py\n+++ b/y.py\n@@ -0,0 +1 @@\n+3\n"
    )
    events.call("patch", {"changes_are": "elsewhere", "path": "", "content": ""}, diff=several)
    assert _told(events.acts) == [
        ("/code/shop/a.py", keys(["new"]), keys(["old"])),
        ("/code/shop/x.py", keys(["2"]), keys(["1"])),
        ("/code/shop/y.py", keys(["3"]), b""),
    ]


def test_copilots_words_for_an_edit_are_known() -> None:
    events = Events()
    events.call("create", {"path": "/code/shop/a.py", "file_text": "one\ntwo"})
    events.call("edit", {"path": "/code/shop/a.py", "old_str": "one", "new_str": "1"})
    assert _told(events.acts) == [
        ("/code/shop/a.py", keys(["one", "two"]), b""),
        ("/code/shop/a.py", keys(["1"]), keys(["one"])),
    ]


def test_a_call_that_failed_or_was_refused_or_never_ended_wrote_nothing() -> None:
    events = Events()
    given = {"file_path": "/code/shop/a.py", "content": "x"}
    events.call("Write", given, failed=True)
    events.call("Write", given, failed=True, rejected=True)
    events.call(
        "Bash",
        {"command": "echo x > a.py"},
        "The user doesn't want to proceed with this tool use.",
        failed=True,
    )
    events.add("tool.call", "", "Write", {"id": "open", "input": given})
    assert events.acts.written == []


def test_reading_is_not_writing() -> None:
    events = Events()
    events.call("Read", {"file_path": "/code/shop/a.py"}, "     1\tx")
    events.call("Grep", {"path": "/code/shop", "pattern": "x"})
    events.call("Bash", {"command": "cat a.py; grep x a.py 2>/dev/null | head"})
    assert (events.acts.written, events.acts.made) == ([], [])


def test_windows_paths_and_relative_ones_are_told_from_the_root() -> None:
    events = Events("C:\\code\\shop")
    events.call("Write", {"file_path": "C:\\code\\shop\\src\\a.py", "content": "x"})
    events.call("write_file", {"file_path": "src/b.py", "content": "x"})
    assert [act.path for act in events.acts.written] == [
        "C:/code/shop/src/a.py",
        "C:/code/shop/src/b.py",
    ]


# -- through the shell ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat > a.py <<'EOF'\none\ntwo\nEOF", [("wrote", "a.py", ["one", "two"])]),
        ("cat <<EOF > a.py\none\nEOF\npython a.py", [("wrote", "a.py", ["one"])]),
        (
            "cat <<-'END' | sudo tee -a etc/a.conf >/dev/null\n\tone\n\tEND",
            [("added", "etc/a.conf", ["one"])],
        ),
        (
            "cd web && cat > a.ts <<'EOF'\nx\nEOF\ncd .. && echo y >> b.txt",
            [("wrote", "web/a.ts", ["x"]), ("added", "b.txt", ["y"])],
        ),
        ("printf 'one\\ntwo\\n' > a.txt", [("wrote", "a.txt", ["one", "two", ""])]),
        ("rm -rf old && git rm -q b.py 2>/dev/null", [("gone", "old", []), ("gone", "b.py", [])]),
        ("git rm --cached a.py; rm *.pyc", []),
        ("sed -i 's/a/b/' a.py b.py", [("touched", "a.py", []), ("touched", "b.py", [])]),
        ("FOO=1 mv a.py b.py lib/", [("moved", "lib/a.py", []), ("moved", "lib/b.py", [])]),
        ("git commit -m \"$(cat <<'EOF'\nSubject\n\nrm -rf everything\nEOF\n)\"", []),
        ('git commit -m "one\nrm a.py\nmv b c"', []),
        ("# rm a.py, don't\nls", []),
        ("echo it's broken > a.py", []),
        ("grep -r x . > /dev/null 2>&1", []),
    ],
)
def test_what_a_command_does_to_files(
    command: str, expected: list[tuple[str, str, list[str]]]
) -> None:
    found = [(effect.kind, effect.path, effect.lines) for effect in effects(command, "/code/shop")]
    assert found == [(kind, f"/code/shop/{path}", lines) for kind, path, lines in expected]


def test_a_rename_may_go_into_a_folder() -> None:
    found = effects("git mv src/a.py lib", "/code/shop")
    assert [(effect.old, effect.path) for effect in found] == [
        ("/code/shop/src/a.py", "/code/shop/lib"),
        ("/code/shop/src/a.py", "/code/shop/lib/a.py"),
    ]


def test_a_script_that_names_a_file_may_have_put_its_text_there() -> None:
    script = (
        "from pathlib import Path\nPath('src/a.py').write_text('''first line\nsecond line\n''')"
    )
    (effect,) = effects(f"python3 - <<'PY'\n{script}\nPY", "/code/shop")
    assert effect.path == "/code/shop/src/a.py"
    assert {"first line", "second line"} <= set(effect.lines)


def test_what_a_failed_command_wrote_on_the_way_stands_but_not_what_it_removed() -> None:
    events = Events()
    events.call(
        "Bash",
        {"command": "cat > a.py <<'EOF'\nx = 1\nEOF\nrm b.py && pytest"},
        "1 failed",
        failed=True,
    )
    assert [(act.path, act.kind) for act in events.acts.written] == [("/code/shop/a.py", "whole")]


# -- commits -------------------------------------------------------------------------------------


def test_a_commit_command_keeps_what_it_printed_and_when_it_ran() -> None:
    events = Events()
    said = "[main (root-commit) 0123abc] Add cart\n 1 file changed\n[feature/x 4567def] Add till\n"
    done = events.call("Bash", {"command": "git add -A && git commit -m 'Add cart'"}, said)
    (made,) = events.acts.made
    assert made.printed == (("0123abc", "Add cart"), ("4567def", "Add till"))
    assert (made.called_at, made.done_at) == ((done.created_at or 0) - 5000, done.created_at)
    assert (made.commits, made.rewrites, made.failed, made.seq, made.call) == (
        True,
        False,
        False,
        done.seq,
        "call_1",
    )


@pytest.mark.parametrize(
    ("command", "commits", "rewrites"),
    [
        ("git commit -q -F msg", True, False),
        ("git -C /code/shop -c user.name='A B' --no-pager commit --amend --no-edit", True, False),
        ("rtk git commit -m x", True, False),
        ("git rebase --continue", False, True),
        ("git cherry-pick 0123abc", False, True),
        ("git pull --rebase origin main", False, True),
        ("git merge --no-ff side", False, False),
    ],
)
def test_commands_that_make_or_replay_commits_are_told_apart(
    command: str, commits: bool, rewrites: bool
) -> None:
    events = Events()
    events.call("Bash", {"command": command}, "")
    (made,) = events.acts.made
    assert (made.commits, made.rewrites) == (commits, rewrites)


def test_commands_that_only_speak_of_commits_are_not_kept() -> None:
    events = Events()
    for command in ("git log --grep commit", "git show HEAD", "echo commit", "git status"):
        events.call("Bash", {"command": command}, "0123abc Some subject")
    assert events.acts.made == []


def test_the_programs_own_note_of_a_commit_is_read() -> None:
    events = Events()
    events.call(
        "Bash",
        {"command": "git commit -qm x"},
        "",
        git={"commit": {"sha": "0123abc", "kind": "committed"}},
    )
    assert events.acts.made[0].printed == (("0123abc", ""),)


def test_a_commit_a_person_typed_into_the_session_is_kept() -> None:
    events = Events()
    events.add("tool.call", "git commit -am 'By hand'", "Bash", {})
    events.add("tool.result", "[main 0123abc] By hand", "Bash", {})
    assert [made.printed for made in events.acts.made] == [(("0123abc", "By hand"),)]


def test_a_commit_printed_in_the_background_is_kept() -> None:
    events = Events()
    events.call("exec_command", {"cmd": "git commit -m x"}, "Process running with session ID 1")
    events.add("tool.result", "[main 0123abc] x", None, {"id": "call_1", "late": True})
    assert [made.printed for made in events.acts.made] == [(), (("0123abc", "x"),)]


def test_a_very_long_command_keeps_its_message() -> None:
    events = Events()
    events.call("Bash", {"command": "x" * 20_000 + "\ngit commit -m 'The subject'"}, "")
    assert events.acts.made[0].command == "git commit -m 'The subject'"


# -- in pieces, and together ---------------------------------------------------------------------


def test_reading_in_pieces_gives_the_same_as_reading_at_once() -> None:
    events = Events()
    events.call("Write", {"file_path": "/code/shop/a.py", "content": "one\ntwo"})
    events.call("Bash", {"command": "cat > a.py <<'EOF'\none\nEOF\ngit commit -qm x"})
    events.add("status.changed", "", None, {"cwd": "/code/shop/web"})
    events.call("apply_patch", PATCH)
    events.call("Write", {"file_path": "/code/shop/a.py", "content": "three"})
    whole = msgspec.msgpack.encode(events.acts)
    for cut in range(len(events.all)):
        kept = msgspec.msgpack.encode(acts(events.all[:cut]))
        again = acts(events.all[cut:], msgspec.msgpack.decode(kept, type=SessionActivity))
        assert msgspec.msgpack.encode(again) == whole


def test_calls_that_are_never_answered_do_not_pile_up() -> None:
    events = Events()
    for n in range(500):
        events.add("tool.call", "ls", "Bash", {"id": f"c{n}", "input": {"command": "ls"}})
    assert len(events.acts.open) == 200


def test_what_was_done_since_an_event() -> None:
    events = Events()
    first = events.call("Bash", {"command": "git commit -m x"})
    second = events.call("Write", {"file_path": "/code/shop/a.py", "content": "x"})
    assert [act.seq for act in events.acts.since(first.seq)] == [second.seq]
    assert [act.seq for act in events.acts.since(0)] == [second.seq, first.seq]


def test_a_subagents_acts_stand_where_its_main_session_was() -> None:
    main = SessionActivity([WrittenEdit(10, 3, "m", "/a")], [], 5, 50)
    sub = SessionActivity(
        [WrittenEdit(20, 900, "s", "/b")], [CommitCommand(30, 31, 901, "t", "git commit")], 1, 40
    )
    found = merge_activity([main, sub.placed(lambda at: at // 5)])
    assert [(act.path, act.seq) for act in found.written] == [("/a", 3), ("/b", 4)]
    assert [act.seq for act in found.made] == [6]
    assert (found.first_at, found.last_at) == (1, 50)
    assert merge_activity([]) == SessionActivity()
