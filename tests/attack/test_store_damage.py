"""Damage to our own files: it is seen, it is named, and what one file lost the others give back."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.capture.snapshot import Snapshot, assert_equal, derived
from tests.capture.test_ingest import story, write
from tests.store.downgrade import downgrade
from tests.transcripts import Transcript
from whyfor.capture.completion import complete_entries
from whyfor.config import Settings
from whyfor.model.errors import Disagreement, NewerStore
from whyfor.model.sessions import Project
from whyfor.service.forget import ForgetArguments, forget
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.store.blobs import FolderBlobs
from whyfor.store.journal import Journal, PauseEntry, PlaceEntry, SegmentEntry
from whyfor.store.open import reading_local

Cli = Callable[..., Any]


def everything(settings: Settings) -> Snapshot:
    return derived(settings, observed=True, segments=True)


@pytest.fixture
def stored(settings: Settings, home: Path) -> Settings:
    """Four sessions, two of them read in several pieces; one file has moved, one is gone."""
    said = [story(name, 3) for name in ("alpha", "beta", "gamma", "delta")]
    for transcript in said:
        transcript.save(home)
    ingest(settings)
    for transcript in said[:2]:
        transcript.prompt("and then")
        transcript.save(home)
    ingest(settings)
    moved = said[1].path(home).parent.with_name("-code-elsewhere") / said[1].path(home).name
    said[1].prompt("after the move")
    write(moved, said[1].text())
    said[1].path(home).unlink()
    ingest(settings)
    said[3].path(home).unlink()
    return settings


def lines_of(settings: Settings) -> list[bytes]:
    return settings.journal.read_bytes().splitlines(keepends=True)


def segment_line(settings: Settings, number: int) -> int:
    """Where the n-th segment stands in the journal."""
    places = [at for at, line in enumerate(lines_of(settings)) if b'"entry":"segment"' in line]
    return places[number]


def put_nul_into(settings: Settings, at: int) -> None:
    lines = lines_of(settings)
    lines[at] = lines[at][:20] + b"\0\0\0" + lines[at][23:]
    settings.journal.write_bytes(b"".join(lines))


def without_database(settings: Settings) -> None:
    for path in settings.home.glob("whyfor.db*"):
        path.unlink()


def sessions_in(settings: Settings) -> int:
    with reading_local(settings) as library:
        return library.stats.totals().sessions


def objects_in(settings: Settings) -> set[str]:
    return set(FolderBlobs(settings.segments).digests())


# -- the journal ---------------------------------------------------------------------------------


def empty(settings: Settings) -> None:
    settings.journal.write_bytes(b"")


def delete(settings: Settings) -> None:
    settings.journal.unlink()


def nul_bytes(settings: Settings) -> None:
    put_nul_into(settings, segment_line(settings, 0))


def cut_in_half(settings: Settings) -> None:
    lines = lines_of(settings)
    settings.journal.write_bytes(b"".join(lines[: len(lines) // 2]))


def lose_the_beginning(settings: Settings) -> None:
    settings.journal.write_bytes(b"".join(lines_of(settings)[3:]))


def lose_one_line(settings: Settings) -> None:
    lines = lines_of(settings)
    del lines[segment_line(settings, 1)]
    settings.journal.write_bytes(b"".join(lines))


def lose_the_move(settings: Settings) -> None:
    settings.journal.write_bytes(
        b"".join(line for line in lines_of(settings) if b'"entry":"moved"' not in line)
    )


def change_one_digit(settings: Settings) -> None:
    lines = lines_of(settings)
    at = segment_line(settings, 2)
    lines[at] = lines[at].replace(b'"generation":0', b'"generation":7')
    settings.journal.write_bytes(b"".join(lines))


def wrong_shape(settings: Settings) -> None:
    lines = lines_of(settings)
    at = segment_line(settings, 2)
    lines[at] = lines[at].replace(b'"generation":0', b'"generation":[]')
    settings.journal.write_bytes(b"".join(lines))


def garbage(settings: Settings) -> None:
    settings.journal.write_bytes(bytes(range(256)) * 40)


JOURNAL_DAMAGE = [
    *(empty, delete, nul_bytes, cut_in_half, lose_the_beginning, lose_one_line, lose_the_move),
    *(change_one_digit, wrong_shape, garbage),
]


@pytest.mark.parametrize("damage", JOURNAL_DAMAGE)
def test_doctor_names_a_damaged_journal_and_removes_nothing(
    damage: Callable[[Settings], None], stored: Settings, cli: Cli
) -> None:
    assert cli("doctor").code == 0
    before = objects_in(stored)
    damage(stored)
    told = cli("doctor", "--json")
    assert told.code == 1
    assert told.json["store"]["disagreements"]
    shown = cli("doctor")
    assert "Nothing was dropped" not in shown.out
    assert "whyfor rebuild" in shown.out
    assert objects_in(stored) == before


@pytest.mark.parametrize("damage", JOURNAL_DAMAGE)
@pytest.mark.parametrize("verb", ["ingest", "rebuild"])
def test_what_the_journal_lost_the_database_gives_back(
    verb: str, damage: Callable[[Settings], None], stored: Settings, cli: Cli
) -> None:
    before, objects = everything(stored), objects_in(stored)
    damage(stored)
    done = cli(verb, "--json")
    assert (done.code, len(done.json["repairs"])) == (0, 1), done
    assert "completed from the database" in done.json["repairs"][0]
    assert_equal(everything(stored), before)
    assert objects_in(stored) == objects
    assert cli("doctor", "--deep").code == 0
    without_database(stored)
    assert rebuild(stored).gaps == []
    assert_equal(everything(stored), before)


@pytest.mark.parametrize("damage", JOURNAL_DAMAGE)
def test_forgetting_one_session_never_takes_another_with_it(
    damage: Callable[[Settings], None], stored: Settings, home: Path
) -> None:
    """Whatever happened to the journal: the three other sessions and all their bytes are still
    there."""
    kept = {name: story(name).session_id for name in ("beta", "gamma", "delta")}
    damage(stored)
    forget(stored, home, ForgetArguments(reference=story("alpha").session_id))
    assert sessions_in(stored) == 3
    for session in kept.values():
        with reading_local(stored) as library:
            rows = library.db.execute(
                "SELECT g.digest FROM segments g JOIN sources o ON o.id=g.source_id WHERE "
                "o.session_id=?",
                (session,),
            ).fetchall()
            assert rows
            for (digest,) in rows:
                library.blobs.get(str(digest))


def test_a_forget_that_finds_a_disagreement_removes_nothing(
    stored: Settings, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage that changes neither the size nor the time of the journal is found before anything
    goes."""
    before = objects_in(stored)
    found = stored.journal.stat()
    put_nul_into(stored, segment_line(stored, 1))
    os.utime(stored.journal, ns=(found.st_atime_ns, found.st_mtime_ns))
    with pytest.raises(Disagreement, match="nothing was removed"):
        forget(stored, home, ForgetArguments(reference=story("alpha").session_id))
    assert objects_in(stored) == before
    assert sessions_in(stored) == 4
    assert "completed" in rebuild(stored).repairs[0]
    forget(stored, home, ForgetArguments(reference=story("alpha").session_id))
    assert sessions_in(stored) == 3


def test_what_was_forgotten_does_not_come_back_with_an_old_database(
    stored: Settings, home: Path
) -> None:
    old = stored.home / "old.db"
    copy_database(stored, old)
    forget(stored, home, ForgetArguments(reference=story("alpha").session_id))
    without_database(stored)
    shutil.move(old, stored.database)
    assert "older" in ingest(stored).repairs[0]
    assert sessions_in(stored) == 3
    with reading_local(stored) as library:
        assert not library.db.execute(
            "SELECT 1 FROM sessions WHERE session_id=?", (story("alpha").session_id,)
        ).fetchall()


def test_both_damaged_give_back_what_either_has(stored: Settings, cli: Cli) -> None:
    """The journal lost a line and the database a page: neither alone knows everything, and
    nothing is removed."""
    before = objects_in(stored)
    lose_one_line(stored)
    overwrite_pages(stored, every=9)
    report = cli("ingest", "--json")
    assert report.code == 0
    assert objects_in(stored) >= before
    assert sessions_in(stored) >= 3


def test_segments_that_nothing_lists_are_set_aside_not_removed(
    stored: Settings, home: Path, cli: Cli
) -> None:
    before = objects_in(stored)
    without_database(stored)
    stored.journal.unlink()
    report = ingest(stored)
    assert "segments are kept as" in report.repairs[0]
    [aside] = stored.home.glob("segments.unlisted-*")
    assert {path.name.removesuffix(".zst") for path in aside.glob("*/*.zst")} == before
    assert sessions_in(stored) == 3, "what the agents still have is read again"
    forget(stored, home, ForgetArguments(reference=story("gamma").session_id))
    assert {path.name.removesuffix(".zst") for path in aside.glob("*/*.zst")} == before
    assert aside.name in cli("doctor").out


def test_a_rebuild_from_a_damaged_journal_alone_says_what_is_missing(
    stored: Settings, home: Path
) -> None:
    without_database(stored)
    lines = lines_of(stored)
    session = story("alpha").session_id.encode()
    first = next(at for at, line in enumerate(lines) if session in line and b'"segment"' in line)
    put_nul_into(stored, first)
    before = objects_in(stored)
    report = rebuild(stored)
    assert [gap.start for gap in report.gaps] == [0]
    assert objects_in(stored) == before
    with pytest.raises(Disagreement, match="nothing was removed"):
        forget(stored, home, ForgetArguments(reference=story("gamma").session_id))
    assert "kept as segments.unlisted" in rebuild(stored).repairs[0]
    [aside] = stored.home.glob("segments.unlisted-*")
    assert len(list(aside.glob("*/*.zst"))) == 1
    assert len(objects_in(stored)) == len(before) - 1
    forget(stored, home, ForgetArguments(reference=story("gamma").session_id))
    assert len(list(aside.glob("*/*.zst"))) == 1


def test_a_journal_that_is_gone_gets_places_and_pauses_back(stored: Settings, cli: Cli) -> None:
    pause_and_resume(stored, cli)
    kept = last_words(stored)
    assert {type(entry) for entry in kept.values()} == {PlaceEntry, PauseEntry}
    stored.journal.unlink()
    assert ingest(stored).repairs
    assert last_words(stored) == kept


def test_a_folder_comes_back_before_the_session_that_ran_in_it() -> None:
    """Its project was looked up after the session's first bytes were seen."""
    project = Project("example.com/shop", "remote", "shop")
    place = PlaceEntry("/code/shop", project, observed_at=105)
    segment = SegmentEntry("claude", "/t.jsonl", 0, 0, 9, "d" * 64, 100, "lines", "s")
    later = SegmentEntry("claude", "/t.jsonl", 0, 9, 20, "e" * 64, 200, "lines", "s")
    found = complete_entries([later], [segment, later, place], lambda _: True, newer=True)
    assert found == [place, segment, later]


def test_a_session_keeps_its_project_when_the_journal_is_gone(
    settings: Settings, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = itertools.count(1_800_000_000_000, 7)
    monkeypatch.setattr("whyfor.service.ingest.wall_clock", lambda: next(ticks))
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    told = Transcript("placed", cwd=str(folder))
    told.prompt("Hello")
    told.save(home)
    ingest(settings)
    before = everything(settings)
    settings.journal.unlink()
    ingest(settings)
    without_database(settings)
    rebuild(settings)
    assert everything(settings)["sessions"] == before["sessions"]


def last_words(settings: Settings) -> dict[str, PlaceEntry | PauseEntry]:
    found: dict[str, PlaceEntry | PauseEntry] = {}
    for entry in Journal(settings.journal).entries():
        if isinstance(entry, PlaceEntry | PauseEntry):
            found[entry.cwd if isinstance(entry, PlaceEntry) else entry.id] = entry
    return found


def pause_and_resume(settings: Settings, cli: Cli) -> None:
    assert cli("pause").code == 0
    assert cli("resume").code == 0
    ingest(settings)


# -- lines of a journal --------------------------------------------------------------------------


def test_each_line_has_a_number_and_a_checksum(stored: Settings) -> None:
    for number, line in enumerate(lines_of(stored), 1):
        told, _, checksum = line.rstrip(b"\n").rpartition(b',"crc":"')
        assert json.loads(line)["n"] == number
        assert f"{zlib.crc32(told):08x}" == checksum.removesuffix(b'"}').decode()


@pytest.mark.parametrize("where", range(0, 100, 7))
def test_any_changed_byte_is_seen(where: int, stored: Settings) -> None:
    lines = lines_of(stored)
    at = len(lines) // 2
    place = len(lines[at]) * where // 100
    changed = bytearray(lines[at])
    changed[place] ^= 0x20
    lines[at] = bytes(changed)
    stored.journal.write_bytes(b"".join(lines))
    assert not Journal(stored.journal).check().whole


def test_a_line_torn_by_a_crash_is_no_damage(stored: Settings, home: Path, cli: Cli) -> None:
    """The database did not take what it said either: the next ingest reads it again."""
    with stored.journal.open("ab") as file:
        file.write(b'{"entry":"segment","agent":"claude","path":"/x')
    assert cli("doctor").code == 0
    story("epsilon").save(home)
    assert ingest(stored).repairs == []
    assert cli("doctor").code == 0
    assert sessions_in(stored) == 5


def of_before(settings: Settings) -> list[bytes]:
    """A journal as it was written before lines had numbers."""
    found = []
    for line in lines_of(settings):
        fields = json.loads(line)
        if fields["entry"] == "start":
            continue
        del fields["n"], fields["crc"]
        found.append(json.dumps(fields, separators=(",", ":")).encode() + b"\n")
    return found


def database_of_before(settings: Settings) -> None:
    db = apsw.Connection(str(settings.database))
    downgrade(db, 8)
    db.close()


def test_a_journal_of_before_is_read_and_continued(stored: Settings, home: Path, cli: Cli) -> None:
    before = everything(stored)
    settings = stored
    settings.journal.write_bytes(b"".join(of_before(settings)))
    database_of_before(settings)
    assert ingest(settings).repairs == []
    assert_equal(everything(settings), before)
    story("epsilon").save(home)
    ingest(settings)
    assert cli("doctor").code == 0
    after = everything(settings)
    without_database(settings)
    rebuild(settings)
    assert_equal(everything(settings), after)
    put_nul_into(settings, segment_line(settings, 0))
    assert cli("doctor").code == 1


def test_an_intact_line_of_a_newer_program_is_not_called_damage(stored: Settings) -> None:
    told = b'{"entry":"dance","steps":3,"n":%d' % (len(lines_of(stored)) + 1)
    with stored.journal.open("ab") as file:
        file.write(told + b',"crc":"%08x"}\n' % zlib.crc32(told))
    with pytest.raises(NewerStore, match="dance"):
        ingest(stored)


# -- the database --------------------------------------------------------------------------------


def overwrite_pages(settings: Settings, every: int = 3) -> None:
    checkpoint(settings)
    data = bytearray(settings.database.read_bytes())
    for at in range(4096, len(data), 4096 * every):
        data[at : at + 2000] = b"\xde\xad" * 1000
    settings.database.write_bytes(data)


def checkpoint(settings: Settings) -> None:
    db = apsw.Connection(str(settings.database))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()


def copy_database(settings: Settings, to: Path) -> None:
    db = apsw.Connection(str(settings.database))
    db.execute("VACUUM INTO ?", (str(to),))
    db.close()


def all_garbage(settings: Settings) -> None:
    settings.database.write_bytes(b"this was never a database\n" * 1000)


def truncate(settings: Settings) -> None:
    checkpoint(settings)
    data = settings.database.read_bytes()
    settings.database.write_bytes(data[: len(data) // 3])


def lose_a_table(settings: Settings) -> None:
    db = apsw.Connection(str(settings.database))
    db.execute("DROP TABLE touches")
    db.close()


def empty_database(settings: Settings) -> None:
    for path in settings.home.glob("whyfor.db-*"):
        path.unlink()
    settings.database.write_bytes(b"")


@pytest.mark.parametrize(
    "damage",
    [overwrite_pages, all_garbage, truncate, lose_a_table, empty_database, without_database],
)
def test_a_damaged_database_never_stops_capture(
    damage: Callable[[Settings], None], stored: Settings, home: Path, cli: Cli
) -> None:
    before = sessions_in(stored)
    damage(stored)
    story("epsilon").save(home)
    done = cli("ingest")
    assert done.code == 0
    assert len([line for line in done.out.splitlines() if "rebuilt" in line]) == 1, done.out
    assert sessions_in(stored) == before + 1
    assert cli("doctor", "--deep").code == 0
    assert_equal(everything(stored), rebuilt(stored))


def rebuilt(settings: Settings) -> Snapshot:
    rebuild(settings)
    return everything(settings)


def test_a_hook_s_ingest_mends_it_too(stored: Settings, home: Path, cli: Cli) -> None:
    all_garbage(stored)
    story("epsilon").save(home)
    assert cli("ingest", "--background").code == 0
    assert sessions_in(stored) == 5


def test_an_old_backup_under_a_newer_journal_catches_up(
    stored: Settings, home: Path, cli: Cli
) -> None:
    """Also what the agents have deleted since, which could not be read again."""
    old = stored.home / "old.db"
    copy_database(stored, old)
    for name in ("epsilon", "zeta"):
        late = story(name)
        path = late.save(home)
        ingest(stored)
        late.prompt("one more")
        late.save(home)
        ingest(stored)
        path.unlink()
    before = everything(stored)
    without_database(stored)
    shutil.move(old, stored.database)
    assert ingest(stored).repairs == []
    assert_equal(everything(stored), before)
    assert cli("doctor").code == 0


def test_a_lost_write_ahead_log_is_made_up_for(stored: Settings, home: Path, cli: Cli) -> None:
    checkpoint(stored)
    kept = stored.database.read_bytes()
    late = story("epsilon")
    path = late.save(home)
    ingest(stored)
    path.unlink()
    before = everything(stored)
    for side in ("-wal", "-shm"):
        stored.database.with_name(stored.database.name + side).unlink(missing_ok=True)
    stored.database.write_bytes(kept)
    assert ingest(stored).repairs == []
    assert_equal(everything(stored), before)


def test_writing_verbs_do_not_write_beside_a_damaged_journal(stored: Settings, cli: Cli) -> None:
    """They make both agree first, as ingest does."""
    before = everything(stored)
    cut_in_half(stored)
    assert cli("pause").code == 0
    assert cli("resume").code == 0
    ingest(stored)
    assert Journal(stored.journal).check().whole
    assert everything(stored)["sessions"] == before["sessions"]


def test_a_damaged_table_is_seen_at_once_and_a_damaged_search_index_by_a_deep_check(
    stored: Settings, cli: Cli
) -> None:
    database = apsw.Connection(str(stored.database))
    sound = stored.database.read_bytes()
    (page,) = next(database.execute("SELECT rootpage FROM sqlite_schema WHERE name='touches'"))
    database.execute("UPDATE words_data SET block=x'00' WHERE id > 10")
    database.close()
    assert cli("doctor").code == 0
    assert "the database is damaged" in cli("doctor", "--deep").out

    size = int.from_bytes(sound[16:18], "big")
    torn = bytearray(sound)
    torn[(page - 1) * size : page * size] = bytes(size)
    stored.database.write_bytes(torn)
    assert "the database is damaged" in cli("doctor").out
