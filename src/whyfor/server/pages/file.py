"""The File page: each line of a file with the turn that wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import urlencode

import msgspec
from litestar import get
from litestar.params import FromQuery
from litestar.response import Template
from markupsafe import Markup, escape

from whyfor.model.blame import BlameRow
from whyfor.model.characters import show_code
from whyfor.model.file_page import FilePage, LineShare, VersionChoice
from whyfor.server.page import Kept, Live, render_page
from whyfor.server.pages.commit import when
from whyfor.server.render import render_lines
from whyfor.service.agents import agent_title
from whyfor.service.file_page import PAGE, FileQuery, file_page

_BAR = 500  # width of the bar of shares
_COLOURED = 20_000  # characters that are highlighted together: of more nothing is


class ShareBar(msgspec.Struct, frozen=True):
    """A part of the bar: whose, how many lines, where it stands."""

    style: str
    name: str
    lines: int
    x: float
    width: float


@get("/file", include_in_schema=False, sync_to_thread=True)
def show(
    settings: Kept,
    hub: Live,
    project: FromQuery[str] = "",
    path: FromQuery[str] = "",
    at: FromQuery[str] = "",
    line: FromQuery[int | None] = None,
    first: FromQuery[int | None] = None,
) -> Template:
    cursor = str(hub.cursor)
    found = file_page(settings, FileQuery(project, path, at, line, first))
    here = found.at.sha if found.at else at
    older, newer = neighbours(found)
    return render_page(
        "file.html",
        here="timeline",
        cursor=cursor,
        found=found,
        asked=path,
        older=older,
        newer=newer,
        bars=list(share_bars(found.shares)),
        codes=painted_lines(found),
        link=_linker(project, path, here),
        page_size=PAGE,
        when=when,
    )


def _linker(project: str, path: str, at: str) -> Callable[..., str]:
    """A function that makes links to this file, with some values changed."""
    same = {"project": project, "path": path, "at": at}

    def link(**changed: object) -> str:
        values = {**same, **changed}
        return "/file?" + urlencode({name: value for name, value in values.items() if value})

    return link


def neighbours(found: FilePage) -> tuple[VersionChoice | None, VersionChoice | None]:
    """Return the versions before and after the one that is shown."""
    shas = [version.sha for version in found.versions]
    if found.at is None or found.at.sha not in shas:
        return None, None
    place = shas.index(found.at.sha)
    older = found.versions[place + 1] if place + 1 < len(shas) else None
    newer = found.versions[place - 1] if place else None
    return older, newer


def share_bars(shares: list[LineShare]) -> Iterator[ShareBar]:
    """Yield the parts of the bar, as wide as the lines are many."""
    total = sum(share.lines for share in shares)
    at = 0.0
    for share in shares:
        wide = _BAR * share.lines / total
        style, name = _share_words(share)
        yield ShareBar(style, name, share.lines, round(at, 2), round(max(wide - 2, 1), 2))
        at += wide


def _share_words(share: LineShare) -> tuple[str, str]:
    if share.kind == "agent":
        return share.name, agent_title(share.name)
    if share.kind == "person":
        return ("you", "you (inferred)") if share.is_you else ("mate", f"{share.name} (inferred)")
    return share.kind, {"modified": "by an agent, modified since"}.get(share.kind, share.kind)


def painted_lines(found: FilePage) -> dict[int, Markup]:
    """Return the code of the lines that are shown, highlighted, by number."""
    codes: dict[int, Markup] = {}
    part: list[BlameRow] = []
    size = 0
    for span in found.spans:
        for row in span.rows:
            part.append(row)
            size += len(row.text) + 1
            if size > _COLOURED:
                codes.update(_painted(part, found.path))
                part, size = [], 0
    codes.update(_painted(part, found.path))
    return codes


def _painted(rows: list[BlameRow], path: str) -> dict[int, Markup]:
    texts = [show_code(row.text.removesuffix("\r")).replace("\n", " ") for row in rows]
    codes = render_lines("\n".join(texts), path)
    if len(codes) != len(rows):
        codes = [escape(text) for text in texts]
    return {row.line: code for row, code in zip(rows, codes, strict=True)}


router = [show]
