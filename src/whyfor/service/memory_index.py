"""memory index: make the vectors by which sessions are found by meaning."""

from __future__ import annotations

import msgspec

from whyfor.config import Settings
from whyfor.model.progress import Announce
from whyfor.recall.embeddings.index import (
    IndexRound,
    VectorIndexState,
    clear_vectors,
    index_state,
    make_vectors,
)
from whyfor.store.open import reading


class IndexReport(msgspec.Struct, frozen=True):
    """What was done, and what there is now."""

    made: IndexRound
    state: VectorIndexState


def index_sessions(
    settings: Settings,
    limit: int | None = None,
    announce: Announce | None = None,
    *,
    rebuild: bool = False,
) -> IndexReport:
    """Make the vectors of sessions that have none or old ones, `limit` sessions at most; with
    `rebuild` of all of them. Raises MissingExtra, NotFound, BadInput, Busy or a model's error; what
    was made before stays."""
    with reading(settings):
        pass  # raises NotFound if nothing is stored
    if rebuild:
        clear_vectors(settings)
    made = make_vectors(settings, most=limit, announce=announce)
    with reading(settings) as store:
        return IndexReport(made, index_state(settings, store))
