"""The journal and the segments are the truth: the database can be lost, and comes back the same."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest
import zstandard

from tests.capture.snapshot import Snapshot, assert_equal, derived, found, on_disk, stored_bytes
from tests.capture.test_ingest import codex_rollout, external, shown, story, write
from tests.store.test_journal import of_tomorrow
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.service.show import raw_records
from whyfor.store.journal import Journal
from whyfor.story.session_lookup import load_conversation

PACKED = "019d0000-0000-7000-8000-000000000009"


def everything(settings: Settings) -> Snapshot:
    return derived(settings, observed=True, segments=True)


def populate(home: Path) -> list[Transcript]:
    """Sessions of two agents with all that makes capture hard, in their first state."""
    first, second = story("first", 8), story("second", 2)
    call = first.call("Bash", {"command": "find /"}, "<persisted-output>saved</persisted-output>")
    first.prompt("a last question, to follow the long result")
    first.lines.append({"type": "tea-break", "sessionId": first.session_id})
    first.save(home)
    external(first, home, call, "hippopotamus\n" * 50)
    write(second.path(home), second.text() + "{torn\n" + json.dumps(second.lines[0])[:50])
    write(
        home / ".codex" / "sessions" / f"rollout-2026-05-01T10-00-00-{PACKED}.jsonl.zst",
        packed(PACKED),
    )
    return [first, second]


def packed(session: str) -> bytes:
    return zstandard.ZstdCompressor().compress(codex_rollout(session))


def change(home: Path, said: list[Transcript]) -> None:
    """What happens to files over time: one grows and moves, one is rewritten and grows."""
    first, second = said
    first.prompt("after the move")
    moved = first.path(home).parent.with_name("-work-elsewhere") / first.path(home).name
    write(moved, first.text())
    first.path(home).unlink()
    second.prompt("after the tombstone")
    lines = second.text().splitlines(keepends=True)
    write(second.path(home), "".join(lines[:2] + lines[3:]))


@pytest.fixture
def lived(settings: Settings, home: Path) -> Settings:
    """A store with a past: several ingests, growth, a move, a rewrite, a deletion."""
    said = populate(home)
    ingest(settings)
    change(home, said)
    ingest(settings)
    gone = story("gone").save(home)
    ingest(settings)
    gone.unlink()
    return settings


# -- the database is lost ------------------------------------------------------------------------


def test_a_deleted_database_comes_back_the_same(lived: Settings, cli: Callable[..., Any]) -> None:
    before, hits = everything(lived), found(lived, "apples", "hippopotamus", "pears answer")
    kept = stored_bytes(lived)
    for path in lived.home.glob("whyfor.db*"):
        path.unlink()
    lost = cli("sessions", "--json")
    assert (lost.code, lost.json["error"]["kind"]) == (2, "not_found")
    assert "whyfor rebuild" in lost.json["error"]["hint"]
    result = cli("rebuild", "--json")
    assert (result.code, result.json["gaps"]) == (0, [])
    assert_equal(everything(lived), before)
    assert found(lived, "apples", "hippopotamus", "pears answer") == hits
    assert stored_bytes(lived) == kept


def test_a_rebuild_of_a_sound_database_changes_nothing(lived: Settings) -> None:
    before = everything(lived)
    for _ in range(2):
        assert rebuild(lived).gaps == []
        assert_equal(everything(lived), before)


def test_a_rebuild_never_changes_journal_or_segments(lived: Settings) -> None:
    def truth() -> dict[str, tuple[int, bytes]]:
        return {
            name: what
            for name, what in on_disk(lived.home).items()
            if not name.startswith("whyfor.db")
        }

    before = truth()
    rebuild(lived)
    assert truth() == before


def test_a_rebuild_without_any_journal_says_so(cli: Callable[..., Any]) -> None:
    result = cli("rebuild", "--json")
    assert (result.code, result.json["error"]["kind"]) == (2, "not_found")


@pytest.mark.parametrize("where", ["header", "middle", "truncated", "not a database"])
def test_a_damaged_database_is_told_and_rebuilt(
    where: str, lived: Settings, cli: Callable[..., Any]
) -> None:
    before = everything(lived)
    data = bytearray(lived.database.read_bytes())
    if where == "header":
        data[:100] = b"\xde\xad" * 50
    elif where == "middle":
        page = 4096
        for at in range(page, len(data), page):  # every page but the first
            data[at : at + 200] = b"\xde\xad" * 100
    elif where == "truncated":
        del data[len(data) // 2 :]
    else:
        data[:] = b"this was never a database\n" * 1000
    for side in ("-wal", "-shm"):
        lived.database.with_name(lived.database.name + side).unlink(missing_ok=True)
    lived.database.write_bytes(data)
    told = cli("search", "apples", "--json")
    assert (told.code, told.json["error"]["kind"]) == (2, "corrupt_store")
    assert "whyfor rebuild" in told.json["error"]["hint"]
    doctor = cli("doctor")
    assert (doctor.code, "whyfor rebuild" in doctor.out) == (1, True)
    result = cli("rebuild", "--json")
    assert (result.code, result.json["gaps"]) == (0, [])
    assert_equal(everything(lived), before)
    assert cli("doctor").code == 0


# -- the truth is hurt ---------------------------------------------------------------------------


def test_a_torn_last_line_of_the_journal_spoils_nothing(lived: Settings, home: Path) -> None:
    before = everything(lived)
    torn = lived.journal.read_bytes().splitlines()[-1][:60]
    with lived.journal.open("ab") as journal:
        journal.write(torn)
    rebuild(lived)
    assert_equal(everything(lived), before)
    late = story("late")
    late.save(home)
    ingest(lived)
    before = everything(lived)
    rebuild(lived)
    assert_equal(everything(lived), before)
    assert shown(lived, late.session_id) == late.text().encode()


@pytest.mark.parametrize(
    "garbage", [b"\x00" * 300, b'{"entry":"segment","agent":"\xff\xfe"}', b"{]", b"\xff"], ids=repr
)
def test_garbage_in_the_journal_spoils_nothing(garbage: bytes, lived: Settings) -> None:
    before = everything(lived)
    lines = lived.journal.read_bytes().splitlines(keepends=True)
    lived.journal.write_bytes(b"".join([*lines[:2], garbage + b"\n", *lines[2:]]))
    assert rebuild(lived).gaps == []
    assert_equal(everything(lived), before)


def test_a_journal_of_a_newer_program_is_not_read_half(
    lived: Settings, cli: Callable[..., Any]
) -> None:
    with lived.journal.open("ab") as journal:
        journal.write(of_tomorrow(Journal(lived.journal).end().number + 1))
    before = on_disk(lived.home)
    result = cli("rebuild", "--json")
    assert (result.code, result.json["error"]["kind"]) == (2, "newer_store")
    assert on_disk(lived.home) == before


def segment_of(settings: Settings, session: str) -> tuple[Path, int]:
    """The first segment of a session's transcript, and how many bytes it holds."""
    entries = [json.loads(line) for line in settings.journal.read_bytes().splitlines()]
    entry = next(e for e in entries if e.get("session_id") == session)
    return settings.segments / entry["digest"][:1] / f"{entry['digest']}.zst", entry["end"] - entry[
        "start"
    ]


@pytest.mark.parametrize("how", ["missing", "damaged", "another", "bomb"])
def test_a_lost_segment_is_a_gap_that_is_told(
    how: str, settings: Settings, home: Path, cli: Callable[..., Any]
) -> None:
    lost, kept = story("lost"), story("kept")
    for said in (lost, kept):
        said.save(home)
    cli("ingest")
    segment, size = segment_of(settings, lost.session_id)
    if how == "missing":
        segment.unlink()
    elif how == "damaged":
        segment.write_bytes(segment.read_bytes()[:-20])
    elif how == "another":
        shutil.copy(segment_of(settings, kept.session_id)[0], segment)
    else:  # claims to unpack to a terabyte
        segment.write_bytes(
            b"\x28\xb5\x2f\xfd\xe0" + (1 << 40).to_bytes(8, "little") + b"\x01\x00\x00"
        )
    assert cli("doctor", *([] if how == "missing" else ["--deep"])).code == 1
    result = cli("rebuild", "--json")
    assert result.code == 1
    [gap] = result.json["gaps"]
    assert (gap["path"], gap["start"], gap["end"]) == (str(lost.path(home)), 0, size)
    assert gap["reason"]
    assert shown(settings, kept.session_id) == kept.text().encode()
    assert cli("doctor").code == 1
    plain = cli("rebuild")
    assert (plain.code, "Missing" in plain.out) == (1, True)


def test_what_follows_a_lost_segment_is_still_read(settings: Settings, home: Path) -> None:
    said = story("lost")
    said.save(home)
    ingest(settings)
    segment, size = segment_of(settings, said.session_id)
    said.prompt("written after the gap")
    said.save(home)
    ingest(settings)
    segment.unlink()
    [gap] = rebuild(settings).gaps
    assert (gap.start, gap.end) == (0, size)
    assert [
        e.text
        for e in load_conversation(settings, said.session_id).events
        if e.kind == "user.prompt"
    ] == ["written after the gap"]


# -- the journal says things twice ---------------------------------------------------------------


class Killed(BaseException):
    """Nothing catches it."""


def crash_before_commit(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal has the batch, the database does not: what a kill between the two leaves
    behind."""
    flush = Journal.flush

    def killed(self: Journal) -> None:
        flush(self)
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(Journal, "flush", killed)
        ingest(settings)


def test_a_crash_between_journal_and_commit_changes_nothing(
    settings: Settings, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = populate(home)
    crash_before_commit(settings, monkeypatch)
    ingest(settings)
    change(home, said)
    crash_before_commit(settings, monkeypatch)
    crash_before_commit(settings, monkeypatch)
    ingest(settings)
    before, kept = derived(settings, segments=True), stored_bytes(settings)
    assert rebuild(settings).gaps == []
    assert_equal(derived(settings, segments=True), before)
    assert stored_bytes(settings) == kept
    assert ingest(settings).new_records == 0


@pytest.mark.parametrize("meanwhile", ["grew", "was torn", "was replaced", "was rewritten"])
def test_a_file_that_changed_after_such_a_crash_is_rebuilt_as_it_was_read(
    meanwhile: str, settings: Settings, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = story("changing", 6)
    whole = said.text().encode()
    lines = whole.splitlines(keepends=True)
    states = {
        "grew": (b"".join(lines[:10]), whole),
        "was torn": (b"".join(lines[:10]) + lines[10][:50], whole),
        "was replaced": (b"".join(lines[:10]), b"".join(lines[6:])),
        "was rewritten": (whole, b"".join(lines[:4] + lines[5:])),
    }[meanwhile]
    write(said.path(home), states[0])
    crash_before_commit(settings, monkeypatch)
    write(said.path(home), states[1])
    ingest(settings)
    before = derived(settings, segments=True)
    assert shown(settings, said.session_id) == states[1]
    assert rebuild(settings).gaps == []
    assert shown(settings, said.session_id) == states[1]
    assert_equal(derived(settings, segments=True), before)


@pytest.mark.parametrize("fate", ["deleted", "put back from an old backup"])
def test_an_ingest_into_a_database_that_was_lost_loses_nothing(
    fate: str, settings: Settings, home: Path, tmp_path: Path
) -> None:
    early, late, after = story("early"), story("late"), story("after")
    early.save(home)
    ingest(settings)
    backup = shutil.copy(settings.database, tmp_path / "backup.db")
    path = late.save(home)
    ingest(settings)
    path.unlink()
    settings.database.unlink()
    if fate != "deleted":
        shutil.copy(backup, settings.database)
    after.save(home)
    ingest(settings)
    rebuild(settings)
    for said in (early, late, after):
        assert shown(settings, said.session_id) == said.text().encode()


# -- and on it goes ------------------------------------------------------------------------------


def test_ingest_after_a_rebuild_reads_only_what_is_new(settings: Settings, home: Path) -> None:
    said = populate(home)
    ingest(settings)
    for path in settings.home.glob("whyfor.db*"):
        path.unlink()
    rebuild(settings)
    before = derived(settings, segments=True)
    assert ingest(settings).new_records == 0
    assert_equal(derived(settings, segments=True), before)
    change(home, said)
    new = ingest(settings).new_records
    assert new == 1 + len(said[1].lines) - 1  # one was appended, one file was rewritten
    assert shown(settings, said[0].session_id) == said[0].text().encode()
    settled = on_disk(settings.home)
    assert ingest(settings).new_records == 0
    assert on_disk(settings.home) == settled


def test_a_rebuild_and_an_ingest_that_goes_on_equal_an_ingest_without_it(
    settings: Settings, home: Path, tmp_path: Path
) -> None:
    plain = Settings(home=tmp_path / "plain", user_home=home, env={})
    said = populate(home)
    for each in (settings, plain):
        ingest(each)
    rebuild(settings)
    change(home, said)
    for each in (settings, plain):
        ingest(each)
    assert_equal(derived(settings), derived(plain))
    assert stored_bytes(settings) == stored_bytes(plain)


def test_a_newer_database_is_not_touched(
    settings: Settings, home: Path, cli: Callable[..., Any]
) -> None:
    story().save(home)
    cli("ingest")
    db = apsw.Connection(str(settings.database))
    db.pragma("user_version", 99)
    db.close()
    before = on_disk(settings.home)
    for command in (
        ["ingest"],
        ["sessions"],
        ["search", "apples"],
        ["show", "x"],
        ["rebuild"],
        ["stats"],
    ):
        result = cli(*command, "--json")
        assert (result.code, result.json["error"]["kind"]) == (2, "newer_store"), command
        plain = cli(*command)
        assert (plain.code, plain.out, len(plain.err.splitlines())) == (2, "", 2), command
    assert on_disk(settings.home) == before


def test_an_open_reader_sees_the_old_or_the_new_database_and_nothing_between(
    lived: Settings,
) -> None:
    db = apsw.Connection(str(lived.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        [(sessions,)] = db.execute("SELECT count(*) FROM sessions")
        rebuild(lived)
        assert list(db.execute("SELECT count(*) FROM sessions")) == [(sessions,)]
    finally:
        db.close()
    assert b"".join(raw_records(lived, PACKED)) == codex_rollout(PACKED)
