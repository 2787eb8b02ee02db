"""Find words in the whole of what tools printed, of which the index has only head and tail: reads
the stored segments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import msgspec

from whyfor.capture.records import SegmentPiece, read_events
from whyfor.model.errors import StoreError
from whyfor.model.events import Event
from whyfor.model.query import Atom, Filters, Match, Query
from whyfor.model.sources import Source
from whyfor.recall.query import content
from whyfor.recall.snippets import WordFinder, has_all_words
from whyfor.store.open import OpenStore

# Accented Latin letters, as they stand in UTF-8 or JSON: they hide a word that has none.
_ACCENTED = re.compile(rb"[\xc3-\xc9]|\\u0[01][0-9a-fA-F]{2}|\xe1[\xb8-\xbb]")


class WholeResult(msgspec.Struct, frozen=True):
    """A tool's result that has all the words, and the turn it belongs to."""

    match: Match
    text: str


def scan_results(
    library: OpenStore, query: Query, filters: Filters, sessions: int
) -> list[WholeResult]:
    """Return results with all the words, of so many sessions at most, newest sessions first."""
    if filters.fields and "tools" not in filters.fields:
        return []
    scan = _Scan(library, content(query))
    found: list[WholeResult] = []
    seen: set[int] = set()
    for source in library.records.sources_within(filters):
        for result in scan.results(source):
            if _in_time(result.match, filters):
                found.append(result)
                seen.add(result.match.session)
        if len(seen) >= sessions:
            break
    return found


def _in_time(match: Match, filters: Filters) -> bool:
    at = match.created_at or 0
    if filters.since is not None and at < filters.since:
        return False
    return filters.until is None or at <= filters.until


class _Scan:
    """Looks through the segments of sources for one query."""

    def __init__(self, library: OpenStore, query: Query) -> None:
        self.library = library
        self.query = query
        self.stem = cache(library.search.stem)
        self.hints = [self._hint(clause) for clause in query.clauses]
        self.turns: set[tuple[int, int]] | None = None
        if query.files or query.tools:
            bare = Query(files=query.files, tools=query.tools)
            matches = library.search.match(bare, Filters(), -1)
            self.turns = {(match.session, match.turn) for match in matches}

    def _hint(self, clause: tuple[Atom, ...]) -> list[bytes]:
        return [WordFinder(atom, self.stem).literal.encode() for atom in clause]

    def results(self, source: Source) -> Iterator[WholeResult]:
        for stored in self.library.records.pieces(source):
            try:
                data = self.library.blobs.get(stored.address)
            except StoreError:
                continue  # doctor names it
            if not self.may_have(data):
                continue
            piece = SegmentPiece(stored.start, data, stored.gaps)
            for session_id, event in read_events(source, [piece], self.may_have):
                if event.kind == "tool.result" and self._has_words(event):
                    yield from self._placed(source.agent, session_id, event)

    def may_have(self, data: bytes) -> bool:
        """Return whether the words may stand in some bytes; far cheaper than to parse them."""
        lowered = data.lower()
        for hints in self.hints:
            if not any(hint in lowered for hint in hints):
                return _ACCENTED.search(data) is not None
        return True

    def _has_words(self, event: Event) -> bool:
        return has_all_words(event.text, self.query, self.stem)

    def _placed(self, agent: str, session_id: str, event: Event) -> Iterator[WholeResult]:
        """Say where a result stands, if it is stored and the query allows its turn."""
        number = self.library.sessions.numbers([(agent, session_id)]).get((agent, session_id))
        if number is None:
            return
        match = self.library.search.turn_of(number, event.key)
        if match is None:
            return
        if self.turns is None or (match.session, match.turn) in self.turns:
            yield WholeResult(match, event.text)
