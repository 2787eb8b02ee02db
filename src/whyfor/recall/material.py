"""Collect what the next session in a project could be told, from the store and from git."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from whyfor.git.history import head_commit
from whyfor.git.place import GitPlace
from whyfor.git.run import ask
from whyfor.git.worktree import find_changes
from whyfor.model.memory import (
    BlockMaterial,
    MemoryFilter,
    PastSession,
    SessionSummary,
    StoredObservation,
    TouchedFile,
)
from whyfor.model.query import Filters
from whyfor.model.sessions import Session
from whyfor.recall.note_standing import judge_notes, supersede_notes
from whyfor.recall.open_threads import drop_closed_threads
from whyfor.recall.project_paths import below_top
from whyfor.store.protocol import SharedStore
from whyfor.story.repositories import Repository

_SESSIONS = 12
_SHORT = 8  # characters of a session's id, at least
_NOTES = 40
_TOLD_TYPES = ("rule", "decision", "discovery", "gotcha", "bugfix", "correction")
_FILES = 400
# Folders and files that are made, not written; and copies of the world that tests need.
_MADE = re.compile(
    r"(?:^|/)(?:\.(?:git|venv|cache|next|nuxt|tox|idea)|node_modules|dist|build|out|target|vendor|coverage|__pycache__|venv"
    r"|fixtures?|testdata|__snapshots__|snapshots|generated)/"
    r"|(?:\.lock|-lock\.json|-lock\.yaml|\.min\.\w+|\.map|\.snap|\.log)$",
    re.I,
)


def last_sessions(
    store: SharedStore, repository: Repository, branch: str | None = None
) -> list[Session]:
    """Return the last sessions of a repository, or of one of its branches, newest first."""
    within = Filters(projects=(repository.id,), branch=branch)
    return store.sessions.matching(within, limit=_SESSIONS, subagents=False)


def collect(
    store: SharedStore,
    repository: Repository,
    branch: str | None,
    sessions: Sequence[Session] | None = None,
) -> BlockMaterial:
    """Return what is known of a repository: these sessions, or the last ones; notes, commands and
    files, newest first."""
    projects = (repository.id,)
    tracked = _tracked(repository.folder)
    sessions = last_sessions(store, repository) if sessions is None else sessions
    notes = _Notes(store, Filters(projects=projects), repository)
    files = store.memory.files(projects, _FILES)
    wrong = notes.refuted()
    findings = tuple(notes.of("decision", "discovery", "gotcha"))
    commands = store.memory.commands(projects)
    past = list(past_sessions(store, sessions, wrong))
    return BlockMaterial(
        project=repository.project.name,
        branch=branch,
        rules=tuple(notes.standing()),
        sessions=tuple(drop_closed_threads(past, commands)),
        findings=findings,
        failures=tuple(notes.of("bugfix", "correction")),
        commands=tuple(commands),
        files=tuple(worth_naming(files, repository.folders, tracked)),
        changed=tuple(changed_files(repository.folder, findings)),
    )


class _Notes:
    """Notes of one project that still hold: each is told once, the newest of those alike."""

    def __init__(self, store: SharedStore, sessions: Filters, repository: Repository) -> None:
        self.store = store
        self.sessions = sessions
        self.found = self._newest()
        self.living = self._living(repository)

    def standing(self) -> Iterator[StoredObservation]:
        """Pinned notes of any type, then rules."""
        pinned = MemoryFilter(self.sessions, pinned=True)
        yield from self.store.memory.observations(pinned, _NOTES)
        yield from self.of("rule")

    def refuted(self) -> set[str]:
        """The words of notes that are wrong: a summary does not repeat them."""
        wanted = MemoryFilter(self.sessions, states=("refuted",))
        found: set[str] = set()
        contradicted = [note for note in self.found if note.observation.state == "refuted"]
        for note in (*self.store.memory.observations(wanted, _NOTES * 3), *contradicted):
            found.update(quote.text for quote in note.observation.evidence)
        return found

    def of(self, *types: str) -> Iterator[StoredObservation]:
        """Notes of these types that hold and are not pinned."""
        said: set[str] = set()
        for note in self.living:
            words = note.observation.title.lower()
            if note.observation.type in types and words not in said:
                said.add(words)
                yield note

    def _newest(self) -> list[StoredObservation]:
        wanted = MemoryFilter(self.sessions, _TOLD_TYPES, ("verified", "stated", "hypothesis"))
        return supersede_notes(self.store.memory.observations(wanted, _NOTES * 10))

    def _living(self, repository: Repository) -> list[StoredObservation]:
        """The newest notes that nothing speaks against."""
        judged = judge_notes(self.found, repository.folder, repository.folders)
        return [note for note in judged if not note.standing.gone and not note.observation.pinned]


def past_sessions(
    store: SharedStore, sessions: Sequence[Session], wrong: set[str]
) -> Iterator[PastSession]:
    """Yield sessions in one line each, without the words in `wrong`."""
    names = [(session.agent, session.session_id) for session in sessions]
    shorts = store.sessions.short_ids(names, _SHORT)
    made = _commits(store, sessions)
    for session in sessions:
        summary = store.memory.summary(session.id) or SessionSummary()
        request = summary.request[0].text if summary.request else session.title or ""
        completed = [quote.text for quote in summary.completed if quote.text not in wrong]
        yield PastSession(
            name=session.name,
            at=session.ended_at,
            request=request,
            outcome=completed[-1] if completed else made.get(session.name, ""),
            next_steps=tuple(quote.text for quote in summary.next_steps if quote.text not in wrong),
            short=shorts.get(session.name, session.name),
            branch=session.branch,
        )


def _commits(store: SharedStore, sessions: Sequence[Session]) -> dict[str, str]:
    """Return the last commit that came of each session, by its name."""
    linked = store.checkpoints.of_sessions([session.id for session in sessions]).values()
    made: dict[str, str] = {}
    for found in sorted(linked, key=lambda each: each.committed_at):
        if found.superseded_by is None:
            words = f"commit {found.commit[:8]} {found.subject}"
            made.update(dict.fromkeys((part.name for part in found.parts), words))
    return made


def worth_naming(
    files: Iterable[TouchedFile], folders: Sequence[str], tracked: set[str]
) -> Iterator[str]:
    """The files worth naming, below the project's top."""
    seen: set[str] = set()
    for file in files:
        path = below_top(file.path, folders)
        if not path or path in seen or _MADE.search(path):
            continue
        seen.add(path)
        if not tracked or path in tracked:
            yield path


def _tracked(folder: GitPlace) -> set[str]:
    """Return the files of the last commit, or those that a first one could have; empty if git
    cannot be asked."""
    listed = ask(folder, "ls-tree", "-r", "--name-only", "--full-tree", "-z", "HEAD")
    if not listed and isinstance(folder, Path):
        listed = ask(folder, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    return set(filter(None, (listed or "").split("\0")))


def changed_files(folder: GitPlace, notes: Iterable[StoredObservation]) -> frozenset[str]:
    """Return the files of these notes that differ from the last commit."""
    if not isinstance(folder, Path):
        return frozenset()  # a bare repository
    paths: set[str] = set()
    for note in notes:
        paths.update(note.observation.files_written, note.observation.files_read)
    return find_changes(folder, head_commit(folder), paths).changed
