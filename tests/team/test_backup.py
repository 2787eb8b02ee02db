"""A backup of a whole team server, restored into an empty database and an empty object store."""

from __future__ import annotations

from pathlib import Path

import msgspec
import psycopg
import pytest

from tests.postgres import binaries
from tests.store.postgres.conftest import fill
from tests.store.team import Team
from whyfor.model.errors import BadInput, StoreError
from whyfor.store.objects import ObjectBlobs, open_objects
from whyfor.store.postgres.schema import CONTENT
from whyfor.team.backup import back_up, restore_backup
from whyfor.team.settings import TeamSettings

pytestmark = pytest.mark.slow


def settings_for(team: Team, folder: Path, database: str = "whyfor") -> TeamSettings:
    return TeamSettings(
        db_url=team.cluster.app(database),
        owner_url=team.cluster.admin(database),
        blobs_url=(folder / "bucket").as_uri(),
        public_url="https://whyfor.example.com",
    )


def rows(url: str) -> dict[str, list[tuple[str]]]:
    with psycopg.connect(url, options="-c search_path=whyfor") as driver:
        return {
            table: sorted(driver.execute(f"SELECT t::text FROM {table} t").fetchall())
            for table in (*CONTENT, "people", "project_members")
        }


def test_a_backup_brings_everything_back(
    postgres_18: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(binaries(18)), prepend=":")
    project = postgres_18.new_project()
    fill(project, "pelican")
    here = settings_for(postgres_18, tmp_path / "here")
    blobs = ObjectBlobs(open_objects(here.blobs_url), project.number)
    digest = blobs.put(b'{"type":"user"}\n')
    made = back_up(here, tmp_path / "backup")
    assert (made.objects, made.new) == (1, 1)
    assert back_up(here, tmp_path / "backup").new == 0, "objects are copied once"

    with psycopg.connect(postgres_18.cluster.owner, autocommit=True) as driver:
        driver.execute("CREATE DATABASE restored TEMPLATE template0 LOCALE 'C'")
    there = settings_for(postgres_18, tmp_path / "there", "restored")
    assert restore_backup(there, tmp_path / "backup").objects == 1
    assert rows(there.owner_url) == rows(here.owner_url)
    assert "pelican" in str(rows(there.owner_url)["events"])
    assert ObjectBlobs(open_objects(there.blobs_url), project.number).get(digest)
    with psycopg.connect(there.db_url, options="-c search_path=whyfor") as driver:
        assert driver.execute("SELECT count(*) FROM events").fetchone() == (0,), "policies hold"
    with pytest.raises(BadInput, match="not empty"):
        restore_backup(there, tmp_path / "backup")

    manifest = tmp_path / "backup" / "backup.json"
    told = msgspec.json.decode(manifest.read_bytes())
    manifest.write_bytes(msgspec.json.encode({**told, "objects": 2}))
    with pytest.raises(BadInput, match="1 objects of this backup are missing"):
        restore_backup(there, tmp_path / "backup")
    manifest.unlink()
    with pytest.raises(BadInput, match="not a whole backup"):
        restore_backup(there, tmp_path / "backup")


def test_what_is_missing_is_named(
    postgres_18: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StoreError, match="pg_dump is not installed"):
        back_up(settings_for(postgres_18, tmp_path), tmp_path / "backup")
    assert not (tmp_path / "backup" / "backup.json").exists()
