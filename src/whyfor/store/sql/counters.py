"""A session while it is being written."""

from __future__ import annotations

from typing import Any

from whyfor.model.titles import TITLE_PROMPT


class SessionCounters:
    """A session while it is being written: counters that go to its row when the batch ends."""

    __slots__ = ("dirty_from", "id", "indexed_title", "known", "named", "row", "usage_changed")

    def __init__(self, id: int, row: dict[str, Any], *, created: bool) -> None:
        self.id = id
        self.row = row
        # keys, while cheaper to remember than to look up
        self.known: set[int] | None = set() if created else None
        self.dirty_from: int | None = None  # first seq whose search index is out of date
        self.usage_changed = False
        self.named = False  # a legacy title names one of its messages
        self.indexed_title = own_title(row)

    def copy(self) -> SessionCounters:
        """Return the same as it is now; its keys are looked up from then on."""
        other = SessionCounters(self.id, dict(self.row), created=False)
        for name in ("dirty_from", "usage_changed", "named", "indexed_title"):
            setattr(other, name, getattr(self, name))
        return other


def own_title(row: dict[str, Any]) -> str | None:
    """A title that says more than the first prompt does."""
    return row["title"] if row["title_rank"] > TITLE_PROMPT else None


SESSION_ROW = """
    parent subagent project_id cwd branch title title_rank version forked_from started_at ended_at
    last_seq turn prompts messages tool_calls unparsed copied_to restored_from copy_of copy_kind
    own_from original
""".split()
