"""Insights: activity, tokens and turns."""

from __future__ import annotations

from litestar import get
from litestar.response import Template

from backstory.server.page import Kept, page
from backstory.service.figures import stats
from backstory.service.reading import Where


@get("/insights", include_in_schema=False, sync_to_thread=True)
def show(settings: Kept) -> Template:
    return page("insights.html", here="insights", stats=stats(settings, Where()))


router = [show]
