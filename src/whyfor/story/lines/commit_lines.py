"""Who wrote the lines of a commit: the edits of its sessions, replayed from the text before it to
the text in it. One function for every face."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from whyfor.agents.tools import names_of
from whyfor.git import history
from whyfor.git.line_changes import LineChange, read_line_changes, read_texts
from whyfor.git.place import GitPlace
from whyfor.model.checkpoints import Part
from whyfor.model.lines import (
    LINE_EVIDENCE,
    MODIFIED_LINE,
    CommitLines,
    FileLines,
    LineRun,
    LineWriter,
)
from whyfor.model.stories import Commit
from whyfor.store.protocol import Store
from whyfor.story.lines.carry import UNKNOWN, CarriedLine
from whyfor.story.lines.edit_texts import EditTexts
from whyfor.story.lines.replay import (
    EDITS_MAX,
    ReplayedFile,
    claim_blanks,
    claim_blocks,
    claim_moved,
    replay,
    settle_slides,
)
from whyfor.story.lines.text_edits import TextEdit, text_lines
from whyfor.story.lines.words import squeeze
from whyfor.story.links.activity import SessionActivity, WrittenEdit, activity_of
from whyfor.story.links.attribution import BELOW, FileWrite, traced
from whyfor.story.links.by_content import LOOK_BACK, SLACK
from whyfor.story.links.line_keys import telling
from whyfor.story.links.moves import with_moves
from whyfor.story.links.paths import Places, last_part

_BATCH = 40  # commits whose texts are read together
_FILES = 400  # of a commit whose lines are looked at
_LINES = 60_000  # that a commit may add to be looked at
_BETWEEN = 200  # earlier commits of a file that may have used up what was written


class SourceEdit(msgspec.Struct, frozen=True):
    """One edit of a session that a commit has something of."""

    session: int  # the main session's number
    writer: int  # the number of the session that made it
    act: WrittenEdit
    beside: tuple[WrittenEdit, ...]  # all edits of the same result
    recent: bool  # made since the session's last commit

    def as_writer(self) -> LineWriter:
        act = self.act
        seq = act.seq if self.writer == self.session else BELOW
        return LineWriter(self.session, seq, act.at, act.call, self.writer)


class CommitSource(msgspec.Struct, frozen=True):
    """A commit, and the parts that sessions have in it."""

    commit: Commit
    parts: Sequence[Part]


class LineReader:
    """Computes the lines of commits of one repository."""

    def __init__(
        self,
        store: Store,
        folder: GitPlace,
        folders: Iterable[str],
        activity: Callable[[int], SessionActivity | None] | None = None,
    ) -> None:
        """`activity` says what is known of a session's work already, if anything is."""
        self.store = store
        self._known_activity = activity
        self.folder = folder
        self.places = Places(folders)
        self.texts = EditTexts(store)
        self._acts: dict[int, SessionActivity] = {}
        self._edits: dict[int, dict[str, list[tuple[int, WrittenEdit]]]] = {}
        self._beside: dict[tuple[int, int], tuple[WrittenEdit, ...]] = {}

    def read(self, sources: Sequence[CommitSource]) -> dict[str, CommitLines]:
        """Return what is known of the lines of commits, by commit; those git cannot read are left
        out."""
        found: dict[str, CommitLines] = {}
        told = [source for source in sources if source.parts and not source.commit.is_merge]
        for first in range(0, len(told), _BATCH):
            batch = {source.commit.sha: source for source in told[first : first + _BATCH]}
            changes = dict(read_line_changes(self.folder, batch))
            runs = [_CommitRun(self, batch[sha], changes[sha]) for sha in changes if sha in batch]
            wanted: list[str] = []
            for run in runs:
                wanted += run.blobs()
            texts = read_texts(self.folder, wanted)
            for run in runs:
                found[run.commit.sha] = run.lines(texts)
        return found

    def read_change(
        self, source: CommitSource, change: LineChange, texts: dict[str, str]
    ) -> CommitLines:
        """Return the same for one file whose texts are given, by what the change calls them: of
        what is not committed yet."""
        return _CommitRun(self, source, [change]).lines(texts)

    def remover(self, source: CommitSource, change: LineChange, wanted: str) -> LineWriter | None:
        """Return the last edit for a commit that took a text out of a file; None if none is
        known."""
        run = _CommitRun(self, source, [])
        for edit in reversed(run.edits_of_file(change)):
            self.texts.load(edit.writer, [edit.act.seq])
            place = _told_place(edit)
            told = self.texts.of(edit.writer, edit.beside, place) if place >= 0 else None
            if told is not None and _takes_out(told, wanted):
                return edit.as_writer()
        return None

    def activity(self, session: int) -> SessionActivity:
        """As linking kept it, and what came since."""
        known = self._acts.get(session)
        if known is None and self._known_activity is not None:
            known = self._known_activity(session)
        if known is None:
            known = activity_of(self.store, session)
        self._acts[session] = known
        return known

    def edits_of(self, session: int) -> dict[str, list[tuple[int, WrittenEdit]]]:
        """The edits of a session and its subagents, by the name of the file, each with the number
        of its session."""
        known = self._edits.get(session)
        if known is None:
            known = self._edits[session] = {}
            for writer in (session, *self.children(session)):
                for act in with_moves(self.activity(writer).written):
                    known.setdefault(last_part(act.path), []).append((writer, act))
        return known

    def children(self, session: int) -> list[int]:
        main = self.store.sessions.by_number([session]).get(session)
        if main is None:
            return []
        found = self.store.sessions.children([main.session_id])
        return [child.id for child in found if child.agent == main.agent]

    def beside(self, writer: int, act: WrittenEdit) -> tuple[WrittenEdit, ...]:
        """All edits that the same result tells of, in order."""
        key = (writer, act.seq)
        if key not in self._beside:
            groups: dict[int, list[WrittenEdit]] = {}
            for one in self.activity(writer).written:
                groups.setdefault(one.seq, []).append(one)
            for seq, same in groups.items():
                self._beside[writer, seq] = tuple(same)
        return self._beside.get(key, (act,))


class _CommitRun:
    """One commit."""

    def __init__(
        self, reader: LineReader, source: CommitSource, changes: Sequence[LineChange]
    ) -> None:
        self.reader = reader
        self.store = reader.store
        self.commit = source.commit
        self.parts = source.parts
        names = [(part.agent, part.session_id) for part in source.parts]
        numbers = self.store.sessions.numbers(names)
        self.sessions = [numbers.get(name) for name in names]
        self.files = self._written(changes)

    def _written(self, changes: Sequence[LineChange]) -> list[tuple[LineChange, list[SourceEdit]]]:
        """The files that a session wrote, as far as there are not too many."""
        found = []
        lines = 0
        for change in changes[:_FILES]:
            lines += sum(count for _, count in change.added)
            if lines > _LINES or not change.plain or not change.added:
                continue
            edits = self.edits_of_file(change)
            if edits:
                found.append((change, edits))
        return found

    def edits_of_file(self, change: LineChange) -> list[SourceEdit]:
        """The edits of a file by the sessions of the commit, in order."""
        paths = [path for path in (change.path, change.old_path) if path]
        found: list[SourceEdit] = []
        for number, part in zip(self.sessions, self.parts, strict=True):
            if number is not None:
                for path in paths:
                    found += self._edits_of(number, part, path)
        # A fork has a copy of the calls before it: they are the other session's.
        found.sort(key=lambda edit: self.reader.activity(edit.writer).copied)
        once: dict[tuple[object, ...], SourceEdit] = {}
        for edit in found:
            call = edit.act.call or (edit.writer, edit.act.seq)
            once.setdefault((call, _told_place(edit)), edit)
        listed = sorted(once.values(), key=lambda edit: (edit.act.at, edit.act.seq))
        return listed[-EDITS_MAX:]

    def _edits_of(self, session: int, part: Part, path: str) -> Iterator[SourceEdit]:
        since = self.commit.authored_at - LOOK_BACK
        until = self.commit.committed_at + SLACK
        for writer, act in self.reader.edits_of(session).get(last_part(path), ()):
            own = writer == session
            in_story = since <= act.at <= until and (not own or act.seq <= part.last)
            if not in_story or not self.reader.places.same(act.path, path, foreign=False):
                continue
            recent = act.seq >= part.first if own else act.at >= self._begun(session, part)
            yield SourceEdit(session, writer, act, self.reader.beside(writer, act), recent)

    def _begun(self, session: int, part: Part) -> int:
        return self.store.conversation.time_from(session, part.first) or 0

    def blobs(self) -> list[str]:
        found = []
        for change, _ in self.files:
            found += [change.old_blob, change.blob]
        return found

    # -- lines -----------------------------------------------------------------------------------

    def lines(self, texts: dict[str, str]) -> CommitLines:
        drafts = [
            _FileRun(self, change, edits, texts)
            for change, edits in self.files
            if change.blob in texts
        ]
        gone: dict[str, list[int]] = {}
        offset = 0
        for draft in drafts:
            draft.first = offset
            for text, owner in draft.replayed.gone:
                gone.setdefault(text, []).append(offset + owner)
            offset += len(draft.edits)
        files = [draft.file(gone, drafts) for draft in drafts]
        return CommitLines(
            sha=self.commit.sha,
            begun_at=self.begun_at,
            committed_at=self.commit.committed_at,
            inferred=self.inferred,
            files=[file for file in files if file.runs],
        )

    @cached_property
    def begun_at(self) -> int:
        begun = [
            self._begun(number, part)
            for number, part in zip(self.sessions, self.parts, strict=True)
            if number is not None
        ]
        return min([at for at in begun if at], default=self.commit.committed_at)

    @cached_property
    def inferred(self) -> bool:
        """Whether what no session wrote must be a person's: nothing ran here that writes without
        a trace, and no other session was at work."""
        known = [number for number in self.sessions if number is not None]
        if not known:
            return False
        spans: list[tuple[int, int, int | None]] = []
        for number, part in zip(self.sessions, self.parts, strict=True):
            if number is not None:
                spans.append((number, part.first, part.last))
                spans += [(child, 0, None) for child in self.reader.children(number)]
        shells = names_of("shell")
        commands = self.store.conversation.commands
        if not all(traced(commands(*span, shells)) for span in spans):
            return False
        everyone = [session for session, *_ in spans]
        until = self.commit.committed_at + SLACK
        return not self.store.sessions.others_active(everyone, self.begun_at, until)


class _FileRun:
    """One file of a commit."""

    def __init__(
        self,
        run: _CommitRun,
        change: LineChange,
        edits: list[SourceEdit],
        texts: dict[str, str],
    ) -> None:
        self.run = run
        self.change = change
        self.edits = edits
        self.first = 0  # the number of its first edit among those of all files
        self.final = text_lines(texts[change.blob])
        self.added = {line - 1 for line in change.added_lines if line <= len(self.final)}
        self.told = self._told()
        base = text_lines(texts.get(change.old_blob, ""))
        older = next((at for at, edit in enumerate(edits) if edit.recent), len(edits))
        self.older_wrote: Counter[str] = Counter()  # lines of edits before the last commit
        self.replayed: ReplayedFile = self._recent(base, older)
        self._fill_from_older(base, older)
        claim_blocks(self.final, self.replayed.lines, sorted(self.added), self._writes())
        if self.older_wrote:
            self._drop_used()
        claim_blanks(self.final, self.replayed.lines, self.added)

    def _told(self) -> list[TextEdit]:
        texts = self.run.reader.texts
        by_session: dict[int, list[int]] = {}
        for edit in self.edits:
            by_session.setdefault(edit.writer, []).append(edit.act.seq)
        for session, seqs in by_session.items():
            texts.load(session, seqs)
        found = []
        for edit in self.edits:
            place = _told_place(edit)
            text = texts.of(edit.writer, edit.beside, place) if place >= 0 else None
            found.append(text or TextEdit(edit.act.path, kind="touched"))
        return found

    def _writes(self) -> list[tuple[int, FileWrite]]:
        """What the edits without a place put in, and what all of them took out."""
        loose = set(self.replayed.unplaced)
        found = []
        for number, edit in enumerate(self.edits):
            write = FileWrite.of(edit.act)
            told = self.told[number].kind != "touched" or self.told[number].loose
            if told and number not in loose:
                write = write._replace(added=frozenset())
            found.append((number, write))
        return found

    def _recent(self, base: Sequence[str], older: int) -> ReplayedFile:
        """Replay what was edited since the last commit of the session."""
        found = replay(base, self.told[older:], self.final)
        lines = []
        for line in found.lines:
            owner = line.owner + older if line.owner >= 0 else line.owner
            lines.append(CarriedLine(owner, line.evidence))
        settle_slides(self.final, lines, self.added)
        gone = [(text, owner + older) for text, owner in found.gone]
        unplaced = [number + older for number in found.unplaced]
        return ReplayedFile(lines, gone, unplaced, found.replayed)

    def _fill_from_older(self, base: Sequence[str], older: int) -> None:
        """Lines that are left may be of edits before that commit which were not in it: a part of a
        file that was committed later, a commit that was split."""
        lines = self.replayed.lines
        left = {at for at in self.added if lines[at].owner == UNKNOWN}
        wrote: Counter[str] = Counter()
        for text in self.told[:older]:
            wrote.update(squeeze(line) for line in _new_lines(text))
        wanted = {squeeze(self.final[at]) for at in left}
        if not any(telling(line) for line in wanted & wrote.keys()):
            return
        found = replay(base, self.told, self.final, recent=older)
        settle_slides(self.final, found.lines, self.added)
        for at in left:
            if 0 <= found.lines[at].owner < older:
                lines[at] = found.lines[at]
        self.replayed.unplaced += [number for number in found.unplaced if number < older]
        self.older_wrote = wrote

    def _drop_used(self) -> None:
        """What an earlier commit has used up is not in this one."""
        lines = self.replayed.lines
        old = {number for number, edit in enumerate(self.edits) if not edit.recent}
        claimed = [at for at in self.added if lines[at].owner in old]
        times = [self.edits[lines[at].owner].act.at for at in claimed]
        used = self._used(min(times, default=0))
        for at in claimed:
            line = squeeze(self.final[at])
            if line and used[line] >= self.older_wrote[line]:
                lines[at] = CarriedLine(UNKNOWN)

    def _used(self, since: int) -> Counter[str]:
        """Lines that commits since a time have added to the file, as often as they did."""
        parents = self.run.commit.parents
        if not since or not parents:
            return Counter()
        folder = self.run.reader.folder
        paths = tuple(path for path in (self.change.path, self.change.old_path) if path)
        among = history.CommitLimits(paths=tuple(f":(literal){path}" for path in paths))
        between = history.commits(folder, parents[:1], since=since, limit=_BETWEEN, among=among)
        used: Counter[str] = Counter()
        for _, changed in history.read_changes(folder, [commit.sha for commit in between]):
            for file in changed:
                if file.path in paths:
                    added = (line.decode("utf-8", "replace") for line in file.added)
                    used.update(squeeze(line) for line in added)
        return used

    def file(self, gone: dict[str, list[int]], drafts: Sequence[_FileRun]) -> FileLines:
        """Return the lines that sessions wrote. `gone` has the lines that are missing in other
        files, by the numbers of the edits that wrote them."""
        lines = self.replayed.lines
        shifted = []
        for line in lines:
            owner = line.owner + self.first if line.owner >= 0 else line.owner
            shifted.append(CarriedLine(owner, line.evidence))
        claim_moved(self.final, shifted, sorted(self.added), gone)
        return self._as_file(shifted, drafts)

    def _as_file(self, lines: Sequence[CarriedLine], drafts: Sequence[_FileRun]) -> FileLines:
        every: list[SourceEdit] = []
        for draft in drafts:
            every += draft.edits
        writers: dict[LineWriter, int] = {}
        runs: list[LineRun] = []
        for at in sorted(self.added):
            line = lines[at]
            if line.owner < 0:
                continue
            writer = writers.setdefault(every[line.owner].as_writer(), len(writers))
            evidence = LINE_EVIDENCE.index(line.evidence)
            last = runs[-1] if runs else None
            joins = last is not None and last.first + last.count == at + 1
            if last is not None and joins and (last.writer, last.evidence) == (writer, evidence):
                runs[-1] = msgspec.structs.replace(last, count=last.count + 1)
            else:
                runs.append(LineRun(at + 1, 1, writer, evidence))
        return FileLines(
            self.change.path,
            self.change.blob,
            list(writers),
            runs,
            block=bool(self.replayed.unplaced) or not self.replayed.replayed,
        )


def _told_place(edit: SourceEdit) -> int:
    """Which of the edits of its result it is; -1 if it is none of them."""
    for place, act in enumerate(edit.beside):
        if _is_same(act, edit.act):
            return place
    return -1


def _is_same(act: WrittenEdit, moved: WrittenEdit) -> bool:
    """Whether an edit is the one that counts for a file's new name too."""
    path = moved.old or moved.path
    return act.path in (path, moved.path) and act.added == moved.added


def _takes_out(text: TextEdit, wanted: str) -> bool:
    """Whether an edit leaves fewer places with a text than there were."""
    if text.kind == "gone":
        return True
    before = after = 0
    for piece in text.pieces:
        before += sum(line.count(wanted) for line in piece.old)
        after += sum(line.count(wanted) for line in piece.new)
    whole = text.whole is not None and not any(wanted in line for line in text.whole)
    return before > after or whole


def _new_lines(text: TextEdit) -> list[str]:
    """The lines that an edit put into a file."""
    found = [*(text.whole or ()), *(text.added or ()), *text.loose]
    for piece in text.pieces:
        before = Counter(piece.old)
        for line in piece.new:
            if before[line] > 0:
                before[line] -= 1
            else:
                found.append(line)
    return found


def count_session_lines(lines: CommitLines) -> Counter[int]:
    """Return how many added lines each session wrote; those somebody modified since do not
    count."""
    found: Counter[int] = Counter()
    modified = LINE_EVIDENCE.index(MODIFIED_LINE)
    for file in lines.files:
        for run in file.runs:
            if run.evidence != modified:
                found[file.writers[run.writer].session] += run.count
    return found
