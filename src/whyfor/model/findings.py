"""What agents' readers extract from records, per session; the store saves it."""

from __future__ import annotations

from typing import Any

from whyfor.model.events import Event, Touch, Usage
from whyfor.model.gaps import FILLER

Record = dict[str, Any]


class Spent(list[Usage]):
    """Usage in order of appearance, each with the number of the session's events before it."""

    def __init__(self, events: list[Event]) -> None:
        super().__init__()
        self.events = events
        self.at: list[int] = []

    def append(self, item: Usage) -> None:
        self.at.append(len(self.events))
        super().append(item)


class Bucket:
    """The events, titles, usage and files of one session, found in a run of records."""

    __slots__ = (
        *("confidence", "copied", "events", "facts", "leaf_titles", "parent"),
        *("session_id", "shortened", "source", "touches", "usage"),
    )

    def __init__(self, session_id: str, parent: str | None = None) -> None:
        self.session_id = session_id
        self.parent = parent
        # where its events are from, and how sure they are
        self.source, self.confidence = "transcript", "high"
        self.events: list[Event] = []
        # how many of these, and all before them, were written in another session; None: none
        self.copied: int | None = None
        self.shortened = 0  # so many of these events were looked at for long results
        self.usage = Spent(self.events)
        self.touches: list[Touch] = []
        self.facts: Record = {}
        self.leaf_titles: list[tuple[int, str]] = []

    def mark_copied(self, restored_from: str = "") -> None:
        """All events so far were copied from another session: by the agent itself, or by a
        restore of the session `restored_from` (agent:id)."""
        self.copied = len(self.events)
        if restored_from:
            self.facts["restored_from"] = restored_from

    def title(self, rank: int, text: object) -> None:
        """Set a title for the session; within one rank the last one wins. Private titles are
        ignored."""
        words = text.strip() if isinstance(text, str) else ""
        if words not in ("", FILLER.decode()) and rank >= self.facts.get("title_rank", -1):
            self.facts["title_rank"], self.facts["title"] = rank, words


class Sink:
    """Collects what a reader finds: usually for one session, sometimes also for its subagents."""

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
