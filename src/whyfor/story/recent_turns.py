"""A session's last turns, for those who tell of it in a few lines: read anew each time, cut
short, never kept whole."""

from __future__ import annotations

from whyfor.model.events import StoredEvent
from whyfor.model.turns import Turn
from whyfor.store.protocol import SharedStore
from whyfor.story.summary import TURNS
from whyfor.story.turns import build_turns

EVENTS = 150  # of a session's end
CUT = 1000  # characters of each of them


def recent_turns(store: SharedStore, number: int) -> tuple[list[Turn], list[StoredEvent]]:
    """Return a session's last turns, and the events they are made from."""
    events = store.conversation.tail(number, EVENTS, CUT)
    found = build_turns(events)[-TURNS - 1 :]
    last = found[-1] if found else None
    if last is not None and last.prompt is None:
        seq = store.conversation.prompt_before(number, events[0].seq)
        if seq:
            asked = next(iter(store.conversation.events(number, seq, seq)))
            last.prompt, last.started_at = asked.text[:CUT], asked.created_at
            last.duration_ms = None  # its beginning is further back than was read
    return found, events
