"""Insights: how the work goes, counted over all sessions; what is not known is counted too."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from datetime import date, datetime, timedelta
from statistics import median

import msgspec

from whyfor.agents.tools import names_of
from whyfor.config import Settings
from whyfor.model.checkpoints import NOT_THEN
from whyfor.model.errors import BadInput
from whyfor.model.query import Filters, SessionFilter
from whyfor.model.sessions import Person, Session, Tokens
from whyfor.model.stats import QUARTER, ApprovalWait, FailedStep, SessionCounts
from whyfor.model.text import one_line
from whyfor.store.open import OpenStore, reading
from whyfor.store.protocol import StatsStore
from whyfor.story.failure_causes import FAILURE_CAUSES, cause_of_failure
from whyfor.story.failures import KINDS, kind_of
from whyfor.story.session_lookup import parse_filters
from whyfor.story.tokens import total

BY = ("agent", "project", "model")
VIEWS = ("activity", "cost")
PERIODS = {"30": "30 days", "90": "90 days", "365": "12 months"}
WEEKS = 53  # the calendar shows as many, whatever the period
# seconds, where one bar of the waiting times ends and the next begins
WAITS = (2, 5, 15, 60, 300, 900, 3600)
LATE = 300  # seconds: longer than that, an agent stood about
RECENT = 30  # days
EXAMPLES = 3  # of a cause of failures
SAID_MAX = 200  # characters of one


class InsightsRequest(msgspec.Struct, frozen=True):
    """Of which time and project; days are local, and whole."""

    period: str = "365"
    since: str = ""  # a date; with it the period says nothing
    until: str = ""
    project: str = ""  # its whole identity
    by: str = "agent"
    view: str = VIEWS[0]
    who: str = ""  # a person's number, on a team


class Bar(msgspec.Struct, frozen=True):
    name: str
    sessions: int
    turns: int | None  # a turn may use several models: not counted by model
    tokens: Tokens
    spent: int | None  # in, cache and out together
    unknown: int = 0  # turns whose tokens nobody wrote down
    others: int = 0  # this bar stands for so many small ones


class Day(msgspec.Struct, frozen=True):
    date: date
    turns: int | None  # none: nothing was captured yet
    inside: bool  # of the period


class ApprovalWaits(msgspec.Struct, frozen=True):
    """How long agents waited for approvals."""

    answered: int
    unknown: int  # asked, and the answer not seen
    bars: list[int]  # by WAITS
    median: float | None  # seconds
    late: int
    late_seconds: int


class Failure(msgspec.Struct, frozen=True):
    kind: str
    title: str
    turns: int  # in which it happened at least once
    share: float | None = None  # of 100 turns
    before: float | None = None  # in the period before


class FailureExample(msgspec.Struct, frozen=True):
    """One failure of a cause: where it is, and its words."""

    agent: str
    session_id: str
    title: str
    seq: int
    text: str


class FailureCause(msgspec.Struct, frozen=True):
    """Why things failed, with the latest of them."""

    cause: str
    title: str
    times: int
    sessions: int
    examples: list[FailureExample]


class Overview(msgspec.Struct, frozen=True):
    since: date
    until: date
    sessions: int
    recent: int
    subagents: int
    turns: int
    turns_each: float | None  # of the session in the middle
    told: int  # commits with a story
    commits: int
    tokens: Tokens
    spent: int | None
    unknown: int
    bars: list[Bar]
    days: list[Day]
    busiest: Day | None
    waits: ApprovalWaits
    failures: list[Failure]
    causes: list[FailureCause]
    projects: list[str]  # to choose from
    members: list[Person] = []  # who has sessions here; of a team


def overview(settings: Settings, asking: InsightsRequest, now: datetime | None = None) -> Overview:
    """Return the figures of a period; raise BadInput for a period or grouping that there is not."""
    now = now or datetime.now().astimezone()
    since, until = asked_period(asking, now)
    with reading(settings) as library:
        where = SessionFilter(
            since=str(since), until=str(until), identity=asking.project or None, who=asking.who
        )
        filters = parse_filters(library, where)
        members = library.authors()
        store = library.stats
        recent = now - timedelta(days=RECENT)
        counted = store.counted(filters, round(recent.timestamp() * 1000))
        told, commits = store.commits(filters, NOT_THEN)
        tokens = total([row.tokens for row in counted])
        days = _days(store, filters, since, until)
        wrong = store.wrong(filters)
        turns = sum(row.turns for row in counted)
        return Overview(
            since=since,
            until=until,
            sessions=sum(row.sessions for row in counted),
            recent=sum(row.recent for row in counted),
            subagents=sum(row.subagents for row in counted),
            turns=turns,
            turns_each=_middle(counted),
            told=told,
            commits=commits,
            tokens=tokens,
            spent=tokens.total,
            unknown=sum(row.unknown for row in counted),
            bars=_by_model(store, filters) if asking.by == "model" else _bars(counted, asking.by),
            days=days,
            busiest=_busiest(days),
            waits=approval_waits(store, filters),
            failures=_against(_failures(wrong, turns), _failures_before(library, where)),
            causes=_causes(library, wrong),
            projects=sorted({known.identity for _, known in library.projects.known()}),
            members=members,
        )


def _busiest(days: list[Day]) -> Day | None:
    """Return the day of the period with the most turns; None if it has none."""
    worked = [day for day in days if day.inside and day.turns]
    return max(worked, key=lambda day: day.turns or 0, default=None)


def merge_bars(bars: list[Bar]) -> Bar:
    """Several bars as one, named by their number."""
    tokens = total([bar.tokens for bar in bars])
    turns = [bar.turns for bar in bars if bar.turns is not None]
    return Bar(
        name=f"{len(bars)} others",
        sessions=sum(bar.sessions for bar in bars),
        turns=sum(turns) if turns else None,
        tokens=tokens,
        spent=tokens.total,
        unknown=sum(bar.unknown for bar in bars),
        others=len(bars),
    )


# -- when ----------------------------------------------------------------------------------------


def asked_period(asking: InsightsRequest, now: datetime) -> tuple[date, date]:
    """Return the first and the last day; BadInput for a period or grouping that there is not."""
    if asking.view not in VIEWS:
        raise BadInput(f"no such view: {asking.view[:40]!r}", f"One of: {', '.join(VIEWS)}.")
    if asking.by not in BY:
        raise BadInput(f"nothing to count by: {asking.by[:40]!r}", f"Count by: {', '.join(BY)}.")
    if asking.period not in PERIODS:
        raise BadInput(f"no such period: {asking.period[:40]!r}", f"In days: {', '.join(PERIODS)}.")
    until = _date(asking.until) if asking.until else now.date()
    since = _date(asking.since) if asking.since else until - timedelta(days=int(asking.period) - 1)
    if since > until:
        raise BadInput(f"{since} is after {until}", "Give the earlier day first.")
    return since, until


def _date(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise BadInput(f"not a date: {text[:40]!r}", "Write it as 2026-05-31.") from None


def _days(store: StatsStore, filters: Filters, since: date, until: date) -> list[Day]:
    """Return the days of whole weeks, Monday first, up to the period's last day."""
    first = until - timedelta(days=until.weekday(), weeks=WEEKS - 1)
    begin = _millis(first)
    end = _millis(until + timedelta(days=1)) - 1
    wide = msgspec.structs.replace(filters, since=begin, until=end)
    days = [first + timedelta(days=number) for number in range((until - first).days + 1)]
    begins = [_millis(day) for day in days]
    turns: Counter[date] = Counter()
    for quarter, number in store.turns_by_time(wide, begin, end):
        turns[days[bisect_right(begins, quarter * QUARTER) - 1]] += number
    captured = _captured_since(store, filters) or until + timedelta(days=1)
    return [Day(day, turns[day] if day >= captured else None, inside=day >= since) for day in days]


def _captured_since(store: StatsStore, filters: Filters) -> date | None:
    oldest = store.first_at(filters)
    return None if oldest is None else datetime.fromtimestamp(oldest / 1000).date()


def _millis(day: date) -> int:
    return round(datetime(day.year, day.month, day.day).timestamp() * 1000)


# -- how much ------------------------------------------------------------------------------------


def _bars(counted: list[SessionCounts], by: str) -> list[Bar]:
    groups: dict[str, list[SessionCounts]] = {}
    for row in counted:
        name = row.agent if by == "agent" else row.project or "(unknown)"
        groups.setdefault(name, []).append(row)
    return [_bar(name, rows) for name, rows in groups.items()]


def _bar(name: str, rows: list[SessionCounts]) -> Bar:
    tokens = total([row.tokens for row in rows])
    return Bar(
        name,
        sum(row.sessions for row in rows),
        sum(row.turns for row in rows),
        tokens,
        tokens.total,
        sum(row.unknown for row in rows),
    )


def _by_model(store: StatsStore, filters: Filters) -> list[Bar]:
    return [
        Bar(name, sessions, None, tokens, tokens.total)
        for name, sessions, tokens in store.by_model(filters)
    ]


def _middle(counted: list[SessionCounts]) -> float | None:
    """How many turns the session in the middle has."""
    each = sorted((row.each, row.sessions) for row in counted if row.sessions)
    total = sum(sessions for _, sessions in each)
    places = {(total - 1) // 2, total // 2}
    found, seen = [], 0
    for turns, sessions in each:
        found += [turns for place in places if seen <= place < seen + sessions]
        seen += sessions
    return sum(found) / len(found) if found else None


# -- approvals and failures ----------------------------------------------------------------------


def approval_waits(store: StatsStore, filters: Filters) -> ApprovalWaits:
    """Return how long agents waited for approvals."""
    return spread_waits(asked_approvals(store, filters))


def asked_approvals(store: StatsStore, filters: Filters) -> list[ApprovalWait]:
    """Return when approvals were asked for and answered."""
    asked = _approvals_in_transcripts(store, filters)
    written = {one.session for one in asked}
    questions = names_of("question")  # asked through the same hook, but no approval
    announced = store.announced_approvals(filters, questions)
    return asked + [one for one in announced if one.session not in written]


def spread_waits(asked: list[ApprovalWait]) -> ApprovalWaits:
    """Return how many approvals waited how long."""
    answered = [one for one in asked if one.answered_at is not None]
    seconds = sorted(((one.answered_at or 0) - one.asked_at) / 1000 for one in answered)
    bars = [0] * (len(WAITS) + 1)
    for wait in seconds:
        bars[bisect_right(WAITS, wait)] += 1
    late = [wait for wait in seconds if wait >= LATE]
    return ApprovalWaits(
        answered=len(seconds),
        unknown=len(asked) - len(seconds),
        bars=bars,
        median=median(seconds) if seconds else None,
        late=len(late),
        late_seconds=round(sum(late)),
    )


def _approvals_in_transcripts(store: StatsStore, filters: Filters) -> list[ApprovalWait]:
    """Return the requests of transcripts with the answer to the same request."""
    found: list[ApprovalWait] = []
    opened: dict[tuple[int, str], int] = {}
    for one in store.told_approvals(filters):
        key = (one.session, str(one.data.get("request") or one.data.get("id") or ""))
        if one.kind == "approval.requested":
            opened[key] = one.at
        elif key in opened:
            found.append(ApprovalWait(one.session, opened.pop(key), one.at))
    return found + [ApprovalWait(session, at, None) for (session, _), at in opened.items()]


def _against(now: list[Failure], before: list[Failure]) -> list[Failure]:
    """Add to failures how frequent they were in the period before."""
    known = {one.kind: one.share for one in before}
    return [msgspec.structs.replace(one, before=known.get(one.kind)) for one in now]


def _failures_before(library: OpenStore, where: SessionFilter) -> list[Failure]:
    """Return what went wrong in the period of the same length before another."""
    since, until = date.fromisoformat(where.since or ""), date.fromisoformat(where.until or "")
    begin, end = since - (until - since) - timedelta(days=1), since - timedelta(days=1)
    earlier = msgspec.structs.replace(where, since=str(begin), until=str(end))
    filters = parse_filters(library, earlier)
    turns = sum(row.turns for row in library.stats.counted(filters, 0))
    return _failures(library.stats.wrong(filters), turns) if turns else []


def _failures(wrong: list[FailedStep], of_turns: int) -> list[Failure]:
    turns: dict[str, set[tuple[int, int]]] = {}
    for one in wrong:
        kind = kind_of(one.kind, one.head, one.ran)
        if kind is not None:
            turns.setdefault(kind, set()).add((one.session, one.turn))
    found = []
    for kind, title in KINDS.items():
        number = len(turns.get(kind, ()))
        found.append(Failure(kind, title, number, 100 * number / of_turns if of_turns else None))
    return sorted(found, key=lambda failure: -failure.turns)


def _causes(library: OpenStore, wrong: list[FailedStep]) -> list[FailureCause]:
    """Count failures by their cause, the most frequent first, with the latest examples of each."""
    by_cause: dict[str, list[FailedStep]] = {}
    for one in wrong:
        cause = cause_of_failure(one.kind, one.text[:700], one.text[-400:], ran=one.ran)
        if cause is not None:
            by_cause.setdefault(cause, []).append(one)
    latest = {cause: _latest(steps) for cause, steps in by_cause.items()}
    numbers = {one.session for steps in latest.values() for one in steps}
    known = library.sessions.by_number(sorted(numbers))
    found = []
    for cause, steps in by_cause.items():
        examples = [_example(known[one.session], one) for one in latest[cause]]
        sessions = len({one.session for one in steps})
        title = FAILURE_CAUSES[cause]
        found.append(FailureCause(cause, title, len(steps), sessions, examples))
    return sorted(found, key=lambda one: (one.cause == "other", -one.times, one.cause))


def _latest(steps: list[FailedStep]) -> list[FailedStep]:
    """Return the latest failures, each of another session."""
    found: dict[int, FailedStep] = {}
    for one in sorted(steps, key=lambda one: -(one.at or 0)):
        found.setdefault(one.session, one)
    return list(found.values())[:EXAMPLES]


def _example(session: Session, one: FailedStep) -> FailureExample:
    words = one_line(one.text)[:SAID_MAX]
    return FailureExample(session.agent, session.session_id, session.title or "", one.seq, words)
