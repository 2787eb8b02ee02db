"""Committing: the journal first, then the database, which remembers how the journal ended.

If the database remembers another end than the journal has, it is behind it (a crash, a restored
backup) or ahead of it (the journal lost lines). capture/recover.py repairs that; until then nothing
is written.
"""

from __future__ import annotations

from whyfor.model.errors import Disagreement
from whyfor.store.journal import Journal, JournalMark
from whyfor.store.sql.database import StoreDatabase, first_row


def commit_with_journal(db: StoreDatabase, journal: Journal) -> None:
    """Append the journal's pending entries, then commit the database's open transaction.

    Raises Disagreement, with nothing written, if the journal is not as this database left it.
    """
    mark = load_mark(db)
    if mark is not None and not journal.ends_at(mark):
        raise Disagreement(
            "the journal and the database disagree: one of them was damaged or replaced",
            "Make them agree: whyfor ingest",
        )
    before = journal.end()
    journal.flush()
    try:
        end = journal.end()
        if end != mark:
            save_mark(db, end)
    except Exception:
        # The caller takes this transaction back and goes on with the next one.
        journal.cut_back(before)
        raise
    db.execute("COMMIT")


def load_mark(db: StoreDatabase) -> JournalMark | None:
    """Return how the journal ended when this database was last written; None if that was never
    recorded."""
    row = first_row(db, "SELECT number, checksum, size, mtime FROM journal")
    return JournalMark(*row) if row else None


def save_mark(db: StoreDatabase, mark: JournalMark) -> None:
    """Record, in the caller's transaction, that the database has everything up to this end of the
    journal."""
    values = (mark.number, mark.checksum, mark.size, mark.mtime)
    db.execute("INSERT OR REPLACE INTO journal VALUES(1,?,?,?,?)", values)
