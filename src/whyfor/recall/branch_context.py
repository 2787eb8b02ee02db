"""What an agent should know before it works on a branch: more of what concerns the branch and its
files than the block that every session is told."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.git import history
from whyfor.git.place import GitPlace
from whyfor.git.run import ask
from whyfor.model.memory import BlockMaterial, BranchCommit, MemoryFilter, StoredObservation
from whyfor.model.query import Filters
from whyfor.model.sessions import Session
from whyfor.recall.material import collect, last_sessions
from whyfor.store.protocol import SharedStore
from whyfor.story.repositories import Repository

_COMMITS = 12
_FILES = 40  # whose notes are looked up
_NOTES = 10  # of each
_STATES = ("verified", "stated", "hypothesis")


def collect_context(
    store: SharedStore, repository: Repository, branch: str | None, files: Iterable[str]
) -> BlockMaterial:
    """Return what is known of a branch's sessions, commits and files first, then of the
    repository's. `files` count beside those that the branch changes."""
    folder = repository.folder
    base = branch_base(folder, branch)
    commits = _commits(folder, base, branch)
    concerned = tuple(dict.fromkeys([*files, *_changed_since(folder, base, branch)]))
    general = collect(store, repository, branch, _sessions(store, repository, branch))
    about = _notes_about(store, repository, concerned[:_FILES])
    return msgspec.structs.replace(
        general,
        commits=_told(store, commits),
        findings=tuple({n.observation.key: n for n in (*about, *general.findings)}.values()),
        changed=(*_paths(about, concerned), *general.changed),
        files=tuple(dict.fromkeys([*concerned, *general.files])),
    )


def branch_base(folder: GitPlace, branch: str | None) -> str | None:
    """Return where the branch left the main one; None if it is that, or if it is unknown."""
    remote = ask(folder, "symbolic-ref", "--quiet", "--short", "refs/remotes/origin/HEAD")
    for main in filter(None, (remote, "main", "master")):
        if main.removeprefix("origin/") == branch:
            return None
        found = ask(folder, "merge-base", "--end-of-options", main, branch or "HEAD")
        if found:
            return found
    return None


def _commits(folder: GitPlace, base: str | None, branch: str | None) -> list[history.Commit]:
    """Return the branch's own commits, newest first; of a main branch its last ones."""
    end = branch or "HEAD"
    name = f"{end}^{{commit}}"
    if ask(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", name) is None:
        return []
    found = history.commits(folder, [f"{base}..{end}" if base else end], limit=_COMMITS)
    return list(reversed(found))


def _changed_since(folder: GitPlace, base: str | None, branch: str | None) -> list[str]:
    if base is None:
        return []
    names = ask(
        folder, "diff-tree", "-r", "--name-only", "-z", "--end-of-options", base, branch or "HEAD"
    )
    return [name for name in (names or "").split("\0") if name]


def _told(store: SharedStore, commits: list[history.Commit]) -> tuple[BranchCommit, ...]:
    known = store.checkpoints.of_commits([commit.sha for commit in commits])
    found = []
    for commit in commits:
        checkpoint = known.get(commit.sha)
        note = checkpoint.annotation if checkpoint else None
        intent = note.intent if note else ""
        found.append(BranchCommit(commit.sha, commit.committed_at, commit.subject, intent))
    return tuple(found)


def _sessions(store: SharedStore, repository: Repository, branch: str | None) -> list[Session]:
    """Return the sessions of the branch, then the others."""
    own = last_sessions(store, repository, branch) if branch else []
    seen = {session.id for session in own}
    others = last_sessions(store, repository)
    return [*own, *(session for session in others if session.id not in seen)]


def _notes_about(
    store: SharedStore, repository: Repository, files: Iterable[str]
) -> list[StoredObservation]:
    """Return what was found and decided on these files, however old."""
    found: dict[str, StoredObservation] = {}
    types = ("decision", "discovery", "gotcha")
    for file in files:
        wanted = MemoryFilter(Filters(projects=(repository.id,)), types, _STATES, file)
        for note in store.memory.observations(wanted, _NOTES):
            if not note.superseded_by:
                found[note.observation.key] = note
    return list(found.values())


def _paths(notes: Iterable[StoredObservation], files: Iterable[str]) -> set[str]:
    """Return how notes call these files: agents name most of them by their whole path."""
    ends = tuple(f"/{file}" for file in files)
    named: set[str] = set()
    for note in notes:
        named.update(note.observation.files_written, note.observation.files_read)
    return {path for path in named if f"/{path}".endswith(ends)}
