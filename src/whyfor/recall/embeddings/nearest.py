"""Which turns say something like a query. The signs of all vectors are compared first, one bit a
number; of the nearest the numbers themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from whyfor.model.query import Filters
from whyfor.model.vectors import SessionVectors, TurnLikeness, TurnMark, VectorBits
from whyfor.recall.embeddings.numbers import numpy
from whyfor.store.protocol import SharedStore

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


class _Signs:
    """The signs of all vectors that a filter allows, ready to be compared."""

    def __init__(self, rows: Sequence[VectorBits], width: int) -> None:
        np = numpy()
        fitting = [row for row in rows if row.bits and len(row.bits) % width == 0]
        joined = b"".join([row.bits for row in fitting])
        signs = np.frombuffer(joined, dtype="u1").reshape(-1, width)
        self.eight = width % 8 == 0  # bytes at once
        self.signs = signs.view("u8") if self.eight else signs
        self.sessions = np.array([row.session for row in fitting], dtype="i8")
        self.ends = np.cumsum([len(row.bits) // width for row in fitting])

    def near(self, query: Any) -> set[int]:
        """Return the sessions of the vectors whose signs are most like the query's."""
        np = numpy()
        wanted = np.packbits(query > 0)
        wanted = wanted.view("u8") if self.eight else wanted
        different = np.bitwise_count(self.signs ^ wanted).sum(axis=1, dtype="u2")
        nearest = np.arange(len(different))
        if len(different) > CANDIDATES:
            nearest = np.argpartition(different, CANDIDATES)[:CANDIDATES]
        places = np.unique(np.searchsorted(self.ends, nearest, side="right"))
        return set(self.sessions[places].tolist())


class _LastSigns:
    """What was read last, for a process that is asked again before anything was written."""

    def __init__(self) -> None:
        self.known: tuple[object, _Signs] | None = None


_LAST = _LastSigns()


def like_turns(
    store: SharedStore, model: str, query: Any, filters: Filters, stamp: object = None
) -> list[TurnLikeness]:
    """Return the turns nearest to a query's vector, of each session the best, nearest first.
    `stamp` is another one after anything was written; None: nobody knows."""
    near = _read_signs(store, model, len(query), filters, stamp).near(query)
    loaded = store.vectors.load(model, near)
    fitting = {number: each for number, each in loaded.items() if _fits(each, query)}
    return sorted(_best_turns(fitting, query), key=lambda each: (-each.likeness, each.session))


def _read_signs(
    store: SharedStore, model: str, length: int, filters: Filters, stamp: object
) -> _Signs:
    """Return the signs; of a session that is gone meanwhile nothing is found any more, whatever
    they say."""
    key = (stamp, model, length, filters)
    known = _LAST.known
    if stamp is not None and known is not None and known[0] == key:
        return known[1]
    signs = _Signs(store.vectors.bits(model, filters), (length + 7) // 8)
    _LAST.known = (key, signs)
    return signs


def _fits(vectors: SessionVectors, query: Any) -> bool:
    return bool(vectors.turns) and len(vectors.codes) == len(vectors.turns) * len(query)


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
