"""Every test gets a home of its own; touching the real one is a failure."""

from __future__ import annotations

import json
import os
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from datetime import datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import hypothesis
import pytest
import time_machine

from tests.locks import locked
from whyfor import config
from whyfor.__main__ import main

hypothesis.settings.register_profile(
    "same every time", derandomize=True, database=None, deadline=None
)
hypothesis.settings.load_profile("same every time")

REPOSITORY = Path(__file__).parent.parent
REAL_HOME = Path(os.path.expanduser("~")).resolve()  # noqa: PTH111 - before any test changes HOME
OFF_LIMITS = tuple(
    str(REAL_HOME / name)
    for name in (
        ".claude",
        ".claude.json",
        ".codex",
        ".gemini",
        ".copilot",
        ".config/opencode",
        *(".qwen", ".pi", ".factory", ".cline", ".grok", ".kimi-code", ".kimi", ".vibe", ".hermes"),
        *(".openhands", ".continue", ".local/share/kilo", ".local/share/goose"),
        ".local/share/crush",
        ".local/share/opencode",
        ".local/share/whyfor",
        "Library/Application Support/whyfor",
    )
)
# how the names of variables begin that say where an agent keeps its files, or whose command runs
AGENTS_VARIABLES = (
    *("CLAUDE", "CODEX", "GEMINI", "COPILOT", "OPENCODE", "QWEN_", "PI_CODING", "CLINE_", "GROK_"),
    *("KIMI_", "GOOSE_", "CRUSH_", "VIBE_", "OPENHANDS_", "CONTINUE_", "HERMES_"),
)
_touched: list[str] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if (
        event in ("open", "os.listdir", "os.scandir", "os.mkdir", "os.rename", "os.remove")
        and arguments
    ):
        path = arguments[0]
        if isinstance(path, str | os.PathLike) and os.fspath(path).startswith(OFF_LIMITS):
            _touched.append(f"{event} {os.fspath(path)}")


sys.addaudithook(_watch)


IN_MEMORY = Path("/dev/shm")  # Linux's; elsewhere there is none
ROOM = 4 << 30  # bytes: the largest tests of all workers at once need a tenth of it


def _keep_files_in_memory() -> None:
    """Let temporary files lie in memory where there is room: every store is written to the disk
    before it goes on, and the tests make thousands. TMPDIR says where else."""
    if "TMPDIR" in os.environ or not os.access(IN_MEMORY, os.W_OK):
        return
    found = os.statvfs(IN_MEMORY)
    may_run = not found.f_flag & os.ST_NOEXEC  # git runs hooks from there
    if may_run and found.f_bavail * found.f_frsize > ROOM:
        os.environ["TMPDIR"] = str(IN_MEMORY)
        tempfile.tempdir = None  # it was perhaps asked for before


_keep_files_in_memory()


# What `make check` leaves out, below tests/: a browser, real agents, strace, servers, processes by
# the dozen, and the corpus. Everything else must be quick.
SLOW = (
    "agents/test_*.py",
    "attack/*",
    "capture/test_corpus.py",
    "capture/test_ingest.py",
    "capture/test_long_results.py",
    "capture/test_merge.py",
    "capture/test_rebuild.py",
    "capture/test_spool.py",
    "cli/test_everyday.py",
    "cli/test_output.py",
    "cli/test_stories.py",
    "cli/top/*",
    "faults/*",
    "hook/test_hook.py",
    "live/*",
    "lsp/*",
    "mcp/*",
    "pages/*",
    "privacy/test_canary.py",
    "privacy/test_permissions.py",
    "recall/embeddings/*",
    "recall/test_note_standing.py",
    "server/test_[!fr]*.py",  # not test_feed.py and test_render.py, which start no server
    "service/*/test_corpus.py",
    "service/export/*",
    "service/forget/*",
    "service/init/*",
    "service/pause/*",
    "service/redact/*",
    "service/restore/*",
    "service/test_blame.py",
    "service/test_doctor.py",
    "service/test_memory_model.py",
    "service/test_memory_notes.py",
    "service/test_notify.py",
    "sync/*",
    "story/links/test_[!i]*.py",  # not test_infer.py, which needs no repository
    "story/test_status.py",
    "test_packaging.py",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    told = (
        "an ISO time, from which the clock of this process goes on; processes it starts keep theirs"
    )
    parser.addoption("--clock", metavar="TIME", help=told)


def pytest_configure(config: pytest.Config) -> None:
    if when := config.getoption("--clock"):
        time_machine.travel(datetime.fromisoformat(when), tick=True).start()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow. What looks at the whole repository begins first, then the agent that
    starts slowest: they take long, and would else be waited for at the end."""
    tests = REPOSITORY / "tests"
    for item in items:
        name = item.path.relative_to(tests).as_posix()
        if any(fnmatch(name, pattern) for pattern in SLOW):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: (item.path.parent != tests, "[opencode" not in item.name))


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """HOME and all that hangs on it is a temporary folder, and nothing reaches past it."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    for name in [n for n in os.environ if n.startswith(("XDG_", "GIT_", *AGENTS_VARIABLES))]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("COLUMNS", raising=False)
    set_home(monkeypatch, home)
    monkeypatch.setenv("WHYFOR_HOME", str(tmp_path / "whyfor"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("WHYFOR_DEBUG", "1")
    # never in this repository: a command may act on the one it is run in
    monkeypatch.chdir(tmp_path)
    _touched.clear()
    yield
    assert not _touched, f"the real home was touched: {_touched[:3]}"


def set_home(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Make a folder the home of what the test runs."""
    for name, value in {
        "HOME": home,
        "USERPROFILE": home,
        "XDG_CONFIG_HOME": home / ".config",
        "XDG_DATA_HOME": home / ".local" / "share",
        "XDG_CACHE_HOME": home / ".cache",
        "GIT_CONFIG_GLOBAL": home / ".gitconfig",
    }.items():
        monkeypatch.setenv(name, str(value))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home the agents write to."""
    return tmp_path / "home"


@pytest.fixture
def settings() -> config.Settings:
    return config.load()


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    """Run a command in this process: cli("search", "word", "--json")."""

    def run(*arguments: object) -> Result:
        capfd.readouterr()
        mask = os.umask(0)
        try:
            code = main([str(argument) for argument in arguments])
        finally:
            os.umask(mask)
        sys.stdout.flush()
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return run


def missing_part(reason: str) -> NoReturn:
    """A part that tests need is not on this machine: they skip, and where everything must run
    they fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def unpack(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack an archive of ours; Python before 3.11.4 has no filters."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
    else:
        archive.extractall(folder)


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real transcripts as agents left them, unpacked once for all workers; absent in a plain
    checkout."""
    archive = REPOSITORY.parent / "shared" / "corpus" / "dev-home.tar.xz"
    if given := os.environ.get("WHYFOR_CORPUS"):
        return Path(given)
    if not archive.exists():
        pytest.skip(
            "NO CORPUS: ../shared/corpus/dev-home.tar.xz is not here; corpus tests do not run"
        )
    folder = REPOSITORY / ".cache" / f"corpus-{archive.stat().st_size}"
    with locked(folder.with_suffix(".lock")):
        if not (folder / ".done").exists():
            with tarfile.open(archive) as packed:
                unpack(packed, folder)
            (folder / ".done").touch()
    return folder
