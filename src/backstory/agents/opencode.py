"""OpenCode: one SQLite database for all sessions, whose rows change in place; read only, and never locked."""

from __future__ import annotations

import errno
import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, NamedTuple
from zlib import crc32

import apsw
import msgspec

from backstory.agents.base import (
    TITLE_AGENT,
    Bucket,
    OnError,
    Reader,
    Record,
    Rows,
    Shape,
    Sink,
    as_dict,
    as_int,
    as_list,
    as_str,
    flatten,
)
from backstory.model.events import Event, Touch, Usage
from backstory.model.ids import fold
from backstory.model.times import parse_iso

MAGIC = b"SQLite format 3\x00"
NEEDED = {
    "session": {"id"},
    "message": {"id", "session_id", "data"},
    "part": {"id", "message_id", "session_id", "data"},
}
BUSY = 500  # milliseconds
BATCH = 4 << 20  # bytes of lines handed over at a time
WINDOW = 10_000  # milliseconds a row may be committed late, its time already set
WRITERS = ("edit", "write", "multiedit")
SILENT_PARTS = ("step-start", "step-finish", "snapshot", "agent")
_NO_TITLE = re.compile(r"(New|Child) session - \d{4}-\d\d-\d\dT")
_NICKNAME = re.compile(r"\(@(\S+) subagent\)$")
_MESSAGES_MAX = 200
_CALLS_MAX = 500
_TRIES = 3


class OpenCode:
    name = "opencode"
    title = "OpenCode"
    mutable = True

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        data = Path(env.get("XDG_DATA_HOME") or home / ".local" / "share") / "opencode"
        database = env.get("OPENCODE_DB")
        return [data / database if database and database != ":memory:" else data]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        try:
            found = sorted(root.iterdir())
        except OSError as error:
            onerror(error)
            return
        yield from (path for path in found if re.fullmatch(r"opencode(-.+)?\.db", path.name))

    def sniff(self, path: Path, head: bytes) -> Shape | None:
        if not head.startswith(MAGIC):
            return None
        try:
            with Database(path) as db:
                ours = all(needed <= set(db.columns(table)) for table, needed in NEEDED.items())
        except apsw.Error as error:
            raise _unreadable(path, error) from error
        return Shape("rows", "") if ours else None

    def reader(self, shape: Shape, state: Record) -> Reader:
        return RowReader(state, subagent=shape.parent is not None)

    def rows(self, path: Path, positions: Mapping[str, Record]) -> Iterator[Rows]:
        """One batch at a time, each in a short transaction of its own."""
        known, failure = dict(positions), None
        for _ in range(_TRIES):
            try:
                with Database(path) as db:
                    for rows in new_rows(db, known):
                        if db.moved():
                            break
                        known[rows.session_id] = rows.position
                        yield rows
                    else:
                        return
            except apsw.Error as error:
                failure = error
        raise _unreadable(path, failure) from failure


def _unreadable(path: Path, error: apsw.Error | None) -> OSError:
    """To our callers an agent's database is a file like any other."""
    return OSError(errno.EIO, f"{type(error).__name__}: {error}" if error else "it keeps changing", str(path))


# -- the database --------------------------------------------------------------------------------


class Database:
    """A connection that leaves no trace: no lock that a writer waits for, no file beside the database."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._undo = ExitStack()
        self._before: tuple[int, int] | None = None
        try:
            self.connection = self._open()
        except BaseException:
            self._undo.close()
            raise

    def _open(self) -> apsw.Connection:
        path, how = self.path, "mode=ro"
        log, index = Path(f"{path}-wal"), Path(f"{path}-shm")
        if log.exists() and not index.exists():
            # Left by a crash. To read it means to make a new index: here, or in a read-only folder not at all.
            folder = self._undo.enter_context(TemporaryDirectory(prefix="backstory-"))
            for file in (path, log):
                shutil.copyfile(file, Path(folder, file.name))
            path = Path(folder, path.name)
        elif not log.exists() and self._is_logged():
            # Nobody has it open. A plain read-only connection would create both files and leave them behind.
            self._before = self._stamp()
            how = "immutable=1"
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        connection = apsw.Connection(f"{path.absolute().as_uri()}?{how}", flags=flags)
        self._undo.callback(connection.close)
        connection.set_busy_timeout(BUSY)
        return connection

    def _is_logged(self) -> bool:
        with self.path.open("rb") as file:
            return file.read(20)[18:] == b"\x02\x02"

    def _stamp(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_mtime_ns, found.st_size

    def moved(self) -> bool:
        """Whether somebody began to write to what we took for at rest: then what was read may be torn."""
        return self._before is not None and (Path(f"{self.path}-wal").exists() or self._stamp() != self._before)

    def query(self, sql: str, *values: str) -> Iterator[tuple[Any, ...]]:
        return self.connection.execute(sql, values)

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self.query(f"PRAGMA table_info({table})")]

    def __enter__(self) -> Database:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._undo.close()


class Table:
    """One of the three tables, with the columns that this version of it has."""

    def __init__(self, db: Database, name: str) -> None:
        self.db = db
        self.name = name
        self.columns = db.columns(name)
        times = [column for column in ("time_updated", "time_created") if column in self.columns]
        self.timed = "time_updated" in times
        self.stamp = f"CAST(coalesce({', '.join([*times, '0'])}) AS INTEGER)" if times else "0"
        self.order = "time_created, id" if "time_created" in times else "id"

    def items(self, where: str, ident: str) -> list[Item]:
        owner, order = ("message_id", "id") if self.name == "part" else ("NULL", self.order)
        sql = f"SELECT id, {self.stamp}, rowid, {owner} FROM {self.name} WHERE {where}=? ORDER BY {order}"
        return [Item(self, *row) for row in self.db.query(sql, ident)]

    def line(self, ident: str) -> bytes:
        """A row as it is, all columns of it."""
        names = ['"' + column.replace('"', '""') + '"' for column in self.columns]
        try:
            row = self._row(names, ident)
        except UnicodeDecodeError:
            raw = self._row([f"CAST({name} AS BLOB)" for name in names], ident)
            row = tuple(v.decode("utf-8", "replace") if isinstance(v, bytes) else v for v in raw)
        return msgspec.json.encode({"type": self.name, "row": dict(zip(self.columns, row, strict=True))}) + b"\n"

    def _row(self, names: list[str], ident: str) -> tuple[Any, ...]:
        return next(self.db.query(f"SELECT {', '.join(names)} FROM {self.name} WHERE id=?", ident))


class Item(NamedTuple):
    table: Table
    ident: str
    stamp: int  # when it last changed
    rowid: int  # grows with each insert, whatever the clock says
    owner: str | None  # of a part: its message


def new_rows(db: Database, positions: Mapping[str, Record]) -> Iterator[Rows]:
    tables = {name: Table(db, name) for name in NEEDED}
    timed = all(table.timed for table in tables.values())
    for ident, parent, count, total in _sessions(db, tables):
        position = positions.get(ident) or {}
        if timed and position.get("rows") == count and position.get("sum") == total:
            continue
        done = False
        while not done:
            batch = Batch(tables, ident, position)
            db.query("BEGIN")
            try:
                done = batch.fill()
            finally:
                db.query("ROLLBACK")
            if batch.lines:
                position = batch.position
                yield Rows(ident, parent, b"".join(batch.lines), position)
            elif timed and position.get("rows") == count:
                position, done = {}, False  # a row changed, but not to a later time: the clock was set back


def _sessions(db: Database, tables: dict[str, Table]) -> list[tuple[str, str | None, int, int]]:
    """Each session with its parent, how many messages and parts it has, and the sum of all its times."""
    count: Counter[str] = Counter()
    total: Counter[str] = Counter()
    for name in ("message", "part"):
        # In the table's own order: through the index on the session every row would be a jump.
        for session, stamp in db.query(f"SELECT session_id, {tables[name].stamp} FROM {name} NOT INDEXED"):
            count[session] += 1
            total[session] += stamp
    table = tables["session"]
    parent_id = "parent_id" if "parent_id" in table.columns else "NULL"
    found = db.query(f"SELECT id, {parent_id}, {table.stamp} FROM session ORDER BY {table.order}")
    return [(ident, parent, count[ident], total[ident] + stamp) for ident, parent, stamp in found]


class Batch:
    """What is new in one session, up to some size.

    A position says how many rows there were, the sum of their times, the last inserted ones and their time, and
    which rows near that time and after it were seen, each with its own time and checksum: one that is committed
    late, or changes twice within a millisecond, is noticed all the same. Between two batches it keeps what it
    said, has no number, and lists all that was handed over since.
    """

    def __init__(self, tables: dict[str, Table], session: str, position: Record) -> None:
        self.tables = tables
        self.session = session
        self.before = position
        self.time = as_int(position.get("time"))
        self.last = as_dict(position.get("last"))
        self.seen: Record = dict(as_dict(position.get("seen")))
        self.lines: list[bytes] = []
        self.position: Record = {}

    def fill(self) -> bool:
        """True when nothing is left for another batch."""
        found = self.tables["session"].items("id", self.session)
        messages, parts = (self.tables[name].items("session_id", self.session) for name in ("message", "part"))
        plan = [[row] for row in found if self._is_new(row)] + list(self._conversation(messages, parts))
        size = 0
        for index, group in enumerate(plan, 1):
            for item in group:
                line = item.table.line(item.ident)
                self.lines.append(line)
                self.seen[item.ident] = [item.stamp, crc32(line)]
                size += len(line)
            if size >= BATCH and index < len(plan):
                self.position = {**self.before, "rows": None, "seen": self.seen}
                return False
        if found:
            self._settle(found, messages, parts)
        return True

    def _settle(self, *tables: list[Item]) -> None:
        items = [item for rows in tables for item in rows]
        last = [max(rows, key=lambda item: item.rowid) for rows in tables if rows]
        time = max(item.stamp for item in last[1:] or last)
        recent = (item for item in items if item.stamp > time - WINDOW)
        self.position = {
            "rows": len(items) - 1,
            "sum": sum(item.stamp for item in items),
            "time": time,
            "last": {item.table.name: item.rowid for item in last},
            "seen": {item.ident: self.seen.get(item.ident, [item.stamp, None]) for item in recent},
        }

    def _conversation(self, messages: list[Item], parts: list[Item]) -> Iterator[list[Item]]:
        """New and changed rows as they follow each other, each part after its message; no group is split."""
        owned: dict[str | None, list[Item]] = {}
        for part in parts:
            owned.setdefault(part.owner, []).append(part)
        for message in messages:
            own = owned.pop(message.ident, [])
            fresh = [part for part in own if self._is_new(part)]
            if fresh and self._is_prompt(message):
                yield [message, *own]  # a prompt is all its parts together
            elif fresh:
                yield [message, fresh[0]]
                yield from ([part] for part in fresh[1:])
            elif self._is_new(message):
                yield [message]
        yield from ([part] for rest in owned.values() for part in rest if self._is_new(part))

    def _is_prompt(self, message: Item) -> bool:
        sql = "SELECT CASE WHEN json_valid(data) THEN data ->> '$.role' END FROM message WHERE id=?"
        return bool(next(message.table.db.query(sql, message.ident))[0] == "user")

    def _is_new(self, item: Item) -> bool:
        inserted = item.rowid > (as_int(self.last.get(item.table.name)) or 0)
        if self.time is not None and item.stamp <= self.time - WINDOW and not inserted:
            return False
        known = as_list(self.seen.get(item.ident))
        if len(known) != 2 or known[0] != item.stamp:
            return True
        settled = self.before.get("rows") is not None and known[1] is not None
        return settled and bool(known[1] != crc32(item.table.line(item.ident)))


# -- what the rows mean --------------------------------------------------------------------------


class RowReader:
    """One session's rows: its own, its messages' and their parts', which carry all that was said and done."""

    def __init__(self, state: Record, *, subagent: bool) -> None:
        self.state = state
        self.subagent = subagent
        self.messages: dict[str, Record] = state.setdefault("messages", {})
        self.calls: dict[str, str] = state.setdefault("calls", {})

    def read(self, record: Record, offset: int, line: bytes, out: Sink) -> None:
        kind, row = record.get("type"), as_dict(record.get("row"))
        if kind == "session":
            self._session(row, out.main)
        elif kind == "message":
            self._message(row, _json(row.get("data")), out)
        elif kind == "part":
            self._part(row, _json(row.get("data")), out)
        else:
            out.unknown_type(kind)

    # -- the session -----------------------------------------------------------------------------

    def _session(self, row: Record, bucket: Bucket) -> None:
        ident, when = as_str(row.get("id")) or bucket.session_id, parse_iso(row.get("time_created"))
        cwd, version = as_str(row.get("directory")), as_str(row.get("version"))
        title = as_str(row.get("title"))
        if not _NO_TITLE.match(title):
            bucket.title(TITLE_AGENT, title)
        if version:
            bucket.facts["version"] = version
        if self.subagent:
            named = _NICKNAME.search(title)
            bucket.facts["subagent"] = as_str(row.get("agent")) or (named[1] if named else None)
        if not self.state.get("begun"):
            self.state["begun"] = True
            data = {name: value for name, value in (("cwd", cwd), ("version", version)) if value}
            bucket.events.append(Event("session.started", fold(ident, "started"), when, "system", "", None, data))
        if cwd != self.state.get("directory"):  # not where it is now: its messages know that better
            self.state["directory"] = cwd
            self._place(cwd, bucket, ident, parse_iso(row.get("time_updated")))
        if target := as_str(_json(row.get("revert")).get("messageID")):
            key, data = fold(ident, "revert", target), {"rewound_to": target}
            bucket.events.append(
                Event("status.changed", key, parse_iso(row.get("time_updated")), "user", "", None, data)
            )

    def _place(self, cwd: str, bucket: Bucket, base: str, when: int | None) -> None:
        """Where the session is: known from its start, and told when it changes."""
        before = self.state.get("cwd")
        if not cwd or cwd == before:
            return
        self.state["cwd"] = cwd
        if before is None:
            bucket.facts.setdefault("cwd", cwd)
        else:
            key = fold(base, "place", cwd)
            bucket.events.append(Event("status.changed", key, when, "system", "", None, {"cwd": cwd}))

    # -- messages --------------------------------------------------------------------------------

    def _message(self, row: Record, data: Record, out: Sink) -> None:
        ident, role, bucket = as_str(row.get("id")), data.get("role"), out.main
        times = as_dict(data.get("time"))
        when = parse_iso(times.get("created")) or parse_iso(row.get("time_created"))
        known: Record = {"role": role, "at": when, "until": parse_iso(times.get("completed"))}
        if role == "assistant":
            known["model"] = as_str(data.get("modelID")) or None
            if data.get("summary") is True:
                known["summary"] = True
            if ident not in self.messages:  # an old one that changed says where the session was
                self._place(as_str(as_dict(data.get("path")).get("cwd")), bucket, ident, when)
            self._usage(data, times, bucket, when)
            self._error(data.get("error"), bucket, known["until"] or when, fold(ident, "error"))
        elif role == "user":
            self.state["said"] = {"id": ident, "texts": {}, "images": {}}
        else:
            out.unknown_type(f"message {role}")
        self.messages.pop(ident, None)
        self.messages[ident] = known
        while len(self.messages) > _MESSAGES_MAX:
            del self.messages[next(iter(self.messages))]

    def _usage(self, data: Record, times: Record, bucket: Bucket, when: int | None) -> None:
        """A fork copies messages under new ids, but with their times: by these a response is counted once."""
        tokens = as_dict(data.get("tokens"))
        cache = as_dict(tokens.get("cache"))
        model = as_str(data.get("modelID")) or None
        created, completed = as_int(times.get("created")), as_int(times.get("completed"))
        usage = Usage(
            fold("opencode", created, completed, data.get("providerID"), model),
            when,
            model,
            as_int(tokens.get("input")),
            as_int(cache.get("read")),
            as_int(cache.get("write")),
            as_int(tokens.get("output")),
            as_int(tokens.get("reasoning")),
        )
        answered = usage.input or usage.cache_read or usage.cache_write or usage.output or usage.reasoning
        if completed is not None and answered:  # all zero while it runs, and when it failed
            bucket.usage.append(usage)

    def _error(self, error: Any, bucket: Bucket, when: int | None, key: int) -> None:
        if not isinstance(error, dict):
            return
        name, about = as_str(error.get("name")), as_dict(error.get("data"))
        text = as_str(about.get("message")) or as_str(error.get("message"))
        if name == "MessageAbortedError":
            bucket.events.append(Event("turn.completed", key, when, "user", text, None, {"interrupted": True}))
        else:
            data = {"error": name, "status": as_int(about.get("statusCode"))}
            bucket.events.append(Event("error", key, when, "system", text or name, None, _known(data)))

    # -- parts -----------------------------------------------------------------------------------

    def _part(self, row: Record, data: Record, out: Sink) -> None:
        kind, bucket, ident = data.get("type"), out.main, as_str(row.get("id"))
        message = self.messages.get(as_str(row.get("message_id")), {})
        when = parse_iso(as_dict(data.get("time")).get("start")) or parse_iso(row.get("time_created"))
        if when and message.get("until"):
            when = min(when, message["until"])  # in a fork a part is as old as its copy, but its message is not
        key = fold(ident)
        if kind == "tool":
            self._tool(ident, data, as_dict(data.get("state")), bucket, when)
        elif kind in ("text", "file") and message.get("role") == "user":
            self._said(as_str(row.get("message_id")), ident, data, bucket, message.get("at") or when)
        elif kind in ("text", "reasoning"):
            self._words(kind, data, message, bucket, when, key)
        elif kind == "patch":
            files = [path for path in as_list(data.get("files")) if isinstance(path, str)]
            about = {"files": files, "hash": data.get("hash")}
            bucket.events.append(Event("status.changed", key, when, "system", "", None, about))
            bucket.touches.extend(Touch(key, path, "write") for path in files)
        elif kind == "compaction":
            about = _known({"auto": data.get("auto"), "overflow": data.get("overflow")})
            bucket.events.append(Event("compaction", key, when, "system", "", None, about))
        elif kind == "retry":
            at = parse_iso(as_dict(data.get("time")).get("created")) or when
            self._error(data.get("error"), bucket, at, key)
        elif kind == "subtask":
            text = as_str(data.get("description")) or as_str(data.get("prompt"))
            about = {"prompt": data.get("prompt")}
            name = as_str(data.get("agent")) or None
            bucket.events.append(Event("subagent.started", key, when, "user", text, name, about))
        elif kind not in SILENT_PARTS and kind != "file":
            out.unknown_type(f"part {kind}")

    def _said(self, message: str, ident: str, data: Record, bucket: Bucket, when: int | None) -> None:
        """A prompt's parts come one by one; each time the whole of it replaces what was known of it."""
        if data.get("synthetic") or data.get("ignored"):
            return
        said = as_dict(self.state.get("said"))
        if said.get("id") != message:
            said = self.state["said"] = {"id": message, "texts": {}, "images": {}}
        if data.get("type") == "file":
            said["images"][ident] = _reference(data, len(said["images"]))
        else:
            said["texts"][ident] = as_str(data.get("text"))
        text = "\n".join(said["texts"].values())
        images = list(said["images"].values())
        if text.strip() or images:
            actor = "assistant" if self.subagent else "user"
            about: Record | None = {"images": images} if images else None
            bucket.events.append(Event("user.prompt", fold(message, "said"), when, actor, text, None, about))

    def _words(self, kind: str, data: Record, message: Record, bucket: Bucket, when: int | None, key: int) -> None:
        text = as_str(data.get("text"))
        if not text.strip() or data.get("synthetic") or data.get("ignored"):
            return
        about = _known({"model": message.get("model")})
        if kind == "reasoning":
            bucket.events.append(Event("assistant.thinking", key, when, "assistant", text, None, about))
        elif message.get("summary"):
            bucket.events.append(Event("compaction", key, when, "system", text, None, {**about, "summary": True}))
        else:
            bucket.events.append(Event("assistant.message", key, when, "assistant", text, None, about))

    # -- tools -----------------------------------------------------------------------------------

    def _identity(self, call: str, part: str) -> str:
        """Some models number their calls anew after a compaction: the second of a name goes by its part."""
        if self.calls.setdefault(call, part) != part:
            return part
        while len(self.calls) > _CALLS_MAX:
            del self.calls[next(iter(self.calls))]
        return call

    def _tool(self, part: str, data: Record, state: Record, bucket: Bucket, when: int | None) -> None:
        given, times = as_dict(state.get("input")), as_dict(state.get("time"))
        meta = as_dict(state.get("metadata"))
        name = as_str(data.get("tool")) or "unknown"
        if name == "invalid":  # what a call to a tool that does not exist is turned into
            name = as_str(given.get("tool")) or name
        when = parse_iso(times.get("start")) or when
        call = self._identity(as_str(data.get("callID")) or part, part)
        key = fold(call)
        about: Record = {"id": call, "input": given}
        bucket.events.append(Event("tool.call", key, when, "assistant", flatten(given), name, about))
        if name == "task":
            text = as_str(given.get("description")) or as_str(given.get("prompt"))
            about = _known({"id": call, "prompt": given.get("prompt"), "subagent": meta.get("sessionId")})
            kind = as_str(given.get("subagent_type")) or None
            bucket.events.append(Event("subagent.started", fold(key, "sub"), when, "assistant", text, kind, about))
        elif name == "question":
            asked = "\n".join(as_str(as_dict(q).get("question")) for q in as_list(given.get("questions")))
            about = {"id": call, "questions": given.get("questions")}
            bucket.events.append(Event("question.asked", fold(key, "ask"), when, "assistant", asked, None, about))
        if state.get("status") in ("completed", "error"):
            self._result(name, call, given, state, meta, bucket, parse_iso(times.get("end")) or when)

    def _result(
        self,
        name: str,
        call: str,
        given: Record,
        state: Record,
        meta: Record,
        bucket: Bucket,
        when: int | None,
    ) -> None:
        failed, code = state.get("status") == "error", as_int(meta.get("exit"))
        text = as_str(state.get("error")) if failed else as_str(state.get("output"))
        data = _known({"id": call, "exit_code": code, "diff": meta.get("diff"), "answers": meta.get("answers")})
        if failed or code:
            data["failed"] = True
        if attached := [_reference(as_dict(a), i) for i, a in enumerate(as_list(state.get("attachments")))]:
            data["images"] = attached
        key = fold(call, "result")
        bucket.events.append(Event("tool.result", key, when, "tool", text, None, data))
        if name == "task":
            data["subagent"] = meta.get("sessionId")
            bucket.events.append(Event("subagent.stopped", fold(key, "sub"), when, "subagent", "", None, {"id": call}))
        if failed and "rejected permission" in text[:80]:
            data["rejected"] = True
            decision = {"id": call, "decision": "denied"}
            bucket.events.append(Event("approval.resolved", fold(call, "denied"), when, "user", "", None, decision))
        if not data.get("failed"):
            bucket.touches.extend(Touch(key, path, action) for path, action in _touched(name, given, meta))


def _touched(name: str, given: Record, meta: Record) -> Iterator[tuple[str, str]]:
    path = as_str(given.get("filePath"))
    if path and (name == "read" or name in WRITERS):
        yield path, "read" if name == "read" else "write"
    if name in ("apply_patch", "patch"):
        for file in map(as_dict, as_list(meta.get("files"))):
            for path in (as_str(file.get("filePath")), as_str(file.get("movePath"))):
                if path:
                    yield path, "write"


def _reference(file: Record, index: int) -> Record:
    """A file's bytes stay in the segment; the event says that there is one, of which kind and where."""
    url = as_str(file.get("url"))
    inline = url.startswith("data:")
    about = {"block": index, "type": "file", "media_type": file.get("mime"), "filename": file.get("filename")}
    return _known({**about, "url": None if inline else url, "bytes": len(url) * 3 // 4 if inline else None})


def _known(data: Record) -> Record:
    return {name: value for name, value in data.items() if value is not None}


def _json(text: object) -> Record:
    """A column that holds JSON; damaged, it says nothing."""
    if not isinstance(text, str):
        return as_dict(text)
    try:
        return as_dict(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError):
        return as_dict(_salvaged(text))


def _salvaged(text: str) -> object:
    """Output that was cut in the middle of an emoji leaves half a surrogate pair, which no database takes."""
    try:
        halves = json.dumps(json.loads(text, strict=False), ensure_ascii=False)
        return json.loads(halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace"))
    except (ValueError, RecursionError):
        return None


AGENT = OpenCode()
