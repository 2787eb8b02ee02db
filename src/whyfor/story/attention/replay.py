"""What a monitor would have told of a session that is over: its events again, with their times."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.attention import Concern, Firing, level_of
from whyfor.model.events import Response, StoredEvent
from whyfor.model.prices import NANO
from whyfor.story.attention.detectors import LONG, QUIET, WAITED, Scene, find_all
from whyfor.story.attention.work import Work, moment, new_work, observe, observe_prompt

_TIMES = (QUIET, WAITED, LONG)  # of silence, after which something may hold that did not before

_WENT_ON = frozenset(
    ("assistant.message", "assistant.thinking", "tool.call", "tool.result", "turn.completed")
)


class FamilyEvent(msgspec.Struct, frozen=True):
    """An event of a session or of one of its subagents (`child`)."""

    at: int
    child: str
    event: StoredEvent


def replay_session(
    name: str,
    events: Iterable[FamilyEvent],
    responses: Iterable[Response] = (),
    typical: float | None = None,
) -> list[Firing]:
    """Return the firings of a session, in the order they would have been told. Everything is told
    of the session itself, also what its subagents did."""
    return _Replay(name, list(responses), typical).run(sorted(events, key=_order))


def _order(one: FamilyEvent) -> tuple[int, str, int]:
    return one.at, one.child, one.event.seq


class _Replay:
    def __init__(self, name: str, responses: list[Response], typical: float | None) -> None:
        self.agent, _, self.session_id = name.partition(":")
        self.name = name
        self.responses = sorted(responses, key=lambda each: each.at, reverse=True)
        self.typical = typical
        self.works: dict[str, Work] = {"": new_work(self.agent)}
        self.book = FiringBook()
        self.spent: dict[int, float] = {}

    def run(self, events: list[FamilyEvent]) -> list[Firing]:
        before = events[0].at if events else 0
        for one in events:
            self._pass_time(before, one)
            self._answered(one.at)
            work = self.works.get(one.child)
            if work is None:
                work = self.works[one.child] = new_work(self.agent, one.child)
            observe(work, one.event)
            if one.child:
                self.works[""].last_at = max(self.works[""].last_at, one.at)
            before = max(before, one.at)
            self._judge(before)
        self._answered(before + 1)
        self._judge(before)
        return self.book.all

    def _pass_time(self, before: int, then: FamilyEvent) -> None:
        """Judge where silence alone may have come to mean something. That the program was alive
        meanwhile is known only if it went on by itself."""
        alive = True if then.event.kind in _WENT_ON else None
        for silence in _TIMES:
            if before + silence < then.at:
                self._judge(before + silence, alive)

    def _answered(self, until: int) -> None:
        own = self.works[""]
        while self.responses and self.responses[-1].at <= until:
            told = self.responses.pop()
            observe_prompt(own, told.model, told.prompt, told.at)
            if told.nano is not None:
                self.spent[told.turn] = self.spent.get(told.turn, 0.0) + told.nano / NANO

    def _judge(self, now: int, alive: bool | None = None) -> None:
        own = self.works[""]
        own.spent = self.spent.get(own.turn)
        scene = Scene(now, alive, typical=self.typical, name=self.name)
        found: list[Concern] = []
        for work in self.works.values():
            found += find_all(work, scene)
        self.book.update(self.agent, self.session_id, found, now)


class FiringBook:
    """What was told of each session, and what of it still holds: once per session and key, and a
    cause that holds is not told again under another key, unless it became urgent."""

    def __init__(self) -> None:
        self.all: list[Firing] = []
        self.open: dict[tuple[str, str], Firing] = {}  # by session and cause
        self._told: set[str] = set()

    def remember(self, firing: Firing) -> None:
        """Take in what was told before: it is not told again."""
        self._told.add(firing.id)
        if firing.cleared_at is None:
            self.open[firing.session, firing.found.cause] = firing

    def update(
        self, agent: str | None, session_id: str | None, found: list[Concern], now: int
    ) -> tuple[list[Firing], list[Firing]]:
        """Take in all that holds for a session now; return what is new or more urgent, and what is
        over."""
        session = f"{agent}:{session_id}" if agent else ""
        holds = _most_urgent(found)
        over = [
            firing
            for (name, cause), firing in self.open.items()
            if name == session and cause not in holds
        ]
        cleared = [self._clear(firing, now) for firing in over]
        told = []
        for each in holds.values():
            if each.cause == "failing" and self._tells_wall(session):
                continue  # it is one call that fails again and again
            firing = Firing(agent=agent, session_id=session_id, found=each, told_at=now)
            before = self.open.get((session, each.cause))
            if before is not None and before.id != firing.id and _outranks(firing, before):
                cleared.append(self._clear(before, now))
                before = None
            if before is None and firing.id not in self._told:
                self._told.add(firing.id)
                self.open[session, each.cause] = firing
                self.all.append(firing)
                told.append(firing)
            elif before is not None and before.id == firing.id:
                told += self._renew(before, firing)
        return told, cleared

    def _tells_wall(self, session: str) -> bool:
        return (session, "wall") in self.open and (session, "failing") not in self.open

    def _renew(self, before: Firing, firing: Firing) -> list[Firing]:
        """The same as before, in other words by now; it is told again only if it became urgent."""
        urgent = firing.level == "act" and before.level != "act"
        found = msgspec.structs.replace(firing.found, at=before.found.at)
        kept = msgspec.structs.replace(before, found=found)
        if urgent:
            kept = msgspec.structs.replace(kept, told_at=firing.told_at)
        self.open[before.session, before.found.cause] = kept
        self._replace(before, kept)
        return [kept] if urgent else []

    def _clear(self, firing: Firing, now: int) -> Firing:
        del self.open[firing.session, firing.found.cause]
        kept = msgspec.structs.replace(firing, cleared_at=now)
        self._replace(firing, kept)
        return kept

    def _replace(self, before: Firing, now: Firing) -> None:
        for place in range(len(self.all) - 1, -1, -1):
            if self.all[place].id == before.id:
                self.all[place] = now
                return


def _most_urgent(found: list[Concern]) -> dict[str, Concern]:
    """Return one concern of each cause: the first that a person must act on, else the first."""
    holds: dict[str, Concern] = {}
    for each in found:
        known = holds.setdefault(each.cause, each)
        if level_of(each) == "act" != level_of(known):
            holds[each.cause] = each
    return holds


def _outranks(firing: Firing, before: Firing) -> bool:
    return firing.level == "act" != before.level


def family_events(child: str, events: Iterable[StoredEvent]) -> Iterable[FamilyEvent]:
    """Give a session's events their times and whose they are."""
    for event in events:
        yield FamilyEvent(moment(event), child, event)
