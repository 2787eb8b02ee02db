"""feed: what happened in all sessions, newest first, one line each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator

import msgspec

from whyfor.config import Settings
from whyfor.live.at_work import sessions_at_work
from whyfor.model.approvals import ApprovalQuery
from whyfor.model.attention import Firing
from whyfor.model.errors import NotFound
from whyfor.model.events import SEQ_MASK, SpokenWord
from whyfor.model.query import Filters
from whyfor.model.sessions import Session
from whyfor.model.text import one_line
from whyfor.model.times import DAY, wall_clock
from whyfor.model.work_feed import FailedEvent, WorkEntry, WorkKind, WorkQuery
from whyfor.store.open import LocalStore, reading_local
from whyfor.story.attention.marks import read_marks
from whyfor.story.failures import kind_of
from whyfor.story.tasks.board import require_key

POLL = 1.0  # seconds between two looks while it is followed
DEFAULT = DAY
SILENT = 120_000  # ms without a record after which the last words of a turn were its last
_SAID = 240  # characters of one line
_SESSIONS = 300
_ROLES: dict[str, WorkKind] = {"request": "prompt", "question": "question", "closing words": "done"}


def work_feed(settings: Settings, query: WorkQuery) -> list[WorkEntry]:
    """Return what happened since a time, newest first; the same failure again and again is one."""
    return _folded(_found(settings, query))[: query.limit]


def _found(settings: Settings, query: WorkQuery) -> list[WorkEntry]:
    names = _chosen(settings, query)
    if not settings.database.exists():  # nothing was read yet
        return []
    with reading_local(settings) as store:
        entries = list(_entries(store, query))
    if query.only == "failing":
        names = {_name(one) for one in entries if one.kind == "failure"}
    kept = [one for one in entries if _fits(one, query) and (names is None or _name(one) in names)]
    kept.sort(key=lambda one: (one.at, one.seq or 0), reverse=True)
    return kept


def _folded(entries: list[WorkEntry]) -> list[WorkEntry]:
    """Return the entries with those failures of a session as one that follow each other with the
    same words: the newest, which says how often."""
    folded: list[WorkEntry] = []
    last: dict[str, int] = {}  # by session: where its last entry is
    for entry in entries:
        at = last.get(_name(entry))
        if at is not None and entry.kind == "failure" and _is_same(folded[at], entry):
            folded[at] = msgspec.structs.replace(folded[at], times=folded[at].times + 1)
            continue
        last[_name(entry)] = len(folded)
        folded.append(entry)
    return folded


def _is_same(one: WorkEntry, other: WorkEntry) -> bool:
    return one.kind == other.kind and one.text == other.text


def feed_projects(settings: Settings) -> list[str]:
    """Return the identities of the projects that a filter offers, the one worked in last first."""
    try:
        with reading_local(settings) as store:
            known = dict(store.projects.known())
            active = store.projects.active()
    except NotFound:
        return []
    numbers = sorted(active, key=lambda number: -(active[number][1] or 0))
    return [known[number].identity for number in numbers if number in known]


def follow_feed(
    settings: Settings, query: WorkQuery, tell: Callable[[WorkEntry], None], stop: threading.Event
) -> None:
    """Tell of everything new, oldest first, until `stop` is set; first of what there is."""
    told: set[tuple[object, ...]] = set()
    while not stop.is_set():
        for entry in reversed(_found(settings, query)[: query.limit]):
            if entry.key not in told:
                told.add(entry.key)
                tell(entry)
        stop.wait(POLL)


def _chosen(settings: Settings, query: WorkQuery) -> set[str] | None:
    """Return the sessions that a filter by what they do leaves; None: all."""
    if query.only not in ("waiting", "testing"):
        return None
    found = sessions_at_work(settings)
    if query.only == "waiting":
        return {each.name for each in found if each.is_waiting}
    return {each.name for each in found if each.is_testing}


def _name(entry: WorkEntry) -> str:
    return f"{entry.agent}:{entry.session_id}"


def _fits(entry: WorkEntry, query: WorkQuery) -> bool:
    if entry.at < query.since or (query.kinds and entry.kind not in query.kinds):
        return False
    if query.agent and entry.agent != query.agent:
        return False
    return not query.project or query.project in (entry.project or "")


def _entries(store: LocalStore, query: WorkQuery) -> Iterator[WorkEntry]:
    task = require_key(store, query.task) if query.task else None
    filters = Filters(agent=query.agent, since=query.since, task=task)
    sessions = store.sessions.matching(filters, limit=_SESSIONS, subagents=False)
    for session in sessions:
        if session.parent_session_id is None:
            yield from _of_session(store, session, query.since)
    yield from _commits(store, filters, query.limit)
    names = {session.name for session in sessions}
    for entry in (*_approvals(store, query), *_attention(store, query, sessions)):
        if not query.task or _name(entry) in names:
            yield entry


def _of_session(store: LocalStore, session: Session, since: int) -> Iterator[WorkEntry]:
    last = store.conversation.last_seq(session.id)
    words = store.conversation.words(session.id, session.own_from, last)
    ended = _ended(store, session, words)
    for word in words:
        kind = _ROLES.get(word.role)
        is_open = kind == "done" and word.seq > ended
        if kind is not None and not is_open and (word.at or 0) >= since:
            yield _entry(session, kind, word.at or 0, word.text, word.seq)
    for failed in store.conversation.failures(session.id, since):
        if failed.seq >= session.own_from and _is_failure(failed):
            yield _entry(session, "failure", failed.at or 0, failed.text, failed.seq)


def _ended(store: LocalStore, session: Session, words: list[SpokenWord]) -> int:
    """Return up to where turns are over: the last word before another prompt, a record that says
    so, or the end of a session that is silent."""
    if wall_clock() - (session.ended_at or 0) > SILENT:
        return SEQ_MASK
    asked = [word.seq for word in words if word.role == "request"]
    closed = store.conversation.last_of_kind(session.id, "turn.completed")
    return max(closed or 0, asked[-1] if asked else 0)


def _is_failure(failed: FailedEvent) -> bool:
    """Whether it is one: a person's no and echoes of another failure are none."""
    kind = kind_of(failed.kind, failed.text, failed.exit_code is not None)
    return kind not in (None, "denied", "interrupted")


def _entry(session: Session, kind: WorkKind, at: int, text: str, seq: int) -> WorkEntry:
    return WorkEntry(
        at=at,
        kind=kind,
        text=_line(text),
        agent=session.agent,
        session_id=session.session_id,
        title=session.title,
        project=session.project,
        seq=seq,
    )


def _line(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _SAID else line[: _SAID - 1] + "…"


def _approvals(store: LocalStore, query: WorkQuery) -> Iterator[WorkEntry]:
    asked = ApprovalQuery(agent=query.agent, since=query.since, limit=query.limit)
    for row in store.approvals.listed(asked):
        made = row.decision
        yield WorkEntry(
            at=made.asked_at,
            kind="approval",
            text=_line(made.action or made.tool or "something it does not name"),
            agent=made.agent,
            session_id=made.session_id,
            title=row.title,
            project=row.project,
            state=made.decision,
        )


def _commits(store: LocalStore, filters: Filters, limit: int) -> Iterator[WorkEntry]:
    found = store.search.commits([], filters, limit)
    stories = store.checkpoints.of_commits([commit.sha for commit in found])
    for commit in found:
        parts = stories[commit.sha].parts if commit.sha in stories else []
        first = parts[0] if parts else None
        yield WorkEntry(
            at=commit.committed_at,
            kind="commit",
            text=_line(commit.subject),
            agent=first.agent if first else None,
            session_id=first.session_id if first else None,
            project=commit.project,
            sha=commit.sha,
        )


def _attention(
    store: LocalStore, query: WorkQuery, sessions: Iterable[Session]
) -> Iterator[WorkEntry]:
    known = {session.name: session for session in sessions}
    for firing in read_marks(store.signals.attention(query.since)).firings.values():
        session = known.get(firing.session)
        yield _told(firing, session)


def _told(firing: Firing, session: Session | None) -> WorkEntry:
    return WorkEntry(
        at=firing.told_at,
        kind="attention",
        text=_line(f"{firing.word}: {firing.found.fact}"),
        agent=firing.agent,
        session_id=firing.session_id,
        title=session.title if session else None,
        project=session.project if session else None,
        seq=firing.found.seq,
        state=firing.level,
    )
