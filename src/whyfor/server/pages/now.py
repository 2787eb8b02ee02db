"""Now: which sessions work, which wait, and for what."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from typing import Any

import msgspec
from litestar import Request, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath, FromQuery
from litestar.response import Redirect, Template

from whyfor.config import Settings
from whyfor.live.board import ROWS, NowBoard, PreviewCache
from whyfor.live.hub import Hub
from whyfor.model.attention import AttentionQuery
from whyfor.model.errors import NotFound
from whyfor.server.forms import FormData, go_to
from whyfor.server.page import Kept, Live, render_page
from whyfor.server.session_rows import ROW_WORDS
from whyfor.service.attention import fits_query, mute_cause, named_firings
from whyfor.service.now import quiet_now
from whyfor.service.today import TodayCache

VISIT = 1800  # seconds without a look after which another visit begins
ALL = 1000  # rows: more than a hub has sessions
Seen = NamedDependency[PreviewCache]
Today = NamedDependency[TodayCache]
Word = FromQuery[str]


class Visit(msgspec.Struct, frozen=True):
    """When somebody looked at Now before this visit, and last during it; in seconds, 0: unknown.
    Looks that are less than half an hour apart are one visit."""

    before: int
    last: int

    @property
    def since(self) -> int:
        """In ms; a day ago if nobody is known to have looked before."""
        return 1000 * (self.before or self.last - 24 * 3600)


@get("/", include_in_schema=False, sync_to_thread=True)
def now(
    request: Request[Any, Any, Any],
    settings: Kept,
    hub: Live,
    glances: Seen,
    today: Today,
    agent: Word = "",
    project: Word = "",
    rest: Word = "",
    muted: Word = "",
) -> Template:
    cursor = str(hub.cursor)  # before the look: what comes between is told twice rather than never
    shown = _shown(hub, glances, agent, project, rest)
    shown |= _attention(settings, hub, agent, project, muted)
    shown["today"] = today.figures()
    return _rendered("now.html", request, settings, shown, here="now", cursor=cursor)


@get("/now/board", include_in_schema=False, sync_to_thread=True)
def fragment(
    request: Request[Any, Any, Any],
    settings: Kept,
    hub: Live,
    glances: Seen,
    today: Today,
    agent: Word = "",
    project: Word = "",
    rest: Word = "",
    muted: Word = "",
) -> Template:
    """The same without its frame, for a page that is open."""
    shown = _shown(hub, glances, agent, project, rest)
    shown |= _attention(settings, hub, agent, project, muted)
    shown["today"] = today.figures()
    return _rendered("now/board.html", request, settings, shown)


@get("/now/count", include_in_schema=False, sync_to_thread=False)
def count(hub: Live) -> dict[str, int]:
    """For the top bar of pages that do not hear of all sessions."""
    return {"waiting_approval": sum(1 for each in hub.standings if each.status.approval)}


def _shown(hub: Hub, glances: PreviewCache, agent: str, project: str, rest: str) -> dict[str, Any]:
    trouble = hub.trouble or (hub.error.message if hub.error else None)
    rows = ALL if rest == "all" else ROWS
    board = glances.board(hub.standings, agent=agent, project=project, rows=rows)
    return {"board": board, "agent": agent, "project": project, "rows": rows, "trouble": trouble}


def _attention(
    settings: Settings, hub: Hub, agent: str, project: str, muted: str
) -> dict[str, Any]:
    """What needs a person, of the sessions that are shown; muted ones only if they are asked
    for."""
    query = AttentionQuery(agent=agent or None, project=project or None)
    found = [one for one in named_firings(settings, hub.firings) if fits_query(one, query)]
    return {"attention": found, "show_muted": muted == "show"}


def _rendered(
    template: str,
    request: Request[Any, Any, Any],
    settings: Settings,
    shown: dict[str, Any],
    **more: str,
) -> Template:
    """With what is shown if nothing runs; nothing of it before anything was captured."""
    visit = _visit(request)
    board: NowBoard = shown["board"]
    groups = board.groups
    busy = any(groups[name] for name in ("waiting_approval", "waiting", "running"))
    found = None
    if not busy and not board.empty:
        with suppress(NotFound):
            found = quiet_now(settings, visit.since, agent=shown["agent"], project=shown["project"])
    quiet = {"quiet": found, "visited": bool(visit.before), **ROW_WORDS}
    return _remember(render_page(template, **shown, **quiet, **more), request, visit)


# -- when somebody last looked -------------------------------------------------------------------


def _cookie(request: Request[Any, Any, Any]) -> str:
    return f"whyfor-looked-{request.url.port}"  # a browser does not tell ports apart


def _visit(request: Request[Any, Any, Any]) -> Visit:
    at = int(time.time())
    found = re.fullmatch(r"(\d{1,11})\.(\d{1,11})", request.cookies.get(_cookie(request), ""))
    before, last = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 0 < last <= at:
        return Visit(0, at)
    return Visit(last if at - last > VISIT else before, at)


def _remember(page: Template, request: Request[Any, Any, Any], visit: Visit) -> Template:
    value = f"{_cookie(request)}={visit.before}.{visit.last}"
    page.headers["set-cookie"] = f"{value}; HttpOnly; SameSite=Strict; Path=/; Max-Age=31536000"
    return page


# -- muting ----------------------------------------------------------------------------------------


class MuteForm(msgspec.Struct, frozen=True):
    """Only the token, which the guard has checked."""

    form: str = ""


@post("/attention/{ident:str}/mute", include_in_schema=False, sync_to_thread=True)
def mute_row(settings: Kept, hub: Live, ident: FromPath[str], data: FormData[MuteForm]) -> Redirect:
    del data  # the guard has read it
    _mute(settings, hub, ident, undo=False)
    return go_to("/#g-attn", "/")


@post("/attention/{ident:str}/unmute", include_in_schema=False, sync_to_thread=True)
def unmute_row(
    settings: Kept, hub: Live, ident: FromPath[str], data: FormData[MuteForm]
) -> Redirect:
    del data
    _mute(settings, hub, ident, undo=True)
    return go_to("/?muted=show#g-attn", "/")


def _mute(settings: Settings, hub: Hub, ident: str, *, undo: bool) -> None:
    """Write it down, and show it at once: the monitor reads of it a moment later."""
    firing = next((one for one in hub.firings if one.id == ident), None)
    if firing is None:
        raise NotFound("this is over", "Load the page again.")
    mute_cause(settings, firing, undo=undo)
    hub.mute(firing, undo=undo)


router = [now, fragment, count, mute_row, unmute_row]
