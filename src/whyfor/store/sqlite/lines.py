"""Who wrote the lines of commits, as it was computed once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.lines import CommitLines, FileLines, LineRun, LineWriter
from whyfor.store.sql.filters import as_json
from whyfor.store.sqlite.connection import StoreConnection, fetch

_COMMIT = ""  # the path of the row that is about the commit itself


class _Body(msgspec.Struct, frozen=True, array_like=True):
    writers: list[LineWriter]
    runs: list[LineRun]
    block: bool


class SqliteLines:
    def __init__(self, db: StoreConnection) -> None:
        self.db = db

    def of_commits(self, shas: Iterable[str]) -> dict[str, CommitLines]:
        rows = fetch(
            self.db,
            """
            SELECT sha, path, blob, begun_at, committed_at, inferred, body FROM authored_lines
            WHERE sha IN (SELECT value FROM json_each(?)) ORDER BY sha, path
            """,
            (as_json(list(shas)),),
        )
        return _commits(rows)

    def of_files(self, places: Iterable[tuple[str, str]]) -> dict[str, CommitLines]:
        asked = [list(place) for place in places]
        asked += [[sha, _COMMIT] for sha in {sha for sha, _ in asked}]
        rows = fetch(
            self.db,
            """
            SELECT a.sha, a.path, a.blob, a.begun_at, a.committed_at, a.inferred, a.body
            FROM json_each(?) j
            JOIN authored_lines a ON a.sha=j.value ->> 0 AND a.path=j.value ->> 1
            ORDER BY a.sha, a.path
            """,
            (as_json(asked),),
        )
        return _commits(rows)

    def size(self) -> int:
        rows = fetch(self.db, "SELECT coalesce(sum(length(body)), 0) FROM authored_lines")
        return int(rows[0][0])

    # -- writing, in the caller's transaction ----------------------------------------------------

    def save(self, found: Iterable[CommitLines]) -> None:
        for lines in found:
            self.db.execute("DELETE FROM authored_lines WHERE sha=?", (lines.sha,))
            about = (lines.begun_at, lines.committed_at, lines.inferred)
            self._insert(lines.sha, _COMMIT, "", about, b"")
            for file in lines.files:
                body = msgspec.msgpack.encode(_Body(file.writers, file.runs, file.block))
                self._insert(lines.sha, file.path, file.blob, about, body)

    def _insert(
        self, sha: str, path: str, blob: str, about: tuple[int, int, bool], body: bytes
    ) -> None:
        values = (sha, path, blob, *about, body)
        self.db.execute("INSERT OR REPLACE INTO authored_lines VALUES(?,?,?,?,?,?,?)", values)

    def drop(self, shas: Iterable[str]) -> None:
        for sha in shas:
            self.db.execute("DELETE FROM authored_lines WHERE sha=?", (sha,))

    def clear(self) -> None:
        self.db.execute("DELETE FROM authored_lines")


def _commits(rows: Iterable[tuple[str, str, str, int, int, int, bytes]]) -> dict[str, CommitLines]:
    found: dict[str, CommitLines] = {}
    for sha, path, blob, begun, committed, inferred, body in rows:
        if path == _COMMIT:
            found[sha] = CommitLines(sha, begun, committed, bool(inferred), [])
        elif sha in found:
            told = msgspec.msgpack.decode(body, type=_Body)
            file = FileLines(path, blob, told.writers, told.runs, told.block)
            found[sha].files.append(file)
    return found
