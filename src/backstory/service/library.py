"""Opening the store: for reading by every verb, for writing by ingest and rebuild alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from backstory.config import Settings
from backstory.model.errors import NotFound
from backstory.store.blobs import FolderBlobs
from backstory.store.journal import Journal
from backstory.store.read import Reader
from backstory.store.sqlite import connect, explained


class Library:
    """What is kept, to read from."""

    def __init__(self, settings: Settings, db: apsw.Connection) -> None:
        self.settings = settings
        self.db = db
        self.reader = Reader(db)
        self.blobs = FolderBlobs(settings.segments)


@contextmanager
def reading(settings: Settings) -> Iterator[Library]:
    if not settings.database.exists():
        if settings.journal.exists():
            raise NotFound("the database is gone, its segments are not", "Bring it back: backstory rebuild")
        raise NotFound(
            "nothing is kept yet",
            "Read what your agents wrote: backstory ingest (or look at: backstory demo)",
        )
    db = connect(settings.database, readonly=True)
    try:
        with explained(settings.database):
            yield Library(settings, db)
    finally:
        db.close()


def journal(settings: Settings) -> Journal:
    return Journal(settings.journal)
