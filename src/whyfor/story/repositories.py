"""Where a project can be asked about its commits: folders git answers in."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.git import history
from whyfor.git.identity import has_commit, identify, still
from whyfor.git.place import GitDir, GitPlace
from whyfor.git.run import ask
from whyfor.model.paths import to_path, to_text
from whyfor.model.sessions import Project
from whyfor.store.journal import Journal, PlaceEntry
from whyfor.store.open import local_store
from whyfor.store.protocol import SharedStore, Store

ALL = ("--exclude=refs/notes/*", "--exclude=refs/stash", "--all", "HEAD")


class Repository(msgspec.Struct, frozen=True):
    """A project where it can be asked: a folder git answers in."""

    id: int
    project: Project
    folder: GitPlace
    tops: list[str]  # its work trees: below them a path is known exactly
    # every folder of it that sessions ran in, clones and former places among them
    places: list[str]

    @property
    def folders(self) -> list[str]:
        return list(dict.fromkeys([*self.tops, *self.places]))


def repository_of(store: SharedStore, project: int) -> Repository | None:
    """A folder of the project that is still there and still that project. On a team server there
    is none: where its members work is not on its disk."""
    if local_store(store) is None:
        return None
    known = dict(store.projects.known())
    if project not in known:
        return None
    places = [cwd for cwd, number in store.projects.places().items() if number == project]
    for folder in dict.fromkeys(path for path in (known[project].path, *places) if path):
        same = still(folder, known[project]) or identify(folder).identity == known[project].identity
        if same and to_path(folder).is_dir():
            return _repository(project, known[project], to_path(folder), places)
    return None


def repository_at(store: SharedStore, folder: GitPlace) -> Repository | None:
    """The repository a folder is in; of number 0 if nothing is known of it but what sessions
    elsewhere wrote there. None on a team server."""
    if local_store(store) is None:
        return None
    known = _placed(store, folder)
    project = known[1] if known else identify(to_text(folder), named=isinstance(folder, GitDir))
    if project.evidence == "path":
        return None
    known = known or store.projects.find(project.identity) or _formerly(store, folder, project)
    if known is None:
        found = _repository(0, project, folder, [])
        return found if store.sessions.writing_below(found.folders) else None
    places = [cwd for cwd, number in store.projects.places().items() if number == known[0]]
    return _repository(known[0], known[1], folder, places)


def ensure_project(store: Store, record: Journal, folder: GitPlace, now: int) -> str:
    """Return the identity of the project in a folder; one that no session ran in becomes known.
    Under the ingest lock."""
    known = repository_at(store, folder)
    if known is not None and known.id:
        return known.project.identity
    place = to_text(folder)
    project = identify(place, named=True)
    with store.transaction(record):
        store.capture.writer().learn_place(place, project, [], now)
        record.add(PlaceEntry(place, project, now))
    return project.identity


def _repository(number: int, project: Project, folder: GitPlace, places: list[str]) -> Repository:
    trees = (ask(folder, "worktree", "list", "--porcelain") or "").splitlines()
    tops = [line.removeprefix("worktree ") for line in trees if line.startswith("worktree ")]
    # of a submodule the list names its git folder only
    if to_text(folder) not in tops and (top := ask(folder, "rev-parse", "--show-toplevel")):
        tops.append(top)
    if project.path:
        tops.append(project.path)
    return Repository(number, project, folder, list(dict.fromkeys(tops)), places)


def _placed(store: SharedStore, folder: GitPlace) -> tuple[int, Project] | None:
    """The project the folder was known for, if it still is that."""
    number = store.projects.places().get(to_text(folder))
    project = dict(store.projects.known()).get(number) if number is not None else None
    return (
        (number, project)
        if number is not None and project and still(to_text(folder), project)
        else None
    )


def _formerly(store: SharedStore, folder: GitPlace, project: Project) -> tuple[int, Project] | None:
    """The same repository before it had this remote or this root commit, if nothing was read of
    it since."""
    for identity, root in store.projects.former(project):
        if root is None or has_commit(folder, root):
            return store.projects.find(identity)
    return None


def lost(folder: GitPlace, shas: Iterable[str]) -> list[history.Commit]:
    """What these commits reach and no ref does."""
    names = list(shas)
    return history.commits(folder, ["--not", *ALL[:-1], "^HEAD", *names]) if names else []
