"""Small files that hold very much, lines that are very long, limits that are very low: capture
goes on."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO

import pytest
import zstandard

from tests.agents.readers.test_opencode import Writer
from tests.capture.snapshot import assert_equal, derived, stored_bytes
from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.agents import decode
from whyfor.agents.base import MAX_DECODED
from whyfor.capture import tail
from whyfor.config import Settings
from whyfor.model.sources import UnparsedRecord
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.service.show import raw_records

Cli = Callable[..., Result]
MB = 1 << 20


def story(name: str) -> Transcript:
    told = Transcript(name)
    told.prompt(f"question of {name}")
    told.say("answer")
    return told


def pack(path: Path, times: int, content: bytes = b"\0" * 32 * MB, *, claim: bool = False) -> Path:
    """Write a packed file that holds the content so many times."""
    path.parent.mkdir(parents=True, exist_ok=True)
    packer = zstandard.ZstdCompressor(level=1, write_content_size=claim)
    path.write_bytes(packer.compress(content) * times)
    return path


def rollouts(home: Path) -> Path:
    return home / ".codex" / "sessions"


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


# -- packed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("claim", [False, True])
def test_a_bomb_is_given_up_at_once_and_the_rest_is_read_first(
    settings: Settings, home: Path, cli: Cli, claim: bool
) -> None:
    bomb = pack(rollouts(home) / "a.jsonl.zst", 4, claim=claim)
    large = pack(rollouts(home) / "b.jsonl.zst", 96, claim=claim)
    assert (bomb.stat().st_size < 20_000, large.stat().st_size < 400_000) == (True, True)
    story("behind").save(home)
    begun = cpu()
    report = ingest(settings)
    assert cpu() - begun < 1.5
    assert report.sessions == 1
    assert [item.path for item in report.unreadable] == [str(bomb), str(large)]
    assert all("no transcript packs so well" in item.reason for item in report.unreadable)
    assert cli("doctor").code == 1


def test_a_bomb_of_lines_is_given_up_and_leaves_nothing(settings: Settings, home: Path) -> None:
    line = json.dumps(
        {"timestamp": "2026-05-01T10:00:00Z", "type": "session_meta", "payload": {"id": "bomb"}}
    )
    block = b"".join(line.encode() + b" " * MB + b"\n" for _ in range(20))
    bomb = pack(rollouts(home) / "rollout.jsonl.zst", 10, block)
    story("behind").save(home)
    report = ingest(settings)
    assert [item.path for item in report.unreadable] == [str(bomb)]
    assert (report.sessions, report.records) == (1, 2)
    assert str(bomb) not in stored_bytes(settings)


def test_what_was_refused_is_not_opened_again_until_it_changes(
    settings: Settings, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = pack(rollouts(home) / "a.jsonl.zst", 4)
    story("behind").save(home)
    ingest(settings)
    opened: list[Path] = []
    original = tail.open_source

    def noted(path: Path) -> AbstractContextManager[BinaryIO]:
        opened.append(path)
        return original(path)

    monkeypatch.setattr(tail, "open_source", noted)
    assert [item.path for item in ingest(settings).unreadable] == [str(bomb)]
    assert opened == []
    told = [{"id": "real"}, {"id": "real", "cwd": "/w"}]
    lines = [
        {"timestamp": "2026-05-01T10:00:00Z", "type": "session_meta", "payload": each}
        for each in told
    ]
    bomb.write_bytes(
        zstandard.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
    )
    again = ingest(settings)
    assert (again.unreadable, again.sessions) == ([], 2)
    assert not (settings.home / "unreadable.json").exists()


def test_a_real_transcript_that_packs_well_is_read(settings: Settings, home: Path) -> None:
    """The same long output again and again: a hundred times as large unpacked."""
    told = [{"type": "session_meta", "payload": {"id": "long", "cwd": "/w"}}]
    for number in range(1000):
        output = hashlib.sha512(str(number).encode()).hexdigest() + "ok " * 6000
        result = {"type": "function_call_output", "call_id": str(number), "output": output}
        told.append({"type": "response_item", "payload": result})
    stamp = {"timestamp": "2026-05-01T10:00:00Z"}
    content = "".join(json.dumps({**stamp, **line}) + "\n" for line in told).encode()
    path = rollouts(home) / "rollout.jsonl.zst"
    path.parent.mkdir(parents=True)
    path.write_bytes(zstandard.ZstdCompressor(level=3).compress(content))
    assert len(content) > tail.ALWAYS_UNPACKED
    assert len(content) > 100 * path.stat().st_size
    report = ingest(settings)
    assert (report.unreadable, report.records) == ([], len(told))


def test_a_window_that_needs_too_much_memory_is_refused(settings: Settings, home: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters(
        window_log=30, enable_ldm=True, compression_level=1
    )
    path = rollouts(home) / "wide.jsonl.zst"
    path.parent.mkdir(parents=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path.write_bytes(packer.compress(os.urandom(MB)) + packer.flush())
    story("behind").save(home)
    report = ingest(settings)
    assert report.sessions == 1
    assert "memory" in report.unreadable[0].reason


def test_redact_gives_up_on_a_bomb(tmp_path: Path, cli: Cli) -> None:
    bomb = pack(tmp_path / "bomb.zst", 8)
    told = cli("redact", bomb)
    assert (told.code, told.out, len(told.err.splitlines())) == (2, "", 2)


# -- lines and documents -------------------------------------------------------------------------


def test_a_line_that_is_too_large_is_kept_raw_and_counted_once(
    settings: Settings, home: Path
) -> None:
    told = story("huge")
    told.prompt("x" * (2 * MAX_DECODED + 5 * MB))
    told.say("what came after")
    path = told.save(home)
    report = ingest(settings)
    assert (report.unreadable, report.records, report.unparsed) == ([], 4, 1)
    before = derived(settings)
    assert [row[4] for row in before["unparsed"]] == [decode.TOO_LARGE]
    assert stored_bytes(settings) == {str(path): path.read_bytes()}
    assert b"".join(raw_records(settings, told.session_id)) == path.read_bytes()
    assert "what came after" in [row[11] for row in before["events"]]
    rebuild(settings)
    assert_equal(derived(settings), before)
    assert ingest(settings).new_records == 0


def test_private_text_in_a_line_that_was_cut_is_not_kept(settings: Settings, home: Path) -> None:
    """What follows the tag stands in another piece of the line."""
    told = story("hidden")
    told.prompt(
        "x" * (MAX_DECODED - 1000)
        + "<private>"
        + "y" * MAX_DECODED
        + "hidden words</private> and more"
    )
    told.say("what came after")
    told.save(home)
    assert ingest(settings).unreadable == []
    kept = b"".join(stored_bytes(settings).values())
    assert b"hidden words" not in kept
    assert b"what came after" in kept


@pytest.mark.parametrize("depth", [100, 900, 990, 1000, 100_000, 10_000_000])
def test_json_of_any_depth_is_decoded_or_refused(depth: int) -> None:
    found = decode.decode_line(b'{"a":' * depth + b"1" + b"}" * depth, 0)
    assert isinstance(found, list) or found.reason in ("nested too deeply", decode.TOO_LARGE)


def test_json_that_would_fill_the_memory_is_refused() -> None:
    found = decode.decode_line(b'{"a":[' + b"{}," * (7 * MB) + b"{}]}", 0)
    assert isinstance(found, UnparsedRecord)
    assert found.reason == "too large for the memory there is"


def test_a_row_of_a_database_that_is_too_large_leaves_the_others(
    settings: Settings, home: Path
) -> None:
    database = home / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True)
    rows = Writer(database)
    for session in ("ses_1", "ses_2"):
        rows.session(session)
        rows.user(f"msg_{session}", session)
        rows.part(f"prt_{session}", f"msg_{session}", "text", session, text="found")
    rows.part("prt_huge", "msg_ses_1", "text", "ses_1", text="x" * (MAX_DECODED + MB))
    rows.db.close()
    report = ingest(settings)
    assert (report.unreadable, report.sessions, report.unknown_types) == ([], 2, 1)
    told = derived(settings)
    assert [row[1] for row in told["unknown_types"]] == ["part of more than 32 MB"]
    assert sum(row[11] == "found" for row in told["events"]) == 2
    assert ingest(settings).new_records == 0


# -- processes that may have little --------------------------------------------------------------


def run_limited(limit: int, number: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of ours with a limit on what it may have."""
    command = [sys.executable, "-m", "whyfor", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "WHYFOR_DEBUG"}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        stdin=subprocess.DEVNULL,
        check=False,
        preexec_fn=lambda: resource.setrlimit(limit, (number, number)),
    )


def test_a_line_of_60_mb_does_not_end_a_process_that_has_400_mb(home: Path) -> None:
    for name in ("a", "c"):
        story(name).save(home)
    huge = Transcript("b")
    huge.prompt("x" * 60_000_000)
    huge.save(home)
    for kilobytes in (400_000, 330_000, 290_000):
        done = run_limited(resource.RLIMIT_AS, kilobytes * 1024, "ingest", "--json")
        assert done.returncode == 0, (kilobytes, done.stderr[-500:])
        assert json.loads(done.stdout)["sessions"] >= 2
    done = run_limited(resource.RLIMIT_AS, 400_000 * 1024, "ingest", "--json")
    report = json.loads(done.stdout)
    assert (report["sessions"], report["unparsed"], report["unreadable"]) == (3, 1, [])


@pytest.mark.parametrize(
    "arguments",
    [
        ["ingest"],
        ["sessions"],
        ["doctor"],
        ["log"],
        ["serve", "--no-open"],
        ["rebuild"],
        ["demo"],
        ["init"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_too_few_open_files_are_told_in_two_lines(home: Path, arguments: list[str]) -> None:
    story("a").save(home)
    done = run_limited(resource.RLIMIT_NOFILE, 12, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "error: this process may have only 12 files open",
        "Nothing was lost. Allow more, then run it again: ulimit -n 1024",
    ]


def test_a_panic_of_a_library_is_told_in_two_lines(
    home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a library written in Rust raises is no Exception."""

    class PanicException(BaseException):
        pass

    def panic(*arguments: object, **options: object) -> None:
        raise PanicException(
            "Unable to build Tokio runtime: Os { code: 24, kind: TooManyOpenFiles }"
        )

    story("a").save(home)
    monkeypatch.setattr("whyfor.store.blobs.FolderBlobs.put", panic)
    told = cli("ingest")
    assert (told.code, told.out, len(told.err.splitlines())) == (2, "", 2)


def test_a_hook_that_may_open_few_files_says_nothing(
    home: Path, cli: Cli, settings: Settings
) -> None:
    (home / ".claude").mkdir()
    assert cli("init", "--json").code == 0
    entries = json.loads((home / ".claude" / "settings.json").read_text())["hooks"]["Stop"]
    command = entries[0]["hooks"][0]["command"]
    for number in (12, 6, 4):
        done = subprocess.run(
            ["/bin/sh", "-c", f"ulimit -n {number}; {command}"],
            input=b'{"session_id":"s","transcript_path":"/t"}',
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    begun = time.monotonic()
    background = run_limited(resource.RLIMIT_NOFILE, 12, "ingest", "--background")
    assert (background.stdout, background.stderr) == ("", "")
    assert time.monotonic() - begun < 20
