"""OpenCode's database: read beside a writer, row by row, leaving no trace."""

from __future__ import annotations

import copy
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import apsw
import pytest

from whyfor.agents.base import Rows, SourceShape
from whyfor.agents.databases.connection import Database
from whyfor.agents.opencode import AGENT, changes
from whyfor.model.events import Event
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold
from whyfor.model.titles import TITLE_AGENT

T0 = 1777629600000
TIMES = "time_created integer, time_updated integer"
SCHEMA = f"""
CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, directory text, title text, version text,
    share_url text, revert text, agent text, cost real, {TIMES});
CREATE TABLE message (id text PRIMARY KEY, session_id text, {TIMES}, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, {TIMES}, data text);
CREATE INDEX part_session_idx ON part (session_id);
"""


class Writer:
    """An OpenCode in miniature: rows are inserted, and replaced with a later time."""

    def __init__(self, path: Path, schema: str = SCHEMA) -> None:
        self.path = path
        self.clock = T0
        self.db = apsw.Connection(str(path))
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute(schema)

    def _put(self, table: str, **row: object) -> None:
        self.clock += 1000
        row = {"time_created": self.clock, "time_updated": self.clock, **row}
        kept = ", ".join(f"{name}=excluded.{name}" for name in row if name != "time_created")
        marks = ", ".join("?" * len(row))
        self.db.execute(
            f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks}) ON CONFLICT DO UPDATE SET "
            f"{kept}",
            tuple(row.values()),
        )

    def session(self, ident: str = "ses_1", **row: object) -> None:
        self._put(
            "session",
            **{"id": ident, "directory": "/work", "title": "A title", "version": "1.2.3", **row},
        )

    def user(self, ident: str, session: str = "ses_1", **data: object) -> None:
        about = {"role": "user", "time": {"created": self.clock + 1000}, **data}
        self._put("message", id=ident, session_id=session, data=json.dumps(about))

    def assistant(self, ident: str, session: str = "ses_1", **data: object) -> None:
        about = {
            "role": "assistant",
            "modelID": "m1",
            "providerID": "p1",
            "time": {"created": self.clock + 1000},
            **data,
        }
        self._put("message", id=ident, session_id=session, data=json.dumps(about))

    def part(
        self, ident: str, message: str, kind: str, session: str = "ses_1", **data: object
    ) -> None:
        self._put(
            "part",
            id=ident,
            message_id=message,
            session_id=session,
            data=json.dumps({"type": kind, **data}),
        )

    def tool(
        self,
        ident: str,
        message: str,
        tool: str,
        given: Record,
        status: str = "completed",
        **state: object,
    ) -> None:
        about = {"status": status, "input": given, **state}
        self.part(ident, message, "tool", tool=tool, callID=f"call_{ident}", state=about)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "opencode"
    folder.mkdir()
    return folder / "opencode.db"


@pytest.fixture
def writer(path: Path) -> Iterator[Writer]:
    """A process that has the database open."""
    found = Writer(path)
    yield found
    found.db.close()


def talk(writer: Writer) -> None:
    writer.session()
    writer.user("msg_1")
    writer.part("prt_1", "msg_1", "text", text="Fix it.")
    writer.assistant("msg_2")
    writer.part("prt_2", "msg_2", "text", text="Done.")


class Reading:
    """What a store would have: positions and state carried from call to call through JSON."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.positions: dict[str, Record] = {}
        self.states: dict[str, Record] = {}
        self.sinks: dict[str, Sink] = {}

    def go(self) -> list[Rows]:
        found = list(AGENT.rows(self.path, self.positions))
        for rows in found:
            self.positions[rows.session_id] = json.loads(json.dumps(rows.position))
            sink = self.sinks.setdefault(rows.session_id, Sink(rows.session_id, rows.parent))
            reader = AGENT.reader(
                SourceShape("lines", rows.session_id, rows.parent),
                self.states.get(rows.session_id, {}),
            )
            for line in rows.lines.splitlines():
                reader.read(json.loads(line), 0, line, sink)
            self.states[rows.session_id] = json.loads(json.dumps(reader.state))
        return found

    def sink(self, session: str = "ses_1") -> Sink:
        return self.sinks[session]


def read(writer: Writer) -> Sink:
    reading = Reading(writer.path)
    reading.go()
    return reading.sink()


def latest(sink: Sink) -> list[Event]:
    """As the store has it: of one key the last version, in the place of the first."""
    events: dict[int, Event] = {}
    for event in sink.main.events:
        events[event.key] = event
    return list(events.values())


def only(sink: Sink, kind: str) -> Event:
    (event,) = (event for event in latest(sink) if event.kind == kind)
    return event


def rows_of(found: list[Rows]) -> list[tuple[str, str]]:
    lines = [json.loads(line) for rows in found for line in rows.lines.splitlines()]
    return [(line["type"], line["row"]["id"]) for line in lines]


# -- where it writes -----------------------------------------------------------------------------


def test_its_folder_follows_xdg_and_its_own_variable() -> None:
    home, usual = Path("/home/ada"), Path("/home/ada/.local/share/opencode")
    assert AGENT.roots(home, {}) == [usual]
    assert AGENT.roots(home, {"XDG_DATA_HOME": "/data"}) == [Path("/data/opencode")]
    assert AGENT.roots(home, {"OPENCODE_DB": "/else/where.db"}) == [Path("/else/where.db")]
    assert AGENT.roots(home, {"OPENCODE_DB": "mine.db"}) == [usual / "mine.db"]
    assert AGENT.roots(home, {"OPENCODE_DB": ":memory:"}) == [usual]


def test_the_databases_of_all_channels_are_found_and_nothing_else(tmp_path: Path) -> None:
    for name in (
        "opencode.db",
        "opencode-dev.db",
        "opencode.db-wal",
        "opencode.db-shm",
        "other.db",
        "auth.json",
    ):
        (tmp_path / name).touch()
    complaints: list[OSError] = []
    assert [path.name for path in AGENT.find(tmp_path, complaints.append)] == [
        "opencode-dev.db",
        "opencode.db",
    ]
    assert list(AGENT.find(tmp_path / "missing", complaints.append)) == []
    assert len(complaints) == 1


def test_a_database_is_known_by_its_tables_whatever_its_name(tmp_path: Path) -> None:
    ours, other = tmp_path / "renamed.txt", tmp_path / "opencode.db"
    Writer(ours).db.close()
    Writer(other, "CREATE TABLE session (id text); CREATE TABLE message (id text)").db.close()
    assert AGENT.sniff(ours, ours.read_bytes()) == SourceShape("rows", "")
    assert AGENT.sniff(other, other.read_bytes()) is None
    assert AGENT.sniff(tmp_path / "nowhere", b'{"type":"session"}\n') is None


def test_a_damaged_database_is_an_unreadable_file(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + b"\1" * 2000)
    for attempt in (
        lambda: AGENT.sniff(path, path.read_bytes()),
        lambda: list(AGENT.rows(path, {})),
    ):
        with pytest.raises(OSError) as raised:
            attempt()
        assert raised.value.filename == str(path)


# -- reading without a trace ---------------------------------------------------------------------


def files(path: Path) -> dict[str, bytes]:
    """All of the folder but the index of the log, which every reader of it writes its mark into."""
    return {
        file.name: b"" if file.name.endswith("-shm") else file.read_bytes()
        for file in path.parent.iterdir()
    }


def test_it_reads_while_another_process_is_in_the_middle_of_writing(writer: Writer) -> None:
    talk(writer)
    writer.db.execute("BEGIN IMMEDIATE")
    writer.assistant("msg_3")
    reading = Reading(writer.path)
    assert ("message", "msg_3") not in rows_of(reading.go())
    writer.db.execute("COMMIT")
    assert rows_of(reading.go()) == [("message", "msg_3")]


def test_a_writer_never_waits_for_a_reader(writer: Writer) -> None:
    talk(writer)
    writer.session("ses_2")
    batches = AGENT.rows(writer.path, {})
    next(batches)
    writer.db.set_busy_timeout(0)
    writer.assistant("msg_3")
    busy, in_log, moved = next(writer.db.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
    assert (busy, in_log, moved) == (0, 0, 0)
    assert [rows.session_id for rows in batches] == ["ses_2"]


def test_it_writes_nothing_beside_a_live_database(writer: Writer) -> None:
    talk(writer)
    before = files(writer.path)
    assert AGENT.sniff(writer.path, writer.path.read_bytes()) is not None
    assert len(Reading(writer.path).go()) == 1
    assert files(writer.path) == before


def test_it_creates_no_file_beside_a_database_at_rest(path: Path) -> None:
    writer = Writer(path)
    talk(writer)
    writer.db.close()
    before = files(path)
    assert list(before) == ["opencode.db"]
    assert AGENT.sniff(path, path.read_bytes()) is not None
    assert len(Reading(path).go()) == 1
    assert files(path) == before


def test_it_reads_what_a_crash_left_in_the_log_and_leaves_it_there(
    writer: Writer, tmp_path: Path
) -> None:
    talk(writer)
    crashed = tmp_path / "crashed" / "opencode.db"
    crashed.parent.mkdir()
    for suffix in ("", "-wal"):
        shutil.copy(f"{writer.path}{suffix}", f"{crashed}{suffix}")
    before = files(crashed)
    assert ("part", "prt_2") in rows_of(Reading(crashed).go())
    assert files(crashed) == before


def test_it_notices_that_a_database_at_rest_is_written_to_while_it_reads(path: Path) -> None:
    first = Writer(path)
    talk(first)
    first.session("ses_2")
    first.db.close()
    batches = AGENT.rows(path, {})
    assert next(batches).session_id == "ses_1"
    second = Writer(path, "")
    second.clock = first.clock
    second.user("msg_9", "ses_2")
    assert rows_of(list(batches)) == [("session", "ses_2"), ("message", "msg_9")]
    second.db.close()


def unprivileged(path: Path, work: Callable[[], bool]) -> bool:
    """Whether the work succeeds for somebody who may only read the folder; root may write
    anywhere."""
    for file in path.parent.iterdir():
        file.chmod(0o444)
    path.parent.chmod(0o555)
    with warnings.catch_warnings():
        # other threads are none of the child's business
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
            os._exit(0 if work() else 1)
        except BaseException:  # noqa: BLE001 - a child must end here, whatever happens
            os._exit(2)
    _, status = os.waitpid(child, 0)
    path.parent.chmod(0o755)
    return os.waitstatus_to_exitcode(status) == 0


@pytest.mark.parametrize("state", ["at rest", "live", "crashed"])
def test_it_reads_in_a_folder_it_may_not_write_to(state: str) -> None:
    with TemporaryDirectory(dir="/tmp") as folder:  # pytest's own is closed to other users
        Path(folder).chmod(0o755)
        path = Path(folder, "database", "opencode.db")
        path.parent.mkdir()
        writer = Writer(path)
        talk(writer)
        if state == "at rest":
            writer.db.close()
        elif state == "crashed":
            rescued = [
                (file, file.read_bytes())
                for file in path.parent.iterdir()
                if not file.name.endswith("-shm")
            ]
            writer.db.close()
            for file, data in rescued:
                file.write_bytes(data)
        before = sorted(path.parent.iterdir())
        assert unprivileged(path, lambda: ("part", "prt_2") in rows_of(list(AGENT.rows(path, {}))))
        assert sorted(path.parent.iterdir()) == before
        writer.db.close()


def test_a_path_with_odd_characters_is_opened(tmp_path: Path) -> None:
    folder = tmp_path / "a ?b#c%20d"
    folder.mkdir()
    writer = Writer(folder / "opencode.db")
    talk(writer)
    assert len(Reading(writer.path).go()) == 1
    writer.db.close()


# -- what is new ---------------------------------------------------------------------------------


def test_rows_come_as_they_follow_each_other_each_part_after_its_message(writer: Writer) -> None:
    writer.part("prt_1", "msg_1", "text", text="early")
    writer.assistant("msg_2")
    writer.user("msg_1", time={"created": 1})
    writer.db.execute("UPDATE message SET time_created=1 WHERE id='msg_1'")
    writer.part("prt_0", "msg_1", "text", text="first")
    writer.session()
    (rows,) = AGENT.rows(writer.path, {})
    assert (rows.session_id, rows.parent) == ("ses_1", None)
    assert rows_of([rows]) == [
        ("session", "ses_1"),
        ("message", "msg_1"),
        ("part", "prt_0"),
        ("part", "prt_1"),
        ("message", "msg_2"),
    ]


def test_a_row_is_kept_as_it_is_with_all_its_columns(writer: Writer) -> None:
    writer.session()
    writer.db.execute("ALTER TABLE session ADD COLUMN novelty text")
    writer.db.execute(
        "INSERT INTO message VALUES ('msg_1', 'ses_1', 1, 2, '{ \"role\" :\"user\",  \"x\":1.50}')"
    )
    (rows,) = AGENT.rows(writer.path, {})
    session, message = map(json.loads, rows.lines.splitlines())
    assert session["row"]["novelty"] is None
    assert message == {
        "type": "message",
        "row": {
            "id": "msg_1",
            "session_id": "ses_1",
            "time_created": 1,
            "time_updated": 2,
            "data": '{ "role" :"user",  "x":1.50}',
        },
    }


def test_a_second_look_finds_nothing(writer: Writer) -> None:
    talk(writer)
    writer.session("ses_2", parent_id="ses_1")
    reading = Reading(writer.path)
    assert [(rows.session_id, rows.parent) for rows in reading.go()] == [
        ("ses_1", None),
        ("ses_2", "ses_1"),
    ]
    assert reading.go() == []


def test_only_what_is_new_comes_and_the_message_of_a_new_part_again(writer: Writer) -> None:
    talk(writer)
    reading = Reading(writer.path)
    reading.go()
    writer.part("prt_3", "msg_2", "text", text="And more.")
    assert rows_of(reading.go()) == [("message", "msg_2"), ("part", "prt_3")]


def test_all_parts_of_a_prompt_come_when_one_of_them_is_new(writer: Writer) -> None:
    talk(writer)
    reading = Reading(writer.path)
    reading.go()
    writer.clock += 60_000
    writer.part("prt_9", "msg_1", "text", text="Please.")
    assert rows_of(reading.go()) == [("message", "msg_1"), ("part", "prt_1"), ("part", "prt_9")]
    assert only(reading.sink(), "user.prompt").text == "Fix it.\nPlease."


def test_an_updated_row_replaces_its_events(writer: Writer) -> None:
    talk(writer)
    writer.tool("prt_3", "msg_2", "bash", {}, "pending")
    reading = Reading(writer.path)
    reading.go()
    keys = [event.key for event in latest(reading.sink())]
    writer.clock += 60_000
    writer.part("prt_2", "msg_2", "text", text="Done and tested.")
    writer.tool("prt_3", "msg_2", "bash", {"command": "ls"}, output="a", metadata={"exit": 0})
    assert rows_of(reading.go()) == [("message", "msg_2"), ("part", "prt_2"), ("part", "prt_3")]
    events = latest(reading.sink())
    assert [event.key for event in events] == [*keys, fold("call_prt_3", "result")]
    assert only(reading.sink(), "assistant.message").text == "Done and tested."
    assert only(reading.sink(), "tool.call").text == "ls"


def test_rows_of_the_same_millisecond_are_neither_missed_nor_repeated(writer: Writer) -> None:
    talk(writer)
    reading = Reading(writer.path)
    reading.go()
    now = writer.clock
    insert = (
        'INSERT INTO part VALUES (?, \'msg_2\', \'ses_1\', ?, ?, \'{"type":"text","text":"x"}\')'
    )
    writer.db.execute(insert, ("prt_7", now, now))
    assert rows_of(reading.go()) == [("message", "msg_2"), ("part", "prt_7")]
    writer.db.execute(insert, ("prt_8", now, now))
    assert rows_of(reading.go()) == [("message", "msg_2"), ("part", "prt_8")]
    assert reading.go() == []


def test_a_row_changed_twice_in_one_millisecond_is_noticed_with_the_next_change(
    writer: Writer,
) -> None:
    talk(writer)
    reading = Reading(writer.path)
    reading.go()
    writer.db.execute("UPDATE part SET data=replace(data, 'Done', 'Gone') WHERE id='prt_2'")
    writer.session(title="Another title")
    assert rows_of(reading.go()) == [("session", "ses_1"), ("message", "msg_2"), ("part", "prt_2")]


def test_a_clock_that_was_set_back_hides_nothing(writer: Writer) -> None:
    talk(writer)
    writer.tool("prt_3", "msg_2", "bash", {}, "running")
    reading = Reading(writer.path)
    reading.go()
    writer.clock -= 5 * 3600_000
    writer.user("msg_3")
    writer.part("prt_4", "msg_3", "text", text="Still here.")
    assert ("part", "prt_4") in rows_of(reading.go())
    writer.part("prt_4", "msg_3", "text", text="Still here!")
    assert ("part", "prt_4") in rows_of(reading.go())
    writer.db.execute("UPDATE part SET time_updated=? WHERE id='prt_3'", (T0 - 9 * 3600_000,))
    assert ("part", "prt_3") in rows_of(reading.go())
    assert reading.go() == []


def test_rows_that_were_deleted_take_nothing_with_them(writer: Writer) -> None:
    talk(writer)
    reading = Reading(writer.path)
    reading.go()
    writer.db.execute("DELETE FROM part WHERE id='prt_2'")
    assert reading.go() == []
    writer.part("prt_3", "msg_2", "text", text="Instead.")
    assert rows_of(reading.go()) == [("message", "msg_2"), ("part", "prt_3")]
    writer.db.execute("DELETE FROM session")
    assert reading.go() == []


def test_tables_without_times_are_read_all_the_same(path: Path) -> None:
    writer = Writer(
        path,
        "CREATE TABLE session (id text PRIMARY KEY); CREATE TABLE message (id text PRIMARY KEY, "
        "session_id, data);"
        "CREATE TABLE part (id text PRIMARY KEY, message_id, session_id, data)",
    )
    writer.db.execute("INSERT INTO session VALUES ('ses_1')")
    writer.db.execute("INSERT INTO message VALUES ('msg_1', 'ses_1', '{\"role\":\"assistant\"}')")
    writer.db.execute(
        "INSERT INTO part VALUES ('prt_1', 'msg_1', 'ses_1', '{\"type\":\"text\",\"text\":\"a\"}')"
    )
    reading = Reading(path)
    assert len(rows_of(reading.go())) == 3
    assert reading.go() == []
    writer.db.execute("UPDATE part SET data=replace(data, 'a', 'b')")
    assert rows_of(reading.go()) == [("message", "msg_1"), ("part", "prt_1")]
    writer.db.close()


def test_much_that_is_new_comes_in_pieces_from_each_of_which_one_can_go_on(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "BATCH", 2000)
    writer.session()
    for number in range(12):
        writer.user(f"msg_{number:02}a")
        for part in range(3):
            writer.part(f"prt_{number:02}a{part}", f"msg_{number:02}a", "text", text="p" * 300)
        writer.assistant(f"msg_{number:02}b")
        for part in range(8):
            writer.part(f"prt_{number:02}b{part}", f"msg_{number:02}b", "text", text="a" * 300)
    whole = Reading(writer.path)
    batches = whole.go()
    assert len(batches) > 10
    assert max(len(rows.lines) for rows in batches) < 4500
    assert whole.go() == []
    interrupted = Reading(writer.path)
    for _ in range(len(batches)):
        (first, *_) = AGENT.rows(writer.path, interrupted.positions)
        interrupted.positions["ses_1"] = json.loads(json.dumps(first.position))
        sink = interrupted.sinks.setdefault("ses_1", Sink("ses_1"))
        reader = AGENT.reader(
            SourceShape("lines", "ses_1"), interrupted.states.setdefault("ses_1", {})
        )
        for line in first.lines.splitlines():
            reader.read(json.loads(line), 0, line, sink)
    assert list(AGENT.rows(writer.path, interrupted.positions)) == []
    assert latest(interrupted.sink()) == latest(whole.sink())
    assert len(latest(whole.sink())) == 1 + 12 + 12 * 8
    assert len(json.dumps(whole.positions["ses_1"])) < 2000


# -- what the rows mean --------------------------------------------------------------------------


def test_a_whole_session(writer: Writer) -> None:
    talk(writer)
    sink = read(writer)
    data = {"cwd": "/work", "version": "1.2.3"}
    assert sink.main.events == [
        Event("session.started", fold("ses_1", "started"), T0 + 1000, "system", "", None, data),
        Event("user.prompt", fold("msg_1", "said"), T0 + 2000, "user", "Fix it."),
        Event(
            "assistant.message",
            fold("prt_2"),
            T0 + 5000,
            "assistant",
            "Done.",
            None,
            {"model": "m1"},
        ),
    ]
    assert sink.main.facts == {
        "cwd": "/work",
        "version": "1.2.3",
        "title": "A title",
        "title_rank": TITLE_AGENT,
    }
    assert sink.unknown == {}


@pytest.mark.parametrize(
    "title", ["New session - 2026-05-01T10:00:00.000Z", "Child session - 2026-05-01T10:00:00.000Z"]
)
def test_a_title_nobody_gave_is_none(writer: Writer, title: str) -> None:
    writer.session(title=title)
    assert "title" not in read(writer).main.facts


def test_a_subagent_is_a_session_with_a_parent_and_its_task_is_the_parents(writer: Writer) -> None:
    writer.session("ses_2", parent_id="ses_1", title="Find it (@explore subagent)")
    writer.user("msg_1", "ses_2")
    writer.part("prt_1", "msg_1", "text", session="ses_2", text="Find it.")
    reading = Reading(writer.path)
    (rows,) = reading.go()
    assert rows.parent == "ses_1"
    assert only(reading.sink("ses_2"), "user.prompt").actor == "assistant"
    assert reading.sink("ses_2").main.facts["subagent"] == "explore"


def test_a_prompt_is_what_was_typed_with_its_files_as_references(writer: Writer) -> None:
    writer.session()
    writer.user("msg_1")
    writer.part("prt_1", "msg_1", "text", text="Called the Read tool", synthetic=True)
    writer.part("prt_2", "msg_1", "text", text="not for the model", ignored=True)
    writer.part(
        "prt_3", "msg_1", "file", mime="text/plain", filename="a.txt", url="file:///code/a.txt"
    )
    writer.part("prt_4", "msg_1", "file", mime="image/png", url="data:image/png;base64," + "A" * 98)
    writer.part("prt_5", "msg_1", "text", text="Look at these.")
    prompt = only(read(writer), "user.prompt")
    assert (prompt.created_at, prompt.text) == (T0 + 2000, "Look at these.")
    assert prompt.data == {
        "images": [
            {
                "block": 0,
                "type": "file",
                "media_type": "text/plain",
                "filename": "a.txt",
                "url": "file:///code/a.txt",
            },
            {"block": 1, "type": "file", "media_type": "image/png", "bytes": 90},
        ]
    }


def test_thinking_is_kept_apart(writer: Writer) -> None:
    writer.session()
    writer.assistant("msg_1")
    writer.part("prt_1", "msg_1", "reasoning", text="Hm.", time={"start": T0 + 7, "end": T0 + 9})
    thinking = only(read(writer), "assistant.thinking")
    assert (thinking.text, thinking.created_at, thinking.data) == ("Hm.", T0 + 7, {"model": "m1"})


def test_a_call_and_its_result(writer: Writer) -> None:
    writer.session()
    writer.assistant("msg_1")
    given, times = {"filePath": "/code/a.py"}, {"start": T0 + 10, "end": T0 + 20}
    writer.tool("prt_1", "msg_1", "read", given, output="alpha", metadata={}, time=times)
    sink = read(writer)
    about = {"id": "call_prt_1", "input": given}
    assert sink.main.events[1:] == [
        Event("tool.call", fold("call_prt_1"), T0 + 10, "assistant", "/code/a.py", "read", about),
        Event(
            "tool.result",
            fold("call_prt_1", "result"),
            T0 + 20,
            "tool",
            "alpha",
            None,
            {"id": "call_prt_1"},
        ),
    ]
    assert [(touch.key, touch.path, touch.action) for touch in sink.main.touches] == [
        (fold("call_prt_1", "result"), "/code/a.py", "read")
    ]


def test_edits_have_their_diffs_and_touch_their_files(writer: Writer) -> None:
    writer.session()
    writer.assistant("msg_1")
    writer.tool(
        "prt_1", "msg_1", "edit", {"filePath": "/code/a"}, output="ok", metadata={"diff": "-x\n+y"}
    )
    moved = [
        {"filePath": "/code/b", "type": "move", "movePath": "/code/c"},
        {"filePath": "/code/d"},
    ]
    writer.tool(
        "prt_2",
        "msg_1",
        "apply_patch",
        {"patchText": "*** Begin"},
        output="ok",
        metadata={"files": moved},
    )
    writer.part("prt_3", "msg_1", "patch", hash="abc", files=["/code/e"])
    sink = read(writer)
    results = [event.data for event in sink.main.events if event.kind == "tool.result"]
    assert results == [{"id": "call_prt_1", "diff": "-x\n+y"}, {"id": "call_prt_2"}]
    assert only(sink, "status.changed").data == {"files": ["/code/e"], "hash": "abc"}
    assert [(touch.path, touch.action) for touch in sink.main.touches] == [
        (f"/code/{n}", "write") for n in "abcde"
    ]


def test_failed_calls_touch_nothing(writer: Writer) -> None:
    writer.session()
    writer.assistant("msg_1")
    writer.tool("prt_1", "msg_1", "write", {"filePath": "/code/a"}, "error", error="no such folder")
    writer.tool("prt_2", "msg_1", "bash", {"command": "false"}, output="", metadata={"exit": 3})
    sink = read(writer)
    results = [
        (event.text, event.data) for event in sink.main.events if event.kind == "tool.result"
    ]
    assert results == [
        ("no such folder", {"id": "call_prt_1", "failed": True}),
        ("", {"id": "call_prt_2", "exit_code": 3, "failed": True}),
    ]
    assert sink.main.touches == []


def test_a_refused_call_is_a_denied_approval(writer: Writer) -> None:
    writer.session()
    writer.assistant("msg_1")
    reason = "The user rejected permission to use this specific tool call."
    writer.tool("prt_1", "msg_1", "bash", {"command": "rm"}, "error", error=reason)
    sink = read(writer)
    assert only(sink, "tool.result").data == {"id": "call_prt_1", "failed": True, "rejected": True}
    assert only(sink, "approval.resolved").data == {"id": "call_prt_1", "decision": "denied"}


def test_a_subagent_is_started_and_stopped_with_its_session(writer: Writer) -> None:
    writer.session()
    writer.assistant("msg_1")
    given = {"description": "find it", "prompt": "Find the thing.", "subagent_type": "explore"}
    writer.tool("prt_1", "msg_1", "task", given, output="Found.", metadata={"sessionId": "ses_2"})
    sink = read(writer)
    assert [event.kind for event in sink.main.events[1:]] == [
        "tool.call",
        "subagent.started",
        "tool.result",
        "subagent.stopped",
    ]
    started = only(sink, "subagent.started")
    assert (started.name, started.text) == ("explore", "find it")
    assert started.data == {"id": "call_prt_1", "prompt": "Find the thing.", "subagent": "ses_2"}
    assert only(sink, "tool.result").data == {"id": "call_prt_1", "subagent": "ses_2"}


def test_a_command_that_starts_a_subagent(writer: Writer) -> None:
    writer.session()
    writer.user("msg_1")
    writer.part(
        "prt_1",
        "msg_1",
        "subtask",
        prompt="Review all.",
        description="review",
        agent="explore",
        command="review",
    )
    started = only(read(writer), "subagent.started")
    assert (started.actor, started.name, started.text) == ("user", "explore", "review")


def test_a_question_to_the_person(writer: Writer) -> None:
    writer.session()
    writer.assistant("msg_1")
    given = {"questions": [{"question": "Which?"}, {"question": "When?"}]}
    writer.tool(
        "prt_1", "msg_1", "question", given, output="a", metadata={"answers": [["a"], ["b"]]}
    )
    sink = read(writer)
    assert only(sink, "question.asked").text == "Which?\nWhen?"
    assert only(sink, "tool.result").data == {"id": "call_prt_1", "answers": [["a"], ["b"]]}


def test_calls_that_share_an_id_are_told_apart(writer: Writer) -> None:
    writer.session()
    writer.assistant("msg_1")
    reading = Reading(writer.path)
    for number in (1, 2):
        state = {"status": "completed", "input": {"command": f"ls {number}"}, "output": f"{number}"}
        writer.part(
            f"prt_{number}", "msg_1", "tool", tool="bash", callID="functions.bash:0", state=state
        )
        reading.go()
    assert [event.text for event in latest(reading.sink()) if event.kind == "tool.call"] == [
        "ls 1",
        "ls 2",
    ]


def test_a_call_to_a_tool_that_does_not_exist_keeps_its_name(writer: Writer) -> None:
    writer.session()
    writer.assistant("msg_1")
    writer.tool(
        "prt_1",
        "msg_1",
        "invalid",
        {"tool": "teleport", "error": "no such tool"},
        output="no such tool",
    )
    assert only(read(writer), "tool.call").name == "teleport"


def test_a_compaction_is_asked_for_and_summarised(writer: Writer) -> None:
    writer.session()
    writer.user("msg_1")
    writer.part("prt_1", "msg_1", "compaction", auto=True)
    writer.assistant("msg_2", summary=True)
    writer.part("prt_2", "msg_2", "text", text="So far …")
    events = read(writer).main.events[1:]
    assert [(event.kind, event.text, event.data) for event in events] == [
        ("compaction", "", {"auto": True}),
        ("compaction", "So far …", {"model": "m1", "summary": True}),
    ]


def test_errors_retries_and_interruptions(writer: Writer) -> None:
    writer.session()
    refused = {"name": "APIError", "data": {"message": "overloaded", "statusCode": 529}}
    writer.assistant("msg_1", error=refused)
    writer.assistant("msg_2")
    writer.part("prt_1", "msg_2", "retry", attempt=1, error=refused, time={"created": T0 + 5})
    writer.assistant("msg_3", error={"name": "MessageAbortedError", "data": {"message": "aborted"}})
    events = read(writer).main.events[1:]
    assert [(event.kind, event.actor, event.text, event.data) for event in events] == [
        ("error", "system", "overloaded", {"error": "APIError", "status": 529}),
        ("error", "system", "overloaded", {"error": "APIError", "status": 529}),
        ("turn.completed", "user", "aborted", {"interrupted": True}),
    ]
    assert events[1].created_at == T0 + 5


def test_a_revert_keeps_the_events_and_says_so(writer: Writer) -> None:
    talk(writer)
    reading = Reading(writer.path)
    reading.go()
    writer.session(revert=json.dumps({"messageID": "msg_1"}))
    reading.go()
    reading.go()
    assert only(reading.sink(), "status.changed").data == {"rewound_to": "msg_1"}
    assert len(latest(reading.sink())) == 4


def test_a_change_of_folder_is_told(writer: Writer) -> None:
    writer.session()
    writer.assistant("msg_1", path={"cwd": "/work", "root": "/work"})
    writer.assistant("msg_2", path={"cwd": "/code/deeper", "root": "/work"})
    sink = read(writer)
    assert only(sink, "status.changed").data == {"cwd": "/code/deeper"}
    assert sink.main.facts["cwd"] == "/work"


def test_steps_and_snapshots_say_nothing_and_the_unknown_is_counted(writer: Writer) -> None:
    writer.session()
    writer.assistant("msg_1")
    for number, kind in enumerate(("step-start", "step-finish", "snapshot", "agent", "hologram")):
        writer.part(f"prt_{number}", "msg_1", kind)
    writer.db.execute("INSERT INTO message VALUES ('msg_2', 'ses_1', 1, 1, 'not json')")
    sink = read(writer)
    assert [event.kind for event in sink.main.events] == ["session.started"]
    assert sink.unknown == {"part hologram": 1, "message None": 1}


def test_half_an_emoji_is_no_reason_to_lose_a_result(writer: Writer) -> None:
    writer.session()
    writer.assistant("msg_1")
    writer.tool(
        "prt_1", "msg_1", "bash", {"command": "cat"}, output="cut \ud83d", title="whole \U0001f600"
    )
    result = only(read(writer), "tool.result")
    assert result.text == "cut \ufffd"


def test_text_that_is_no_unicode_is_read_as_far_as_it_is(writer: Writer) -> None:
    writer.session()
    writer.db.execute("UPDATE session SET title=CAST(x'41ff42' AS TEXT)")
    assert read(writer).main.facts["title"] == "A\ufffdB"


# -- tokens --------------------------------------------------------------------------------------

TOKENS = {"total": 66, "input": 1, "output": 2, "reasoning": 3, "cache": {"read": 20, "write": 40}}


def test_tokens_are_taken_as_they_are_from_the_message_alone(writer: Writer) -> None:
    writer.session()
    writer.assistant("msg_1", tokens=TOKENS, time={"created": T0, "completed": T0 + 9})
    writer.part("prt_1", "msg_1", "step-finish", tokens=TOKENS)
    (usage,) = read(writer).main.usage
    assert (usage.model, usage.created_at) == ("m1", T0)
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning) == (
        1,
        20,
        40,
        2,
        3,
    )


def test_what_is_not_known_yet_is_not_zero(writer: Writer) -> None:
    writer.session()
    zero = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    writer.assistant("msg_1", tokens=zero)
    writer.assistant("msg_2", tokens=zero, time={"created": T0, "completed": T0 + 9})
    writer.assistant("msg_3", tokens={"output": 5}, time={"created": T0, "completed": T0 + 9})
    (usage,) = read(writer).main.usage
    assert (usage.input, usage.cache_read, usage.output) == (None, None, 5)


def test_a_response_that_a_fork_copied_under_a_new_id_is_counted_once(writer: Writer) -> None:
    times = {"created": T0, "completed": T0 + 9}
    for number in (1, 2):
        writer.session(f"ses_{number}")
        writer.assistant(f"msg_{number}", f"ses_{number}", tokens=TOKENS, time=times)
    writer.assistant(
        "msg_3", "ses_2", tokens=TOKENS, time={"created": T0 + 10, "completed": T0 + 19}
    )
    reading = Reading(writer.path)
    reading.go()
    original, fork = (
        [usage.key for usage in reading.sink(s).main.usage] for s in ("ses_1", "ses_2")
    )
    assert original == fork[:1]
    assert len(set(fork)) == 2


# -- properties ----------------------------------------------------------------------------------


def everything(writer: Writer) -> Iterator[None]:
    """A session with all there is, change by change."""
    steps: list[Callable[[], None]] = [
        lambda: writer.session(title="New session - 2026-05-01T10:00:00.000Z"),
        lambda: writer.user("msg_1"),
        lambda: writer.part("prt_1", "msg_1", "file", mime="image/png", url="data:AAAA"),
        lambda: writer.part("prt_2", "msg_1", "text", text="Go."),
        lambda: writer.assistant("msg_2", path={"cwd": "/work"}),
        lambda: writer.part("prt_3", "msg_2", "reasoning", text="Hm."),
        lambda: writer.tool("prt_4", "msg_2", "task", {"prompt": "p"}, "running"),
        lambda: writer.tool(
            "prt_4", "msg_2", "task", {"prompt": "p"}, output="o", metadata={"sessionId": "ses_2"}
        ),
        lambda: writer.tool(
            "prt_5", "msg_2", "edit", {"filePath": "/a"}, output="o", metadata={"diff": "d"}
        ),
        lambda: writer.tool(
            "prt_6", "msg_2", "bash", {}, "error", error="The user rejected permission"
        ),
        lambda: writer.tool(
            "prt_7", "msg_2", "question", {"questions": [{"question": "?"}]}, output="!"
        ),
        lambda: writer.tool(
            "prt_8", "msg_2", "patch", {}, output="", metadata={"files": [{"filePath": "/b"}]}
        ),
        lambda: writer.part("prt_9", "msg_2", "patch", files=["/a"], hash="h"),
        lambda: writer.part(
            "prt_a", "msg_2", "retry", error={"name": "APIError", "data": {"message": "no"}}
        ),
        lambda: writer.part("prt_b", "msg_2", "text", text="Done."),
        lambda: writer.assistant(
            "msg_2", tokens=TOKENS, time={"created": T0, "completed": T0 * 2}, error={"name": "E"}
        ),
        lambda: writer.user("msg_3"),
        lambda: writer.part("prt_c", "msg_3", "compaction", auto=False),
        lambda: writer.part("prt_d", "msg_3", "subtask", prompt="p", agent="a"),
        lambda: writer.assistant("msg_4", summary=True, path={"cwd": "/code/deeper"}),
        lambda: writer.part("prt_e", "msg_4", "text", text="So far."),
        lambda: writer.session(title="The title", revert='{"messageID":"msg_3"}'),
    ]
    for step in steps:
        step()
        yield


def told(sink: Sink) -> tuple[object, ...]:
    """Rows that change come again, so that things are said twice and in another order; they are
    the same things."""
    bucket = sink.main
    usage = {usage.key: usage for usage in bucket.usage}
    touches = {(touch.key, touch.path, touch.action) for touch in bucket.touches}
    return {event.key: event for event in bucket.events}, usage, touches, bucket.facts


def test_read_after_each_change_equals_read_at_once(writer: Writer) -> None:
    reading = Reading(writer.path)
    for _ in everything(writer):
        reading.go()
        assert reading.go() == []
    assert told(reading.sink()) == told(read(writer))


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for name, inner in items:
        yield from spots(inner, (*path, name))


@pytest.mark.parametrize(
    "odd", [None, True, 7, -1.5, "x", [], {}, [1], [None], ["x"], {"x": []}, [[{}]]], ids=repr
)
def test_odd_shapes_anywhere_never_raise(writer: Writer, odd: object) -> None:
    for _ in everything(writer):
        pass
    (rows,) = AGENT.rows(writer.path, {})
    for line in rows.lines.splitlines():
        record = json.loads(line)
        if "data" in record["row"]:
            record["row"]["data"] = json.loads(record["row"]["data"])
        for spot in filter(None, spots(record)):
            damaged = copy.deepcopy(record)
            inner: Any = damaged
            for name in spot[:-1]:
                inner = inner[name]
            inner[spot[-1]] = odd
            sink = Sink("ses_1")
            reader = AGENT.reader(
                SourceShape("lines", "ses_1"), {"messages": {"msg_1": {"role": "user"}}}
            )
            reader.read(damaged, 0, line, sink)
            json.dumps([event.data for event in sink.main.events])


def test_a_connection_is_closed_even_when_a_reader_stops_half_way(writer: Writer) -> None:
    talk(writer)
    writer.session("ses_2")
    batches = AGENT.rows(writer.path, {})
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    with Database(writer.path) as database:
        connection = database.connection
    with pytest.raises(apsw.ConnectionClosedError):
        connection.execute("SELECT 1")
