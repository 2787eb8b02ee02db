"""Continue a transcript that has grown since it was redacted: read only what is new, and append to
the output.

The stored progress contains no secret: for each value only its position in the input.
"""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from whyfor import __version__
from whyfor.config import Settings
from whyfor.files import make_folders, replace
from whyfor.privacy.engine import Engine
from whyfor.privacy.passages import BLOCK, LONGEST, is_record
from whyfor.privacy.redactor import Redactor
from whyfor.privacy.stream import Place, Text

PROBE = 1024


class RedactionProgress(msgspec.Struct, frozen=True):
    """How far one input was redacted into one output."""

    rules: str
    inode: int
    position: int  # of the input: behind its last whole record
    edges: tuple[str, str]  # digests of what is before it
    out_inode: int
    out_position: int  # the same of the output
    out_size: int
    out_edges: tuple[str, str]
    values: list[Place]


def rules_digest(*sources: bytes) -> str:
    """Return a digest of everything that decides what is found; if it changes, earlier output
    cannot be reused."""
    content = hashlib.sha256(__version__.encode())
    folder = Path(__file__).parent
    for path in sorted([*folder.glob("*.py"), *folder.glob("rules/*")]):
        content.update(path.read_bytes())
    for source in sources:
        content.update(b"\0" + source)
    return content.hexdigest()


def mark_path(settings: Settings, source: Path, output: Path) -> Path:
    name = hashlib.sha256(
        os.fsencode(source.resolve()) + b"\0" + os.fsencode(output.resolve())
    ).hexdigest()
    return settings.home / "redacted" / f"{name}.json"


def load_progress(
    path: Path, rules: str, file: BinaryIO, size: int, output: Path
) -> RedactionProgress | None:
    """Return the progress of the last run; None if the input or the output has changed since."""
    try:
        mark = msgspec.json.decode(path.read_bytes(), type=RedactionProgress)
        out = output.stat()
        if (mark.rules, mark.inode, mark.out_inode) != (
            rules,
            os.fstat(file.fileno()).st_ino,
            out.st_ino,
        ):
            return None
        if (
            size < mark.position
            or out.st_size != mark.out_size
            or edges(file, mark.position) != mark.edges
        ):
            return None
        with output.open("rb") as written:
            return mark if edges(written, mark.out_size) == mark.out_edges else None
    except (FileNotFoundError, NotADirectoryError, msgspec.DecodeError, msgspec.ValidationError):
        return None


def save_progress(
    path: Path, text: Text, mark: RedactionProgress | None, rules: str, output: Path, tail: int
) -> None:
    """Save the progress; `tail` is the length of an incomplete record in the output."""
    position = _last_record(text.file, text.start, text.stop)
    # what follows may end a private key: then the whole file is read again
    if position is None or text.open_key:
        path.unlink(missing_ok=True)
        return
    old = mark.values if mark else []
    size = output.stat()
    with output.open("rb") as written:
        out_edges = edges(written, size.st_size)
    made = RedactionProgress(
        rules,
        os.fstat(text.file.fileno()).st_ino,
        position,
        edges(text.file, position),
        size.st_ino,
        size.st_size - (tail if position < text.stop else 0),
        size.st_size,
        out_edges,
        [*old, *(place for place in text.places if place[1] < position)],
    )
    make_folders(path.parent)
    replace(path, msgspec.json.encode(made))


def known(file: BinaryIO, mark: RedactionProgress) -> Iterator[tuple[bytes, str]]:
    """Yield the values of the last run, in the order of their numbers."""
    for rule, start, end in mark.values:
        file.seek(start)
        yield file.read(end - start), rule


def stands_before(engine: Engine, text: Text) -> bool:
    """Return whether a newly found value also occurs in what was redacted before."""
    looking = Redactor(engine)
    found = False
    for rule, start, end in text.places:
        text.file.seek(start)
        found |= looking.know(text.file.read(end - start), rule)
    if not found:
        return False
    # It may be large, so nothing of it is copied.
    with mmap.mmap(text.file.fileno(), text.start, access=mmap.ACCESS_READ) as before:
        for start, end in looking.copies(before):
            high = before.find(b"\n", end)
            if looking.with_copies(
                before[before.rfind(b"\n", 0, start) + 1 : high if high >= 0 else text.start], []
            ):
                return True
    return False


def edges(file: BinaryIO, size: int) -> tuple[str, str]:
    """Return digests of the first and the last bytes."""
    found = []
    for at in (0, max(0, size - PROBE)):
        file.seek(at)
        found.append(hashlib.sha256(file.read(min(PROBE, size))).hexdigest())
    return found[0], found[1]


def _last_record(file: BinaryIO, start: int, stop: int) -> int | None:
    """Return the position after the last complete line if that is a record, so that nothing after
    it changes its meaning; else None."""
    reach = BLOCK
    while True:
        low = max(start, stop - reach)
        file.seek(low)
        data = file.read(stop - low)
        end = data.rfind(b"\n")
        begin = data.rfind(b"\n", 0, end) if end > 0 else -1
        if end < 0 and low == start:
            return start or None
        if begin >= 0 or low == start:
            return low + end + 1 if is_record(data, begin + 1, end) else None
        if reach >= LONGEST:
            return None
        reach *= 4
