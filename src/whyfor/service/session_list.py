"""The list of sessions as pages show it: rows, counts, projects, and what to do if nothing fits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Annotated

import msgspec

from whyfor.agents import AGENTS
from whyfor.config import Settings
from whyfor.model.cursor import open_cursor, seal_cursor
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.listing import (
    LIST_SORTS,
    OUTCOMES,
    FolderCount,
    ListedSession,
    ListFilter,
    ListTotals,
    PeriodCount,
    RowKey,
)
from whyfor.model.paths import to_path, to_text
from whyfor.model.sessions import Person, Project
from whyfor.model.status import LiveStatus
from whyfor.model.times import parse_when
from whyfor.store.open import OpenStore, local_store, reading
from whyfor.story.session_ends import end_texts
from whyfor.story.session_lookup import parse_person, session_named

PAGE = 100
NO_PROJECT = "-"  # in the place of a project: sessions that have none
_BRANCHES = 40
_WORDS = 8  # of a text that is looked for
_Whole = Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]


class ListRequest(msgspec.Struct, frozen=True):
    """What was asked for, as in the page's address."""

    q: str = ""
    project: str = ""
    folder: str = ""
    agent: str = ""
    branch: str = ""
    model: str = ""
    outcome: str = ""
    file: str = ""
    since: str = ""
    until: str = ""
    sort: str = "last"
    after: str = ""
    before: str = ""
    who: str = ""  # a person's number, on a team
    task: str = ""

    @property
    def filters(self) -> dict[str, str]:
        """The filters that are set, in the order in which one would drop them."""
        names = "q task outcome file model branch agent who until since folder project".split()
        return {name: getattr(self, name) for name in names if getattr(self, name)}


class ListedFolder(msgspec.Struct, frozen=True):
    """A work tree or clone of a project."""

    path: str
    name: str
    rows: int
    gone: bool


class ListedProject(msgspec.Struct, frozen=True):
    """A project with sessions; its identity is None for those that have no project."""

    identity: str | None
    rows: int
    last_at: int | None
    gone: bool  # no folder of it is on this machine
    path: str | None  # its folder, as far as known
    folders: list[ListedFolder]  # if there are several


class DropChoice(msgspec.Struct, frozen=True):
    """A filter without which something would be found."""

    name: str
    value: str
    rows: int


class ListView(msgspec.Struct, frozen=True):
    rows: list[ListedSession]
    first: int  # which of the rows that fit is the first one here, from 1
    fits: int  # how many rows fit
    totals: ListTotals
    newer: str | None  # cursors of the pages before and after
    older: str | None
    days: dict[str, PeriodCount]
    months: list[PeriodCount]
    projects: list[ListedProject]
    branches: list[str]
    models: list[str]
    drops: list[DropChoice]
    ends: dict[int, str]  # what a row's question or error says, by event
    statuses: dict[int, LiveStatus]  # of rows that are open, by the number of the row
    people: dict[int, Person] = {}  # whose rows these are, by the number of the row; of a team
    members: list[Person] = []  # who has sessions here; of a team

    @property
    def last(self) -> int:
        return self.first + len(self.rows) - 1


def session_list(
    settings: Settings,
    asked: ListRequest,
    standings: Iterable[LiveStatus] = (),
    limit: int = PAGE,
) -> ListView:
    """Return a page of the list; BadInput if a filter makes no sense."""
    if asked.sort not in LIST_SORTS:
        raise BadInput(f"no such order: {asked.sort[:40]!r}", f"One of: {', '.join(LIST_SORTS)}.")
    with reading(settings) as library:
        standing = _standings(library, standings)
        which = _filter(library, asked, standing)
        page = _slice(library, which, asked, limit)
        rows = [row for _, row in page.found]
        fits = library.listing.count(which)
        begun = 0
        if page.found and page.newer:
            begun = library.listing.count(which, asked.sort, page.found[0][0])
        timed = asked.sort == "last"
        folders = library.listing.folders()
        return ListView(
            rows=rows,
            first=begun + 1 if rows else 0,
            fits=fits,
            totals=library.listing.totals(),
            newer=page.cursor(0, page.newer and begun > 0),
            older=page.cursor(-1, page.older),
            days=_days(library, which, rows) if timed else {},
            months=library.listing.months(which) if timed else [],
            projects=_projects(library, folders),
            branches=_branches(folders, which),
            models=library.listing.models(),
            drops=[] if fits else _drops(library, asked, standing),
            ends=end_texts(library, rows),
            statuses={row.head: standing[row.head] for row in rows if row.head in standing},
            people=library.people_of([row.id for row in rows]),
            members=library.authors(),
        )


def count_rows(settings: Settings, asked: ListRequest, standings: Iterable[LiveStatus] = ()) -> int:
    """Return how many rows fit; BadInput or NotFound if a filter makes no sense."""
    with reading(settings) as library:
        return library.listing.count(_filter(library, asked, _standings(library, standings)))


def chosen_rows(settings: Settings, names: Iterable[str]) -> list[ListedSession]:
    """Return the rows that these sessions (agent:id) are in; NotFound if one is not kept."""
    with reading(settings) as library:
        heads = []
        for name in names:
            agent, _, ident = name.partition(":")
            session = session_named(library, agent, ident)
            heads.append(library.listing.heads_of([session.id])[session.id])
        rows = library.listing.rows(heads)
        return [rows[head] for head in dict.fromkeys(heads)]


class _Slice(msgspec.Struct, frozen=True):
    """The rows of a page, and whether there are others before and after them."""

    found: list[tuple[RowKey, ListedSession]]
    newer: bool
    older: bool

    def cursor(self, at: int, wanted: bool) -> str | None:
        return seal_cursor(self.found[at][0]) if wanted and self.found else None


def _slice(library: OpenStore, which: ListFilter, asked: ListRequest, limit: int) -> _Slice:
    place = asked.before or asked.after
    key = RowKey(*open_cursor(place, tuple[_Whole, _Whole])) if place else None
    upwards = bool(asked.before)
    found = library.listing.page(which, asked.sort, limit + 1, key, upwards=upwards)
    more = len(found) > limit
    if upwards:
        return _Slice(found[-limit:], newer=more, older=True)
    return _Slice(found[:limit], newer=bool(asked.after), older=more)


def month_cursor(month: str) -> str:
    """Return the cursor of the page that begins with the last row of a month (2026-03)."""
    first = datetime.strptime(month, "%Y-%m")
    following = (first.replace(day=28) + timedelta(days=4)).replace(day=1)
    return seal_cursor(RowKey(int(following.timestamp() * 1000), 0))


# -- filters -------------------------------------------------------------------------------------


def _standings(library: OpenStore, standings: Iterable[LiveStatus]) -> dict[int, LiveStatus]:
    """By row: what its open session does."""
    opened = {
        each.session.id: each
        for each in standings
        if each.session.id and each.status.phase not in ("exited", "unknown")
    }
    found: dict[int, LiveStatus] = {}
    for number, head in library.listing.heads_of(opened).items():
        if opened[number].session.parent_session_id is None or head == number:
            found[head] = opened[number]
    return found


def _filter(library: OpenStore, asked: ListRequest, standing: dict[int, LiveStatus]) -> ListFilter:
    _check_names(asked)
    now = datetime.now().astimezone()
    return ListFilter(
        agent=asked.agent or None,
        projects=_asked_projects(library, asked.project),
        homeless=asked.project == NO_PROJECT,
        folder=asked.folder or None,
        branch=asked.branch or None,
        model=asked.model or None,
        since=_since(asked.since, now) if asked.since else None,
        until=parse_when(asked.until, now, end=True) if asked.until else None,
        outcome=asked.outcome or None,
        open_sessions=tuple(each.session.id for each in standing.values()),
        words=tuple(asked.q.split()[:_WORDS]),
        file=asked.file or None,
        person=parse_person(library, asked.who),
        task=asked.task or None,
    )


def _check_names(asked: ListRequest) -> None:
    """Raise BadInput for an agent or an outcome that there is not."""
    if asked.agent and asked.agent not in AGENTS:
        raise BadInput(f"no such agent: {asked.agent[:40]!r}", f"Agents: {', '.join(AGENTS)}.")
    if asked.outcome and asked.outcome not in OUTCOMES:
        raise BadInput(
            f"no such outcome: {asked.outcome[:40]!r}", f"One of: {', '.join(OUTCOMES)}."
        )


def _asked_projects(library: OpenStore, name: str) -> tuple[int, ...] | None:
    """Return the number of the project that is asked for; None if it may be any. Raises NotFound
    if there is none of that name."""
    if not name or name == NO_PROJECT:
        return None
    known = library.projects.find(name)
    if known is None:
        raise NotFound(
            f"no project is called {name[:200]!r}",
            "See which there are: whyfor projects",
        )
    return (known[0],)


def _since(text: str, now: datetime) -> int:
    """A number of days begins at midnight, so that all pages are of one list."""
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return parse_when(text, midnight)


def _drops(
    library: OpenStore, asked: ListRequest, standing: dict[int, LiveStatus]
) -> list[DropChoice]:
    """Which filter to drop, and what that would find; most first."""
    found = []
    for name, value in asked.filters.items():
        fewer = msgspec.structs.replace(asked, **{name: ""})
        rows = library.listing.count(_filter(library, fewer, standing))
        if rows:
            found.append(DropChoice(name, value, rows))
    return sorted(found, key=lambda choice: -choice.rows)


# -- what stands beside the rows -----------------------------------------------------------------


def _days(
    library: OpenStore, which: ListFilter, rows: list[ListedSession]
) -> dict[str, PeriodCount]:
    """The days that these rows are of, whole."""
    times = [row.last_at for row in rows if row.last_at]
    if not times:
        return {}
    first = datetime.fromtimestamp(min(times) / 1000).replace(
        hour=0, minute=0, second=0, microsecond=0
    )
    last = datetime.fromtimestamp(max(times) / 1000) + timedelta(days=1)
    found = library.listing.days(which, int(first.timestamp() * 1000), int(last.timestamp() * 1000))
    return {day.period: day for day in found}


def _branches(folders: list[FolderCount], which: ListFilter) -> list[str]:
    """Branches of the chosen project, whatever else is filtered; the one worked on last first."""
    found: dict[str, int] = {}
    for one in folders:
        if which.projects is not None and one.project not in which.projects:
            continue
        if one.branch is None or (which.homeless and one.project is not None):
            continue
        found[one.branch] = max(one.last_at, found.get(one.branch, 0))
    return sorted(found, key=lambda branch: -found[branch])[:_BRANCHES]


def _projects(library: OpenStore, listed: list[FolderCount]) -> list[ListedProject]:
    """The one that was worked in last first; sessions without one at the end."""
    known = dict(library.projects.known())
    local = local_store(library) is not None  # else their folders are other machines'
    places: dict[int, list[str]] = {}
    for cwd, number in library.projects.places().items():
        places.setdefault(number, []).append(cwd)
    counted: dict[int | None, list[FolderCount]] = {}
    for folder in listed:
        counted.setdefault(folder.project, []).append(folder)
    found = []
    for project_id, folders in counted.items():
        rows = sum(one.rows for one in folders)
        last = max(one.last_at for one in folders) or None
        if project_id is None:
            found.append(ListedProject(None, rows, last, False, None, folders=[]))
            continue
        project = known[project_id]
        if not local:
            found.append(
                ListedProject(project.identity, rows, last, gone=False, folders=[], path=None)
            )
            continue
        tops = _folders(project, folders)
        there = any(not top.gone for top in tops) or _is_there(
            [project.path or "", *places.get(project_id, [])]
        )
        found.append(
            ListedProject(
                project.identity,
                *(rows, last, not there, project.path),
                folders=tops if len(tops) > 1 else [],
            )
        )
    return sorted(found, key=lambda one: (one.identity is None, -(one.last_at or 0)))


def _is_there(paths: Iterable[str]) -> bool:
    return any(path and to_path(path).is_dir() for path in paths)


def _folders(project: Project, folders: list[FolderCount]) -> list[ListedFolder]:
    """The work trees and clones that sessions of a project ran in, most sessions first."""
    counted: Counter[str] = Counter()
    for one in folders:
        if one.cwd:
            counted[one.cwd] += one.rows
    tops: Counter[str] = Counter()
    gone: dict[str, int] = {}
    for cwd, rows in counted.items():
        top = _top(cwd, project)
        if top is None:
            gone[cwd] = rows
        else:
            tops[top] += rows
    main = [top for top in tops if (to_path(top) / ".git").is_dir()]
    found = []
    for top, rows in tops.items():
        name = "main folder" if main == [top] else _last_name(top)
        found.append(ListedFolder(top, name, rows, gone=False))
    found += [ListedFolder(path, _last_name(path), rows, gone=True) for path, rows in gone.items()]
    return sorted(found, key=lambda one: (-one.rows, one.path))


def _top(cwd: str, project: Project) -> str | None:
    """The work tree that a folder is in; None if the folder is gone."""
    folder = to_path(cwd)
    if not folder.is_dir():
        return None
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            return to_text(place)
    return project.path or cwd


def _last_name(path: str) -> str:
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2] or path
