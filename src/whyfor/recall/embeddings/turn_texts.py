"""What a vector is made of: of each turn the session's title, the request, and the closing
words."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import msgspec

from whyfor.model.events import StoredEvent
from whyfor.model.vectors import TurnMark

PROMPT = 350  # characters of a turn's prompts
CLOSING = 500  # of the agent's last words in it
MOST = 400  # turns of a session: the last ones
_DIGEST = 8  # bytes


class TurnText(msgspec.Struct, frozen=True):
    mark: TurnMark
    text: str


class _Turn:
    def __init__(self, seq: int) -> None:
        self.seq = seq
        self.prompt = ""
        self.closing = ""


def turn_texts(title: str, events: Iterable[StoredEvent]) -> list[TurnText]:
    """Return the texts of a session's turns in their order; turns in which nothing was said have
    none."""
    turns: dict[int, _Turn] = {}
    for event in _spoken(events):
        turn = turns.setdefault(event.turn, _Turn(event.seq))
        if event.kind == "assistant.message":
            turn.closing = event.text[:CLOSING]
        elif len(turn.prompt) < PROMPT:
            turn.prompt += f"{event.text[:PROMPT]}\n"
    found: list[TurnText] = []
    for number, turn in sorted(turns.items())[-MOST:]:
        text = f"{title}\n{turn.prompt[:PROMPT]}\n{turn.closing}"
        digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_DIGEST).digest()
        found.append(TurnText(TurnMark(number, turn.seq, digest), text))
    return found


def _spoken(events: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
    for event in events:
        if event.kind in ("user.prompt", "assistant.message") and event.text:
            yield event
