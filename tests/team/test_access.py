"""Who may call what: decided once per request, and the same for outsiders and unknown projects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from litestar import get, post, put

from tests.cases import check_each
from tests.store.team import Team
from tests.team.served import HTML, PUBLIC, ServedTeam, serve_team
from whyfor.server.team.context import OfProject, SignedIn
from whyfor.team.access import FIGURES, MANAGE, MANAGE_TEAM, MEMBER, OWN_TEAM, READ, WRITE
from whyfor.team.resources import TeamResources

pytestmark = pytest.mark.slow


@get("/api/v1/test/me", opt={"access": MEMBER}, sync_to_thread=False)
def me(member: SignedIn) -> dict[str, str]:
    return {"name": member.name}


@get("/api/v1/manage", opt={"access": MANAGE_TEAM}, sync_to_thread=False)
def manage_team() -> dict[str, str]:
    return {}


@get("/api/v1/own", opt={"access": OWN_TEAM}, sync_to_thread=False)
def own_team() -> dict[str, str]:
    return {}


@get("/api/v1/projects/{project_id:int}/stories", opt={"access": READ}, sync_to_thread=True)
def stories(project: OfProject) -> dict[str, int | str | None]:
    with project.reader() as store:
        return {"sessions": len(store.sessions.by_number([1])), "role": project.role}


@get("/api/v1/projects/{project_id:int}/figures", opt={"access": FIGURES}, sync_to_thread=True)
def figures(project: OfProject) -> dict[str, str]:
    return {"visibility": project.visibility}


@put("/api/v1/projects/{project_id:int}/mark", opt={"access": WRITE}, sync_to_thread=True)
def mark(project: OfProject) -> dict[str, str]:
    with project.writer() as store, store.transaction():
        store.set_mark("test", 1)
    return {}


@get("/projects/{project_id:int}/manage", opt={"access": MANAGE}, sync_to_thread=True)
def manage(project: OfProject) -> dict[str, str]:
    return {"name": project.name}


@get("/undeclared", sync_to_thread=False)
def undeclared() -> dict[str, str]:
    return {"secret": "shown"}


@post("/change", opt={"access": MEMBER}, sync_to_thread=False)
def change() -> dict[str, str]:
    return {}


@pytest.fixture(scope="module")
def served(postgres_18: Team, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedTeam]:
    handlers = [me, manage_team, own_team, stories, figures, mark, manage, undeclared, change]
    with serve_team(postgres_18, tmp_path_factory.mktemp("objects"), handlers) as running:
        yield running


def test_a_route_that_declares_nothing_is_answered_to_nobody(served: ServedTeam) -> None:
    owner = served.person("owner")
    for token in ("", served.token(owner, ("read", "write", "admin")), served.cookie(owner)):
        answer = served.get("/undeclared", token)
        assert answer.status_code == 404
        assert "shown" not in answer.text


def test_what_a_role_and_a_scope_allow(served: ServedTeam) -> None:
    project = served.project().number
    everything = ("read", "write", "admin")
    people = {
        "viewer": served.person("member", {project: "viewer"}),
        "member": served.person("member", {project: "member"}),
        "project admin": served.person("member", {project: "admin"}),
        "admin": served.person("admin"),
        "owner": served.person("owner"),
        "outsider": served.person(),
    }
    allowed = {
        "viewer": (200, 200, 403, 403, 403, 403),
        "member": (200, 200, 200, 403, 403, 403),
        "project admin": (200, 200, 200, 200, 403, 403),
        "admin": (404, 404, 404, 200, 200, 403),
        "owner": (404, 404, 404, 200, 200, 200),
        "outsider": (404, 404, 404, 404, 403, 403),
    }
    place = f"/api/v1/projects/{project}"

    def statuses(token: str) -> tuple[int, ...]:
        asked = [
            ("GET", f"{place}/figures"),
            ("GET", f"{place}/stories"),
            ("PUT", f"{place}/mark"),
            ("GET", f"/projects/{project}/manage"),
            ("GET", "/api/v1/manage"),
            ("GET", "/api/v1/own"),
        ]
        return tuple(served.ask(method, path, token).status_code for method, path in asked)

    def check(name: str) -> None:
        assert statuses(served.token(people[name], everything)) == allowed[name]

    check_each([(name, name) for name in people], check)
    admin = people["project admin"]
    assert statuses(served.token(admin, ("read",)))[:4] == (200, 200, 403, 403)
    assert statuses(served.token(admin, ("write",)))[:4] == (403, 403, 200, 403)
    assert statuses(served.token(admin, ("admin",)))[:4] == (403, 403, 403, 200)
    elsewhere = served.project().number
    assert statuses(served.token(admin, everything, projects=[elsewhere]))[:4] == (404,) * 4
    assert statuses(served.token(admin, everything, projects=[project]))[:4] == (200,) * 4


def test_an_outsider_and_an_unknown_project_get_the_same_bytes(served: ServedTeam) -> None:
    project = served.project().number
    outsider = served.token(served.person())
    answers = [
        (answer.status_code, answer.content, sorted(answer.headers.items()))
        for number in (project, 999_999, 1 << 40, 0)
        for answer in [served.get(f"/api/v1/projects/{number}/stories", outsider)]
    ]
    assert answers[0][0] == 404
    assert all(answer == answers[0] for answer in answers)


def test_tokens_that_ended_are_good_for_nothing(served: ServedTeam) -> None:
    person = served.person()
    good = served.token(person)
    revoked = served.token(person)
    served.team.admin.execute(
        "UPDATE tokens SET revoked_at=1 WHERE id=(SELECT max(id) FROM tokens)"
    )
    suspended = served.token(served.person(state="suspended"))
    cases = {
        "garbage": "wft_" + "a" * 49,
        "no token": "bearer",
        "expired": served.token(person, days=-1),
        "revoked": revoked,
        "suspended": suspended,
        "mistyped": good[:-1] + ("a" if good[-1] != "a" else "b"),
    }

    def check(token: str) -> None:
        assert served.get("/api/v1/test/me", token).status_code == 401

    check_each(cases.items(), check)
    assert served.get("/api/v1/test/me", good).status_code == 200
    assert served.get("/api/v1/test/me").status_code == 401


def test_a_session_is_no_token_and_a_token_no_session(served: ServedTeam) -> None:
    person = served.person()
    session, token = served.cookie(person), served.token(person)
    assert served.get("/api/v1/test/me", session).status_code == 200
    as_header = {"authorization": f"Bearer {session}"}
    assert served.get("/api/v1/test/me", headers=as_header).status_code == 401
    as_cookie = {"cookie": f"__Host-whyfor={token}"}
    assert served.get("/api/v1/test/me", headers=as_cookie).status_code == 401


def test_a_person_who_is_not_signed_in_is_sent_to_the_page_for_it(served: ServedTeam) -> None:
    answer = served.get("/projects/1/manage?x=1", headers=HTML)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/signin?next=%2Fprojects%2F1%2Fmanage%3Fx%3D1"


def test_changes_by_a_browser_come_from_its_own_forms(served: ServedTeam) -> None:
    session = served.cookie(served.person())
    own = {"origin": PUBLIC, "sec-fetch-site": "same-origin"}
    cases = {
        "no origin": {},
        "another site": {"origin": "https://evil.example"},
        "another site's frame": {**own, "sec-fetch-site": "cross-site"},
        "no form token": own,
    }

    def check(headers: dict[str, str]) -> None:
        answer = served.ask("POST", "/change", session, headers=headers, data={"form": "x"})
        assert answer.status_code == 403

    check_each(cases.items(), check)
    answer = served.ask("POST", "/change", session, headers=own, json={"form": "x"})
    assert answer.status_code == 415


def test_the_guard_refuses_other_names_and_other_sites(served: ServedTeam) -> None:
    session = served.cookie(served.person())
    assert served.get("/healthz", headers={"host": "evil.example"}).status_code == 421
    embedded = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    assert served.get("/api/v1/test/me", session, headers=embedded).status_code == 403
    link = {
        "sec-fetch-site": "cross-site",
        "sec-fetch-mode": "navigate",
        "sec-fetch-dest": "document",
    }
    assert served.get("/api/v1/test/me", session, headers=link).status_code == 200
    assert served.ask("OPTIONS", "/api/v1/test/me").status_code == 405
    assert served.ask("TRACE", "/api/v1/test/me").status_code == 405


def test_a_store_is_lent_and_nothing_of_the_person_stays_on_its_connection(
    served: ServedTeam,
) -> None:
    resources: TeamResources = served.app.resources
    project = served.project()
    member = resources.member(served.token(project.person))
    assert member is not None
    with resources.database.store(member, project.number, writing=True) as store:
        with store.transaction():
            store.set_mark("mine", 7)
        driver = store.db.driver
    with resources.database.store(member, project.number) as store:
        assert store.mark("mine") == 7
    assert driver.execute("SELECT current_setting('whyfor.person', true)").fetchone() in (
        ("",),
        (None,),
    )
    driver.rollback()
