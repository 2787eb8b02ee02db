"""Now: which sessions work, which wait, and for what."""

from __future__ import annotations

from typing import Any

from litestar import get
from litestar.di import NamedDependency
from litestar.response import Template

from backstory.server.page import Live, page
from backstory.service.glancing import Board, Glances

ROWS = 12  # of what is idle or over, unless all of it is asked for
Seen = NamedDependency[Glances]


@get("/", include_in_schema=False, sync_to_thread=True)
def now(hub: Live, glances: Seen, agent: str = "", project: str = "", rest: str = "") -> Template:
    cursor = str(hub.cursor)  # before the look: what comes between is told twice rather than never
    board = glances.board(hub.standings, agent=agent, project=project)
    return page("now.html", here="now", cursor=cursor, **_shown(hub, board, agent, project, rest))


@get("/now/board", include_in_schema=False, sync_to_thread=True)
def fragment(hub: Live, glances: Seen, agent: str = "", project: str = "", rest: str = "") -> Template:
    """The same without its frame, for a page that is open."""
    board = glances.board(hub.standings, agent=agent, project=project)
    return page("now/board.html", **_shown(hub, board, agent, project, rest))


@get("/now/count", include_in_schema=False, sync_to_thread=False)
def count(hub: Live) -> dict[str, int]:
    """For the top bar of pages that do not hear of all sessions."""
    return {"waiting_approval": sum(1 for each in hub.standings if each.status.approval)}


def _shown(hub: Live, board: Board, agent: str, project: str, rest: str) -> dict[str, Any]:
    trouble = hub.trouble or (hub.error.message if hub.error else None)
    rows = len(board.groups["rest"]) if rest == "all" else ROWS
    return {"board": board, "agent": agent, "project": project, "rest": rest, "rows": rows, "trouble": trouble}


router = [now, fragment, count]
