"""The command: what it asks, says and refuses; what is old; and how long things are kept."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.capture.snapshot import assert_equal, derived, on_disk
from tests.capture.test_ingest import story, write
from tests.service.forget.test_sessions import secret, subagent
from tests.service.forget.traces import CANARY, traces
from tests.transcripts import Transcript
from whyfor import config
from whyfor.config import Settings
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild

Cli = Callable[..., Any]


@pytest.fixture
def kept(settings: Settings, home: Path) -> Settings:
    story("one").save(home)
    secret().save(home)
    ingest(settings)
    return settings


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["3f05", "--match", "something"],
        ["--match", "something", "--before", "1d"],
        ["--before", "soon"],
    ],
    ids=" ".join,
)
def test_it_wants_to_know_exactly_what(arguments: list[str], kept: Settings, cli: Cli) -> None:
    before = on_disk(kept.home)
    done = cli("forget", *arguments, "--yes", "--json")
    assert (done.code, done.json["error"]["kind"]) == (2, "bad_input")
    assert on_disk(kept.home) == before


def test_what_is_not_there_cannot_be_forgotten(kept: Settings, cli: Cli) -> None:
    assert cli("forget", "feedfacefeed", "--yes", "--json").json["error"]["kind"] == "not_found"


def test_nothing_is_kept_yet(cli: Cli) -> None:
    assert cli("forget", "3f05", "--yes", "--json").json["error"]["kind"] == "not_found"


def test_without_a_terminal_it_does_nothing_unless_told_yes(kept: Settings, cli: Cli) -> None:
    before = on_disk(kept.home)
    for arguments in ([], ["--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "whyfor", "forget", secret().session_id, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 2
        assert "--yes" in done.stdout + done.stderr
    assert on_disk(kept.home) == before


@pytest.mark.parametrize("answer", ["n", "y"])
def test_on_a_terminal_it_shows_what_would_go_and_asks(answer: str, kept: Settings) -> None:
    before = on_disk(kept.home)
    said, code = _typed(
        [sys.executable, "-m", "whyfor", "forget", secret().session_id], answer + "\n"
    )
    assert "Would forget: 1 session" in said
    assert "Forget it for good?" in said
    assert code == (0 if answer == "y" else 130)
    assert (traces(kept.home) == []) == (answer == "y")
    assert (on_disk(kept.home) == before) == (answer == "n")


def _typed(command: list[str], answer: str) -> tuple[str, int]:
    """What a person sees who answers."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    ) as process:
        os.close(theirs)
        seen = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            if b"[y/N]" in seen + part and b"[y/N]" not in seen:
                os.write(ours, answer.encode())
            seen += part
        code = process.wait(60)
    os.close(ours)
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen.decode(errors="replace")).replace(
        "\r\n", "\n"
    ), code


def test_a_text_can_be_read_from_stdin(kept: Settings) -> None:
    command = [sys.executable, "-m", "whyfor", "forget", "--match", "-", "--yes"]
    done = subprocess.run(
        command, input=f"{CANARY}\n", capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done
    assert traces(kept.home) == []


def test_it_names_the_file_that_is_not_touched_and_copies_elsewhere(
    kept: Settings, home: Path, cli: Cli
) -> None:
    said = secret()
    fork = Transcript("fork")
    origin = {"sessionId": said.session_id, "messageUuid": "x"}
    fork.lines = [
        {**line, "sessionId": fork.session_id, "forkedFrom": origin} for line in said.lines
    ]
    fork.save(home)
    ingest(kept)
    content = said.path(home).read_bytes()
    done = cli("forget", said.session_id, "--yes")
    assert done.code == 0
    assert str(said.path(home)) in done.out
    assert f"whyfor forget claude:{fork.session_id}" in done.out
    assert said.path(home).read_bytes() == content
    shown = cli("sessions", "--json").json
    assert {s["session_id"] for s in shown} == {story("one").session_id, fork.session_id}
    before = derived(kept)
    rebuild(kept)
    assert_equal({**derived(kept), "sources": []}, {**before, "sources": []})
    assert cli("forget", f"claude:{fork.session_id}", "--yes").code == 0
    assert traces(kept.home) == []


# -- what is old ---------------------------------------------------------------------------------


def aged(home: Path) -> tuple[Transcript, Transcript]:
    old, new = Transcript("old", day="2020-01-31"), Transcript("new", day="2030-01-31")
    for said, word in ((old, CANARY), (new, "fresh")):
        said.prompt(f"a question about {word}")
        said.say(f"an answer about {word}")
        said.save(home)
    return old, new


@pytest.mark.parametrize("date", ["2020-02-01", "90d", "1y"])
def test_sessions_that_ended_before_a_date_go(
    date: str, settings: Settings, home: Path, cli: Cli
) -> None:
    old, new = aged(home)
    subagent(home, old)
    ingest(settings)
    assert cli("forget", "--before", "2020-01-31", "--yes", "--json").json["sessions"] == []
    done = cli("forget", "--before", date, "--yes", "--json").json
    assert [gone["session_id"] for gone in done["sessions"] if not gone["subagent"]] == [
        old.session_id
    ]
    assert traces(settings.home) == []
    ingest(settings)
    assert [s["session_id"] for s in cli("sessions", "--json").json] == [new.session_id]


ENVELOPE = (
    '\n{{"v":1,"at":{at},"agent":"claude","event":"Stop","cwd":"/code/shop"}}\t'
    '{{"session_id":"{session}","transcript_path":"/x","text":"{text}"}}\n'
)


def test_retention_forgets_what_is_too_old_when_something_is_read(home: Path, cli: Cli) -> None:
    own = config.load().home
    aged(home)
    old = ENVELOPE.format(at=1577836800000, session="x", text=CANARY)
    new = ENVELOPE.format(at=1893456000000, session="y", text="fresh")
    write(own / "spool" / "2020-01-01.spool", old + new)
    write(own / "config.toml", "[retention]\nsessions = 365\nsignals = 365\n")
    settings = config.load()
    ingest(settings)
    assert traces(settings.home) == []
    assert len(cli("sessions", "--json").json) == 1
    assert _signals(settings) == [("y",)]
    assert b"fresh" in (own / "spool" / "2020-01-01.spool").read_bytes()
    ingest(settings)  # the spool was touched
    before = on_disk(own)
    ingest(settings)
    assert on_disk(own) == before, "at most once a day, and nothing to do"
    rebuild(settings)
    ingest(settings)
    assert _signals(settings) == [("y",)]
    assert traces(settings.home) == []


def test_retention_of_subagents_leaves_their_sessions(home: Path) -> None:
    own = config.load().home
    said = story("parent")
    said.save(home)
    subagent(home, said)
    write(own / "config.toml", "[retention]\nsubagents = 30\n")
    settings = config.load()
    ingest(settings)
    assert traces(settings.home) == []
    assert [row[1] for row in derived(settings)["sessions"]] == [said.session_id]


@pytest.mark.parametrize(
    "line", ["sessions = 0", "sessions = -1", 'sessions = "1y"', "thoughts = 3"]
)
def test_a_retention_that_cannot_be_kept_is_told(line: str, cli: Cli) -> None:
    write(config.load().home / "config.toml", f"[retention]\n{line}\n")
    assert cli("sessions", "--json").json["error"]["kind"] == "bad_input"


def _signals(settings: Settings) -> list[tuple[Any, ...]]:
    db = apsw.Connection(str(settings.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(db.execute("SELECT session_id FROM signals"))
    finally:
        db.close()
