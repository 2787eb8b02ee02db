"""Feed: what happened in all sessions, one line each, newest first."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from litestar import get
from litestar.params import FromQuery
from litestar.response import Template

from whyfor.config import Settings
from whyfor.model.errors import BadInput
from whyfor.model.times import parse_when
from whyfor.model.work_feed import WORK_KINDS, WORK_STATES, WorkQuery, WorkState
from whyfor.server.page import Kept, Live, render_page
from whyfor.service.agents import agents_shown
from whyfor.service.feed import feed_projects, work_feed

Word = FromQuery[str]
ROWS = 100
SINCE = (
    ("12h", "12 hours"),
    ("1d", "a day"),
    ("3d", "3 days"),
    ("7d", "a week"),
    ("30d", "30 days"),
)
KIND_WORDS = {
    "prompt": ("i-edit", "You asked"),
    "question": ("i-ask", "Asks you"),
    "approval": ("i-shield", "Approval"),
    "failure": ("i-x", "Failed"),
    "commit": ("i-commit", "Commit"),
    "done": ("i-check", "Said at the end"),
    "attention": ("i-warn", "Attention"),
}
STATE_WORDS = {
    "waiting": "waiting on me",
    "testing": "running tests",
    "failing": "with failures",
}


@get("/feed", include_in_schema=False, sync_to_thread=True)
def feed(
    settings: Kept,
    hub: Live,
    kind: Word = "",
    only: Word = "",
    agent: Word = "",
    project: Word = "",
    since: Word = "",
) -> Template:
    cursor = str(hub.cursor)
    shown = _shown(settings, kind, only, agent, project, since)
    return render_page("feed.html", here="feed", cursor=cursor, **shown)


@get("/feed/rows", include_in_schema=False, sync_to_thread=True)
def feed_rows(
    settings: Kept,
    kind: Word = "",
    only: Word = "",
    agent: Word = "",
    project: Word = "",
    since: Word = "",
) -> Template:
    """The same without its frame, for a page that is open."""
    return render_page("feed/rows.html", **_shown(settings, kind, only, agent, project, since))


def _shown(
    settings: Settings, kind: str, only: str, agent: str, project: str, since: str
) -> dict[str, Any]:
    kinds = tuple(name for name in WORK_KINDS if name == kind)
    state: WorkState = next((name for name in WORK_STATES if name == only), "")
    if (kind and not kinds) or (only and not state):
        raise BadInput("the feed has no such filter", "Choose one on the page.")
    query = WorkQuery(
        since=parse_when(since or "1d", datetime.now().astimezone()),
        kinds=kinds,
        project=project or None,
        agent=agent or None,
        only=state,
        limit=ROWS,
    )
    return {
        "entries": work_feed(settings, query),
        "kind": kind,
        "only": only,
        "agent": agent,
        "project": project,
        "since": since or "1d",
        "kind_words": KIND_WORDS,
        "state_words": STATE_WORDS,
        "times": SINCE,
        "agents": agents_shown(settings),
        "projects": feed_projects(settings),
        "rows": ROWS,
    }


router = [feed, feed_rows]
