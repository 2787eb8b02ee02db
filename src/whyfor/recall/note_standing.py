"""Whether notes still hold: what git says of their files and commits now, and which later note took
the place of which. Asked when notes are read; nothing of it is stored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from whyfor.git.history import Commit, commits
from whyfor.git.place import GitPlace
from whyfor.git.run import ask, run_git
from whyfor.model.errors import BadInput
from whyfor.model.memory import NoteStanding, Observation, StoredObservation
from whyfor.model.times import DAY
from whyfor.recall.contradictions import contradicts
from whyfor.recall.project_paths import below_top
from whyfor.store.protocol import SharedStore
from whyfor.story.repositories import Repository, repository_of

_COMMITS = 2_000  # of the branch that are looked at
_PROJECTS = 8  # that are asked for one list
_PATHS = 2_000  # that git is asked about
_ALIKE = 0.5  # share of the words of two titles
_COMPARED = 40  # newer notes about one thing that one is held against
_REVERTED = re.compile(r"This reverts commit ([0-9a-f]{7,64})")
_WORD = re.compile(r"\w+")
_DELETED = "its files were deleted"
_UNDONE = "its commit was reverted"


def judge_notes(
    notes: Sequence[StoredObservation], folder: GitPlace, folders: Sequence[str]
) -> list[StoredObservation]:
    """Return the notes of one project, each with how it stands in the repository at `folder`.
    `folders` are those that sessions of the project ran in. What git cannot say stays unknown."""
    git = _Git(folder)
    git.read(notes, folders)
    return [_judged(note, _standing(note, git, folders)) for note in notes]


def _judged(note: StoredObservation, standing: NoteStanding) -> StoredObservation:
    """Return a note with how it stands; one whose commit was reverted is refuted."""
    if standing.gone == _UNDONE:
        wrong = msgspec.structs.replace(note.observation, state="refuted")
        note = msgspec.structs.replace(note, observation=wrong)
    return msgspec.structs.replace(note, standing=standing)


def judge_everywhere(
    store: SharedStore, notes: Sequence[StoredObservation], here: Repository | None
) -> list[StoredObservation]:
    """Return notes of any projects, in their order, each with how it stands: in the repository
    `here` if it is of that project, else where its project can be asked."""
    by_project: dict[str, list[StoredObservation]] = {}
    for note in notes:
        if note.project:
            by_project.setdefault(note.project, []).append(note)
    judged: dict[str, StoredObservation] = {}
    most = sorted(by_project.items(), key=lambda item: -len(item[1]))
    for project, group in most[:_PROJECTS]:
        place = here if here and here.project.identity == project else _place_of(store, project)
        if place is not None:
            for note in judge_notes(group, place.folder, place.folders):
                judged[note.observation.key] = note
    return [judged.get(note.observation.key) or _unasked(note) for note in notes]


def _place_of(store: SharedStore, project: str) -> Repository | None:
    known = store.projects.find(project)
    return repository_of(store, known[0]) if known else None


def _unasked(note: StoredObservation) -> StoredObservation:
    if not note.superseded_by or note.observation.pinned:
        return note
    return msgspec.structs.replace(note, standing=NoteStanding(gone=_replaced(note)))


def _replaced(note: StoredObservation) -> str:
    how = "contradicted" if note.observation.state == "refuted" else "replaced"
    return f"{how} by {(note.superseded_by or '')[:8]}"


class _Git:
    """What git says of the present branch: asked twice, whatever the number of notes."""

    def __init__(self, folder: GitPlace) -> None:
        self.folder = folder
        self.blobs: dict[str, str] = {}  # by revision:path; a missing one is empty
        self.history: set[str] = set()
        self.whole = False  # all commits since the oldest note are in the history
        self.undone: list[str] = []  # beginnings of the ids of commits that were reverted
        self.unmerged: set[str] = set()  # branches

    def read(self, notes: Sequence[StoredObservation], folders: Sequence[str]) -> None:
        names: dict[str, None] = {}
        for stored in notes:
            for path in paths_of(stored.observation, folders):
                names[f"HEAD:{path}"] = None
                if stored.observation.commit:
                    names[f"{stored.observation.commit}:{path}"] = None
        self._read_blobs(list(names)[:_PATHS])
        made = [stored for stored in notes if stored.observation.commit]
        if made:
            self._read_history(min(stored.observation.at or 0 for stored in made))
        if any(stored.branch and not stored.observation.commit for stored in notes):
            self._read_branches()

    def _read_blobs(self, names: list[str]) -> None:
        asked = [name for name in names if "\n" not in name]
        given = "".join(f"{name}\n" for name in asked).encode("utf-8", "surrogateescape")
        if not asked:
            return
        done = run_git(self.folder, "cat-file", "--batch-check=%(objectname)", given=given)
        answers = done.text.splitlines() if done.ok else []
        if len(answers) == len(asked):
            for name, answer in zip(asked, answers, strict=True):
                self.blobs[name] = "" if answer.endswith((" missing", " ambiguous")) else answer

    def _read_history(self, since: int) -> None:
        try:
            found = commits(self.folder, ["HEAD"], limit=_COMMITS, since=max(0, since - DAY))
        except BadInput:
            return  # no commit yet
        self.history = {commit.sha for commit in found}
        self.whole = len(found) < _COMMITS
        self.undone = reverted_commits(found)

    def _read_branches(self) -> None:
        form = "--format=%(refname:short)"
        listed = ask(self.folder, "for-each-ref", form, "--no-merged=HEAD", "refs/heads")
        self.unmerged = set((listed or "").splitlines())

    def is_undone(self, sha: str) -> bool:
        return any(sha.startswith(name) for name in self.undone)


def reverted_commits(history: Sequence[Commit]) -> list[str]:
    """Return the ids, or beginnings of them, of commits that a later one took back, from commits
    with the oldest first. A revert that was reverted itself takes nothing back."""
    undone: list[str] = []
    for commit in reversed(history):
        if not any(commit.sha.startswith(name) for name in undone):
            undone += _REVERTED.findall(commit.body)
    return undone


def _standing(stored: StoredObservation, git: _Git, folders: Sequence[str]) -> NoteStanding:
    note = stored.observation
    paths = paths_of(note, folders)
    now = {path: git.blobs.get(f"HEAD:{path}") for path in paths}
    if note.pinned:
        return NoteStanding()
    if stored.superseded_by:
        return NoteStanding(gone=_replaced(stored))
    if note.commit and git.is_undone(note.commit):
        return NoteStanding(gone=_UNDONE)
    known = note.commit is not None
    elsewhere = stored.branch in git.unmerged
    if known:
        elsewhere = git.whole and note.commit not in git.history
    if now and not elsewhere and all(blob == "" for blob in now.values()):
        return NoteStanding(gone=_DELETED)
    if elsewhere or not known:
        return NoteStanding(elsewhere=elsewhere)
    return NoteStanding(tuple(path for path in now if _differs(git, note, path, now[path])))


def _differs(git: _Git, note: Observation, path: str, blob: str | None) -> bool:
    """Whether a file has another content than in the note's commit; no, if that is not known."""
    before = git.blobs.get(f"{note.commit}:{path}")
    return bool(before) and blob is not None and blob != before


def paths_of(note: Observation, folders: Sequence[str]) -> list[str]:
    """Return the files a note is about, below the project's top."""
    found = (below_top(path, folders) for path in note.anchors)
    return [path for path in found if path]


# -- later notes ---------------------------------------------------------------------------------


def supersede_notes(notes: Iterable[StoredObservation]) -> list[StoredObservation]:
    """Return notes, newest first, each with the later one that takes its place: of the same type
    and project, about the same file, in much the same words; or that says the opposite, which
    refutes it."""
    kept: list[StoredObservation] = []
    later = _LaterNotes()
    for stored in notes:
        note = stored.observation
        if not stored.superseded_by and not note.pinned:
            stored = later.judge(stored)
        later.add(stored)
        kept.append(stored)
    return kept


class _LaterNotes:
    """Notes that are newer than the next one, by what they are about."""

    def __init__(self) -> None:
        self.alike: dict[tuple[str | None, str, str], list[StoredObservation]] = {}
        self.about: dict[tuple[str | None, str], list[StoredObservation]] = {}

    def add(self, stored: StoredObservation) -> None:
        note = stored.observation
        for subject in note.anchors:
            self.alike.setdefault((stored.project, note.type, subject), []).append(stored)
        for subject in _subjects(note):
            known = self.about.setdefault((stored.project, subject), [])
            if len(known) < _COMPARED:
                known.append(stored)

    def judge(self, stored: StoredObservation) -> StoredObservation:
        """Return a note with what a newer one does to it."""
        note = stored.observation
        for subject in _subjects(note):
            for each in self.about.get((stored.project, subject), ()):
                if contradicts(each, stored):
                    refuted = msgspec.structs.replace(note, state="refuted")
                    newer = each.observation.key
                    return msgspec.structs.replace(stored, observation=refuted, superseded_by=newer)
        for subject in note.anchors:
            for each in self.alike.get((stored.project, note.type, subject), ()):
                if _is_like(each, stored):
                    return msgspec.structs.replace(stored, superseded_by=each.observation.key)
        return stored


def _subjects(note: Observation) -> list[str]:
    """Return what a note is about: files, names of things; of what a person said also itself."""
    spoken = [note.type] if note.type in ("rule", "correction") else []
    return [*note.anchors, *note.concepts, *spoken]


def _is_like(newer: StoredObservation, older: StoredObservation) -> bool:
    if newer.observation.state == "refuted":
        return False
    one, other = _words(newer.observation.title), _words(older.observation.title)
    return len(one & other) >= _ALIKE * len(one | other)


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))
