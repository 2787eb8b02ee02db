"""A store of every kind there is, empty and open for writing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.contract.build import Build
from whyfor.store.open import open_store
from whyfor.store.protocol import Store


def _sqlite(folder: Path) -> Store:
    return open_store(folder / "whyfor.db")


BACKENDS: dict[str, Callable[[Path], Store]] = {"sqlite": _sqlite}


@pytest.fixture(params=BACKENDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with closing(BACKENDS[request.param](tmp_path)) as found:
        yield found


@pytest.fixture(params=BACKENDS)
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Store]]:
    """Stores of one kind, as many as are asked for."""
    made: list[Store] = []

    def make() -> Store:
        folder = tmp_path / f"store {len(made)}"
        folder.mkdir()
        made.append(BACKENDS[request.param](folder))
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def build(store: Store) -> Build:
    return Build(store)
