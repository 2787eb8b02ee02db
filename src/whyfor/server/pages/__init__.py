"""The pages, one module each; a module's `router` holds its handlers."""

from __future__ import annotations

from whyfor.server.pages import commit, insights, now, search, session, sessions, timeline

HANDLERS = [
    *now.router,
    *sessions.router,
    *timeline.router,
    *session.router,
    *commit.router,
    *search.router,
    *insights.router,
]
