"""Accounts: what people may see and change of each other, by the database alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

import pytest

from tests.cases import check_each
from tests.store.postgres.conftest import fill
from tests.store.team import Team
from tests.team.served import ServedTeam, serve_team
from whyfor.model.accounts import NewInvite, NewToken
from whyfor.model.errors import BadInput, Forbidden, NotFound, TooMany, WhyforError
from whyfor.store.postgres.accounts import AccountTransaction
from whyfor.store.postgres.connection import StoreScope
from whyfor.store.postgres.schema import ACCOUNTS, CONTENT, EXCHANGED, SHARED
from whyfor.team.limits import RateLimiter
from whyfor.team.projects import delete_due_projects

pytestmark = pytest.mark.slow


class Office:
    """A project with an admin and two members, and another project with somebody else."""

    def __init__(self, served: ServedTeam) -> None:
        self.served = served
        self.project = served.project().number
        self.other = served.project().number
        self.admin = served.person("member", {self.project: "admin"})
        self.mika = served.person("member", {self.project: "member"})
        self.jonas = served.person("member", {self.project: "viewer"})
        self.stranger = served.person("member", {self.other: "admin"})
        self.manager = served.person("admin")
        self.owner = served.person("owner")

    def by(self, person: int) -> Callable[[Callable[[AccountTransaction], object]], object]:
        """Do something as a person, with nothing but the database to refuse it."""

        def run(action: Callable[[AccountTransaction], object]) -> object:
            member = self.served.app.resources.member(self.served.token(person))
            assert member is not None
            with self.served.app.resources.database.accounts.by(member) as accounts:
                return action(accounts)

        return run


@pytest.fixture(scope="module")
def office(served: ServedTeam) -> Office:
    return Office(served)


def test_people_know_those_of_their_own_projects(office: Office) -> None:
    known = office.by(office.mika)(lambda accounts: set(accounts.names()))
    assert isinstance(known, set)
    assert {office.admin, office.mika, office.jonas} <= known
    assert office.stranger not in known
    assert office.owner not in known
    everybody = office.by(office.manager)(lambda accounts: set(accounts.names()))
    assert isinstance(everybody, set)
    assert {office.stranger, office.owner, office.mika} <= everybody


def test_without_saying_who_asks_there_are_no_accounts(postgres_18: Team) -> None:
    readable = []
    for table in ACCOUNTS:
        with closing(postgres_18.open(StoreScope(None))) as store:
            try:
                found = store.db.run(f"SELECT count(*) FROM {table}").fetchone()
            except WhyforError:
                continue
            readable.append(table)
            assert found == (0,), table
    assert set(readable) >= {"people", "memberships", "team_projects", "project_members", "audit"}


def test_what_is_not_theirs_to_change_is_refused(office: Office) -> None:
    now = int(time.time() * 1000)
    project, other = office.project, office.other
    organisation = office.served.team.organisation
    invite = NewInvite(b"x" * 32, organisation, "member", now + 1000, email="a@b.example")
    owner_invite = NewInvite(b"y" * 32, organisation, "owner", now + 1000, email="c@b.example")
    far = NewToken(b"z" * 32, "personal", "far", "", ("read",), now + 400 * 86_400_000)
    cases: dict[str, tuple[int, Callable[[AccountTransaction], object]]] = {
        "a member makes an admin": (office.mika, lambda a: a.set_role(office.mika, "admin")),
        "a member suspends": (office.mika, lambda a: a.set_state(office.jonas, "suspended")),
        "a member invites": (office.mika, lambda a: a.add_invite(invite, now)),
        "a member makes a project": (
            office.mika,
            lambda a: a.create_project(organisation, "mine", now),
        ),
        "a member raises their own role": (
            office.mika,
            lambda a: a.set_project_role(project, office.mika, "admin"),
        ),
        "a project admin touches another project": (
            office.admin,
            lambda a: a.set_project_role(other, office.stranger, "viewer"),
        ),
        "a project admin removes from another project": (
            office.admin,
            lambda a: a.remove_member(other, office.stranger),
        ),
        "an admin makes an owner": (office.manager, lambda a: a.set_role(office.mika, "owner")),
        "an admin invites an owner": (
            office.manager,
            lambda a: a.add_invite(owner_invite, now),
        ),
        "an admin suspends an owner": (
            office.manager,
            lambda a: a.set_state(office.owner, "suspended"),
        ),
        "an admin raises themselves": (
            office.manager,
            lambda a: a.set_role(office.manager, "owner"),
        ),
        "an admin adds themselves to a project": (
            office.manager,
            lambda a: a.add_member(project, _mail(office, office.manager), "viewer", now),
        ),
        "an owner adds themselves to a project": (
            office.owner,
            lambda a: a.add_member(project, _mail(office, office.owner), "admin", now),
        ),
        "a token of more than a year": (office.mika, lambda a: a.add_token(far, now)),
        "another's token is revoked": (
            office.mika,
            lambda a: a.revoke(_token(office, office.jonas), now),
        ),
    }

    def check(case: tuple[int, Callable[[AccountTransaction], object]]) -> None:
        person, action = case
        with pytest.raises((Forbidden, NotFound, BadInput)):
            office.by(person)(action)

    check_each(cases.items(), check)


def _mail(office: Office, person: int) -> str:
    admin = office.served.team.admin
    [(email,)] = admin.execute("SELECT email FROM people WHERE id=%s", (person,)).fetchall()
    return str(email)


def _token(office: Office, person: int) -> int:
    office.served.token(person)
    [(number,)] = office.served.team.admin.execute("SELECT max(id) FROM tokens").fetchall()
    return int(number)


def test_what_is_theirs_to_change_is_changed(office: Office) -> None:
    now = int(time.time() * 1000)
    office.by(office.admin)(
        lambda a: a.add_member(office.project, _mail(office, office.stranger), "viewer", now)
    )
    office.by(office.stranger)(lambda a: a.remove_member(office.project, office.stranger))
    office.by(office.manager)(lambda a: a.set_state(office.jonas, "suspended"))
    office.by(office.manager)(lambda a: a.set_state(office.jonas, "active"))
    office.by(office.manager)(lambda a: a.revoke(_token(office, office.jonas), now))


def test_a_project_is_deleted_when_its_days_are_over_and_no_other_is(served: ServedTeam) -> None:
    gone, stays = served.project(), served.project()
    fill(gone, "otterword")
    fill(stays, "sealword")
    team = served.app.resources
    digests = [team.blobs(each.number).put(b"words") for each in (gone, stays)]
    now = int(time.time() * 1000)
    for project, at in ((gone, now - 1), (stays, now + 86_400_000)):
        served.team.admin.execute(
            "UPDATE team_projects SET delete_at=%s WHERE id=%s", (at, project.number)
        )
    with team.database.accounts.by(None) as accounts:
        assert not accounts.purge_project(stays.number)
    assert delete_due_projects(team) == [gone.number]
    assert delete_due_projects(team) == []
    tables = [name for (name,) in served.team.admin.execute("SELECT * FROM project_tables()")]
    assert set(tables) >= {*CONTENT, *SHARED, *EXCHANGED}
    left = {table: _rows(served, table, gone.number) for table in (*tables, "project_members")}
    assert {table for table, count in left.items() if count} == set()
    assert _rows(served, "events", stays.number)
    assert [team.blobs(each.number).has(digests[0]) for each in (gone, stays)] == [False, True]
    guarded = served.team.admin.execute(
        "SELECT tablename FROM pg_policies WHERE policyname='purger' AND schemaname='whyfor'"
    )
    assert {name for (name,) in guarded} == set(tables), "a new table is to be purged, too"


def _rows(served: ServedTeam, table: str, project: int) -> int:
    sql = f"SELECT count(*) FROM {table} WHERE team_project=%s"
    [(count,)] = served.team.admin.execute(sql, (project,)).fetchall()
    return int(count)


def test_a_team_keeps_an_owner(postgres_18: Team) -> None:
    admin = postgres_18.admin
    organisation = postgres_18.insert("organisations(name, created_at)", "small", 0)
    person = postgres_18.insert("people(email, name, created_at)", "last@small.example", "Last", 0)
    admin.execute("INSERT INTO memberships VALUES(%s, %s, 'owner')", (organisation, person))
    for change in (
        "UPDATE memberships SET role='member' WHERE person_id=%s",
        "UPDATE people SET state='suspended' WHERE id=%s",
    ):
        with pytest.raises(Exception, match="keeps an owner"):
            admin.execute(change, (person,))


def test_what_one_process_revokes_another_refuses_at_once(
    served: ServedTeam, postgres_18: Team, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """By NOTIFY: the other process had it in its cache, which would keep it for ten seconds."""
    with serve_team(postgres_18, tmp_path_factory.mktemp("objects")) as other:
        person = served.person()
        token = served.token(person)
        assert [each.get("/api/v1/me", token).status_code for each in (served, other)] == [200] * 2
        assert served.ask("DELETE", "/api/v1/me/token", token).status_code == 204
        deadline = time.monotonic() + 8
        while other.get("/api/v1/me", token).status_code == 200:
            assert time.monotonic() < deadline
        assert served.get("/api/v1/me", token).status_code == 401


def test_who_read_a_story_and_who_was_refused_is_written_down_once(served: ServedTeam) -> None:
    project = served.project()
    fill(project, "pikeword")
    reader, outsider = served.person("member", {project.number: "viewer"}), served.person()
    path = f"/projects/{project.number}/sessions/claude/pikeword"
    asking = [(served.cookie(reader), 200), (served.token(outsider), 404)]
    for key, status in asking * 2:
        assert served.get(path, key).status_code == status
    rows = served.team.admin.execute(
        "SELECT person_id, did, object, team_project FROM audit WHERE person_id=ANY(%s) ORDER BY id",
        ([reader, outsider],),
    ).fetchall()
    route = "/projects/{project_id}/sessions/{agent}/{session_id}"
    assert rows == [
        (reader, "looked", "claude:pikeword", project.number),
        (outsider, "refused", f"{route}, project {project.number}", None),
    ]


def test_limits_are_shared_and_say_when_to_try_again(served: ServedTeam) -> None:
    database = served.app.resources.database
    one, two = RateLimiter(database, 50, 3), RateLimiter(database, 50, 3)
    now = 1_800_000_000_000
    for limiter in (one, two, one):
        limiter.enter("192.0.2.77", now)
    with pytest.raises(TooMany) as error:
        two.enter("192.0.2.77", now)
    assert 0 < error.value.retry_after <= 61
    two.enter("192.0.2.78", now)
    one.enter("192.0.2.77", now + 60_000)
    asked = 0
    with pytest.raises(TooMany):
        for limiter in [one, two] * 60:
            limiter.request("token 1", now)
            asked += 1
    assert 50 <= asked <= 90, "each process may be 20 behind"
