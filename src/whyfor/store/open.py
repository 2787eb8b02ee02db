"""Opening the store: for reading by every verb, for writing by ingest and rebuild alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from whyfor.config import Settings
from whyfor.model.errors import NotFound
from whyfor.store.blobs import FolderBlobs
from whyfor.store.journal import Journal
from whyfor.store.sqlite import schema
from whyfor.store.sqlite.connection import connect, explained
from whyfor.store.sqlite.read import StoreRows


class OpenStore:
    """What is kept, to read from."""

    def __init__(self, settings: Settings, db: apsw.Connection) -> None:
        self.settings = settings
        self.db = db
        self.reader = StoreRows(db)
        self.blobs = FolderBlobs(settings.segments)


@contextmanager
def reading(settings: Settings) -> Iterator[OpenStore]:
    db = _opened(settings)
    try:
        with explained(settings.database):
            yield OpenStore(settings, db)
    finally:
        db.close()


def _opened(settings: Settings) -> apsw.Connection:
    """Read-only and of this program's version; an older database is brought up first, an empty
    one is none."""
    version = 0
    if settings.database.exists():
        db = connect(settings.database, readonly=True)
        version = schema.current(db)
        if version == schema.VERSION:
            return db
        db.close()
    if version == 0:
        if settings.journal.exists():
            raise NotFound(
                "the database is gone, its segments are not", "Bring it back: whyfor rebuild"
            )
        raise NotFound(
            "nothing is kept yet",
            "Read what your agents wrote: whyfor ingest (or look at: whyfor demo)",
        )
    connect(settings.database).close()
    return connect(settings.database, readonly=True)


def journal(settings: Settings) -> Journal:
    return Journal(settings.journal)
