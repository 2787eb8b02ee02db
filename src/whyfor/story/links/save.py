"""Linking: keep which sessions commits came from. Under the ingest lock, in the ingest's own
transactions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import apsw
import msgspec

from whyfor.model.errors import BadInput
from whyfor.store.journal import CheckpointEntry, Journal, NoCheckpointEntry, OverrideEntry
from whyfor.store.sqlite.changes import ChangeLog
from whyfor.store.sqlite.checkpoints import Checkpoints
from whyfor.store.sqlite.commit import commit_with_journal
from whyfor.store.sqlite.connection import fetch
from whyfor.store.sqlite.read import StoreRows

if TYPE_CHECKING:  # an ingest that finds nothing new never pays for it
    from whyfor.model.progress import Announce
    from whyfor.story.links.assemble import LinkOutcome


def link_waiting(db: apsw.Connection, journal: Journal, announce: Announce | None = None) -> int:
    """Every project something new was read of; returns how many commits were judged. Under the
    ingest lock."""
    newest = fetch(db, "SELECT coalesce(max(id), 0) FROM signals")[0][0]
    looked = sum(
        link_project(db, journal, project, announce).looked for project in projects_to_link(db)
    )
    store = Checkpoints(db)
    if newest > store.mark("signals"):
        with journaled_transaction(db, journal):
            store.set_mark("signals", newest)
    return looked


def projects_to_link(db: apsw.Connection) -> list[int]:
    """Projects with sessions or git hooks' signals that no run has looked at."""
    grown = fetch(
        db,
        "SELECT s.id, s.project_id FROM sessions s LEFT JOIN linked l ON l.project_id=s.project_id "
        "AND "
        "l.session_id=s.id WHERE s.project_id IS NOT NULL AND s.last_seq > coalesce(l.last_seq, "
        "-1)",
    )
    hooked = fetch(
        db,
        "SELECT p.project_id FROM signals g JOIN places p ON p.cwd=g.repository WHERE g.id > ? "
        "AND g.agent='git'",
        (Checkpoints(db).mark("signals"),),
    )
    found = {project for _, project in grown} | {row[0] for row in hooked}
    return sorted(found | _written_in(db, [session for session, _ in grown]))


def _written_in(db: apsw.Connection, sessions: list[int]) -> set[int]:
    """Projects these sessions wrote in, wherever they ran."""
    places = {
        **{p.path: number for number, p in StoreRows(db).projects() if p.path},
        **StoreRows(db).places(),
    }
    rows = fetch(
        db,
        "SELECT DISTINCT path FROM touches WHERE action='write' AND session_id IN (SELECT value "
        "FROM json_each(?))",
        (msgspec.json.encode(sessions).decode(),),
    )
    folders = {path.rpartition("/")[0] for (path,) in rows}
    return {places[at] for folder in folders for at in _upwards(folder) if at in places}


def _upwards(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def link_project(
    db: apsw.Connection, journal: Journal, project: int, announce: Announce | None = None
) -> LinkOutcome:
    """Judge a project's new commits and keep what was found. A repository that git cannot read
    stops no other: it is asked again next time, and `whyfor log` in it says what is wrong."""
    from whyfor.story.links.assemble import LinkOutcome
    from whyfor.story.links.resolve import compute
    from whyfor.story.repositories import repository_of

    found = repository_of(db, project)
    try:
        outcome = (
            compute(db, found, announce=announce)
            if found
            else LinkOutcome(project, linked=_unlinkable(db, project))
        )
    except BadInput:
        return LinkOutcome(project)
    with journaled_transaction(db, journal):
        save_outcome(db, journal, outcome)
    return outcome


def _unlinkable(db: apsw.Connection, project: int) -> list[tuple[int, int]]:
    """Nothing to ask git about: the folder is gone, or was never a repository."""
    return [
        (row[0], row[1])
        for row in fetch(db, "SELECT id, last_seq FROM sessions WHERE project_id=?", (project,))
    ]


def save_outcome(db: apsw.Connection, journal: Journal, outcome: LinkOutcome) -> None:
    """Inside the caller's transaction; the caller flushes the journal before it commits."""
    store = Checkpoints(db)
    for checkpoint in outcome.saved:
        store.save(outcome.project, checkpoint)
        journal.add(CheckpointEntry(checkpoint))
    for commit in outcome.removed:
        store.remove(commit)
        journal.add(NoCheckpointEntry(commit))
    for entry in outcome.said:
        store.override(entry) if isinstance(entry, OverrideEntry) else store.note(entry)
        journal.add(entry)
    store.saw(outcome.project, outcome.seen)
    if outcome.tips is not None:
        store.set_tips(outcome.project, outcome.tips)
    db.executemany("INSERT OR REPLACE INTO acts VALUES(?,?,?)", outcome.acts)
    db.executemany(
        "INSERT OR REPLACE INTO linked VALUES(?,?,?)",
        [(outcome.project, *row) for row in outcome.linked],
    )
    ChangeLog(db).prune()


@contextmanager
def journaled_transaction(db: apsw.Connection, journal: Journal) -> Iterator[None]:
    """One transaction: in the journal before the database says so."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        commit_with_journal(db, journal)
    except BaseException:
        journal.forget_pending()
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
