"""A repository to install hooks in, and what they announce."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.service.init.tools import Spool, git
from whyfor.capture import hook_files
from whyfor.config import Settings


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with an author, in a folder whose name a careless script would trip over; the
    current folder."""
    made = tmp_path / 'it\'s a $HOME "repo"'
    made.mkdir()
    git(made, "init", "-q", "-b", "main")
    git(made, "config", "--global", "user.name", "Ada")
    git(made, "config", "--global", "user.email", "ada@example.com")
    monkeypatch.chdir(made)
    return made


@pytest.fixture
def spool(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Spool:
    """What hooks announce, with nobody reading it away: no ingest is started."""
    monkeypatch.setattr(hook_files, "launcher", lambda: b"")
    return Spool(settings.home)
