"""What hooks announced."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.attention import ATTENTION
from whyfor.model.memory import Injection
from whyfor.model.sessions import SessionName
from whyfor.model.shell_edits import SHELL_EDITS, ShellEdits
from whyfor.model.signals import CommitSignal, Process, Signal
from whyfor.store.sql.database import StoreDatabase, fetch, first_row, stepped, value
from whyfor.store.sql.filters import as_json, escape_like

_SIGNAL = "at, agent, event, cwd, session_agent, session_id, how, repository, sha, data"
_decode = msgspec.json.decode


class SignalWriter:
    """The part of the write side that knows hooks."""

    db: StoreDatabase

    def add_signals(self, signals: list[Signal]) -> None:
        names = _SIGNAL.split(", ")
        rows = [
            (*(getattr(signal, name) for name in names[:-1]), as_json(signal.data))
            for signal in signals
        ]
        marks = ", ".join("?" * len(names))
        self.db.executemany(f"INSERT INTO signals({_SIGNAL}) VALUES({marks})", rows)

    def session_around(self, chain: list[Process], at: int) -> tuple[str, str] | None:
        """Agent and id of the session that the nearest of these processes was in at that time."""
        sql = (
            "SELECT session_agent, session_id FROM signals WHERE how='payload' AND "
            "json_extract(data, '$.process')=? "
            "AND at<=? ORDER BY at DESC, id DESC LIMIT 1"
        )
        for process in chain:
            if process.start and (
                found := first_row(self.db, sql, (f"[{process.pid},{process.start}]", at))
            ):
                return found[0], found[1]
        return None


class SqlSignals:
    def __init__(self, db: StoreDatabase) -> None:
        self.db = db

    def of_session(self, agent: str, session_id: str) -> list[Signal]:
        where = "session_agent=? AND session_id=? AND event<>? ORDER BY at, id"
        return self._signals(where, (agent, session_id, SHELL_EDITS))

    def shell_sessions(self, after: int = 0) -> set[SessionName]:
        rows = fetch(
            self.db,
            """
            SELECT DISTINCT session_agent, session_id
            FROM signals
            WHERE event='ShellEdits' AND id > ? AND session_id IS NOT NULL
            """,
            (after,),
        )
        return {(agent, session_id) for agent, session_id in rows}

    def shell_edits(self, agent: str, session_id: str) -> list[ShellEdits]:
        rows = fetch(
            self.db,
            """
            SELECT data
            FROM signals
            WHERE session_agent=? AND session_id=? AND event='ShellEdits'
            ORDER BY at, id
            """,
            (agent, session_id),
        )
        return [_shell_edits(data) for (data,) in rows]

    def skipped_shells(self, since: int) -> list[tuple[int, ShellEdits]]:
        rows = fetch(
            self.db,
            "SELECT at, data FROM signals WHERE event='ShellEdits' AND at >= ? ORDER BY at DESC",
            (since,),
        )
        found = [(at, _shell_edits(data)) for at, data in rows]
        return [(at, told) for at, told in found if told.skipped]

    def hooked(self, sha: str) -> list[tuple[str, str]]:
        sql = """
            SELECT DISTINCT session_agent, session_id
            FROM signals
            WHERE sha=? AND event='post-commit' AND session_id IS NOT NULL
        """
        return [(agent, session) for agent, session in fetch(self.db, sql, (sha,))]

    def last_heard(self, agent: str) -> int | None:
        sql = "SELECT at FROM signals WHERE agent=? AND event<>'probe' ORDER BY at DESC LIMIT 1"
        found = fetch(self.db, sql, (agent,))
        return int(found[0][0]) if found else None

    def newest(self) -> int:
        return int(value(self.db, "SELECT coalesce(max(id), 0) FROM signals"))

    def after(self, number: int) -> list[Signal]:
        return self._signals("id > ? ORDER BY id", (number,))

    def last_of(self, agent: str, session_id: str, limit: int) -> list[Signal]:
        where = "session_agent=? AND session_id=? AND event<>? ORDER BY at DESC, id DESC LIMIT ?"
        return self._signals(where, (agent, session_id, SHELL_EDITS, limit))

    def attention(self, since: int) -> list[Signal]:
        return self._signals(f"event='{ATTENTION}' AND at >= ? ORDER BY at, id", (since,))

    def _signals(self, where: str, values: tuple[object, ...]) -> list[Signal]:
        names = _SIGNAL.split(", ")[:-1]
        found = []
        for *row, data in stepped(self.db, f"SELECT {_SIGNAL} FROM signals WHERE {where}", values):
            facts = dict(zip(names, row, strict=True))
            found.append(Signal(**facts, data=_decode(data)))
        return found

    def injections(self, agent: str, session_id: str) -> list[Injection]:
        rows = fetch(
            self.db,
            """
            SELECT at, told
            FROM injections
            WHERE session_agent = ? AND session_id = ?
            ORDER BY at
            """,
            (agent, session_id),
        )
        return [msgspec.convert({**_decode(told), "at": at}, Injection) for at, told in rows]

    def told_sessions(self, since: int) -> list[SessionName]:
        rows = fetch(
            self.db,
            """
            SELECT DISTINCT session_agent, session_id
            FROM injections
            WHERE at >= ? AND session_id IS NOT NULL
            ORDER BY session_agent, session_id
            """,
            (since,),
        )
        return [(agent, session_id) for agent, session_id in rows]

    def told_to(self, source: str) -> list[tuple[str, str, int]]:
        rows = fetch(
            self.db,
            """
            SELECT session_agent, session_id, at, told
            FROM injections
            WHERE told LIKE ? ESCAPE '\\'
            ORDER BY at DESC
            """,
            (f'%"{escape_like(source)}"%',),
        )
        found: dict[tuple[str, str], int] = {}
        for agent, session_id, at, told in rows:
            if session_id and source in _decode(told).get("sources", ()):
                found[agent, session_id] = at
        return [(agent, session_id, at) for (agent, session_id), at in found.items()]

    def made_in_session(self, shas: Iterable[str]) -> set[str]:
        rows = fetch(
            self.db,
            """
            SELECT sha
            FROM signals
            WHERE session_id IS NOT NULL AND sha IN (SELECT value FROM json_each(?))
            """,
            (as_json(list(shas)),),
        )
        return {sha for (sha,) in rows}

    def unseen_in(self, folders: Iterable[str]) -> set[str]:
        rows = fetch(
            self.db,
            """
            SELECT DISTINCT sha
            FROM signals
            WHERE sha IS NOT NULL
              AND repository IN (SELECT value FROM json_each(?))
              AND sha NOT IN (SELECT sha FROM commits)
            """,
            (as_json(list(folders)),),
        )
        return {sha for (sha,) in rows}

    def of_commits(self, shas: Iterable[str]) -> list[CommitSignal]:
        rows = fetch(
            self.db,
            """
            SELECT sha, session_agent, session_id, data, at
            FROM signals
            WHERE event='post-commit' AND sha IN (SELECT value FROM json_each(?))
            ORDER BY at
            """,
            (as_json(list(shas)),),
        )
        return [
            CommitSignal(sha, agent, session_id, _decode(data), at)
            for sha, agent, session_id, data, at in rows
        ]

    def agent_commits(self, since: int) -> list[CommitSignal]:
        rows = fetch(
            self.db,
            """
            SELECT session_agent, session_id, data, at
            FROM signals
            WHERE json_extract(data, '$.made') IS NOT NULL
              AND session_id IS NOT NULL AND at >= ?
            ORDER BY at
            """,
            (since,),
        )
        found = []
        for agent, session_id, body, at in rows:
            data = _decode(body)
            found += [CommitSignal(name, agent, session_id, data, at) for name in data["made"]]
        return found

    def rewrites(self) -> list[tuple[str, str]]:
        sql = "SELECT data FROM signals WHERE event='post-rewrite' ORDER BY at, id"
        found = []
        for (data,) in fetch(self.db, sql):
            found += [(old, new) for old, new in _decode(data).get("pairs", [])]
        return found


def _shell_edits(data: str) -> ShellEdits:
    return msgspec.convert(_decode(data)["shell"], ShellEdits)
