"""Which turns say something like a query. The signs of all vectors are compared first, one bit a
number; of the nearest the numbers themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from whyfor.model.query import Filters
from whyfor.model.vectors import SessionVectors, TurnLikeness, TurnMark, VectorBits
from whyfor.recall.embeddings.numbers import numpy
from whyfor.store.protocol import Store

CANDIDATES = 1_000  # vectors that are compared by their numbers


def pack_vectors(model: str, turns: Iterable[TurnMark], vectors: Any) -> SessionVectors:
    """Return vectors as they are stored: `vectors` is a matrix with one for each turn."""
    np = numpy()
    marks = tuple(turns)
    if not marks:
        return SessionVectors(model, (), b"", b"")
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    codes = np.round(vectors / largest * 127).astype("i1")
    bits = np.packbits(vectors > 0, axis=1)
    return SessionVectors(model, marks, bits.tobytes(), codes.tobytes())


def like_turns(store: Store, model: str, query: Any, filters: Filters) -> list[TurnLikeness]:
    """Return the turns nearest to a query's vector, of each session the best, nearest first."""
    near = _near_sessions(store.vectors.bits(model, filters), query)
    loaded = store.vectors.load(model, near)
    found = _best_turns(
        {number: each for number, each in loaded.items() if _fits(each, query)}, query
    )
    return sorted(found, key=lambda each: (-each.likeness, each.session))


def _fits(vectors: SessionVectors, query: Any) -> bool:
    return bool(vectors.turns) and len(vectors.codes) == len(vectors.turns) * len(query)


def _near_sessions(rows: Sequence[VectorBits], query: Any) -> set[int]:
    """Return the sessions of the vectors whose signs are most like the query's."""
    np = numpy()
    wanted = np.packbits(query > 0)
    width = len(wanted)
    fitting = [row for row in rows if row.bits and len(row.bits) % width == 0]
    if not fitting:
        return set()
    signs = np.frombuffer(b"".join(row.bits for row in fitting), dtype="u1").reshape(-1, width)
    if width % 8 == 0:  # eight bytes at once
        signs, wanted = signs.view("u8"), wanted.view("u8")
    different = np.bitwise_count(signs ^ wanted).sum(axis=1, dtype="u2")
    ends = np.cumsum([len(row.bits) // width for row in fitting])
    nearest = np.arange(len(different))
    if len(different) > CANDIDATES:
        nearest = np.argpartition(different, CANDIDATES)[:CANDIDATES]
    places = np.unique(np.searchsorted(ends, nearest, side="right"))
    return {fitting[place].session for place in places.tolist()}


def _best_turns(loaded: dict[int, SessionVectors], query: Any) -> Iterator[TurnLikeness]:
    """Yield the nearest turn of each session."""
    np = numpy()
    joined = b"".join(vectors.codes for vectors in loaded.values())
    codes = np.frombuffer(joined, dtype="i1").reshape(-1, len(query)).astype("f4")
    lengths = np.sqrt((codes * codes).sum(axis=1))
    likeness = ((codes @ query) / np.maximum(lengths, 1)).tolist()
    start = 0
    for session, vectors in loaded.items():
        own = likeness[start : start + len(vectors.turns)]
        start += len(own)
        place = max(range(len(own)), key=own.__getitem__)
        mark = vectors.turns[place]
        yield TurnLikeness(session, mark.turn, mark.seq, own[place])
