"""Whether one commit comes from another: asked many times about the same few, on histories of
any length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush


class Ancestry:
    """Over runs of commits with one parent each, so that a long straight history is one step."""

    def __init__(self, parents: Mapping[str, Sequence[str]]) -> None:
        order = _sorted(parents)
        self.number = {sha: number for number, sha in enumerate(order)}
        self._above = [[self.number[p] for p in parents[sha] if p in self.number] for sha in order]
        self._start: list[int] = []  # of the run each commit is in
        for number, above in enumerate(self._above):
            straight = above == [number - 1]
            self._start.append(self._start[number - 1] if straight else number)
        self._asked = -1
        self._reached: dict[int, int] = {}  # run → its last commit that the asked one comes from
        self._todo: list[tuple[int, int]] = []

    def descends(self, sha: str, ancestor: str) -> bool:
        child, target = self.number.get(sha), self.number.get(ancestor)
        if child is None or target is None or target >= child:
            return False
        if child != self._asked:
            self._asked, self._reached, self._todo = child, {}, []
            self._visit(child)
        while self._todo and -self._todo[0][0] >= target:
            _, start = heappop(self._todo)
            for above in self._above[start]:
                self._visit(above)
        return self._reached.get(self._start[target], -1) >= target

    def _visit(self, number: int) -> None:
        start = self._start[number]
        if start not in self._reached:
            # By its first commit: a run may be met again further up, and what is below counts for
            # all of it.
            heappush(self._todo, (-start, start))
        self._reached[start] = max(number, self._reached.get(start, -1))


def _sorted(parents: Mapping[str, Sequence[str]]) -> list[str]:
    """Parents before children, otherwise in the order given."""
    order: dict[str, None] = {}
    for sha in parents:
        todo = [sha]
        while todo:
            at = todo[-1]
            waiting = (
                [p for p in parents[at] if p in parents and p not in order]
                if at not in order
                else []
            )
            if waiting:
                todo.extend(reversed(waiting))
            else:
                order.setdefault(at)
                todo.pop()
    return list(order)
