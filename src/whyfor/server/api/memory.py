"""Memory: notes, one of them, and what the next session in a project is told."""

from __future__ import annotations

from typing import Annotated

from litestar.params import QueryParameter

from whyfor.model.errors import NotFound
from whyfor.model.wire.base import ItemPage
from whyfor.model.wire.memory import (
    WireMemoryBlock,
    WireNote,
    WireNoteDetail,
    wire_memory_block,
    wire_memory_note,
    wire_note_detail,
)
from whyfor.server.api.commits import Identity
from whyfor.server.api.params import After, Agent, Limit, Name, Project, Text, When, reading_route
from whyfor.server.page import Kept
from whyfor.service.memory import TOKENS, note_detail
from whyfor.service.memory_page import NOTE_STATES, NOTE_TYPES, MemoryRequest, note_list
from whyfor.service.memory_told import told_block

Type = Annotated[str | None, QueryParameter(max_length=40, description=f"{', '.join(NOTE_TYPES)}.")]
State = Annotated[
    str | None,
    QueryParameter(max_length=40, name="state", description=f"{', '.join(NOTE_STATES)}."),
]
Tokens = Annotated[int, QueryParameter(ge=100, le=2_250, description="How long, about.")]


@reading_route("/notes")
def list_notes(
    settings: Kept,
    project: Project = None,
    type: Type = None,
    state_name: State = None,
    file: Text = None,
    branch: Text = None,
    agent: Agent = None,
    since: When = None,
    q: Text = None,
    limit: Limit = 50,
    after: After = None,
) -> ItemPage[WireNote]:
    """Notes, newest first."""
    asked = MemoryRequest(
        project=project or "",
        q=q or "",
        type=type or "",
        state=state_name or "",
        file=file or "",
        branch=branch or "",
        agent=agent or "",
        since=since or "",
        after=after or "",
    )
    found = note_list(settings, asked, limit)
    return ItemPage([wire_memory_note(row) for row in found.rows], found.next)


@reading_route("/notes/{note_id:str}")
def one(settings: Kept, note_id: Name) -> WireNoteDetail:
    """A note, the summary of its session, and what was said about it; the id may be
    abbreviated."""
    found = note_detail(settings, note_id)
    return wire_note_detail(found.note, found.summary, found.said, found.told)


@reading_route("/memory")
def block(
    settings: Kept, project: Identity, branch: Text = None, tokens: Tokens = TOKENS
) -> WireMemoryBlock:
    """What the next session in a project would be told, and where each line comes from."""
    found = told_block(settings, project, branch or "", tokens)
    if found.block is None:
        raise NotFound("the repository is not on this machine any more")
    return wire_memory_block(found.block)


HANDLERS = [list_notes, one, block]
