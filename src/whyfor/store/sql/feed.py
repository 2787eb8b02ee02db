"""The changes since a moment, for subscribers."""

from __future__ import annotations

from whyfor.store.sql.changes import ChangeLog
from whyfor.store.sql.database import fetch


class SqlFeed(ChangeLog):
    def lengths(self) -> dict[int, int]:
        return dict(fetch(self.db, "SELECT id, last_seq FROM sessions WHERE last_seq > 0"))
