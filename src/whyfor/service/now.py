"""Now, when no agent runs: what ended since one last looked, what can be picked up, what came of
it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from whyfor.config import Settings
from whyfor.model.checkpoints import NOT_THEN, Checkpoint
from whyfor.model.cost import Cost, add_costs
from whyfor.model.events import SEQ_MASK, SpokenWord
from whyfor.model.listing import ListedSession, ListFilter, RowKey
from whyfor.model.query import Filters
from whyfor.model.text import one_line
from whyfor.model.times import DAY
from whyfor.store.open import OpenStore, reading
from whyfor.story.resume import resume_anywhere
from whyfor.story.session_ends import end_texts

ENDED = 12  # sessions that ended meanwhile; more are a link
RECENT = 6
COMMITS = 8
THREADS = 6
_LOOKED_THROUGH = 60  # sessions among which something may be left to do
_FORTNIGHT = 14 * DAY
_SAID = 240  # characters


class EndedSession(msgspec.Struct, frozen=True):
    """A session that was active since one looked, with what its agent said last."""

    row: ListedSession
    said: str
    resume: str | None


class OpenThread(msgspec.Struct, frozen=True):
    """Something that is left to do, and how to go on with it."""

    row: ListedSession
    what: str
    why: str  # asked | failed | next | changed
    seq: int | None  # the event that says so
    resume: str


class RecentCommit(msgspec.Struct, frozen=True):
    """A commit with a story: whose work it is, and what was asked for it."""

    sha: str
    title: str
    evidence: str
    confidence: str
    agents: list[str]
    said: SpokenWord | None


class QuietNow(msgspec.Struct, frozen=True):
    since: int
    ended: list[EndedSession]  # those that want something first
    ended_total: int
    asks: int
    failed: int
    tokens: int | None  # of those that ended, None if unknown
    cost: Cost  # of the same
    unpriced: int  # how many of them have no known price
    commits: list[RecentCommit]
    commits_total: int
    commits_told: int
    threads: list[OpenThread]
    recent: list[ListedSession]  # before that
    rows: int  # in the list of all sessions
    last_at: int | None
    projects: list[str]  # to choose from
    ends: dict[int, str]


def quiet_now(settings: Settings, since: int, *, agent: str = "", project: str = "") -> QuietNow:
    """Return what happened since a time, and what is left to do. NotFound if nothing is kept."""
    with reading(settings) as library:
        which = _filter(library, agent, project)
        later = msgspec.structs.replace(which, since=since)
        ended = [row for _, row in library.listing.page(later, "last", 200)]
        before = library.listing.page(which, "last", RECENT, RowKey(since, 0))
        recent = [row for _, row in before]
        threads = _threads(library, which, since, settings.user_home)
        commits = _commits(library, which, since)
        told, total = library.stats.commits(Filters(projects=which.projects, since=since), NOT_THEN)
        latest = library.listing.page(which, "last", 1)
        known = [row.tokens for row in ended if row.tokens is not None]
        return QuietNow(
            since=since,
            ended=[_ended(library, row, settings.user_home) for row in _urgent(ended)[:ENDED]],
            ended_total=library.listing.count(later),
            asks=sum(row.asked is not None for row in ended),
            failed=sum(row.asked is None and row.failed is not None for row in ended),
            tokens=sum(known) if known else None,
            cost=add_costs(row.cost for row in ended),
            unpriced=sum(row.cost.usd is None for row in ended),
            commits=commits,
            commits_total=total,
            commits_told=told,
            threads=threads,
            recent=recent,
            rows=library.listing.count(which),
            last_at=latest[0][1].last_at if latest else None,
            projects=_projects(library),
            ends=end_texts(library, [*ended, *recent, *(one.row for one in threads)]),
        )


def _filter(library: OpenStore, agent: str, project: str) -> ListFilter:
    found = library.projects.find(project) if project else None
    projects = ((found[0],) if found else ()) if project else None
    return ListFilter(agent=agent or None, projects=projects)


def _urgent(rows: list[ListedSession]) -> list[ListedSession]:
    """Those that ask come first, then those that failed, then the rest, each by time."""
    return sorted(
        rows, key=lambda row: (row.asked is None, row.failed is None, -(row.last_at or 0))
    )


def _ended(library: OpenStore, row: ListedSession, home: Path) -> EndedSession:
    resume = None
    if row.asked is not None or row.failed is not None:
        resume = resume_anywhere(row.agent, row.session_id, row.cwd, home)
    return EndedSession(row, _closing(library, row.id), resume)


def _closing(library: OpenStore, session: int) -> str:
    seq = library.conversation.last_of_kind(session, "assistant.message")
    found = library.conversation.events_at(session, [seq], _SAID) if seq is not None else []
    said = one_line(found[0].text) if found else ""
    return f"{said}…" if len(said) >= _SAID - 1 else said


# -- what is left to do --------------------------------------------------------------------------


def _threads(library: OpenStore, which: ListFilter, since: int, home: Path) -> list[OpenThread]:
    """Questions first, then what failed, then what was said to come next, then work that is in no
    commit; one for each session."""
    recent = msgspec.structs.replace(which, since=since - _FORTNIGHT)
    rows = [row for _, row in library.listing.page(recent, "last", _LOOKED_THROUGH)]
    texts = end_texts(library, rows)
    found: list[tuple[int, OpenThread]] = []
    for row in rows:
        left = _left(library, row, texts)
        resume = resume_anywhere(row.agent, row.session_id, row.cwd, home)
        if left is None or resume is None or row.lone:
            continue
        rank, what, why, seq = left
        found.append((rank, OpenThread(row, what, why, seq, resume)))
    found.sort(key=lambda one: one[0])
    return [thread for _, thread in found[:THREADS]]


def _left(
    library: OpenStore, row: ListedSession, texts: dict[int, str]
) -> tuple[int, str, str, int | None] | None:
    """What a session leaves to do: rank, words, why, and the event that says so."""
    if row.asked is not None:
        return 0, texts[row.asked], "asked", _seq(row.asked)
    if row.failed is not None:
        return 1, texts[row.failed], "failed", _seq(row.failed)
    summary = library.memory.summary(row.id)
    if summary and summary.next_steps:
        step = summary.next_steps[0]
        return 2, one_line(step.text), "next", step.seq
    if row.files and not row.commits:
        return 3, one_line(row.title) or "Work that is in no commit", "changed", None
    return None


def _seq(event: int) -> int:
    return event & SEQ_MASK


# -- commits -------------------------------------------------------------------------------------


def _commits(library: OpenStore, which: ListFilter, since: int) -> list[RecentCommit]:
    agents_wanted = (which.agent,) if which.agent else ()
    wanted = Filters(agents=agents_wanted, projects=which.projects, since=since)
    found = library.search.commits([], wanted, COMMITS)
    shas = [commit.sha for commit in found]
    agents = library.search.agents_of(shas)
    stories = library.checkpoints.of_commits(shas)
    return [
        RecentCommit(
            commit.sha,
            commit.note.title if commit.note and commit.note.by != "derived" else commit.subject,
            commit.evidence,
            commit.confidence,
            agents.get(commit.sha, []),
            _request(library, stories[commit.sha]) if commit.sha in stories else None,
        )
        for commit in found
    ]


def _request(library: OpenStore, story: Checkpoint) -> SpokenWord | None:
    """The last thing that was asked for a commit."""
    names = [(part.agent, part.session_id) for part in story.parts if part.prompts]
    numbers = library.sessions.numbers(names)
    for part in story.parts:
        number = numbers.get((part.agent, part.session_id))
        if number and part.prompts:
            return library.conversation.last_request(number, part.first, part.last)
    return None


def _projects(library: OpenStore) -> list[str]:
    """The one worked in last first."""
    known = dict(library.projects.known())
    active = library.projects.active()
    numbers = sorted(active, key=lambda number: -(active[number][1] or 0))
    return [known[number].identity for number in numbers if number in known]
