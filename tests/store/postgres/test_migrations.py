"""Migrations: forward only, one process at a time, never in anybody's way for long."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.postgres import PostgresCluster
from tests.store.team import Team
from whyfor.model.errors import Busy, NewerStore, StoreError
from whyfor.store.open import open_store
from whyfor.store.postgres import migrations as module
from whyfor.store.postgres.connection import StoreScope
from whyfor.store.postgres.migrations import migrate_postgres
from whyfor.store.postgres.schema import CONTENT, MIGRATIONS, SHARED, VERSION
from whyfor.store.postgres.store import open_postgres
from whyfor.store.sqlite.connection import fetch

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


def test_both_databases_have_the_same_columns(postgres_18: Team, tmp_path: Path) -> None:
    """A column that SQLite gets, PostgreSQL gets by a migration of its own."""
    with closing(open_store(tmp_path / "whyfor.db")) as store:
        sql = "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c"
        theirs = {
            (table, column) for table, column in fetch(store.db, f"{sql} WHERE m.type='table'")
        }
    found = postgres_18.admin.execute(
        "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema='whyfor'"
    )
    ours = {(table, column) for table, column in found}
    shared = {*CONTENT, *SHARED} - {"words", "passages", "cards", "search_sizes"}
    assert {each for each in theirs if each[0] in shared} == {
        each for each in ours if each[0] in shared and each[1] not in ("team_project", "person")
    }
