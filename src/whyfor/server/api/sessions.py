"""Sessions: the list, one of them, its events, its turns."""

from __future__ import annotations

from litestar.params import FromQuery

from whyfor.model.query import SessionFilter
from whyfor.model.wire.base import ItemPage, SeqPage, copy_fields
from whyfor.model.wire.sessions import (
    WireEvent,
    WireSession,
    WireSummary,
    WireTurn,
    wire_event,
    wire_session,
    wire_turn,
)
from whyfor.model.wire.status import WireSessionDetail, wire_status
from whyfor.server.api.params import (
    After,
    Agent,
    Limit,
    Name,
    Person,
    Project,
    Seq,
    Text,
    When,
    reading_route,
)
from whyfor.server.page import Kept, Live
from whyfor.service.sessions import event_page, one_session, session_page, summary_of, turn_page

_ONE = "/sessions/{agent:str}/{session_id:str}"


@reading_route("/sessions")
def list_sessions(
    settings: Kept,
    project: Project = None,
    agent: Agent = None,
    since: When = None,
    until: When = None,
    branch: Text = None,
    task: Text = None,
    who: Person = None,
    subagents: FromQuery[bool] = False,
    limit: Limit = 50,
    after: After = None,
) -> ItemPage[WireSession]:
    """Sessions, newest first."""
    where = SessionFilter(
        identity=project,
        agent=agent,
        since=since,
        until=until,
        branch=branch,
        task=task,
        who=who,
    )
    found = session_page(settings, where, limit=limit, after=after, subagents=subagents)
    return ItemPage([wire_session(session) for session in found.items], found.next)


@reading_route(_ONE)
def one(settings: Kept, hub: Live, agent: Name, session_id: Name) -> WireSessionDetail:
    """A session, its subagents, and what it does now; the id may be abbreviated."""
    session, children = one_session(settings, agent, session_id)
    standing = next((each for each in hub.standings if each.session.id == session.id), None)
    return WireSessionDetail(
        wire_session(session),
        [wire_session(child) for child in children],
        wire_status(standing) if standing else None,
    )


@reading_route(_ONE + "/events")
def events(
    settings: Kept, agent: Name, session_id: Name, after: Seq = 0, limit: Limit = 100
) -> SeqPage[WireEvent]:
    """Events after a seq, in order; a page may be shorter than `limit` if they are big."""
    found = event_page(settings, agent, session_id, after=after, limit=limit)
    items = [wire_event(event) for event in found.items]
    return SeqPage(items, items[-1].seq if found.more else None)


@reading_route(_ONE + "/turns")
def turns(
    settings: Kept, agent: Name, session_id: Name, after: Seq = 0, limit: Limit = 50
) -> SeqPage[WireTurn]:
    """Turns after one, in order: prompt, closing words, tools, files, errors."""
    found, more = turn_page(settings, agent, session_id, after=after, limit=limit)
    return SeqPage([wire_turn(turn) for turn in found], found[-1].turn if more else None)


@reading_route(_ONE + "/summary")
def summary(settings: Kept, hub: Live, agent: Name, session_id: Name) -> WireSummary:
    """What it does, what it did, and what it was last asked, in three lines; no model is asked."""
    found = summary_of(settings, agent, session_id, hub.standings)
    return copy_fields(WireSummary, found)


HANDLERS = [list_sessions, one, events, turns, summary]
