"""Whose the lines are that a commit or a range of commits adds: totals as git counts them."""

from __future__ import annotations

from collections.abc import Iterator

from whyfor.git.blame import blame_porcelain, read_porcelain
from whyfor.git.line_changes import LineChange, compare_trees, read_line_changes
from whyfor.git.place import GitPlace
from whyfor.git.run import ask
from whyfor.model.blame import BlameRow
from whyfor.model.errors import BadInput
from whyfor.model.line_counts import FileCounts, RangeCounts
from whyfor.model.lines import AGENT, MODIFIED_LINE, PERSON, UNKNOWN_AUTHOR
from whyfor.store.open import OpenStore
from whyfor.story.commit_lookup import require_checkout, require_commit
from whyfor.story.commit_stories import stories_of
from whyfor.story.lines.file_blame import FileBlamer
from whyfor.story.lines.known_lines import lines_of_stories

_FILES = 3000  # of a range that are told
_RANGES = 300  # of one file that git is asked about one by one


class RangeLines:
    """Counts the lines of changes of one repository."""

    def __init__(self, library: OpenStore, place: GitPlace) -> None:
        self.library = library
        self.folder = require_checkout(place)
        self.blamer = FileBlamer(library, self.folder)
        self._names: dict[int, str] = {}  # agents, by session

    def counts(self, revisions: str) -> RangeCounts:
        """Return the counts of `A..B`, `A...B` (since they parted) or of one commit, which is
        compared with its first parent. Raises BadInput, NotFound."""
        old, new, single = self._ends(revisions)
        second = ask(self.folder, "rev-parse", "-q", "--verify", f"{new}^2") if single else None
        if second is not None:
            single = False  # a merge: its lines are those of the commits it brings
        if single:
            return RangeCounts(old, new, list(self._of_commit(new)))
        assert old is not None
        changes = compare_trees(self.folder, old, new, [])
        if len(changes) > _FILES:
            raise BadInput(f"{len(changes):,} files differ", "Ask about a smaller range.")
        return RangeCounts(old, new, [self._of_file(new, change) for change in changes])

    def _ends(self, revisions: str) -> tuple[str | None, str, bool]:
        """The commits to compare, and whether it is one commit and its parent."""
        for sign in ("...", ".."):
            if sign in revisions:
                first, _, last = revisions.partition(sign)
                old = require_commit(self.library, first or "HEAD", self.folder)
                new = require_commit(self.library, last or "HEAD", self.folder)
                if sign == "...":
                    base = ask(self.folder, "merge-base", old, new)
                    if base is None:
                        raise BadInput(f"{revisions}: they have no commit in common", "Use A..B.")
                    old = base
                return old, new, False
        new = require_commit(self.library, revisions, self.folder)
        return ask(self.folder, "rev-parse", "-q", "--verify", f"{new}^"), new, True

    def _of_commit(self, sha: str) -> Iterator[FileCounts]:
        """The files of one commit, by the answer that its page gives."""
        told = stories_of(self.library, self.folder, [sha])[0]
        repository = self.blamer.repository
        lines = lines_of_stories(self.library, repository, [told]) if repository else {}
        known = lines.get(sha)
        writers = {file.path: file.by_line() for file in known.files} if known else {}
        rest = PERSON if known is not None and known.inferred else UNKNOWN_AUTHOR
        for change in dict(read_line_changes(self.folder, [sha])).get(sha, []):
            found = _counts(change)
            own = writers.get(change.path, {})
            for line in sorted(change.added_lines):
                if line not in own:
                    found.count(rest if change.plain else UNKNOWN_AUTHOR, "")
                    continue
                writer, evidence = own[line]
                kind = MODIFIED_LINE if evidence == MODIFIED_LINE else AGENT
                found.count(kind, self._agent(writer.session))
            yield found

    def _agent(self, session: int) -> str:
        if session not in self._names:
            known = self.library.sessions.by_number([session]).get(session)
            self._names[session] = known.agent if known else ""
        return self._names[session]

    def _of_file(self, commit: str, change: LineChange) -> FileCounts:
        """One file of a range: each added line by the commit that git blames for it."""
        found = _counts(change)
        if not change.plain:
            found.unknown = change.plus
            return found
        if change.plus:
            rows = {row.line: row for row in self._blamed(commit, change)}
            for line in sorted(change.added_lines):
                who = rows[line].who
                found.count(who.kind, who.agent)
        return found

    def _blamed(self, commit: str, change: LineChange) -> list[BlameRow]:
        ranges = [f"-L{first},{first + count - 1}" for first, count in change.added]
        some = ranges if len(ranges) <= _RANGES else []
        data = blame_porcelain(self.folder, commit, change.path, some)
        return self.blamer.with_writers(list(read_porcelain(data)))


def _counts(change: LineChange) -> FileCounts:
    if change.binary:
        return FileCounts(change.path, None, None, {})
    return FileCounts(change.path, change.plus, change.removed, {})
