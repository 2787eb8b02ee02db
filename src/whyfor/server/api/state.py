"""Search, figures, the status of all open sessions, and whether capture works."""

from __future__ import annotations

from typing import Annotated

from litestar.params import FromQuery, QueryParameter

from whyfor import __version__
from whyfor.model.attention import AttentionQuery
from whyfor.model.query import SessionFilter
from whyfor.model.wire.attention import WireFiring, wire_firing
from whyfor.model.wire.base import ItemList
from whyfor.model.wire.reports import WireServerHealth, wire_pause, wire_titled_capture
from whyfor.model.wire.sessions import (
    WireCommitHit,
    WireMarkedHit,
    WireNoteHit,
    wire_commit_hit,
    wire_marked_hit,
    wire_note_hit,
)
from whyfor.model.wire.stats import WireStats, wire_stats
from whyfor.model.wire.status import WireStatus, wire_status
from whyfor.server.api.params import Agent, Limit, Project, Text, When, reading_route
from whyfor.server.page import Kept, Live
from whyfor.service.agents import agent_title
from whyfor.service.attention import attention_history, named_firings
from whyfor.service.search import CommitHit, HitRange, NoteHit, SearchHit, search_results
from whyfor.service.stats import stats
from whyfor.service.status import capture_health

Words = Annotated[
    str, QueryParameter(min_length=1, max_length=400, description="As in whyfor search.")
]


@reading_route("/search")
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
    deep: Annotated[
        bool, QueryParameter(description="Also read the whole of long tool results: slow.")
    ] = False,
    task: Text = None,
    limit: Limit = 30,
) -> ItemList[WireMarkedHit | WireNoteHit | WireCommitHit]:
    """Sessions by words in what was asked, answered, thought and done, and among them notes and
    commits; best first, or newest."""
    where = SessionFilter(*(None, agent, since, until, branch, fields), task=task, identity=project)
    found = search_results(settings, q, where, HitRange(limit, newest=newest, deep=deep))
    return ItemList([_wire(hit) for hit in found.hits])


def _wire(hit: SearchHit) -> WireMarkedHit | WireNoteHit | WireCommitHit:
    if isinstance(hit, NoteHit):
        return wire_note_hit(hit, hit.key)
    return wire_commit_hit(hit) if isinstance(hit, CommitHit) else wire_marked_hit(hit)


@reading_route("/stats")
def figures(
    settings: Kept,
    project: Project = None,
    agent: Agent = None,
    since: When = None,
    until: When = None,
) -> WireStats:
    """Sessions, turns, tokens and their price by agent, project, day and model."""
    where = SessionFilter(identity=project, agent=agent, since=since, until=until)
    return wire_stats(stats(settings, where))


@reading_route("/status")
def statuses(hub: Live) -> ItemList[WireStatus]:
    """What every open session does now."""
    return ItemList([wire_status(standing) for standing in hub.standings])


@reading_route("/attention")
def attention(settings: Kept, hub: Live) -> ItemList[WireFiring]:
    """What a person should know about open sessions now, the most urgent first."""
    return ItemList([wire_firing(one) for one in named_firings(settings, hub.firings)])


@reading_route("/attention/history")
def past_attention(
    settings: Kept,
    since: When = None,
    agent: Agent = None,
    project: Project = None,
    limit: Limit = 50,
) -> ItemList[WireFiring]:
    """What was told before, newest first."""
    query = AttentionQuery(agent=agent, project=project, limit=limit)
    found = attention_history(settings, query, since=since or "")
    return ItemList([wire_firing(one) for one in found])


@reading_route("/health")
def health(settings: Kept, hub: Live) -> WireServerHealth:
    """When each agent was last heard of, what is paused, and whether this server is up to date."""
    found = capture_health(settings)
    agents = [wire_titled_capture(each, agent_title(each.agent)) for each in found.agents]
    trouble = [hub.error.message] if hub.error else []
    trouble += [hub.trouble] if hub.trouble else []
    paused = [wire_pause(each) for each in found.paused]
    return WireServerHealth(__version__, agents, paused, trouble, hub.listeners)


HANDLERS = [find, figures, statuses, attention, past_attention, health]
