"""Linking: keep which sessions commits came from. Under the ingest lock, in the ingest's own
transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from whyfor.model.errors import BadInput
from whyfor.store.journal import (
    CheckpointEntry,
    Journal,
    NoCheckpointEntry,
    NoteEntry,
    OverrideEntry,
)
from whyfor.store.protocol import Store

if TYPE_CHECKING:  # an ingest that finds nothing new never pays for it
    from whyfor.model.progress import Announce
    from whyfor.story.links.assemble import LinkOutcome


def link_waiting(store: Store, journal: Journal, announce: Announce | None = None) -> int:
    """Every project something new was read of; returns how many commits were judged. Under the
    ingest lock."""
    newest = store.signals.newest()
    looked = 0
    for project in projects_to_link(store):
        looked += link_project(store, journal, project, announce).looked
    if newest > store.mark("signals"):
        with store.transaction(journal):
            _drop_lines(store, store.mark("signals"))
            store.set_mark("signals", newest)
    return looked


def _drop_lines(store: Store, after: int) -> None:
    """Have the lines of commits computed anew where it became known only now what a command
    changed. Inside the caller's transaction."""
    named = store.signals.shell_sessions(after)
    if named:
        numbers = store.sessions.numbers(sorted(named))
        told = store.checkpoints.of_sessions(numbers.values())
        store.lines.drop(told)


def projects_to_link(store: Store) -> list[int]:
    """Projects with sessions or git hooks' signals that no run has looked at."""
    grown = store.links.grown()
    found = {project for _, project in grown}
    found |= store.links.hooked_projects(store.mark("signals"))
    return sorted(found | _written_in(store, [session for session, _ in grown]))


def _written_in(store: Store, sessions: list[int]) -> set[int]:
    """Projects these sessions wrote in, wherever they ran."""
    places = {
        **{p.path: number for number, p in store.projects.known() if p.path},
        **store.projects.places(),
    }
    folders = {path.rpartition("/")[0] for path in store.sessions.written_paths(sessions)}
    return {places[at] for folder in folders for at in _upwards(folder) if at in places}


def _upwards(folder: str) -> Iterator[str]:
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]


def link_project(
    store: Store, journal: Journal, project: int, announce: Announce | None = None
) -> LinkOutcome:
    """Judge a project's new commits and keep what was found. A repository that git cannot read
    stops no other: it is asked again next time, and `whyfor log` in it says what is wrong."""
    from whyfor.story.links.assemble import LinkOutcome
    from whyfor.story.links.resolve import compute
    from whyfor.story.repositories import repository_of

    found = repository_of(store, project)
    try:
        outcome = (
            compute(store, found, announce=announce)
            if found
            # nothing to ask git about: the folder is gone, or was never a repository
            else LinkOutcome(project, linked=store.links.lengths(project))
        )
    except BadInput:
        return LinkOutcome(project)
    with store.transaction(journal):
        save_outcome(store, journal, outcome)
    return outcome


def save_outcome(store: Store, journal: Journal, outcome: LinkOutcome) -> None:
    """Inside the caller's transaction; the caller flushes the journal before it commits."""
    for checkpoint in outcome.saved:
        store.checkpoints.save(outcome.project, checkpoint)
        journal.add(CheckpointEntry(checkpoint))
    for commit in outcome.removed:
        store.checkpoints.remove(commit)
        journal.add(NoCheckpointEntry(commit))
    for entry in outcome.said:
        save_said(store, entry)
        journal.add(entry)
    store.lines.save(outcome.lines)
    store.checkpoints.saw(outcome.project, outcome.seen)
    if outcome.tips is not None:
        store.links.save_tips(outcome.project, outcome.tips)
    store.links.save_activity(outcome.acts)
    store.links.save_looked(outcome.project, outcome.linked)
    store.feed.prune()


def save_said(store: Store, entry: OverrideEntry | NoteEntry) -> None:
    """What somebody said of a commit, inside the caller's transaction."""
    if isinstance(entry, OverrideEntry):
        store.checkpoints.override(entry)
    else:
        store.checkpoints.note(entry)
