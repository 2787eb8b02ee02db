"""The journal: one line per segment, in the order of capture. Journal and segments together are the
source of truth.

The database can be lost and rebuilt. The journal says which bytes of which file are in which
segment, and which project each directory belonged to, which no transcript says.

Each line ends with its number and a checksum of the text before it: `…,"n":12,"crc":"89abcdef"}`.
Numbers rise by one, so a damaged or deleted line leaves a hole. A line torn by a crash leaves none,
because the next line gets its number. The first line says where the numbers begin. Journals of
older versions have no numbers; their lines are numbered by position up to the first line that has
one.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec

from whyfor.files import replace, sync
from whyfor.model.checkpoints import Checkpoint, Note
from whyfor.model.errors import NewerStore
from whyfor.model.gaps import Gap
from whyfor.model.memory import NoteStatement
from whyfor.model.sessions import Project
from whyfor.model.tasks import TaskIssue, TaskStatement
from whyfor.store.address import follow_merges


class SegmentEntry(
    msgspec.Struct, frozen=True, tag="segment", tag_field="entry", omit_defaults=True
):
    """Bytes [start, end) of one generation of a source, without the gaps, are stored at this
    address."""

    agent: str
    path: str
    generation: int
    start: int
    end: int
    digest: str
    observed_at: int
    framing: str
    session_id: str
    parent: str | None = None
    sidecar: str | None = None
    cwd: str | None = None
    partial: bool = False  # ends inside a line; the next segment repeats these bytes
    position: dict[str, Any] | None = None  # for databases: where the agent's reader continues
    gaps: list[Gap] = []  # what is not stored, in order, by position in the source
    hiding: dict[str, Any] | None = None  # state of the private filter

    @property
    def source(self) -> tuple[str, str]:
        return self.agent, self.path

    @property
    def place(self) -> tuple[int, int]:
        """Where it begins in its source; a later generation comes after all of an earlier one."""
        return self.generation, self.start

    @property
    def size(self) -> int:
        """Its bytes in the source, gaps included."""
        return self.end - self.start


class MergedEntry(msgspec.Struct, frozen=True, tag="merged", tag_field="entry"):
    """The content of these objects, in this order, is now in this object. Every mention of them
    means it."""

    digest: str
    parts: list[tuple[str, int]]  # digests and sizes


class MovedEntry(msgspec.Struct, frozen=True, tag="moved", tag_field="entry"):
    """The agent renamed or compressed the file; it is still the same source."""

    agent: str
    path: str
    to: str

    @property
    def source(self) -> tuple[str, str]:
        return self.agent, self.path

    @property
    def target(self) -> tuple[str, str]:
        return self.agent, self.to


class PlaceEntry(msgspec.Struct, frozen=True, tag="place", tag_field="entry", omit_defaults=True):
    """Which project a folder belonged to when it was looked at."""

    cwd: str
    project: Project
    observed_at: int
    former: list[str] = []  # identities of the same project before it had this one


class CheckpointEntry(msgspec.Struct, frozen=True, tag="checkpoint", tag_field="entry"):
    """The story of a commit. It is stored because git may have deleted the commit when it is needed
    again."""

    checkpoint: Checkpoint


class NoCheckpointEntry(msgspec.Struct, frozen=True, tag="no-checkpoint", tag_field="entry"):
    """The commit has no story any more, because a person or better evidence said so."""

    commit: str


class OverrideEntry(msgspec.Struct, frozen=True, tag="override", tag_field="entry"):
    """A person says that a session belongs to a commit, or does not."""

    commit: str
    agent: str
    session_id: str
    action: str  # link | unlink | undo (what the person said before does not count any more)
    at: int


class NoteEntry(msgspec.Struct, frozen=True, tag="note", tag_field="entry"):
    """What an agent or a person wrote about a commit."""

    commit: str
    by: str
    at: int
    note: Note


class MemoryEntry(msgspec.Struct, frozen=True, tag="memory", tag_field="entry"):
    """What a person or an agent said about a note."""

    statement: NoteStatement


class TaskEntry(msgspec.Struct, frozen=True, tag="task", tag_field="entry"):
    """What a person or a program said of a task."""

    statement: TaskStatement


class IssueEntry(msgspec.Struct, frozen=True, tag="issue", tag_field="entry"):
    """What a tracker said of a task when it was read. It is stored because a tracker says only how
    things are now."""

    issue: TaskIssue


class AliasEntry(msgspec.Struct, frozen=True, tag="alias", tag_field="entry"):
    """A person said that sessions recorded below a path belong to this project."""

    path: str
    project: Project
    at: int


class PauseEntry(msgspec.Struct, frozen=True, tag="pause", tag_field="entry", omit_defaults=True):
    """A person paused recording for a time: of a session, of a repository, or of everything."""

    id: str  # of two entries with one id the later counts: it says when the pause ended
    since: int
    until: int | None = None
    agent: str = ""  # empty with a session: whosever it is
    session_id: str = ""
    repository: str = ""  # the git folder its work trees share
    folders: list[str] = []  # its work trees, also those that are gone by now


class ForgottenEntry(
    msgspec.Struct, frozen=True, tag="forgotten", tag_field="entry", omit_defaults=True
):
    """What a person had forgotten and must never be stored again: names and salted digests, no
    content."""

    at: int
    sessions: list[str] = []  # agent:id; subagents are named too
    commits: list[str] = []  # they have no story, whatever is read
    lost: list[str] = []  # commits that lost theirs with a session
    records: dict[str, list[str]] = {}  # by session, digests of its records
    strings: list[str] = []  # digests of strings that held a text, wherever they come from


Entry = (
    SegmentEntry
    | MergedEntry
    | MovedEntry
    | PlaceEntry
    | CheckpointEntry
    | NoCheckpointEntry
    | OverrideEntry
    | NoteEntry
    | MemoryEntry
    | TaskEntry
    | IssueEntry
    | AliasEntry
    | PauseEntry
    | ForgottenEntry
)


FORMAT = 2  # of the lines; a journal that names a higher one was written by a newer program
# how such a line begins: most need not be read to know that they are none
_MERGED = b'{"entry":"merged"'
_TRAILER = re.compile(rb',"n":(\d{1,18}),"crc":"([0-9a-f]{8})"\}\Z')
_TRAILER_MAX = 48  # bytes
# bytes read from the end to find the last line; four times as many if that is not enough
_TAIL = 64 << 10
_UPGRADE = "Upgrade Whyfor: pip install --upgrade whyfor"
_DAMAGED_SHOWN = 100


class StartEntry(msgspec.Struct, frozen=True, tag="start", tag_field="entry"):
    """The first line of a journal. If another line is first, the lines before it are lost."""

    format: int


_KINDS = frozenset(kind.__struct_config__.tag for kind in (*get_args(Entry), StartEntry))


class JournalMark(msgspec.Struct, frozen=True):
    """The end of the journal as the database remembers it, so that a journal that lost its end is
    noticed."""

    number: int = 0
    checksum: str = ""  # of the last numbered line; empty in a journal without numbers
    size: int = 0
    mtime: int = 0


class JournalCheck(msgspec.Struct):
    """The result of reading a whole journal: how many lines it has, and which are damaged or
    missing."""

    lines: int = 0
    damaged: list[int] = []  # line numbers in the file, from 1; the first hundred
    damaged_lines: int = 0
    missing: int = 0  # numbers that no line has
    first: int = 1  # the number the journal begins with
    end: JournalMark = JournalMark()

    @property
    def whole(self) -> bool:
        return not self.damaged_lines and not self.missing


class JournalLine(msgspec.Struct, frozen=True):
    """One line as read. Without an entry it is torn or damaged; without a checksum an older version
    wrote it."""

    place: int  # line number in the file
    number: int | None = None
    checksum: str = ""
    entry: Entry | StartEntry | None = None
    torn: bool = False  # as if a crash had cut it off


class Journal:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending: list[bytes] = []
        self._end: JournalMark | None = None  # as this object left it

    def add(self, entry: Entry) -> None:
        self._pending.append(msgspec.json.encode(entry))

    def forget_pending(self) -> None:
        self._pending.clear()

    # -- writing ---------------------------------------------------------------------------------

    def flush(self) -> None:
        """Append the pending entries with one write and sync the file."""
        if not self._pending:
            return
        end = self.end()
        bodies = self._pending
        if not end.size:
            bodies = [msgspec.json.encode(StartEntry(FORMAT)), *bodies]
        block, number, checksum = _numbered(bodies, end.number + 1)
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            if os.lseek(fd, 0, os.SEEK_END):
                os.lseek(fd, -1, os.SEEK_END)
                if os.read(fd, 1) != b"\n":
                    # a crash tore the last line: close it, so that it spoils nothing
                    block = b"\n" + block
            while block:
                block = block[os.write(fd, block) :]
            os.fsync(fd)
            found = os.fstat(fd)
        finally:
            os.close(fd)
        self._end = JournalMark(number, checksum, found.st_size, found.st_mtime_ns)
        self._pending = []

    def cut_back(self, mark: JournalMark) -> None:
        """Take back what this object appended since the mark was made."""
        if not self.path.exists():
            return
        with self.path.open("r+b") as file:
            file.truncate(mark.size)
            os.fsync(file.fileno())
        self._end = None

    def rewrite(self, entries: Iterable[Entry], after: int | None = None) -> None:
        """Replace the whole journal atomically.

        Numbers continue from where they were, or from `after`, so that a database that remembers
        the old journal can tell that it is older.
        """
        bodies = [msgspec.json.encode(entry) for entry in (StartEntry(FORMAT), *entries)]
        last = self.end().number if after is None else after
        block, number, checksum = _numbered(bodies, last + 1)
        replace(self.path, block)
        sync(self.path.parent)
        found = self.path.stat()
        self._end = JournalMark(number, checksum, found.st_size, found.st_mtime_ns)

    # -- how it ends -----------------------------------------------------------------------------

    def end(self) -> JournalMark:
        """Return the number and checksum of the last numbered line, with the file's size and time;
        zeros if there is no journal."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return JournalMark()
        known = self._end
        if known is not None and (known.size, known.mtime) == (found.st_size, found.st_mtime_ns):
            return known
        number, checksum = self._last_number()
        return JournalMark(number, checksum, found.st_size, found.st_mtime_ns)

    def ends_at(self, mark: JournalMark) -> bool:
        """Return whether nothing was added or lost since the mark was made."""
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return mark.number == 0
        if (found.st_size, found.st_mtime_ns) == (mark.size, mark.mtime):
            return True
        end = self.end()
        return (end.number, end.checksum) == (mark.number, mark.checksum)

    def _last_number(self) -> tuple[int, str]:
        """Return the number and checksum of the last intact line; for a journal without numbers,
        its line count."""
        with self.path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            span = _TAIL
            while True:
                start = max(0, size - span)
                file.seek(start)
                for line in reversed(file.read(size - start).split(b"\n")):
                    if found := _trailer(line):
                        return found
                if start == 0:
                    break
                span *= 4
        return sum(1 for line in self._lines() if line.strip()), ""

    # -- reading ---------------------------------------------------------------------------------

    def entries(self) -> Iterator[Entry]:
        """Yield the entries in order, segments with their current addresses. Damaged lines are
        skipped; `check` reports them."""
        return (entry for _, entry in self.numbered_entries())

    def numbered_entries(self, after: int = 0) -> Iterator[tuple[int, Entry]]:
        """Yield the entries after the number `after`, each with its number."""
        if not self.path.exists():
            return
        merged = self.merged()
        number = 0
        for line in self.lines():
            number = number + 1 if line.number is None else line.number
            entry = line.entry
            if entry is None or isinstance(entry, StartEntry) or number <= after:
                continue
            if (
                isinstance(entry, SegmentEntry)
                and (now := follow_merges(entry.digest, merged)) != entry.digest
            ):
                entry = msgspec.structs.replace(entry, digest=now)
            yield number, entry

    def lines(self) -> Iterator[JournalLine]:
        """Yield every line that is not empty, also damaged ones. Raises NewerStore if a newer
        version wrote one."""
        decoder = msgspec.json.Decoder(Entry | StartEntry)
        for place, raw in enumerate(self._lines(), 1):
            line = raw.rstrip(b"\r\n")
            if not line:
                continue
            trailer = _trailer(line)
            try:
                entry = decoder.decode(line)
            except (
                msgspec.DecodeError,
                UnicodeDecodeError,
            ):  # ValidationError, of a wrong shape, is one too
                if trailer is not None:
                    _refuse_newer(line)
                entry = None
            if trailer is None and _has_number(line):
                entry = None  # its checksum is wrong
            if isinstance(entry, StartEntry) and entry.format > FORMAT:
                raise NewerStore(
                    f"the journal is of format {entry.format}, this program knows {FORMAT}",
                    _UPGRADE,
                )
            number, checksum = trailer or (None, "")
            yield JournalLine(
                place, number, checksum, entry, torn=entry is None and _looks_torn(line)
            )

    def _lines(self) -> Iterator[bytes]:
        try:
            with self.path.open("rb") as file:
                yield from file
        except FileNotFoundError:
            return

    def check(self) -> JournalCheck:
        """Read the whole journal and report what is damaged or missing."""
        found = JournalCheck(damaged=[], end=self.end())
        expected: int | None = None  # known from the first line on that has a number
        of_before = 0  # lines that have none
        doubtful: list[int] = []  # lines that say nothing: torn if no number is missing after them
        for line in self.lines():
            found.lines += 1
            if line.number is None:
                # Before there were numbers, a line's look alone tells whether a crash tore it.
                if line.entry is None and not (expected is None and line.torn):
                    doubtful.append(line.place)
                of_before += 1
                continue
            if expected is None:
                _add_damaged(found, doubtful)
                doubtful = []
                expected = _first_number(line, of_before, found)
            if line.number != expected:
                found.missing += max(1, line.number - expected)
                _add_damaged(found, doubtful)
            if line.entry is None:  # its checksum is right, its shape is not
                _add_damaged(found, [line.place])
            doubtful = []
            expected = line.number + 1
        self._judge_last(found, doubtful)
        return found

    def _judge_last(self, found: JournalCheck, doubtful: list[int]) -> None:
        """Decide whether the last line was torn by a crash (it has no newline) or damaged later."""
        if doubtful and self._is_torn():
            doubtful = doubtful[:-1]
        _add_damaged(found, doubtful)

    def _is_torn(self) -> bool:
        with self.path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            return file.read(1) != b"\n"

    def bytes(self) -> int:
        """Return how many bytes of transcripts there are to replay."""
        return sum(entry.size for entry in self.entries() if isinstance(entry, SegmentEntry))

    def merged(self) -> dict[str, tuple[str, int, int]]:
        """Return which objects were merged into which; if one was merged twice, the later merge
        counts."""
        found: dict[str, tuple[str, int, int]] = {}
        decoder = msgspec.json.Decoder(MergedEntry)
        for raw in self._lines():
            if not raw.startswith(_MERGED):
                continue
            line = raw.rstrip(b"\r\n")
            if _trailer(line) is None and _has_number(line):
                continue
            try:
                entry = decoder.decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue  # torn by a crash: what it merged is still there
            start = 0
            for digest, size in entry.parts:
                found[digest] = entry.digest, start, size
                start += size
        return found


# -- lines ---------------------------------------------------------------------------------------


def _numbered(bodies: Iterable[bytes], first: int) -> tuple[bytes, int, str]:
    """Return the lines with numbers and checksums added, and the number and checksum of the
    last."""
    lines: list[bytes] = []
    number, checksum = first - 1, ""
    for number, body in enumerate(bodies, first):
        told = b'%b,"n":%d' % (body[:-1], number)
        checksum = f"{zlib.crc32(told):08x}"
        lines.append(b'%b,"crc":"%b"}\n' % (told, checksum.encode()))
    return b"".join(lines), number, checksum


def _trailer(line: bytes) -> tuple[int, str] | None:
    """Return a line's number and checksum; None if it has none or the checksum is wrong."""
    found = _TRAILER.search(line, max(0, len(line) - _TRAILER_MAX))
    if found is None:
        return None
    told = line[: found.start(2) - len(b',"crc":"')]
    if b"%08x" % zlib.crc32(told) != found[2]:
        return None
    return int(found[1]), found[2].decode()


def _has_number(line: bytes) -> bool:
    return b',"crc":"' in line[-_TRAILER_MAX:]


def _refuse_newer(line: bytes) -> None:
    """Raise NewerStore for an intact line of an unknown kind: a newer version wrote it."""
    try:
        kind = msgspec.json.decode(line)["entry"]
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError):
        return
    if kind not in _KINDS:
        raise NewerStore(f"the journal has an entry this program does not know: {kind!r}", _UPGRADE)


def _first_number(line: JournalLine, of_before: int, found: JournalCheck) -> int:
    """Return the number the first numbered line should have: its own if it is a start, else one
    more than the lines before it, torn ones included."""
    if isinstance(line.entry, StartEntry) and not of_before and line.number is not None:
        found.first = line.number
        return line.number
    return of_before + 1


def _looks_torn(line: bytes) -> bool:
    """Return whether the line is the beginning of an entry and nothing else."""
    known = line[:10] == b'{"entry":"'[: len(line)]
    return known and not line.endswith(b"}") and min(line) >= 0x20


def _add_damaged(found: JournalCheck, places: list[int]) -> None:
    found.damaged_lines += len(places)
    found.damaged += places[: max(0, _DAMAGED_SHOWN - len(found.damaged))]
