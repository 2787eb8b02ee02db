"""Opening the database: fresh, again, by many at once, too new, damaged."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from tests.store.downgrade import downgrade
from whyfor.model.errors import Busy, CorruptStore, NewerStore, NotFound, StoreError, StoreFault
from whyfor.model.events import Event, Usage
from whyfor.model.findings import Bucket
from whyfor.model.query import Atom, Filters, PassageQuery, Query
from whyfor.model.titles import TITLE_AGENT
from whyfor.store.sqlite import connection as sqlite
from whyfor.store.sqlite import schema
from whyfor.store.sqlite.connection import StoreConnection, connect, fetch, first_row, transaction
from whyfor.store.sqlite.store import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "whyfor.db"


def tables(db: StoreConnection) -> set[str]:
    return {name for (name,) in fetch(db, "SELECT name FROM sqlite_schema WHERE type='table'")}


def add_project(db: StoreConnection, identity: str) -> None:
    db.execute("INSERT INTO projects(identity, evidence, name) VALUES(?, 'path', 'x')", (identity,))


def test_a_fresh_database_is_of_this_programs_version(path: Path) -> None:
    db = connect(path)
    assert schema.schema_version(db) == schema.VERSION == len(schema.MIGRATIONS)
    assert {
        "projects",
        "sources",
        "segments",
        "sessions",
        "events",
        "usage",
        "touches",
        "docs",
    } <= tables(db)
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


def test_what_a_page_asks_first_is_answered_by_an_index_however_many_sessions_there_are(
    path: Path,
) -> None:
    db = connect(path)
    asked: list[tuple[str, object]] = []

    def heard(_: object, sql: str, values: object) -> bool:
        asked.append((sql, values))
        return True

    db.exec_trace = heard
    store = SqliteStore(path, db)
    for agent in ("claude", None):
        with pytest.raises(NotFound):
            store.sessions.find("x", agent)
    store.sessions.children(["x"])
    store.sessions.last_ended("claude")
    store.sessions.last_started("claude")
    store.signals.last_heard("claude")
    store.projects.active()
    store.sessions.first_started(1)
    store.sessions.count_since(1, 5)
    store.sessions.recent(1, 5, 12)
    store.sessions.numbers([("claude", "x")])
    db.exec_trace = None
    plans = [
        [row[3] for row in fetch(db, f"EXPLAIN QUERY PLAN {sql}", values)] for sql, values in asked
    ]
    assert len(plans) >= 10
    assert not [
        step
        for plan in plans
        for step in plan
        if step in ("SCAN s", "SCAN sessions", "SCAN signals")
    ]
    of_parent = fetch(
        db,
        "EXPLAIN QUERY PLAN SELECT id FROM sessions WHERE agent='a' AND parent='b' AND ended_at > "
        "5",
    )
    assert "sessions_by_parent" in of_parent[0][3], (
        "an agent has a fifth of all sessions, a parent has few"
    )


@pytest.mark.parametrize("readonly", [False, True])
def test_a_database_of_a_newer_program_is_refused_and_left_alone(
    readonly: bool, path: Path
) -> None:
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
        assert schema.schema_version(db) == len(steps)
        assert fetch(db, "SELECT identity FROM projects") == [("a",)]
        assert fetch(db, "SELECT x FROM extra") == [(1,)], "each step runs once"
        db.close()


OUTCOMES: tuple[tuple[str, dict[str, Any] | None, tuple[int, int, int]], ...] = (
    ("tool.result", {"failed": True, "exit_code": 1}, (1, 0, 0)),
    ("tool.result", {"failed": True, "rejected": True}, (1, 0, 1)),
    ("tool.result", {"rejected": True}, (0, 0, 1)),
    ("tool.result", {"failed": False}, (0, 0, 0)),
    ("tool.result", {"answers": {"failed": True}}, (0, 0, 0)),
    ("tool.result", {"text": '"failed":true'}, (0, 0, 0)),
    ("tool.result", None, (0, 0, 0)),
    ("turn.completed", {"interrupted": True}, (0, 1, 0)),
    ("turn.completed", {}, (0, 0, 0)),
    ("approval.resolved", {"decision": "denied"}, (0, 0, 1)),
    ("approval.resolved", {"decision": "approved"}, (0, 0, 0)),
    ("error", {"failed": True}, (0, 0, 0)),
)


def test_what_became_of_a_call_is_known_of_events_stored_before_it_was_a_column(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 9 found it in the text of data."""
    with monkeypatch.context() as older:
        older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:9])
        older.setattr(schema, "VERSION", 9)
        db = connect(path)
    db.execute("INSERT INTO sessions(id, agent, session_id) VALUES(1, 'claude', 'a')")
    for seq, (kind, data, _) in enumerate(OUTCOMES, 1):
        body = None if data is None else msgspec.json.encode(data).decode()
        db.execute(
            "INSERT INTO events VALUES(?,1,?,1,?,'transcript','high',1,1,'tool',NULL,'words',?)",
            ((1 << schema.SEQ_BITS) + seq, seq, kind, body),
        )
    before = len(fetch(db, "SELECT id FROM events"))
    db.close()
    db = connect(path)
    assert schema.schema_version(db) == schema.VERSION
    rows = fetch(db, "SELECT failed, interrupted, denied FROM events ORDER BY id")
    assert rows == [found for _, _, found in OUTCOMES]
    assert len(rows) == before
    wrong = SqliteStore(path, db).stats.wrong(Filters())
    assert [(one.kind, one.ran) for one in wrong] == [
        ("approval.resolved", False),
        ("error", False),
        ("tool.result", True),
        ("turn.completed", False),
    ]


def test_what_was_linked_before_squashes_were_known_is_kept_and_looked_at_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        older.setattr(schema, "MIGRATIONS", schema.MIGRATIONS[:15])
        older.setattr(schema, "VERSION", 15)
        db = connect(path)
    add_project(db, "a")
    db.execute("INSERT INTO sessions(id, agent, session_id) VALUES(1, 'claude', 'a')")
    values = "'s', 'ctx-s', 1, 'Add', 'Ada', 'ada@example.org', 1, 1, '[]', 0, NULL, '[]', 'output'"
    db.execute(f"INSERT INTO checkpoints VALUES({values}, 'high', 'ctx-s', NULL, NULL)")
    numbers = "'s', 1, 'output', 'high', 'made', 3, 1, 4, 2, 2, 1, 1, 0, 0, NULL, 'printed it'"
    db.execute(f"INSERT INTO parts VALUES({numbers})")
    db.execute("INSERT INTO linked VALUES(1, 1, 4)")
    db.execute("INSERT INTO tips VALUES(1, '[]')")
    db.close()
    store = SqliteStore(path, connect(path))
    kept = store.checkpoints.of_commits(["s"])["s"]
    assert kept.squashed_from == []
    assert [(part.first, part.last, part.ranges) for part in kept.parts] == [(1, 4, [(1, 4)])]
    assert store.links.tips(1) is None
    assert store.links.candidates(1, [1])[0].linked == -1


@pytest.mark.parametrize(("kind", "data", "found"), OUTCOMES)
def test_what_became_of_a_call_is_stored_with_it_and_with_a_later_version(
    kind: str, data: dict[str, Any] | None, found: tuple[int, int, int], path: Path
) -> None:
    store = SqliteStore(path)
    for version in ("tool.call", kind):
        bucket = Bucket("a")
        given = data if version == kind else None
        bucket.events.append(Event(version, 1, 1, "tool", "words", None, given))
        with store.transaction():
            writer = store.capture.writer()
            writer.apply("claude", bucket, 1, mutable=True)
            writer.finish()
    assert fetch(store.db, "SELECT failed, interrupted, denied FROM events") == [found]
    store.close()


def test_what_went_wrong_is_found_by_its_index(path: Path) -> None:
    db = connect(path)
    asked: list[tuple[str, object]] = []

    def heard(_: object, sql: str, values: object) -> bool:
        asked.append((sql, values))
        return True

    db.exec_trace = heard
    SqliteStore(path, db).stats.wrong(Filters())
    db.exec_trace = None
    [(sql, values)] = asked
    plan = [row[3] for row in fetch(db, f"EXPLAIN QUERY PLAN {sql}", values)]
    assert any("USING INDEX events_wrong" in step for step in plan), plan


def test_the_search_index_of_an_older_database_is_made_anew(path: Path) -> None:
    bucket = Bucket("a")
    middle = "x " * 3000 + "heron " + "y " * 3000
    for number, (kind, text) in enumerate(
        [("user.prompt", "Encrypt it"), ("tool.result", middle), ("assistant.message", "Done")]
    ):
        bucket.events.append(Event(kind, number, number, "user", text))
    bucket.title(TITLE_AGENT, "A title of its own")
    store = SqliteStore(path)
    with store.transaction():
        writer = store.capture.writer()
        writer.apply("claude", bucket, 1, mutable=False)
        writer.finish()
    store.db.execute("INSERT INTO words(words) VALUES('delete-all')")
    store.db.execute("INSERT INTO words(rowid, results) VALUES(?, 'heron')", (1 << 24,))
    downgrade(store.db, 14)
    store.close()
    store = SqliteStore(path)

    def found(word: str) -> list[int]:
        clauses = ((Atom(word),),)
        wanted = PassageQuery(clauses, every=True, within=Query())
        said = store.search.passages(wanted, Filters(), 9)
        return [
            match.first_seq for match in (*said, *store.search.match(Query(clauses), Filters(), 9))
        ]

    assert found("encryption") == [1]
    assert found("encrypt") == [1, 1]
    assert found("title") == [0, 0]
    assert found("heron") == []
    store.close()


def test_somebody_at_a_terminal_is_told_that_an_index_is_made(path: Path) -> None:
    opening = (
        "import pathlib, sys; from whyfor.store.sqlite.connection import connect; "
        "connect(pathlib.Path(sys.argv[1])).close()"
    )
    for terminal, told in ((True, 1), (False, 0)):
        db = connect(path)
        downgrade(db, 14)
        db.close()
        ours, theirs = os.openpty()
        stderr = theirs if terminal else subprocess.PIPE
        done = subprocess.run([sys.executable, "-c", opening, str(path)], stderr=stderr, check=True)
        os.write(theirs, b"end\n")
        said = os.read(ours, 4096) + (done.stderr or b"")
        os.close(ours)
        os.close(theirs)
        assert said.count(b"This happens once.") == told


def test_a_step_that_fails_leaves_the_database_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(path).close()
    before = schema.VERSION
    steps = (*schema.MIGRATIONS, "CREATE TABLE extra(x)", "INSERT INTO nowhere VALUES(1)")
    monkeypatch.setattr(schema, "MIGRATIONS", steps)
    monkeypatch.setattr(schema, "VERSION", len(steps))
    with pytest.raises(StoreFault, match="nowhere"):
        connect(path)
    db = StoreConnection(str(path))
    assert schema.schema_version(db) == before
    assert "extra" not in tables(db)


OPENER = """
import sys
from pathlib import Path
from typing import Any
from whyfor.store.sqlite.connection import connect
print("ready", flush=True)
for line in sys.stdin:
    db = connect(Path(line.strip()))
    db.execute("INSERT INTO projects(identity, evidence, name) VALUES(?, 'path', 'x')", (sys.argv[1],))
    db.close()
    print("done", flush=True)
"""


class Opener:
    """A process that opens the databases it is told to."""

    def __init__(self, name: str) -> None:
        command = [sys.executable, "-c", OPENER, name]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def tell(self, path: Path) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def test_many_processes_may_open_a_fresh_database_at_once(tmp_path: Path) -> None:
    openers = [Opener(str(number)) for number in range(8)]
    try:
        assert [opener.hear() for opener in openers] == ["ready"] * len(openers)
        for path in (tmp_path / f"{number}.db" for number in range(10)):
            for opener in openers:
                opener.tell(path)
            heard = [opener.hear() for opener in openers]
            silent = [
                opener.process
                for opener, said in zip(openers, heard, strict=True)
                if said != "done"
            ]
            assert [process.communicate()[1].splitlines()[-1] for process in silent] == []
            db = connect(path)
            assert schema.schema_version(db) == schema.VERSION
            assert len(fetch(db, "SELECT identity FROM projects")) == len(openers)
            db.close()
    finally:
        for opener in openers:
            opener.process.communicate()  # closes its stdin, which ends it


def test_a_fresh_database_that_another_process_is_making_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # SQLite itself does not wait when two want to switch one database to WAL mode.
    patience = 300
    monkeypatch.setattr(sqlite, "BUSY_MS", patience)
    other = apsw.Connection(str(path))
    other.execute("BEGIN IMMEDIATE")
    begun = time.monotonic()
    with pytest.raises(Busy):
        connect(path)
    assert (time.monotonic() - begun) * 1000 >= patience
    other.execute("ROLLBACK")
    assert schema.schema_version(connect(path)) == schema.VERSION


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
    with pytest.raises(StoreError, match="cannot use"):
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
    assert first_row(db, "SELECT count(*) FROM projects") == (0,)
    assert not db.in_transaction


@pytest.mark.parametrize("readonly", [False, True])
def test_what_is_no_database_is_said_to_be_damaged(readonly: bool, path: Path) -> None:
    path.write_bytes(b"this is no database, but it is long enough to look like one" * 40)
    with pytest.raises(CorruptStore) as told:
        connect(path, readonly=readonly)
    assert "whyfor rebuild" in told.value.hint


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot use"):
        connect(tmp_path / "nowhere" / "whyfor.db")


def test_copies_stored_before_they_were_known_as_such_are_looked_at_once(path: Path) -> None:
    """Version 10 counted all that a session held as its own work."""
    store = SqliteStore(path)
    for name, keys in (("one", (1, 2)), ("again", (1, 2, 3)), ("other", (4,))):
        if name == "other":
            store.db.execute("UPDATE sessions SET copy_of=NULL, own_from=1, prompts=turn")
            store.db.execute("DELETE FROM marks WHERE name='copies'")
        bucket = Bucket(name)
        for key in keys:
            bucket.events.append(Event("user.prompt", key, key, "user", f"ask {key}"))
            bucket.usage.append(Usage(key, key, "big", output=1))
        with store.transaction():
            writer = store.capture.writer()
            writer.apply("claude", bucket, 1, mutable=False)
            writer.finish()
    again = store.sessions.find("again")
    assert (again.copy_of, again.own_from, again.prompts) == ("claude:one", 3, 1)
    store.close()


def test_titles_of_an_older_database_are_made_anew(path: Path) -> None:
    bucket = Bucket("a")
    for number, text in enumerate(("hi", "Mend the gate")):
        bucket.events.append(Event("user.prompt", number, number, "user", text))
    store = SqliteStore(path)
    with store.transaction():
        writer = store.capture.writer()
        writer.apply("claude", bucket, 1, mutable=False)
        writer.finish()
    downgrade(store.db, 19)
    store.db.execute("UPDATE sessions SET title='hi', title_rank=0")
    store.close()
    store = SqliteStore(path)
    found = store.sessions.find("a")
    assert (found.title, found.title_source) == ("Mend the gate", "request")
    store.close()
