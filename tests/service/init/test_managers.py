"""husky, lefthook and pre-commit, installed for real, before and after ours."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result, missing_part
from tests.service.init.managers import installed
from tests.service.init.tools import Spool, git, script

Cli = Callable[..., Result]


@pytest.fixture
def managers(monkeypatch: pytest.MonkeyPatch) -> Path:
    if missing := next((tool for tool in ("node", "npm") if shutil.which(tool) is None), None):
        missing_part(f"HOOK MANAGERS NOT TESTED: {missing} is not installed")
    found = installed()
    path = [found / "node_modules" / ".bin", found / "venv" / "bin"]
    monkeypatch.setenv("PATH", os.pathsep.join([*map(str, path), os.environ["PATH"]]))
    return found


def run(repo: Path, *argv: str | Path) -> None:
    done = subprocess.run(
        [str(word) for word in argv], cwd=repo, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def commit(repo: Path, message: str = "x") -> subprocess.CompletedProcess[str]:
    (repo / "file").write_text(
        f"{git(repo, 'rev-list', '--all', '--count').stdout}\n"
    )  # lefthook wants something to push
    git(repo, "add", "file")
    return git(repo, "commit", "-q", "--allow-empty", "-m", message, check=False)


def ran(tmp_path: Path) -> int:
    """How often their hook ran since last asked."""
    log = tmp_path / "theirs"
    count = len(log.read_text().splitlines()) if log.exists() else 0
    log.unlink(missing_ok=True)
    return count


# -- husky ---------------------------------------------------------------------------------------


def husky(repo: Path, managers: Path, version: int) -> None:
    """As `npm install` runs it: version 9 by its own command, 8 with `install`."""
    main = managers / "node_modules" / ("husky/bin.js" if version == 9 else "husky8/lib/bin.js")
    run(repo, "node", main, *([] if version == 9 else ["install"]))


@pytest.mark.parametrize("version", [8, 9])
def test_husky_runs_beside_ours_in_both_orders(
    repo: Path, cli: Cli, spool: Spool, tmp_path: Path, managers: Path, version: int
) -> None:
    husky(repo, managers, version)
    script(repo / ".husky" / "post-commit", f'echo post >>"{tmp_path}/theirs"')
    script(repo / ".husky" / "commit-msg", 'grep -q good "$1"')
    config = (repo / ".git" / "config").read_bytes()
    cli("init")
    assert commit(repo, "bad").returncode == 1
    assert commit(repo, "good").returncode == 0
    spool.next("post-commit")
    assert ran(tmp_path) == 1

    husky(repo, managers, version)  # npm install, the next day
    spool.clear()
    assert commit(repo, "good").returncode == 0
    assert ran(tmp_path) == 1
    assert spool.events() == []
    cli("init")
    assert commit(repo, "bad").returncode == 1
    assert commit(repo, "good").returncode == 0
    spool.next("post-commit")
    assert ran(tmp_path) == 1
    cli("uninstall")
    assert (repo / ".git" / "config").read_bytes() == config
    assert commit(repo, "good").returncode == 0
    assert ran(tmp_path) == 1


# -- lefthook ------------------------------------------------------------------------------------


def lefthook(repo: Path, tmp_path: Path) -> None:
    (repo / "lefthook.yml").write_text(
        "output: [failure]\npost-commit:\n  commands:\n    note:\n      run: echo post "
        f">>{tmp_path}/theirs\n"
        "pre-push:\n  commands:\n    gate:\n      run: test ! -e stop\n"
    )
    run(repo, "lefthook", "install")


def test_lefthook_runs_beside_ours_in_both_orders(
    repo: Path, cli: Cli, spool: Spool, tmp_path: Path, managers: Path
) -> None:
    lefthook(repo, tmp_path)
    theirs = (repo / ".git" / "hooks" / "post-commit").read_bytes()
    cli("init")
    assert commit(repo).returncode == 0
    spool.next("post-commit")
    assert ran(tmp_path) == 1
    git(tmp_path, "init", "-q", "--bare", "away")
    (repo / "stop").touch()
    assert git(repo, "push", "-q", "../away", "main", check=False).returncode == 1
    (repo / "stop").unlink()
    git(repo, "push", "-q", "../away", "main")

    lefthook(repo, tmp_path)  # it puts ours aside and never runs it
    spool.clear()
    assert commit(repo).returncode == 0
    assert ran(tmp_path) == 1
    assert spool.events() == []
    cli("init")
    assert commit(repo).returncode == 0
    spool.next("post-commit")
    assert ran(tmp_path) == 1
    cli("uninstall")
    assert (repo / ".git" / "hooks" / "post-commit").read_bytes() == theirs
    assert [
        path.name for path in (repo / ".git" / "hooks").iterdir() if "whyfor" in path.name
    ] == []


def test_a_hook_that_was_before_us_is_where_lefthook_would_have_put_it(
    repo: Path, cli: Cli, tmp_path: Path, managers: Path
) -> None:
    mine = script(repo / ".git" / "hooks" / "post-commit", "true").read_bytes()
    cli("init")
    lefthook(repo, tmp_path)
    cli("init")
    cli("uninstall")
    assert (repo / ".git" / "hooks" / "post-commit.old").read_bytes() == mine
    assert b"lefthook" in (repo / ".git" / "hooks" / "post-commit").read_bytes().lower()


# -- pre-commit ----------------------------------------------------------------------------------


def pre_commit(repo: Path, tmp_path: Path) -> None:
    note = f"sh -c 'echo post >>{tmp_path}/theirs'"
    (repo / ".pre-commit-config.yaml").write_text(
        "repos:\n- repo: local\n  hooks:\n"
        f"  - {{id: note, name: note, language: system, always_run: true, pass_filenames: false,"
        f' stages: [post-commit], entry: "{note}"}}\n'
        "  - {id: gate, name: gate, language: system, always_run: true, pass_filenames: false,"
        " stages: [pre-push], entry: test ! -e stop}\n"
    )
    git(repo, "add", ".pre-commit-config.yaml")
    run(repo, "pre-commit", "install", "--hook-type", "post-commit", "--hook-type", "pre-push")


@pytest.mark.parametrize("first", ["theirs", "ours"])
def test_pre_commit_runs_beside_ours_in_both_orders(
    repo: Path, cli: Cli, spool: Spool, tmp_path: Path, managers: Path, first: str
) -> None:
    if first == "theirs":
        pre_commit(repo, tmp_path)
    cli("init")
    pre_commit(repo, tmp_path)
    again = cli("init", "--json").json
    assert [step["state"] for step in again["steps"] if step["kind"] == "git"] == ["unchanged"]
    assert commit(repo).returncode == 0
    spool.next("post-commit")
    assert ran(tmp_path) == 1
    git(tmp_path, "init", "-q", "--bare", "away")
    (repo / "stop").touch()
    assert git(repo, "push", "-q", "../away", "main", check=False).returncode == 1
    (repo / "stop").unlink()
    done = git(repo, "push", "-q", "../away", "main", check=False)
    assert done.returncode == 0, done.stderr
    cli("uninstall")
    spool.clear()
    assert commit(repo).returncode == 0
    assert ran(tmp_path) == 1
    assert spool.events() == []
    assert git(repo, "push", "-q", "../away", "main", check=False).returncode == 0
