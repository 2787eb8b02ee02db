"""Why lines are there, and who removed a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from whyfor.git.blame import BlameOptions, blame_porcelain, read_porcelain
from whyfor.git.history import CommitLimits, commits
from whyfor.git.line_changes import LineChange, compare_trees, read_line_changes, read_texts
from whyfor.git.place import GitPlace
from whyfor.model.blame import NOT_COMMITTED, BlameRow, LineWho
from whyfor.model.errors import NotFound
from whyfor.model.stories import CommitStory, stored_commit
from whyfor.model.why import EarlierLine, GoneText, LineReason, SessionHint
from whyfor.store.open import LocalStore
from whyfor.story.lines.compare import Hunk
from whyfor.story.lines.file_blame import BlameTarget, FileBlamer, repository_path
from whyfor.story.lines.known_lines import story_parts
from whyfor.story.lines.text_edits import text_lines

_LEVELS = 2  # how many earlier versions of a place are told
_EARLIER = 4  # lines of each
_COMMITS = 3000  # that are searched for a removed text
_CALL = 200  # events around an edit among which its call is


class ReasonReader:
    """Tells why lines of a repository are there."""

    def __init__(self, library: LocalStore, place: GitPlace) -> None:
        self.library = library
        self.place = place
        self.blamer = FileBlamer(library, place)

    def reasons(self, target: BlameTarget, first: int, last: int) -> list[LineReason]:
        """Return why lines are there, those of one turn together. Raises what blame raises."""
        options = BlameOptions(ranges=(f"{first},{last}",))
        found = self.blamer.blame(target, options)
        return self.reasons_of(found.path, found.rows, target)

    def reasons_of(
        self, path: str, lines: Sequence[BlameRow], target: BlameTarget | None = None
    ) -> list[LineReason]:
        """The same for lines that were blamed; `target` is the file of those not committed."""
        runs: list[list[BlameRow]] = []
        for row in lines:
            if runs and _same(runs[-1][-1], row):
                runs[-1].append(row)
            else:
                runs.append([row])
        return [self._reason(target, path, rows) for rows in runs]

    def _reason(self, target: BlameTarget | None, path: str, rows: list[BlameRow]) -> LineReason:
        row = rows[0]
        who = row.who
        committed = row.commit != NOT_COMMITTED
        earlier = self._earlier(row, _LEVELS) if committed else self._replaced(target, row)
        told = self._story(row.commit) if committed else None
        return LineReason(
            path=path,
            rows=rows,
            who=who,
            question=self._question(who),
            closing=self._closing(who),
            tool=self._tool(who),
            annotation=told.annotation if told else None,
            history=list(earlier),
            nearby=_nearby(told) if told and not who.agent else [],
            resume=f"whyfor restore {row.commit[:10]}" if told and story_parts(told) else None,
        )

    def _story(self, sha: str) -> CommitStory | None:
        kept = self.library.checkpoints.of_commits([sha]).get(sha)
        if kept is not None and kept.parts:
            return CommitStory(stored_commit(kept), kept, None)
        try:
            return self.blamer.judged_stories([sha])[0]
        except NotFound:
            return None

    def _question(self, who: LineWho) -> str | None:
        if who.writer is None or who.asked is None:
            return None
        return self.blamer.turns.question(who.writer.session, who.asked)

    def _closing(self, who: LineWho) -> str | None:
        if who.writer is None or who.asked is None:
            return None
        return self.blamer.turns.closing(who.writer.session, who.asked)

    def _tool(self, who: LineWho) -> str | None:
        """The name of the tool whose call wrote a line."""
        writer = who.writer
        if writer is None or writer.call is None or not writer.seq:
            return None
        talk = self.library.conversation
        refs = talk.call_refs(writer.session, max(0, writer.seq - _CALL), writer.seq)
        seqs = [ref.seq for ref in refs if ref.kind == "tool.call" and ref.ident == writer.call]
        found = talk.events_at(writer.session, seqs[-1:], 0)
        return found[0].name if found else None

    # -- what stood there before -----------------------------------------------------------------

    def _earlier(self, row: BlameRow, levels: int) -> Iterator[EarlierLine]:
        """Yield the lines that the commit of a line replaced by it, then what those replaced."""
        folder = self.blamer.folder
        parent = f"{row.commit}^"
        changes = compare_trees(folder, parent, row.commit, [row.path])
        hunks = chain.from_iterable(change.hunks for change in changes)
        yield from self._went(_hunk_with(hunks, row.old), parent, row.path, levels)

    def _replaced(self, target: BlameTarget | None, row: BlameRow) -> Iterator[EarlierLine]:
        """Yield the same for a line that is not committed."""
        if target is None:
            return
        found, hunks = self.blamer.pending(target)
        if found.tree is not None:
            hunk = _hunk_with(hunks, row.old)
            yield from self._went(hunk, found.tree.commit, found.path, _LEVELS)

    def _went(
        self, hunk: Hunk | None, commit: str, path: str, levels: int
    ) -> Iterator[EarlierLine]:
        """Yield the lines of a commit that a change took out of a file, then what those
        replaced."""
        if hunk is None or not hunk[3]:
            return
        ranges = [f"-L{hunk[2]},{hunk[2] + min(hunk[3], _EARLIER) - 1}"]
        data = blame_porcelain(self.blamer.folder, commit, path, ranges)
        rows = self.blamer.with_writers(list(read_porcelain(data)))
        for before in rows:
            yield EarlierLine(before.commit, before.time, before.summary, before.text, before.who)
        if levels > 1 and rows:
            yield from self._earlier(rows[0], levels - 1)

    # -- what is gone ----------------------------------------------------------------------------

    def gone(self, text: str, target: BlameTarget | None) -> GoneText:
        """Return who removed a text last, from a file or from any. Raises NotFound if no commit
        that can be reached removed it."""
        folder = self.blamer.folder
        paths: tuple[str, ...] = ()
        if target is not None:
            paths = (f":(literal){repository_path(folder, target.cwd, target.file)}",)
        listed = commits(folder, ["HEAD"], limit=_COMMITS, among=CommitLimits(paths=paths))
        for sha, change, line in self._removals(folder, [c.sha for c in reversed(listed)], text):
            return self._gone(sha, change, text, line)
        where = f" from {target.file}" if target else ""
        raise NotFound(
            f"no commit here removed {text[:60]!r}{where}",
            "It may still stand there, or was never committed. Search sessions: whyfor search",
        )

    def _removals(
        self, folder: GitPlace, shas: Sequence[str], text: str
    ) -> Iterator[tuple[str, LineChange, str]]:
        """Yield the commits that leave fewer places with a text, newest first."""
        for first in range(0, len(shas), 50):
            batch = shas[first : first + 50]
            found = dict(read_line_changes(folder, batch, containing=text))
            for sha in batch:
                for change in found.get(sha, ()):
                    line = _removed_line(folder, change, text)
                    if line is not None:
                        yield sha, change, line

    def _gone(self, sha: str, change: LineChange, text: str, line: str) -> GoneText:
        told = self.blamer.judged_stories([sha])[0]
        who = LineWho("unknown")
        repository = self.blamer.repository
        if repository is not None and story_parts(told):
            from whyfor.story.lines.commit_lines import CommitSource, LineReader  # here: rarely

            reader = LineReader(self.library, repository.folder, repository.folders)
            source = CommitSource(told.commit, story_parts(told))
            writer = reader.remover(source, change, text)
            if writer is not None:
                self.blamer.turns.expect_writers([writer])
                who = self.blamer.who((writer, "exact"), inferred=False)
        return GoneText(
            path=change.path,
            text=line,
            commit=sha,
            time=told.commit.authored_at // 1000,
            summary=told.commit.subject,
            who=who,
            question=self._question(who),
            closing=self._closing(who),
            resume=f"whyfor restore {sha[:10]}" if story_parts(told) else None,
        )


def _same(one: BlameRow, other: BlameRow) -> bool:
    return one.commit == other.commit and one.who == other.who


def _hunk_with(hunks: Iterable[Hunk], line: int) -> Hunk | None:
    """Return the hunk in which a line comes."""
    return next((hunk for hunk in hunks if hunk[0] <= line < hunk[0] + hunk[1]), None)


def _nearby(told: CommitStory) -> list[SessionHint]:
    return [
        SessionHint(str(hint["agent"]), str(hint["session_id"]), str(hint.get("why", "")))
        for hint in told.nearby
    ]


def _removed_line(folder: GitPlace, change: LineChange, text: str) -> str | None:
    """The first line with a text that a change took out of a file; None if as many stay."""
    texts = read_texts(folder, [change.old_blob, change.blob])
    before, after = texts.get(change.old_blob, ""), texts.get(change.blob, "")
    if before.count(text) <= after.count(text):
        return None
    lines = text_lines(before)
    for _, _, first, count in change.hunks:
        for line in lines[first - 1 : first - 1 + count]:
            if text in line:
                return line
    return next((line for line in lines if text in line), None)
