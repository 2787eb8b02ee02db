"""Git hooks: ours beside whatever is there, which runs as if we were not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result, missing_part
from tests.service.init.test_settings import snapshot
from tests.service.init.tools import Spool, git, script
from whyfor.config import Settings
from whyfor.git import hooks

Cli = Callable[..., Result]
OWN = sorted(hooks.OURS)


def head(repo: Path) -> str:
    return git(repo, "rev-parse", "HEAD").stdout.strip()


def commit(repo: Path, message: str = "x", **options: Any) -> subprocess.CompletedProcess[str]:
    return git(repo, "commit", "-q", "--allow-empty", "-m", message, **options)


def test_each_event_is_announced_with_what_only_that_moment_knows(
    repo: Path, cli: Cli, spool: Spool
) -> None:
    cli("init")
    commit(repo)
    first = head(repo)
    (one,) = spool.next("post-commit")
    assert (one["agent"], one["sha"], one["cwd"]) == ("git", first, str(repo))
    assert one["chain"][0][2] == "git"
    assert one["chain"][1][0] == os.getpid()
    assert one["chain"][1][1] > 0
    spool.clear()
    commit(repo, "y", env={**os.environ, "GIT_REFLOG_ACTION": "test"})
    git(repo, "commit", "-q", "--amend", "--allow-empty", "-m", "z")
    found = {
        envelope["event"]: envelope
        for envelope in spool.next("post-commit", "post-commit", "post-rewrite")
    }
    assert found["post-rewrite"]["args"] == ["amend"]
    assert found["post-rewrite"]["payload"].split()[1] == head(repo)
    spool.clear()
    git(repo, "checkout", "-q", "-b", "topic", first)
    (moved,) = spool.next("post-checkout")
    assert moved["args"][1:] == [first, "1"]
    spool.clear()
    git(repo, "merge", "-q", "main")
    (merged,) = spool.next("post-merge")
    assert merged["sha"] == head(repo)


def test_an_agent_that_kills_what_its_command_leaves_behind_loses_nothing(
    repo: Path, cli: Cli, spool: Spool
) -> None:
    cli("init")
    env = {**os.environ, "CODEX_THREAD_ID": "t"}
    for _ in range(10):
        argv = ["git", "commit", "-q", "--allow-empty", "-m", "x"]
        process = subprocess.Popen(argv, cwd=repo, env=env, start_new_session=True)
        assert process.wait() == 0
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert spool.events() == ["post-commit"] * 10


def test_picks_of_a_rebase_are_told_apart(repo: Path, cli: Cli, spool: Spool) -> None:
    commit(repo, "base")
    git(repo, "checkout", "-q", "-b", "topic")
    commit(repo, "picked")
    git(repo, "checkout", "-q", "main")
    commit(repo, "other")
    cli("init")
    git(repo, "rebase", "-q", "--keep-empty", "main", "topic")
    arrived = spool.next("post-checkout", "post-commit", "post-rewrite")
    rebasing = {envelope["event"]: envelope.get("rebasing", False) for envelope in arrived}
    assert rebasing["post-commit"] is True
    assert [e["args"] for e in arrived if e["event"] == "post-rewrite"] == [["rebase"]]


@pytest.mark.parametrize("shell", ["dash", "bash", "busybox sh"])
def test_any_shell_and_an_empty_environment_will_do(
    repo: Path, cli: Cli, spool: Spool, shell: str, tmp_path: Path
) -> None:
    if shutil.which(shell.split()[0]) is None:
        missing_part(f"{shell} is not installed")
    commit(repo)
    cli("init")
    for name in ("post-commit", "post-rewrite"):
        argv = [*shell.split(), str(repo / ".git" / "hooks" / name), "amend"]
        argv[0] = shutil.which(argv[0]) or ""
        done = subprocess.run(argv, cwd=repo, env={}, input="a b\n", capture_output=True, text=True)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    one, two = sorted(
        spool.next("post-commit", "post-rewrite"), key=lambda envelope: str(envelope["event"])
    )
    assert one["sha"] == two["sha"] == head(repo)
    assert two["payload"].split() == ["a", "b"]
    assert one["chain"][0][0] == os.getpid()


@pytest.mark.parametrize("path", [None, "", "/nowhere", "/usr/bin:/bin"])
def test_a_client_with_a_bare_path_commits_as_before(
    repo: Path, cli: Cli, spool: Spool, path: str | None
) -> None:
    cli("init")
    program = shutil.which("git")
    assert program
    env = {"HOME": os.environ["HOME"], **({} if path is None else {"PATH": path})}
    argv = [program, "commit", "-q", "--allow-empty", "-m", "x"]
    done = subprocess.run(argv, cwd=repo, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert spool.next("post-commit")[0]["sha"] == head(repo)


@pytest.mark.parametrize("broken", ["python", "hook", "home"])
def test_with_any_part_of_ours_gone_theirs_still_run_and_decide(
    repo: Path,
    cli: Cli,
    settings: Settings,
    tmp_path: Path,
    broken: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script(repo / ".git" / "hooks" / "post-commit", f'echo ran >"{tmp_path}/ran"')
    if broken == "python":
        monkeypatch.setattr("whyfor.capture.hook_files.interpreter", lambda: "/code/gone/python3")
    cli("init")
    if broken == "hook":
        (settings.home / "hook" / "hook.py").unlink()
    if broken == "home":
        shutil.rmtree(settings.home)
    done = commit(repo)
    assert (done.stdout, done.stderr) == ("", "")
    assert (tmp_path / "ran").read_text() == "ran\n"


def test_a_hook_that_was_there_gets_arguments_and_stdin_and_its_exit_code_counts(
    repo: Path, cli: Cli, spool: Spool, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    script(
        repo / ".git" / "hooks" / "pre-push",
        f'printf "%s|" "$0" "$@" >{log}; cat >>{log}; echo no >&2; exit 3',
    )
    commit(repo)
    git(tmp_path, "init", "-q", "--bare", "away")
    cli("init")
    done = git(repo, "push", "../away", "main:refs/heads/a-b", check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("no\n")
    said = log.read_text()
    assert said.split("|")[1:3] == ["../away", "../away"]
    assert said.split("|")[3] == f"refs/heads/main {head(repo)} refs/heads/a-b {'0' * 40}\n"
    assert spool.next("pre-push")[0]["payload"].split() == said.split("|")[3].split()
    assert git(tmp_path / "away", "branch").stdout == ""


def test_stdin_is_handed_on_to_the_last_byte(
    repo: Path, cli: Cli, spool: Spool, tmp_path: Path
) -> None:
    script(repo / ".git" / "hooks" / "pre-push", f"cat >{tmp_path}/given")
    cli("init")
    hook = repo / ".git" / "hooks" / "pre-push"
    for given in (b"", b"one", b"one\n", b"\n\n\n", b" \t% \\ $HOME `x`\n" * 20_000):
        subprocess.run([hook, "origin", "url"], cwd=repo, input=given, check=True)
        assert (tmp_path / "given").read_bytes() == given
    script(repo / ".git" / "hooks" / "pre-push.whyfor-chained", "exit 7")
    done = subprocess.run(
        [hook], cwd=repo, input=b"x\n" * 200_000, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (7, b"")


def test_a_hook_that_git_would_not_run_is_not_run_by_us(
    repo: Path, cli: Cli, tmp_path: Path
) -> None:
    script(repo / ".git" / "hooks" / "post-commit", f"touch {tmp_path}/ran", mode=0o644)
    cli("init")
    commit(repo)
    assert not (tmp_path / "ran").exists()
    cli("uninstall")
    assert (repo / ".git" / "hooks" / "post-commit").stat().st_mode & 0o777 == 0o644


def test_uninstall_puts_hooks_links_and_modes_back(repo: Path, cli: Cli, tmp_path: Path) -> None:
    script(repo / ".git" / "hooks" / "post-commit", "true", mode=0o750)
    script(tmp_path / "tools" / "push", "true")
    (repo / ".git" / "hooks" / "pre-push").symlink_to(tmp_path / "tools" / "push")
    before = snapshot(repo)
    first = cli("init", "--json").json
    assert [step["note"] for step in first["steps"] if step["kind"] == "git"] == [
        "your own post-commit, pre-push still run"
    ]
    between = snapshot(repo)
    again = cli("init", "--json").json
    assert [step["state"] for step in again["steps"] if step["kind"] == "git"] == ["unchanged"]
    assert snapshot(repo) == between
    cli("uninstall", "--dry-run")
    assert snapshot(repo) == between
    cli("uninstall")
    assert snapshot(repo) == before
    assert (repo / ".git" / "hooks" / "pre-push").is_symlink()


def test_a_repository_without_a_folder_of_hooks_has_none_afterwards(repo: Path, cli: Cli) -> None:
    shutil.rmtree(repo / ".git" / "hooks")
    before = snapshot(repo)
    cli("init")
    assert (repo / ".git" / "hooks").stat().st_mode == (repo / ".git").stat().st_mode
    cli("uninstall")
    assert snapshot(repo) == before


def test_nothing_enters_the_work_tree(repo: Path, cli: Cli, home: Path) -> None:
    (home / ".claude").mkdir()
    (repo / ".githooks").mkdir()
    git(repo, "config", "core.hooksPath", ".githooks")
    cli("init")
    commit(repo)
    assert git(repo, "status", "--porcelain", "--ignored").stdout == ""


# -- core.hooksPath ------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["--local", "--global"])
@pytest.mark.parametrize("style", ["relative", "absolute"])
def test_another_folder_of_hooks_is_stood_in_for_and_not_written_to(
    repo: Path, cli: Cli, spool: Spool, tmp_path: Path, scope: str, style: str
) -> None:
    folder = repo / "my hooks" if style == "relative" else tmp_path / "shared"
    script(folder / "commit-msg", f'echo "$0 $1" >>"{tmp_path}/log"; grep -q good "$1"')
    script(folder / "post-commit", f'echo "$0" >>"{tmp_path}/log"')
    configured = "my hooks" if style == "relative" else str(folder)
    git(repo, "config", scope, "core.hooksPath", configured)
    before, theirs = snapshot(repo / ".git"), snapshot(folder)
    first = cli("init", "--json").json
    (note,) = [step["note"] for step in first["steps"] if step["kind"] == "git"]
    assert note == f"core.hooksPath was {configured}: its hooks run as before"
    again = cli("init", "--json").json
    assert [step["state"] for step in again["steps"] if step["kind"] == "git"] == ["unchanged"]
    assert commit(repo, "bad", check=False).returncode == 1
    commit(repo, "good")
    assert spool.next("post-commit")[0]["sha"] == head(repo)
    script(folder / "pre-commit", "exit 9")  # a colleague's, added later
    assert commit(repo, "good", check=False).returncode == 1
    (folder / "pre-commit").unlink()
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[-1] == f"{configured}/post-commit"
    assert snapshot(folder) == theirs
    cli("uninstall")
    kept = {
        name: state
        for name, state in snapshot(repo / ".git").items()
        if name in before and "objects" not in name
    }
    assert kept["config"] == before["config"]
    assert not (repo / ".git" / "whyfor-hooks").exists()


def test_a_config_changed_since_keeps_the_change(repo: Path, cli: Cli) -> None:
    git(repo, "config", "core.hooksPath", "theirs")
    cli("init")
    git(repo, "config", "branch.main.description", "kept")
    cli("uninstall")
    assert git(repo, "config", "core.hooksPath").stdout == "theirs\n"
    assert git(repo, "config", "branch.main.description").stdout == "kept\n"


def test_a_path_set_after_ours_is_left_and_init_stands_in_for_it(
    repo: Path, cli: Cli, spool: Spool
) -> None:
    git(repo, "config", "core.hooksPath", "one")
    cli("init")
    git(repo, "config", "core.hooksPath", "two")
    cli("init")
    commit(repo)
    spool.next("post-commit")
    cli("uninstall")
    assert git(repo, "config", "core.hooksPath").stdout == "two\n"


def test_a_folder_of_hooks_that_is_a_link_into_the_work_tree_is_not_written_to(
    repo: Path, cli: Cli, spool: Spool, tmp_path: Path
) -> None:
    script(repo / "tools" / "post-commit", f"touch {tmp_path}/ran")
    shutil.rmtree(repo / ".git" / "hooks")
    (repo / ".git" / "hooks").symlink_to("../tools")
    config = (repo / ".git" / "config").read_bytes()
    cli("init")
    commit(repo)
    spool.next("post-commit")
    assert (tmp_path / "ran").exists()
    assert [path.name for path in (repo / "tools").iterdir()] == ["post-commit"]
    cli("uninstall")
    assert (repo / ".git" / "config").read_bytes() == config


def test_a_path_set_for_one_work_tree_alone_is_refused(repo: Path, cli: Cli) -> None:
    git(repo, "config", "extensions.worktreeConfig", "true")
    git(repo, "config", "--worktree", "core.hooksPath", "mine")
    steps = [step for step in cli("init", "--json").json["steps"] if step["kind"] == "git"]
    assert [step["state"] for step in steps] == ["failed"]
    assert "this work tree alone" in steps[0]["note"]


# -- kinds of repositories -----------------------------------------------------------------------


def test_a_linked_work_tree_shares_its_hooks(
    repo: Path, cli: Cli, spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(repo)
    tree = tmp_path / "other tree"
    git(repo, "worktree", "add", "-q", "-b", "topic", str(tree))
    monkeypatch.chdir(tree)
    cli("init")
    commit(tree, "there")
    (one,) = spool.next("post-commit")
    assert (one["cwd"], one["sha"]) == (str(tree), head(tree))
    cli("uninstall")
    assert not hooks.installed(hooks.HookedRepository(repo / ".git", repo))


def test_a_submodule_has_its_own(
    repo: Path, cli: Cli, spool: Spool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "part")
    commit(tmp_path / "part")
    git(
        repo,
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        str(tmp_path / "part"),
        "part",
    )
    monkeypatch.chdir(repo / "part")
    cli("init")
    commit(repo / "part", "inside")
    (one,) = spool.next("post-commit")
    assert (one["cwd"], one["sha"]) == (str(repo / "part"), head(repo / "part"))
    commit(repo, "outside")
    assert spool.events() == ["post-commit"]
    assert "post-commit" in [
        path.name for path in (repo / ".git" / "modules" / "part" / "hooks").iterdir()
    ]


def test_a_bare_repository_is_declined_with_a_reason(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare")
    monkeypatch.chdir(tmp_path / "bare")
    (step,) = [step for step in cli("init", "--json").json["steps"] if step["kind"] == "git"]
    assert (step["state"], step["note"]) == (
        "absent",
        "a bare repository: nobody commits in it; agents' hooks only",
    )


def test_agents_hooks_go_with_the_last_repository(
    repo: Path, home: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / ".claude").mkdir()
    path = home / ".claude" / "settings.json"
    git(tmp_path, "init", "-q", "second")
    cli("init")
    monkeypatch.chdir(tmp_path / "second")
    cli("init")
    told = cli("uninstall", "--json").json
    assert "whyfor uninstall --all" in told["todo"][0]
    assert path.exists()
    monkeypatch.chdir(repo)
    cli("uninstall")
    assert not path.exists()


def test_all_means_every_repository(repo: Path, home: Path, tmp_path: Path, cli: Cli) -> None:
    (home / ".claude").mkdir()
    cli("init")
    os.chdir(tmp_path)
    cli("uninstall", "--all")
    assert not hooks.installed(hooks.HookedRepository(repo / ".git", repo))
    assert not (home / ".claude" / "settings.json").exists()


# -- --local -------------------------------------------------------------------------------------


def test_local_settings_are_hidden_from_git_and_go_without_a_trace(
    repo: Path, home: Path, cli: Cli
) -> None:
    (home / ".claude").mkdir()
    (home / ".codex").mkdir()
    before = snapshot(repo)
    cli("init", "--local")
    assert (repo / ".claude" / "settings.local.json").exists()
    assert not (home / ".claude" / "settings.json").exists()
    assert git(repo, "status", "--porcelain").stdout == ""
    cli("init", "--local")
    assert (repo / ".git" / "info" / "exclude").read_text().count("settings.local.json") == 1
    cli("uninstall")
    assert snapshot(repo) == before


def test_local_settings_that_git_tracks_are_left_alone(repo: Path, home: Path, cli: Cli) -> None:
    (home / ".gemini").mkdir()
    (repo / ".gemini").mkdir()
    (repo / ".gemini" / "settings.json").write_text("{}")
    git(repo, "add", ".")
    (step,) = [
        s
        for s in cli("init", "--local", "--agent", "gemini", "--json").json["steps"]
        if s["kind"] == "agent"
    ]
    assert (step["state"], "git tracks it" in step["note"]) == ("failed", True)
    assert (repo / ".gemini" / "settings.json").read_text() == "{}"
    assert cli("uninstall").code == 0


def test_local_outside_a_repository_is_an_error(cli: Cli) -> None:
    assert cli("init", "--local").code == 2


# -- the line at checkout ------------------------------------------------------------------------


def _checkout(repo: Path) -> str:
    """What a person sees on a terminal."""
    parent, child = os.openpty()
    subprocess.run(
        ["git", "checkout", "-q", "main~1"],
        cwd=repo,
        stdin=child,
        stdout=child,
        stderr=child,
        check=True,
    )
    os.close(child)
    seen = b""
    try:
        while part := os.read(parent, 1000):
            seen += part
    except OSError:
        pass  # all of it was read, and nobody holds the other end
    finally:
        os.close(parent)
    return seen.decode()


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal")
def test_a_commit_with_a_story_says_so_at_checkout_to_a_person_only(
    repo: Path, cli: Cli, settings: Settings
) -> None:
    commit(repo, "told")
    told = head(repo)
    commit(repo, "next")
    cli("init")
    assert _checkout(repo) == ""
    (settings.home / "hook" / "stories").write_text(
        f"{'0' * 40}\tctx-1\tOther\n{told}\tctx-2\tRetry %s with `x`\n"
    )
    git(repo, "checkout", "-q", "main")
    assert _checkout(repo) == (
        f"whyfor: this commit has a story: Retry %s with `x`  (whyfor show {told[:9]})\r\n"
    )
    git(repo, "checkout", "-q", "main")
    assert git(repo, "checkout", "-q", told).stderr == ""
    git(repo, "checkout", "-q", "main")
    cli("init", "--no-notice")
    assert _checkout(repo) == ""
