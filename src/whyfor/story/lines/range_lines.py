"""Whose the lines are that a commit or a range of commits adds: totals as git counts them."""

from __future__ import annotations

from collections.abc import Iterator

from whyfor.git.blame import blame_porcelain, read_porcelain
from whyfor.git.line_changes import (
    LineChange,
    compare_trees,
    read_counted_changes,
    read_line_changes,
)
from whyfor.git.place import GitPlace
from whyfor.git.run import ask
from whyfor.model.blame import BlameRow
from whyfor.model.errors import BadInput
from whyfor.model.line_counts import FileCounts, RangeCounts
from whyfor.model.lines import AGENT, MODIFIED_LINE, PERSON, UNKNOWN_AUTHOR
from whyfor.store.open import LocalStore
from whyfor.story.commit_lookup import range_ends, require_checkout
from whyfor.story.commit_stories import stories_of
from whyfor.story.lines.file_blame import FileBlamer
from whyfor.story.lines.known_lines import lines_of_stories

_FILES = 3000  # of a range that are told
_RANGES = 300  # of one file that git is asked about one by one


class RangeLines:
    """Counts the lines of changes of one repository."""

    def __init__(self, library: LocalStore, place: GitPlace) -> None:
        self.library = library
        self.folder = require_checkout(place)
        self.blamer = FileBlamer(library, self.folder)
        self._names: dict[int, str] = {}  # agents, by session

    def counts(self, revisions: str) -> RangeCounts:
        """Return the counts of `A..B`, `A...B` (since they parted) or of one commit, which is
        compared with its first parent. Raises BadInput, NotFound."""
        old, new, single = range_ends(self.library, self.folder, revisions)
        second = ask(self.folder, "rev-parse", "-q", "--verify", f"{new}^2") if single else None
        if second is not None:
            single = False  # a merge: its lines are those of the commits it brings
        if single:
            return RangeCounts(old, new, list(self._of_commit(new)))
        assert old is not None
        return RangeCounts(old, new, [counts for counts, _ in self.files(old, new)])

    def _of_commit(self, sha: str) -> Iterator[FileCounts]:
        """The files of one commit, by the answer that its page gives."""
        told = stories_of(self.library, self.folder, [sha])[0]
        repository = self.blamer.repository
        lines = lines_of_stories(self.library, repository, [told]) if repository else {}
        known = lines.get(sha)
        writers = {file.path: file.by_line() for file in known.files} if known else {}
        rest = PERSON if known is not None and self.blamer.may_infer(known) else UNKNOWN_AUTHOR
        looked = dict(read_line_changes(self.folder, [sha])).get(sha, [])
        judged = {change.path: change.added_lines for change in looked}
        for change in dict(read_counted_changes(self.folder, [sha])).get(sha, []):
            found = _counts(change)
            own = writers.get(change.path, {})
            for line in sorted(change.added_lines):
                noted = self.blamer.noted(own.get(line), sha, change.path, line)
                if noted is not None:
                    found.count(noted.kind, noted.agent)
                    continue
                if line not in own:
                    plain = change.plain and line in judged.get(change.path, ())
                    found.count(rest if plain else UNKNOWN_AUTHOR, "")
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

    def files(self, old: str, new: str) -> Iterator[tuple[FileCounts, list[BlameRow]]]:
        """Yield each file in which two commits differ, with its added lines. Raises BadInput if
        there are too many."""
        changes = compare_trees(self.folder, old, new, [], counted=True)
        if len(changes) > _FILES:
            raise BadInput(f"{len(changes):,} files differ", "Ask about a smaller range.")
        for change in changes:
            yield self._of_file(new, change)

    def _of_file(self, commit: str, change: LineChange) -> tuple[FileCounts, list[BlameRow]]:
        """One file of a range: each added line by the commit that git blames for it."""
        found = _counts(change)
        added: list[BlameRow] = []
        if not change.plain:
            found.unknown = change.plus
        elif change.plus:
            rows = {row.line: row for row in self._blamed(commit, change)}
            added = [rows[line] for line in sorted(change.added_lines)]
            for row in added:
                found.count(row.who.kind, row.who.agent)
        return found, added

    def _blamed(self, commit: str, change: LineChange) -> list[BlameRow]:
        ranges = [f"-L{first},{first + count - 1}" for first, count in change.added]
        some = ranges if len(ranges) <= _RANGES else []
        data = blame_porcelain(self.folder, commit, change.path, some)
        return self.blamer.with_writers(list(read_porcelain(data)))


def _counts(change: LineChange) -> FileCounts:
    if change.binary:
        return FileCounts(change.path, None, None, {})
    return FileCounts(change.path, change.plus, change.removed, {})
