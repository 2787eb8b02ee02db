"""One repository per test, with hooks and without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.story.links.workshop import Cli, Clock, Repo, Workshop


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """With a first commit by a person; the current folder."""
    made = Repo.made(tmp_path / "code" / "shop", Clock())
    monkeypatch.chdir(made.path)
    return made


@pytest.fixture(params=[False, True], ids=["inferred", "hooked"])
def shop(request: pytest.FixtureRequest, repo: Repo, home: Path, cli: Cli) -> Workshop:
    """Without any hook, and with those that `whyfor init` installs."""
    return Workshop(home, repo, cli, hooked=request.param)


@pytest.fixture
def plain(repo: Repo, home: Path, cli: Cli) -> Workshop:
    return Workshop(home, repo, cli, hooked=False)


@pytest.fixture
def hooked(repo: Repo, home: Path, cli: Cli) -> Workshop:
    return Workshop(home, repo, cli, hooked=True)
