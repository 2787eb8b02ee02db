"""A store of every kind there is, empty and open for writing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.store.contract.build import Build
from tests.store.team import postgres_18, postgres_debian
from whyfor.store.open import open_store
from whyfor.store.protocol import SharedStore, Store

__all__ = ["postgres_18", "postgres_debian"]

# What only a machine has is not asked of a server.
MACHINE = (
    "test_approvals",
    "test_capture",
    "test_forget",
    "test_lines",
    "test_links",
    "test_signals",
    "test_store",
)
SERVERS = ("postgres_18", "postgres_debian")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    name = metafunc.module.__name__.rpartition(".")[2]
    if "backend" in metafunc.fixturenames:
        servers = [] if name in MACHINE else SERVERS
        slow = [pytest.param(each, marks=pytest.mark.slow) for each in servers]
        metafunc.parametrize("backend", ["sqlite", *slow])


@pytest.fixture
def make_store(
    backend: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[Callable[[], SharedStore]]:
    """Stores of one kind, as many as are asked for."""
    made: list[SharedStore] = []

    def make() -> SharedStore:
        if backend == "sqlite":
            folder = tmp_path / f"store {len(made)}"
            folder.mkdir()
            made.append(open_store(folder / "whyfor.db"))
        else:
            made.append(request.getfixturevalue(backend).new_project().writer())
        return made[-1]

    yield make
    for store in made:
        store.close()


@pytest.fixture
def store(make_store: Callable[[], SharedStore]) -> SharedStore:
    return make_store()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Store]:
    """A store of this machine, for what only such a store has."""
    with closing(open_store(tmp_path / "whyfor.db")) as found:
        yield found


@pytest.fixture
def build(store: SharedStore) -> Build:
    return Build(store)
