"""The Map page: sessions, commits and files of a branch."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlencode

from litestar import get
from litestar.params import FromQuery
from litestar.response import Template

from whyfor.model.branch_map import BY_HAND, BranchMap
from whyfor.server.map_bands import draw
from whyfor.server.page import Kept, Live, render_page
from whyfor.server.pages.commit import when
from whyfor.service.agents import agent_title
from whyfor.service.map_page import MapQuery, map_page


@get("/map", include_in_schema=False, sync_to_thread=True)
def show(
    settings: Kept,
    hub: Live,
    project: FromQuery[str] = "",
    branch: FromQuery[str] = "",
    against: FromQuery[str] = "",
    session: FromQuery[str] = "",
) -> Template:
    cursor = str(hub.cursor)
    found = map_page(settings, MapQuery(project, branch, against, session))
    rows = file_rows(found)
    selected = next((one for one in found.sources if one.name == found.selected), None)
    own: dict[str, int] = {}
    for band in found.right or found.bands:
        if band.source == found.selected:
            own[band.path] = own.get(band.path, 0) + band.lines
    lit = {band.commit for band in found.left or found.bands if band.source == found.selected}
    return render_page(
        "map.html",
        here="map",
        cursor=cursor,
        found=found,
        rows=rows,
        drawing=draw(found, rows),
        selected=selected,
        own=own,
        lit=lit,
        by_hand=BY_HAND,
        link=_linker(found, against),
        rest_words=rest_words,
        when=when,
    )


def file_rows(found: BranchMap) -> list[tuple[str, str]]:
    """Return the list of files: a row for each folder, then its files."""
    rows: list[tuple[str, str]] = []
    before: str | None = None
    for path in found.files:
        folder = path.rpartition("/")[0]
        if folder != before:
            rows.append(("folder", f"{folder}/" if folder else "./"))
            before = folder
        rows.append(("file", path))
    return rows


def rest_words(lines: int, total: int, rest: dict[str, int]) -> str:
    """34 of 55 lines, 21 by Codex"""
    if not rest:
        return f"all {total} lines" if total != 1 else "the only line"
    names = {"person": "by hand (inferred)", "unknown": "unknown"}
    others = [f"{n} {names.get(who) or 'by ' + agent_title(who)}" for who, n in rest.items()]
    return f"{lines} of {total} lines, {', '.join(others)}"


def _linker(found: BranchMap, against: str) -> Callable[..., str]:
    same = {"project": found.project.identity, "branch": found.branch, "against": against}

    def link(**changed: object) -> str:
        values = {**same, **changed}
        return "/map?" + urlencode({name: value for name, value in values.items() if value})

    return link


router = [show]
