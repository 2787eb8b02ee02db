"""Whatever fails while one file is read is that file's failure: the others are read, and nothing
of it is left over."""

from __future__ import annotations

import errno
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import apsw
import pytest

from tests.agents.readers.test_opencode import Writer
from tests.capture.snapshot import assert_equal, derived
from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor import config
from whyfor.agents.claude.read import TranscriptReader
from whyfor.capture.discover import FoundFile
from whyfor.capture.ingest import Ingest
from whyfor.config import Settings
from whyfor.live.ingester import IncrementalIngest
from whyfor.model.errors import StoreError
from whyfor.service.doctor import examine
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.store.open import reading_local
from whyfor.store.sqlite.commit import save_mark
from whyfor.store.sqlite.connection import translate

Cli = Callable[..., Result]
CODEX = "019d0000-0000-7000-8000-000000000001"
ROOMS = ("whyfor/capture/", "whyfor/agents/", "whyfor/store/")
# What deals with a failure is not what fails.
DEALS = ("unreadable.py", "lock.py")
FAILURES: tuple[Callable[[], Exception], ...] = (
    lambda: ValueError("odd"),
    lambda: MemoryError(),
    lambda: RecursionError("too deep"),
    lambda: AssertionError(),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    lambda: KeyError("missing"),
    lambda: apsw.ConstraintError("one row"),
    lambda: apsw.TooBigError("string or blob too big"),
)


def write_agents(home: Path) -> dict[str, Path]:
    """One session each of several shapes, with what hangs on them; by name."""
    files = {}
    for name in ("first", "middle", "last"):
        told = Transcript(name)
        told.prompt(f"question {'about an apple' * (name == 'middle')} <private>secret</private>")
        told.call("Bash", {"command": "make"}, "made")
        told.say("answer")
        files[name] = told.save(home)
    rollout = home / ".codex" / "sessions" / f"rollout-2026-05-01T10-00-00-{CODEX}.jsonl"
    rollout.parent.mkdir(parents=True)
    lines = [
        {"type": "session_meta", "payload": {"id": CODEX, "cwd": "/code/shop"}},
        {"type": "event_msg", "payload": {"type": "user_message", "message": "hello codex"}},
    ]
    stamp = {"timestamp": "2026-05-01T10:00:00Z"}
    rollout.write_text("".join(json.dumps({**stamp, **line}) + "\n" for line in lines))
    files["codex"] = rollout
    database = home / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    rows = Writer(database)
    for number in (1, 2, 3):
        rows.session(f"ses_{number}")
        rows.user(f"msg_{number}", f"ses_{number}")
        rows.part(f"prt_{number}", f"msg_{number}", "text", f"ses_{number}", text=f"row {number}")
    rows.db.close()
    files["opencode"] = database
    return files


def settings_in(tmp_path: Path, name: str) -> Settings:
    return config.load({**os.environ, "WHYFOR_HOME": str(tmp_path / name)})


def names(settings: Settings) -> list[str]:
    with reading_local(settings) as library:
        return sorted(
            str(name) for (name,) in library.db.execute("SELECT session_id FROM sessions")
        )


def same(got: Settings, wanted: Settings) -> None:
    """The same store, but for the order in which things were met."""
    snapshots = [derived(settings) for settings in (got, wanted)]
    for snapshot in snapshots:
        assert all(not row[13] for row in snapshot["sources"])
    assert_equal(*snapshots)


class Raiser:
    """Raises at the n-th call of a function of ours, in this thread."""

    def __init__(self, number: int, error: Callable[[], Exception]) -> None:
        self.left = number
        self.error = error
        self.raised = False
        self.place = ""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or self.raised:
            return
        name = frame.f_code.co_filename
        if not any(room in name for room in ROOMS) or name.endswith(DEALS):
            return
        # a generator that goes on, or is thrown away
        if frame.f_code.co_name.startswith("<") or frame.f_lasti > 5:
            return
        self.left -= 1
        if self.left < 0:
            self.raised = True
            self.place = f"{name}:{frame.f_code.co_name}"
            raise self.error()

    @contextmanager
    def armed(self) -> Iterator[None]:
        sys.setprofile(None if self.raised else self)
        try:
            yield
        finally:
            sys.setprofile(None)


def count_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, target: Path | None
) -> int:
    counter = Raiser(10**9, ValueError)
    with monkeypatch.context() as patch:
        guard(patch, method, target, lambda: counter)
        ingest(settings_in(tmp_path, f"count{method}{target and target.name}"))
    return 10**9 - counter.left


def guard(
    patch: pytest.MonkeyPatch, method: str, target: Path | None, raiser: Callable[[], Raiser]
) -> None:
    """Let the raiser work while this method runs, for one file or for all."""
    original = getattr(Ingest, method)

    def guarded(self: Ingest, *arguments: Any) -> Any:
        found = arguments[0] if arguments else None
        if target is not None and not (isinstance(found, FoundFile) and found.path == target):
            return original(self, *arguments)
        with raiser().armed():
            return original(self, *arguments)

    patch.setattr(Ingest, method, guarded)


def itself(raiser: Raiser) -> Raiser:
    return raiser


def points(total: int, number: int) -> list[int]:
    """The first few, then as many as are wanted, evenly spread."""
    step = max(1, total // number)
    return sorted({*range(min(5, total)), *range(0, total, step)})


# -- at every call -------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", ["middle", "codex", "opencode"])
def test_a_file_that_fails_at_any_call_is_counted_and_the_rest_is_read(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, victim: str
) -> None:
    """It fails whenever it is read, in this run; the next run reads it."""
    files = write_agents(home)
    target = files[victim]
    clean = settings_in(tmp_path, "clean")
    ingest(clean)
    everyone = names(clean)
    others = [name for name in everyone if name != target.stem and name not in target.name]
    if victim == "opencode":
        others = [name for name in others if not name.startswith("ses_")]
    total = count_calls(tmp_path, monkeypatch, "_visit", target)
    assert total > 50
    reports = 0
    for number, point in enumerate(points(total, 8)):
        failing = settings_in(tmp_path, f"{victim}{point}")
        with monkeypatch.context() as patch:
            error = FAILURES[number % len(FAILURES)]
            guard(patch, "_visit", target, partial(Raiser, point, error))
            report = ingest(failing)
        assert set(others) <= set(names(failing)), f"at call {point}"
        assert all(item.path.startswith(str(target)) for item in report.unreadable)
        reports += bool(report.unreadable)
        assert ingest(failing).unreadable == []
        same(failing, clean)
        assert not (failing.home / "unreadable.json").exists()
    assert reports > 3


@pytest.mark.parametrize("method", ["_visit", "_commit"])
def test_a_failure_that_passes_costs_nothing(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """It fails once, wherever that is, also while a batch is written down: nothing is lost and
    nothing doubled."""
    write_agents(home)
    clean = settings_in(tmp_path, "clean")
    ingest(clean)
    total = count_calls(tmp_path, monkeypatch, method, None)
    for number, point in enumerate(points(total, 14)):
        failing = settings_in(tmp_path, f"once{point}")
        raiser = Raiser(point, FAILURES[number % len(FAILURES)])
        with monkeypatch.context() as patch:
            guard(patch, method, None, partial(itself, raiser))
            ingest(failing)
        assert raiser.raised
        ingest(failing)
        same(failing, clean)


def test_a_commit_that_fails_behind_its_journal_takes_the_journal_back(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = write_agents(home)
    clean, failing = settings_in(tmp_path, "clean"), settings_in(tmp_path, "failing")
    later = {name: files.pop(name) for name in ("codex", "last")}
    for path in later.values():
        path.rename(path.with_suffix(".later"))
    ingest(failing)
    for path in later.values():
        path.with_suffix(".later").rename(path)
    ingest(clean)
    left = [MemoryError()]

    def fail_once(db: Any, mark: Any) -> None:
        if left:
            raise left.pop()
        save_mark(db, mark)

    monkeypatch.setattr("whyfor.store.sqlite.commit.save_mark", fail_once)
    assert ingest(failing).unreadable == []
    assert not left
    same(failing, clean)


def test_what_is_wrong_with_the_store_still_ends_the_run(
    settings: Settings, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_agents(home)
    fatal: list[BaseException] = [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EACCES, "Permission denied", str(settings.journal)),
        translate(apsw.FullError("full"), settings.database),
        translate(apsw.CorruptError("malformed"), settings.database),
        KeyboardInterrupt(),
    ]
    for error in fatal:

        def fail(*arguments: Any, error: BaseException = error) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr("whyfor.capture.parse.SegmentParser.absorb", fail)
            with pytest.raises((StoreError, KeyboardInterrupt)):
                ingest(settings)
    assert ingest(settings).unreadable == []


# -- what is told, and when it is tried again ----------------------------------------------------


def break_reader(monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    """Claude's reader raises on records with this word in them."""
    read = TranscriptReader.read

    def breaks(self: TranscriptReader, record: Any, offset: int, line: bytes, out: Any) -> None:
        if word.encode() in line:
            raise LookupError(f"no such {word}")
        read(self, record, offset, line, out)

    monkeypatch.setattr(TranscriptReader, "read", breaks)


def test_the_reason_is_told_by_ingest_and_doctor_until_it_is_read(
    settings: Settings, home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = write_agents(home)["middle"]
    with monkeypatch.context() as patch:
        break_reader(patch, "apple")
        assert f"Cannot read {bad}: LookupError: no such apple" in cli("ingest").out
        assert len(cli("ingest", "--json").json["unreadable"]) == 1
    told = cli("doctor")
    assert told.code == 1
    assert "LookupError: no such apple" in " ".join(told.out.split())
    assert cli("ingest", "--json").json["new_records"] > 0
    assert cli("doctor").code == 0


def test_one_session_of_a_database_that_fails_leaves_the_others(
    settings: Settings, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = write_agents(home)["opencode"]
    from whyfor.agents.opencode.reader import RowReader

    read = RowReader.read

    def breaks(self: RowReader, record: Any, offset: int, line: bytes, out: Any) -> None:
        if b"ses_2" in line:
            raise ValueError("odd row")
        read(self, record, offset, line, out)

    with monkeypatch.context() as patch:
        patch.setattr(RowReader, "read", breaks)
        report = ingest(settings)
    assert [(item.path, item.reason) for item in report.unreadable] == [
        (f"{database}#ses_2", "ValueError: odd row")
    ]
    assert {"ses_1", "ses_3"} <= set(names(settings))
    assert not examine(settings).ok
    assert ingest(settings).unreadable == []
    assert {"ses_1", "ses_2", "ses_3"} <= set(names(settings))
    assert examine(settings).ok


def test_the_live_loop_passes_over_a_file_that_fails(
    settings: Settings, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from whyfor.agents import AGENTS

    files = write_agents(home)
    taking = IncrementalIngest(settings)
    found = [FoundFile(AGENTS["claude"], files[name]) for name in ("first", "middle", "last")]
    with monkeypatch.context() as patch:
        break_reader(patch, "apple")
        taking.take(found, 1.0)
        assert [item.path for item in taking.unreadable] == [str(files["middle"])]
        assert len(names(settings)) == 2
    taking.take(found, 1.0)
    assert len(names(settings)) == 3
    taking.close()


def test_a_segment_that_makes_a_reader_fail_does_not_stop_a_rebuild(
    settings: Settings, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = write_agents(home)["middle"]
    ingest(settings)
    rebuild(settings)
    before = derived(settings)
    with monkeypatch.context() as patch:
        break_reader(patch, "apple")
        report = rebuild(settings)
    assert [(gap.path, gap.reason) for gap in report.gaps] == [
        (str(bad), "LookupError: no such apple")
    ]
    broken = derived(settings)
    others = {row for row in before["events"] if row[0] != f"claude:{bad.stem}"}
    assert set(broken["events"]) == others
    assert [row[13] for row in broken["sources"] if row[1] == str(bad)] == [
        "LookupError: no such apple"
    ]
    assert rebuild(settings).gaps == []
    assert_equal(derived(settings), before)


# -- what lies among the files -------------------------------------------------------------------


def test_what_is_no_file_hinders_nobody(settings: Settings, home: Path, cli: Cli) -> None:
    """Pipes, devices, links to nowhere, links in a circle, names with a line break, names that
    are too long."""
    files = write_agents(home)
    folder = files["first"].parent
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "null.jsonl").symlink_to("/dev/zero")
    (folder / "nowhere.jsonl").symlink_to(folder / "nothing")
    (folder / "circle.jsonl").symlink_to(folder / "circle.jsonl")
    (folder / "above").symlink_to(folder.parent)
    (folder / "folder.jsonl").mkdir()
    broken = Transcript("line break")
    broken.prompt("found all the same")
    (folder / "a\nb.jsonl").write_text(broken.text())
    chats = home / ".gemini" / "tmp" / "project" / "chats"
    chats.mkdir(parents=True)
    (chats / "session-1.jsonl").write_text('{"sessionId":"gem","projectHash":"x"}\n')
    os.mkfifo(chats.parent / ".project_root")
    settings.home.mkdir(exist_ok=True)
    (settings.home / "config.toml").write_text(
        f'[roots]\nclaude = ["/{"x" * 5000}", "{home}/.claude/projects"]\n'
    )
    done: list[Result] = []
    reader = threading.Thread(target=lambda: done.append(cli("ingest", "--json")), daemon=True)
    reader.start()
    reader.join(20)
    assert done, "it waits for a pipe"
    told = {Path(item["path"]).name[:12]: item["reason"] for item in done[0].json["unreadable"]}
    assert told.pop("x" * 12).startswith("File name too long")
    assert told.pop("circle.jsonl")
    assert told == {"pipe.jsonl": "not a plain file", "null.jsonl": "not a plain file"}
    assert {broken.session_id, "gem"} <= set(names(config.load()))
    assert cli("doctor", "--json").code == 1


def test_what_is_remembered_can_be_lost(settings: Settings, home: Path) -> None:
    write_agents(home)
    settings.home.mkdir(exist_ok=True)
    for content in (b"", b"\xff\xfe", b"[]", b'{"version":"0","files":{"/x":{"reason":1}}}'):
        (settings.home / "unreadable.json").write_bytes(content)
        assert ingest(settings).unreadable == []
