"""A file that is read while it is written: few objects, little written twice, and everything as
if it had been one."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.capture.snapshot import assert_equal, derived, stored_bytes
from tests.capture.test_ingest import shown
from tests.capture.test_rebuild import crash_before_commit, everything
from tests.service.forget.traces import CANARY, traces
from tests.transcripts import Transcript
from whyfor.agents import AGENTS
from whyfor.capture import compact as merge
from whyfor.capture.discover import FoundFile
from whyfor.capture.ingest import Ingest
from whyfor.config import Settings
from whyfor.live.ingester import IncrementalIngest
from whyfor.service.forget import ForgetArguments, forget
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.store.address import parse_address
from whyfor.store.blobs import FolderBlobs
from whyfor.store.journal import Journal, MergedEntry, SegmentEntry
from whyfor.store.open import open_store, reading_local

APPENDS = 1000
FILES = 40


def objects(settings: Settings) -> set[str]:
    return {path.name.removesuffix(".zst") for path in settings.segments.glob("*/*")}


def named(settings: Settings) -> set[str]:
    """Objects that the journal says something is in."""
    entries = Journal(settings.journal).entries()
    return {
        parse_address(entry.digest).object for entry in entries if isinstance(entry, SegmentEntry)
    }


class Growing:
    """A transcript that is read after every line."""

    def __init__(self, settings: Settings, name: str = "growing") -> None:
        self.settings = settings
        self.said = Transcript(name)
        self.path = self.said.path(settings.user_home)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.numbers = itertools.count()

    def line(self, text: str = "") -> bytes:
        self.said.lines.clear()
        self.said.prompt(text or f"word {next(self.numbers)}")
        return self.said.text().encode()

    def append(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    def grow(self, times: int, text: str = "") -> None:
        for _ in range(times):
            self.append(self.line(text))
            ingest(self.settings)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three make one: merges of merges after a few lines."""
    monkeypatch.setattr(merge, "FAN", 3)


@pytest.fixture
def growing(settings: Settings) -> Growing:
    return Growing(settings)


# -- few files, little written twice -------------------------------------------------------------


@pytest.mark.parametrize("torn", [False, True], ids=["line by line", "each line in two halves"])
def test_a_thousand_appends_are_few_files_and_are_written_a_few_times(
    torn: bool,
    growing: Growing,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    cli: Callable[..., Any],
) -> None:
    monkeypatch.setattr(os, "fsync", lambda fd: None)  # what is counted here is files
    settings.home.mkdir(exist_ok=True)
    store, blobs, journal = (
        open_store(settings.database),
        FolderBlobs(settings.segments),
        Journal(settings.journal),
    )
    store.db.pragma("synchronous", "off")
    put, written, known = blobs._put, [0], None

    def counted(path: Path, content: bytes) -> None:
        written[0] += len(content)
        put(path, content)

    monkeypatch.setattr(blobs, "_put", counted)
    clock = itertools.count(1_777_629_600_000)
    for _ in range(APPENDS // 5 if torn else APPENDS):
        line = growing.line()
        for piece in (line[:90], line[90:]) if torn else (line,):
            growing.append(piece)
            run = Ingest(store, blobs, journal, lambda: next(clock), sources=known)
            run.run([FoundFile(AGENTS["claude"], growing.path)], [])
            known = run.sources
    store.close()
    assert len(objects(settings)) <= FILES
    assert objects(settings) == named(settings)
    assert written[0] <= 3.3 * growing.path.stat().st_size
    assert shown(settings, growing.said.session_id) == growing.path.read_bytes()
    before = everything(settings)
    assert len({row[8] for row in before["events"]}) >= APPENDS // 5, (
        "each is told when it was seen"
    )
    assert rebuild(settings).gaps == []
    assert_equal(everything(settings), before)
    assert cli("doctor", "--deep").code == 0


@pytest.mark.usefixtures("few")
def test_a_document_that_is_written_anew_each_time_is_few_files_too(
    settings: Settings, home: Path
) -> None:
    chat = home / ".gemini" / "tmp" / "shop" / "chats" / "session-2026-05-01T10-00-abcdef12.json"
    chat.parent.mkdir(parents=True)
    for number in range(12):
        said = [
            f'{{"id":"m{n}","type":"user","timestamp":"2026-05-01T10:00:00Z","content":"w{n}"}}'
            for n in range(number + 1)
        ]
        chat.write_text(
            f'{{"sessionId":"abcdef12-0000","projectHash":"x","messages":[{",".join(said)}]}}'
        )
        ingest(settings)
    assert len(objects(settings)) < 6
    before = everything(settings)
    assert (sum(row[4] == "user.prompt" for row in before["events"]), len(before["segments"])) == (
        12,
        12,
    )
    assert rebuild(settings).gaps == []
    assert_equal(everything(settings), before)


def test_what_is_large_is_left_where_it_is(
    growing: Growing, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merge, "FAN", 3)
    monkeypatch.setattr(merge, "LARGE", 3000)
    growing.grow(4, "x" * 3000)
    assert len(objects(settings)) == 4
    growing.grow(3)
    assert len(objects(settings)) == 5


def test_one_append_while_it_is_watched_makes_four_things_safe(
    growing: Growing, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(fd: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{fd}").readlink()))
        real(fd)

    if not Path("/proc/self/fd").exists():
        pytest.skip("names of open files come from /proc")
    taking = IncrementalIngest(settings)
    try:
        for number in range(60):
            monkeypatch.setattr(os, "fsync", fsync if number == 59 else lambda fd: None)
            growing.append(growing.line())
            taking.take([FoundFile(AGENTS["claude"], growing.path)], 1.0)
    finally:
        taking.close()
    newest = [
        entry for entry in Journal(settings.journal).entries() if isinstance(entry, SegmentEntry)
    ][-1]
    home, segment = settings.segments, f"{newest.digest}.zst"
    # And, by SQLite, its log: see the order they are written in test_faults.py.
    assert synced == [
        str(home / segment[0] / segment),
        str(home / segment[0]),
        str(settings.journal),
    ]


# -- everything as it was ------------------------------------------------------------------------


@pytest.mark.usefixtures("few")
def test_a_reader_that_learnt_where_things_are_reads_on_after_a_merge(
    growing: Growing, settings: Settings
) -> None:
    growing.grow(2)
    with reading_local(settings) as library:
        [source] = library.capture.sources_of(library.sessions.find(growing.said.session_id))
        pieces = library.capture.pieces(source)
        growing.grow(25)
        assert not {piece.address for piece in pieces} & objects(settings)
        told = b"".join(library.blobs.get(piece.address) for piece in pieces)
        assert growing.path.read_bytes().startswith(told)
        assert all(library.blobs.has(piece.address) for piece in pieces)


@pytest.mark.usefixtures("few")
def test_a_crash_between_journal_and_commit_loses_no_merge(
    growing: Growing, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(12):
        growing.append(growing.line())
        crash_before_commit(settings, monkeypatch)
        growing.grow(1)
    before = derived(settings, observed=True)
    assert shown(settings, growing.said.session_id) == growing.path.read_bytes()
    assert rebuild(settings).gaps == []
    assert_equal(derived(settings, observed=True), before)
    growing.grow(3)
    assert shown(settings, growing.said.session_id) == growing.path.read_bytes()


@pytest.mark.usefixtures("few")
def test_a_lost_merge_is_a_gap_of_each_that_was_in_it(
    growing: Growing, settings: Settings, cli: Callable[..., Any]
) -> None:
    growing.grow(4)
    [merged] = [
        entry for entry in Journal(settings.journal).entries() if isinstance(entry, MergedEntry)
    ]
    (settings.segments / merged.digest[0] / f"{merged.digest}.zst").unlink()
    assert cli("doctor").code == 1
    assert len(rebuild(settings).gaps) == 3


# -- what goes, goes from there too --------------------------------------------------------------


@pytest.fixture
def secretive(growing: Growing, settings: Settings) -> Iterator[Growing]:
    """Many lines, merged again and again, one of which is to be forgotten; and a session beside
    it."""
    other = Growing(settings, "other")
    for number in range(20):
        growing.append(growing.line(CANARY if number == 7 else ""))
        other.grow(1)
    yield growing


@pytest.mark.usefixtures("few")
def test_a_forgotten_text_goes_from_what_it_was_merged_with(
    secretive: Growing, settings: Settings
) -> None:
    before, many = stored_bytes(settings), len(objects(settings))
    forget(settings, settings.user_home, ForgetArguments(match=CANARY))
    assert traces(settings.home) == []
    assert objects(settings) == named(settings)
    assert len(objects(settings)) <= many
    kept = everything(settings)
    assert rebuild(settings).gaps == []
    assert_equal(everything(settings), kept)
    other = next(path for path in before if "other" not in path and path != str(secretive.path))
    assert stored_bytes(settings)[other] == before[other]
    secretive.grow(9)
    assert shown(settings, secretive.said.session_id).count(b"\n") == 29


@pytest.mark.usefixtures("few")
def test_a_forgotten_session_takes_nothing_from_another_with_the_same_bytes(
    growing: Growing, settings: Settings
) -> None:
    # A line that names no session, again and again, in two files: their segments are the same
    # objects.
    same = b'{"type":"summary","summary":"the same in both","leafUuid":"7a0e2c1a-0000"}\n'
    twin = Growing(settings, "twin")
    for each in (growing, twin):
        each.grow(1)
    for number in range(14):
        for each in (growing, twin):
            each.append(same + b" " * number + b"\n")
        ingest(settings)
    before = twin.path.read_bytes()
    forget(settings, settings.user_home, ForgetArguments(growing.said.session_id))
    assert objects(settings) == named(settings)
    assert growing.said.session_id not in "".join(stored_bytes(settings))
    assert shown(settings, twin.said.session_id) == before
    assert rebuild(settings).gaps == []
    assert shown(settings, twin.said.session_id) == before
