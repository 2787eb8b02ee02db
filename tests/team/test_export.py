"""One project, exported from a server and imported on another one, is the same project."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import psycopg
import pytest

from tests.store.postgres.conftest import fill
from tests.store.team import Team
from tests.team.shop import shared_shop
from tests.team.test_backup import settings_for
from whyfor.model.errors import BadInput, NotFound
from whyfor.store.objects import ObjectBlobs, open_objects
from whyfor.team.export import export_project, import_project
from whyfor.team.settings import TeamSettings
from whyfor.team.setup import make_owner_link, migrate_server

pytestmark = pytest.mark.slow
COMPARED = {
    "sessions": "agent, session_id, branch, title, started_at, ended_at, prompts, turn, last_seq",
    "events": "key, turn, kind, created_at, actor, name, text, data",
    "checkpoints": "sha, subject, author, email, committed_at, files, evidence, group_root",
    "parts": "sha, evidence, confidence, role, first, last, messages, lines, pieces",
    "observations": "key, type, state, at, session_name",
    "words": "len",
    "segments": "start, stop, digest",
}


def told(url: str, project: int) -> dict[str, list[tuple[object, ...]]]:
    """What a project has, with whose it is by their addresses."""
    found = {}
    with psycopg.connect(url, options="-c search_path=whyfor") as driver:
        for table, columns in COMPARED.items():
            rows = driver.execute(
                f"SELECT (SELECT p.email FROM people p WHERE p.id = t.person), {columns} "
                f"FROM {table} t WHERE team_project=%s",
                (project,),
            ).fetchall()
            found[table] = sorted(rows, key=str)
    return found


def other_server(team: Team, folder: Path) -> TeamSettings:
    with psycopg.connect(team.cluster.owner, autocommit=True) as driver:
        driver.execute("CREATE DATABASE elsewhere TEMPLATE template0 LOCALE 'C'")
    there = settings_for(team, folder, "elsewhere")
    migrate_server(there)
    make_owner_link(there, "The other office")
    return there


def test_a_project_moves_to_another_server_with_its_people(
    postgres_18: Team, tmp_path: Path
) -> None:
    with shared_shop(postgres_18, tmp_path) as shop:
        here = shop.served.app.resources.settings
        number = shop.project.number
        fill(shop.other, "walrusword")
        admin = postgres_18.admin
        admin.execute("DELETE FROM memberships WHERE person_id=%s", (shop.ann,))
        admin.execute("UPDATE people SET email=%s WHERE id=%s", ("bob@export.example", shop.bob))
        admin.execute(
            "INSERT INTO tombstones(kind, name, at, team_project, person) VALUES('commit', 'x', 1, %s, %s)",
            (number, shop.bob),
        )
        before = told(here.owner_url, number)
        made = export_project(here, str(number), tmp_path / "export")
        assert told(here.owner_url, number) == before, "nothing is changed by it"
        left = admin.execute("SELECT 1 FROM memberships WHERE person_id=%s", (shop.ann,))
        assert left.fetchall() == []
        assert (made.sessions, made.stories > 0, made.objects > 0) == (2, True, True)
        text = (tmp_path / "export" / "stories.jsonl").read_text()
        assert "walrusword" not in text + (tmp_path / "export" / "export.json").read_text()
        assert all(json.loads(line)["person"] for line in text.splitlines())

        there = other_server(postgres_18, tmp_path / "there")
        came = import_project(there, tmp_path / "export", "shop there")
        assert came.project.name == "shop there"
        assert told(there.owner_url, came.project.id) == before
        with psycopg.connect(there.owner_url, options="-c search_path=whyfor") as driver:
            people = driver.execute(
                "SELECT p.name, p.state, m.role FROM people p LEFT JOIN project_members m "
                "ON m.person_id = p.id ORDER BY 1"
            ).fetchall()
            assert people == [("Ann", "suspended", "member"), ("Bob", "suspended", "member")]
            assert driver.execute("SELECT name FROM tombstones").fetchall() == [("x",)]
            logged = driver.execute("SELECT action FROM audit").fetchall()
            assert logged == [("project.import",)]

        with pytest.raises(BadInput, match="there is a project called shop there"):
            import_project(there, tmp_path / "export", "shop there")
        with pytest.raises(BadInput, match="has an export already"):
            export_project(here, str(number), tmp_path / "export")


def test_an_import_that_fails_leaves_nothing(postgres_18: Team, tmp_path: Path) -> None:
    with shared_shop(postgres_18, tmp_path) as shop:
        here = shop.served.app.resources.settings
        export_project(here, str(shop.project.number), tmp_path / "export")
        lost = next((tmp_path / "export" / "objects").rglob("*.zst"))
        lost.unlink()
        there = settings_for(postgres_18, tmp_path / "again")
        there = msgspec.structs.replace(there, blobs_url=(tmp_path / "again").as_uri())
        with pytest.raises(Exception, match="is missing"):
            import_project(there, tmp_path / "export", "half a project")
        found = postgres_18.admin.execute(
            "SELECT id FROM team_projects WHERE name='half a project'"
        ).fetchall()
        assert found == []
        last = postgres_18.admin.execute("SELECT last_value FROM team_projects_id_seq").fetchone()
        assert last is not None
        blobs = ObjectBlobs(open_objects(there.blobs_url), int(last[0]))
        assert list(blobs.digests()) == []
        with pytest.raises(NotFound, match="no project is called"):
            export_project(here, "nowhere", tmp_path / "nothing")
        with pytest.raises(BadInput, match="not a whole export"):
            import_project(there, tmp_path / "nothing")
        weak = msgspec.structs.replace(here, owner_url=here.db_url)
        with pytest.raises(BadInput, match="cannot reach everybody"):
            export_project(weak, str(shop.project.number), tmp_path / "weak")
