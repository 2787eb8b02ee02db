"""Kill, full disk, two at once: real processes, real system calls. Ingesting again gives what it
would have been."""

from __future__ import annotations

import functools
import json
import random
import re
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from tests.capture.snapshot import assert_equal, derived, found, on_disk, stored_bytes
from tests.capture.test_ingest import shown, story, write
from tests.capture.test_rebuild import change, populate
from tests.faults.machine import CALLS, SECONDS, SMALL, Done, Kept, Machine, spread, strikes
from whyfor.config import Settings
from whyfor.model.errors import WhyforError
from whyfor.model.query import SessionFilter
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.service.sessions import sessions
from whyfor.service.show import raw_records

POINTS = 7  # of each call: where in their sequence it strikes
DISK_FULL = "No space|disk is full"


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Machine(small=True) does in its processes, in this one."""
    for name, value in SMALL.items():
        monkeypatch.setattr(f"whyfor.capture.{name}", value)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "machine")


def prepared(machine: Machine, phase: str) -> Settings:
    """Leaves work for one ingest; returns a second store in which it was done without a fault."""
    said = populate(machine.home)
    reference = Settings(home=machine.own.with_name("reference"), user_home=machine.home, env={})
    if phase == "later":
        for each in (machine.settings, reference):
            ingest(each)
        change(machine.home, said)
        story("new", 4).save(machine.home)
    ingest(reference)
    return reference


class Wanted(NamedTuple):
    """What there is to read where nothing went wrong."""

    rows: Any
    stored: Any
    words: Any


def read_wanted(reference: Settings, *, small: bool) -> Wanted:
    segments = not small  # in small steps they are cut elsewhere after a fault
    return Wanted(
        derived(reference, segments=segments),
        stored_bytes(reference),
        found(reference, "apples", "hippopotamus"),
    )


class Stage(Kept):
    """A machine with work for one ingest, which can be had again as often as it was done."""

    def __init__(
        self, folder: Path, phase: str, *, small: bool = False, command: str = "ingest"
    ) -> None:
        self.command = command
        machine = Machine(folder, small=small)
        self.reference = prepared(machine, phase)
        super().__init__(machine)

    @functools.cached_property
    def wanted(self) -> Wanted:
        return read_wanted(self.reference, small=self.machine.small)

    @functools.cached_property
    def strikes(self) -> dict[str, list[int]]:
        return strikes(self.again(), self.command)


@pytest.fixture(scope="module", params=["first", "later"])
def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(tmp_path_factory.mktemp("stage") / "machine", request.param)


@pytest.fixture(scope="module")
def small_stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in SMALL.items():
            patched.setattr(f"whyfor.capture.{name}", value)
        return Stage(tmp_path_factory.mktemp("small") / "machine", "first", small=True)


@pytest.fixture(scope="module")
def read_stage(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A machine that has read everything and rebuilds it."""
    folder = tmp_path_factory.mktemp("read") / "machine"
    stage = Stage(folder, "later", command="rebuild")
    ingest(stage.machine.settings)
    stage.keep()
    return stage


def assert_recovered(machine: Machine, reference: Settings) -> None:
    assert_recovered_to(machine, read_wanted(reference, small=machine.small))


def assert_recovered_to(machine: Machine, wanted: Wanted) -> None:
    """Ingesting again gives the same as if nothing had happened; so does a rebuild, and the next
    ingest has no work."""
    ingest(machine.settings)
    now = read_wanted(machine.settings, small=machine.small)
    assert_equal(now.rows, wanted.rows)
    assert (now.stored, now.words) == (wanted.stored, wanted.words)
    assert ingest(machine.settings).new_records == 0
    assert rebuild(machine.settings).gaps == []
    assert_equal(derived(machine.settings, segments=not machine.small), wanted.rows)


def assert_told(done: Done) -> None:
    """Two lines, what and what next, and no traceback."""
    assert (done.code, done.out) == (2, ""), done
    assert len(done.err.splitlines()) == 2, done.err
    assert done.err.startswith("error: ")
    assert "Traceback" not in done.err


# -- killed --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("call", CALLS)
def test_killed_at_a_system_call_and_run_again_equals_never_killed(call: str, stage: Stage) -> None:
    points = spread(stage.strikes[call], POINTS)
    killed = 0
    for number in points:
        machine = stage.again()
        done = machine.traced("-e", f"inject={call}:signal=KILL:when={number}")
        killed += done.code == -signal.SIGKILL
        with suppress(WhyforError):  # whatever is there is shown, or that nothing is there yet
            sessions(machine.settings, SessionFilter(), limit=20, everything=False)
        assert_recovered_to(machine, stage.wanted)
    assert killed > len(points) // 2


def test_killed_again_and_again_it_still_gets_there(tmp_path: Path) -> None:
    machine = Machine(tmp_path / "machine")
    reference = prepared(machine, "first")
    dice = random.Random(7)
    for _ in range(12):
        process = machine.start("ingest")
        try:
            process.wait(dice.uniform(0.02, 0.3))
        except subprocess.TimeoutExpired:
            process.kill()
        process.communicate(timeout=SECONDS)
    assert_recovered(machine, reference)


@pytest.mark.usefixtures("strace", "small_steps")
@pytest.mark.parametrize("call", ["pwrite64", "fdatasync", "write", "rename", "unlink"])
def test_killed_between_the_batches_of_one_file_it_goes_on_where_it_was(
    call: str, small_stage: Stage
) -> None:
    stage = small_stage
    assert b'{"entry":"merged"' in stage.reference.journal.read_bytes()
    went_on = 0
    for number in spread(stage.strikes[call], POINTS):
        machine = stage.again()
        machine.traced("-e", f"inject={call}:signal=KILL:when={number}")
        rest = ingest(machine.settings).new_records
        went_on += 0 < rest < ingest(stage.reference).records
        assert_recovered_to(machine, stage.wanted)
    assert went_on


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("call", ["pwrite64", "fdatasync", "unlink", "openat"])
def test_a_rebuild_that_is_killed_leaves_a_store_that_works(call: str, read_stage: Stage) -> None:
    stage = read_stage
    points = spread(stage.strikes[call], 4)
    killed = 0
    for number in points:
        machine = stage.again()
        done = machine.traced(
            "-e", f"inject={call}:signal=KILL:when={number}", command=("rebuild",)
        )
        killed += done.code == -signal.SIGKILL
        assert machine.run("sessions").code == 0
        assert_recovered_to(machine, stage.wanted)
    assert killed > len(points) // 2


@pytest.mark.usefixtures("strace")
def test_bytes_and_journal_are_on_disk_before_the_database_says_so(machine: Machine) -> None:
    prepared(machine, "first")
    assert machine.traced().code == 0
    synced: list[str] = []
    entries: set[str] = set()  # folders that got a new name in them
    for line in machine.log.read_text(errors="replace").splitlines():
        if flushed := re.search(r"f(?:data)?sync\(\d+<([^>]*)>\) += 0", line):
            synced.append(flushed[1])
        elif named := re.search(r'(?:mkdir|rename)\((?:.*, )?"([^"]*)"(?:, \d+)?\) += 0', line):
            entries.add(str(Path(named[1]).parent))
    segments = [str(path) for path in machine.settings.segments.glob("*/*.zst")]
    assert len(segments) == 5
    journal, database = str(machine.settings.journal), f"{machine.settings.database}-wal"
    last = {path: len(synced) - 1 - synced[::-1].index(path) for path in set(synced)}
    assert max(last[path] for path in segments) < last[journal] < last[database]
    ours = {folder for folder in entries if folder.startswith(str(machine.own))}
    assert ours <= set(synced)


def test_a_segment_that_a_power_cut_left_empty_is_written_anew(machine: Machine) -> None:
    said = story()
    said.save(machine.home)
    reference = Settings(home=machine.own.with_name("reference"), user_home=machine.home, env={})
    ingest(reference)
    [segment] = reference.segments.glob("*/*.zst")
    torn = machine.settings.segments / segment.relative_to(reference.segments)
    write(torn, segment.read_bytes()[:10])
    ingest(machine.settings)
    assert shown(machine.settings, said.session_id) == said.text().encode()


# -- a disk that is full, or broken, or not ours -------------------------------------------------


def faults(machine: Machine, reference: Settings) -> list[str]:
    blobs = [
        machine.settings.segments / p.relative_to(reference.segments)
        for p in reference.segments.glob("*/*.zst")
    ]
    return machine.paths(*blobs, *(blob.with_name(f"{blob.name}#1") for blob in blobs))


@pytest.mark.usefixtures("strace")
def test_a_full_disk_is_told_and_nothing_is_lost(stage: Stage) -> None:
    failed = 0
    for number in (1, 2, 3, 8, 30, 60, 90):
        machine = stage.again()
        inject = ("-e", f"inject=write,pwrite64:error=ENOSPC:when={number}+")
        done = machine.traced(
            *inject, *faults(machine, stage.reference), calls=("write", "pwrite64")
        )
        # only the copy from the log into the database failed: all is safe in the log
        if done.code != 0:
            assert_told(done)
            assert re.search(DISK_FULL, done.err), done.err
            failed += 1
        assert_recovered_to(machine, stage.wanted)
    assert failed >= 3


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize(
    ("call", "error", "number"),
    [
        ("fsync", "EIO", 1),
        ("fdatasync", "EIO", 1),
        ("fdatasync", "EIO", 6),
        ("rename", "ENOSPC", 1),
        ("mkdir", "ENOSPC", 2),
    ],
)
def test_a_disk_that_fails_is_told_and_nothing_is_lost(
    call: str, error: str, number: int, machine: Machine
) -> None:
    reference = prepared(machine, "first")
    assert_told(machine.traced("-e", f"inject={call}:error={error}:when={number}+", calls=(call,)))
    assert_recovered(machine, reference)


@pytest.mark.usefixtures("strace")
@pytest.mark.parametrize("error", ["EROFS", "EACCES"])
@pytest.mark.parametrize("which", ["home", "lock", "database", "journal", "segments"])
def test_a_home_that_cannot_be_written_is_told(which: str, error: str, machine: Machine) -> None:
    reference = prepared(machine, "first")
    names = {
        "home": "",
        "lock": "ingest.lock",
        "database": "whyfor.db",
        "journal": "journal.jsonl",
        "segments": "segments",
    }
    call = "mkdir" if which in ("home", "segments") else "openat"
    path = ("-P", str(machine.own / names[which]))
    done = machine.traced(*path, "-e", f"inject={call}:error={error}", calls=(call,))
    assert_told(done)
    assert str(machine.own) in done.err
    assert_recovered(machine, reference)


@pytest.mark.parametrize("command", ["ingest", "rebuild", "sessions", "doctor"])
def test_a_home_below_a_file_is_told(command: str, machine: Machine) -> None:
    story().save(machine.home)
    write(machine.own.with_name("file"), b"")
    machine.env["WHYFOR_HOME"] = str(machine.own.with_name("file") / "own")
    done = machine.run(command)
    assert "Traceback" not in done.err
    assert done.code in ((2,) if command != "doctor" else (0, 1))
    as_json = json.loads(machine.run(command, "--json").out)
    assert command == "doctor" or {"kind", "message", "hint"} == as_json["error"].keys()


@pytest.mark.usefixtures("strace")
def test_a_database_that_cannot_be_opened_is_not_called_healthy(machine: Machine) -> None:
    prepared(machine, "first")
    ingest(machine.settings)
    path = ("-P", str(machine.settings.database))
    done = machine.traced(
        *path, "-e", "inject=openat:error=EACCES", calls=("openat",), command=("doctor",)
    )
    assert done.code == 1, done.out
    assert "Traceback" not in done.err


def test_an_ingest_that_died_before_it_began_leaves_readers_a_clear_answer(
    machine: Machine,
) -> None:
    write(machine.settings.database, b"")  # created, its tables not yet
    for command in (["sessions"], ["show", "x"], ["search", "x"], ["stats"]):
        assert_told(machine.run(*command))
    assert machine.run("doctor").code == 0


# -- at the same time ----------------------------------------------------------------------------


@pytest.mark.parametrize("number", [2, 8])
def test_ingests_at_once_do_the_work_once(number: int, machine: Machine) -> None:
    reference = prepared(machine, "first")
    running = [machine.start("ingest", "--json") for _ in range(number)]
    reports: list[dict[str, Any]] = []
    for process in running:
        out, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, err) == (0, ""), out
        reports.append(json.loads(out))
    total = ingest(reference).records
    assert sorted(report["new_records"] for report in reports) == [0] * (number - 1) + [total]
    assert_equal(derived(machine.settings, segments=True), derived(reference, segments=True))
    assert_recovered(machine, reference)


def test_a_rebuild_and_ingests_at_once_agree(machine: Machine) -> None:
    reference = prepared(machine, "first")
    ingest(machine.settings)
    said = story("late")
    said.save(machine.home)
    ingest(reference)
    running = [machine.start(command) for command in ("rebuild", "ingest", "rebuild", "ingest")]
    for process in running:
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == 0, err
    assert_recovered(machine, reference)


def test_a_reader_works_while_another_process_holds_the_write_lock(machine: Machine) -> None:
    prepared(machine, "first")
    ingest(machine.settings)
    writer = apsw.Connection(str(machine.settings.database))
    try:
        writer.execute("BEGIN IMMEDIATE")
        writer.execute("UPDATE sessions SET title='not yet committed'")
        before = on_disk(machine.own)
        for command in (
            ["sessions", "--json"],
            ["search", "apples", "--json"],
            ["stats", "--json"],
            ["doctor", "--json"],
        ):
            done = machine.run(*command)
            assert (done.code, done.err) == (0, ""), command
            assert json.loads(done.out)
            assert "not yet committed" not in done.out
        assert on_disk(machine.own) == before
        [first, *_] = sessions(machine.settings, SessionFilter(), limit=1, everything=False)
        assert b"".join(raw_records(machine.settings, first.session.session_id))
    finally:
        writer.close(True)


def test_an_ingest_waits_for_the_write_lock_of_another_process(machine: Machine) -> None:
    reference = prepared(machine, "later")
    writer = apsw.Connection(str(machine.settings.database))
    writer.execute("BEGIN IMMEDIATE")
    process = machine.start("ingest", "--json")
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    writer.execute("ROLLBACK")
    writer.close()
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (0, ""), out
    assert_recovered(machine, reference)


def test_a_file_that_grows_while_it_is_read_is_read_to_its_end_by_the_next(
    machine: Machine,
) -> None:
    said = story("growing", 40)
    lines = said.text().encode().splitlines(keepends=True)
    path = write(said.path(machine.home), lines[0])
    process = machine.start("ingest")
    with path.open("ab") as file:
        for line in lines[1:]:
            half = len(line) // 2
            for piece in (line[:half], line[half:]):
                file.write(piece)
                file.flush()
    process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    ingest(machine.settings)
    reference = Settings(home=machine.own.with_name("reference"), user_home=machine.home, env={})
    ingest(reference)
    assert shown(machine.settings, said.session_id) == said.text().encode()
    assert_equal(derived(machine.settings), derived(reference))
