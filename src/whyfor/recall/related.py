"""What belongs to the answers of a search besides passages: notes and commits with its words."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import msgspec

from whyfor.model.checkpoints import LinkedCommit
from whyfor.model.memory import StoredObservation
from whyfor.model.query import Filters, Query
from whyfor.recall.query import content
from whyfor.recall.snippets import WordFinder, has_all_words, has_words, word_finders
from whyfor.store.protocol import SharedStore
from whyfor.story.tasks.board import task_commits

_SEVERAL = 3  # words of which one may be missing


def fitting_notes(
    notes: Iterable[StoredObservation], finders: list[WordFinder], *, every: bool = False
) -> list[StoredObservation]:
    """Return the notes that have all the words, then, if there are three or more and not `every`
    one is wanted, those with most of them."""
    if not finders:
        return []
    enough = len(finders)
    if enough >= _SEVERAL and not every:
        enough = enough * 2 // 3
    ranked = [(has_words(_note_words(note), finders), note) for note in notes]
    ranked = [(score, note) for score, note in ranked if score >= enough]
    ranked.sort(key=lambda each: -each[0])
    return [note for _, note in ranked]


def fitting_commits(
    store: SharedStore, query: Query, filters: Filters, limit: int
) -> list[LinkedCommit]:
    """Return the commits with a story that have all the words in what is known of them, newest
    first; of at most `limit` that may."""
    wanted = content(query)
    if wanted.tools or wanted.files or not wanted.clauses:
        return []
    stem = cache(store.search.stem)
    single = tuple(clause for clause in wanted.clauses if len(clause) == 1)
    finders = word_finders(msgspec.structs.replace(wanted, clauses=single), stem)
    words = [finder.literal for finder in finders if finder.literal.isascii()]
    found = store.search.commits(words, filters, limit)
    if filters.task:  # a session may have worked on several
        own = task_commits(store, filters.task)
        found = [commit for commit in found if commit.sha in own]
    return [
        commit for commit in found if has_all_words("\n".join(commit_texts(commit)), wanted, stem)
    ]


def commit_texts(commit: LinkedCommit) -> list[str]:
    """Return what is known of a commit in words, its subject first."""
    note = commit.note
    if note is None:
        return [commit.subject]
    return [commit.subject, note.intent, note.title, *note.alternatives, note.summary]


def _note_words(stored: StoredObservation) -> str:
    note = stored.observation
    files = (path.rsplit("/", 1)[-1] for path in note.files_written)
    return "\n".join((note.title, note.narrative, *note.facts, *files))
