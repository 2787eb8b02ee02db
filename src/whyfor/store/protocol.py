"""What every store can do, whatever database is behind it: one side writes under the ingest
lock, all others read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from whyfor.model.events import StoredEvent
from whyfor.model.findings import Bucket
from whyfor.model.gaps import Gap
from whyfor.model.query import Filters, Match, Query
from whyfor.model.sessions import Project, Session
from whyfor.model.signals import Process, Signal
from whyfor.model.sources import Source, UnparsedRecord
from whyfor.store.journal import SegmentEntry


class StoreWriter(Protocol):
    """Applies what readers found, inside the caller's transaction; the same thing twice is
    stored once."""

    def sources(self) -> dict[tuple[str, str], Source]:
        """Every source by agent and path, without its state."""

    def source(self, agent: str, path: str) -> Source | None:
        """One of them, without its state."""

    def load_state(self, source: Source) -> None: ...

    def save_source(self, source: Source) -> None: ...

    def restart(self, source: Source, generation: int) -> None:
        """The source is read again from its first byte."""

    def add_segment(self, source: Source, entry: SegmentEntry) -> None: ...

    def newest_segments(self, source: Source, limit: int) -> list[tuple[int, int, str, int]]:
        """Newest first, unfinished lines aside: generation, start, address, bytes kept."""

    def unfinished_segment(self, source: Source) -> str | None:
        """The address of a last line that had no end yet."""

    def move_segment(self, source: Source, generation: int, start: int, address: str) -> None:
        """The same bytes, elsewhere."""

    def gaps(self, source: Source) -> list[Gap]:
        """What is not kept of a source's newest generation."""

    def hide(self, source: Source, hiding: Mapping[str, Any]) -> None:
        """Remember what else of a source must not be kept."""

    def hiding(self) -> list[tuple[int, int, str, str, dict[str, Any]]]:
        """The same of all sources: id, generation, agent, session."""

    def add_problems(
        self, source: Source, problems: list[UnparsedRecord], unknown: dict[str, int]
    ) -> None: ...

    def add_signals(self, signals: list[Signal]) -> None: ...

    def session_around(self, chain: list[Process], at: int) -> tuple[str, str] | None:
        """Agent and id of the session that the nearest of these processes was in at that time."""

    def place(self, cwd: str) -> int | None:
        """The project a folder is known to belong to."""

    def project(self, number: int) -> Project | None: ...

    def former(self, project: Project) -> list[tuple[str, str | None]]: ...

    def adopt(self, path: str, project: Project) -> int:
        """Everything recorded at or below a path belongs to this project."""

    def adopted(self, cwd: str) -> Project | None:
        """The project a person gave a path to."""

    def learn_place(
        self, cwd: str, project: Project, former: list[str], observed_at: int
    ) -> int: ...

    def homeless(self, agent: str, bucket: Bucket) -> bool: ...

    def whereabouts(self, agent: str, session_id: str) -> str | None:
        """The folder a session is known to have begun in."""

    def has_event(self, agent: str, session_id: str, key: int) -> bool: ...

    def apply(self, agent: str, bucket: Bucket, observed_at: int, *, mutable: bool) -> int:
        """Store what a run of records says about a session; returns the number of new events."""

    def settle(self, agent: str, session_id: str) -> None: ...

    def finish(self) -> None:
        """Bring what is derived from whole sessions up to date, before the transaction ends."""


class StoreReader(Protocol):
    """Never writes."""

    def sessions(
        self, filters: Filters, *, limit: int | None, subagents: bool
    ) -> list[Session]: ...

    def children(self, session_ids: list[str]) -> list[Session]: ...

    def session(self, reference: str, agent: str | None = None) -> Session: ...

    def by_number(self, ids: list[int]) -> dict[int, Session]: ...

    def events(self, session: int, first: int = ..., last: int = ...) -> Iterator[StoredEvent]: ...

    def segments(self, session: Session) -> list[tuple[str, int, int, str, list[Gap]]]: ...

    def projects(self) -> list[tuple[int, Project]]: ...

    def places(self) -> dict[str, int]: ...

    def match(
        self,
        query: Query,
        filters: Filters,
        limit: int,
        *,
        any_clause: bool = False,
        newest: bool = False,
    ) -> list[Match]:
        """Pieces of turns that hold all clauses of a query, or with any_clause one of them."""

    def coverage(
        self, query: Query, fields: tuple[str, ...], matches: list[Match]
    ) -> dict[tuple[int, int], float]: ...

    def totals(self) -> dict[str, int]: ...

    def grouped(self, by: str, filters: Filters) -> list[tuple[Any, ...]]: ...
