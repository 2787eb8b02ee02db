"""The journal: what was written is read back in order, and a torn line spoils nothing."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import msgspec
import pytest

from whyfor.model.errors import NewerStore
from whyfor.model.sessions import Project
from whyfor.store.journal import Entry, Journal, MergedEntry, MovedEntry, PlaceEntry, SegmentEntry


def segment(start: int, end: int, *, partial: bool = False) -> SegmentEntry:
    return SegmentEntry(
        agent="claude",
        path="/home/ada/.claude/projects/-w/s.jsonl",
        generation=0,
        start=start,
        end=end,
        digest=f"{start:064x}",
        observed_at=1777629600000,
        framing="lines",
        session_id="s",
        partial=partial,
    )


MOVED = MovedEntry(agent="claude", path="/old/s.jsonl", to="/new/s.jsonl")
PLACE = PlaceEntry(
    cwd="/w", project=Project("example.com/a/b", "remote", "b", remote="r"), observed_at=1
)
ENTRIES: list[Entry] = [
    PLACE,
    segment(0, 100),
    segment(100, 130, partial=True),
    MOVED,
    segment(100, 250),
]


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "journal.jsonl")


def written(journal: Journal, *entries: Entry) -> None:
    for entry in entries:
        journal.add(entry)
    journal.flush()


def test_entries_come_back_in_the_order_they_were_added(journal: Journal) -> None:
    written(journal, *ENTRIES[:2])
    written(journal, *ENTRIES[2:])
    assert list(Journal(journal.path).entries()) == ENTRIES


def test_where_a_database_was_read_to_comes_back_as_it_was(journal: Journal) -> None:
    line = {
        **json.loads(msgspec.json.encode(segment(0, 9))),
        "position": {"part": "prt_9", "at": [1, 2]},
    }
    journal.path.write_text(json.dumps(line) + "\n")
    (entry,) = journal.entries()
    written(journal, entry)
    before, after = (json.loads(kept) for kept in journal.path.read_text().splitlines())
    assert (before, after["n"]) == (line, 2)
    assert {name: after[name] for name in line} == line


def test_a_journal_that_was_never_written_is_empty(journal: Journal) -> None:
    journal.flush()
    assert (list(journal.entries()), journal.bytes(), journal.path.exists()) == ([], 0, False)


def test_nobody_else_may_read_it(journal: Journal) -> None:
    written(journal, PLACE)
    assert journal.path.stat().st_mode & 0o777 == 0o600


def test_how_much_there_is_to_replay(journal: Journal) -> None:
    written(journal, *ENTRIES)
    assert journal.bytes() == 100 + 30 + 150


def test_a_torn_last_line_is_passed_over_at_every_byte(journal: Journal) -> None:
    written(journal, *ENTRIES)
    whole = journal.path.read_bytes()
    start, *ends = [number + 1 for number, byte in enumerate(whole) if byte == ord("\n")]
    assert json.loads(whole[:start])["entry"] == "start"
    for cut in range(len(whole)):
        journal.path.write_bytes(whole[:cut])
        # A line is whole without its newline too.
        assert list(journal.entries()) == ENTRIES[: sum(end <= cut + 1 for end in ends)]


def test_what_is_added_after_a_torn_line_is_read_at_every_byte(journal: Journal) -> None:
    written(journal, *ENTRIES[:2])
    whole = journal.path.read_bytes()
    second = len(whole) - len(whole.splitlines(keepends=True)[-1])
    for cut in range(second + 1, len(whole) - 1):
        journal.path.write_bytes(whole[:cut])
        written(journal, MOVED, segment(100, 200))
        assert list(journal.entries()) == [ENTRIES[0], MOVED, segment(100, 200)]
        assert journal.path.read_bytes().startswith(whole[:cut] + b"\n"), (
            "nothing that was there is touched"
        )


@pytest.mark.parametrize("damage", [b"\x00" * 40, b'{"entry":"segm', b"\xff\xfe", b""])
def test_a_damaged_line_hides_no_other(damage: bytes, journal: Journal) -> None:
    written(journal, PLACE)
    with journal.path.open("ab") as file:
        file.write(damage + b"\n")
    written(journal, MOVED)
    assert list(journal.entries()) == [PLACE, MOVED]


def test_an_entry_of_a_newer_program_is_not_passed_over(journal: Journal) -> None:
    written(journal, PLACE)
    with journal.path.open("ab") as file:
        file.write(of_tomorrow(3))
    with pytest.raises(NewerStore):
        list(journal.entries())


def test_a_line_of_no_known_shape_without_a_checksum_is_damage(journal: Journal) -> None:
    written(journal, PLACE)
    with journal.path.open("ab") as file:
        file.write(b'{"entry":"of tomorrow"}\n')
    assert list(journal.entries()) == [PLACE]
    assert journal.check().damaged == [3]


def of_tomorrow(number: int) -> bytes:
    """An intact line of a kind that nobody knows yet."""
    told = b'{"entry":"of tomorrow","n":%d' % number
    return told + b',"crc":"%08x"}\n' % zlib.crc32(told)


def test_what_could_not_be_written_waits_for_the_next_flush(journal: Journal) -> None:
    journal.path.mkdir()
    journal.add(PLACE)
    with pytest.raises(OSError):
        journal.flush()
    journal.path.rmdir()
    journal.flush()
    assert list(journal.entries()) == [PLACE]


def test_what_was_abandoned_is_never_written(journal: Journal) -> None:
    journal.add(PLACE)
    journal.forget_pending()
    written(journal, MOVED)
    assert list(journal.entries()) == [MOVED]


def test_merged_segments_are_named_by_where_they_are_now(journal: Journal) -> None:
    one, two, three = segment(0, 100), segment(100, 130), segment(130, 150)
    written(journal, one, two, MergedEntry("a" * 64, [(one.digest, 100), (two.digest, 30)]), three)
    written(journal, MergedEntry("b" * 64, [(three.digest, 20), ("a" * 64, 130)]))
    found = [entry.digest for entry in journal.entries() if isinstance(entry, SegmentEntry)]
    assert found == [f"{'b' * 64}@20+100", f"{'b' * 64}@120+30", f"{'b' * 64}@0+20"]
    # A merge that was journalled and never committed is done again, otherwise: the later one
    # counts.
    written(journal, MergedEntry("c" * 64, [(two.digest, 30), (three.digest, 20)]))
    found = [entry.digest for entry in journal.entries() if isinstance(entry, SegmentEntry)]
    assert found == [f"{'b' * 64}@20+100", f"{'c' * 64}@0+30", f"{'c' * 64}@30+20"]
    with journal.path.open("ab") as file:
        file.write(b'{"entry":"merged","digest":"' + b"d" * 64)
    assert [entry.digest for entry in journal.entries() if isinstance(entry, SegmentEntry)] == found
