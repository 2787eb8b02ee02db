"""Track what each open session is doing, from the store and from its process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.base import ProcessList, RegisteredProcess
from whyfor.config import Settings
from whyfor.live.monitor import Monitor
from whyfor.model.attention import Firing
from whyfor.model.events import StoredEvent
from whyfor.model.paths import to_path
from whyfor.model.sessions import Session, SessionBrief, Tokens
from whyfor.model.status import LiveStatus, Status, Summary
from whyfor.model.times import DAY, wall_clock
from whyfor.processes import Ident, Processes
from whyfor.store.open import FollowedStore
from whyfor.store.protocol import Store
from whyfor.story.recent_turns import recent_turns
from whyfor.story.status.inputs import StatusInput, of_event, of_process, of_signal
from whyfor.story.status.judge import judge_status, process
from whyfor.story.status.state import NEW, State, apply
from whyfor.story.summary import due, renewed, summarise

ACTIVE = 100  # sessions
EVENTS = 200  # of a session's past that its state is made from; signals too
_CHANGES = 500  # that are read at a time
_SOON = 1.0  # seconds between two judgements of a session at work
_LATER = 5.0
_READ = 2.0  # between two looks at a session's title and numbers
_AT_WORK = ("running", "waiting_approval")
Key = tuple[str, str]  # agent, session id


class _Attended:
    __slots__ = (
        *("alive", "dirty", "due", "facts", "grown", "made", "number", "read_due"),
        *("session", "stale", "state", "status", "summary"),
    )

    def __init__(self, number: int | None) -> None:
        self.number = number  # None: only hooks have told of it
        self.session: Session | None = None
        self.stale = True  # to be read again, but not with every event
        self.read_due = 0.0
        # of its session's row, that may change without an event
        self.facts: tuple[Any, ...] | None = None
        self.summary: Summary | None = None
        self.made: int | None = None  # when that was; None: a turn began or ended since
        self.grown = True  # since then
        self.state: State = NEW
        self.status: Status | None = None
        self.alive: bool | None = None  # its process; None: nobody can tell
        self.due = 0.0
        self.dirty = True


class StatusTracker:
    """Reads only. `look` reads what is new in the store; `judge` returns whether any status
    changed."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], int] = wall_clock,
        monitor: Monitor | None = None,
    ) -> None:
        self.settings = settings
        self._monitor = monitor  # is told of every event that is read
        self._clock = clock
        self._now = now
        self._followed = FollowedStore(settings)
        self._store: Store | None = None  # that was looked at last
        self.learnt = 0  # how often something was new
        self._version = -1  # of the store, as this connection counts it
        self._seen: dict[int, int] = {}  # by session: its last seq that was looked at
        self._signal = 0
        self._change = 0
        self._attended: dict[Key, _Attended] = {}
        self._lists = _process_lists(settings)
        self._lists_due = 0.0
        # which session a process has open, as its registry says
        self._holders: dict[Ident, Key] = {}
        self._processes = Processes()
        self._judged = False  # whether it was done before
        self._told: list[LiveStatus] = []

    def standings(self) -> list[LiveStatus]:
        """Of all that are attended to, as last judged; what only opened and closed again is not
        worth showing."""
        clock, store = self._clock(), self._opened()
        stale = {
            key: each
            for key, each in self._attended.items()
            if each.stale and clock >= each.read_due
        }
        read = store.sessions.by_number(
            [each.number for each in stale.values() if each.number is not None]
        )
        for key, each in stale.items():
            each.session = read.get(each.number or 0) or _unread(key, each.state)
            each.stale, each.read_due = False, clock + _READ
        found = []
        for each in self._attended.values():
            if (
                each.session is not None
                and each.status
                and (each.number is not None or each.status.phase != "exited")
            ):
                pid = process(each.state)
                words = self._summary(store, each, each.status)
                found.append(
                    LiveStatus(
                        each.session, each.status, words, pid[0] if pid else None, each.alive
                    )
                )
        self._told = found
        return found

    def _to_tell(self, each: _Attended) -> bool:
        """Seldom while it works, at once when a turn begins or ends, and of what comes in after
        that."""
        if each.number is None or not each.grown or each.status is None:
            return False
        return each.status.phase not in _AT_WORK or due(
            each.made, each.state.closed.at, self._now()
        )

    def _summary(self, store: Store, each: _Attended, status: Status) -> Summary:
        """From a few turns that are read for it and not kept."""
        if each.number is not None and self._to_tell(each):
            each.summary = summarise(recent_turns(store, each.number)[0], status)
            each.made, each.grown = self._now(), False
        return renewed(each.summary, status) if each.summary else summarise((), status)

    def close(self) -> None:
        self._followed.close()

    # -- what is new in the store -----------------------------------------------------------------

    def look(self) -> list[tuple[str, Path]]:
        """Read what is new; return the transcripts that hooks named since: agent and path."""
        store = self._opened()
        version = store.version()
        if version == self._version:
            return []
        self.learnt += 1
        # first: what changes meanwhile is looked at again
        floor, change = store.feed.ends()
        lengths = store.feed.lengths()
        newest = store.signals.newest()
        shorter = any(lengths.get(number, 0) < last for number, last in self._seen.items())
        named: list[tuple[str, Path]] = []
        if (
            self._version < 0
            or shorter
            or not floor <= self._change <= change
            or newest < self._signal
        ):
            self._begin(store)  # of what was forgotten nothing may stay in memory
        else:
            self._grown(
                store,
                [number for number, last in lengths.items() if last > self._seen.get(number, 0)],
            )
            self._changed(store, change)
            named = self._heard(store)
        self._seen, self._change, self._signal = lengths, change, newest
        self._version = version
        self._renamed(store)
        self._bound()
        return named

    def attend(self, keys: Iterable[Key]) -> None:
        """Look at these sessions alone, instead of all that are new."""
        self._ask_lists(self._clock())
        store = self._opened()
        for key in keys:
            self._attend(store, key)

    def _opened(self) -> Store:
        """The database may be another by now: a damaged one is set aside."""
        store = self._followed.current()
        if store is not self._store:
            self._store, self._version = store, -1
        return store

    def _begin(self, store: Store) -> None:
        self._attended.clear()
        for key in store.sessions.active_since(self._now() - DAY):
            self._attend(store, key)

    def _grown(self, store: Store, numbers: list[int]) -> None:
        if not numbers:
            return
        since = self._now() - DAY
        for brief in store.sessions.briefs(numbers):
            key = (brief.agent, brief.parent or brief.session_id)
            each = self._attended.get(key)
            if each is None or (each.number is None and not brief.parent):
                if brief.worked and (brief.ended_at or 0) > since:
                    self._attend(store, key)
                continue
            each.stale = each.grown = True
            after = self._seen.get(brief.id, 0)
            for event in store.conversation.events(brief.id, after + 1):
                self._heard_event(key, each, brief, event)

    def _changed(self, store: Store, last: int) -> None:
        """Events that are otherwise now mean something else, too."""
        while self._change < last and (changes := store.feed.after(self._change, _CHANGES)):
            self._change = changes[-1].number
            events = [change.event for change in changes if change.event is not None]
            briefs = store.sessions.briefs({event.session for event in events})
            known = {brief.id: brief for brief in briefs}
            for place in events:
                if (brief := known.get(place.session)) is not None:
                    self._changed_event(store, brief, place.seq)

    def _changed_event(self, store: Store, brief: SessionBrief, seq: int) -> None:
        each = self._attended.get((brief.agent, brief.parent or brief.session_id))
        if each is None:
            return
        each.stale = each.grown = True
        for event in store.conversation.events(brief.id, seq, seq):
            _tell(each, of_event(event, _child(brief), brief.agent))

    def _renamed(self, store: Store) -> None:
        """A session's title, branch or project may become another with no event of its own."""
        numbers = [each.number for each in self._attended.values() if each.number is not None]
        facts = {
            brief.id: (brief.project_id, brief.branch, brief.title)
            for brief in store.sessions.briefs(numbers)
        }
        for each in self._attended.values():
            now = facts.get(each.number or 0)
            each.stale = each.stale or now != each.facts
            each.facts = now

    def _heard(self, store: Store) -> list[tuple[str, Path]]:
        named: dict[tuple[str, Path], None] = {}
        for signal in store.signals.after(self._signal):
            if signal.session_agent is None or signal.session_id is None:
                continue
            for field in ("transcript_path", "agent_transcript_path"):
                if isinstance(path := signal.data.get(field), str):
                    named[signal.agent, to_path(path)] = None
            each = self._attended.get((signal.session_agent, signal.session_id))
            if each is not None:
                _tell(each, of_signal(signal))
            elif signal.at > self._now() - DAY:
                self._attend(store, (signal.session_agent, signal.session_id))
        return list(named)

    def _attend(self, store: Store, key: Key) -> None:
        """Load a session: its last events, those of its subagents, and its hooks' signals."""
        family = store.sessions.family(*key, self._now() - DAY)
        own = next((brief for brief in family if brief.session_id == key[1]), None)
        if own is not None and own.parent is not None:
            return  # a subagent: its parent is attended to
        each = _Attended(own.id if own else None)
        if self._monitor is not None:
            self._monitor.begin(key)
        for brief in family:
            for event in _last_events(store, brief):
                self._heard_event(key, each, brief, event)
        for signal in store.signals.last_of(*key, EVENTS):
            _tell(each, of_signal(signal))
        listed = self._lists.get(key[0])
        if listed and (told := listed.known.get(key[1])):
            _register(each, told)
        if each.state is not NEW:  # else a copy that nobody has opened
            self._attended[key] = each

    def _heard_event(
        self, key: Key, each: _Attended, brief: SessionBrief, event: StoredEvent
    ) -> None:
        child = _child(brief)
        _tell(each, of_event(event, child, brief.agent))
        if self._monitor is not None:
            self._monitor.event(key, child, event)

    def watch(self) -> list[Firing] | None:
        """Ask the monitor what a person should know by now; None if that is what it was."""
        if self._monitor is None:
            return None
        return self._monitor.judge(self._told, self._opened())

    def _bound(self) -> None:
        """Drop the sessions that were silent longest if there are too many."""
        extra = len(self._attended) - ACTIVE
        if extra > 0:
            for key in sorted(self._attended, key=lambda key: self._attended[key].state.heard.at)[
                :extra
            ]:
                del self._attended[key]

    # -- where they stand -------------------------------------------------------------------------

    def judge(self) -> bool:
        """Compute all statuses; return whether one differs from the last time. The first time is
        a difference too: those who listen learn that no session was open before."""
        clock, now = self._clock(), self._now()
        self._ask_lists(clock)
        changed, self._judged = not self._judged, True
        for key, each in self._attended.items():
            changed = changed or (each.stale and clock >= each.read_due) or self._to_tell(each)
            if not each.dirty and clock < each.due:
                continue
            each.alive = self._alive(key, each.state, now)
            before, each.status = each.status, judge_status(each.state, now, each.alive)
            changed = changed or before is None or _differ(before, each.status)
            each.dirty = False
            each.due = clock + (_SOON if each.status.phase in _AT_WORK else _LATER)
        if len(self._processes) > 4 * ACTIVE:
            self._processes.keep(
                {ident for each in self._attended.values() if (ident := process(each.state))}
            )
        return changed

    def due(self) -> float:
        """Return the seconds until a status must be computed again."""
        clock = self._clock()
        times = [0.0 if each.dirty else each.due - clock for each in self._attended.values()]
        return max(0.0, min([*times, self._lists_due - clock]))

    def _alive(self, key: Key, state: State, now: int) -> bool | None:
        ident = process(state)
        if ident is None:
            return None
        if self._holders.get(ident, key) != key:
            return False  # its process has another session open by now
        return self._processes.alive(ident, state.heard.at, now)

    def _ask_lists(self, clock: float) -> None:
        if clock < self._lists_due:
            return
        at_work = any(
            each.status and each.status.phase in _AT_WORK for each in self._attended.values()
        )
        self._lists_due = clock + (_SOON / 2 if at_work else 2 * _SOON)
        for agent, listed in self._lists.items():
            for told in listed.look():
                key = (agent, told.session_id)
                self._holders[told.pid, told.start] = key
                if (each := self._attended.get(key)) is not None:
                    _register(each, told)
        if len(self._holders) > 4 * ACTIVE:
            self._holders = dict(list(self._holders.items())[-2 * ACTIVE :])


def _last_events(store: Store, brief: SessionBrief) -> Iterator[StoredEvent]:
    """Of what happened in a session its beginning and its end: not what it was copied from."""
    first = max(brief.own_from, brief.last_seq - EVENTS + 1)
    if brief.own_from == 1 < first:
        yield from store.conversation.events(brief.id, 1, 1)
    yield from store.conversation.events(brief.id, first)


def _process_lists(settings: Settings) -> dict[str, ProcessList]:
    """Return the process lists of the agents that keep one."""
    found = {
        name: agent.processes(settings.user_home, settings.env) for name, agent in AGENTS.items()
    }
    return {name: listed for name, listed in found.items() if listed}


def _tell(each: _Attended, sign: StatusInput | None) -> None:
    if sign is not None:
        before, each.state = each.state, apply(each.state, sign)
        each.dirty = True
        if (before.prompt, before.closed) != (each.state.prompt, each.state.closed):
            each.made = None


def _register(each: _Attended, told: RegisteredProcess) -> None:
    sign = of_process(told.status, told.waiting_for, told.at)
    _tell(each, msgspec.structs.replace(sign, process=(told.pid, told.start)))


def _differ(before: Status, now: Status) -> bool:
    return msgspec.structs.replace(before, heard_at=now.heard_at) != now


def _child(brief: SessionBrief) -> str:
    """Return the session id of a subagent named by a hook: it contains its parent's id. Empty if
    there is none."""
    if not brief.parent:
        return ""
    return brief.session_id.partition("@")[0].removeprefix("agent-")


def _unread(key: Key, state: State) -> Session:
    """Return a session known from hooks only, whose transcript was not read yet."""
    begun = state.started.at or None
    return Session(
        id=0,
        agent=key[0],
        session_id=key[1],
        project=None,
        cwd=state.place.text or None,
        branch=None,
        title=None,
        started_at=begun,
        ended_at=begun,
        prompts=0,
        messages=0,
        tool_calls=0,
        tokens=Tokens(),
        models=[],
        files_modified=[],
        parent_session_id=None,
        subagent=None,
        unparsed=0,
    )
