"""The Session page: a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any

from litestar import Response, get
from litestar.params import FromPath, FromQuery
from litestar.response import Template
from markupsafe import Markup

from whyfor.live.hub import Hub
from whyfor.model.casts import Recording
from whyfor.model.conversation import DiffRow, OutlineEntry
from whyfor.model.status import LiveStatus
from whyfor.server.page import Kept, Live, render_page
from whyfor.server.pages import diffs
from whyfor.server.render import home_path, render_prose
from whyfor.service.memory_page import session_notes, summary_words
from whyfor.service.pictures import picture
from whyfor.service.replay import is_recording, load_recording
from whyfor.service.sessions import short_ids
from whyfor.service.show import session_item, session_part, session_person, session_view

PATH = "/sessions/{agent:str}/{session_id:str}"
COLOURED = 4_000  # characters of folded diffs on one page; more are coloured when they are unfolded
_BARS = 24
_WIDTH, _HEIGHT = 228, 44


class Paint:
    """Highlights diffs as long as there is time: open ones before folded ones."""

    def __init__(self, budget: int) -> None:
        self.budget = budget

    def __call__(self, rows: Sequence[DiffRow], path: str) -> list[Markup]:
        self.budget -= diffs.rows_size(rows)
        return diffs.painted(rows, path if self.budget >= 0 else "")

    @property
    def dry(self) -> bool:
        return self.budget < 0


def words_of(text: str) -> Markup:
    """Return an agent's Markdown as HTML; its headings rank below those of turns."""
    return Markup(str(render_prose(text)).replace("<h4>", "<h3>").replace("</h4>", "</h3>"))


@get(PATH, include_in_schema=False, sync_to_thread=True)
def show(
    settings: Kept,
    hub: Live,
    agent: FromPath[str],
    session_id: FromPath[str],
    at: FromQuery[int | None] = None,
    after: FromQuery[int | None] = None,
) -> Template:
    """Show a session. `at`: the page with this event; `after`: the page with the event that follows
    it."""
    cursor = str(hub.cursor)
    place = at if at is not None else after + 1 if after is not None else None
    view = session_view(settings, agent, session_id, place)
    ids = short_ids(settings, [(agent, session_id)])
    return render_page(
        "session.html",
        printed=ids[f"{agent}:{session_id}"],
        parts=summary_words(settings, agent, session_id),
        notes=session_notes(settings, agent, session_id),
        cursor=cursor,
        view=view,
        speaker=view.who,
        session=view.session,
        standing=_standing(hub, agent, session_id),
        folder=PurePath(view.session.cwd or "").name,
        where=home_path(view.session.cwd, settings.user_home),
        bars=_bars(view.outline),
        total=view.tokens.total,
        shown=view.begun,
        paint=Paint(COLOURED),
        words_of=words_of,
        is_recording=is_recording(agent),
    )


@get(f"{PATH}/part", include_in_schema=False, sync_to_thread=True)
def part(
    settings: Kept, hub: Live, agent: FromPath[str], session_id: FromPath[str], at: FromQuery[int]
) -> Template:
    """Return one more page, to be inserted into those shown."""
    found = session_part(settings, agent, session_id, at)
    return render_page(
        "session/part.html",
        speaker=session_person(settings, agent, session_id),
        session=found.session,
        stretch=found.stretch,
        outline=found.outline,
        last=found.last,
        shown=set[int](),
        standing=_standing(hub, agent, session_id),
        ends=found.stretch.last >= found.last,
        paint=Paint(COLOURED),
        words_of=words_of,
    )


@get(f"{PATH}/events/{{seq:int}}", include_in_schema=False, sync_to_thread=True)
def event(
    settings: Kept,
    agent: FromPath[str],
    session_id: FromPath[str],
    seq: FromPath[int],
    bare: FromQuery[bool] = False,
) -> Template:
    """Show one item in full; `bare` returns only its replacement on the page."""
    session, item = session_item(settings, agent, session_id, seq)
    template = "session/item.html" if bare else "session/event.html"
    return render_page(
        template,
        speaker=session_person(settings, agent, session_id),
        session=session,
        item=item,
        paint=Paint(10 * COLOURED),
        words_of=words_of,
    )


@get(f"{PATH}/images/{{seq:int}}/{{index:int}}", include_in_schema=False, sync_to_thread=True)
def image(
    settings: Kept,
    agent: FromPath[str],
    session_id: FromPath[str],
    seq: FromPath[int],
    index: FromPath[int],
) -> Response[bytes]:
    found = picture(settings, agent, session_id, seq, index)
    return Response(
        found.data, media_type=found.media_type, headers={"content-disposition": "inline"}
    )


def _standing(hub: Hub, agent: str, session_id: str) -> LiveStatus | None:
    return next((each for each in hub.standings if each.name == f"{agent}:{session_id}"), None)


def _bars(outline: Sequence[OutlineEntry]) -> dict[str, Any]:
    """Return the tokens of the last turns as heights; a turn with unknown tokens has no bar."""
    chosen = outline[-_BARS:]
    totals = [listed.tokens.total for listed in chosen]
    most = max((value for value in totals if value is not None), default=0)
    if not most or len(chosen) < 2:
        return {"bars": [], "cuts": [], "unknown": not most}
    step = (_WIDTH - 4) / len(chosen)
    width = max(3.0, min(30.0, step - (8 if step > 16 else 2)))
    bars, cuts = [], []
    for index, (listed, value) in enumerate(zip(chosen, totals, strict=True)):
        x = 2 + index * step
        height = max(1.0, (value or 0) / most * (_HEIGHT - 6))
        named = len(chosen) <= 12 or (index % 4 == 0)
        bars.append(
            {
                "x": round(x, 1),
                "y": round(_HEIGHT - height, 1),
                "width": round(width, 1),
                "height": round(height, 1),
                "middle": round(x + width / 2, 1),
                "turn": listed.turn.number,
                "total": value,
                "named": named,
            }
        )
        if listed.turn.compacted and index + 1 < len(chosen):
            cuts.append(round(x + width + (step - width) / 2, 1))
    return {"bars": bars, "cuts": cuts, "unknown": False}


@get(f"{PATH}/recording", include_in_schema=False, sync_to_thread=True)
def recording(settings: Kept, agent: FromPath[str], session_id: FromPath[str]) -> Recording:
    """Return a recorded terminal, to be played on the page."""
    return load_recording(settings, agent, session_id)


router = [show, part, event, image, recording]
