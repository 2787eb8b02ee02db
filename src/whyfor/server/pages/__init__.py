"""The pages, one module each; a module's `router` holds its handlers."""

from __future__ import annotations

from whyfor.server.pages import (
    commit,
    insights,
    memory,
    now,
    search,
    selection,
    session,
    sessions,
    timeline,
)

HANDLERS = [
    *now.router,
    *sessions.router,
    *selection.router,
    *timeline.router,
    *session.router,
    *commit.router,
    *search.router,
    *insights.router,
    *memory.router,
]
