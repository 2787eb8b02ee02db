"""Two projects of one team, each with words of its own."""

from __future__ import annotations

import hashlib
from contextlib import closing

import pytest

from tests.store.contract.build import SHOP, Build, annotation, checkpoint, part
from tests.store.team import Team, TeamProject, postgres_18
from whyfor.model.checkpoints import ChangedFile, Note, WrittenLines
from whyfor.model.events import Touch, Usage
from whyfor.model.memory import (
    CommandCount,
    NoteStatement,
    Observation,
    Quote,
    SearchCard,
    SessionMemory,
    SessionSummary,
    WaitingSession,
)
from whyfor.model.signals import Signal
from whyfor.model.tasks import TaskAct, TaskIssue, TaskRun, TaskStatement
from whyfor.store.journal import NoteEntry, OverrideEntry
from whyfor.store.postgres.store import PostgresStore

__all__ = ["postgres_18"]


def sha_of(word: str) -> str:
    """The commit that `fill` makes of a word."""
    return hashlib.sha1(word.encode()).hexdigest()


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
        number,
        checkpoint(
            sha_of(word),
            part(word, 1, 2),
            subject=word,
            annotation=annotation(word),
            files=[ChangedFile("a.py", 1, 0, (WrittenLines(f"claude:{word}", 1, 1, 1),))],
        ),
    )
    build.signals(Signal(1, "claude", word, session_agent="claude", session_id=word))
    act = TaskAct("name", 1, 1, 1, "branch", "high")
    quote = Quote(1, 0, len(word), word)
    summary = SessionSummary((quote,), (word,), (quote,), (quote,), (quote,))
    observation = Observation(
        key=word,
        type="decision",
        state="stated",
        title=word,
        turn=1,
        at=1,
        facts=(word,),
        narrative=word,
        files_read=(word,),
        files_written=(f"/shop/{word}",),
        concepts=(word,),
        commit=sha_of(word),
        anchors=(word,),
        evidence=(quote,),
    )
    card = SearchCard(word, word, word, word)
    command = CommandCount(word, word, 1, 1, 0, None)
    waiting = WaitingSession(session, "claude", word, 1, 3)
    with store.transaction():
        store.checkpoints.note(NoteEntry(sha_of(word), word, 1, Note(title=word)))
        store.checkpoints.override(OverrideEntry(sha_of(word), "claude", word, "link", 1))
        store.memory.save(waiting, SessionMemory(summary, (observation,), (command,), card), 1)
        store.tasks.save(waiting, [TaskRun(word, 1, 2, 1, 1, (act,))], 1)
        store.tasks.state(TaskStatement(key=word, at=1, action="start"))
        store.tasks.save_issue(TaskIssue(SHOP.identity, word, "beads", word))
        store.uploads.bury("session", [word], 1)
        store.memory.state(
            NoteStatement(key=f"own {word}", at=1, by="person", action="write", text=word)
        )
        store.uploads.log("story", [word], 1)
        _fill_the_rest(store, word, source.id, session)


def _fill_the_rest(store: PostgresStore, word: str, source: int, session: int) -> None:
    """What no facet of a team's store writes here, but its tables could hold."""
    said = word.encode()
    rows: dict[str, tuple[object, ...]] = {
        "aliases(path, identity, at)": (word, word, 1),
        "hiding(source_id, body)": (source, f'{{"{word}": 1}}'),
        "leaf_titles(key, title)": (1, word),
        "linked(project_id, session_id, last_seq)": (1, session, 1),
        "tips(project_id, shas)": (1, word),
        "commits(sha, project_id, authored_at, committed_at, reason)": (
            sha_of(word),
            1,
            1,
            1,
            word,
        ),
        "unknown_types(agent, name, source_id, records)": ("claude", word, source, 1),
        "unparsed(source_id, generation, start, size, reason)": (source, 0, 90, 1, word),
        "acts(session_id, last_seq, body)": (session, 1, said),
        "vectors(session_id, model, stale, turns, marks, codes)": (session, word, 0, 1, said, said),
        "vector_bits(session_id, model, bits)": (session, word, said),
        "long_texts(id, source_id, generation, at, size, lines)": (-session, source, 0, 1, 1, 1),
    }
    for table, values in rows.items():
        marks = ", ".join(["%s"] * len(values))
        store.db.run(f"INSERT INTO {table} VALUES({marks})", values)


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
