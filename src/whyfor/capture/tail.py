"""Read a file that grows: from the stored position, complete lines only; and notice when it was
replaced."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO, Literal, NamedTuple, cast

from whyfor.agents.base import MAX_DECODED
from whyfor.agents.decode import MAX_DOCUMENT as MAX_DOCUMENT
from whyfor.agents.decode import MAX_LINE
from whyfor.model.gaps import Gap, between, clipped, runs, without
from whyfor.model.sources import Source

CHUNK = 4 << 20
HEAD = 65_536
PROBE = 1024
_TAG = 64  # bytes that a tag may be long
# How much a packed transcript may hold. Real ones, packed as hard as zstd can, are 5 to 20 times as
# large unpacked; the same tool output said again and again may come to a few hundred times. A bomb
# is 30,000 times its size.
RATIO = 400
ALWAYS_UNPACKED = 16 << 20  # so little costs nothing, whatever its ratio
MAX_UNPACKED = 8 << 30  # bytes; the longest real sessions are some hundred MB
MAX_WINDOW = 128 << 20  # bytes of memory that a packed file may ask for to be unpacked at all


class TooLarge(OSError):
    """The file is refused because of its size; it is tried again only when it changes."""


class Chunk(NamedTuple):
    start: int
    data: bytes
    partial: bool  # does not end with a newline: the line may still grow


class Stat(NamedTuple):
    inode: int
    size: int
    mtime: int


def stat(path: Path) -> Stat:
    found = path.stat()
    # a pipe would be waited for, a device never ends
    if not (S_ISREG(found.st_mode) or S_ISDIR(found.st_mode)):
        raise OSError(errno.EINVAL, "not a plain file", str(path))
    size, mtime = found.st_size, found.st_mtime_ns
    if path.suffix == ".db":  # SQLite writes beside the database until the next checkpoint
        try:
            log = path.with_name(path.name + "-wal").stat()
            size, mtime = size + log.st_size, max(mtime, log.st_mtime_ns)
        except FileNotFoundError:
            pass
    return Stat(found.st_ino, size, mtime)


def file_size(path: Path) -> int:
    """Return the file's size; 0 if it cannot be read."""
    try:
        return stat(path).size
    except OSError:
        return 0


def unchanged(source: Source, now: Stat) -> bool:
    return source.size == now.size and source.mtime == now.mtime and source.inode == now.inode


def head(path: Path) -> bytes:
    """Return the first bytes, at least one complete line."""
    with open_source(path) as file:
        pieces = [file.read(HEAD)]
        size = len(pieces[0])
        while pieces[-1] and b"\n" not in pieces[-1] and size <= MAX_DECODED:
            pieces.append(file.read(HEAD * 16))
            size += len(pieces[-1])
    return b"".join(pieces)


@contextmanager
def open_source(path: Path) -> Iterator[BinaryIO]:
    """Open a file, decompressed if needed; errors while reading name this file."""
    try:
        with path.open("rb") as file:
            yield cast(BinaryIO, _Unpacked(file)) if path.suffix == ".zst" else file
    except OSError as error:
        kind = TooLarge if isinstance(error, TooLarge) else OSError
        raise kind(error.errno, error.strerror or str(error), str(path)) from error


class _Unpacked:
    """The content of a compressed transcript; damage in it is raised as an error of that file.

    It is decompressed piece by piece, and raises TooLarge as soon as it exceeds the largest
    plausible size.
    """

    def __init__(self, file: BinaryIO) -> None:
        import zstandard  # here: few transcripts are packed

        self._damaged = zstandard.ZstdError
        self._packed = os.fstat(file.fileno()).st_size
        self._limit = min(MAX_UNPACKED, max(ALWAYS_UNPACKED, RATIO * self._packed))
        self._unpacked = 0
        self._check(_claimed(file))
        unpacker = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW)
        self._stream = unpacker.stream_reader(file, read_across_frames=True, closefd=False)

    def read(self, size: int) -> bytes:
        try:
            data = self._stream.read(size)
        except self._damaged as error:
            raise OSError(errno.EIO, str(error)) from error
        self._unpacked += len(data)
        self._check(self._unpacked)
        return data

    def _check(self, unpacked: int) -> None:
        if unpacked <= self._limit:
            return
        if self._limit == MAX_UNPACKED:
            why = f"it holds more than {MAX_UNPACKED >> 30} GB"
        else:
            why = (
                f"{self._packed:,} bytes unpack to more than {self._limit:,}: no transcript packs "
                "so well"
            )
        raise TooLarge(errno.EFBIG, why)

    def seek(self, position: int) -> int:
        """Move forward; there is no way back."""
        while position > 0 and (data := self.read(min(position, CHUNK))):
            position -= len(data)
        return position


def _claimed(file: BinaryIO) -> int:
    """Return the size that a compressed file declares; 0 if it declares none."""
    import zstandard

    try:
        parameters = zstandard.get_frame_parameters(file.read(32))
    except zstandard.ZstdError:
        return 0  # no frame: reading it says so
    finally:
        file.seek(0)
    unknown = parameters.content_size == zstandard.CONTENTSIZE_UNKNOWN
    return 0 if unknown else parameters.content_size


def verdict(
    source: Source, path: Path, now: Stat, gaps: Sequence[Gap]
) -> Literal["grown", "same", "replaced"]:
    """Return whether the stored bytes are still the beginning of this file."""
    if source.position == 0:
        return "grown"
    if is_rewritten(source, path):
        return (
            "same"
            if fingerprints(path, source, gaps) == (source.head_hash, source.end_hash)
            else "replaced"
        )
    if now.size < source.position:
        return "replaced"
    return (
        "grown"
        if fingerprints(path, source, gaps) == (source.head_hash, source.end_hash)
        else "replaced"
    )


def is_rewritten(source: Source, path: Path) -> bool:
    """Return whether the agent rewrites this file as a whole instead of appending."""
    return source.framing != "lines" or path.suffix == ".zst"


def fingerprints(path: Path, source: Source, gaps: Sequence[Gap]) -> tuple[str, str]:
    """Return hashes of the first and the last bytes before the position, or of all bytes of a
    document, as far as it is read. An edit in between shifts the last ones.

    Only stored bytes are hashed: so private text cannot be guessed from the hash, and a rebuild
    computes the same ones.
    """
    import hashlib  # here: an ingest that finds nothing new never pays for it

    with open_source(path) as file:
        if is_rewritten(source, path):
            content, at = hashlib.sha256(), 0
            end = MAX_UNPACKED if source.framing == "lines" else MAX_DOCUMENT
            while data := file.read(min(CHUNK, end - at)):
                content.update(_kept(data, at, gaps))
                at += len(data)
            return "", content.hexdigest()
        first = file.read(min(PROBE, source.position))
        at = max(0, source.position - PROBE)
        file.seek(at)
        last = file.read(min(PROBE, source.position))
    return digest(_kept(first, 0, gaps)), digest(_kept(last, at, gaps))


def _kept(data: bytes, at: int, gaps: Sequence[Gap]) -> bytes:
    return without(data, at, clipped(gaps, at, at + len(data))) if gaps else data


class Edges:
    """Computes the same fingerprints from stored segments."""

    __slots__ = ("_content", "_first", "_last")

    def __init__(self) -> None:
        import hashlib

        self._content = hashlib.sha256()
        self._first: list[tuple[int, bytes]] = []
        self._last: list[tuple[int, bytes]] = []

    def add(self, data: bytes, start: int, end: int, gaps: Sequence[Gap], *, whole: bool) -> None:
        """Add the segment that follows."""
        if whole:
            self._content.update(data)
            return
        pieces = list(runs(data, start, gaps))
        self._first += between(pieces, 0, PROBE)
        self._last = between([*self._last, *pieces], end - PROBE, end)

    def fingerprints(self, *, whole: bool) -> tuple[str, str]:
        if whole:
            return "", self._content.hexdigest()
        return digest(_joined(self._first)), digest(_joined(self._last))


def _joined(pieces: list[tuple[int, bytes]]) -> bytes:
    return b"".join(run for _, run in pieces)


def digest(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def whole(file: BinaryIO, size: int) -> bytes:
    """Return all of a document, of one that is too large its beginning. `size` is how long it is
    expected to be: a buffer for the largest would cost more than to read a small one."""
    pieces = [file.read(min(size + 1, MAX_DOCUMENT))]
    left = MAX_DOCUMENT - len(pieces[0])
    while pieces[-1] and left > 0:
        pieces.append(file.read(min(HEAD, left)))
        left -= len(pieces[-1])
    return b"".join(pieces)


def _seam(data: bytes) -> int:
    """Return where to cut a long line: not inside what may be a tag."""
    sign = max(data.rfind(b"<", -_TAG), data.rfind(b"\\u003", -_TAG))
    return sign if sign > 0 else len(data)


def chunks(file: BinaryIO, position: int) -> Iterator[Chunk]:
    """Yield runs of complete lines from a position on, then the unfinished line if there is one."""
    file.seek(position)
    pieces: list[bytes] = []  # of a line whose end was not met yet
    size = 0
    while data := file.read(CHUNK):
        pieces.append(data)
        size += len(data)
        cut = data.rfind(b"\n") + 1
        if cut == 0 and size < MAX_LINE:
            continue
        # a line beyond all bounds is cut: its pieces are stored, none is decoded
        cut = cut or _seam(data)
        pieces[-1] = data[:cut]
        complete = b"".join(pieces)
        pieces = [data[cut:]] if cut < len(data) else []
        size = len(data) - cut
        del data
        yield Chunk(position, complete, False)
        position += len(complete)
    if pieces:
        yield Chunk(position, b"".join(pieces), True)
