"""Segments as compressed objects named by their SHA-256: in a directory here, in any object store
later."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Container, Iterable, Iterator
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from whyfor.files import sync
from whyfor.model.errors import StoreError
from whyfor.store.address import Merged, follow_merges, parse_address
from whyfor.store.journal import Journal

if TYPE_CHECKING:
    import zstandard

LEVEL = 1  # 3 saves a tenth of the space for half as much CPU again
MAX_SEGMENT = 256 << 20  # capped before decompression: an object that claims more is not ours
JOURNAL = "journal.jsonl"  # beside the segments: it knows what was merged into what
_NEW = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
_AT_HAND = 8  # merged objects: their parts are asked for one by one
_TRIES = 3  # a merge may move what is being looked for


class Blobs(Protocol):
    def put(self, content: bytes) -> str:
        """Store the content as an object of its own and return its SHA-256."""

    def get(self, address: str) -> bytes: ...

    def has(self, address: str) -> bool: ...

    def remove(self, digests: Iterable[str]) -> None:
        """Delete objects whose content was merged into others."""

    def keep_only(self, digests: Container[str]) -> int:
        """Delete every object but these, and half-written files; return how many bytes were
        freed."""

    def digests(self) -> Iterator[str]:
        """Yield the digest of every object."""

    def flush(self) -> None:
        """Sync to disk: everything put before this call survives a power loss."""

    def size(self) -> int:
        """Return the bytes used on disk."""


class FolderBlobs:
    """Objects in a local directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._compressor: zstandard.ZstdCompressor | None = None
        self._unsynced: list[Path] = []
        self._safe: set[Path] = set()  # folders whose own names survive a power loss
        self._at_hand: OrderedDict[str, bytes] = OrderedDict()
        self._merged: tuple[tuple[int, int], Merged] | None = None

    def put(self, content: bytes) -> str:
        # here, like the two below: an ingest that finds nothing new never pays for them
        import hashlib

        digest = hashlib.sha256(content).hexdigest()
        path = self.folder / _name(digest)
        if not self._whole(digest):
            if not path.parent.is_dir():
                self._safe.discard(path.parent)  # somebody removed it
            self._put(path, content)
        # also if it was there: a run that died may have put it and never synced
        self._unsynced.append(path)
        return digest

    def _put(self, path: Path, content: bytes) -> None:
        """Write an object beside its place, then give it its name: it is there as a whole or not
        at all."""
        import zstandard

        if self._compressor is None:
            self._compressor = zstandard.ZstdCompressor(level=LEVEL)  # no checksum: the name is one
        packed = self._compressor.compress(content)
        staged = path.with_name(f"{path.name}#1")
        try:
            with _opened(staged) as file:
                left = memoryview(packed)
                while left:
                    left = left[file.write(left) :]
            staged.replace(path)
        except BaseException:
            with suppress(OSError):
                staged.unlink()
            raise

    def get(self, address: str) -> bytes:
        for _ in range(_TRIES):
            try:
                return self._get(address)
            except FileNotFoundError:
                if (now := self._current(address)) == address:
                    break
                address = now
        raise StoreError(f"segment {address[:12]} is missing", "Run: whyfor doctor")

    def _get(self, address: str) -> bytes:
        name, start, size = parse_address(address)
        if size is None:
            return self._object(name)
        content = self._at_hand.get(name)
        if content is None:
            content = self._at_hand[name] = self._object(name)
            if len(self._at_hand) > _AT_HAND:
                self._at_hand.popitem(last=False)
        self._at_hand.move_to_end(name)
        if start + size > len(content):
            raise StoreError(
                f"segment {name[:12]} is too short for what was merged into it",
                "Run: whyfor doctor",
            )
        return content[start : start + size]

    def _object(self, digest: str) -> bytes:
        return unpack_object(digest, (self.folder / _name(digest)).read_bytes())

    def has(self, address: str) -> bool:
        return self._is_there(address) or self._is_there(self._current(address))

    def _is_there(self, address: str) -> bool:
        return (self.folder / _name(parse_address(address).object)).is_file()

    def _current(self, address: str) -> str:
        """Return where the bytes are now; the caller may hold an address from before a merge."""
        journal = Journal(self.folder.with_name(JOURNAL))
        try:
            found = journal.path.stat()
        except FileNotFoundError:
            return address
        stamp = (found.st_size, found.st_mtime_ns)
        if self._merged is None or self._merged[0] != stamp:
            self._merged = stamp, journal.merged()
        return follow_merges(address, self._merged[1])

    def _whole(self, digest: str) -> bool:
        """Return whether the object exists and is intact. After a power loss, one that was never
        synced may be empty or torn."""
        try:
            self._object(digest)
        except (FileNotFoundError, StoreError):
            return False
        return True

    def remove(self, digests: Iterable[str]) -> None:
        for digest in digests:
            (self.folder / _name(digest)).unlink(missing_ok=True)

    def keep_only(self, digests: Container[str]) -> int:
        freed = 0
        for path in self.folder.glob("*/*"):
            if path.name.removesuffix(".zst") not in digests:
                freed += path.stat().st_size
                path.unlink()
        return freed

    def digests(self) -> Iterator[str]:
        for path in self.folder.glob("*/*.zst"):
            yield path.name.removesuffix(".zst")

    def move(self, digests: Iterable[str], folder: Path) -> None:
        """Move objects to another directory, under the same names."""
        for digest in digests:
            target = folder / _name(digest)
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            (self.folder / _name(digest)).rename(target)

    def flush(self) -> None:
        """Sync objects and directories. The first batch of this process also syncs the directory's
        own name, in case the process that created it died."""
        folders = {path.parent for path in self._unsynced}
        for path in self._unsynced:
            sync(path)
        above = {self.folder, self.folder.parent} if folders - self._safe else set()
        for folder in folders | above:
            sync(folder)
        self._safe |= folders
        self._unsynced.clear()

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.folder.glob("*/*"))


def unpack_object(digest: str, packed: bytes, most: int = MAX_SEGMENT) -> bytes:
    """Return the content of an object. Raises StoreError if it is damaged, if it is not what its
    name says, or if it claims to have more than `most` bytes."""
    import hashlib

    import zstandard

    try:
        if zstandard.get_frame_parameters(packed).content_size > most:
            raise StoreError(f"segment {digest[:12]} claims to be too large", "Run: whyfor doctor")
        content = zstandard.ZstdDecompressor().decompress(packed, max_output_size=most)
    except zstandard.ZstdError as error:
        raise StoreError(
            f"segment {digest[:12]} is damaged: {error}", "Run: whyfor doctor"
        ) from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise StoreError(
            f"segment {digest[:12]} does not hold what its name says", "Run: whyfor doctor"
        )
    return content


def _opened(staged: Path) -> FileIO:
    """Open a new file; make the folder it is in if that is not there yet."""
    try:
        descriptor = os.open(staged, _NEW, 0o600)
    except FileNotFoundError:
        staged.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(staged, _NEW, 0o600)
    return FileIO(descriptor, "wb")


def _name(digest: str) -> str:
    """Spread objects over sixteen directories: enough for a million objects, few enough to sync
    with every batch."""
    return f"{digest[:1]}/{digest}.zst"
