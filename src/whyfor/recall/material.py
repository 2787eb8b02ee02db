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
from whyfor.store.protocol import Store
from whyfor.story.repositories import Repository

_SESSIONS = 12
_NOTES = 40
_FILES = 400
# Folders and files that are made, not written; and copies of the world that tests need.
_MADE = re.compile(
    r"(?:^|/)(?:\.(?:git|venv|cache|next|nuxt|tox|idea)|node_modules|dist|build|out|target|vendor|coverage|__pycache__|venv"
    r"|fixtures?|testdata|__snapshots__|snapshots|generated)/"
    r"|(?:\.lock|-lock\.json|-lock\.yaml|\.min\.\w+|\.map|\.snap|\.log)$",
    re.I,
)


def collect(store: Store, repository: Repository, branch: str | None) -> BlockMaterial:
    """Return what is known of a repository's sessions, newest first."""
    projects = (repository.id,)
    tracked = _tracked(repository.folder)
    sessions = store.sessions.matching(Filters(projects=projects), limit=_SESSIONS, subagents=False)
    notes = _Notes(store, Filters(projects=projects), repository, tracked)
    files = store.memory.files(projects, _FILES)
    findings = tuple(notes.of("decision", "discovery", "gotcha"))
    return BlockMaterial(
        project=repository.project.name,
        branch=branch,
        rules=tuple(notes.of("rule")),
        sessions=tuple(_past(store, session) for session in sessions),
        findings=findings,
        failures=tuple(notes.of("bugfix", "correction")),
        commands=tuple(store.memory.commands(projects)),
        files=tuple(_worth(files, repository.folders, tracked)),
        changed=tuple(_changed(repository.folder, findings)),
    )


class _Notes:
    """Notes of one project that still hold: each is told once, the newest of those alike."""

    def __init__(
        self, store: Store, sessions: Filters, repository: Repository, tracked: set[str]
    ) -> None:
        self.store = store
        self.sessions = sessions
        self.folders = repository.folders
        self.tracked = tracked

    def of(self, *types: str) -> Iterator[StoredObservation]:
        wanted = MemoryFilter(self.sessions, types, ("verified", "stated", "hypothesis"))
        said: set[str] = set()
        for note in self.store.memory.observations(wanted, _NOTES * 3):
            words = note.observation.title.lower()
            if words in said or self._is_gone(note):
                continue
            said.add(words)
            yield note

    def _is_gone(self, note: StoredObservation) -> bool:
        """Whether every file that the note's turn wrote is no longer part of the repository."""
        written = note.observation.files_written
        if not written or not self.tracked:
            return False
        inside = [path for path in (_below(each, self.folders) for each in written) if path]
        return bool(inside) and self.tracked.isdisjoint(inside)


def _past(store: Store, session: Session) -> PastSession:
    summary = store.memory.summary(session.id) or SessionSummary()
    request = summary.request[0].text if summary.request else session.title or ""
    completed = summary.completed[-1].text if summary.completed else ""
    return PastSession(
        name=f"{session.agent}:{session.session_id}",
        at=session.ended_at,
        request=request,
        outcome=completed,
        next_steps=tuple(quote.text for quote in summary.next_steps),
    )


def _worth(
    files: Iterable[TouchedFile], folders: Sequence[str], tracked: set[str]
) -> Iterator[str]:
    """The files worth naming, below the project's top."""
    seen: set[str] = set()
    for file in files:
        path = _below(file.path, folders)
        if not path or path in seen or _MADE.search(path):
            continue
        seen.add(path)
        if not tracked or path in tracked:
            yield path


def _below(path: str, folders: Sequence[str]) -> str | None:
    """Return a path below the project's top; None if it is elsewhere."""
    if not path.startswith(("/", "\\")) and ":" not in path[:3]:
        return path.removeprefix("./")
    best = max(
        (folder for folder in folders if path.startswith(f"{folder.rstrip('/')}/")),
        key=len,
        default=None,
    )
    return path[len(best.rstrip("/")) + 1 :] if best else None


def _tracked(folder: GitPlace) -> set[str]:
    """Return the files of the last commit; empty if there is none, or git cannot be asked."""
    listed = ask(folder, "ls-tree", "-r", "--name-only", "--full-tree", "-z", "HEAD")
    return set(filter(None, (listed or "").split("\0")))


def _changed(folder: GitPlace, notes: Iterable[StoredObservation]) -> frozenset[str]:
    """Return the files of these notes that differ from the last commit."""
    if not isinstance(folder, Path):
        return frozenset()  # a bare repository
    paths: set[str] = set()
    for note in notes:
        paths.update(note.observation.files_written, note.observation.files_read)
    return find_changes(folder, head_commit(folder), paths).changed
