"""The pages in the team server's navigation, for whoever asks."""

from __future__ import annotations

from whyfor.server.page import NavPage
from whyfor.server.team.context import CONTEXT

# Of the project that is shown; server/page.py leads these paths to it.
PROJECT_PAGES = (
    NavPage("sessions", "/sessions", "Sessions", "i-list", "s", "always"),
    NavPage("timeline", "/timeline", "Timeline", "i-commit", "t"),
    NavPage("search", "/search", "Search", "i-search", bar="always"),
    NavPage("memory", "/memory", "Memory", "i-think", "m"),
    NavPage("insights", "/insights", "Insights", "i-gauge", "i"),
    NavPage("tasks", "/tasks", "Tasks", "i-task", "k", "never"),
    NavPage("map", "/map", "Map", "i-fork", "p", "never"),
)
_PEOPLE = NavPage("people", "/people", "People", "i-people", bar="never")
_AUDIT = NavPage("audit", "/audit", "Audit", "i-discovery", bar="never")
_ACCOUNT = NavPage("account", "/account", "Your account", "i-key", bar="never")


def team_pages() -> list[NavPage]:
    """Return the pages to show; what only admins may open is shown to them alone."""
    context = CONTEXT.get()
    pages = [NavPage("projects", "/projects", "Projects", "i-folder", "n", bar="always")]
    if context.project is not None and context.project.role is not None:
        pages += PROJECT_PAGES
    manages = context.member is not None and context.member.is_manager
    administers = context.project is not None and context.project.role == "admin"
    if manages:
        pages.append(_PEOPLE)
    if manages or administers:
        pages.append(_AUDIT)
    return [*pages, _ACCOUNT]


def team_name() -> str:
    return CONTEXT.get().resources.team_name
