"""`whyfor run` in a real terminal: the program must not notice it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.terminal import Terminal
from whyfor.config import Settings

RUN = [sys.executable, "-m", "whyfor", "run"]
SHELL = ["bash", "--norc", "--noprofile", "-i"]
PROMPT = "ready>"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Terminal]:
    """A shell around us, as a person has it, with job control."""
    env = {**os.environ, "PS1": f"{PROMPT} ", "RUN": " ".join(RUN)}
    with Terminal(SHELL, tmp_path, env) as terminal:
        terminal.see(PROMPT)
        yield terminal
        terminal.enter("exit")
        terminal.leave()


def recordings(settings: Settings) -> list[list[Any]]:
    """The events of all recordings, without their headers."""
    found: list[list[Any]] = []
    for path in (settings.home / "recordings").glob("*.cast"):
        assert path.stat().st_mode & 0o777 == 0o600
        found += [json.loads(line) for line in path.read_text().splitlines()[1:]]
    return found


def outputs(settings: Settings) -> str:
    return "".join(event[2] for event in recordings(settings) if event[1] == "o")


def test_exit_codes_and_signals_arrive_as_without_us(shell: Terminal) -> None:
    cases = {
        "sh -c 'exit 7'": 7,
        "sh -c 'kill -TERM $$'": 143,
        "sh -c 'kill -KILL $$'": 137,
        "no-such-program-anywhere": 127,
        "true": 0,
    }
    for command, code in cases.items():
        shell.enter(f"$RUN -- {command}; echo code=$?")
        shell.see(f"code={code}")
        shell.see(PROMPT)


def test_what_the_program_wrote_is_kept_and_what_was_typed_is_not(
    shell: Terminal, settings: Settings
) -> None:
    shell.enter("umask 027")
    steps = "umask; read -r line; stty -echo; echo wai''ts; read -r word; exit 3"
    shell.enter(f'$RUN -- sh -c "{steps}"')
    shell.see("0027")
    shell.enter("hello there")
    shell.see("waits")
    shell.press("opensesame\r")
    shell.see(PROMPT)
    events = recordings(settings)
    assert "0027" in outputs(settings) and "hello there" in outputs(settings)  # its echo
    assert "opensesame" not in json.dumps(events)
    assert not [event for event in events if event[1] == "i"]
    assert events[-1][1:] == ["x", "3"]


def test_input_is_kept_on_request_but_never_what_is_typed_unseen(
    shell: Terminal, settings: Settings
) -> None:
    steps = "echo u''p; read -r a; stty -echo; echo hid''den; read -r b; stty echo; echo seen; read -r c"
    shell.enter(f'$RUN --input -- sh -c "{steps}"')
    shell.see("up")
    shell.enter("first line")
    shell.see("hidden")
    shell.press("opensesame\r")
    shell.see("seen")
    shell.enter("third line")
    shell.see(PROMPT)
    typed = "".join(event[2] for event in recordings(settings) if event[1] == "i")
    assert typed == "first line\rthird line\r"
    assert "opensesame" not in json.dumps(recordings(settings))


def test_ctrl_c_ctrl_z_and_fg_work(shell: Terminal) -> None:
    shell.enter("$RUN -- sh -c 'trap \"echo caught; exit 5\" INT; echo up; sleep 60 & wait'")
    shell.see("\nup")
    shell.press("\x03")
    shell.see("caught")
    shell.see(PROMPT)
    shell.enter("$RUN -- sh -c 'echo going; cat; exit 9'; echo one=$?")
    shell.see("\ngoing")
    shell.enter("both")
    shell.see("both")  # cat answers: a dash that is just starting it cannot be stopped
    shell.press("\x1a")
    shell.see("Stopped")
    shell.see(PROMPT)
    shell.enter("jobs | wc -l; fg; echo code=$?")
    shell.see("1")
    shell.enter("still here")
    shell.see("still here")
    shell.press("\x04")
    shell.see("code=9")
    shell.see(PROMPT)


def test_a_new_size_reaches_the_program_and_the_recording(
    shell: Terminal, settings: Settings
) -> None:
    shell.enter("$RUN -- sh -c 'trap \"stty size\" WINCH; stty size; read -r x; read -r x'")
    shell.see("50 150")
    fcntl.ioctl(shell._keys, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
    os.killpg(os.tcgetpgrp(shell._keys), signal.SIGWINCH)
    shell.see("33 99")
    shell.press("\r\r\r")
    shell.see(PROMPT)
    assert ["r", "99x33"] in [event[1:] for event in recordings(settings)]


def test_a_signal_to_the_recorder_reaches_the_program(
    shell: Terminal, settings: Settings, tmp_path: Path
) -> None:
    shell.enter(
        "$RUN -- sh -c 'trap \"echo told; exit 4\" TERM; echo $PPID > pid; sleep 60 & wait'"
    )
    deadline = time.monotonic() + 20
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    keeper = int((tmp_path / "pid").read_text())
    recorder = int(Path(f"/proc/{keeper}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(recorder, signal.SIGTERM)
    shell.see("told")
    shell.see(PROMPT)
    assert recordings(settings)[-1][1:] == ["x", "4"]


def test_a_recording_that_fails_leaves_the_program_alone(
    shell: Terminal, settings: Settings
) -> None:
    settings.home.mkdir(parents=True)
    (settings.home / "recordings").write_text("a file where the folder should be")
    shell.enter("$RUN -- sh -c 'echo alive; exit 6'; echo code=$?")
    shell.see("\nalive")
    shell.see("code=6")
    shell.see(PROMPT)
    (settings.home / "recordings").unlink()
    shell.enter("(ulimit -f 1; $RUN -- sh -c 'seq 1 3000; echo alive; exit 8'; echo code=$?)")
    shell.see("3000")
    shell.see("alive")
    shell.see("code=8")
    shell.see(PROMPT)
    (settings.home / "config.toml").write_text("not toml [")
    shell.enter("$RUN -- sh -c 'echo alive; exit 2'; echo code=$?")
    shell.see("\nalive")
    shell.see("code=2")
    shell.see(PROMPT)
    (settings.home / "config.toml").unlink()


def test_nothing_is_kept_in_a_pause_or_in_an_excluded_place(
    shell: Terminal, settings: Settings, tmp_path: Path
) -> None:
    shell.enter(f"{sys.executable} -m whyfor pause && $RUN -- sh -c 'echo unre''corded; exit 3'")
    shell.see("Not recorded")
    shell.see("unrecorded")
    shell.see(PROMPT)
    shell.enter(f"{sys.executable} -m whyfor resume")
    shell.see(PROMPT)
    (settings.home / "config.toml").write_text(f'[exclude]\nprojects = ["{tmp_path}"]\n')
    shell.enter("$RUN -- sh -c 'echo unre''corded'")
    shell.see("unrecorded")
    shell.see(PROMPT)
    assert recordings(settings) == []


def test_outside_a_terminal_it_becomes_the_program(settings: Settings) -> None:
    done = subprocess.run(
        [*RUN, "--", "sh", "-c", "cat; exit 5"], input=b"piped", capture_output=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (5, b"piped", b"")
    gone = subprocess.run([*RUN, "--", "no-such-program"], capture_output=True, timeout=60)
    assert (gone.returncode, gone.stdout) == (127, b"")
    assert b"no-such-program: not found" in gone.stderr
    assert not (settings.home / "recordings").exists()


def test_a_recording_is_played_in_the_terminal(shell: Terminal, settings: Settings) -> None:
    shell.enter("$RUN -- printf '\\033]0;title\\007\\033[31mcrimson\\033[0m words\\n'")
    shell.see(PROMPT)
    [path] = (settings.home / "recordings").glob("*.cast")
    shell.enter(f"{sys.executable} -m whyfor ingest -q; echo stored")
    shell.see("\nstored")
    shell.enter(f"{sys.executable} -m whyfor show {path.stem[:8]} --replay --speed 9")
    shell.see("crimson words")
    shell.see("Played")
    shell.see(PROMPT)
