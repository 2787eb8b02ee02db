"""What is behind one commit, for its page: the story, the change line by line, who wrote each
line, and how we know.

Git may be slow or gone, a commit may change a million lines: what is asked for is bounded and
kept by its hash, and what the store knows is told in any case.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from whyfor.config import Settings
from whyfor.git import history
from whyfor.git.patch import Hunk, Patch, PatchFile, PatchLine, patch
from whyfor.git.place import GitPlace
from whyfor.model.characters import show_code
from whyfor.model.checkpoints import Checkpoint
from whyfor.model.conversation import DiffRow
from whyfor.model.errors import NotFound
from whyfor.model.lines import MODIFIED_LINE, PERSON, UNKNOWN_AUTHOR
from whyfor.model.sessions import Person, Project, Tokens
from whyfor.model.stories import CommitStory, stored_commit
from whyfor.store.journal import NoteEntry
from whyfor.store.open import OpenStore, local_store, reading
from whyfor.story.commit_stories import group_of, reverted_story
from whyfor.story.conversation.diffs import mark_differences
from whyfor.story.lines.authorship import (
    AuthorLabel,
    Authorship,
    ContributingSession,
    Pens,
    PromptReason,
)
from whyfor.story.lines.known_lines import lines_of_stories
from whyfor.story.links.shell_records import activity_of
from whyfor.story.repositories import Repository, repository_of
from whyfor.story.session_lookup import printed_session_ids
from whyfor.story.story_budget import stories_within

SHOWN = 1200  # lines of a page's diffs, all files together
SHOWN_EACH = 300  # of one of them
SHOWN_ALONE = 6000  # of the one file that was asked for
FILES = 300
_KEPT = 60_000  # lines of diffs that are kept in memory
_SHA = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


__all__ = ["AuthorLabel", "CommitPage", "FileView", "HunkView", "commit_page", "diff_rows"]


class AuthoredLine(msgspec.Struct, frozen=True):
    line: PatchLine
    who: AuthorLabel | None  # of an added line
    first: bool = False  # of a run of lines by the same


class HunkView(msgspec.Struct, frozen=True):
    head: str
    about: str
    rows: list[AuthoredLine]
    because: list[PromptReason]


class FileView(msgspec.Struct, frozen=True):
    number: int
    path: str
    old_path: str | None
    status: str
    added: int | None
    removed: int | None
    hunks: list[HunkView]
    labels: list[str]  # who wrote in it
    more: int = 0  # lines that are not shown
    whole: bool = True


class LinkEvidence(msgspec.Struct, frozen=True):
    evidence: str
    words: str
    code: str = ""
    linked: bool = True


class CommitPage(msgspec.Struct, frozen=True):
    told: CommitStory
    project: Project | None
    folder: GitPlace | None
    sources: list[ContributingSession]
    proofs: list[LinkEvidence]
    files: list[FileView]
    more_files: int
    whole: bool  # all of the change is known
    counts: dict[str, int]  # added lines by agent, "person" and "unknown"
    group: list[Checkpoint]
    was: list[str]  # commits it took the place of
    notes: list[NoteEntry]
    tokens: Tokens
    reverts: CommitStory | None
    ids: dict[str, str]  # by agent:id, what is printed of a session
    people: dict[int, Person]  # whose sessions these are, by number; on a team

    @property
    def added(self) -> int:
        return sum(file.added or 0 for file in self.files)

    @property
    def removed(self) -> int:
        return sum(file.removed or 0 for file in self.files)


def commit_page(
    settings: Settings, sha: str, *, project: str = "", only: int | None = None
) -> CommitPage:
    """A commit by its whole hash; `project` says where to look for one that was not seen yet,
    `only` opens one file."""
    if not _SHA.fullmatch(sha):
        raise NotFound(f"{sha[:64]!r} is not the whole hash of a commit", "See: whyfor log")
    with reading(settings) as library:
        number = _project(library, sha, project)
        repository = repository_of(library, number) if number is not None else None
        told = _told(library, repository, sha, number)
        return _Page(library, repository, told, number).page(only)


def _project(library: OpenStore, sha: str, identity: str) -> int | None:
    number = library.checkpoints.project_of(sha)
    known = library.projects.find(identity) if number is None and identity else None
    return known[0] if known else number


def _told(
    library: OpenStore, repository: Repository | None, sha: str, number: int | None
) -> CommitStory:
    found = history.resolve_commits(repository.folder, [sha]) if repository else {}
    if repository and found:
        commit = history.commits(repository.folder, ["--no-walk=unsorted", sha])[0]
    elif kept := library.checkpoints.of_commits([sha]).get(sha):
        commit = stored_commit(kept)
    else:
        raise NotFound(
            f"commit {sha[:10]} is not kept here, and no repository has it", "See: whyfor log"
        )
    begun = library.sessions.first_started(number) if number is not None else None
    return stories_within(
        library, repository.folder if repository and found else None, [commit], begun
    )[0]


class _Page:
    def __init__(
        self,
        library: OpenStore,
        repository: Repository | None,
        told: CommitStory,
        number: int | None,
    ) -> None:
        self.library = library
        self.repository = repository
        self.told = told
        self.number = number
        self.sha = told.commit.sha
        self.change = self._change()
        parts = told.checkpoint.parts if told.checkpoint else []
        local = local_store(library)
        lines = lines_of_stories(local, repository, [told]) if local and repository else {}
        self.authors = Authorship(library, parts, self.change.files, lines.get(self.sha))

    def _change(self) -> Patch:
        """Of a merge there is none: it has no lines of its own."""
        if self.repository is None or self.told.commit.is_merge:
            return Patch([], self.told.commit.is_merge)
        return _patches.get(self.repository.folder, self.sha)

    def page(self, only: int | None) -> CommitPage:
        checkpoint, change, authors = self.told.checkpoint, self.change, self.authors
        files = [self._file(*place) for place in _rooms(change.files[:FILES], only)]
        if not change.whole and checkpoint and len(files) < len(checkpoint.files):
            known = {file.path for file in files}
            files += [
                FileView(len(files) + n, f.path, None, "M", f.added, f.removed, [], [], whole=False)
                for n, f in enumerate(f for f in checkpoint.files if f.path not in known)
            ]
        number = self.number or 0
        spans = []
        for source in authors.sources:
            spans += [(source.session.id, first, last) for first, last in source.part.ranges]
        projects = dict(self.library.projects.known())
        return CommitPage(
            told=self.told,
            project=projects.get(number),
            folder=self.repository.folder if self.repository else None,
            sources=authors.sources,
            proofs=list(self._proofs()),
            files=files[:FILES],
            more_files=max(0, len(change.files) - FILES),
            whole=change.whole,
            counts=authors.counts,
            group=group_of(self.library, self.told),
            was=self.library.checkpoints.rewritten_from(number, [self.sha]).get(self.sha, []),
            notes=[
                entry
                for entry in self.library.checkpoints.said([self.sha])
                if isinstance(entry, NoteEntry)
            ],
            tokens=self.library.checkpoints.spent(spans),
            reverts=reverted_story(self.library, self.repository.folder, self.told)
            if self.repository
            else None,
            ids=self.ids,
            people=self.library.people_of([source.session.id for source in authors.sources]),
        )

    # -- files and hunks --------------------------------------------------------------------------

    def _file(self, number: int, file: PatchFile, room: int) -> FileView:
        pens = self.authors.pens[number]
        hunks: list[HunkView] = []
        left = room
        labels: dict[str, None] = {}
        for hunk in file.hunks:
            lines = [line.new if line.sign == "+" else None for line in hunk.lines]
            whos = [
                self.authors.who(pens[new]) if new is not None and self.authors.sources else None
                for new in lines
            ]
            labels.update(dict.fromkeys(who.label for who in whos if who))
            if left > 0:
                hunks.append(self._hunk(hunk, whos, pens, left))
                left -= len(hunk.lines)
        return FileView(
            number=number,
            path=file.path,
            old_path=file.old_path,
            status=file.status,
            added=file.added,
            removed=file.removed,
            hunks=hunks,
            labels=list(labels),
            more=sum(len(hunk.lines) for hunk in file.hunks)
            - sum(len(hunk.rows) for hunk in hunks),
            whole=file.whole,
        )

    def _hunk(
        self, hunk: Hunk, whos: Sequence[AuthorLabel | None], pens: Pens, room: int
    ) -> HunkView:
        rows: list[AuthoredLine] = []
        cards: dict[tuple[object, ...], PromptReason] = {}
        before: AuthorLabel | None = None
        for line, who in zip(hunk.lines, whos, strict=True):
            if len(rows) < room:
                rows.append(AuthoredLine(line, who, first=who != before))
            before = who
            if who is not None and line.new is not None:
                key, card = self.authors.because(who, pens[line.new], pens)
                cards.setdefault(key, card).lines += 1
        return HunkView(hunk.head, hunk.about, rows, list(cards.values()))

    # -- how we know ------------------------------------------------------------------------------

    @cached_property
    def ids(self) -> dict[str, str]:
        """By agent:id, what is printed of each session that the page names."""
        names = [(source.part.agent, source.part.session_id) for source in self.authors.sources]
        names += [(one.agent, one.session_id) for one in self.told.unlinked]
        names += [(str(h["agent"]), str(h["session_id"])) for h in self.told.nearby]
        return printed_session_ids(self.library, names)

    def _proofs(self) -> Iterator[LinkEvidence]:
        hooked = set(self.library.signals.hooked(self.sha))
        for number, source in enumerate(self.authors.sources):
            part = source.part
            ident = self.ids[part.name]
            if part.evidence == "person":
                yield LinkEvidence("person", "linked by a person to session", ident)
            if part.evidence == "hook" or (part.agent, part.session_id) in hooked:
                yield LinkEvidence("hook", "the commit ran inside session", ident)
            if printed := self._printed(number):
                yield LinkEvidence("output", "a tool result names", printed[:10])
            elif part.evidence == "output" or part.why.startswith("same change"):
                yield LinkEvidence(part.evidence, part.why)
        yield from self._by_content()
        for hint in self.told.nearby:
            why, agent = str(hint.get("why", "")), str(hint.get("agent", ""))
            yield LinkEvidence("nearby", why, agent, linked=False)

    def _printed(self, number: int) -> str | None:
        """The hash of the commit as a session, or a subagent of it, printed it last."""
        found = None
        local = local_store(self.library)
        if local is None:
            return None  # what a session printed is not kept apart on a server
        session = self.authors.sources[number].session
        below = self.library.sessions.children([session.session_id])
        children = [child.id for child in below if child.agent == session.agent]
        for one in (session.id, *children):
            for made in activity_of(local, one).made:
                names = [name for name, _ in made.printed if self.sha.startswith(name)]
                found = names[-1] if names else found
        return found

    def _by_content(self) -> Iterator[LinkEvidence]:
        counts, sources = self.authors.counts, self.authors.sources
        total = sum(counts.values())
        others = sum(counts.get(kind, 0) for kind in (PERSON, UNKNOWN_AUTHOR, MODIFIED_LINE))
        lines = total - others
        told = [source.part.why for source in sources if source.part.evidence == "content"]
        if lines:
            where = "there" if len(sources) == 1 else "in these sessions"
            yield LinkEvidence("content", f"{lines} of {total} added lines were written {where}")
        elif told:
            yield LinkEvidence("content", told[0])


def _rooms(files: Sequence[PatchFile], only: int | None) -> Iterable[tuple[int, PatchFile, int]]:
    """How many lines of each file are shown: as many as fit, or only those of the file that was
    asked for."""
    left = SHOWN
    for number, file in enumerate(files):
        if only is not None:
            yield number, file, SHOWN_ALONE if number == only else 0
        else:
            yield number, file, min(left, SHOWN_EACH)
            left = max(0, left - min(SHOWN_EACH, sum(len(hunk.lines) for hunk in file.hunks)))


class _Patches:
    """Diffs of late, by hash: they never change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], Patch] = OrderedDict()

    def get(self, folder: GitPlace, sha: str) -> Patch:
        key = (str(folder), sha)
        with self._lock:
            if key in self._known:
                self._known.move_to_end(key)
                return self._known[key]
        found = patch(folder, sha)
        if found.whole:
            with self._lock:
                self._known[key] = found
                while len(self._known) > 1 and sum(map(_size, self._known.values())) > _KEPT:
                    self._known.popitem(last=False)
        return found


def _size(change: Patch) -> int:
    return 20 + sum(len(hunk.lines) for file in change.files for hunk in file.hunks)


_patches = _Patches()


def diff_rows(hunk: HunkView) -> list[DiffRow]:
    """A hunk's lines with the words marked that differ; what cannot be seen is made visible."""
    rows = [DiffRow(row.line.sign, show_code(row.line.text)) for row in hunk.rows]
    mark_differences(rows)
    return rows
