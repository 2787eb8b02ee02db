"""Migrations: forward only, one process at a time, never in anybody's way for long."""

from __future__ import annotations

import threading

import psycopg
import pytest

from tests.postgres import PostgresCluster
from tests.store.team import Team
from whyfor.model.errors import Busy, NewerStore, StoreError
from whyfor.store.postgres import migrations as module
from whyfor.store.postgres.connection import StoreScope
from whyfor.store.postgres.migrations import migrate_postgres
from whyfor.store.postgres.schema import MIGRATIONS, VERSION
from whyfor.store.postgres.store import open_postgres

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster(postgres_18: Team) -> PostgresCluster:
    return postgres_18.cluster


def empty(cluster: PostgresCluster, name: str) -> str:
    with psycopg.connect(cluster.owner, autocommit=True) as driver:
        driver.execute(f"CREATE DATABASE {name}")
    return cluster.admin(name)


def test_processes_that_migrate_at_once_do_it_once(cluster: PostgresCluster) -> None:
    url = empty(cluster, "at_once")
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(migrate_postgres(url))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, VERSION, VERSION, VERSION]


def test_a_newer_database_is_left_alone(cluster: PostgresCluster) -> None:
    url = empty(cluster, "newer")
    migrate_postgres(url)
    with psycopg.connect(url) as driver:
        driver.execute(f"UPDATE whyfor.schema_version SET number={VERSION + 1}")
    with pytest.raises(NewerStore, match=f"version {VERSION + 1}"):
        migrate_postgres(url)


def test_a_migration_gives_up_behind_a_transaction_and_leaves_nothing(
    cluster: PostgresCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = empty(cluster, "in_use")
    migrate_postgres(url)
    monkeypatch.setattr(module, "LOCK_MS", 50)
    monkeypatch.setattr(module, "_TRIES", 2)
    monkeypatch.setattr(module, "VERSION", VERSION + 1)
    after = lambda: "ALTER TABLE marks ADD COLUMN more text"  # noqa: E731 - as long as its name
    monkeypatch.setattr(module, "MIGRATIONS", (*MIGRATIONS, after))
    with psycopg.connect(url) as reader:
        reader.execute("SELECT * FROM whyfor.marks")
        with pytest.raises(Busy):
            migrate_postgres(url)
    assert migrate_postgres(url) == VERSION
    assert migrate_postgres(url) == VERSION + 1


def test_a_server_that_is_not_there_is_named(cluster: PostgresCluster) -> None:
    with pytest.raises(StoreError, match="cannot be reached"):
        open_postgres(f"postgresql://app@/nowhere?host={cluster.folder}", StoreScope(1))
