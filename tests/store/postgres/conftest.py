"""Two projects of one team, each with words of its own."""

from __future__ import annotations

from contextlib import closing

import pytest

from tests.store.contract.build import SHOP, Build, annotation, checkpoint, part
from tests.store.team import Team, TeamProject, postgres_18
from whyfor.model.checkpoints import Note
from whyfor.model.events import Touch, Usage
from whyfor.model.memory import (
    CommandCount,
    SearchCard,
    SessionMemory,
    SessionSummary,
    WaitingSession,
)
from whyfor.model.signals import Signal
from whyfor.store.journal import NoteEntry, OverrideEntry
from whyfor.store.postgres.store import PostgresStore

__all__ = ["postgres_18"]


def fill(project: TeamProject, word: str, person: int | None = None) -> None:
    """Put a word into everything that a project's store keeps."""
    with closing(project.writer(person)) as store:
        _fill(store, word)


def _fill(store: PostgresStore, word: str) -> None:
    build = Build(store)
    number = build.project(SHOP, f"/shop/{word}")
    call = build.event("tool.call", word, name=word, data={"input": {"command": word}})
    session = build.session(
        word,
        build.event("user.prompt", f"mend the gate {word}"),
        build.event("assistant.message", f"the gate is mended {word}"),
        call,
        facts={"cwd": f"/shop/{word}", "branch": word, "title": word, "title_rank": 90},
        more=[
            Touch(call.key, f"/shop/{word}", "write"),
            Usage(next(build.keys), call.created_at, word, input=1),
        ],
    )
    source = build.source(f"/{word}.jsonl", word)
    build.segment(source, 0, 10, word)
    build.checkpoint(
        number, checkpoint(word, part(word, 1, 2), subject=word, annotation=annotation(word))
    )
    build.signals(Signal(1, "claude", word, session_agent="claude", session_id=word))
    summary = SessionSummary(investigated=(word,))
    card = SearchCard(word, word, word, word)
    command = CommandCount(word, word, 1, 1, 0, None)
    waiting = WaitingSession(session, "claude", word, 1, 3)
    with store.transaction():
        store.checkpoints.note(NoteEntry(word, word, 1, Note(title=word)))
        store.checkpoints.override(OverrideEntry(word, "claude", word, "link", 1))
        store.memory.save(waiting, SessionMemory(summary, (), (command,), card), 1)


class TwoProjects:
    def __init__(self, team: Team) -> None:
        self.team = team
        self.here = team.new_project()
        self.there = team.new_project()
        fill(self.here, "herring")
        fill(self.there, "walrus")


@pytest.fixture(scope="module")
def projects(postgres_18: Team) -> TwoProjects:
    return TwoProjects(postgres_18)
