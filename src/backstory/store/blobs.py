"""Segments as compressed, content-addressed objects: a folder here, any object store later."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from backstory.files import sync
from backstory.model.errors import StoreError

if TYPE_CHECKING:
    import zstandard
    from obstore.store import LocalStore

LEVEL = 1  # 3 saves a tenth of the space for half as much CPU again
MAX_SEGMENT = 256 << 20  # capped before decompression: an object that claims more is not ours


class Blobs(Protocol):
    def put(self, content: bytes) -> str:
        """Keep the content, return its sha256."""

    def get(self, digest: str) -> bytes: ...

    def has(self, digest: str) -> bool: ...

    def keep_only(self, digests: Container[str]) -> int:
        """Remove every object but these, and what a killed process left half written; returns their bytes."""

    def flush(self) -> None:
        """What was put before this returns survives a power loss."""

    def size(self) -> int:
        """Bytes on disk."""


class FolderBlobs:
    """obstore over a local folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._compressor: zstandard.ZstdCompressor | None = None
        self._unsynced: list[Path] = []
        self._store: LocalStore | None = None

    def put(self, content: bytes) -> str:
        import hashlib  # here, like the two below: an ingest that finds nothing new never pays for them

        digest = hashlib.sha256(content).hexdigest()
        path = self.folder / _name(digest)
        if not self._whole(digest):
            self._put(_name(digest), content)
        self._unsynced.append(path)  # also if it was there: a run that died may have put it and never synced
        return digest

    def _put(self, name: str, content: bytes) -> None:
        import obstore
        import zstandard
        from obstore.store import LocalStore

        if self._store is None or self._compressor is None:
            self._store = LocalStore(self.folder, mkdir=True)
            self._compressor = zstandard.ZstdCompressor(level=LEVEL)  # no checksum: the name is one
        obstore.put(self._store, name, self._compressor.compress(content))

    def get(self, digest: str) -> bytes:
        import hashlib

        import zstandard

        path = self.folder / _name(digest)
        try:
            packed = path.read_bytes()
            if zstandard.get_frame_parameters(packed).content_size > MAX_SEGMENT:
                raise StoreError(f"segment {digest[:12]} claims to be too large", "Run: backstory doctor")
            content = zstandard.ZstdDecompressor().decompress(packed)
        except FileNotFoundError:
            raise StoreError(f"segment {digest[:12]} is missing", "Run: backstory doctor") from None
        except zstandard.ZstdError as error:
            raise StoreError(f"segment {digest[:12]} is damaged: {error}", "Run: backstory doctor") from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise StoreError(f"segment {digest[:12]} does not hold what its name says", "Run: backstory doctor")
        return content

    def has(self, digest: str) -> bool:
        return (self.folder / _name(digest)).is_file()

    def _whole(self, digest: str) -> bool:
        """There, and sound: after a power loss an object that was never synced may be empty or torn."""
        try:
            self.get(digest)
        except StoreError:
            return False
        return True

    def keep_only(self, digests: Container[str]) -> int:
        freed = 0
        for path in self.folder.glob("*/*"):
            if path.name.removesuffix(".zst") not in digests:
                freed += path.stat().st_size
                path.unlink()
        return freed

    def flush(self) -> None:
        folders = {self.folder, self.folder.parent} if self._unsynced else set()
        for path in self._unsynced:
            sync(path)
            folders.add(path.parent)
        for folder in folders:
            sync(folder)
        self._unsynced.clear()

    def size(self) -> int:
        return sum(path.stat().st_size for path in self.folder.glob("*/*"))


def _name(digest: str) -> str:
    """Sixteen folders: enough for a million objects, few enough to sync with every batch."""
    return f"{digest[:1]}/{digest}.zst"
