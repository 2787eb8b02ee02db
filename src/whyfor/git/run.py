"""The one place that starts git, in a way that nothing in a repository can start a program.

A repository's configuration can name programs for nearly everything git does, and git runs them
for whoever asks. Three things together keep it from that:

- what is asked: plumbing that neither converts files nor talks to remotes (tests/git/test_run.py
  lists the commands);
- the environment: nothing inherited but where the account's own configuration lies, and no protocol
  allowed, so that
  a partial clone cannot fetch what it lacks (GIT_NO_LAZY_FETCH does that since git 2.45,
  GIT_ALLOW_PROTOCOL before);
- settings on the command line, which outrank those of the repository.
"""

from __future__ import annotations

import io
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import msgspec

from whyfor.git.place import GitDir, GitPlace, find_work_tree, is_git_dir, is_own
from whyfor.model.paths import escape_surrogates
from whyfor.terminal import debug

if TYPE_CHECKING:
    import subprocess

SHORT = 10.0  # seconds for a question about a few things
LONG = 300.0  # for a whole history
_POLL = 0.5
_CHUNK = 1 << 16

# Where the account's configuration is: it contains the user's insteadOf and safe.directory.
# GIT_EXEC_PATH is not in the list: it names the directory of helper programs, and the commands used
# here have none.
_KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
_NO_INDEX = str(Path(os.sep, "no-such-folder", "index"))
_ENVIRONMENT = {
    "GIT_NO_LAZY_FETCH": "1",
    # a list of protocols that contains no existing one; it overrides protocol.*.allow
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",  # nothing is written, so no hook for a written index runs either
    "GIT_NO_REPLACE_OBJECTS": "1",  # history as it was recorded
    "GIT_GRAFT_FILE": os.devnull,
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_PAGER": "cat",
}
_BARE = ("safe.bareRepository=explicit",)
_SETTINGS = (
    *_BARE,
    "core.quotePath=false",  # names as they are
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.editor=:",
    "sequence.editor=:",
    "core.askPass=",
    "core.sshCommand=false",
    "core.gitProxy=none",
    "core.alternateRefsCommand=false",
    "credential.helper=",  # an empty one empties the list
    "diff.external=",
    "log.showSignature=false",
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "gpg.ssh.program=false",
    "gpg.ssh.defaultKeyCommand=false",
    "protocol.allow=never",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
)


class Answer(msgspec.Struct, frozen=True):
    """The result of a git command: its output, its exit code and its errors."""

    code: int | None  # None: it was not started, or it took too long
    out: bytes = b""
    err: bytes = b""

    @property
    def ok(self) -> bool:
        return self.code == 0

    @property
    def text(self) -> str:
        return escape_surrogates(self.out.decode("utf-8", "surrogateescape"))

    @property
    def complaint(self) -> str:
        """Return the first error line that git printed, or a general message."""
        lines = self.err.decode("utf-8", "replace").strip().splitlines()
        told = [line for line in lines if not line.startswith("hint: ")]
        return told[0] if told else "git gave no reason"


NO_GIT = Answer(None, err=b"git is not installed")
_NO_REPOSITORY = Answer(None, err=b"not a git repository")


# -- commands ------------------------------------------------------------------------------------


def ask(where: GitPlace, *arguments: str) -> str | None:
    """Return the stripped output of a command; None if it fails, prints nothing or takes too
    long."""
    answer = run_git(where, *arguments)
    return answer.text.strip() or None if answer.ok else None


def run_git(
    where: GitPlace | None,
    *arguments: str,
    given: bytes = b"",
    seconds: float = SHORT,
    index: bool = False,
    variables: Mapping[str, str] | None = None,
) -> Answer:
    """Run a command to its end and return its output; never raises.

    `where` is None for a command that creates a repository. `given` is its standard input. It reads
    the repository's index only with `index`. `variables` are added to its environment.
    """
    import subprocess  # here: most commands do not run git

    start = _prepare(where, arguments)
    if isinstance(start, Answer):
        return start
    if index:
        del start.env["GIT_INDEX_FILE"]
    start.env.update(variables or {})
    try:
        with _started(start, stderr=subprocess.PIPE) as git:
            out, err = git.communicate(given, timeout=seconds)
            return Answer(git.returncode, out, err)
    except subprocess.TimeoutExpired:
        return Answer(None, err=f"git took more than {seconds:.0f} s".encode())
    except (OSError, ValueError) as error:  # ValueError: a NUL byte among the arguments
        return Answer(None, err=str(error).encode("utf-8", "replace"))


def read_output(
    where: GitPlace, arguments: Sequence[str], *, most: int, seconds: float = SHORT
) -> tuple[bytes, bool]:
    """Return the output of a command, up to `most` bytes and within `seconds`, and whether it is
    complete."""
    import subprocess

    start = _prepare(where, arguments)
    if isinstance(start, Answer):
        return b"", False
    with _started(start, stderr=subprocess.DEVNULL) as git:
        assert git.stdin is not None
        assert git.stdout is not None
        git.stdin.close()
        limit = threading.Timer(seconds, _kill, [git])
        limit.daemon = True
        limit.start()
        try:
            found = git.stdout.read(most + 1)
        finally:
            limit.cancel()
        whole = len(found) <= most
        if not whole:
            _kill(git)
        return found[:most], git.wait() == 0 and whole


class Stream:
    """The output lines of a running command."""

    def __init__(self, lines: IO[bytes]) -> None:
        self.lines = lines
        self.ok = False  # after the last line: whether the command ended well


@contextmanager
def stream(
    where: GitPlace,
    arguments: Sequence[str],
    *,
    given: bytes,
    seconds: float = LONG,
    index: bool = False,
) -> Iterator[Stream]:
    """Run a command that answers while it is still reading its input; `ok` is set after all lines
    were read. It reads the repository's index only with `index`.

    It is killed if it prints nothing for `seconds` while a line is awaited, and when the block is
    left.
    """
    import subprocess

    start = _prepare(where, arguments)
    if isinstance(start, Answer):
        yield Stream(io.BytesIO())
        return
    if index:
        del start.env["GIT_INDEX_FILE"]
    with _started(start, stderr=subprocess.DEVNULL) as git:
        assert git.stdout is not None
        pipe = _WatchedPipe(git.stdout, seconds, lambda: _kill(git))
        found = Stream(io.BufferedReader(pipe, _CHUNK))

        def end() -> None:
            found.ok = git.wait() == 0

        pipe.at_end = end
        feeder = threading.Thread(target=_feed, args=(git, given), daemon=True)
        feeder.start()
        try:
            yield found
        finally:
            pipe.stop()
            _kill(git)
            feeder.join()


class _WatchedPipe(io.RawIOBase):
    """A pipe with a time limit for each read. A thread watches it, because select() does not
    support pipes on Windows."""

    def __init__(self, pipe: IO[bytes], seconds: float, give_up: Callable[[], None]) -> None:
        super().__init__()
        self.at_end: Callable[[], None] = lambda: None
        self._pipe = pipe
        self._seconds = seconds
        self._give_up = give_up
        self._since: float | None = None
        self._done = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._since = time.monotonic()
        data = os.read(self._pipe.fileno(), len(buffer))
        self._since = None
        buffer[: len(data)] = data
        if not data:
            self.at_end()
        return len(data)

    def stop(self) -> None:
        self._done.set()

    def _watch(self) -> None:
        while not self._done.wait(_POLL):
            since = self._since
            if since is not None and time.monotonic() - since > self._seconds:
                self._give_up()


def _feed(git: subprocess.Popen[bytes], data: bytes) -> None:
    """Write the input from a thread: git answers while it still reads, and both pipes have limited
    buffers."""
    assert git.stdin is not None
    with suppress(OSError, ValueError):
        git.stdin.write(data)
        git.stdin.close()


# -- the process ---------------------------------------------------------------------------------


class _Start(msgspec.Struct):
    command: list[str]
    env: dict[str, str]


def _prepare(where: GitPlace | None, arguments: Sequence[str]) -> _Start | Answer:
    """Return the command and its environment; an answer instead if there is nothing to ask."""
    program = find_git(os.environ.get("PATH", os.defpath))
    if program is None:
        return NO_GIT
    env = _environment()
    place: list[str] = []
    if isinstance(where, GitDir):
        if not is_git_dir(where.path) or not is_own(where.path):
            return _NO_REPOSITORY
        place = ["-C", str(where.path), f"--git-dir={where.path}"]
    elif where is not None:
        top = find_work_tree(where)
        if top is None:
            return _NO_REPOSITORY
        place = ["-C", str(top)]
        env["GIT_CEILING_DIRECTORIES"] = str(top.parent)
    debug(f"git {' '.join(arguments)[:200]}, in {where}")
    # `config` starts nothing, and must show the settings as they are.
    overrides = []
    for setting in _BARE if arguments[0] == "config" else _SETTINGS:
        overrides += ["-c", setting]
    return _Start([program, "--no-pager", *place, *overrides, *arguments], env)


def _environment() -> dict[str, str]:
    """Return ours without what would change git's answers."""
    env = {}
    for name, value in os.environ.items():
        if not name.startswith("GIT_") or name in _KEPT:
            env[name] = value
    # By its index, git would take files from the work tree instead of its objects.
    return {**env, **_ENVIRONMENT, "GIT_INDEX_FILE": _NO_INDEX}


def find_git(path: str) -> str | None:
    """Return the absolute path of git from the folders of PATH; None if there is none. Relative
    folders are skipped: they depend on the current directory, which may be an untrusted
    repository."""
    name = "git.exe" if os.name == "nt" else "git"
    for folder in path.split(os.pathsep):
        program = Path(folder, name)
        if Path(folder).is_absolute() and os.access(program, os.X_OK) and program.is_file():
            return str(program)
    return None


@contextmanager
def _started(start: _Start, *, stderr: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start git; when the block is left, it and everything it started is killed."""
    import subprocess

    git = subprocess.Popen(
        start.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        env=start.env,
        cwd=os.sep,
        start_new_session=True,  # without a terminal that could be asked for a password
    )
    try:
        yield git
    finally:
        _kill(git)
        git.wait()
        for pipe in (git.stdin, git.stdout, git.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


def _kill(git: subprocess.Popen[bytes]) -> None:
    """Kill git and its children, which may hold its pipes open; does nothing after git was waited
    for."""
    if git.returncode is not None:
        return
    with suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(git.pid, signal.SIGKILL)
        else:
            git.kill()
