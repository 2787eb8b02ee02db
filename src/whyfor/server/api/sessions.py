"""Sessions: the list, one of them, its events, its turns."""

from __future__ import annotations

import msgspec
from litestar.params import FromQuery

from whyfor.live.hub import standing_json
from whyfor.server.api import shapes
from whyfor.server.api.params import After, Agent, Limit, Name, Project, Seq, Text, When, read
from whyfor.server.page import Kept, Live
from whyfor.service.browse import event_page, one_session, session_page, summary_of, turn_page
from whyfor.service.sessions import SessionFilter, event_json, session_json, turn_json

_ONE = "/sessions/{agent:str}/{session_id:str}"


@read("/sessions")
def list_sessions(
    settings: Kept,
    project: Project = None,
    agent: Agent = None,
    since: When = None,
    until: When = None,
    branch: Text = None,
    subagents: FromQuery[bool] = False,
    limit: Limit = 50,
    after: After = None,
) -> shapes.Page[shapes.Session]:
    """Sessions, newest first."""
    where = SessionFilter(identity=project, agent=agent, since=since, until=until, branch=branch)
    found = session_page(settings, where, limit=limit, after=after, subagents=subagents)
    items = [msgspec.convert(session_json(session), shapes.Session) for session in found.items]
    return shapes.Page(items, found.next)


@read(_ONE)
def one(settings: Kept, hub: Live, agent: Name, session_id: Name) -> shapes.SessionDetail:
    """A session, its subagents, and what it does now; the id may be abbreviated."""
    session, children = one_session(settings, agent, session_id)
    standing = next((each for each in hub.standings if each.session.id == session.id), None)
    return shapes.SessionDetail(
        msgspec.convert(session_json(session), shapes.Session),
        [msgspec.convert(session_json(child), shapes.Session) for child in children],
        msgspec.convert(standing_json(standing), shapes.Standing) if standing else None,
    )


@read(_ONE + "/events")
def events(
    settings: Kept, agent: Name, session_id: Name, after: Seq = 0, limit: Limit = 100
) -> shapes.Events:
    """Events after a seq, in order; a page may be shorter than `limit` if they are big."""
    found = event_page(settings, agent, session_id, after=after, limit=limit)
    items = [msgspec.convert(event_json(event), shapes.Event) for event in found.items]
    return shapes.Events(items, items[-1].seq if found.more else None)


@read(_ONE + "/turns")
def turns(
    settings: Kept, agent: Name, session_id: Name, after: Seq = 0, limit: Limit = 50
) -> shapes.Turns:
    """Turns after one, in order: prompt, closing words, tools, files, errors."""
    found, more = turn_page(settings, agent, session_id, after=after, limit=limit)
    return shapes.Turns([turn_json(turn) for turn in found], found[-1].turn if more else None)


@read(_ONE + "/summary")
def summary(settings: Kept, hub: Live, agent: Name, session_id: Name) -> shapes.Summary:
    """What it does, what it did, and what it was last asked, in three lines; no model is asked."""
    found = summary_of(settings, agent, session_id, hub.standings)
    return shapes.Summary(found.current, found.recent, found.prompt)


HANDLERS = [list_sessions, one, events, turns, summary]
