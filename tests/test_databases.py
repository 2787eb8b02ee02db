"""An agent that keeps its sessions in a database, from its rows to the screen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from tests.conftest import Result

Cli = Callable[..., Result]
SCHEMA = """
CREATE TABLE session(id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT,
  time_created INTEGER, time_updated INTEGER);
CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER,
  data TEXT);
"""
START = 1_770_000_000_000


@pytest.fixture
def live(home: Path) -> Iterator[apsw.Connection]:
    """OpenCode's database as it is while OpenCode runs: open, and with its newest rows in the
    log beside it."""
    folder = home / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    db = apsw.Connection(str(folder / "opencode.db"))
    db.pragma("journal_mode", "wal")
    db.pragma("wal_autocheckpoint", 0)
    db.execute(SCHEMA)
    db.execute(
        "INSERT INTO session VALUES('ses_1', 'p', NULL, '/code/shop', 'Warm the cache', '1.2.3', "
        "?, ?)",
        (START, START),
    )
    message(db, "msg_1", 1, {"role": "user", "time": {"created": START + 1}})
    part(db, "prt_1", "msg_1", 1, {"type": "text", "text": "Warm the cache at start-up"})
    yield db
    db.close()


def message(db: apsw.Connection, ident: str, at: int, data: object) -> None:
    row = (ident, "ses_1", START + at, START + at, json.dumps(data))
    db.execute("INSERT OR REPLACE INTO message VALUES(?,?,?,?,?)", row)


def part(db: apsw.Connection, ident: str, of: str, at: int, data: object) -> None:
    row = (ident, of, "ses_1", START + at, START + at, json.dumps(data))
    db.execute("INSERT OR REPLACE INTO part VALUES(?,?,?,?,?,?)", row)


def answer(db: apsw.Connection, at: int, text: str, *, done: bool) -> None:
    tokens = {"input": 5, "output": 7, "reasoning": 2, "cache": {"read": 11, "write": 13}}
    times = {"created": START + 2, **({"completed": START + at} if done else {})}
    body = {
        "role": "assistant",
        "modelID": "m-1",
        "providerID": "p",
        "tokens": tokens,
        "time": times,
    }
    message(db, "msg_2", at, body)
    part(db, "prt_2", "msg_2", at, {"type": "text", "text": text})


def test_rows_that_change_replace_what_was_said_before(live: apsw.Connection, cli: Cli) -> None:
    answer(live, 2, "Working on the albatross", done=False)
    assert cli("ingest", "--json").json["sessions"] == 1
    first = cli("show", "ses_1", "--json").json
    answer(live, 9, "The pelican is warm now", done=True)
    assert cli("ingest", "--json").json["new_records"] > 0
    second = cli("show", "ses_1", "--json").json
    said = [(e["seq"], e["text"]) for e in second["events"] if e["kind"] == "assistant.message"]
    assert said == [
        (e["seq"], "The pelican is warm now")
        for e in first["events"]
        if e["kind"] == "assistant.message"
    ]
    assert cli("search", "albatross", "--json").json == []
    assert len(cli("search", "pelican", "--json").json) == 1
    (session,) = cli("sessions", "--json").json
    assert (session["title"], session["cwd"], session["prompts"]) == (
        "Warm the cache",
        "/code/shop",
        1,
    )
    assert session["tokens"] == {
        "input": 5,
        "cache_read": 11,
        "cache_write": 13,
        "output": 7,
        "reasoning": 2,
    }


def test_a_second_run_finds_nothing_new_and_a_rebuild_changes_nothing(
    live: apsw.Connection, cli: Cli
) -> None:
    answer(live, 2, "One", done=False)
    cli("ingest")
    answer(live, 9, "Two", done=True)
    cli("ingest")
    assert cli("ingest", "--json").json["new_records"] == 0
    before = cli("show", "ses_1", "--json").json
    raw = cli("show", "ses_1", "--raw").out
    assert cli("rebuild").code == 0
    assert cli("show", "ses_1", "--json").json == before
    assert cli("show", "ses_1", "--raw").out == raw
    assert cli("ingest", "--json").json["new_records"] == 0
