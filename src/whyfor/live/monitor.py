"""The monitor: watches the sessions that are open and says what a person should know.

It reads and tells; it never types into a session. What it told is written to the spool, like what
hooks say, so that it is on record and a rebuild keeps it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import datetime
from statistics import median

import msgspec

from whyfor import config
from whyfor.capture.faults import log_error
from whyfor.capture.spool import append_mark
from whyfor.config import Settings
from whyfor.model.attention import AttentionMark, Concern, Firing
from whyfor.model.cost import DaySpend, dollars
from whyfor.model.errors import StoreError, WhyforError
from whyfor.model.events import StoredEvent
from whyfor.model.prices import NANO
from whyfor.model.status import LiveStatus
from whyfor.model.text import one_line, plural
from whyfor.model.times import DAY, wall_clock
from whyfor.store.protocol import Store
from whyfor.story.attention.collisions import Writer, find_collisions
from whyfor.story.attention.detectors import SPEND, Scene, find_all
from whyfor.story.attention.marks import AttentionRecord, read_marks
from whyfor.story.attention.replay import FiringBook
from whyfor.story.attention.work import Work, new_work, observe, observe_prompt
from whyfor.story.shell import absolute
from whyfor.story.spend import day_spend

PAUSE = 1.0  # seconds between two looks
_LATER = 10.0  # between two looks at a session of which nothing is new
_TOKENS = 15.0  # between two looks at what a session has used
_BUDGET = 60.0  # between two looks at what the day has cost
_FAMILIES = 400
_SILENT = 3_600_000  # ms without a word after which a session counts as live only with its process
_RECORD = 30 * DAY  # of what was told that is looked at
MANY = 3  # requests that wait at once
Key = tuple[str, str]


class Watched:
    """A session with its subagents."""

    __slots__ = ("children", "due", "fresh", "own", "tokens_due", "typical")

    def __init__(self, agent: str) -> None:
        self.own = new_work(agent)
        self.children: dict[str, Work] = {}
        self.fresh = True  # something is new since it was judged
        self.due = 0.0
        self.tokens_due = 0.0
        self.typical: float | None = None

    @property
    def works(self) -> list[Work]:
        return [self.own, *self.children.values()]


class Monitor:
    """Of all sessions that a tracker attends to. `record`: whether what is told is written down."""

    def __init__(
        self,
        settings: Settings,
        *,
        record: bool = True,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], int] = wall_clock,
    ) -> None:
        self.settings = settings
        self.muted: frozenset[tuple[str, str]] = frozenset()
        self._record = record
        self._clock = clock
        self._now = now
        self._watched: dict[Key, Watched] = {}
        self._book = FiringBook()
        self._due = 0.0
        self._begun = False
        self._read = False  # what was told before
        self._signal = -1
        self._budget_due = 0.0
        self._budget: list[Concern] = []

    @property
    def firings(self) -> list[Firing]:
        """What holds now, the most urgent first; muted ones are marked."""
        found = [
            msgspec.structs.replace(each, muted=(each.session, each.found.cause) in self.muted)
            for each in self._book.open.values()
        ]
        return sorted(found, key=lambda each: each.rank)

    def is_live(self, standing: LiveStatus) -> bool:
        """Whether a session is open, as far as anybody can tell."""
        return _is_live(standing, self._now())

    def files_of(self, standing: LiveStatus, within: int) -> list[str]:
        """Return what a session and its subagents wrote within so many ms, the last file first."""
        watched = self._watched.get(_key(standing))
        if watched is None:
            return []
        wrote = _written(watched, standing.session.cwd or "")
        since = self._now() - within
        recent = [path for path, at in wrote.items() if at >= since]
        return sorted(recent, key=lambda path: -wrote[path])

    # -- what the tracker reads -------------------------------------------------------------------

    def begin(self, key: Key) -> None:
        """Forget what is known of a session: its events come again."""
        self._watched[key] = Watched(key[0])
        if len(self._watched) > _FAMILIES:
            del self._watched[next(iter(self._watched))]

    def event(self, key: Key, child: str, event: StoredEvent) -> None:
        """Take in an event of a session, or of a subagent of its."""
        watched = self._watched.get(key)
        if watched is None:
            watched = self._watched[key] = Watched(key[0])
        work = watched.own
        if child:
            work = watched.children.get(child) or new_work(key[0], child)
            watched.children[child] = work
        observe(work, event)
        if child:
            watched.own.last_at = max(watched.own.last_at, work.last_at)
        watched.fresh = True

    # -- what it says -----------------------------------------------------------------------------

    def judge(self, standings: Iterable[LiveStatus], store: Store) -> list[Firing] | None:
        """Look at all sessions, at most once a second; return what is new or more urgent, and None
        if nothing changed at all."""
        clock = self._clock()
        if clock < self._due:
            return None
        self._due = clock + PAUSE
        changed = self._learn(store)
        told: list[Firing] = []
        now = self._now()
        live = [each for each in standings if _is_live(each, now)]
        collisions = find_collisions(self._writers(live), now)
        for each in live:
            watched = self._watched.get((each.session.agent, each.session.session_id))
            if watched is None:
                continue
            collision = collisions.get(each.name)
            if not (watched.fresh or clock >= watched.due or collision):
                continue
            watched.fresh, watched.due = False, clock + _LATER
            found = self._findings(watched, each, store, now)
            if collision is not None:
                found.append(collision)
            new, over = self._book.update(*_key(each), found, now)
            told += new
            changed = bool(new or over) or changed
            self._write(new, over, now)
        gone = self._clear_gone({each.name for each in live}, now)
        common = [*_common(live), *self._over_budget(store)]
        waits, over = self._book.update(None, None, common, now)
        self._write(waits, [*gone, *over], now)
        changed = changed or bool(gone or waits or over)
        first, self._begun = not self._begun, True
        if first:
            return []  # what stands when somebody begins to watch is no news
        news = [*told, *waits]
        unmuted = [one for one in news if (one.session, one.found.cause) not in self.muted]
        return unmuted if changed else None

    def _findings(
        self, watched: Watched, each: LiveStatus, store: Store, now: int
    ) -> list[Concern]:
        self._use_tokens(watched, each, store)
        status = each.status
        asked = status.approval
        scene = Scene(
            now=now,
            alive=each.alive,
            pid=each.pid,
            waits=asked is not None or bool(status.questions),
            asked_at=asked.asked_at if asked else None,
            asks_for=one_line(asked.action or asked.tool or "")[:80] if asked else "",
            typical=watched.typical,
            name=each.name,
        )
        if status.phase == "waiting" and watched.own.open and not status.questions:
            # A hook is ahead of the transcript, and some transcripts never say that a turn ended.
            watched.own.open = False
            watched.own.over_at = 0 if status.interrupted or status.failed else status.since or now
        found: list[Concern] = []
        for work in watched.works:
            found += find_all(work, scene)
        return found

    def _use_tokens(self, watched: Watched, each: LiveStatus, store: Store) -> None:
        clock = self._clock()
        if clock < watched.tokens_due or not each.session.id:
            return
        watched.tokens_due = clock + _TOKENS
        own = watched.own
        responses = store.conversation.responses(each.session.id, own.turn_at)
        sizes = [one for one in responses if one.prompt is not None]
        if sizes:
            observe_prompt(own, sizes[-1].model, sizes[-1].prompt, sizes[-1].at)
        costs = [one.nano for one in responses if one.nano is not None]
        own.spent = sum(costs) / NANO if costs else None
        project = each.session.project
        if own.spent is not None and own.spent > SPEND and project and watched.typical is None:
            usual = store.stats.turn_costs(project, self._now() - _RECORD)
            watched.typical = median(usual) / NANO if usual else None

    def _over_budget(self, store: Store) -> list[Concern]:
        """What the day has cost, if that is more than it may; looked at once a minute."""
        clock = self._clock()
        if clock < self._budget_due:
            return self._budget
        self._budget_due = clock + _BUDGET
        self._budget = []
        budget = self._day_budget()
        if budget is not None:
            today = day_spend(store, budget, datetime.now().astimezone())
            self._budget = [_expensive_day(today, self._now())] if (today.share or 0) > 1 else []
        return self._budget

    def _day_budget(self) -> float | None:
        """As config.toml says now; None while it is not right."""
        try:
            return config.load(self.settings.env).cost.day_budget
        except WhyforError:
            return None

    def _writers(self, live: list[LiveStatus]) -> list[Writer]:
        found = []
        for each in live:
            session = each.session
            watched = self._watched.get((session.agent, session.session_id))
            if watched is None:
                continue
            cwd = session.cwd or ""
            wrote = _written(watched, cwd)
            moved = max(work.moved_at for work in watched.works)
            if wrote or moved:
                title = one_line(session.title or "")[:60]
                branch = session.branch or ""
                found.append(Writer(each.name, title, wrote, cwd, cwd, branch, moved))
        return found

    def _clear_gone(self, live: set[str], now: int) -> list[Firing]:
        """What was told of a session that is not open any more is over."""
        over: list[Firing] = []
        for session, _ in list(self._book.open):
            if session and session not in live:
                agent, _, ident = session.partition(":")
                over += self._book.update(agent, ident, [], now)[1]
        return over

    # -- what is on record ------------------------------------------------------------------------

    def _learn(self, store: Store) -> bool:
        """Read what was told before this process began, and what was muted since."""
        newest = store.signals.newest()
        if newest == self._signal:
            return False
        self._signal = newest
        record = read_marks(store.signals.attention(self._now() - _RECORD))
        first = not self._read
        if first:
            self._read = True
            self._remember(record)
        before, self.muted = self.muted, record.muted
        return first or before != record.muted

    def _remember(self, record: AttentionRecord) -> None:
        for firing in record.firings.values():
            self._book.remember(firing)

    def _write(self, told: list[Firing], over: list[Firing], now: int) -> None:
        if not self._record:
            return
        marks: list[tuple[Firing, AttentionMark]] = []
        for each in told:
            found = each.found
            mark = AttentionMark(state="told", cause=found.cause, key=found.key, found=found)
            marks.append((each, mark))
        for each in over:
            found = each.found
            marks.append((each, AttentionMark(state="cleared", cause=found.cause, key=found.key)))
        for firing, mark in marks:
            session = (firing.agent, firing.session_id or "") if firing.agent else None
            try:
                append_mark(self.settings.home, session, mark, now)
            except OSError as error:
                log_error(self.settings, StoreError(f"cannot write to the spool: {error}"))


def _written(watched: Watched, cwd: str) -> dict[str, int]:
    """When each file was written last, by its absolute path."""
    wrote: dict[str, int] = {}
    for work in watched.works:
        for path, at in work.wrote.items():
            place = absolute(path, cwd)
            wrote[place] = max(at, wrote.get(place, 0))
    return wrote


def _key(each: LiveStatus) -> Key:
    return each.session.agent, each.session.session_id


def _is_live(each: LiveStatus, now: int) -> bool:
    """Whether anybody could do something about it."""
    if each.status.phase == "exited" or each.alive is False:
        return False
    return bool(each.alive) or now - (each.status.heard_at or 0) < _SILENT


def _expensive_day(today: DaySpend, now: int) -> Concern:
    spent, budget = today.cost.usd or 0.0, today.budget or 0.0
    unpriced = today.cost.unpriced
    more = f"; {plural(unpriced, 'response')} without a price not in it" if unpriced else ""
    return Concern(
        cause="spend",
        key=str(datetime.now().astimezone().date()),
        at=now,
        fact=f"{dollars(spent)} of your {dollars(budget)} a day.",
        evidence=f"tokens at API price{more}",
        step="See where it went: whyfor stats --cost",
        share=today.share,
        command="whyfor stats --cost",
    )


def _common(live: list[LiveStatus]) -> list[Concern]:
    """What holds for all sessions together: several requests wait at once."""
    waiting = [each for each in live if each.status.approval is not None]
    if len(waiting) < MANY:
        return []
    since = min(each.status.approval.asked_at for each in waiting if each.status.approval)
    return [
        Concern(
            cause="backlog",
            key=f"{since}",
            at=since,
            fact=f"{plural(len(waiting), 'session')} wait to be allowed something.",
            evidence="hooks, high",
            step="Answer in their terminals, or on the page Approvals.",
            others=tuple(each.name for each in waiting),
        )
    ]
