"""The three tables of OpenCode's database, and its rows as lines."""

from __future__ import annotations

from typing import NamedTuple

from whyfor.agents.databases.connection import Database
from whyfor.agents.databases.lines import row_line

NEEDED = {
    "session": {"id"},
    "message": {"id", "session_id", "data"},
    "part": {"id", "message_id", "session_id", "data"},
}


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

    def items(self, where: str, ident: str) -> list[DatabaseRow]:
        owner, order = ("message_id", "id") if self.name == "part" else ("NULL", self.order)
        sql = (
            f"SELECT id, {self.stamp}, rowid, {owner} FROM {self.name} WHERE {where}=? ORDER BY "
            f"{order}"
        )
        return [DatabaseRow(self, *row) for row in self.db.query(sql, ident)]

    def line(self, ident: str) -> bytes:
        """Return a row with all its columns as a JSON line."""
        return row_line(self.db, self.name, self.columns, "id", ident)


class DatabaseRow(NamedTuple):
    table: Table
    ident: str
    stamp: int  # when it last changed
    rowid: int  # grows with each insert, whatever the clock says
    owner: str | None  # of a part: its message
