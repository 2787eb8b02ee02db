"""Which turn wrote each line of a file: git says which commit, the lines of that commit say which
edit."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from whyfor.agents import AGENTS
from whyfor.git.blame import (
    BlamedLine,
    BlameOptions,
    TreeFile,
    blame_porcelain,
    find_file,
    read_porcelain,
)
from whyfor.git.history import head_commit
from whyfor.git.identity import identify
from whyfor.git.line_changes import LineChange, read_texts
from whyfor.git.place import GitDir, GitPlace, shallow_edge
from whyfor.git.worktree import blob_name
from whyfor.model.blame import (
    INFERRED_PERSON,
    NOBODY,
    NOT_COMMITTED,
    BlameRow,
    FileBlame,
    LineWho,
)
from whyfor.model.checkpoints import Part
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.lines import AGENT, MODIFIED_LINE, CommitLines, LineWriter
from whyfor.model.paths import to_text
from whyfor.model.stories import Commit, CommitStory, stored_commit
from whyfor.model.times import DAY
from whyfor.store.open import LocalStore
from whyfor.story.commit_lookup import require_checkout, require_commit
from whyfor.story.lines.compare import Hunk, changed_hunks, same_blocks
from whyfor.story.lines.imported_notes import LineNotes, has_line_notes, load_line_notes
from whyfor.story.lines.known_lines import story_parts
from whyfor.story.lines.text_edits import text_lines
from whyfor.story.lines.turn_authors import TurnReader
from whyfor.story.repositories import Repository, repository_at

if TYPE_CHECKING:
    from whyfor.story.lines.lost_originals import LostOriginals

LINES_MAX = 100_000  # of a file that are told at once
_BYTES_MAX = 64 << 20
_SESSIONS = 40  # that may have written what is not committed yet
_LFS = "version https://git-lfs.github.com/spec/"
_RANGE = re.compile(r"(\d+)|(\d*),([+-]?)(\d*)")
_SEVERAL = "whyfor blame FILE -L 1,2000"


class BlameTarget(msgspec.Struct, frozen=True):
    """What is asked about: a file as the user names it, at a revision or as it is now."""

    file: str
    cwd: Path
    revision: str | None = None
    contents: str | None = None  # the text of the file, if it is not saved yet


class TargetFile(msgspec.Struct, frozen=True):
    """The file of a target: where it is, what git has of it, and how it is now."""

    folder: GitPlace
    path: str
    tree: TreeFile | None  # None: git does not have it
    text: str | None  # None: as git has it


# -- the file ------------------------------------------------------------------------------------


def find_target(library: LocalStore, target: BlameTarget, folder: GitPlace) -> TargetFile:
    """Return the file that is asked about. Raises BadInput for a path outside the repository and
    for what is no text, NotFound for a revision or a file that is not there."""
    path = repository_path(folder, target.cwd, target.file)
    if target.revision is None and target.contents is None and not isinstance(folder, GitDir):
        text = _saved(Path(folder) / path, path)
    else:
        text = target.contents
    commit = _commit(library, target.revision, folder)
    tree = find_file(folder, commit, path) if commit else None
    if tree is None and text is None:
        where = target.revision or "HEAD"
        raise NotFound(f"{path} is not in {where}", _gone_hint(folder, commit, path))
    return TargetFile(folder, path, tree, text)


def _gone_hint(folder: GitPlace, commit: str | None, path: str) -> str:
    """Return where a file is that is not in a commit: in an older one, or nowhere."""
    from whyfor.git.file_versions import file_history  # here: such a file is rare

    found = file_history(folder, [commit], path, limit=1) if commit else None
    if found is None or not found.versions:
        return "No earlier commit has a file of this name. Its commits: git log --all -- FILE"
    if found.renamed:
        return f"It was renamed. Ask about {found.renamed}"
    last = found.versions[0].sha[:8]
    return f"It was removed. As it was: whyfor blame {shlex.quote(path)} {last}"


def _commit(library: LocalStore, revision: str | None, folder: GitPlace) -> str | None:
    if revision is not None:
        return require_commit(library, revision, folder)
    return head_commit(folder)


def repository_path(folder: GitPlace, cwd: Path, file: str) -> str:
    """Return the path of a file from the top of its repository. Raises BadInput if it is not
    inside."""
    if isinstance(folder, GitDir):
        return os.path.normpath(file)
    top = Path(os.path.realpath(folder))
    named = Path(os.path.normpath(cwd / file))
    # a link is named itself; what leads to it is resolved, as git does
    whole = Path(os.path.realpath(named.parent)) / named.name
    if "\0" in file or whole == top or not whole.is_relative_to(top):
        raise BadInput(f"{file} is not a file in this repository", f"Its top is {top}.")
    return to_text(whole.relative_to(top)).replace(os.sep, "/")


def _saved(at: Path, path: str) -> str | None:
    """The file as it is in the work tree; None if it is not there. Only a plain file is read."""
    try:
        found = at.lstat()
    except (OSError, ValueError):
        return None
    if stat.S_ISLNK(found.st_mode):
        raise BadInput(f"{path} is a symbolic link", "Name the file that it points to.")
    if stat.S_ISDIR(found.st_mode):
        raise BadInput(f"{path} is a directory", "Name a file in it.")
    if not stat.S_ISREG(found.st_mode):
        raise BadInput(f"{path} is not a plain file", "Only the lines of text files have writers.")
    if found.st_size > _BYTES_MAX:
        raise BadInput(f"{path} is too large", f"Lines are told up to {_BYTES_MAX >> 20} MB.")
    try:
        data = at.read_bytes()
    except OSError as error:
        raise NotFound(
            f"{path} cannot be read: {error.strerror}", "Check its permissions."
        ) from None
    if b"\0" in data[:8000]:
        raise _no_text(path)
    return data.decode("utf-8", "replace")


def _no_text(path: str) -> BadInput:
    return BadInput(f"{path} is not text", f"Commits that changed it: whyfor log -- {path}")


# -- lines ---------------------------------------------------------------------------------------


class FileBlamer:
    """Tells of the lines of files of one repository. What it had to compute is in `fresh`."""

    def __init__(self, library: LocalStore, place: GitPlace) -> None:
        self.library = library
        self.place = place
        self.fresh: dict[str, tuple[CommitLines, Sequence[Part]]] = {}
        self.turns = TurnReader(library)

    @cached_property
    def folder(self) -> GitPlace:
        return require_checkout(self.place, "Go to the repository of the file.")

    @cached_property
    def repository(self) -> Repository | None:
        return repository_at(self.library, self.place)

    def blame(self, target: BlameTarget, options: BlameOptions) -> FileBlame:
        """Return the lines of a file with their writers; raises what `find_target` raises."""
        found = find_target(self.library, target, self.folder)
        kept = self._kept_text(found)
        now = kept if found.text is None else text_lines(found.text)
        self._check_size(len(now), options)
        if now == kept and found.tree is not None:
            rows = self._committed(found, options)
        else:
            rows = self._uncommitted(found, options, kept, now)
        notes = []
        if now and now[0].startswith(_LFS):
            notes.append("A pointer of Git LFS: these are the lines of the pointer, not the file.")
        commit = found.tree.commit if found.tree and found.text is None else None
        return FileBlame(found.path, commit, rows, notes)

    def pending(self, target: BlameTarget) -> tuple[TargetFile, list[Hunk]]:
        """Return the file of a target, and where it differs from what git has of it."""
        found = find_target(self.library, target, self.folder)
        if found.text is None or found.tree is None:
            return found, []
        return found, changed_hunks(self._kept_text(found), text_lines(found.text))

    def _kept_text(self, found: TargetFile) -> list[str]:
        if found.tree is None:
            return []
        saved = found.text.encode("utf-8", "replace") if found.text is not None else None
        if saved is not None and blob_name(saved, found.tree.blob) == found.tree.blob:
            return text_lines(found.text or "")  # git has the same: it need not be asked
        texts = read_texts(found.folder, [found.tree.blob])
        if found.tree.blob not in texts:
            raise _no_text(found.path)
        return text_lines(texts[found.tree.blob])

    def _check_size(self, lines: int, options: BlameOptions) -> None:
        if lines > LINES_MAX and not options.ranges:
            raise BadInput(f"the file has {lines:,} lines", f"Ask for some of them: {_SEVERAL}")

    def _committed(self, found: TargetFile, options: BlameOptions) -> list[BlameRow]:
        assert found.tree is not None
        data = blame_porcelain(found.folder, found.tree.commit, found.path, options.arguments())
        lines = list(read_porcelain(data))
        return self.with_writers(lines)

    def _uncommitted(
        self, found: TargetFile, options: BlameOptions, kept: list[str], now: list[str]
    ) -> list[BlameRow]:
        """Lines of a text that git does not have: those it has are blamed, the others replayed."""
        known: dict[int, BlameRow] = {}
        if found.tree is not None:
            arguments = options.arguments(ranges=False)
            data = blame_porcelain(found.folder, found.tree.commit, found.path, arguments)
            known = {row.line: row for row in self.with_writers(list(read_porcelain(data)))}
        origin: dict[int, int] = {}
        for at, to, size in same_blocks(kept, now):
            origin.update({to + step + 1: at + step + 1 for step in range(size)})
        wanted = chosen_lines(options.ranges, len(now))
        fresh = [line for line in range(1, len(now) + 1) if line not in origin]
        writers = self._replayed(found, kept, now, fresh) if set(fresh) & set(wanted) else {}
        rows = []
        for line in wanted:
            if line in origin:
                row = known[origin[line]]
                rows.append(msgspec.structs.replace(row, line=line, text=now[line - 1]))
            else:
                who = self.who(writers.get(line), inferred=False)
                rows.append(_new_row(found.path, line, now[line - 1], who))
        return rows

    def _replayed(
        self, found: TargetFile, kept: list[str], now: list[str], fresh: list[int]
    ) -> dict[int, tuple[LineWriter, str]]:
        """Who wrote the lines that are not committed."""
        repository = self.repository
        if repository is None:
            return {}
        at = max((self.library.sessions.last_ended(agent) or 0 for agent in AGENTS), default=0)
        commit = Commit(NOT_COMMITTED, ("HEAD",), "", "", at, at, "", "")
        parts = []
        for number, last in self.library.sessions.recent(repository.id, at - 31 * DAY, _SESSIONS):
            session = self.library.sessions.by_number([number])[number]
            end = self.library.conversation.last_seq(number)
            parts.append(_open_part(session.agent, session.session_id, last + 1, end))
        added = [(line, 1) for line in fresh]
        change = LineChange(found.path, None, "M", "before", "after", True, added)
        from whyfor.story.lines.commit_lines import CommitSource, LineReader  # here: see below

        reader = LineReader(self.library, repository.folder, repository.folders)
        texts = {"before": "\n".join([*kept, ""]), "after": "\n".join([*now, ""])}
        lines = reader.read_change(CommitSource(commit, parts), change, texts)
        told = {file.path: file.by_line() for file in lines.files}.get(found.path, {})
        self.turns.expect_writers(writer for writer, _ in told.values())
        return told

    # -- writers ---------------------------------------------------------------------------------

    def with_writers(self, lines: Sequence[BlamedLine]) -> list[BlameRow]:
        """Return blamed lines with the turns that wrote them."""
        lines_of = self._lines_of(lines)
        writers: dict[tuple[str, str], dict[int, tuple[LineWriter, str]]] = {}
        for sha, known in lines_of.items():
            for file in known.files:
                writers[sha, file.path] = file.by_line()
                self.turns.expect_writers(file.writers)
        rows = []
        for line in lines:
            commit = line.commit
            known_lines = lines_of.get(commit.sha)
            told = writers.get((commit.sha, line.path), {}).get(line.old)
            inferred = known_lines is not None and self.may_infer(known_lines)
            who = self.noted(told, commit.sha, line.path, line.old)
            rows.append(
                BlameRow(
                    line=line.line,
                    text=line.text,
                    commit=commit.sha,
                    path=line.path,
                    old=line.old,
                    author=commit.author,
                    mail=commit.mail,
                    time=commit.time,
                    summary=commit.summary,
                    who=who or self.who(told, inferred=inferred),
                )
            )
        return rows

    def may_infer(self, lines: CommitLines) -> bool:
        """Return whether lines of a commit that no session wrote must be a person's. A commit at
        the edge of a shallow clone seems to add what is older than it."""
        return lines.inferred and lines.sha not in self._edge

    @cached_property
    def _edge(self) -> frozenset[str]:
        return shallow_edge(self.folder)

    def noted(
        self, told: tuple[LineWriter, str] | None, sha: str, path: str, line: int
    ) -> LineWho | None:
        """Return who wrote a line by another tool's note, where our own records tell nothing
        surer; None if no note does."""
        if self.notes is None or (told is not None and told[1] != "block"):
            return None
        return self.notes.who(sha, path, line)

    @cached_property
    def notes(self) -> LineNotes | None:
        """What was imported of other tools' notes on this project; None if nothing was."""
        home = self.library.settings.home
        if not has_line_notes(home) or isinstance(self.folder, GitDir):
            return None
        return load_line_notes(home, identify(str(self.folder)).identity)

    def _lines_of(self, lines: Sequence[BlamedLine]) -> dict[str, CommitLines]:
        """What is known of the lines of the commits that these come from."""
        times = {line.commit.sha: line.commit.time * 1000 for line in lines}
        stories = self._stories(times)
        places = {(line.commit.sha, line.path) for line in lines if line.commit.sha in stories}
        found = self.library.lines.of_files(places)
        missing = [story for sha, story in stories.items() if sha not in found]
        if missing and self.repository is not None:
            # here: the lines of most commits are known already
            from whyfor.story.lines.commit_lines import CommitSource, LineReader

            reader = LineReader(self.library, self.repository.folder, self.repository.folders)
            sources = [CommitSource(story.commit, story_parts(story)) for story in missing]
            for sha, computed in reader.read(sources).items():
                found[sha] = computed
                if sha not in self._edge:
                    self.fresh[sha] = (computed, story_parts(stories[sha]))
        begun = self.library.sessions.first_started(None) or 0
        left = {sha: at for sha, at in times.items() if sha not in stories and at >= begun - DAY}
        if left and self.repository is not None and self.repository.id:
            found.update(self._lost.lines(left))
        return found

    @cached_property
    def _lost(self) -> LostOriginals:
        from whyfor.story.lines.lost_originals import LostOriginals  # here: it replays

        assert self.repository is not None
        return LostOriginals(self.library, self.repository)

    def _stories(self, times: Mapping[str, int]) -> dict[str, CommitStory]:
        """The stories of commits that have one."""
        kept = self.library.checkpoints.of_commits(times)
        seen = self.library.checkpoints.seen(times)
        found = {}
        for sha, checkpoint in kept.items():
            if checkpoint.parts:
                found[sha] = CommitStory(stored_commit(checkpoint), checkpoint, None)
        unseen = [sha for sha in times if sha not in kept and sha not in seen]
        begun = self._begun() if unseen else None
        new = [sha for sha in unseen if begun is not None and times[sha] >= begun - 31 * DAY]
        for story in self.judged_stories(new) if new else ():
            if story_parts(story):
                found[story.commit.sha] = story
        return found

    def judged_stories(self, shas: list[str]) -> list[CommitStory]:
        """Return the stories of commits, linking those that nobody has looked at."""
        from whyfor.story.commit_stories import stories_of  # here: most commits are linked

        return stories_of(self.library, self.place, shas)

    def _begun(self) -> int | None:
        repository = self.repository
        if repository is None:
            return None
        return self.library.sessions.first_started(repository.id) if repository.id else 0

    def who(self, told: tuple[LineWriter, str] | None, *, inferred: bool) -> LineWho:
        """Return who wrote a line, from what is known of it."""
        if told is None:
            return INFERRED_PERSON if inferred else NOBODY
        if told not in self._whos:
            self._whos[told] = self._who(*told)
        return self._whos[told]

    @cached_property
    def _whos(self) -> dict[tuple[LineWriter, str], LineWho]:
        return {}

    def _who(self, writer: LineWriter, evidence: str) -> LineWho:
        session = self.library.sessions.by_number([writer.session]).get(writer.session)
        if session is None:
            return NOBODY
        asked = self.turns.asked(writer.session, writer.seq, writer.at)
        return LineWho(
            kind=MODIFIED_LINE if evidence == MODIFIED_LINE else AGENT,
            evidence=evidence,
            agent=session.agent,
            session_id=session.session_id,
            model=session.models[0] if len(session.models) == 1 else None,
            turn=asked.turn if asked else None,
            asked=asked,
            writer=writer,
        )


def chosen_lines(ranges: Sequence[str], total: int) -> list[int]:
    """Return the lines that `-L` chooses, by numbers only: of a text that git does not have.
    Raises BadInput for a range that is no numbers, or outside of the text."""
    if not ranges:
        return list(range(1, total + 1))
    found: set[int] = set()
    for text in ranges:
        match = _RANGE.fullmatch(text)
        if match is None:
            raise BadInput(
                f"-L {text} needs a committed file", "Use numbers (-L 3,9), or name a revision."
            )
        first = int(match[1] or match[2] or 1)
        last = int(match[4] or total)
        if match[3] == "+":
            last = first + last - 1
        elif match[3] == "-":
            first, last = max(1, first - last + 1), first
        if not 1 <= first <= max(1, total):
            raise BadInput(f"the file has only {total} lines", "Give a smaller number.")
        found.update(range(min(first, last), min(max(first, last), total) + 1))
    return sorted(found)


def _new_row(path: str, line: int, text: str, who: LineWho) -> BlameRow:
    return BlameRow(
        line=line,
        text=text,
        commit=NOT_COMMITTED,
        path=path,
        old=line,
        author="Not Committed Yet",
        mail="<not.committed.yet>",
        time=0,
        summary=f"Version of {path} from {path}",
        who=who,
    )


def _open_part(agent: str, session_id: str, first: int, last: int) -> Part:
    """What a session did since its last commit."""
    return Part(agent, session_id, "content", "medium", "wrote", last, first, last, 0, 0)
