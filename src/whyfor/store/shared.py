"""Opening the store of a team server: a pool for all requests, the accounts, stores for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from whyfor.config import Settings
from whyfor.model.accounts import Member
from whyfor.model.sessions import Person
from whyfor.store.blobs import Blobs
from whyfor.store.postgres.accounts import AUDIT_COUNTED, AccountTransaction, PostgresAccounts
from whyfor.store.postgres.backup import dump_database, restore_database
from whyfor.store.postgres.change_schema import CHANGES
from whyfor.store.postgres.connection import ScopedConnection, StoreScope
from whyfor.store.postgres.erase import ErasedPerson, erase_person
from whyfor.store.postgres.listener import PostgresListener
from whyfor.store.postgres.pool import PostgresPool
from whyfor.store.postgres.project_copy import ProjectCopy, reading_project, writing_project
from whyfor.store.postgres.setup import (
    add_owner_invite,
    check_version,
    migrate_team,
    read_state,
)
from whyfor.store.postgres.store import PostgresStore

__all__ = [
    "AUDIT_COUNTED",
    "AccountTransaction",
    "ErasedPerson",
    "LentStore",
    "PostgresListener",
    "ProjectCopy",
    "TeamDatabase",
    "add_owner_invite",
    "check_version",
    "dump_database",
    "erase_person",
    "migrate_team",
    "read_state",
    "reading_project",
    "restore_database",
    "writing_project",
]


class TeamDatabase:
    """The database of a team server."""

    def __init__(self, url: str, size: int = 16) -> None:
        self.url = url
        self.pool = PostgresPool(url, size)
        self.accounts = PostgresAccounts(self.pool)

    def open(self) -> None:
        """Connect. Raises StoreError if the database cannot be reached."""
        self.pool.open()

    def close(self) -> None:
        self.pool.close()

    def ping(self) -> None:
        """Raise StoreError if the database does not answer."""
        with self.accounts.by(None) as accounts:
            accounts.teams()

    @contextmanager
    def store(
        self, member: Member, project: int | None, *, writing: bool = False
    ) -> Iterator[PostgresStore]:
        """Lend a store that sees what a member may read of one project, or of all that the token is
        good for. A writing one sees and writes the person's own rows of one project."""
        scope = StoreScope(member.person, project, writing, member.projects)
        with self.pool.store(scope) as store:
            yield store

    @contextmanager
    def expiring(self, person: int, project: int) -> Iterator[PostgresStore]:
        """Lend a store with a person's own rows of a project that keeps things for a time only, to
        delete what is older."""
        scope = StoreScope(person, project, writing=True, expiring=True)
        with self.pool.store(scope) as store:
            yield store

    def change_listener(
        self, heard: Callable[[str], None], lost: Callable[[], None]
    ) -> PostgresListener:
        """Return what hears of changes of projects: a project and the number of a change."""
        return PostgresListener(self.url, CHANGES, heard, lost)

    @contextmanager
    def lend(
        self, member: Member, project: int, settings: Settings, blobs: Blobs
    ) -> Iterator[LentStore]:
        """Lend what a member may read of one project, as services read a place."""
        scope = StoreScope(member.person, project, only=member.projects)
        with self.pool.scoped(scope, ScopedConnection) as db:
            yield LentStore(db, settings, blobs)


class LentStore(PostgresStore):
    """A store together with the segments of one project, for one request."""

    def __init__(self, db: ScopedConnection, settings: Settings, blobs: Blobs) -> None:
        super().__init__(db)
        self.settings = settings
        self.blobs = blobs

    def people_of(self, sessions: Iterable[int]) -> dict[int, Person]:
        owners = self.uploads.owners_of(sessions)
        names = self.uploads.people(set(owners.values()))
        return {  # who has left is still told apart
            session: Person(person, names.get(person, f"former member {person}"))
            for session, person in owners.items()
        }

    def authors(self) -> list[Person]:
        names = self.uploads.people(self.uploads.authors())
        return sorted((Person(*each) for each in names.items()), key=lambda one: one.name)
