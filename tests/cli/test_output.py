"""How commands print: colours, the pager, -q and -v, in a real terminal and in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.transcripts import Transcript

Cli = Callable[..., Result]
ESCAPE = "\x1b["


@pytest.fixture
def kept(home: Path, cli: Cli) -> None:
    """Forty sessions: more than fit a terminal of 24 lines."""
    for number in range(40):
        told = Transcript(f"s{number}")
        told.prompt(f"Prompt {number}, which has so many words that they need a lot of room")
        told.save(home)
    assert cli("ingest").code == 0


def in_terminal(*arguments: str, **variables: str) -> str:
    """Run a command in a terminal of 24 lines; everything that it shows."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color", **variables}
    process = subprocess.Popen(
        [sys.executable, "-m", "whyfor", *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=env,
    )
    os.close(theirs)
    shown = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # it ended
            break
        if not piece:
            break
        shown += piece
    os.close(ours)
    assert process.wait(30) == 0, shown
    return shown.decode(errors="replace")


@pytest.fixture
def pager(tmp_path: Path) -> Path:
    """A pager that writes down what it gets."""
    script = tmp_path / "pager"
    script.write_text(f'#!/bin/sh\necho "LESS=$LESS" > {tmp_path}/env\ncat > {tmp_path}/paged\n')
    script.chmod(0o755)
    return script


def test_long_output_goes_through_the_pager_with_colours_and_notes(
    kept: None, pager: Path, tmp_path: Path
) -> None:
    shown = in_terminal("sessions", PAGER=str(pager))
    paged = (tmp_path / "paged").read_text()
    assert "Prompt 39" not in shown
    assert "Prompt 39" in paged
    assert ESCAPE in paged
    assert (tmp_path / "env").read_text() == "LESS=FRX\n"
    assert "Cc Claude Code" in paged  # it knows that the terminal has 80 columns


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        (["sessions", "--no-pager"], {}),
        (["--no-pager", "sessions"], {}),
        (["sessions", "--json"], {}),
        (["sessions"], {"PAGER": ""}),
        (["sessions"], {"PAGER": "cat"}),
        (["sessions"], {"TERM": "dumb"}),
        (["doctor"], {}),
    ],
)
def test_without_a_pager_output_is_printed(
    kept: None, pager: Path, tmp_path: Path, arguments: list[str], variables: dict[str, str]
) -> None:
    assert in_terminal(*arguments, **{"PAGER": str(pager), **variables})
    assert not (tmp_path / "paged").exists()


def test_a_pipe_gets_no_pager_no_colours_and_the_whole_width(
    kept: None, cli: Cli, pager: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGER", str(pager))
    shown = cli("sessions").out
    assert ESCAPE not in shown
    assert "Claude Code" in shown
    assert not (tmp_path / "paged").exists()


def test_leaving_the_pager_early_is_no_error(kept: None, tmp_path: Path) -> None:
    script = tmp_path / "impatient"
    script.write_text("#!/bin/sh\nhead -c 10 >/dev/null\n")
    script.chmod(0o755)
    shown = in_terminal("show", Transcript("s1").session_id, PAGER=str(script))
    assert "Broken" not in shown
    assert "Prompt" not in shown


def test_a_pager_that_is_not_there_is_none(kept: None) -> None:
    assert "Prompt 39" in in_terminal("sessions", PAGER="/no/such/pager --with options")


@pytest.mark.parametrize(
    ("arguments", "variables", "coloured"),
    [
        ([], {}, True),
        ([], {"NO_COLOR": "1"}, False),
        (["--color", "always"], {"NO_COLOR": "1"}, True),
        (["--color=never"], {}, False),
        (["--color=never"], {"FORCE_COLOR": "1"}, False),
        ([], {"TERM": "dumb"}, False),
    ],
)
def test_colours_in_a_terminal(
    kept: None, arguments: list[str], variables: dict[str, str], coloured: bool
) -> None:
    shown = in_terminal("sessions", "--no-pager", *arguments, **variables)
    assert (ESCAPE in shown) == coloured
    assert "Prompt 39" in shown


def test_colours_in_a_pipe_only_if_asked_for(kept: None, cli: Cli) -> None:
    assert ESCAPE in cli("sessions", "--color", "always").out
    assert ESCAPE in cli("--color", "always", "sessions").out
    assert ESCAPE not in cli("sessions").out
    assert ESCAPE in cli("--color", "always", "show", "nothing").err
    assert ESCAPE not in cli("--color", "never", "show", "nothing").err


def test_quiet_leaves_only_the_answer_and_errors(kept: None, cli: Cli) -> None:
    assert "The first 3" in cli("sessions", "-n", "3").err
    quiet = cli("sessions", "-n", "3", "-q")
    assert quiet.err == ""
    assert quiet.out == cli("sessions", "-n", "3").out
    assert cli("-q", "sessions", "-n", "3").err == ""
    assert "error:" in cli("-q", "show", "nothing").err


def test_verbose_says_what_is_done_and_keeps_it_in_the_debug_log(
    kept: None, cli: Cli, tmp_path: Path
) -> None:
    assert cli("sessions", "-q").err == ""
    verbose = cli("-v", "sessions", "--project", ".")
    for words in ("whyfor 0.", "sessions", "database ", "exit code"):
        assert words in verbose.err
    log = tmp_path / "whyfor" / "debug.log"
    assert verbose.err.strip().endswith(log.read_text().strip().splitlines()[-1].strip())
    assert log.stat().st_mode & 0o077 == 0
    assert "Prompt" not in log.read_text()
    log.write_bytes(b"x" * (1 << 20))
    cli("sessions", "-v")
    assert log.stat().st_size < 10_000


def test_search_takes_short_options_for_words_to_leave_out(kept: None, cli: Cli) -> None:
    assert cli("search", "Prompt", "-v", "--json").code == 0
    assert cli("search", "Prompt", "-v").err.count("exit code") == 0
    assert "exit code" in cli("search", "Prompt", "--verbose").err
