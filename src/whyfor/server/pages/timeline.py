"""Timeline: a project's commits and their stories, its sessions as lanes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from urllib.parse import urlencode

import msgspec
from litestar import get
from litestar.params import FromPath, FromQuery
from litestar.response import Template

from whyfor.config import Settings
from whyfor.live.hub import Hub
from whyfor.model.checkpoints import TAGS
from whyfor.model.errors import BadInput
from whyfor.model.stories import CommitFilter
from whyfor.model.times import parse_when
from whyfor.server.page import Kept, Live, render_page
from whyfor.server.pages.words import day_word
from whyfor.server.session_rows import ROW_WORDS
from whyfor.service.agents import agent_title, agents_shown
from whyfor.service.projects import project_summaries
from whyfor.service.session_list import ListRequest, ListView, session_list
from whyfor.service.timeline import (
    SHORT_REASONS,
    TimelineView,
    newest_story_project,
    related,
    timeline,
)

SINCE = {"7d": "7 days", "30d": "30 days", "90d": "90 days", "365d": "1 year", "all": "All time"}
KEPT = 20  # sessions shown of a project whose repository is gone
STORY = {"": None, "with": True, "without": False}


@get("/timeline", include_in_schema=False, sync_to_thread=True)
def show(
    settings: Kept,
    hub: Live,
    project: FromQuery[str] = "",
    branch: FromQuery[str] = "",
    author: FromQuery[str] = "",
    agent: FromQuery[str] = "",
    tag: FromQuery[str] = "",
    task: FromQuery[str] = "",
    story: FromQuery[str] = "",
    since: FromQuery[str] = "",
    until: FromQuery[str] = "",
    after: FromQuery[str] = "",
    at: FromQuery[str] = "",
) -> Template:
    cursor = str(hub.cursor)
    project = project or _first_project(settings)
    if not project:
        return render_page(
            "timeline/projects.html", here="timeline", projects=[], home=settings.user_home
        )
    which = CommitFilter(
        branch=branch or None,
        author=author or None,
        agent=agent or None,
        tag=tag or None,
        story=STORY.get(story),
        until=_until(until),
        task=task or None,
    )
    running = [standing.name for standing in hub.standings if standing.status.phase != "exited"]

    def of(which: CommitFilter) -> TimelineView:
        return timeline(settings, project, which, after=after or None, open_sessions=running)

    found, period = _period(of, which, since)
    chosen = _chosen(found, at)
    asked = {
        "project": project,
        "branch": branch,
        "author": author,
        "agent": agent,
        "tag": tag,
        "task": task,
        "story": story,
    }
    asked |= {"since": since and period, "until": until}

    def here(**changed: str) -> str:
        """This page with another filter, place or row."""
        return "/timeline?" + urlencode(
            {name: value for name, value in (asked | changed).items() if value}
        )

    return render_page(
        "timeline.html",
        here="timeline",
        cursor=cursor,
        timeline=found,
        asked=asked | {"since": period, "after": after},
        chosen=chosen,
        words=related(settings, chosen) if chosen else None,
        choices=_choices(found, asked, agents_shown(settings)),
        periods=SINCE,
        kept=_kept(settings, hub, found),
        **ROW_WORDS,
        why=lambda reason: SHORT_REASONS.get(reason, reason),
        day_word=day_word,
        link=here,
    )


@get("/timeline/projects", include_in_schema=False, sync_to_thread=True)
def choose(settings: Kept) -> Template:
    return render_page(
        "timeline/projects.html",
        here="timeline",
        projects=project_summaries(settings),
        home=settings.user_home,
    )


@get("/timeline/related/{sha:str}", include_in_schema=False, sync_to_thread=True)
def panel(settings: Kept, sha: FromPath[str]) -> Template:
    """The prompts of one commit, for the panel beside the list."""
    return render_page("timeline/related.html", words=related(settings, sha))


def _first_project(settings: Settings) -> str:
    """The project that is shown when none is named: the one with the newest story, else one whose
    folder is there; empty if none is known."""
    known = project_summaries(settings)
    if not known:
        return ""
    there = next((item for item in known if item.folder), known[0]).project.identity
    return newest_story_project(settings) or there


def _chosen(found: TimelineView, at: str) -> str:
    """The commit whose story is open beside the list: the one that is asked for, else the
    newest."""
    rows = [row.entry for row in found.rows if row.kind == "story" and row.entry]
    shas = [entry.told.commit.sha for entry in rows]
    return at if at in shas else next(iter(shas), "")


def _kept(settings: Settings, hub: Hub, found: TimelineView) -> ListView | None:
    """The sessions of a project whose repository is gone: git cannot tell of it any more."""
    if found.folder:
        return None
    asked = ListRequest(project=found.project.identity)
    return session_list(settings, asked, hub.standings, limit=KEPT)


def _choices(
    found: TimelineView, asked: dict[str, str], agents: list[str]
) -> dict[str, list[tuple[str, str]]]:
    """What the filters offer; what was asked for is among it, even if nothing fits it."""
    current = [] if asked["branch"] else [("", found.branch or "HEAD")]
    branches = [(name, name) for name in found.branches if asked["branch"] or name != found.branch]
    choices = [*current, *branches, ("*", "All branches")]
    if not found.folder:  # those of sessions: no branch is checked out
        choices = [("", "All branches"), *((name, name) for name in found.branches)]
    authors = [(email, email) for _, email in found.authors]
    if asked["author"] and asked["author"] not in dict(authors):
        authors.insert(0, (asked["author"], asked["author"]))
    return {
        "branch": choices if found.branches else [],
        "author": [("", "Anyone"), *authors],
        "agent": [("", "Any"), *((name, agent_title(name)) for name in agents)],
        "tag": [("", "Any"), *((tag, tag.capitalize()) for tag in TAGS)],
        "since": list(SINCE.items()),
    }


def _period(
    of: Callable[[CommitFilter], TimelineView], which: CommitFilter, since: str
) -> tuple[TimelineView, str]:
    """A month, unless another time was asked for; where nothing was committed for a month, all
    of it."""

    def told(period: str) -> TimelineView:
        start = _since(period)
        return of(msgspec.structs.replace(which, since=start))

    if since:
        return told(since), since
    found = told("30d") if which.until is None else told("all")
    if which.until is None and found.share.commits:
        return found, "30d"
    return (told("all") if which.until is None else found), "all"


def _since(period: str) -> int | None:
    """Whole days, so that the pages of a list are of one list."""
    if period == "all":
        return None
    if period not in SINCE:
        raise BadInput(f"not a period: {period[:40]!r}", f"One of: {', '.join(SINCE)}.")
    start = datetime.now().astimezone().replace(hour=0, minute=0, second=0, microsecond=0)
    return int((start - timedelta(days=int(period[:-1]))).timestamp() * 1000)


def _until(day: str) -> int | None:
    return parse_when(day, datetime.now().astimezone(), end=True) if day else None


router = [show, choose, panel]
