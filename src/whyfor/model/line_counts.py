"""How many of the lines that a change adds are whose."""

from __future__ import annotations

import msgspec

from whyfor.model.lines import MODIFIED_LINE, PERSON, UNKNOWN_AUTHOR


class FileCounts(msgspec.Struct):
    """One file of a change. The counts of its lines add up to `added`."""

    path: str
    added: int | None  # None: a binary file
    removed: int | None
    agents: dict[str, int] = {}  # lines by agent
    modified: int = 0
    person: int = 0
    unknown: int = 0

    @property
    def agent(self) -> int:
        return sum(self.agents.values())

    def count(self, kind: str, agent: str) -> None:
        """Add one line."""
        if kind == MODIFIED_LINE:
            self.modified += 1
        elif kind == PERSON:
            self.person += 1
        elif kind == UNKNOWN_AUTHOR:
            self.unknown += 1
        else:
            self.agents[agent] = self.agents.get(agent, 0) + 1


class RangeCounts(msgspec.Struct, frozen=True):
    """A change: from one commit to another, file by file."""

    old: str | None  # None: from nothing
    new: str
    files: list[FileCounts]

    @property
    def total(self) -> FileCounts:
        """Return the sums; binary files count as nothing."""
        found = FileCounts("", 0, 0, {})
        for file in self.files:
            found.added = (found.added or 0) + (file.added or 0)
            found.removed = (found.removed or 0) + (file.removed or 0)
            for name, number in file.agents.items():
                found.agents[name] = found.agents.get(name, 0) + number
            found.modified += file.modified
            found.person += file.person
            found.unknown += file.unknown
        return found
