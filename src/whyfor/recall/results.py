"""What a search finds, in one list: sessions, and among them the notes and commits that have the
words."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import msgspec

from whyfor.model.checkpoints import LinkedCommit
from whyfor.model.memory import MemoryFilter, StoredObservation
from whyfor.model.query import Filters, Hit, Query
from whyfor.recall.note_standing import supersede_notes
from whyfor.recall.query import content
from whyfor.recall.related import fitting_commits, fitting_notes
from whyfor.recall.search import HitRange, hit_page
from whyfor.recall.snippets import word_finders
from whyfor.store.open import OpenStore
from whyfor.store.protocol import SharedStore

AMONG = 3  # notes and commits behind the first session, each
COMMITS = 300  # that are looked at
_NOTES = 600  # that are looked at, newest first

SearchResult = Hit | StoredObservation | LinkedCommit
NoteFilter = Callable[[list[StoredObservation]], list[StoredObservation]]


class ResultPage(msgspec.Struct, frozen=True):
    """Results, and the place to go on from; None after the last."""

    results: list[SearchResult]
    following: int | None
    trouble: str = ""  # why sessions were not looked for by meaning, though they could be


def result_page(
    store: OpenStore,
    query: Query,
    filters: Filters,
    which: HitRange,
    still_hold: NoteFilter | None = None,
) -> ResultPage:
    """Return sessions, best first, and behind the first of them notes and commits with the words;
    or all by time. `still_hold` says which notes are worth telling; without it only those stand
    here that have all the words, are not told with their session, and nothing speaks against.
    Where turns or parts of them are asked for, and after the first page, there are only those."""
    found = hit_page(store, query, filters, which)
    results: list[SearchResult] = [*found.hits]
    if not (which.after or which.turns or filters.fields):
        told = {note.key for hit in found.hits for note in hit.notes}
        notes = find_notes(store, query, filters, every=still_hold is None)
        if still_hold is None:
            notes = [each for each in notes if _is_apart(each, told)]
        else:
            notes = still_hold(notes[: 2 * AMONG])
        commits = fitting_commits(store, query, filters, COMMITS)[:AMONG]
        if which.newest:
            results = sorted([*results, *notes[:AMONG], *commits], key=result_time, reverse=True)
        else:
            results[1:1] = [*notes[:AMONG], *commits]
    return ResultPage(results, found.following, found.trouble)


def find_notes(
    store: SharedStore, query: Query, filters: Filters, *, every: bool = False
) -> list[StoredObservation]:
    """Return the notes that have most of the words, or `every` one, those with most of them first;
    none if the query says more than words."""
    if query.tools or query.files or query.without or filters.committed:
        return []
    finders = word_finders(content(query), cache(store.search.stem))
    known = store.memory.observations(MemoryFilter(filters, current=True), _NOTES)
    return fitting_notes(supersede_notes(known), finders, every=every)


def _is_apart(stored: StoredObservation, told: set[str]) -> bool:
    """Return whether a note holds, as far as is known, and is not among those of a session."""
    note = stored.observation
    return note.key not in told and note.state != "refuted" and stored.superseded_by is None


def result_time(result: SearchResult) -> int:
    """Return when something was said, noted or committed; 0 if nobody knows."""
    if isinstance(result, Hit):
        return result.best.created_at or 0
    if isinstance(result, LinkedCommit):
        return result.committed_at
    return result.observation.at or 0
