"""The pages, one module each; a module's `router` holds its handlers."""

from __future__ import annotations

from whyfor.server.pages import (
    approvals,
    commit,
    feed,
    file,
    insights,
    map,
    memory,
    now,
    search,
    selection,
    session,
    sessions,
    sync,
    tasks,
    timeline,
)

HANDLERS = [
    *now.router,
    *sessions.router,
    *selection.router,
    *timeline.router,
    *session.router,
    *commit.router,
    *file.router,
    *map.router,
    *search.router,
    *insights.router,
    *memory.router,
    *feed.router,
    *approvals.router,
    *sync.router,
    *tasks.router,
]
