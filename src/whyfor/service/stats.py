"""stats: count sessions, turns and tokens by agent, project, day and model."""

from __future__ import annotations

import msgspec

from whyfor.config import Settings
from whyfor.model.query import SessionFilter
from whyfor.model.sessions import Tokens
from whyfor.model.stats import StatsRow
from whyfor.store.open import reading
from whyfor.story.session_lookup import parse_filters
from whyfor.story.tokens import total


class Stats(msgspec.Struct, frozen=True):
    sessions: int
    subagents: int
    turns: int
    tokens: Tokens
    by_agent: list[StatsRow]
    by_project: list[StatsRow]
    by_day: list[StatsRow]
    by_model: list[StatsRow]


def stats(settings: Settings, where: SessionFilter) -> Stats:
    """Return the figures of the sessions that fit, in all and by group."""
    with reading(settings) as library:
        filters = parse_filters(library, where)
        grouped = library.stats.grouped
        agents = _rows(grouped("agent", filters))
        projects = _rows(grouped("project", filters))
        days = _rows(grouped("day", filters))
        models = _rows(grouped("model", filters))
        counted = library.stats.counted(filters)
    return Stats(
        sessions=sum(row.sessions for row in counted),
        subagents=sum(row.subagents for row in counted),
        turns=sum(row.turns for row in counted),
        tokens=total([row.tokens for row in agents]),
        by_agent=agents,
        by_project=projects,
        by_day=sorted(days, key=lambda row: row.name),
        by_model=models,
    )


def _rows(found: list[StatsRow]) -> list[StatsRow]:
    """Return the groups, most output first."""
    return sorted(found, key=lambda row: (-(row.tokens.output or 0), -row.sessions, row.name))
