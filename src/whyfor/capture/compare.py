"""Compare the journal, the database and the segments. Reads only."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

import msgspec

from whyfor.capture.rebuild import final_sources, retold_entries
from whyfor.model.errors import Disagreement
from whyfor.model.text import plural
from whyfor.store.address import parse_address
from whyfor.store.blobs import Blobs
from whyfor.store.journal import Entry, Journal, JournalCheck, JournalMark, SegmentEntry
from whyfor.store.protocol import Store

HINT = "Make them agree: whyfor rebuild"
SegmentKey = tuple[str, str, int, int]  # agent, path as it is now, generation, first byte


class Comparison(msgspec.Struct, frozen=True):
    """What each of the three has that the others lack."""

    journal: JournalCheck
    ends_alike: bool  # the journal ends where the database says
    journal_lacks: int = 0  # segments that only the database lists
    database_lacks: int = 0  # segments that only the journal lists
    unlisted: int = 0  # objects in the folder that neither lists

    @property
    def agree(self) -> bool:
        return (
            self.journal.whole
            and self.ends_alike
            and not self.journal_lacks
            and not self.database_lacks
        )

    def complaints(self) -> list[str]:
        """Return one sentence for each disagreement; empty if there is none."""
        found: list[str] = []
        check = self.journal
        if check.damaged_lines:
            shown = ", ".join(str(place) for place in check.damaged[:5])
            found.append(
                f"{plural(check.damaged_lines, 'line')} of the journal are damaged: line {shown}"
            )
        if check.missing:
            found.append(f"{plural(check.missing, 'entry', 'entries')} of the journal are gone")
        if not self.ends_alike:
            found.append("the journal does not end where the database says")
        if self.journal_lacks:
            found.append(
                f"{plural(self.journal_lacks, 'segment')} are in the database and not in the "
                "journal"
            )
        if self.database_lacks:
            found.append(
                f"{plural(self.database_lacks, 'segment')} are in the journal and not in the "
                "database"
            )
        return found


def compare_store(store: Store, journal: Journal, blobs: Blobs) -> Comparison:
    """Compare the whole journal, the database's list of segments and the stored objects."""
    mark = store.journal_end()
    told, ahead = split_entries(journal, mark)
    segments = final_segments(told)
    known = {segment_key(entry): entry for entry in store.capture.segment_entries()}
    listed = {
        parse_address(entry.digest).object
        for entry in (*told, *ahead, *known.values())
        if _is_segment(entry)
    }
    return Comparison(
        journal=journal.check(),
        ends_alike=mark is None or journal.ends_at(mark),
        journal_lacks=len(known.keys() - segments.keys()),
        database_lacks=len(segments.keys() - known.keys()) + sum(map(_is_segment, ahead)),
        unlisted=sum(1 for digest in blobs.digests() if digest not in listed),
    )


def split_entries(journal: Journal, mark: JournalMark | None) -> tuple[list[Entry], list[Entry]]:
    """Return the journal's entries up to the one that the database remembers, and those after
    it."""
    told: list[Entry] = []
    ahead: list[Entry] = []
    for number, entry in journal.numbered_entries():
        later = mark is not None and number > mark.number
        (ahead if later else told).append(entry)
    return told, ahead


def _is_segment(entry: Entry) -> TypeGuard[SegmentEntry]:
    return isinstance(entry, SegmentEntry)


def require_agreement(store: Store, journal: Journal, blobs: Blobs) -> None:
    """Raise Disagreement unless they agree. Called before anything is deleted that one of them may
    not list."""
    complaints = compare_store(store, journal, blobs).complaints()
    if complaints:
        raise Disagreement(f"nothing was removed: {complaints[0]}", HINT)


def segment_key(entry: SegmentEntry) -> SegmentKey:
    return *entry.source, *entry.place


def final_segments(entries: Iterable[Entry]) -> dict[SegmentKey, SegmentEntry]:
    """Return the segments that a rebuild would end with, by the current paths of their files."""
    listed = list(entries)
    retold = retold_entries(listed)
    found: dict[SegmentKey, SegmentEntry] = {}
    for number, source in final_sources(listed).items():
        entry = listed[number]
        if isinstance(entry, SegmentEntry) and number not in retold:
            found[*source, *entry.place] = entry
    return found
