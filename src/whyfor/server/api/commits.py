"""Projects, their commits, and the story of one commit."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from litestar.params import FromQuery, QueryParameter

from whyfor.model.stories import CommitFilter
from whyfor.model.times import parse_when
from whyfor.model.wire.base import ItemList, SeqPage
from whyfor.model.wire.commits import WireLine, WireStory, WireTimeline, wire_commit, wire_story
from whyfor.model.wire.reports import WireListedProject, wire_listed_project
from whyfor.server.api.params import After, Agent, Limit, Name, Seq, Text, When, reading_route
from whyfor.server.page import Kept
from whyfor.service.commits import find_story, page_of_commits
from whyfor.service.projects import project_summaries
from whyfor.service.show import conversation_lines

Identity = Annotated[
    str, QueryParameter(min_length=1, max_length=400, description="A project's identity.")
]


@reading_route("/projects")
def list_projects(settings: Kept) -> ItemList[WireListedProject]:
    """Projects; the one that was worked in last comes first."""
    found = [
        wire_listed_project(item.project, item.sessions, item.last_at, here=item.folder is not None)
        for item in project_summaries(settings)
    ]
    return ItemList(found)


@reading_route("/commits")
def list_commits(
    settings: Kept,
    project: Identity,
    branch: Annotated[
        str | None, QueryParameter(max_length=400, description="None: where HEAD is; *: all.")
    ] = None,
    author: Text = None,
    agent: Agent = None,
    tag: Text = None,
    task: Text = None,
    story: FromQuery[bool | None] = None,
    since: When = None,
    until: When = None,
    limit: Limit = 50,
    after: After = None,
) -> WireTimeline:
    """A project's commits with their stories, newest first."""
    now = datetime.now().astimezone()
    which = CommitFilter(
        branch=branch,
        author=author,
        agent=agent,
        tag=tag,
        story=story,
        since=parse_when(since, now) if since else None,
        until=parse_when(until, now, end=True) if until else None,
        task=task,
    )
    found = page_of_commits(settings, project, which, limit=limit, after=after)
    items = [wire_commit(told) for told in found.items]
    return WireTimeline(found.project.identity, found.branches, items, found.next)


@reading_route("/commits/{sha:str}")
def one(settings: Kept, sha: Name) -> WireStory:
    """A commit by its whole hash, and its story: what was asked, answered and said for it, and
    how we know."""
    story, _ = find_story(settings, sha)
    return wire_story(story)


@reading_route("/commits/{sha:str}/conversation")
def conversation(
    settings: Kept, sha: Name, after: Seq = 0, limit: Limit = 100
) -> SeqPage[WireLine]:
    """Everything in the ranges of a commit's sessions, by time."""
    story, _ = find_story(settings, sha)
    found = conversation_lines(settings, story.told)
    end = after + limit
    return SeqPage(found[after:end], end if end < len(found) else None)


HANDLERS = [list_projects, list_commits, one, conversation]
