"""Now: which sessions work, which wait, and for what."""

from __future__ import annotations

from typing import Any

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromQuery
from litestar.response import Template

from whyfor.live.board import ROWS, PreviewCache
from whyfor.live.hub import Hub
from whyfor.server.page import Live, render_page

ALL = 1000  # rows: more than a hub has sessions
Seen = NamedDependency[PreviewCache]
Word = FromQuery[str]


@get("/", include_in_schema=False, sync_to_thread=True)
def now(
    hub: Live, glances: Seen, agent: Word = "", project: Word = "", rest: Word = ""
) -> Template:
    cursor = str(hub.cursor)  # before the look: what comes between is told twice rather than never
    return render_page(
        "now.html", here="now", cursor=cursor, **_shown(hub, glances, agent, project, rest)
    )


@get("/now/board", include_in_schema=False, sync_to_thread=True)
def fragment(
    hub: Live, glances: Seen, agent: Word = "", project: Word = "", rest: Word = ""
) -> Template:
    """The same without its frame, for a page that is open."""
    return render_page("now/board.html", **_shown(hub, glances, agent, project, rest))


@get("/now/count", include_in_schema=False, sync_to_thread=False)
def count(hub: Live) -> dict[str, int]:
    """For the top bar of pages that do not hear of all sessions."""
    return {"waiting_approval": sum(1 for each in hub.standings if each.status.approval)}


def _shown(hub: Hub, glances: PreviewCache, agent: str, project: str, rest: str) -> dict[str, Any]:
    trouble = hub.trouble or (hub.error.message if hub.error else None)
    rows = ALL if rest == "all" else ROWS
    board = glances.board(hub.standings, agent=agent, project=project, rows=rows)
    return {"board": board, "agent": agent, "project": project, "rows": rows, "trouble": trouble}


router = [now, fragment, count]
