"""Killed at any moment, twice at once, beside an ingest or a reader: what was is there, or
nothing of it."""

from __future__ import annotations

import random
import signal
import subprocess
from pathlib import Path
from unittest.mock import patch

import apsw
import pytest

from tests.capture.snapshot import Snapshot, assert_equal, derived, stored_bytes
from tests.capture.test_ingest import external, story
from tests.faults.machine import SECONDS, Kept, Machine, spread, strikes
from tests.service.forget.test_sessions import secret, subagent
from tests.service.forget.traces import CANARY, in_database, traces
from whyfor.capture import compact as merge
from whyfor.config import Settings
from whyfor.model.query import SessionFilter
from whyfor.service.forget import ForgetArguments, forget
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.service.sessions import sessions
from whyfor.store.tombstones import FORGET_MARKER

POINTS = 3
FORMS = {"session": [secret().session_id], "match": ["--match", CANARY]}
SPOOLED = (
    '\n{{"v":1,"at":1777629600000,"agent":"claude","event":"UserPromptSubmit","cwd":"/code/shop"}}\t'
    '{{"session_id":"{}","transcript_path":"/x","prompt":"{}"}}\n'
)


def prepared(machine: Machine) -> Machine:
    """Sessions to keep and one to forget, with all that hangs on it, all of it read."""
    story("one").save(machine.home)
    said = secret()
    call = said.call("Bash", {"command": "cat all"}, "<persisted-output>saved</persisted-output>")
    said.save(machine.home)
    external(said, machine.home, call, f"{CANARY}\n" * 20)
    subagent(machine.home, said)
    story("two", 5).save(machine.home)
    lines = [
        SPOOLED.format(secret().session_id, CANARY),
        SPOOLED.format(story("one").session_id, "apples"),
    ]
    (machine.own / "spool").mkdir(parents=True)
    (machine.own / "spool" / "2026-05-01.spool").write_text("".join(lines))
    path, whole = said.path(machine.home), said.text()
    with patch.object(merge, "FAN", 2):  # as if it had been read while it was written, and merged
        for end in (whole.index("\n") + 1, len(whole)):
            path.write_text(whole[:end])
            ingest(machine.settings)
    return machine


def state(settings: Settings) -> Snapshot:
    """All that is derived, signals by what they say."""
    found = derived(settings, segments=True)
    found["signals"] = sorted(row[1:] for row in found["signals"])
    # those of which something is kept
    found["sources"] = sorted(row for row in found["sources"] if row[8])
    return found


def relative(snapshot: Snapshot, machine: Machine) -> Snapshot:
    """The same wherever the machine's folders are."""
    root = str(machine.home.parent)
    return {
        name: sorted(
            (tuple(v.replace(root, "") if isinstance(v, str) else v for v in row) for row in rows),
            key=repr,
        )
        for name, rows in snapshot.items()
    }


@pytest.fixture(scope="module", params=FORMS)
def wanted(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Snapshot, Snapshot]:
    """The form, and how things are before and after it, undisturbed."""
    machine = prepared(Machine(tmp_path_factory.mktemp("wanted") / "machine"))
    before = relative(state(machine.settings), machine)
    assert machine.run("forget", *FORMS[request.param], "--yes").code == 0
    assert traces(machine.own) == []
    return request.param, before, relative(state(machine.settings), machine)


def assert_before_or_after(machine: Machine, wanted: tuple[str, Snapshot, Snapshot]) -> bool:
    """The next ingest finishes what was begun; what was not can be begun again. True if it had
    been."""
    form, before, after = wanted
    assert sessions(machine.settings, SessionFilter(), limit=20, everything=False)
    ingest(machine.settings)
    assert not (machine.own / FORGET_MARKER).exists()
    begun = not in_database(machine.own)
    assert_equal(relative(state(machine.settings), machine), after if begun else before)
    if not begun:
        assert machine.run("forget", *FORMS[form], "--yes").code == 0
    assert traces(machine.own) == []
    assert_equal(relative(state(machine.settings), machine), after)
    assert ingest(machine.settings).new_records == 0
    assert rebuild(machine.settings).gaps == []
    assert_equal(relative(state(machine.settings), machine), after)
    return begun


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """A machine on which nothing was forgotten yet, as often as it is asked for."""
    return Kept(prepared(Machine(tmp_path_factory.mktemp("kept") / "machine")))


@pytest.fixture(scope="module")
def ordinals(
    wanted: tuple[str, Snapshot, Snapshot], strace: None, kept: Kept
) -> dict[str, list[int]]:
    return strikes(kept.again(), *command(wanted[0]))


def command(form: str) -> tuple[str, ...]:
    return ("forget", *FORMS[form], "--yes")


@pytest.mark.parametrize(
    "call", ["write", "pwrite64", "fsync", "fdatasync", "ftruncate", "rename", "openat", "unlink"]
)
def test_killed_at_a_system_call_it_is_as_before_or_as_after(
    call: str,
    wanted: tuple[str, Snapshot, Snapshot],
    ordinals: dict[str, list[int]],
    kept: Kept,
) -> None:
    points = spread(ordinals[call], POINTS)
    killed = 0
    for number in points:
        machine = kept.again()
        fault = f"inject={call}:signal=KILL:when={number}"
        done = machine.traced("-e", fault, command=command(wanted[0]))
        killed += done.code == -signal.SIGKILL
        assert_before_or_after(machine, wanted)
    assert killed > len(points) // 2


def test_killed_again_and_again_it_still_gets_there(
    wanted: tuple[str, Snapshot, Snapshot], kept: Kept
) -> None:
    machine = kept.again()
    dice = random.Random(11)
    for _ in range(14):
        process = machine.start("forget", *FORMS[wanted[0]], "--yes")
        try:
            process.wait(dice.uniform(0.1, 0.6))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate(timeout=SECONDS)
    assert_before_or_after(machine, wanted)


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("number", [1, 4, 16])
def test_a_full_disk_is_told_and_it_is_as_before_or_as_after(
    number: int, wanted: tuple[str, Snapshot, Snapshot], kept: Kept
) -> None:
    machine = kept.again()
    options = ("-e", f"inject=write,pwrite64:error=ENOSPC:when={number}+", *machine.paths())
    assert machine.traced(*options, command=command(wanted[0])).code in (0, 2)
    assert_before_or_after(machine, wanted)


def test_two_at_once_and_ingests_beside_them(
    wanted: tuple[str, Snapshot, Snapshot], kept: Kept
) -> None:
    machine = kept.again()
    commands = [["forget", *FORMS[wanted[0]], "--yes"], ["ingest"]] * 3
    running = [machine.start(*command) for command in commands]
    for process in running:
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0 or "no session" in err, err
    assert_before_or_after(machine, wanted)


def test_a_reader_goes_on_and_the_next_ingest_removes_what_it_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whyfor.store.sqlite.forget.READERS_MS", 100)
    monkeypatch.setattr("whyfor.store.sqlite.connection.BUSY_MS", 100)
    machine = prepared(Machine(tmp_path / "machine"))
    reader = apsw.Connection(str(machine.settings.database), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    (before,) = reader.execute("SELECT count(*) FROM events").fetchall()
    report = forget(machine.settings, tmp_path, ForgetArguments(secret().session_id))
    assert not report.finished
    assert reader.execute("SELECT count(*) FROM events").fetchall() == [before]
    reader.close()
    ingest(machine.settings)
    assert traces(machine.own) == []
    assert not (machine.own / FORGET_MARKER).exists()


def test_what_others_said_is_byte_for_byte_what_it_was(tmp_path: Path) -> None:
    machine = prepared(Machine(tmp_path / "machine"))
    before = stored_bytes(machine.settings)
    assert machine.run("forget", secret().session_id, "--yes").code == 0
    assert machine.run("doctor").code == 0
    after = stored_bytes(machine.settings)
    others = {path for path in before if secret().session_id not in path}
    assert {path: before[path] for path in others if ".spool" not in path} == {
        path: after[path] for path in others if ".spool" not in path
    }


def died_behind_the_journal(
    machine: Machine, form: str, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    asked = ForgetArguments(match=CANARY)
    if form == "session":
        asked = ForgetArguments(secret().session_id)
    with monkeypatch.context() as patched:
        patched.setattr("whyfor.capture.forget.update_database", _die)
        with pytest.raises(KeyboardInterrupt):
            forget(machine.settings, machine.home, asked)
    assert in_database(machine.own)
    return machine.settings


def test_one_that_died_behind_the_journal_is_finished_without_reading_the_rest(
    wanted: tuple[str, Snapshot, Snapshot], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = prepared(Machine(tmp_path / "machine"))
    settings = died_behind_the_journal(machine, wanted[0], monkeypatch)
    monkeypatch.setattr("whyfor.capture.recover.rebuild_database", _die)
    assert ingest(settings).repairs == []
    assert traces(machine.own) == []
    assert not (machine.own / FORGET_MARKER).exists()
    assert_equal(relative(state(settings), machine), wanted[2])


@pytest.mark.parametrize("damage", ["gone", "first page", "every other page"])
def test_one_that_died_is_finished_in_a_damaged_database(
    damage: str,
    wanted: tuple[str, Snapshot, Snapshot],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = prepared(Machine(tmp_path / "machine"))
    settings = died_behind_the_journal(machine, wanted[0], monkeypatch)
    if damage == "gone":
        settings.database.unlink()
    else:
        content = bytearray(settings.database.read_bytes())
        pages = range(1) if damage == "first page" else range(8, len(content) // 4096, 2)
        for page in pages:
            content[page * 4096 : (page + 1) * 4096] = b"\xa5" * 4096
        settings.database.write_bytes(content)
    assert ingest(settings).repairs
    assert traces(machine.own) == []
    assert not (machine.own / FORGET_MARKER).exists()
    assert_equal(relative(state(settings), machine), wanted[2])


def _die(*_: object, **__: object) -> None:
    raise KeyboardInterrupt
