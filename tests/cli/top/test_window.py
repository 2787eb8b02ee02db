"""In a real terminal: live, in any size and colour, and left as it was found, however it ends."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.live.serve_lock import serves
from whyfor.service.ingest import ingest
from whyfor.service.serve import announce_server, hold_server
from whyfor.service.top import standings

from .window import SECONDS, TOP, Window

CRASHES = """
import os
from whyfor.__main__ import main
from whyfor.cli.screen.app import Top
def show(self):
    secret = "a word only a variable holds"
    raise RuntimeError("something broke")
Top.show = show
os.environ.pop("WHYFOR_DEBUG", None)
raise SystemExit(main(["top"]))
"""


def env(**more: str) -> dict[str, str]:
    kept = {
        name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM")
    }
    return {**kept, "TERM": "xterm-256color", "LANG": "C.UTF-8", **more}


def grow(transcript: Transcript, home: Path, text: str) -> None:
    transcript.lines.clear()
    transcript.say(text)
    with transcript.path(home).open("a", encoding="utf-8") as file:
        file.write(transcript.text())


def test_it_is_live_and_leaves_the_terminal_as_it_was(home: Path, kept: Transcript) -> None:
    with Window(TOP, env(), 80, 24) as window:
        window.see("1 open session in 1 project.")
        window.see("Count the quokkas")
        window.press("\r")
        window.see("Bash ls quokkas")
        grow(kept, home, "Now there are three.")
        window.see("Now there are three.")
        since = window.press("q")
        window.see("j k choose", since)
        window.press("q")
        assert window.leave() == 0
        window.check_restored()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_the_terminal_as_it_was(kept: Transcript, number: signal.Signals) -> None:
    with Window(TOP, env(), 80, 24) as window:
        window.see("Count the quokkas")
        window.press("\r")
        window.see("Bash ls quokkas")
        window.process.send_signal(number)
        window.leave()
        window.check_restored()


def test_a_crash_leaves_the_terminal_as_it_was_and_says_no_more_than_other_errors() -> None:
    with Window(["-c", CRASHES], env(), 80, 24) as window:
        assert window.leave() == 3
        window.check_restored()
        after = window.written[window.written.rfind("\x1b[?1049l") :]
        assert "error: unexpected: RuntimeError: something broke" in after
        assert "only a variable" not in window.written


@pytest.mark.parametrize(
    ("term", "colour"), [("linux", True), ("xterm-256color", False), ("vt100", False)]
)
def test_sixteen_colours_are_enough_and_so_is_none(
    kept: Transcript, term: str, colour: bool
) -> None:
    given = env(TERM=term) if colour else env(TERM=term, NO_COLOR="1")
    with Window(TOP, given, 40, 12) as window:
        window.see("Count the quokkas")
        window.press("q")
        window.leave()
        window.check_restored()
        codes = {
            code
            for found in re.findall(r"\x1b\[([0-9;]*)m", window.written)
            for code in found.split(";")
        }
        assert not codes & {"38", "48"}, "a colour of a bigger palette"
        assert bool(codes & {str(n) for n in [*range(31, 38), *range(91, 98)]}) == colour


def test_without_news_nothing_is_written_to_the_terminal() -> None:
    with Window(TOP, env(), 80, 24) as window:
        window.see("Nothing captured yet")
        window.quiet(1.0)
        before = len(window.written)
        window.quiet(2.0)
        assert len(window.written) == before


def test_while_a_server_runs_it_only_looks(
    settings: Settings, home: Path, kept: Transcript
) -> None:
    ingest(settings)
    with hold_server(settings), announce_server(settings, 1):
        assert serves(settings)
        with Window(TOP, env(), 80, 24) as window:
            window.see("Count the quokkas")
            assert not (settings.home / "hook" / "bell").exists()
            window.press("\r")
            window.see("Bash ls quokkas")
            grow(kept, home, "Read by somebody else")
            ingest(settings)
            window.see("Read by somebody else")
            window.process.send_signal(signal.SIGTERM)
            assert window.leave() == 0
    assert not serves(settings)


def test_when_the_server_is_gone_it_reads_itself(
    settings: Settings, home: Path, kept: Transcript
) -> None:
    ingest(settings)
    with Window(TOP, env(), 80, 24) as window:
        with hold_server(settings), announce_server(settings, 1):
            window.see("Count the quokkas")
        window.press("\r")
        window.see("Bash ls quokkas")
        grow(kept, home, "Read by nobody else")
        window.see("Read by nobody else")


def test_what_a_killed_server_left_is_not_believed(settings: Settings) -> None:
    with hold_server(settings), announce_server(settings, 1):
        pass
    (settings.home / "serve.json").write_text(f'{{"pid": {os.getpid()}, "port": 1}}')
    assert not serves(settings), "this process lives, but holds no lock"


def test_of_two_one_reads_and_both_show(settings: Settings, home: Path, kept: Transcript) -> None:
    with Window(TOP, env(), 80, 24) as first, Window(TOP, env(), 80, 24) as second:
        first.see("Count the quokkas")
        second.see("Count the quokkas")
        for window in (first, second):
            window.press("\r")
            window.see("Bash ls quokkas")
        grow(kept, home, "Seen by both")
        first.see("Seen by both")
        second.see("Seen by both")
        first.press("qq")
        assert first.leave() == 0
        grow(kept, home, "Seen by the one that stayed")
        second.see("Seen by the one that stayed")


def test_nothing_is_written_to_look_once(settings: Settings) -> None:
    assert standings(settings) == []
    assert not settings.home.exists()


def test_it_ends_when_its_window_is_closed(settings: Settings, kept: Transcript) -> None:
    """Whoever closes a window need not send a signal: the terminal is gone, that is all."""
    ingest(settings)
    window = Window(TOP, env(), 80, 24)
    try:
        window.see("Count the quokkas")
        window.close_terminal()
        window.process.wait(SECONDS)
    finally:
        window.kill()
