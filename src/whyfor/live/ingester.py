"""Incremental ingest for long-running processes: same lock and same ingest, but the connection and
the list of sources stay open."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from whyfor.agents import AGENTS
from whyfor.capture import spool
from whyfor.capture.checkout_list import publish_stories
from whyfor.capture.discover import FoundFile
from whyfor.capture.doorbell import answer
from whyfor.capture.faults import log_error, writable
from whyfor.capture.filters.load import load_filters
from whyfor.capture.ingest import Ingest
from whyfor.capture.permissions import tighten
from whyfor.capture.recover import agrees, recover, sound
from whyfor.capture.unreadable import Unreadable
from whyfor.config import Settings
from whyfor.locks import ingest_lock
from whyfor.model.errors import Busy, CorruptStore, StoreError
from whyfor.model.paths import to_text
from whyfor.model.sources import Source
from whyfor.model.times import wall_clock
from whyfor.store.blobs import FolderBlobs
from whyfor.store.open import journal, open_store
from whyfor.store.protocol import Store
from whyfor.store.tombstones import FORGET_MARKER, Tombstones, require_salt
from whyfor.story.approval_log import renew_approvals
from whyfor.story.links.save import link_project, projects_to_link
from whyfor.story.rules.prepare import prepare_rules
from whyfor.story.telemetry_cost import renew_telemetry

RenewMemory = Callable[[Settings, Store, int], int]
"""Makes what is remembered of at most so many sessions; returns of how many."""


class IncrementalIngest:
    """Keeps its connection and caches between runs, until another process has written."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.configured = file_stamp(settings.home / "config.toml")  # what these settings are of
        # a hook that wanted an ingest left it to us since the last time this was looked at
        self.asked = False
        self.unreadable: list[Unreadable] = []
        self._blobs = FolderBlobs(settings.segments)
        self._store: Store | None = None
        self._version = -1
        self._sources: dict[tuple[str, str], Source] | None = None
        self._stones = Tombstones()
        # newest signal when it began, projects left to link
        self._round: tuple[int, list[int]] | None = None
        self._linked = False

    def take(self, found: list[FoundFile], wait: float) -> list[FoundFile]:
        """Read these files and the spool, under the lock; return the files that could not be
        understood yet.

        Raises Busy if another process holds the lock for longer than `wait`. Nothing is lost then;
        the next call reads it.
        """
        settings = self.settings
        with writable(settings), ingest_lock(settings.home, wait):
            if file_stamp(settings.home / "config.toml") != self.configured:
                # something may be excluded now
                raise Busy("the configuration has changed", "It is read again.")
            # before the spool is read: hooks after this ask again
            self.asked = answer(settings.home) or self.asked
            with self._mending():
                run = self._run(found)
            self._sources = run.sources
            self.unreadable = run.counts.unreadable
        return [
            item
            for item in found
            if not any((name, to_text(item.path)) in run.sources for name in AGENTS)
        ]

    @contextmanager
    def _mending(self) -> Iterator[None]:
        """Rebuild the database if it turns out to be damaged, and raise Busy, so that the caller
        tries again. Needs the lock."""
        try:
            with sound(self.settings):
                yield
        except CorruptStore as error:
            self.close()
            for repair in recover(self.settings, damaged=True):
                log_error(self.settings, StoreError(repair))
            raise Busy(error.message, "It was rebuilt; what is new is read again.") from error

    def _run(self, found: list[FoundFile]) -> Ingest:
        settings = self.settings
        store = self._connected()
        out = load_filters(settings, store)
        self._remember(store)
        # what a run that fails leaves behind is not believed
        known, self._sources = self._sources, None
        blobs, self._blobs = self._blobs, FolderBlobs(settings.segments)
        run = Ingest(store, blobs, journal(settings), wall_clock, self._stones, out, known)
        run.run(found, [], None, spool.files(settings.home))
        self._blobs = blobs  # it need not make the same folders safe again
        return run

    def link(self, wait: float) -> bool:
        """Link the next project with new data; return whether there are more."""
        settings = self.settings
        with writable(settings), ingest_lock(settings.home, wait), self._mending():
            store = self._connected()
            if self._round is None:
                self._round = store.signals.newest(), projects_to_link(store)
            newest, projects = self._round
            if projects:
                outcome = link_project(store, journal(settings), projects.pop())
                self._linked = self._linked or bool(outcome.looked)
            if not projects:
                self._round = None
                self._finish(store, newest)
        return bool(projects)

    def remember(self, renew: RenewMemory, limit: int, wait: float) -> bool:
        """Renew the memory of at most `limit` sessions that have something new; return whether
        there may be more. Raises Busy like `take`."""
        settings = self.settings
        with writable(settings), ingest_lock(settings.home, wait), self._mending():
            return renew(settings, self._connected(), limit) >= limit

    def _finish(self, store: Store, newest: int) -> None:
        if newest > store.mark("signals"):
            with store.transaction(journal(self.settings)):
                store.set_mark("signals", newest)
        if self._linked:
            publish_stories(self.settings, store)
            self._linked = False
        prepare_rules(self.settings, store)
        renew_approvals(store)
        renew_telemetry(store, wall_clock())

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
        self._store = self._sources = self._round = None

    def _connected(self) -> Store:
        """Under the lock. A damaged database is set aside and another takes its name; a lost one
        is made again."""
        settings = self.settings
        if self._store is not None and not self._usable(self._store):
            self.close()
        if self._store is None:
            tighten(settings.home)
            for repair in recover(settings):
                log_error(settings, StoreError(repair))
            self._store = open_store(settings.database)
            self._version = -1
        return self._store

    def _usable(self, store: Store) -> bool:
        """Whether nobody set it aside, left something unfinished, or wrote to the journal alone."""
        settings = self.settings
        if not store.in_place() or (settings.home / FORGET_MARKER).exists():
            return False
        return agrees(store, journal(settings))

    def _remember(self, store: Store) -> None:
        """Remember the database's version, which changes only when another connection has
        written."""
        version = store.version()
        if version != self._version or self._sources is None:
            self._sources = None
            self._stones = require_salt(store.forget.tombstones(self.settings.home))
            self._version = version


def file_stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
