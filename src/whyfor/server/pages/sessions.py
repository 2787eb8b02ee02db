"""Sessions: every conversation in one row, newest first, and one of them beside the list."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec
from litestar import get
from litestar.params import FromPath, QueryParameter
from litestar.response import Template

from whyfor.config import Settings
from whyfor.model.cost import cost_text
from whyfor.model.errors import NotFound
from whyfor.model.listing import ListedSession, PeriodCount
from whyfor.model.paths import is_whole_path, parts_of, telling_end
from whyfor.model.status import LiveStatus
from whyfor.model.text import one_line, plural
from whyfor.server.page import TEMPLATES, Kept, Live, render_page
from whyfor.server.pages.words import day_word
from whyfor.server.session_rows import ROW_WORDS
from whyfor.service.agents import agent_title, agents_shown
from whyfor.service.memory_page import QuotedWords, summary_words
from whyfor.service.saved_filters import counted_filters
from whyfor.service.session_list import (
    NO_PROJECT,
    ListedProject,
    ListRequest,
    ListView,
    month_cursor,
    session_list,
)
from whyfor.service.session_peek import SessionPeek, session_peek

MANY = 10_000  # more are not counted in words
PROJECTS = 10  # beside the list; the others are folded
SORTED = {
    "last": "Last active",
    "started": "Started",
    "longest": "Longest",
    "tokens": "Most tokens",
    "cost": "Cost",
}
SINCE = {
    "": "Any time",
    "today": "Today",
    "7d": "7 days",
    "30d": "30 days",
    "90d": "90 days",
    "365d": "1 year",
}
OUTCOME = {
    "": "Any",
    "open": "Open now",
    "asked": "Asked, not answered",
    "failed": "Failed",
    "committed": "Has commits",
    "changed": "Files, not committed",
    "nothing": "No change",
}
_NAMES = {name: name for name in ("since", "until", "file", "branch", "model", "task")}
Word = Annotated[str, QueryParameter(max_length=1000)]
Short = Annotated[str, QueryParameter(max_length=400)]


class DayOfRows(msgspec.Struct, frozen=True):
    """Rows under one heading; there is none if they are not sorted by time."""

    key: str
    title: str
    count: str
    rows: list[ListedSession]


@get("/sessions", include_in_schema=False, sync_to_thread=True)
def show(
    settings: Kept,
    hub: Live,
    q: Short = "",
    project: Word = "",
    folder: Word = "",
    agent: Short = "",
    branch: Short = "",
    model: Short = "",
    outcome: Short = "",
    file: Short = "",
    task: Short = "",
    since: Short = "",
    until: Short = "",
    sort: Short = "last",
    after: Short = "",
    before: Short = "",
    at: Word = "",
    who: Short = "",
    forgotten: Annotated[int, QueryParameter(ge=0, le=MANY)] = 0,
) -> Template:
    cursor = str(hub.cursor)  # before the look: what comes between is told twice rather than never
    asked = ListRequest(
        q.strip(), project, folder, agent, branch, model, outcome, file.strip(), since, until
    )
    asked = msgspec.structs.replace(
        asked, sort=sort or "last", after=after, before=before, who=who, task=task.strip()
    )
    found = session_list(settings, asked, hub.standings)
    titles = _project_names(found)
    link = _linker(asked)
    chosen = _chosen(settings, at)
    return render_page(
        "sessions.html",
        here="sessions",
        cursor=cursor,
        asked=asked,
        found=found,
        days=list(_days(found, asked)),
        at=at,
        forgotten=forgotten,
        peek=chosen,
        parts=_summary(settings, chosen),
        tokens=[(name, _filter_word(name, value)) for name, value in asked.filters.items()],
        drops=[
            (_drop_word(one.name, one.value), link(**{one.name: ""}), one.rows)
            for one in found.drops
        ],
        choices=_choices(settings, found, asked),
        sorts=SORTED,
        months=[
            (_month(one.period), one.rows, link(after=month_cursor(one.period)))
            for one in found.months
        ],
        none_word=NO_PROJECT,
        titles=titles,
        names=_short_names(titles),
        open_now=sum(1 for each in hub.standings if _is_open(each)),
        saved=[(one, filter_link(one.asked)) for one in counted_filters(settings, hub.standings)],
        shown_projects=PROJECTS,
        first_projects=[one.identity or NO_PROJECT for one in found.projects[:PROJECTS]],
        savable=bool(asked.filters) or asked.sort != "last",
        here_now=filter_link(asked),
        gone={one.identity for one in found.projects if one.gone},
        link=link,
        count_word=count_word,
        **ROW_WORDS,
    )


@get("/sessions/{agent:str}/{session_id:str}/peek", include_in_schema=False, sync_to_thread=True)
def peek(settings: Kept, hub: Live, agent: FromPath[str], session_id: FromPath[str]) -> Template:
    """One session beside the list, for a page that is open."""
    found = session_peek(settings, agent, session_id)
    standing = next((each for each in hub.standings if each.session.id == found.row.id), None)
    return render_page(
        "sessions/peek.html",
        peek=found,
        parts=_summary(settings, found),
        standing=standing,
        **ROW_WORDS,
    )


def _summary(settings: Settings, peek: SessionPeek | None) -> dict[str, list[QuotedWords]]:
    return summary_words(settings, peek.row.agent, peek.row.session_id) if peek else {}


def _chosen(settings: Any, at: str) -> SessionPeek | None:
    agent, _, ident = at.partition(":")
    if not ident:
        return None
    try:
        return session_peek(settings, agent, ident)
    except NotFound:
        return None  # it was forgotten since


def filter_words(asked: ListRequest) -> list[str]:
    """What a filter asks for, each thing in words."""
    words = [_filter_word(name, value) for name, value in asked.filters.items()]
    if asked.sort in SORTED and asked.sort != "last":
        words.append(f"by {SORTED[asked.sort].lower()}")
    return words


def filter_link(asked: ListRequest) -> str:
    """The address of the list with a filter, from its beginning."""
    return _linker(asked)()


def _linker(asked: ListRequest) -> Callable[..., str]:
    def link(**changed: str) -> str:
        """This page with something changed; from its beginning, unless that is said."""
        given = msgspec.structs.asdict(asked) | {"after": "", "before": ""} | changed
        given["sort"] = "" if given["sort"] == "last" else given["sort"]
        query = urlencode({name: value for name, value in given.items() if value})
        return f"/sessions?{query}" if query else "/sessions"

    return link


def _is_open(each: LiveStatus) -> bool:
    return each.session.parent_session_id is None and each.status.phase not in ("exited", "unknown")


# -- words ---------------------------------------------------------------------------------------


def _project_names(found: ListView) -> dict[str, str]:
    """What projects are called beside the list; those of the same name with the folders they are
    in, as many as tell them apart."""
    named: Callable[[str], str] = TEMPLATES.get().filters["project"]
    names = {one.identity: named(one.identity) for one in found.projects if one.identity}
    folders = {
        one.identity: _parts_of(one) for one in found.projects if one.identity and _parts_of(one)
    }
    bare = names | {identity: parts[-1] for identity, parts in folders.items()}
    often = Counter(bare.values())
    for identity, parts in folders.items():
        if often[bare[identity]] > 1:
            names[identity] = "/".join(telling_end(parts, list(folders.values())))
    return names


def _parts_of(project: ListedProject) -> tuple[str, ...]:
    """The folder of a project that is called by it, part by part; none if a remote names it."""
    identity = project.identity or ""
    if identity.startswith("git:"):
        identity = project.path or ""
    if not is_whole_path(identity):
        return ()
    return parts_of(identity)


def _short_names(names: dict[str, str]) -> dict[str | None, str]:
    """What projects are called in a row: without their owner, if only one is called so."""
    often = Counter(name.rpartition("/")[2] for name in names.values())
    short: dict[str | None, str] = {None: "no project"}
    for identity, name in names.items():
        last = name.rpartition("/")[2]
        short[identity] = last if often[last] == 1 else name
    return short


def count_word(number: int) -> str:
    return f"{number:,}" if number <= MANY else f"over {MANY:,}"


def _days(found: ListView, asked: ListRequest) -> Iterator[DayOfRows]:
    if asked.sort != "last":
        yield DayOfRows("all", "", "", found.rows)
        return
    days: dict[str, list[ListedSession]] = {}
    for row in found.rows:
        day = datetime.fromtimestamp(row.last_at / 1000).strftime("%Y-%m-%d") if row.last_at else ""
        days.setdefault(day, []).append(row)
    for day, rows in days.items():
        counted = found.days.get(day)
        words = plural(counted.rows if counted else len(rows), "session")
        if counted:
            words += _day_words(counted)
        title = day_word(rows[0].last_at) if rows[0].last_at else "Time unknown"
        yield DayOfRows(day, title, words, rows)


def _day_words(counted: PeriodCount) -> str:
    """The rest of what is said of a day."""
    words = f", {plural(counted.commits, 'commit')}" if counted.commits else ""
    if counted.cost.usd is not None:
        words += f", {cost_text(counted.cost)}"
    return f"{words}, {counted.without} without cost" if counted.without else words


def _month(period: str) -> str:
    when = datetime.strptime(period, "%Y-%m")
    return f"{when:%b}" if when.year == datetime.now().year else f"{when:%b %Y}"


def _filter_word(name: str, value: str) -> str:
    if name == "agent":
        return agent_title(value)
    if name == "outcome":
        return OUTCOME.get(value, value)
    if name == "q":
        return f"“{one_line(value)}”"
    if name == "who":
        return f"person {value}"
    if name == "since" and value in SINCE:
        return SINCE[value]
    return value if name in ("project", "folder") else f"{_NAMES[name]} {one_line(value)}"


def _drop_word(name: str, value: str) -> str:
    return "In all projects" if name == "project" else f"Without {_filter_word(name, value)}"


def _choices(
    settings: Settings, found: ListView, asked: ListRequest
) -> dict[str, list[tuple[str, str]]]:
    shown = agents_shown(settings)
    choices = filter_choices(shown, found.branches, asked.branch, asked.since)
    models = dict.fromkeys([*found.models, asked.model] if asked.model else found.models)
    return {
        **choices,
        "who": [("", "Anyone"), *((str(one.id), one.name) for one in found.members)]
        if found.members
        else [],
        "outcome": list(OUTCOME.items()),
        "model": [("", "Any"), *((name, one_line(name)) for name in models)],
    }


def filter_choices(
    agents: list[str], branches: list[str], branch: str, since: str
) -> dict[str, list[tuple[str, str]]]:
    """What filters by agent, branch and time offer; what was asked for is among it, even if nothing
    fits it."""
    if branch and branch not in branches:
        branches = [branch, *branches]
    return {
        "agent": [("", "Any"), *((name, agent_title(name)) for name in agents)],
        "branch": [("", "Any"), *((name, one_line(name)) for name in branches)],
        "since": list({**SINCE, since: SINCE.get(since, since)}.items()),
    }


router = [show, peek]
