"""Which records of a session leave with the commits that were pushed.

A session is shared from its beginning to the end of the last range that belongs to a pushed commit:
what was said before is the context of what came of it. Left out are the ranges of commits that were
not pushed, of other projects' commits, and of commits that a person holds back, and what was
restored from somebody else; nothing after the last pushed commit leaves. The unit is the record: a
record leaves whole or not at all.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

import msgspec

from whyfor.model.checkpoints import Checkpoint
from whyfor.model.sessions import Session
from whyfor.store.protocol import Store

Range = tuple[int, int]  # first and last event
EVERYTHING = 1 << 60


class SessionSelection(msgspec.Struct, frozen=True):
    """What of a session is shared."""

    session: Session
    last: int  # the last event; EVERYTHING: also what will follow
    withheld: tuple[Range, ...] = ()  # ranges before it that stay here
    shared: tuple[Range, ...] = ()  # ranges that leave even so

    def keeps(self, seq: int) -> bool:
        """Return whether an event is shared."""
        if seq > self.last:
            return False
        if _inside(seq, self.shared):
            return True
        return not _inside(seq, self.withheld)


def select_session(
    store: Store, session: Session, pushed: Container[str], *, whole: bool
) -> SessionSelection:
    """Return what of a session leaves, given the commits that were pushed; all of it if `whole`."""
    # somebody else's words, which they share themselves
    given = [(1, session.given)] if session.given else []
    if whole:
        return SessionSelection(session, EVERYTHING, tuple(given))
    shared: list[Range] = []
    withheld: list[Range] = [*given]
    for sha, checkpoint in store.checkpoints.of_sessions([session.id]).items():
        ranges = _ranges(checkpoint, session)
        if sha in pushed:
            shared += ranges
        elif checkpoint.superseded_by not in pushed:
            withheld += ranges
    last = max((last for _, last in shared), default=0)
    before = [each for each in withheld if each[0] <= last]
    return SessionSelection(session, last, tuple(sorted(before)), tuple(sorted(shared)))


def _ranges(checkpoint: Checkpoint, session: Session) -> list[Range]:
    found = []
    for part in checkpoint.parts:
        if part.name == session.name:
            found += part.ranges
    return found


def subagents_of(store: Store, chosen: SessionSelection) -> list[Session]:
    """Return the subagents that began in what is shared of their caller. A subagent leaves whole:
    its result is in its caller's records."""
    children = store.sessions.children([chosen.session.session_id])
    if chosen.last == EVERYTHING:
        return children
    times = _times(store, chosen)
    return [each for each in children if _began_inside(each, times)]


def _times(store: Store, chosen: SessionSelection) -> list[tuple[int, int]]:
    """Return the periods in which shared events of a session happened."""
    found: list[tuple[int, int]] = []
    open_ = False
    for head in store.conversation.heads(chosen.session.id):
        if not chosen.keeps(head.seq):
            open_ = False
        elif head.at is not None:
            if open_:
                found[-1] = (found[-1][0], max(found[-1][1], head.at))
            else:
                found.append((head.at, head.at))
                open_ = True
    return found


def _began_inside(session: Session, times: Iterable[tuple[int, int]]) -> bool:
    began = session.started_at
    return began is not None and any(first <= began <= last for first, last in times)


def _inside(seq: int, ranges: Iterable[Range]) -> bool:
    return any(first <= seq <= last for first, last in ranges)
