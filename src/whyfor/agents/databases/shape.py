"""The shape of an agent's database: a table of sessions, and tables of what belongs to them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec


class StoreTable(msgspec.Struct, frozen=True):
    """A table whose rows belong to sessions."""

    name: str
    ident: str  # the column that identifies a row
    session: str  # the column that names its session
    weight: str  # an expression whose sum changes when rows do


class SessionTables(msgspec.Struct, frozen=True):
    """The tables of a database: that of the sessions, and the others in the order they are read
    in."""

    sessions: str
    parent: str  # the column of a session that names its parent
    tables: tuple[StoreTable, ...]
    columns: Mapping[str, set[str]]  # by which the database is recognised, by table

    def needed(self) -> dict[str, set[str]]:
        """Return all columns that are read, by table."""
        found = {self.sessions: {"id"}}
        for table in self.tables:
            found[table.name] = {table.ident, table.session}
        for name, columns in self.columns.items():
            found[name] = found.get(name, set()) | columns
        return found
