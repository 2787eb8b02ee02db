"""What sessions ended with: a question nobody answered, an error."""

from __future__ import annotations

from collections.abc import Iterable

from whyfor.model.events import SEQ_BITS, SEQ_MASK
from whyfor.model.listing import ListedSession
from whyfor.model.text import one_line
from whyfor.store.protocol import SharedStore

LINE = 240  # characters


def end_texts(store: SharedStore, rows: Iterable[ListedSession]) -> dict[int, str]:
    """Return the questions and errors that sessions ended with, by event, in one line each."""
    found: dict[int, str] = {}
    for row in rows:
        for event in (row.asked, row.failed):
            if event is not None:
                said = store.conversation.openings(event >> SEQ_BITS, [event & SEQ_MASK], LINE)
                found[event] = one_line(next(iter(said.values()), ""))
    return found
