"""The page of a file: each line with the turn that wrote it, at any commit that changed it.

Git may not have the file, the commit or the repository any more: `FilePage.state` says so, and
what the store knows is told in any case.
"""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from pathlib import Path

import msgspec

from whyfor.capture.line_cache import keep_lines
from whyfor.config import Settings
from whyfor.git.blame import BlameOptions, TreeFile, find_file
from whyfor.git.file_versions import FileHistory, FileVersion, file_history
from whyfor.git.history import head_commit
from whyfor.git.line_changes import BLOB_MAX, read_texts
from whyfor.git.place import GitPlace
from whyfor.git.run import ask
from whyfor.model.blame import BlameRow
from whyfor.model.checkpoints import Checkpoint, Part
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.file_page import FilePage, LineSpan, VersionChoice
from whyfor.model.lines import CommitLines
from whyfor.model.query import Filters
from whyfor.model.sessions import Project
from whyfor.model.stories import Commit
from whyfor.service.file_page.shared import shared_file_page
from whyfor.service.file_page.writers import KnownCommits, WriterCards, span_at
from whyfor.service.memory_page import notes_about_files
from whyfor.store.open import LocalStore, reading_local
from whyfor.store.protocol import Store
from whyfor.story.commit_lookup import checkout_root, resolve_commit
from whyfor.story.lines.file_blame import LINES_MAX, BlameTarget, FileBlamer
from whyfor.story.lines.text_edits import text_lines
from whyfor.story.repositories import Repository, repository_of

PAGE = 2000  # lines that are shown at a time
_KEPT = 50  # commits that are listed where git cannot be asked
_PATH = 4096  # characters


class FileQuery(msgspec.Struct, frozen=True):
    """What is asked: a file of a project, at a commit (else as HEAD has it), from a line on."""

    project: str
    path: str
    at: str = ""
    line: int | None = None  # whose writer is shown first
    first: int | None = None


def file_page(settings: Settings, query: FileQuery) -> FilePage:
    """Return the page of a file of this machine, or of a team, which has no lines. Raises NotFound
    for an unknown project, BadInput for a path outside of it."""
    if settings.lend is not None:
        return shared_file_page(settings, query.project, query.path)
    with reading_local(settings) as library:
        reader = _PageReader(library, query)
        found = reader.page()
    keep_lines(settings, reader.fresh)
    notes = notes_about_files(settings, query.project, [found.path])
    return msgspec.structs.replace(found, notes=notes)


def require_project(store: Store, identity: str) -> tuple[int, Project]:
    """Return the number of a project and what is known of it. Raises NotFound."""
    known = store.projects.find(identity) if identity else None
    if known is None:
        raise NotFound(f"no project is called {identity[:80]!r}", "See: whyfor projects")
    return known


class _PageReader:
    def __init__(self, library: LocalStore, query: FileQuery) -> None:
        self.library = library
        self.query = query
        self.number, self.project = require_project(library, query.project)
        self.repository = repository_of(library, self.number)
        self.blamer: FileBlamer | None = None

    @property
    def fresh(self) -> list[tuple[CommitLines, Sequence[Part]]]:
        return list(self.blamer.fresh.values()) if self.blamer else []

    def page(self) -> FilePage:
        repository, asked = self.repository, self.query.path
        if not asked or "\0" in asked or len(asked) > _PATH:
            raise BadInput(f"{asked[:80]!r} is no path of a file", "Open a file from a commit.")
        if repository is None:
            return self._kept(asked, "no-git")
        folder = repository.folder
        path = _relative_path(asked, repository)
        head = head_commit(folder)
        start = self._start(folder, head)
        if start is None:
            return self._kept(path, "no-commit" if self.query.at else "none")
        history = file_history(folder, list(dict.fromkeys(filter(None, [head, start]))), path)
        version = _version(folder, history, start, path)
        empty = self._empty(folder, path, history)
        if version is None:
            return msgspec.structs.replace(empty, state="none")
        shown = msgspec.structs.replace(empty, path=version.path, at=_choice(version))
        return self._with_lines(repository, shown, version)

    def _start(self, folder: GitPlace, head: str | None) -> str | None:
        """The commit that is asked for; None if git does not have it."""
        if not self.query.at:
            return head
        if self.query.at.startswith("-"):
            return None
        found = resolve_commit(self.library, self.query.at, folder)
        is_here = found is not None and ask(folder, "cat-file", "-t", found) == "commit"
        return found if is_here else None

    def _empty(self, folder: GitPlace, path: str, history: FileHistory) -> FilePage:
        removed = history.removed
        return FilePage(
            project=self.project,
            path=path,
            branch=ask(folder, "symbolic-ref", "--quiet", "--short", "HEAD"),
            versions=[_choice(version) for version in history.versions],
            more_versions=history.more,
            removed=_choice(FileVersion(removed, path)) if removed else None,
            renamed=history.renamed,
        )

    def _kept(self, path: str, state: str) -> FilePage:
        """What is told where git cannot be asked: the commits that changed the file."""
        return FilePage(
            project=self.project,
            path=path,
            state=state,
            asked=self.query.at[:64],
            versions=kept_versions(self.library, self.number, path),
        )

    # -- lines -----------------------------------------------------------------------------------

    def _with_lines(self, repository: Repository, page: FilePage, version: FileVersion) -> FilePage:
        folder = repository.folder
        try:
            tree = find_file(folder, version.sha, version.path)
        except BadInput as error:
            return msgspec.structs.replace(page, state=_no_file(error.message))
        if tree is None:
            return msgspec.structs.replace(page, state="none")
        texts = read_texts(folder, [tree.blob])
        if tree.blob not in texts:
            return msgspec.structs.replace(page, state=_no_text(folder, tree))
        total = len(text_lines(texts[tree.blob]))
        return self._blamed(repository, page, version, total)

    def _blamed(
        self, repository: Repository, page: FilePage, version: FileVersion, total: int
    ) -> FilePage:
        folder = repository.folder
        first = self._first(total)
        is_whole = total <= LINES_MAX
        window = () if is_whole else (f"{first},{min(first + PAGE - 1, total)}",)
        self.blamer = FileBlamer(self.library, folder)
        top = checkout_root(folder) or folder
        target = BlameTarget(version.path, Path(top), version.sha)
        found = self.blamer.blame(target, BlameOptions(ranges=window))
        cards = WriterCards(self._known(folder, found.rows), self.blamer.turns)
        spans = cards.add(found.rows)
        shown = _within(spans, first, first + PAGE - 1)
        return msgspec.structs.replace(
            page,
            total=total,
            first=first,
            spans=shown,
            shares=cards.shares(),
            reasons=cards.reasons,
            is_whole=is_whole,
            cards=cards.listed(),
            selected=span_at(spans, self.query.line),
            remarks=found.notes,
        )

    def _first(self, total: int) -> int:
        """The first line to show: the one asked for, else that of the page a line is on."""
        wanted = self.query.first
        if wanted is None:
            wanted = ((self.query.line or 1) - 1) // PAGE * PAGE + 1
        return max(1, min(wanted, max(1, total)))

    def _known(self, folder: GitPlace, rows: Sequence[BlameRow]) -> KnownCommits:
        shas = {row.commit for row in rows}
        kept = self.library.checkpoints.of_commits(shas)
        linked = {sha: one for sha, one in kept.items() if one.parts}
        begun = self.library.sessions.first_started(self.number)
        return KnownCommits(linked, begun, ask(folder, "config", "user.email"))


def kept_versions(store: Store, project: int, path: str) -> list[VersionChoice]:
    """Return the commits with a story that changed a file, newest first: all that can be told
    without git."""
    within = Filters(projects=(project,), file=path)
    sessions = store.sessions.matching(within, limit=_KEPT, subagents=False)
    found = store.checkpoints.of_sessions([session.id for session in sessions])
    changed = [one for one in found.values() if _changes(one, path) and not one.superseded_by]
    changed.sort(key=lambda one: -one.committed_at)
    return [VersionChoice(one.commit, path, one.subject, one.committed_at) for one in changed]


def _changes(checkpoint: Checkpoint, path: str) -> bool:
    return any(changed.path == path for changed in checkpoint.files)


def _relative_path(path: str, repository: Repository) -> str:
    """A path from the top of the repository; a whole path may name any folder it is or was in.
    Nothing is looked up. Raises BadInput if it is outside."""
    folders = sorted(repository.tops, key=len, reverse=True)
    folders += sorted(repository.places, key=len)  # sessions may have run below its top
    for folder in folders:
        inside = path.removeprefix(f"{folder.rstrip('/')}/")
        if inside != path:
            path = inside
            break
    found = posixpath.normpath(path)
    if found.startswith("/") or found.split("/")[0] in (".", ".."):
        raise BadInput(
            f"{path[:80]} is not a file in this repository", "Open a file from a commit."
        )
    return found


def _version(folder: GitPlace, history: FileHistory, start: str, path: str) -> FileVersion | None:
    """The version of a file at a commit: the newest that the commit reaches."""
    for version in history.versions:
        if version.sha == start:
            return version
    reached = file_history(folder, [start], path, 1).versions
    return reached[0] if reached else None


def _choice(version: FileVersion) -> VersionChoice:
    commit: Commit = version.commit
    return VersionChoice(commit.sha, version.path, commit.subject, commit.committed_at)


def _within(spans: Sequence[LineSpan], first: int, last: int) -> list[LineSpan]:
    """The part of runs that is on a page."""
    found = []
    for span in spans:
        if span.last < first or span.first > last:
            continue
        rows = [row for row in span.rows if first <= row.line <= last]
        found.append(LineSpan(rows[0].line, rows[-1].line, span.card, rows))
    return found


def _no_file(message: str) -> str:
    for word in ("link", "submodule", "directory"):
        if word in message:
            return word
    return "none"


def _no_text(folder: GitPlace, tree: TreeFile) -> str:
    size = ask(folder, "cat-file", "-s", tree.blob) or "0"
    return "too-large" if int(size) > BLOB_MAX else "not-text"
