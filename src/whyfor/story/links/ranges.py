"""From links to checkpoints: which part of each session belongs to which commit, and which
commits are one request.

Ranges are told by each session's own order of events, never by time, and never overlap: a
checkpoint's part begins where the session's last one ended. Everything is computed anew from all
links of a session, so the order in which commits became known does not matter.
"""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import msgspec

from whyfor.model.checkpoints import EVIDENCE, Part, checkpoint_id

SQUASHED = "squashed"  # the role of a session that has a part only through a squash's sources


_NEVER = sys.maxsize


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
    replaced_by: str = ""  # the commit that took this one's place
    parents: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()  # the commits it was squashed from

    @property
    def is_borrowed(self) -> bool:
        """Whether the session has a part in the commit only through its sources."""
        return self.role == SQUASHED


Ranges = list[tuple[int, int]]


def parts(claims: Iterable[RangeClaim], outlines: dict[int, EventOutline]) -> dict[str, list[Part]]:
    """Of each commit its parts, strongest evidence first; `continued` is told by
    `continue_from`."""
    by_session: dict[int, list[RangeClaim]] = {}
    for claim in claims:
        by_session.setdefault(claim.session, []).append(claim)
    found: dict[str, list[tuple[int, Part]]] = {}
    for session, own in by_session.items():
        drawn = _SessionRanges(own, outlines[session])
        for claim in own:
            part = _part(claim, drawn.of(claim), outlines[session])
            found.setdefault(claim.commit, []).append((session, part))
    return {commit: strongest_first(own) for commit, own in found.items()}


def _part(claim: RangeClaim, ranges: Ranges, shape: EventOutline) -> Part:
    first, last = ranges[0][0], ranges[-1][1]
    own = min(first, shape.inherited + 1)  # what a copy was given counts where it came from
    return Part(
        agent=claim.agent,
        session_id=claim.session_id,
        evidence=claim.evidence,
        confidence=claim.confidence,
        role=claim.role,
        cut=claim.cut,
        first=first,
        last=last,
        messages=_between(shape.messages, own, last),
        new_messages=sum(_between(shape.messages, *piece) for piece in ranges),
        prompts=sum(_between(shape.prompts, *piece) for piece in ranges),
        turns=sum(shape.turns(*piece) for piece in ranges),
        lines=claim.lines,
        share=claim.share,
        why=claim.why,
        pieces=tuple(ranges) if len(ranges) > 1 else (),
    )


def strongest_first(own: list[tuple[int, Part]]) -> list[Part]:
    """Return parts, given with the numbers of their sessions, in the order they are told."""
    own.sort(key=lambda item: (*_rank(item[1]), item[0]))
    return [part for _, part in own]


def _between(seqs: list[int], first: int, last: int) -> int:
    return bisect_right(seqs, last) - bisect_left(seqs, first)


def _rank(part: Part) -> tuple[int, int]:
    return EVIDENCE.index(part.evidence), -part.lines


class _SessionRanges:
    """What each commit has of one session.

    Commits that stand share the session out among them, each up to its cut. A squash has what its
    sources have, and takes nothing from them. A commit that was replaced keeps what it had before.
    """

    def __init__(self, claims: list[RangeClaim], shape: EventOutline) -> None:
        self.shape = shape
        self.claims = {claim.commit: claim for claim in claims}
        self._drawn: dict[str, Ranges] = {}
        self._standing = [claim for claim in claims if not claim.replaced_by]
        self._shared = self._share_out(self._standing)

    def of(self, claim: RangeClaim) -> Ranges:
        """Return what a commit has, in order; at least one range."""
        known = self._drawn.get(claim.commit)
        if known is None:
            self._drawn[claim.commit] = [(claim.cut, claim.cut)]  # a source that names its squash
            known = self._drawn[claim.commit] = self._draw(claim)
        return known

    def _draw(self, claim: RangeClaim) -> Ranges:
        beside, shared = self._standing, self._shared
        if claim.replaced_by:
            beside = self._before_replaced(claim)
            shared = self._share_out(beside)
        found = list(shared.get(claim.commit, []))
        for source in self._sources(claim):
            if source in beside:
                found += self.of(source)
        return _joined(found) or [(claim.cut, claim.cut)]

    def _sources(self, claim: RangeClaim) -> list[RangeClaim]:
        return [self.claims[sha] for sha in claim.sources if sha in self.claims]

    def _before_replaced(self, old: RangeClaim) -> list[RangeClaim]:
        """The claims there would be without what took the place of a commit, and without what it
        took the place of itself."""
        after = self._heirs(old)
        return [
            claim
            for claim in self.claims.values()
            if claim.commit not in after and old.commit not in self._heirs(claim)
        ]

    def _heirs(self, claim: RangeClaim) -> set[str]:
        found: set[str] = set()
        name = claim.replaced_by
        while name and name not in found:
            found.add(name)
            name = self.claims[name].replaced_by if name in self.claims else ""
        return found

    def _share_out(self, claims: list[RangeClaim]) -> dict[str, Ranges]:
        """Give each claim the events from the cut before its own on."""
        at_cut: dict[int, list[RangeClaim]] = {}
        standing = {claim.commit for claim in claims}
        claims = sorted(claims, key=lambda c: (c.cut, c.committed_at, c.commit))
        for claim in claims:
            for cut in self._cuts(claim, standing):
                at_cut.setdefault(cut, []).append(claim)
        found: dict[str, Ranges] = {}
        cuts = sorted(at_cut)
        # what a fork was given has been told where it came from
        end = min(self.shape.inherited, cuts[0] - 1) if cuts else 0
        for cut, following in pairwise([*cuts, _NEVER]):
            # the agent's closing words belong to the last commit of the turn
            turn_end = self.shape.turn_end(cut)
            last = turn_end if following > turn_end else cut
            for claim, piece in _same_cut(_parents_first(at_cut[cut]), end + 1, cut, last):
                found.setdefault(claim.commit, []).append(piece)
            end = last
        return found

    def _cuts(self, claim: RangeClaim, standing: set[str]) -> set[int]:
        """Where a commit ends what it has: its own cut, and those of sources it replaced."""
        found = {source.cut for source in self._sources(claim) if source.commit not in standing}
        if not claim.is_borrowed or not self._sources(claim):
            found.add(claim.cut)
        return found


def _joined(pieces: Ranges) -> Ranges:
    """The same events in as few ranges as possible."""
    found: Ranges = []
    for first, last in sorted(pieces):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found


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
) -> Iterator[tuple[RangeClaim, tuple[int, int]]]:
    """Copies of one commit share its range; one edit split over several commits is the last
    event they share."""
    own = [claim for claim in claims if not _is_copy(claim, claims)] or claims[:1]
    for claim in claims:
        if claim not in own:
            yield claim, (first, last)
        else:
            index = own.index(claim)
            yield claim, (first if index == 0 else cut, last if index == len(own) - 1 else cut)


def _is_copy(claim: RangeClaim, claims: list[RangeClaim]) -> bool:
    """Whether it is another version of one of the claims: of a commit that was rewritten, several
    may be left."""
    if claim.why.startswith("same change"):
        return True
    versions = [other for other in claims if other.why == claim.why]
    return claim.why.endswith("since rewritten") and versions[0] is not claim


def group_roots(found: dict[str, list[Part]], heirs: Mapping[str, str] = {}) -> dict[str, str]:
    """Of each commit the id of its group's first checkpoint.

    The agent went on by itself, or was answered a question of its own: same group. A new
    request: a new one. A commit in `heirs` was replaced: it is in the group of its heir, which
    stands there instead.
    """
    chains: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    standing = {commit: own for commit, own in found.items() if own and commit not in heirs}
    for commit, own in standing.items():
        for part in own:
            chains.setdefault((part.agent, part.session_id), []).append(
                (part.last, part.first, commit)
            )
    roots: dict[str, str] = {}
    for chain in chains.values():
        chain.sort()

    def find_root(commit: str) -> None:
        """Up the chain of the commit's strongest session, as long as nobody asked for anything."""
        path: list[str] = []
        while commit not in roots:
            path.append(commit)
            part = standing[commit][0]
            chain = chains[part.agent, part.session_id]
            here = (part.last, part.first, commit)  # commits of one command share its result
            before = [place[2] for place in chain if place[0] <= part.first and place < here]
            if part.prompts or not before or before[-1] in path:
                roots[commit] = checkpoint_id(commit)
            else:
                commit = before[-1]
        roots.update(dict.fromkeys(path, roots[commit]))

    for commit in standing:
        find_root(commit)
    for commit, heir in heirs.items():
        if found.get(commit):
            roots[commit] = roots.get(heir, checkpoint_id(commit))
    return roots


def continue_from(own: list[Part], parents: Iterable[list[Part]]) -> list[Part]:
    """Mark the sessions that a parent commit came from too."""
    before = {(part.agent, part.session_id) for parts in parents for part in parts}
    return [
        msgspec.structs.replace(part, continued=(part.agent, part.session_id) in before)
        for part in own
    ]
