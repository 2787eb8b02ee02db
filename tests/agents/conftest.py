"""Fixtures for tests that run real agents."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import missing_part

from .install import installed, missing_tool
from .model import ScriptedModel


@pytest.fixture(scope="session")
def agents() -> Path:
    """The folder of the installed agents; every test that takes `agent_home` has it."""
    if missing := missing_tool():
        reason = f"REAL AGENTS NOT TESTED: {missing} is not installed"
        missing_part(reason)
    return installed()


@pytest.fixture
def agent_home(agents: Path, tmp_path: Path) -> Path:
    """An empty home folder."""
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    return home


@pytest.fixture
def agent_repo(tmp_path: Path) -> Path:
    """A git repository with an author and no commits."""
    repo = tmp_path / "repo"
    make_repository(repo)
    return repo


def make_repository(folder: Path) -> None:
    folder.mkdir()
    for args in ("init -q -b main", "config user.name Ada", "config user.email ada@example.com"):
        subprocess.run(["git", *args.split()], cwd=folder, check=True)


@pytest.fixture
def scripted_model() -> Iterator[ScriptedModel]:
    """A model with an empty script; `add` gives it something to say."""
    with ScriptedModel() as model:
        yield model
