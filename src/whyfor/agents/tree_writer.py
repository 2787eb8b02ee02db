"""Write sessions of agents whose transcript is a tree of lines: each names itself and the line it
follows."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from whyfor.agents.base import get_str
from whyfor.agents.conversation import NewFile, NewSession, SpokenLine
from whyfor.model.findings import Record


class TreeWriter:
    """What such writers share. An agent says what its lines are called and hold."""

    own, parent = "uuid", "parentUuid"  # the keys of a line's id, and of the one it follows

    def new_id(self, now: int) -> str:
        return str(uuid.uuid4())

    def ident(self, record: Record) -> str | None:
        return get_str(record, self.own) or None

    def continues(self, records: Sequence[Record]) -> tuple[str, int] | None:
        return None

    def beside(
        self, path: str, records: Sequence[Record] | None, session_id: str, place: NewSession
    ) -> NewFile | None:
        return None

    # -- what an agent says ----------------------------------------------------------------------

    def opens(self, record: Record) -> list[str]:
        raise NotImplementedError

    def answers(self, record: Record) -> list[str]:
        raise NotImplementedError

    def kept(self, record: Record) -> bool:
        """Return whether a line belongs to the conversation."""
        raise NotImplementedError

    def moved(self, record: Record, place: NewSession) -> Record:
        """Return a line as one of the new session, without its tokens: they were spent in the
        session it comes from."""
        raise NotImplementedError

    def head(self, place: NewSession, origin: Record) -> list[Record]:
        """Return the lines that come before the conversation; `origin` is the first line there
        was."""
        return []

    def spoken(self, said: Iterable[SpokenLine]) -> list[Record]:
        raise NotImplementedError

    # -- sessions --------------------------------------------------------------------------------

    def exact(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        """Return the active branch: what the agent would send to the model."""
        return self.joined(self.live(records), place)

    def live(self, records: Sequence[Record]) -> list[Record]:
        tree = [record for record in records if self.ident(record)]
        by_name = {record[self.own]: record for record in tree}
        wanted: set[str] = set()
        at: Any = tree[-1][self.own] if tree else None
        while isinstance(at, str) and at in by_name and at not in wanted:
            wanted.add(at)
            at = by_name[at].get(self.parent)
        return [record for record in tree if record[self.own] in wanted and self.kept(record)]

    def joined(self, records: Sequence[Record], place: NewSession) -> list[Record]:
        head = self.head(place, records[0] if records else {})
        chain: list[Record] = []
        last = next((record[self.own] for record in reversed(head) if self.ident(record)), None)
        for record in records:
            line = {**self.moved(record, place), self.parent: last}
            chain.append(line)
            last = line[self.own]
        if chain:
            chain[-1] = {**chain[-1], "restoredFrom": place.copy_of}
        return [*head, *chain]
