"""One PostgreSQL and one server for all tests of sharing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.team import Team, postgres_18
from tests.sync.laptop import Laptop, SharedServer, new_origin, shared_server

__all__ = ["postgres_18"]


@pytest.fixture(scope="session")
def server(postgres_18: Team, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedServer]:
    with shared_server(postgres_18, tmp_path_factory.mktemp("objects")) as running:
        yield running


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    return new_origin(tmp_path)


@pytest.fixture
def laptop(tmp_path: Path, origin: Path) -> Laptop:
    return Laptop(tmp_path / "one", origin)
