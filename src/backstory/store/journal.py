"""The journal: one line per segment, in the order they were captured. With the segments it is the truth.

The database can be lost; the journal says which bytes of which file are in which segment, and what was known of
the folders sessions ran in, which no transcript holds.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from backstory.files import replace, sync
from backstory.model.checkpoints import Checkpoint, Note
from backstory.model.errors import NewerStore
from backstory.model.gaps import Gap
from backstory.model.sessions import Project
from backstory.store.address import current


class SegmentEntry(msgspec.Struct, frozen=True, tag="segment", tag_field="entry", omit_defaults=True):
    """Bytes [start, end) of one generation of a source, less the gaps, are at this address, mostly a digest alone."""

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
    partial: bool = False  # ends inside a line: what follows repeats these bytes
    position: dict[str, Any] | None = None  # for databases: where the agent's reader goes on
    gaps: list[Gap] = []  # what is not kept, in order, by its place in the source
    hiding: dict[str, Any] | None = None  # what must be remembered to know what else is not kept


class MergedEntry(msgspec.Struct, frozen=True, tag="merged", tag_field="entry"):
    """What these objects held is in this one, in this order; wherever they are named, it is meant."""

    digest: str
    parts: list[tuple[str, int]]  # digests and sizes


class MovedEntry(msgspec.Struct, frozen=True, tag="moved", tag_field="entry"):
    """The agent moved or packed the file; it is still the same source."""

    agent: str
    path: str
    to: str


class PlaceEntry(msgspec.Struct, frozen=True, tag="place", tag_field="entry", omit_defaults=True):
    """Which project a folder belonged to when it was looked at."""

    cwd: str
    project: Project
    observed_at: int
    former: list[str] = []  # identities of the same project before it had this one


class CheckpointEntry(msgspec.Struct, frozen=True, tag="checkpoint", tag_field="entry"):
    """The story of a commit as it was found; the commit itself may be gone when it is asked for again."""

    checkpoint: Checkpoint


class NoCheckpointEntry(msgspec.Struct, frozen=True, tag="no-checkpoint", tag_field="entry"):
    """A commit that had a story has none any more: a person said so, or better evidence did."""

    commit: str


class OverrideEntry(msgspec.Struct, frozen=True, tag="override", tag_field="entry"):
    """A person says that a session belongs to a commit, or does not."""

    commit: str
    agent: str
    session_id: str
    action: str  # link | unlink
    at: int


class NoteEntry(msgspec.Struct, frozen=True, tag="note", tag_field="entry"):
    """What an agent or a person wrote about a commit."""

    commit: str
    by: str
    at: int
    note: Note


class AliasEntry(msgspec.Struct, frozen=True, tag="alias", tag_field="entry"):
    """Sessions recorded below a path belong to this project, a person says."""

    path: str
    project: Project
    at: int


class PauseEntry(msgspec.Struct, frozen=True, tag="pause", tag_field="entry", omit_defaults=True):
    """A person wanted nothing recorded from one moment to another: of a session, of a repository, or at all."""

    id: str  # of two entries with one id the later counts: it says when the pause ended
    since: int
    until: int | None = None
    agent: str = ""  # empty with a session: whosever it is
    session_id: str = ""
    repository: str = ""  # the git folder its work trees share
    folders: list[str] = []  # its work trees, also those that are gone by now


class ForgottenEntry(msgspec.Struct, frozen=True, tag="forgotten", tag_field="entry", omit_defaults=True):
    """What a person had forgotten, and what therefore never comes back. Names and salted digests, no content."""

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
    | AliasEntry
    | PauseEntry
    | ForgottenEntry
)


_MERGED = b'{"entry":"merged"'  # how such a line begins: most need not be read to know that they are none


class Journal:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending: list[bytes] = []

    def add(self, entry: Entry) -> None:
        self._pending.append(msgspec.json.encode(entry))

    def flush(self) -> None:
        """Append what is pending with one write, and be sure of it."""
        if not self._pending:
            return
        block = b"\n".join(self._pending) + b"\n"
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            if os.lseek(fd, 0, os.SEEK_END):
                os.lseek(fd, -1, os.SEEK_END)
                if os.read(fd, 1) != b"\n":
                    block = b"\n" + block  # a crash tore the last line: close it, so that it spoils nothing
            while block:
                block = block[os.write(fd, block) :]
            os.fsync(fd)
        finally:
            os.close(fd)
        self._pending.clear()

    def rewrite(self, entries: Iterable[Entry]) -> None:
        """All of it anew, in one step, and be sure of it."""
        replace(self.path, b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries))
        sync(self.path.parent)

    def forget_pending(self) -> None:
        self._pending.clear()

    def bytes(self) -> int:
        """How much there is to replay."""
        return sum(entry.end - entry.start for entry in self.entries() if isinstance(entry, SegmentEntry))

    def merged(self) -> dict[str, tuple[str, int, int]]:
        """Objects that were merged into others; of two that one was merged into, the later counts."""
        found: dict[str, tuple[str, int, int]] = {}
        decoder = msgspec.json.Decoder(MergedEntry)
        if not self.path.exists():
            return found
        with self.path.open("rb") as lines:
            for line in lines:
                if not line.startswith(_MERGED):
                    continue
                try:
                    entry = decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue  # torn by a crash: what it merged is still there, or else `entries` says what it is
                start = 0
                for digest, size in entry.parts:
                    found[digest] = entry.digest, start, size
                    start += size
        return found

    def entries(self) -> Iterator[Entry]:
        """In order; segments by the addresses they have now."""
        decoder = msgspec.json.Decoder(Entry)
        if not self.path.exists():
            return
        merged = self.merged()
        with self.path.open("rb") as lines:
            for line in lines:
                try:
                    entry = decoder.decode(line)
                except msgspec.ValidationError as error:
                    raise NewerStore(
                        f"the journal has an entry this program does not know: {error}",
                        "Upgrade Backstory: pip install --upgrade backstory",
                    ) from None
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue  # torn by a crash; its segment was captured again by the next ingest
                if isinstance(entry, SegmentEntry) and (now := current(entry.digest, merged)) != entry.digest:
                    entry = msgspec.structs.replace(entry, digest=now)
                yield entry
