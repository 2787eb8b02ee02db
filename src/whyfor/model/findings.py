"""What a run of records says, session by session: handed from the agents' readers to the store."""

from __future__ import annotations

from typing import Any

from whyfor.model.events import Event, Touch, Usage
from whyfor.model.gaps import FILLER

Record = dict[str, Any]

TITLE_PROMPT, TITLE_DERIVED, TITLE_AGENT, TITLE_PERSON = range(4)  # a higher rank wins


class Spent(list[Usage]):
    """Usage in the order it was met, and for each how many events of the session came before it."""

    def __init__(self, events: list[Event]) -> None:
        super().__init__()
        self.events = events
        self.at: list[int] = []

    def append(self, item: Usage) -> None:
        self.at.append(len(self.events))
        super().append(item)


class Bucket:
    """What a run of records says about one session."""

    __slots__ = ("events", "facts", "leaf_titles", "parent", "session_id", "touches", "usage")

    def __init__(self, session_id: str, parent: str | None = None) -> None:
        self.session_id = session_id
        self.parent = parent
        self.events: list[Event] = []
        self.usage = Spent(self.events)
        self.touches: list[Touch] = []
        self.facts: Record = {}
        self.leaf_titles: list[tuple[int, str]] = []

    def title(self, rank: int, text: object) -> None:
        """A title for the session; of one rank the last one wins. One that is not kept is none."""
        words = text.strip() if isinstance(text, str) else ""
        if words not in ("", FILLER.decode()) and rank >= self.facts.get("title_rank", -1):
            self.facts["title_rank"], self.facts["title"] = rank, words


class Sink:
    """Where a reader puts what it understood: mostly one session, sometimes its subagents too."""

    __slots__ = ("buckets", "main", "unknown")

    def __init__(self, session_id: str, parent: str | None = None) -> None:
        self.main = Bucket(session_id, parent)
        self.buckets = {session_id: self.main}
        self.unknown: dict[str, int] = {}

    def subagent(self, session_id: str) -> Bucket:
        bucket = self.buckets.get(session_id)
        if bucket is None:
            bucket = self.buckets[session_id] = Bucket(session_id, self.main.session_id)
        return bucket

    def unknown_type(self, name: object) -> None:
        self.unknown[str(name)] = self.unknown.get(str(name), 0) + 1
