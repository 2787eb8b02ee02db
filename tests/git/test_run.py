"""Git is started in one place, with nothing inherited, a limit on everything, and by commands
that run nothing."""

from __future__ import annotations

import ast
import os
import subprocess
import time
from functools import cache
from pathlib import Path

import pytest

from whyfor.git.place import GitDir, find_work_tree, name_place
from whyfor.git.run import NO_GIT, ask, find_git, read_output, run_git, stream

SOURCE = Path(__file__).parents[2] / "src" / "whyfor"
# What may start processes at all: git, hooks and the MCP server that are tried out, commands of
# notifications and of [memory.model], a second interpreter.
STARTERS = {
    "git/run.py",
    "cli/pager.py",
    "service/doctor/hooks.py",
    "store/postgres/backup.py",  # pg_dump and pg_restore, of a server
    "service/doctor/mcp.py",
    "live/notify.py",
    "privacy/rule_check.py",
    "recall/model_client.py",
    "service/pr/post.py",  # gh and glab, where a person asks to post
    "capture/recorder.py",  # the program that a person records
    "service/run.py",  # an ingest of what was recorded
}
PLUMBING = set(
    "rev-parse rev-list cat-file diff-tree diff-index ls-files ls-tree check-attr check-ignore "
    "config for-each-ref merge-base "
    "symbolic-ref worktree blame".split()  # blame only of commits, and without textconv
)
_STARTS = {"subprocess", "pty", "asyncio.subprocess", "multiprocessing"}
_CALLS = {
    "system",
    "popen",
    "execv",
    "execve",
    "execvp",
    "execvpe",
    "execl",
    "execlp",
    "spawnv",
    "spawnvp",
    "fork",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", "-b", "main", str(made)], check=True)
    for name, value in (("user.name", "Ada"), ("user.email", "ada@example.org")):
        subprocess.run(["git", "-C", str(made), "config", name, value], check=True)
    subprocess.run(
        ["git", "-C", str(made), "commit", "-q", "--allow-empty", "-m", "First"], check=True
    )
    return made


# -- nobody else ---------------------------------------------------------------------------------


@cache
def _modules() -> list[tuple[str, ast.Module]]:
    found = (
        (path.relative_to(SOURCE).as_posix(), path.read_text()) for path in SOURCE.rglob("*.py")
    )
    return [(name, ast.parse(text)) for name, text in found if not name.startswith("hook/")]


def _starts_processes(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(alias.name in _STARTS for alias in node.names):
            return True
        if isinstance(node, ast.ImportFrom) and node.module in _STARTS:
            return True
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = f"{node.value.id}.{node.attr}"
            if name.startswith(("os.posix_spawn", "asyncio.create_subprocess")):
                return True
            if node.value.id == "os" and node.attr in _CALLS:
                return True
    return False


def _names_git(tree: ast.Module) -> bool:
    """Whether a list begins with the word git, as a command line would."""
    lists = (
        node.elts for node in ast.walk(tree) if isinstance(node, ast.List | ast.Tuple) and node.elts
    )
    return any(isinstance(items[0], ast.Constant) and items[0].value == "git" for items in lists)


def test_git_is_started_in_one_place_only() -> None:
    starters = {name for name, tree in _modules() if _starts_processes(tree)}
    assert starters <= STARTERS, "start git through whyfor.git.run"
    assert {name for name, tree in _modules() if name in starters and _names_git(tree)} == set()


def _asks_git(tree: ast.Module) -> bool:
    """Whether a module has the runner at hand."""
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return any((node.module or "").startswith("whyfor.git") for node in imported)


def _first_word(call: ast.Call) -> str | None:
    """The git command a call of the runner asks for, where it is written down."""
    given = call.args[1] if len(call.args) > 1 else None
    if isinstance(given, ast.List) and given.elts:
        given = given.elts[0]
    return given.value if isinstance(given, ast.Constant) and isinstance(given.value, str) else None


def test_only_commands_are_asked_that_run_no_filter_and_reach_no_remote() -> None:
    """The demo is left out: it writes a repository of its own."""
    asked: set[str] = set()
    for tree in (
        tree for name, tree in _modules() if not name.startswith("demo/") and _asks_git(tree)
    ):
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = (
                node.func.attr
                if isinstance(node.func, ast.Attribute)
                else getattr(node.func, "id", "")
            )
            if called in ("ask", "_asked", "run", "_run", "git", "read", "stream") and (
                word := _first_word(node)
            ):
                asked.add(word)
    assert asked <= PLUMBING
    assert {"rev-parse", "diff-index", "config"} <= asked, "the search still finds them"


# -- what git is given ---------------------------------------------------------------------------


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in git's place that shows its arguments and its environment."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\npwd\nprintf "%s\\n" "$@"\nenv\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return program


def test_nothing_is_inherited_but_where_the_accounts_configuration_lies(
    folder: Path, shown: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "GIT_DIR",
        "GIT_EXEC_PATH",
        "GIT_EXTERNAL_DIFF",
        "GIT_SSH_COMMAND",
        "GIT_PROXY_COMMAND",
        "GIT_ASKPASS",
    ):
        monkeypatch.setenv(name, "/evil")
    told = run_git(folder, "rev-parse", "HEAD").text.splitlines()
    assert not [line for line in told if "/evil" in line]
    assert told[0] == "/"
    variables = dict(line.partition("=")[::2] for line in told if line.startswith("GIT_"))
    assert (
        variables.items()
        >= {
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_CEILING_DIRECTORIES": str(folder.parent),
            "GIT_CONFIG_GLOBAL": os.environ["GIT_CONFIG_GLOBAL"],
        }.items()
    )
    assert {
        "core.fsmonitor=false",
        "safe.bareRepository=explicit",
        "core.hooksPath=/dev/null",
    } <= set(told)


def test_settings_are_shown_as_they_are(folder: Path) -> None:
    subprocess.run(["git", "-C", str(folder), "config", "core.hooksPath", "mine"], check=True)
    assert ask(folder, "config", "core.hooksPath") == "mine"
    assert ask(folder, "config", "--show-scope", "core.hooksPath") == "local\tmine"


def test_git_is_not_taken_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "git").write_text("#!/bin/sh\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert find_git(f".:{os.defpath}") != str(tmp_path / "git")
    assert find_git(".::bin") is None
    assert find_git(str(tmp_path)) == str(tmp_path / "git")
    monkeypatch.setenv("PATH", ".")
    assert run_git(None, "version") is NO_GIT


# -- where ---------------------------------------------------------------------------------------


def test_a_bare_repository_is_asked_only_by_its_name(folder: Path, tmp_path: Path) -> None:
    hub = tmp_path / "hub.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(folder), str(hub)], check=True)
    assert ask(hub, "rev-parse", "HEAD") is None
    assert ask(hub / "refs", "rev-parse", "HEAD") is None
    assert ask(GitDir(hub), "rev-parse", "HEAD") == ask(folder, "rev-parse", "HEAD")
    assert name_place(hub / "refs") == GitDir(hub)
    assert ask(GitDir(hub / "refs"), "rev-parse", "HEAD") is None, "exactly that folder"


def test_a_named_git_folder_of_another_account_is_not_asked(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert ask(GitDir(folder / ".git"), "rev-parse", "HEAD") is None


def test_a_link_is_followed_before_a_repository_is_looked_for(folder: Path, tmp_path: Path) -> None:
    (folder / "src").mkdir()
    (tmp_path / "link").symlink_to(folder / "src")
    assert find_work_tree(tmp_path / "link") == folder.resolve()


def test_an_empty_folder_called_git_is_passed_over_as_git_does(folder: Path) -> None:
    (folder / "deep" / ".git").mkdir(parents=True)
    assert find_work_tree(folder / "deep") == folder.resolve()
    assert ask(folder / "deep", "rev-parse", "--show-toplevel") == str(folder.resolve())


@pytest.mark.parametrize("pointer", ["gitdir: ../nowhere", "nonsense", ""])
def test_a_file_called_git_that_points_nowhere_is_no_repository(pointer: str, folder: Path) -> None:
    (folder / "deep").mkdir()
    (folder / "deep" / ".git").write_text(pointer)
    assert ask(folder / "deep", "rev-parse", "HEAD") is None


# -- limits --------------------------------------------------------------------------------------


@pytest.fixture
def stuck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git says one line, starts something that holds its output open, and never ends."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho one\nsleep 60 &\nsleep 60\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)


def test_git_that_does_not_end_is_ended(folder: Path, stuck: None) -> None:
    begun = time.monotonic()
    answer = run_git(folder, "rev-parse", "HEAD", seconds=0.3)
    assert (answer.code, answer.complaint) == (None, "git took more than 0 s")
    assert read_output(folder, ["rev-parse"], most=100, seconds=0.3) == (b"one\n", False)
    assert read_output(folder, ["rev-parse"], most=2, seconds=30) == (b"on", False)
    with stream(folder, ["rev-parse"], given=b"", seconds=0.3) as git:
        assert list(git.lines) == [b"one\n"]
        assert not git.ok
    assert time.monotonic() - begun < 30


def test_a_stream_may_be_left_early(folder: Path, stuck: None) -> None:
    begun = time.monotonic()
    with stream(folder, ["rev-parse"], given=b"x\n" * 1_000_000) as git:
        assert next(iter(git.lines)) == b"one\n"
    assert time.monotonic() - begun < 30


def test_a_stream_says_whether_git_ended_well(folder: Path) -> None:
    with stream(folder, ["cat-file", "--batch-check"], given=b"HEAD\n") as git:
        assert len(list(git.lines)) == 1
        assert git.ok
    with stream(folder, ["cat-file", "--no-such-option"], given=b"") as git:
        assert list(git.lines) == []
        assert not git.ok


@pytest.mark.parametrize("argument", ["a\0b", "\ud800"])
def test_an_argument_no_process_takes_is_an_answer(argument: str, folder: Path) -> None:
    assert run_git(folder, "rev-parse", argument).code is None
