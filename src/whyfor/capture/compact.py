"""Compact the many small segments of a file that is read while it grows into a few larger objects.

Only the address of the bytes changes, and the journal records it. Their content, order and times
stay.
"""

from __future__ import annotations

from itertools import accumulate, count

from whyfor.model.errors import StoreError
from whyfor.model.sources import Source, StoredSegment
from whyfor.store.address import Address, parse_address
from whyfor.store.blobs import Blobs
from whyfor.store.journal import Journal, MergedEntry
from whyfor.store.protocol import StoreWriter

# objects of like standing that become one; each byte is written once more for every such step
FAN = 16
LARGE = 256 << 10  # bytes of an object that is left as it is


class _Object:
    """The parts of one object that belong to a source."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, str]] = []  # generation, start, address
        self.sizes: dict[str, int] = {}  # of its parts, by address

    @property
    def size(self) -> int:
        return sum(self.sizes.values())

    @property
    def level(self) -> int:
        """How many rounds of merging went into this object."""
        return next(level for level in count() if len(self.rows) < FAN ** (level + 1))


class SegmentCompactor:
    """Works inside the caller's transaction, before its journal is flushed. After the commit, the
    objects in `replaced` can be deleted."""

    def __init__(self, writer: StoreWriter, blobs: Blobs, journal: Journal) -> None:
        self.writer = writer
        self.blobs = blobs
        self.journal = journal
        self.replaced: set[str] = set()

    def finished(self, source: Source, data: bytes, digest: str) -> None:
        """If an unfinished line was stored before and these bytes begin with it, replace its object
        by this one."""
        address = self.writer.unfinished_segment(source) if source.tail else None
        if address is None or parse_address(address).size is not None:
            return
        before = self._content(address)
        if before and len(before) < len(data) and data.startswith(before):
            self._merged(digest, {address: before})

    def merge(self, source: Source) -> None:
        """Merge the newest objects of a source if there are enough of one level; then those of the
        next level."""
        for level in count():
            newest = self._newest(source, level)
            contents: dict[str, bytes] = {}
            for name, held in newest.items():
                data = self._content(name)
                if not data or len(data) != held.size:
                    return  # not all this source's own, as far as can be seen here
                contents[name] = data
            if not newest:
                return
            digest = self.blobs.put(b"".join(contents.values()))
            for name, base in self._merged(digest, contents).items():
                self._move(source, newest[name], digest, base)

    def _move(self, source: Source, held: _Object, digest: str, base: int) -> None:
        """Record where the parts of an object are now."""
        for generation, start, address in held.rows:
            moved = Address(digest, base + parse_address(address).start, held.sizes[address])
            self.writer.move_segment(source, generation, start, str(moved))

    def _newest(self, source: Source, level: int) -> dict[str, _Object]:
        """Return the newest objects, oldest first; none while there are too few of this level."""
        view = 2 * FAN ** (level + 1)
        while True:
            rows = self.writer.newest_segments(source, view)
            found = _objects(rows)
            newest = list(found.items())[:FAN]
            if any(held.level > level or held.size >= LARGE for _, held in newest):
                return {}
            if len(found) > FAN or len(rows) < view:
                break
            view *= FAN  # the last one may go on
        if len(newest) < FAN or any(held.level < level for _, held in newest):
            return {}
        return dict(reversed(newest))

    def _content(self, address: str) -> bytes | None:
        try:
            return self.blobs.get(address)
        except StoreError:
            return None  # doctor names it

    def _merged(self, digest: str, contents: dict[str, bytes]) -> dict[str, int]:
        """Record a merge in the journal; return where each object begins in the new one."""
        self.journal.add(
            MergedEntry(digest, [(name, len(data)) for name, data in contents.items()])
        )
        self.replaced.update(contents)
        return dict(zip(contents, accumulate(map(len, contents.values()), initial=0), strict=False))


def _objects(rows: list[StoredSegment]) -> dict[str, _Object]:
    """Return the objects that a source's segments are stored in, by digest."""
    found: dict[str, _Object] = {}
    for row in rows:
        if row.kept:
            held = found.setdefault(parse_address(row.address).object, _Object())
            held.rows.append((row.generation, row.start, row.address))
            held.sizes[row.address] = row.kept
    return found
