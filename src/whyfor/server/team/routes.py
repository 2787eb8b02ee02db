"""Every route of the team server. Each declares who may call it: see server/team/decide.py."""

from __future__ import annotations

from litestar.types import ControllerRouterHandler

from whyfor.server.team import (
    audit_page,
    device_api,
    entry_pages,
    health,
    mcp_api,
    people_pages,
    project_pages,
    projects_page,
    settings_pages,
    stream,
    sync_routes,
)

HANDLERS: list[ControllerRouterHandler] = [
    *health.HANDLERS,
    *device_api.HANDLERS,
    *entry_pages.HANDLERS,
    *projects_page.HANDLERS,
    *people_pages.HANDLERS,
    *settings_pages.HANDLERS,
    *audit_page.HANDLERS,
    *sync_routes.HANDLERS,
    *project_pages.HANDLERS,
    *stream.HANDLERS,
    *mcp_api.HANDLERS,
]
