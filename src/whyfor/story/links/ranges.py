"""From links to checkpoints: which part of each session belongs to which commit, and which
commits are one request.

Ranges are told by each session's own order of events, never by time, and never overlap: a
checkpoint's part begins where the session's last one ended. Everything is computed anew from all
links of a session, so the order in which commits became known does not matter.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

import msgspec

from whyfor.model.checkpoints import EVIDENCE, Part, checkpoint_id


class EventOutline(msgspec.Struct):
    """Where in a session its prompts, messages and turns are, by seq."""

    prompts: list[int] = []  # by a person
    messages: list[int] = []  # prompts and answers
    turn_ends: list[int] = []  # the last event of each turn
    opening: int = 0  # the last event before the first turn
    inherited: int = 0  # the last event copied from another session where it belongs to a commit
    seqs: list[int] = []  # of events that say when they were
    times: list[int] = []  # the latest so far: clocks of parallel calls may step back

    def turn_end(self, seq: int) -> int:
        at = bisect_left(self.turn_ends, seq)
        return self.turn_ends[at] if at < len(self.turn_ends) else seq

    def turns(self, first: int, last: int) -> int:
        """How many a range has a part of."""
        begun = bisect_left(self.turn_ends, max(first, self.opening + 1))
        return max(0, bisect_left(self.turn_ends, last) - begun + 1)

    def at(self, when: int) -> int:
        """The last event before a moment; the first one if all are later."""
        before = bisect_right(self.times, when)
        return self.seqs[max(0, before - 1)] if self.seqs else 1


def outline(rows: Iterable[tuple[int, int, str, str, int | None]]) -> EventOutline:
    """From seq, turn, kind, actor and time of a session's events, in order."""
    found = EventOutline([], [], [], 0, 0, [], [])
    current: int | None = None
    for seq, turn, kind, actor, when in rows:
        if turn == 0:
            found.opening = seq
        if turn != current or not found.turn_ends:
            found.turn_ends.append(seq)
            current = turn
        found.turn_ends[-1] = seq
        if kind == "user.prompt" and actor == "user":
            found.prompts.append(seq)
        if kind in ("user.prompt", "assistant.message"):
            found.messages.append(seq)
        if when is not None:
            found.seqs.append(seq)
            found.times.append(max(when, found.times[-1] if found.times else when))
    return found


class RangeClaim(msgspec.Struct, frozen=True):
    """A link of one session to one commit."""

    commit: str
    session: int
    agent: str
    session_id: str
    evidence: str
    confidence: str
    role: str
    cut: int
    committed_at: int
    lines: int = 0
    share: float | None = None
    why: str = ""
    superseded: bool = False  # another commit took this one's place
    heir: str = ""  # which
    parents: tuple[str, ...] = ()


def parts(claims: Iterable[RangeClaim], outlines: dict[int, EventOutline]) -> dict[str, list[Part]]:
    """Of each commit its parts, strongest evidence first; `continued` is told by
    `continue_from`."""
    by_session: dict[int, list[RangeClaim]] = {}
    for claim in claims:
        by_session.setdefault(claim.session, []).append(claim)
    found: dict[str, list[tuple[RangeClaim, Part]]] = {}
    for session, own in by_session.items():
        shape = outlines[session]
        for claim, (first, last) in _ranges(own, shape):
            part = Part(
                agent=claim.agent,
                session_id=claim.session_id,
                evidence=claim.evidence,
                confidence=claim.confidence,
                role=claim.role,
                cut=claim.cut,
                first=first,
                last=last,
                messages=bisect_right(shape.messages, last),
                new_messages=_between(shape.messages, first, last),
                prompts=_between(shape.prompts, first, last),
                turns=shape.turns(first, last),
                lines=claim.lines,
                share=claim.share,
                why=claim.why,
            )
            found.setdefault(claim.commit, []).append((claim, part))
    return {
        commit: [
            part for _, part in sorted(own, key=lambda item: (*_rank(item[1]), item[0].session))
        ]
        for commit, own in found.items()
    }


def _between(seqs: list[int], first: int, last: int) -> int:
    return bisect_right(seqs, last) - bisect_left(seqs, first)


def _rank(part: Part) -> tuple[int, int]:
    return EVIDENCE.index(part.evidence), -part.lines


def _ranges(
    claims: list[RangeClaim], shape: EventOutline
) -> Iterable[tuple[RangeClaim, tuple[int, int]]]:
    live = sorted(
        (c for c in claims if not c.superseded), key=lambda c: (c.cut, c.committed_at, c.commit)
    )
    cuts = sorted({claim.cut for claim in live})
    # where the range of each cut ended, one ahead; what a fork was given has been told there
    ends = [min(shape.inherited, cuts[0] - 1) if cuts else 0]
    for index, cut in enumerate(cuts):
        # the agent's closing words belong to the last commit of the turn
        turn_end = shape.turn_end(cut)
        last = turn_end if index + 1 == len(cuts) or cuts[index + 1] > turn_end else cut
        yield from _same_cut(
            _parents_first([c for c in live if c.cut == cut]), ends[-1] + 1, cut, last
        )
        ends.append(last)
    for claim in claims:
        if claim.superseded:  # as if what took its place were not there
            heirs = {c.cut for c in live if c.commit == claim.heir}
            before = [
                end
                for cut, end in zip(cuts, ends[1:], strict=True)
                if cut < claim.cut and cut not in heirs
            ]
            yield claim, (min(max(before, default=0) + 1, claim.cut), claim.cut)


def _parents_first(claims: list[RangeClaim]) -> list[RangeClaim]:
    """Commits of one command fall into the same second: only their parents tell which came
    first."""
    order: dict[str, RangeClaim] = {}
    known = {claim.commit: claim for claim in claims}
    for claim in claims:
        path = [claim]
        while above := [known[p] for p in path[-1].parents if p in known and p not in order]:
            path.append(above[0])
        order.update({c.commit: c for c in reversed(path) if c.commit not in order})
    return list(order.values())


def _same_cut(
    claims: list[RangeClaim], first: int, cut: int, last: int
) -> Iterable[tuple[RangeClaim, tuple[int, int]]]:
    """Copies of one commit share its range; one edit split over several commits is the last
    event they share."""
    own = [claim for claim in claims if not claim.why.startswith("same change")] or claims[:1]
    for claim in claims:
        if claim not in own:
            yield claim, (first, last)
        else:
            index = own.index(claim)
            yield claim, (first if index == 0 else cut, last if index == len(own) - 1 else cut)


def group_roots(found: dict[str, list[Part]]) -> dict[str, str]:
    """Of each commit the id of its group's first checkpoint.

    The agent went on by itself, or was answered a question of its own: same group. A new
    request: a new one.
    """
    chains: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for commit, own in found.items():
        for part in own:
            chains.setdefault((part.agent, part.session_id), []).append(
                (part.last, part.first, commit)
            )
    roots: dict[str, str] = {}
    for chain in chains.values():
        chain.sort()

    def root(commit: str) -> str:
        """Up the chain of the commit's strongest session, as long as nobody asked for anything."""
        path: list[str] = []
        while commit not in roots:
            path.append(commit)
            part = found[commit][0]
            chain = chains[part.agent, part.session_id]
            here = (part.last, part.first, commit)  # commits of one command share its result
            before = [place[2] for place in chain if place[0] <= part.first and place < here]
            if part.prompts or not before or before[-1] in path:
                roots[commit] = checkpoint_id(commit)
            else:
                commit = before[-1]
        for below in path:
            roots[below] = roots[commit]
        return roots[commit]

    for commit, own in found.items():
        if own:
            root(commit)
    return roots


def continue_from(own: list[Part], parents: Iterable[list[Part]]) -> list[Part]:
    """Mark the sessions that a parent commit came from too."""
    before = {(part.agent, part.session_id) for parts in parents for part in parts}
    return [
        msgspec.structs.replace(part, continued=(part.agent, part.session_id) in before)
        for part in own
    ]
