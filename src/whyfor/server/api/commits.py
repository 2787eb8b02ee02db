"""Projects, their commits, and the story of one commit."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import msgspec
from litestar.params import FromQuery, QueryParameter

from whyfor.model.times import parse_when, to_iso
from whyfor.server.api import shapes
from whyfor.server.api.params import After, Agent, Limit, Name, Seq, Text, When, read
from whyfor.server.page import Kept
from whyfor.service.browse import CommitFilter, projects, story_of, timeline
from whyfor.service.log import commit_story_json, conversation_json, story_summary_json

Identity = Annotated[
    str, QueryParameter(min_length=1, max_length=400, description="A project's identity.")
]


@read("/projects")
def list_projects(settings: Kept) -> shapes.Items[shapes.Project]:
    """Projects; the one that was worked in last comes first."""
    found = [
        shapes.Project(
            **msgspec.structs.asdict(item.project),
            sessions=item.sessions,
            last_at=to_iso(item.last_at),
            here=item.folder is not None,
        )
        for item in projects(settings)
    ]
    return shapes.Items(found)


@read("/commits")
def list_commits(
    settings: Kept,
    project: Identity,
    branch: Annotated[
        str | None, QueryParameter(max_length=400, description="None: where HEAD is; *: all.")
    ] = None,
    author: Text = None,
    agent: Agent = None,
    tag: Text = None,
    story: FromQuery[bool | None] = None,
    since: When = None,
    until: When = None,
    limit: Limit = 50,
    after: After = None,
) -> shapes.Timeline:
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
    )
    found = timeline(settings, project, which, limit=limit, after=after)
    items = [msgspec.convert(commit_story_json(told), shapes.Commit) for told in found.items]
    return shapes.Timeline(found.project.identity, found.branches, items, found.next)


@read("/commits/{sha:str}")
def one(settings: Kept, sha: Name) -> shapes.Story:
    """A commit by its whole hash, and its story: what was asked, answered and said for it, and
    how we know."""
    story, _ = story_of(settings, sha)
    return msgspec.convert(story_summary_json(story), shapes.Story)


@read("/commits/{sha:str}/conversation")
def conversation(settings: Kept, sha: Name, after: Seq = 0, limit: Limit = 100) -> shapes.Lines:
    """Everything in the ranges of a commit's sessions, by time."""
    story, _ = story_of(settings, sha)
    found = conversation_json(settings, story.told)
    items = [msgspec.convert(line, shapes.Line) for line in found[after : after + limit]]
    return shapes.Lines(items, after + limit if after + limit < len(found) else None)


HANDLERS = [list_projects, list_commits, one, conversation]
