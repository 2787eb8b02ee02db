"""run: start a program in a terminal that is recorded."""

from __future__ import annotations

import os
import shlex
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from whyfor import __version__
from whyfor.agents.terminal import AGENT, FOLDER
from whyfor.capture.filters.excluded import Excluded
from whyfor.capture.filters.pauses import Pauses
from whyfor.capture.recorder import NOT_FOUND, has_person, record, run_plain, window_size
from whyfor.capture.recording_file import RecordingFile, RecordingHeader
from whyfor.config import Settings
from whyfor.files import make_folders, usual_umask
from whyfor.model.paths import to_text

SESSION = "WHYFOR_SESSION"  # by it, commits made inside are linked to the recording
_PAUSE_CHECK = 1.0  # seconds between two looks
_COMMAND_MAX = 500  # characters of a command line that are kept


class RunPlan(msgspec.Struct, frozen=True):
    """What is to be run, and how."""

    argv: list[str]
    with_input: bool = False


def run_program(settings: Settings | None, plan: RunPlan, tell: Callable[[str], None]) -> int:
    """Run a program as if it had been started directly, and record its terminal; return its exit
    code. Without settings, or whatever else stands in the way, it runs all the same; `tell` says
    why nothing is recorded. Outside a terminal this process becomes the program."""
    env = dict(os.environ)
    os.umask(usual_umask())
    if settings is None or not has_person():
        return _become(plan, env, tell)
    session = uuid.uuid4().hex
    tape = None
    try:
        tape = _tape(settings, plan, session)
        problem = "recording is paused, or this place is excluded"
    except Exception as error:  # noqa: BLE001 - a program that is not recorded runs all the same
        problem = str(error)
    if tape is None:
        tell(f"Not recorded: {problem}.")
        return _become(plan, env, tell)
    env[SESSION] = f"{AGENT.name}:{session}"
    code = record(plan.argv, env, tape, with_input=plan.with_input)
    if tape.failed:
        tell(f"The recording stopped early: {tape.failed}.")
    _ingest_soon(settings)
    return code


def _become(plan: RunPlan, env: dict[str, str], tell: Callable[[str], None]) -> int:
    """Become the program; say what is wrong if that cannot be."""
    code = run_plain(plan.argv, env)
    tell(f"{plan.argv[0]}: {'not found' if code == NOT_FOUND else 'cannot be run'}")
    return code


def _ingest_soon(settings: Settings) -> None:
    """Start an ingest of what was recorded, and do not wait for it."""
    import subprocess  # here: nothing must be slow before the program starts

    null = subprocess.DEVNULL
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env["WHYFOR_HOME"] = str(settings.home)
    command = [sys.executable, "-m", "whyfor", "ingest", "--background"]
    with suppress(OSError):
        subprocess.Popen(
            command,
            env=env,
            cwd="/",
            stdin=null,
            stdout=null,
            stderr=null,
            start_new_session=True,
        )


def _tape(settings: Settings, plan: RunPlan, session: str) -> PausableTape | None:
    """Begin a recording; None if none is wanted here."""
    cwd = to_text(Path.cwd())
    excluded = Excluded(settings.exclude)
    if AGENT.name in excluded.agents or excluded.covers(cwd):
        return None
    tape = PausableTape(Pauses(settings.home, []), cwd, session)
    if tape.is_paused():
        return None
    folder = settings.home / FOLDER
    make_folders(folder)
    columns, rows = window_size()
    header = RecordingHeader(
        session=session,
        command=shlex.join(plan.argv)[:_COMMAND_MAX],
        cwd=cwd,
        columns=columns,
        rows=rows,
        version=__version__,
        with_input=plan.with_input,
        terminal=os.environ.get("TERM", ""),
    )
    tape.begin(folder / f"{session}.cast", header)
    return tape


class PausableTape:
    """A recording that keeps nothing while recording is paused."""

    def __init__(self, pauses: Pauses, cwd: str, session: str) -> None:
        self._pauses = pauses
        self._cwd = cwd
        self._session = session
        self._file: RecordingFile | None = None
        self._looked = 0.0
        self._paused = False

    def begin(self, path: Path, header: RecordingHeader) -> None:
        self._file = RecordingFile(path, header)

    @property
    def failed(self) -> str:
        return self._file.failed if self._file else ""

    def is_paused(self) -> bool:
        """Return whether a pause is in effect; asked of the disk once a second."""
        now = time.monotonic()
        if now - self._looked < _PAUSE_CHECK:
            return self._paused
        self._looked = now
        self._pauses.refresh()
        was = self._paused
        self._paused = self._pauses.covers(None, self._cwd, AGENT.name, self._session)
        if self._paused and not was and self._file:
            self._file.paused()
        return self._paused

    def output(self, data: bytes) -> None:
        if self._file and not self.is_paused():
            self._file.output(data)

    def input(self, data: bytes) -> None:
        if self._file and not self.is_paused():
            self._file.input(data)

    def resize(self, columns: int, rows: int) -> None:
        if self._file:
            self._file.resize(columns, rows)

    def idle(self) -> None:
        if self._file:
            self._file.idle()

    def flush(self) -> None:
        if self._file:
            self._file.flush()

    def end(self, code: int) -> None:
        if self._file:
            self._file.end(code)
