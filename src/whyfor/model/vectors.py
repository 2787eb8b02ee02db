"""What is kept of a session so that it is found by its meaning: one vector for each turn."""

from __future__ import annotations

import msgspec


class TurnMark(msgspec.Struct, frozen=True, array_like=True):
    """Which turn a vector stands for, and of which text it was made."""

    turn: int
    seq: int  # of the turn's first words
    digest: bytes  # of the text: whether it has changed since


class SessionVectors(msgspec.Struct, frozen=True):
    """The vectors of a session's turns, in their order: for each its signs, one bit a number, and
    its numbers, one byte each."""

    model: str  # that made them; those of different models cannot be compared
    turns: tuple[TurnMark, ...]
    bits: bytes
    codes: bytes


class VectorBits(msgspec.Struct, frozen=True):
    """The signs of a session's vectors."""

    session: int
    bits: bytes


class VectorCounts(msgspec.Struct, frozen=True):
    """How many vectors there are of a model, what they take, and what is still to be done."""

    sessions: int = 0
    vectors: int = 0
    bytes: int = 0  # of all vectors, also of other models
    waiting: int = 0  # sessions without vectors, or with old ones


class TurnLikeness(msgspec.Struct, frozen=True):
    """A turn that says something like a query: 1 is the same, 0 has nothing to do with it."""

    session: int
    turn: int
    seq: int
    likeness: float
