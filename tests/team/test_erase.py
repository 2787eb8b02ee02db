"""A member who is erased leaves a number, and nothing else unless the stories are to stay."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.store.postgres.conftest import fill
from tests.store.team import Team
from tests.team.test_backup import rows, settings_for
from whyfor.model.errors import BadInput, NotFound
from whyfor.store.objects import ObjectBlobs, open_objects
from whyfor.team.erase import erase_member

pytestmark = pytest.mark.slow


def email_of(team: Team, person: int) -> str:
    [(email,)] = team.admin.execute("SELECT email FROM people WHERE id=%s", (person,))
    return str(email)


def test_an_erased_member_is_gone_from_every_table(postgres_18: Team, tmp_path: Path) -> None:
    settings = settings_for(postgres_18, tmp_path)
    project = postgres_18.new_project()
    other = project.add("member")
    fill(project, "petrel")
    fill(project, "gannet", other)
    blobs = ObjectBlobs(open_objects(settings.blobs_url), project.number)
    shared, own = blobs.put(b"shared\n"), blobs.put(b"own\n")
    admin = postgres_18.admin
    for word, digest in (("petrel", own), ("gannet", shared)):
        admin.execute("UPDATE segments SET digest=%s WHERE digest=%s", (digest, word))
    gone = erase_member(settings, email_of(postgres_18, project.person).upper(), keep=False)
    assert (gone.person, gone.sessions, gone.objects) == (
        project.person,
        1,
        [(project.number, own)],
    )
    left = str(rows(settings.owner_url))
    assert "petrel" not in left
    assert "gannet" in left
    assert (blobs.has(shared), blobs.has(own)) == (True, False)
    [(name, state)] = admin.execute(
        "SELECT name, state FROM people WHERE id=%s", (project.person,)
    ).fetchall()
    assert (name, state) == (f"former member {project.person}", "erased")
    with pytest.raises(NotFound):
        erase_member(settings, f"person-{project.person}@nowhere.example", keep=False)


def test_stories_may_stay_without_the_name(postgres_18: Team, tmp_path: Path) -> None:
    settings = settings_for(postgres_18, tmp_path)
    project = postgres_18.new_project()
    fill(project, "dunlin")
    gone = erase_member(settings, email_of(postgres_18, project.person), keep=True)
    assert gone.objects == []
    stories = postgres_18.admin.execute(
        "SELECT author, email FROM checkpoints WHERE person=%s", (project.person,)
    ).fetchall()
    assert stories == [(f"former member {project.person}", "")]
    members = postgres_18.admin.execute(
        "SELECT 1 FROM project_members WHERE person_id=%s", (project.person,)
    ).fetchall()
    assert members == []


def test_the_last_owner_stays_and_a_role_below_the_policies_is_refused(
    postgres_18: Team, tmp_path: Path
) -> None:
    settings = settings_for(postgres_18, tmp_path)
    admin = postgres_18.admin
    owner = postgres_18.new_person("owner")
    others = admin.execute(
        "UPDATE memberships SET role='member' WHERE role='owner' AND person_id<>%s"
        " AND organisation_id=%s RETURNING person_id",
        (owner, postgres_18.organisation),
    ).fetchall()
    with pytest.raises(BadInput, match="no owner would be left"):
        erase_member(settings, email_of(postgres_18, owner), keep=False)
    for (person,) in others:
        admin.execute("UPDATE memberships SET role='owner' WHERE person_id=%s", (person,))
    weak = msgspec.structs.replace(settings, owner_url=settings.db_url)
    with pytest.raises(BadInput, match="cannot reach everybody"):
        erase_member(weak, "x@example.com", keep=False)
