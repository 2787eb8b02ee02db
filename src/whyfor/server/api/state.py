"""What holds now: search, figures, the status of all open sessions, whether capture works."""

from __future__ import annotations

from typing import Annotated

import msgspec
from litestar.params import FromQuery, QueryParameter

from whyfor import __version__
from whyfor.live.hub import standing_json
from whyfor.model.times import to_iso
from whyfor.server.api import shapes
from whyfor.server.api.params import Agent, Limit, Project, Text, When, read
from whyfor.server.page import Kept, Live
from whyfor.service.browse import capture
from whyfor.service.export.document import agent_title
from whyfor.service.pause import paused_json
from whyfor.service.sessions import SessionFilter, hit_json, search
from whyfor.service.stats import Stats, stats

Words = Annotated[
    str, QueryParameter(min_length=1, max_length=400, description="As in whyfor search.")
]

Fields = Annotated[
    str | None, QueryParameter(max_length=80, description="prompts, answers, thinking, tools")
]


@read("/search")
def find(
    settings: Kept,
    q: Words,
    project: Project = None,
    agent: Agent = None,
    since: When = None,
    until: When = None,
    branch: Text = None,
    fields: Annotated[
        str | None, QueryParameter(max_length=80, description="prompts, answers, thinking, tools")
    ] = None,
    newest: FromQuery[bool] = False,
    limit: Limit = 30,
) -> shapes.Items[shapes.Hit]:
    """Words in everything that was asked, answered, thought and done; best first, or newest."""
    where = SessionFilter(
        identity=project, agent=agent, since=since, until=until, branch=branch, fields=fields
    )
    found = search(settings, q, where, limit=limit, newest=newest)
    return shapes.Items(
        [msgspec.convert({**hit_json(hit), "marks": hit.marks}, shapes.Hit) for hit in found]
    )


@read("/stats")
def figures(
    settings: Kept,
    project: Project = None,
    agent: Agent = None,
    since: When = None,
    until: When = None,
) -> Stats:
    """Sessions, turns and tokens by agent, project, day and model."""
    return stats(settings, SessionFilter(identity=project, agent=agent, since=since, until=until))


@read("/status")
def statuses(hub: Live) -> shapes.Items[shapes.Standing]:
    """What every open session does now."""
    return shapes.Items(
        [msgspec.convert(standing_json(standing), shapes.Standing) for standing in hub.standings]
    )


@read("/health")
def health(settings: Kept, hub: Live) -> shapes.Health:
    """When each agent was last heard of, what is paused, and whether this server is up to date."""
    found = capture(settings)
    agents = [
        shapes.Capture(
            c.agent, agent_title(c.agent), to_iso(c.last_record_at), to_iso(c.last_hook_at)
        )
        for c in found.agents
    ]
    trouble = [hub.error.message] if hub.error else []
    trouble += [hub.trouble] if hub.trouble else []
    return shapes.Health(
        __version__, agents, [paused_json(p) for p in found.paused], trouble, hub.listeners
    )


HANDLERS = [find, figures, statuses, health]
