"""How soon what an agent wrote is before a person's eyes: from its file to an open page, ours
and agentsview's."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from random import Random

import msgspec

from hooks import installed
from ingesting import Place
from measure import CommandFailed, clean_env, run
from pages import serving
from report import Cell, Check, Report, Table
from streams import RATE, Session, opened, stream
from watched import MARK as BESIDE

_HERE = Path(__file__).parent
_BROWSERS = _HERE.parent / ".cache" / "browsers"
_CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_PYTHON = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
_MARK = "shown at "  # then nanoseconds, by the clock of this machine, and a stop
_TARGET = 300  # ms
_SETTLE = 3.0  # seconds in which all write and nothing is measured
_OURS, _THEIRS = 1.5, 12.0  # seconds that are waited for the last line
_GAPS = (0.25, 0.95)  # seconds between two steps of the session that is looked at
# agentsview keeps in the page only what is near the view
_FOLLOW = 'button[aria-label="Follow latest messages"]'
_HOOK, _LOOK = "by hook", "by looking"
_NOTE = f"""Milliseconds from the write of a step (a result, words, the next command: one write) to an agent's file
until its words are in the DOM of a page that is open in Chromium. One session is looked at and makes a step every
{_GAPS[0]:g} to {_GAPS[1]:g} s; beside it others write {RATE:g} lines a second each. Both servers as they are when
started, one after the other on the same files. By hook: the agent's PostToolUse hook runs after the write, and its
start is in the time; by looking: no hook. Ours has Session and Now open; agentsview's page follows the latest. Now
shows the last step only: one that was overtaken came with the one after it.""".replace("\n", " ")


class _Link(msgspec.Struct):
    link: str
    address: str


@dataclass(frozen=True)
class _Shown:
    """What was written, by stamp, and when each of it was in a page."""

    written: list[int]
    seen: dict[int, int]

    @classmethod
    def latest(cls, written: list[int], seen: dict[int, int]) -> _Shown:
        """On a page that shows the last step only: one that was overtaken came with the one
        after it."""
        came = {at: [when for mark, when in seen.items() if mark >= at] for at in written}
        return cls(written, {at: min(times) for at, times in came.items() if times})

    def late(self, percent: int) -> float:
        """ms that so many of a hundred did not exceed; what never came is late without end."""
        delays = sorted(
            self.seen[at] - at / 1e6 if at in self.seen else math.inf for at in self.written
        )
        return delays[math.ceil(len(delays) * percent / 100) - 1]

    def cells(self) -> list[Cell]:
        came = sum(at in self.seen for at in self.written)
        return [f"{came} of {len(self.written)}", self.late(50), self.late(95)]


@dataclass
class _Writer:
    """Steps of the session that is looked at, at times nobody can foresee that are the same in
    every run."""

    session: Session
    hook: list[str] | None = None
    written: list[int] = field(default_factory=list)
    random: Random = field(default_factory=lambda: Random(7))
    hooks: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def step(self) -> float:
        at = time.time_ns()
        answered = self.session.step(f"{_MARK}{at}.", at / 1e9)
        self.written.append(at)
        if self.hook:
            self._ran(answered)
        return self.random.uniform(*_GAPS)

    def _ran(self, answered: str | None) -> None:
        told = {
            "session_id": self.session.id,
            "transcript_path": str(self.session.path),
            "tool_use_id": answered,
        }
        told |= {"hook_event_name": "PostToolUse", "tool_name": "Bash", "cwd": "/code/shop"}
        hook = subprocess.Popen(self.hook or [], stdin=subprocess.PIPE)
        assert hook.stdin
        hook.stdin.write(json.dumps(told).encode())
        hook.stdin.close()
        self.hooks.append(hook)


def showing(report: Report, places: dict[int, Place], program: Path, seconds: float) -> None:
    """By how many sessions write beside the one that is looked at."""
    browser = _chromium()
    if not browser:
        report.skip("no Chromium here: how soon a line is in a page is not measured")
        return
    found: dict[tuple[str, int], _Shown] = {}
    for beside, place in places.items():
        with opened(place.home, beside + 1) as sessions:
            for who, shown in _ours(place, program, browser, sessions, seconds).items():
                found[who, beside] = shown
            if place.theirs:
                found["agentsview, session", beside] = _theirs(place, browser, sessions, seconds)
    whos = dict.fromkeys(who for who, _ in found)
    columns = [
        "",
        *(
            f"{beside} beside {figure}"
            for beside in places
            for figure in ("shown", "p50 ms", "p95 ms")
        ),
    ]
    rows: list[list[Cell]] = [
        [who, *(c for beside in places for c in found[who, beside].cells())] for who in whos
    ]
    usual = sorted(places)[len(places) // 2]
    checks = [
        Check(
            f"append to browser, p95, {who}, {usual} streaming beside",
            found[who, usual].late(95),
            _TARGET,
            " ms",
        )
        for who in whos
        if not who.startswith("agentsview")
    ]
    report.add(Table("Append to browser", columns, rows, _NOTE), *checks)


def _ours(
    place: Place, program: Path, browser: str, sessions: list[Session], seconds: float
) -> dict[str, _Shown]:
    assert place.ours is not None
    folder = installed(place.ours.store)
    hook = [
        _PYTHON,
        "-I",
        "-S",
        str(folder / "hook" / "hook.py"),
        "--agent",
        "claude",
        "PostToolUse",
    ]
    env = clean_env(place.home, place.scratch) | {"WHYFOR_HOME": str(place.ours.store)}
    with serving(place, program):
        told = msgspec.json.decode(
            run([str(program), "serve", "--json", "--no-open"], env).output, type=_Link
        )
        address = told.address.rstrip("/")
        pages = {"Session": f"{address}/sessions/claude/{sessions[0].id}", "Now": address}
        written: dict[str, list[int]] = {}
        with _open(browser, pages, link=told.link) as seen:
            for way, command in ((_HOOK, hook), (_LOOK, None)):
                written[way] = _written(sessions, seconds, _OURS, command)
    ways = written.items()
    session = {f"Session, {way}": _Shown(stamps, seen["Session"]) for way, stamps in ways}
    return session | {f"Now, {way}": _Shown.latest(stamps, seen["Now"]) for way, stamps in ways}


def _theirs(place: Place, browser: str, sessions: list[Session], seconds: float) -> _Shown:
    assert place.theirs is not None
    with place.theirs.daemon(watches=True) as daemon:
        pages = {"session": f"{daemon.address}/sessions/{sessions[0].id}"}
        with _open(browser, pages, press=_FOLLOW) as seen:
            written = _written(sessions, seconds, _THEIRS)
    return _Shown(written, seen["session"])


def _written(
    sessions: list[Session], seconds: float, wait: float, hook: list[str] | None = None
) -> list[int]:
    writer = _Writer(sessions[0], hook)
    stream(sessions[1:], _SETTLE, BESIDE, writer.step)
    settled = len(writer.written)
    stream(sessions[1:], seconds, BESIDE, writer.step)
    time.sleep(wait)
    for process in writer.hooks:
        process.wait()
    return writer.written[settled:]


@contextmanager
def _open(
    browser: str, pages: dict[str, str], *, link: str | None = None, press: str | None = None
) -> Iterator[dict[str, dict[int, int]]]:
    """Has pages open meanwhile; what they showed is there afterwards."""
    job = {"browser": browser, "pages": pages, "link": link, "press": press, "mark": _MARK}
    command = [sys.executable, str(_HERE / "shown.py"), json.dumps(job)]
    seen: dict[str, dict[int, int]] = {}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout
        try:
            if child.stdout.readline() != "ready\n":
                raise CommandFailed("the browser did not open its pages")
            yield seen
            said, _ = child.communicate()
            if child.returncode:
                raise CommandFailed(
                    "the browser ended before its pages were asked what they showed"
                )
            seen |= msgspec.json.decode(said, type=dict[str, dict[int, int]])
        finally:
            child.terminate()


def _chromium() -> str | None:
    """Debian's, or what else is called so here; else what tests/setup put in the cache."""
    cached = (
        _BROWSERS.glob(f"chromium_headless_shell-*/*/{name}")
        for name in ("headless_shell", "chrome-headless-shell")
    )
    return next(filter(None, map(shutil.which, _CHROMIUM)), None) or next(
        map(str, chain(*cached)), None
    )
