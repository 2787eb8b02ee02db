"""What turns cost, for everybody who tells of them: the same numbers on a page, in the API and
in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from whyfor.model.events import StoredEvent
from whyfor.model.sessions import Session, Tokens
from whyfor.model.turns import Turn
from whyfor.store.open import OpenStore
from whyfor.story.turns import build_turns


def total(parts: Iterable[Tokens]) -> Tokens:
    """Return the sum; unknown plus unknown stays unknown."""
    sums: dict[str, int | None] = dict.fromkeys(Tokens.__struct_fields__)
    for part in parts:
        for name, known in sums.items():
            value = getattr(part, name)
            if value is not None:
                sums[name] = value + (known or 0)
    return Tokens(**sums)


def tokens_by_turn(
    own: dict[int, Tokens], begun: Iterable[tuple[int | None, int]], children: Sequence[Session]
) -> dict[int, Tokens]:
    """Return the tokens of each turn: its own, and those of the subagents it called. `begun`: when
    each turn began."""
    found = dict(own)
    order = sorted((at, turn) for at, turn in begun if at)
    for child in children:
        before = [turn for at, turn in order if child.started_at and at <= child.started_at]
        if before:
            turn = before[-1]
            found[turn] = total([found.get(turn, Tokens()), child.tokens])
    return found


def turns_of(library: OpenStore, session: Session, events: Iterable[StoredEvent]) -> list[Turn]:
    """With their tokens, and the requests that only hooks told of."""
    signals = library.signals.of_session(session.agent, session.session_id)
    made = build_turns(events, signals=signals, agent=session.agent)
    children = [
        child
        for child in library.sessions.children([session.session_id])
        if child.agent == session.agent
    ]
    costs = tokens_by_turn(
        library.conversation.tokens_by_turn(session.id),
        ((turn.started_at, turn.turn) for turn in made),
        children,
    )
    for turn in made:
        turn.tokens = costs.get(turn.turn)
    return made
