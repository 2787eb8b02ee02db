"""attention: what a person should know about sessions now, what was told before, what would have
been."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from statistics import median

import msgspec

from whyfor.capture.spool import append_mark, spooled_marks
from whyfor.config import Settings
from whyfor.live.monitor import Monitor
from whyfor.live.tracker import StatusTracker
from whyfor.model.attention import (
    AttentionMark,
    AttentionQuery,
    Firing,
    ListedFiring,
)
from whyfor.model.errors import NotFound, StoreError
from whyfor.model.prices import NANO
from whyfor.model.query import SessionFilter
from whyfor.model.sessions import Session
from whyfor.model.times import DAY, parse_when, wall_clock
from whyfor.store.open import OpenStore, reading
from whyfor.story.attention.marks import AttentionRecord, read_marks
from whyfor.story.attention.replay import FamilyEvent, family_events, replay_session
from whyfor.story.session_lookup import parse_filters

MONTH = 30 * DAY
HISTORY = 400 * DAY


class ReplayReport(msgspec.Struct, frozen=True):
    """What a monitor would have told of stored sessions."""

    sessions: int
    firings: list[ListedFiring]

    @property
    def counts(self) -> dict[tuple[str, str], int]:
        """Return how often each cause was told, by cause and level."""
        return Counter((one.firing.found.cause, one.firing.level) for one in self.firings)


# -- now -----------------------------------------------------------------------------------------


def attention_now(settings: Settings) -> list[ListedFiring]:
    """Return what holds now, the most urgent first; nothing is written for it."""
    monitor = Monitor(settings, record=False)
    tracker = StatusTracker(settings, monitor=monitor)
    try:
        tracker.look()
        tracker.judge()
        tracker.standings()
        tracker.watch()
    except NotFound:  # nothing was read yet
        return []
    finally:
        tracker.close()
    return named_firings(settings, _muted_lately(settings, monitor.firings))


def _muted_lately(settings: Settings, firings: list[Firing]) -> list[Firing]:
    """Mark what a person has muted since the last ingest, too."""
    try:
        with reading(settings) as store:
            muted = _record(settings, store, wall_clock() - MONTH).muted
    except NotFound:
        return firings
    return [
        msgspec.structs.replace(each, muted=(each.session, each.found.cause) in muted)
        for each in firings
    ]


def _record(settings: Settings, store: OpenStore, since: int) -> AttentionRecord:
    """Return what was told and muted; told twice, a mark is the same."""
    stored = store.signals.attention(since)
    lately = [each for each in spooled_marks(settings.home) if each.at >= since]
    return read_marks(sorted([*stored, *lately], key=lambda each: each.at))


def named_firings(settings: Settings, firings: Iterable[Firing]) -> list[ListedFiring]:
    """Return firings with the titles, projects and branches of their sessions."""
    kept = list(firings)
    try:
        with reading(settings) as store:
            return _named(store, kept)
    except NotFound:
        return [ListedFiring(firing=each) for each in kept]


def _named(store: OpenStore, firings: list[Firing]) -> list[ListedFiring]:
    names = {(each.agent, each.session_id) for each in firings if each.agent and each.session_id}
    numbers = store.sessions.numbers((str(agent), str(ident)) for agent, ident in names)
    known = store.sessions.by_number(list(numbers.values()))
    found = []
    for each in firings:
        session = known.get(numbers.get((each.agent or "", each.session_id or ""), 0))
        found.append(_listed(each, session))
    return found


def _listed(firing: Firing, session: Session | None) -> ListedFiring:
    if session is None:
        return ListedFiring(firing=firing)
    return ListedFiring(
        firing=firing, title=session.title, project=session.project, branch=session.branch
    )


# -- what was told -------------------------------------------------------------------------------


def attention_history(
    settings: Settings, query: AttentionQuery, *, since: str = ""
) -> list[ListedFiring]:
    """Return what was told, newest first. Raises BadInput if `since` is no time."""
    begin = wall_clock() - HISTORY
    if since:
        begin = parse_when(since, datetime.now().astimezone())
    try:
        with reading(settings) as store:
            record = _record(settings, store, begin)
            found = _named(store, list(record.firings.values()))
    except NotFound:
        return []
    kept = [one for one in found if fits_query(one, query)]
    kept.sort(key=lambda one: -one.firing.told_at)
    return kept if query.limit is None else kept[: query.limit]


def fits_query(one: ListedFiring, query: AttentionQuery) -> bool:
    """Whether a firing is one that is asked for. A part of a project's name is enough."""
    if query.agent and one.firing.agent != query.agent:
        return False
    if query.causes and one.firing.found.cause not in query.causes:
        return False
    return not query.project or query.project in (one.project or "")


# -- what would have been told -------------------------------------------------------------------


def replay_attention(settings: Settings, where: SessionFilter) -> ReplayReport:
    """Go through stored sessions as if they ran now; return what would have been told, newest
    session first. Approvals and collisions need live sessions and are left out."""
    with reading(settings) as store:
        filters = parse_filters(store, where)
        found = store.sessions.matching(filters, limit=None, subagents=False)
        sessions = [session for session in found if session.parent_session_id is None]
        usual: dict[str, float | None] = {}
        told: list[ListedFiring] = []
        for session in sessions:
            firings = replay_session(
                session.name,
                _family(store, session),
                store.conversation.responses(session.id),
                _typical(store, session.project, usual),
            )
            told += [_listed(each, session) for each in firings]
        return ReplayReport(len(sessions), told)


def _family(store: OpenStore, session: Session) -> list[FamilyEvent]:
    own = store.conversation.events(session.id, session.own_from)
    events = list(family_events("", own))
    for child in store.sessions.children([session.session_id]):
        if child.agent == session.agent:
            events += family_events(child.session_id, store.conversation.events(child.id))
    return events


def _typical(store: OpenStore, project: str | None, known: dict[str, float | None]) -> float | None:
    """Return the median cost of a project's turns, in dollars; None if it is unknown."""
    if project is None:
        return None
    if project not in known:
        costs = store.stats.turn_costs(project, 0)
        known[project] = median(costs) / NANO if costs else None
    return known[project]


# -- mute ----------------------------------------------------------------------------------------


def mute(settings: Settings, firing_id: str, *, undo: bool = False) -> Firing:
    """Mute a firing's cause for its session from now on, or undo that. Raises NotFound if nothing
    was told under this id."""
    firing = _find(settings, firing_id)
    mute_cause(settings, firing, undo=undo)
    return firing


def mute_cause(settings: Settings, firing: Firing, *, undo: bool = False) -> None:
    """Write down that a person does not want to be told this of a session. Raises StoreError."""
    state = "unmuted" if undo else "muted"
    mark = msgspec.convert({"state": state, "cause": firing.found.cause}, AttentionMark)
    session = (firing.agent, firing.session_id or "") if firing.agent else None
    try:
        append_mark(settings.home, session, mark, wall_clock())
    except OSError as error:
        raise StoreError(
            f"cannot write to {settings.home}: {error.strerror}",
            "Check its permissions and free space.",
        ) from None


def _find(settings: Settings, firing_id: str) -> Firing:
    listed = [*attention_now(settings), *attention_history(settings, AttentionQuery(limit=None))]
    for one in listed:
        if one.firing.id.startswith(firing_id):
            return one.firing
    raise NotFound(f"nothing was told under {firing_id!r}", "List what was: whyfor attention --all")
