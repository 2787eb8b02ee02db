"""Opening the database: fresh, again, by many at once, too new, damaged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from backstory.model.errors import CorruptStore, NewerStore, StoreError
from backstory.store import schema
from backstory.store.sqlite import connect, fetch, first, transaction


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "backstory.db"


def tables(db: apsw.Connection) -> set[str]:
    return {name for (name,) in fetch(db, "SELECT name FROM sqlite_schema WHERE type='table'")}


def add_project(db: apsw.Connection, identity: str) -> None:
    db.execute("INSERT INTO projects(identity, evidence, name) VALUES(?, 'path', 'x')", (identity,))


def test_a_fresh_database_is_of_this_programs_version(path: Path) -> None:
    db = connect(path)
    assert schema.current(db) == schema.VERSION == len(schema.MIGRATIONS)
    assert {"projects", "sources", "segments", "sessions", "events", "usage", "touches", "docs"} <= tables(db)
    assert db.pragma("journal_mode") == "wal"
    assert db.pragma("synchronous") == 2, "full: a commit survives a power loss"


def test_opening_again_changes_nothing(path: Path) -> None:
    db = connect(path)
    add_project(db, "a")
    db.close()
    before = path.read_bytes()
    again = connect(path)
    assert fetch(again, "SELECT identity FROM projects") == [("a",)]
    again.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("readonly", [False, True])
def test_a_database_of_a_newer_program_is_refused_and_left_alone(readonly: bool, path: Path) -> None:
    db = connect(path)
    db.pragma("user_version", schema.VERSION + 1)
    db.close()
    before = path.read_bytes()
    with pytest.raises(NewerStore, match=f"version {schema.VERSION + 1}") as told:
        connect(path, readonly=readonly)
    assert "pip install --upgrade" in told.value.hint
    assert path.read_bytes() == before


def test_an_older_database_is_brought_forward_with_all_that_is_in_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = connect(path)
    add_project(db, "a")
    db.close()
    steps = (*schema.MIGRATIONS, "CREATE TABLE extra(x)", "INSERT INTO extra VALUES(1)")
    monkeypatch.setattr(schema, "MIGRATIONS", steps)
    monkeypatch.setattr(schema, "VERSION", len(steps))
    for _ in range(2):
        db = connect(path)
        assert schema.current(db) == len(steps)
        assert fetch(db, "SELECT identity FROM projects") == [("a",)]
        assert fetch(db, "SELECT x FROM extra") == [(1,)], "each step runs once"
        db.close()


def test_a_step_that_fails_leaves_the_database_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(path).close()
    before = schema.VERSION
    steps = (*schema.MIGRATIONS, "CREATE TABLE extra(x)", "INSERT INTO nowhere VALUES(1)")
    monkeypatch.setattr(schema, "MIGRATIONS", steps)
    monkeypatch.setattr(schema, "VERSION", len(steps))
    with pytest.raises(apsw.SQLError, match="nowhere"):
        connect(path)
    db = apsw.Connection(str(path))
    assert schema.current(db) == before
    assert "extra" not in tables(db)


OPENER = """
import sys
from pathlib import Path
from backstory.store.sqlite import connect
print("ready", flush=True)
sys.stdin.readline()
db = connect(Path(sys.argv[1]))
db.execute("INSERT INTO projects(identity, evidence, name) VALUES(?, 'path', 'x')", (sys.argv[2],))
db.close()
"""


def test_many_processes_may_open_a_fresh_database_at_once(path: Path) -> None:
    number = 8
    opened = [
        subprocess.Popen(
            [sys.executable, "-c", OPENER, str(path), str(n)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for n in range(number)
    ]
    for process in opened:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in opened:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    errors = [process.communicate(timeout=30)[1] for process in opened]

    assert errors == [""] * number
    db = connect(path)
    assert schema.current(db) == schema.VERSION
    assert {identity for (identity,) in fetch(db, "SELECT identity FROM projects")} == set(map(str, range(number)))


def test_a_reader_works_while_another_process_writes(path: Path) -> None:
    writer = connect(path)
    add_project(writer, "a")
    with transaction(writer):
        add_project(writer, "b")
        reader = connect(path, readonly=True)
        assert fetch(reader, "SELECT identity FROM projects") == [("a",)]
    assert len(fetch(reader, "SELECT identity FROM projects")) == 2


def test_a_reader_cannot_write(path: Path) -> None:
    connect(path).close()
    with pytest.raises(apsw.ReadOnlyError):
        add_project(connect(path, readonly=True), "a")


def test_a_reader_makes_no_database(path: Path) -> None:
    with pytest.raises(StoreError):
        connect(path, readonly=True)
    assert not path.exists()


def test_a_transaction_that_fails_leaves_nothing(path: Path) -> None:
    db = connect(path)
    with pytest.raises(KeyboardInterrupt), transaction(db):
        add_project(db, "a")
        raise KeyboardInterrupt
    assert first(db, "SELECT count(*) FROM projects") == (0,)
    assert not db.in_transaction


@pytest.mark.parametrize("readonly", [False, True])
def test_what_is_no_database_is_said_to_be_damaged(readonly: bool, path: Path) -> None:
    path.write_bytes(b"this is no database, but it is long enough to look like one" * 40)
    with pytest.raises(CorruptStore) as told:
        connect(path, readonly=readonly)
    assert "backstory rebuild" in told.value.hint


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot use"):
        connect(tmp_path / "nowhere" / "backstory.db")
