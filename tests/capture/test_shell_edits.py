"""What shell commands change in files is seen by comparing the work tree before and after, without
a trace in the repository."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tests.cases import check_each
from whyfor.capture import shell_edits, spool
from whyfor.capture.shell_edits import ShellMoment, prune_snapshots, take
from whyfor.git import snapshots
from whyfor.hook.shell_words import may_write
from whyfor.model.shell_edits import ShellEdits, ShellFileDiff
from whyfor.model.signals import Signal
from whyfor.story.lines.replay import replay
from whyfor.story.lines.text_edits import EditPiece, TextEdit, recorded_texts


@pytest.fixture(autouse=True)
def machine_clock(request: pytest.FixtureRequest) -> None:
    """What is tested here compares the clock with the times of files."""
    if request.config.getoption("--clock"):
        pytest.skip("--clock does not set the clock that files get their times from")


class Shop:
    """A repository with one committed file, and Whyfor's home."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "whyfor"
        self.home.mkdir()
        self.top = folder / "shop"
        self.git("init", "-q", "-b", "main", str(self.top), cwd=folder)
        self.write("price.py", "one = 1\ntwo = 2\nthree = 3\n")
        self.git("add", ".")
        self.git("-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-qm", "A")

    def git(self, *words: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.top, check=True, capture_output=True, text=True
        )
        return done.stdout

    def write(self, name: str, text: str) -> None:
        (self.top / name).write_text(text, encoding="utf-8")

    def hook(self, phase: str, call: str = "c1", session: str = "s-1", command: str = "x") -> None:
        time.sleep(0.02)  # of a coarse clock, what was written before is before
        now = time.time_ns()
        take(self.home, ShellMoment(now, phase, "claude", session, call, command, self.top))

    def around(self, act: Callable[[], object]) -> ShellEdits:
        """What is told of a command that does this."""
        self.hook("prompt")
        self.hook("before")
        act()
        self.hook("after")
        return self.told()[-1]

    def told(self) -> list[ShellEdits]:
        found = []
        for signal in self.signals():
            assert (signal.session_agent, signal.event) == ("claude", "ShellEdits")
            found.append(msgspec.convert(signal.data["shell"], ShellEdits))
        return found

    def signals(self) -> list[Signal]:
        found = []
        for path in spool.files(self.home):
            for envelope in spool.envelopes(path.read_bytes(), 0):
                assert isinstance(envelope, spool.Envelope)
                found.append(spool.signal(envelope, lambda chain, at: None))
        return found

    def state(self) -> list[str]:
        """All that git has in the repository, and its index."""
        listed = sorted(str(path) for path in (self.top / ".git").rglob("*") if path.is_file())
        return [*listed, (self.top / ".git" / "index").read_bytes().hex()]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_what_a_command_changed_is_told_and_the_repository_is_as_it_was(shop: Shop) -> None:
    shop.write("notes.txt", "mine\n")
    shop.write("price.py", "one = 1\ntwo = 2\nthree = 3\nmine = 4\n")
    before = shop.state()

    def command() -> None:
        subprocess.run(["sed", "-i", "s/two = 2/two = 22/", "price.py"], cwd=shop.top, check=True)
        shop.write("made.py", "a = 1\nb = 2\n")
        (shop.top / "notes.txt").unlink()

    told = shop.around(command)
    files = {file.path: file for file in told.files}
    assert sorted(files) == ["made.py", "notes.txt", "price.py"]
    assert files["made.py"].whole == "a = 1\nb = 2"
    assert files["notes.txt"].gone
    assert "-two = 2\n+two = 22\n" in files["price.py"].diff
    assert "+mine = 4" not in files["price.py"].diff, "a person wrote it before"
    assert shop.state() == before
    base = ["one = 1", "two = 2", "three = 3"]
    edits = [edit for edit in recorded_texts(told) if edit.path.endswith("price.py")]
    final = ["one = 1", "two = 22", "three = 3", "mine = 4"]
    owners = [(line.owner, line.evidence) for line in replay(base, edits, final).lines]
    assert owners[1] == (0, "shell")
    assert {owners[0][0], owners[2][0]} == {-1}
    assert owners[3][0] < 0


def test_a_command_that_wrote_before_the_snapshot_was_taken_is_told_all_the_same(
    shop: Shop,
) -> None:
    """Nobody waits for the snapshot: a quick command is done before it."""
    time.sleep(0.02)
    began = time.time_ns()
    time.sleep(0.01)
    shop.write("price.py", "one = 1\ntwo = 2\nthree = 33\n")
    take(shop.home, ShellMoment(began, "before", "claude", "s-1", "c1", "x", shop.top))
    shop.hook("after")
    [file] = shop.told()[-1].files
    assert file.whole == "one = 1\ntwo = 2\nthree = 33\n"
    assert "-three = 3\n+three = 33" in file.diff, "git's index has the version before"


def test_the_process_before_a_command_may_be_the_later_one(shop: Shop) -> None:
    shop.hook("prompt")
    began = time.time_ns()
    time.sleep(0.02)
    shop.write("price.py", "one = 1\ntwo = 2\nthree = 33\n")
    before = ShellMoment(began, "before", "claude", "s-1", "c1", "x", shop.top)
    late = threading.Timer(0.2, take, [shop.home, before])
    late.start()
    shop.hook("after")
    late.join()
    assert [file.path for file in shop.told()[-1].files] == ["price.py"]


def test_what_cannot_be_seen_is_said(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def large() -> None:
        shop.write("data.txt", "x" * (snapshots.BYTES_MAX + 1))

    def filtered() -> None:
        shop.write(".gitattributes", "*.big filter=big\n")
        shop.write("a.big", "text\n")

    def private() -> None:
        shop.write("secret.txt", "a <private>word</private>\n")

    cases = [(large, "data.txt", "larger"), (filtered, "a.big", "filter")]
    cases += [(private, "secret.txt", "private")]
    for act, name, reason in cases:
        assert reason in shop.around(act).left_out[name]
    shop.hook("before", "c2")
    shop.hook("before", "c3", session="s-2")
    shop.write("price.py", "two sessions\n")
    shop.hook("after", "c2")
    assert "another session" in shop.told()[-1].skipped
    monkeypatch.setattr(snapshots, "FILES_MAX", 1)
    told = shop.around(lambda: None)
    assert "files, and only 1 are looked at" in told.skipped
    assert told.files == []


def test_nothing_that_the_repository_names_is_run(shop: Shop, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    for name in ("filter.evil.clean", "filter.evil.process", "core.fsmonitor", "diff.external"):
        shop.git("config", name, str(program))
    hooks = shop.top / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    (hooks / "post-index-change").write_bytes(program.read_bytes())
    (hooks / "post-index-change").chmod(0o755)
    shop.write(".gitattributes", "* filter=evil diff=evil\n")
    shop.around(lambda: shop.write("price.py", "other\n"))
    assert not ran.exists()


def test_snapshots_are_deleted_after_a_day_or_all_at_once(shop: Shop) -> None:
    shop.around(lambda: shop.write("price.py", "other\n"))
    [folder] = [path for path in (shop.home / shell_edits.FOLDER).iterdir() if path.is_dir()]
    assert folder.stat().st_mode & 0o077 == 0
    now = time.time()
    os.utime(folder / "state", (now, now))
    prune_snapshots(shop.home)
    assert folder.exists()
    old = time.time() - shell_edits.KEPT - 10
    os.utime(folder / "state", (old, old))
    prune_snapshots(shop.home)
    assert not folder.exists()
    shop.around(lambda: shop.write("price.py", "again\n"))
    prune_snapshots(shop.home, everything=True)
    assert not (shop.home / shell_edits.FOLDER).exists()


def test_a_formatter_leaves_the_lines_of_earlier_turns_theirs(shop: Shop) -> None:
    told = ShellEdits(session_id="s-1", call="c1", command="fmt", top="/shop", began=0, ended=1)
    told.files = [
        ShellFileDiff(
            "a.py", diff="@@ -1,3 +1,4 @@\n-a=call(1,\n-  2)\n+a = call(1, 2)\n b = 2\n+c = 3\n"
        )
    ]
    first = TextEdit("/shop/a.py", (EditPiece((), ("a=call(1,", "  2)"), 1),))
    found = replay(["b = 2"], [first, *recorded_texts(told)], ["a = call(1, 2)", "b = 2", "c = 3"])
    assert [line.owner for line in found.lines] == [0, -1, 1]


def test_the_hook_knows_commands_that_write_nothing() -> None:
    reading = ["ls -la", "git status && git diff | head", "cat a.py 2>/dev/null", "A=1 grep -r x ."]
    reading += ["git log --oneline\ngit show HEAD", "rg foo > /dev/null 2>&1", ""]
    writing = ["sed -i s/a/b/ x", "python gen.py", "echo a > b", "git checkout -- a", "make"]
    writing += [
        "cat a | tee b",
        "ls; npm run build",
        "cat $(rm x)",
        "git stash pop",
        "ls & touch a",
    ]
    cases = {**dict.fromkeys(reading, False), **dict.fromkeys(writing, True)}

    def check(command: str) -> None:
        raw = json.dumps(command)[1:-1].encode()
        assert may_write(raw) == cases[command]

    check_each([(repr(command), command) for command in cases], check)
