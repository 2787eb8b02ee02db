"""Hooks that carry the name this program had before are known as ours, and taken out."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from whyfor.git import hooks as git_hooks
from whyfor.model import former_name

FORMER = former_name.COMMAND_MARK.removeprefix("# ")
OLD_COMMAND = (
    "test -x /usr/bin/python3 && /usr/bin/python3 -I -S /gone/hook.py; exit 0 "
    f"{former_name.COMMAND_MARK}"
)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    monkeypatch.chdir(folder)
    return folder


def old_script() -> str:
    return f"#!/bin/sh\n{former_name.GIT_STAMP.decode()}. It notes what happened.\nexit 0\n"


def put_old_hook(repository: Path) -> Path:
    """An old hook of ours with somebody else's behind it."""
    hook = repository / ".git" / "hooks" / "post-commit"
    hook.write_text(old_script())
    hook.chmod(0o755)
    theirs = hook.with_name(f"post-commit{former_name.GIT_CHAINED}")
    theirs.write_text("#!/bin/sh\necho theirs\n")
    theirs.chmod(0o755)
    return hook


def old_settings(home: Path) -> Path:
    settings = home / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    theirs = {"hooks": [{"type": "command", "command": "echo theirs"}]}
    ours = {"hooks": [{"type": "command", "command": OLD_COMMAND, "timeout": 5}]}
    settings.write_text(
        json.dumps({"model": "x", "hooks": {"Stop": [theirs, ours], "SessionEnd": [ours]}})
    )
    return settings


def test_init_takes_old_hooks_out_of_git_and_puts_ours_in(
    repository: Path, cli: Callable[..., Any]
) -> None:
    hook = put_old_hook(repository)
    assert cli("init").code == 0
    assert git_hooks.is_our_hook(hook)
    assert FORMER not in hook.read_text()
    assert not hook.with_name(f"post-commit{former_name.GIT_CHAINED}").exists()
    assert "echo theirs" in hook.with_name("post-commit.whyfor-chained").read_text()


def test_uninstall_takes_old_hooks_out_and_puts_back_what_was_there(
    repository: Path, cli: Callable[..., Any]
) -> None:
    hook = put_old_hook(repository)
    assert cli("uninstall").code == 0
    assert hook.read_text() == "#!/bin/sh\necho theirs\n"
    assert (
        sorted(path.name for path in hook.parent.glob("post-commit*"))
        == ["post-commit", "post-commit.sample"][
            : 1 + hook.with_name("post-commit.sample").exists()
        ]
    )


def test_an_old_folder_of_hooks_gives_core_hooks_path_back(
    repository: Path, cli: Callable[..., Any]
) -> None:
    common = repository / ".git"
    own = common / former_name.GIT_FOLDER
    own.mkdir()
    before = (common / "config").read_bytes()
    subprocess.run(["git", "config", "core.hooksPath", str(own)], check=True)
    (own / "config.before").write_bytes(before)
    (own / "config.after").write_bytes((common / "config").read_bytes())
    (own / "post-commit").write_text(old_script())
    assert cli("uninstall").code == 0
    assert not own.exists()
    assert (common / "config").read_bytes() == before


def test_init_replaces_old_entries_in_an_agent_s_settings(
    home: Path, repository: Path, cli: Callable[..., Any]
) -> None:
    settings = old_settings(home)
    assert cli("init", "--agent", "claude").code == 0
    text = settings.read_text()
    assert FORMER not in text
    assert text.count("echo theirs") == 1
    assert "# whyfor" in text


def test_uninstall_removes_old_entries_from_an_agent_s_settings(
    home: Path, repository: Path, cli: Callable[..., Any]
) -> None:
    settings = old_settings(home)
    assert cli("uninstall", "--all").code == 0
    assert FORMER not in settings.read_text()
    assert "echo theirs" in settings.read_text()


@pytest.mark.parametrize("verb", [("init",), ("uninstall",)])
def test_old_files_of_our_own_go(
    verb: tuple[str, ...], home: Path, repository: Path, cli: Callable[..., Any]
) -> None:
    hooks = home / ".copilot" / former_name.COPILOT_FILE
    skill = home / ".claude" / "skills" / former_name.SKILL / "SKILL.md"
    for path in (hooks, skill):
        path.parent.mkdir(parents=True)
    entry = {"type": "command", "bash": OLD_COMMAND, "timeoutSec": 5}
    hooks.write_text(json.dumps({"version": 1, "hooks": {"sessionStart": [entry]}}))
    skill.write_text(f"---\nname: {former_name.SKILL}\n---\n")
    assert cli(*verb).code == 0
    assert not hooks.exists()
    assert not skill.parent.exists()


def test_the_former_name_is_written_in_one_place() -> None:
    """So that nobody can take one program for the other."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True
    ).stdout
    allowed = "src/whyfor/model/former_name.py"
    found = []
    for name in listed.decode().split("\0"):
        path = REPOSITORY / name
        if not name or name == allowed or not path.is_file():
            continue
        if FORMER in name.lower() or FORMER.encode() in path.read_bytes().lower():
            found.append(name)
    assert found == []
