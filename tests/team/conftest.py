"""One PostgreSQL for all tests of the team server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.team import Team, postgres_18
from tests.team.served import ServedTeam, serve_team

__all__ = ["postgres_18"]


@pytest.fixture(scope="module")
def served(postgres_18: Team, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedTeam]:
    """The team server in this process, with its database and objects, and an owner."""
    folder: Path = tmp_path_factory.mktemp("objects")
    with serve_team(postgres_18, folder) as running:
        yield running
