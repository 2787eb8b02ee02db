"""Who wrote the lines of a commit: the edits of its sessions, replayed from the text before it to
the text in it. One function for every face."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property

import msgspec

from whyfor.agents.tools import names_of
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
from whyfor.story.lines.carry import UNKNOWN, CarriedLine, carried_line
from whyfor.story.lines.earlier import EarlierLines, LinesSince
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
from whyfor.story.links.activity import SessionActivity, WrittenEdit
from whyfor.story.links.attribution import BELOW, FileWrite, traced
from whyfor.story.links.by_content import LOOK_BACK, SLACK
from whyfor.story.links.commits import within_limits
from whyfor.story.links.line_keys import telling
from whyfor.story.links.moves import with_moves
from whyfor.story.links.paths import Places, last_part
from whyfor.story.links.shell_records import activity_of

_BATCH = 40  # commits whose texts are read together
_COMMAND = 8000  # characters of a command by which it is known again


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
    """A commit, the parts that sessions have in it, and where lines come in its files if that is
    known already."""

    commit: Commit
    parts: Sequence[Part]
    changes: Sequence[LineChange] | None = None
    is_whole: bool = True  # the commit is small enough that all of it was looked at


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
        self.earlier = EarlierLines(folder)
        self._acts: dict[int, SessionActivity] = {}
        self._edits: dict[int, dict[str, list[tuple[int, WrittenEdit]]]] = {}
        self._beside: dict[tuple[int, int], tuple[WrittenEdit, ...]] = {}

    def read(self, sources: Sequence[CommitSource]) -> dict[str, CommitLines]:
        """Return what is known of the lines of commits, by commit; those git cannot read are left
        out."""
        found: dict[str, CommitLines] = {}
        told = [source for source in sources if source.parts and not source.commit.is_merge]
        for first in range(0, len(told), _BATCH):
            runs = self._runs(told[first : first + _BATCH])
            wanted: list[str] = []
            for run in runs:
                wanted += run.blobs()
            texts = read_texts(self.folder, wanted)
            for run in runs:
                run.replay(texts)
            self.earlier.load(request for run in runs for request in run.earlier_lines())
            for run in runs:
                found[run.commit.sha] = run.lines()
        return found

    def _runs(self, sources: Sequence[CommitSource]) -> list[_CommitRun]:
        """The commits with what they change, as far as git can read it."""
        unread = [source.commit.sha for source in sources if source.changes is None]
        read = dict(read_line_changes(self.folder, unread))
        found = []
        for source in sources:
            changes = read.get(source.commit.sha) if source.changes is None else source.changes
            if changes is not None:
                found.append(_CommitRun(self, source, changes))
        return found

    def read_change(
        self, source: CommitSource, change: LineChange, texts: dict[str, str]
    ) -> CommitLines:
        """Return the same for one file whose texts are given, by what the change calls them: of
        what is not committed yet."""
        run = _CommitRun(self, source, [change])
        run.replay(texts)
        self.earlier.load(run.earlier_lines())
        return run.lines()

    def remover(self, source: CommitSource, change: LineChange, wanted: str) -> LineWriter | None:
        """Return the last edit for a commit that took a text out of a file; None if none is
        known."""
        run = _CommitRun(self, source, [])
        for edit in reversed(run.edits_of_file(change)):
            self.texts.load({edit.writer: [edit.act.seq]})
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
        self.is_whole = source.is_whole
        self.files = self._written(changes)
        self.drafts: list[_FileRun] = []

    def _written(self, changes: Sequence[LineChange]) -> list[tuple[LineChange, list[SourceEdit]]]:
        """The files that a session wrote, as far as there are not too many."""
        found = []
        looked_at = list(within_limits(changes))
        self.is_whole = self.is_whole and len(looked_at) == len(changes)
        for change in looked_at:
            edits = self.edits_of_file(change) if change.plain and change.added else []
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

    def replay(self, texts: dict[str, str]) -> None:
        """Replay the edits of the files, whose texts are given."""
        self._load_edits()
        for change, edits in self.files:
            if change.blob in texts:
                self.drafts.append(_FileRun(self, change, edits, texts))

    def _load_edits(self) -> None:
        by_session: dict[int, set[int]] = {}
        for _, edits in self.files:
            for edit in edits:
                by_session.setdefault(edit.writer, set()).add(edit.act.seq)
        self.reader.texts.load(by_session)

    def earlier_lines(self) -> list[LinesSince]:
        """What must be known of earlier commits before the lines can be told."""
        asked = [draft.since for draft in self.drafts]
        return [request for request in asked if request is not None]

    def lines(self) -> CommitLines:
        drafts = self.drafts
        for draft in drafts:
            draft.settle()
        gone: dict[str, list[int]] = {}
        every: list[SourceEdit] = []
        for draft in drafts:
            draft.first = len(every)
            for text, owner in draft.replayed.gone:
                gone.setdefault(text, []).append(draft.first + owner)
            every += draft.edits
        files = [draft.file(gone, every) for draft in drafts]
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
        if not known or not self.is_whole:  # of what was not looked at nothing can be inferred
            return False
        spans: list[tuple[int, int, int | None]] = []
        for number, part in zip(self.sessions, self.parts, strict=True):
            if number is not None:
                spans.append((number, part.first, part.last))
                spans += [(child, 0, None) for child in self.reader.children(number)]
        shells = names_of("shell")
        commands = self.store.conversation.commands
        for span in spans:
            seen = self.reader.texts.shells.known_commands(span[0])
            if not traced(_unseen(commands(*span, shells), seen)):
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
        self.since = self._since() if self.older_wrote else None

    def settle(self) -> None:
        """What remains to be done when the lines of earlier commits are known."""
        if self.since is not None:
            self._drop_used(self.run.reader.earlier.added(self.since))
        claim_blanks(self.final, self.replayed.lines, self.added)

    def _told(self) -> list[TextEdit]:
        texts = self.run.reader.texts
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
        lines = _shifted(found.lines, older)
        settle_slides(self.final, lines, self.added)
        gone = [(text, owner + older) for text, owner in found.gone]
        unplaced = [number + older for number in found.unplaced]
        return ReplayedFile(lines, gone, unplaced, found.replayed)

    def _fill_from_older(self, base: Sequence[str], older: int) -> None:
        """Lines that are left may be of edits before that commit which were not in it: a part of a
        file that was committed later, a commit that was split."""
        lines = self.replayed.lines
        left = {at for at in self.added if lines[at].owner == UNKNOWN}
        if not left or not older:
            return
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

    def _older_claims(self) -> list[int]:
        """Lines that are those of edits before the last commit of the session."""
        lines = self.replayed.lines
        old = {number for number, edit in enumerate(self.edits) if not edit.recent}
        return [at for at in self.added if lines[at].owner in old]

    def _since(self) -> LinesSince | None:
        """Which lines of earlier commits must be known; None if none."""
        lines = self.replayed.lines
        times = [self.edits[lines[at].owner].act.at for at in self._older_claims()]
        parents = self.run.commit.parents
        if not times or not parents:
            return None
        paths = tuple(path for path in (self.change.path, self.change.old_path) if path)
        return LinesSince(parents[0], min(times), paths)

    def _drop_used(self, used: Counter[str]) -> None:
        """What an earlier commit has used up is not in this one."""
        for at in self._older_claims():
            line = squeeze(self.final[at])
            if line and used[line] >= self.older_wrote[line]:
                self.replayed.lines[at] = CarriedLine(UNKNOWN)

    def file(self, gone: dict[str, list[int]], every: Sequence[SourceEdit]) -> FileLines:
        """Return the lines that sessions wrote. `gone` has the lines that are missing in other
        files, by the numbers of the edits that wrote them; `every` are the edits of all files."""
        shifted = _shifted(self.replayed.lines, self.first)
        claim_moved(self.final, shifted, sorted(self.added), gone)
        return self._as_file(shifted, every)

    def _as_file(self, lines: Sequence[CarriedLine], every: Sequence[SourceEdit]) -> FileLines:
        writers: dict[LineWriter, int] = {}
        numbers: dict[int, int] = {}  # of writers, by the numbers of edits
        runs: list[list[int]] = []
        end, last = -1, (-1, "")
        for at in sorted(self.added):
            line = lines[at]
            if line.owner < 0:
                continue
            if line.owner not in numbers:
                writer = every[line.owner].as_writer()
                numbers[line.owner] = writers.setdefault(writer, len(writers))
            kind = (numbers[line.owner], line.evidence)
            if (end, last) == (at, kind):
                runs[-1][1] += 1
            else:
                runs.append([at + 1, 1, kind[0], LINE_EVIDENCE.index(kind[1])])
            end, last = at + 1, kind
        return FileLines(
            self.change.path,
            self.change.blob,
            list(writers),
            [LineRun(*run) for run in runs],
            block=bool(self.replayed.unplaced) or not self.replayed.replayed,
        )


def _unseen(commands: Iterable[str], seen: Counter[str]) -> Iterator[str]:
    """The commands of which it is not known what they changed."""
    left = seen.copy()
    for command in commands:
        if left[command[:_COMMAND]] > 0:
            left[command[:_COMMAND]] -= 1
        else:
            yield command


def _shifted(lines: Sequence[CarriedLine], by: int) -> list[CarriedLine]:
    """The same lines, by other numbers of their edits."""
    if not by:
        return list(lines)
    return [carried_line(one.owner + by, one.evidence) if one.owner >= 0 else one for one in lines]


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
