"""Open the text to redact as a file that can be read several times."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

from whyfor.capture import tail
from whyfor.model.errors import BadInput, NotFound

_PACKED = b"\x28\xb5\x2f\xfd"  # how zstd begins


_PIECE = 1024  # bytes that are unpacked at once: they may hold 30 MB


class Input(NamedTuple):
    file: BinaryIO
    size: int
    path: Path | None  # None if it cannot be continued later: a pipe, compressed input


@contextmanager
def open_input(path: Path | None, stdin: BinaryIO) -> Iterator[Input]:
    """Yield the input; one that cannot be read twice is copied to an unnamed temporary file."""
    with ExitStack() as open_files:
        try:
            file = stdin if path is None else open_files.enter_context(path.open("rb"))
            found = _lasting(file, path) or _copied(
                file, open_files.enter_context(tempfile.TemporaryFile())
            )
        except OSError as error:
            what = f"cannot read {path or 'stdin'}: {error.strerror or error}"
            raise NotFound(what, "Give a file, or text on stdin.") from None
        yield found


def _lasting(file: BinaryIO, path: Path | None) -> Input | None:
    """Return the file itself if its size is valid (files of the kernel report zero) and nothing was
    read from it yet; else None."""
    try:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size == 0 or file.tell() != 0:
            return None
    except OSError:
        return None
    packed = file.read(len(_PACKED)) == _PACKED
    file.seek(0)
    return None if packed else Input(file, found.st_size, path)


def _copied(source: BinaryIO, copy: IO[bytes]) -> Input:
    import zstandard  # here: few texts are packed

    first = source.read(len(_PACKED))
    if first != _PACKED:
        copy.write(first)
        shutil.copyfileobj(source, copy, 1 << 20)
        return Input(cast(BinaryIO, copy), copy.tell(), None)
    frame, piece, packed = None, first, len(first)
    try:
        while piece:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            copy.write(frame.decompress(piece))
            if copy.tell() > max(tail.ALWAYS_UNPACKED, tail.RATIO * packed):
                what = (
                    f"this is packed with zstd, and its first {packed:,} bytes unpack to "
                    f"{copy.tell():,}"
                )
                raise BadInput(what, "No text packs so well. If it is what you want: zstd -d")
            piece = frame.unused_data if frame.eof else b""
            frame = None if frame.eof else frame
            if not piece:
                piece = source.read(_PIECE)
                packed += len(piece)
    except zstandard.ZstdError as error:
        raise BadInput(
            f"this is packed with zstd, and damaged: {error}", "Unpack it yourself: zstd -d"
        ) from None
    if frame is not None:
        raise BadInput(
            "this is packed with zstd, and its end is missing",
            "Unpack what there is yourself: zstd -d",
        )
    return Input(cast(BinaryIO, copy), copy.tell(), None)
