"""Every route × method × caller × project: what is allowed, and what is said to all others.

Routes are read from the application. One that declares nothing fails; one that somebody adds is
asked like all others. What is expected is written down here, not taken from the product.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx
import pytest
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute

from tests.cases import check_each
from tests.store.postgres.conftest import fill
from tests.store.team import Team
from tests.team.served import HTML, PUBLIC, ServedTeam, serve_team
from whyfor.server.team.decide import declared_access
from whyfor.server.team.guard import form_token
from whyfor.team.tokens import LINK_PREFIX, SESSION_PREFIX, make_token

pytestmark = pytest.mark.slow
UNKNOWN = 999_999
OF_PROJECT = {"figures", "read", "write", "manage"}
SCOPE = {"member": "read", "figures": "read", "read": "read", "write": "write"}
SCOPE |= {"manage": "admin", "manage_team": "admin", "own_team": "admin"}
ALL = ("read", "write", "admin")
ROLES = {  # what a role in the project or the organisation allows
    "viewer": {"member", "figures", "read"},
    "member": {"member", "figures", "read", "write"},
    "project admin": {"member", "figures", "read", "write", "manage"},
    "admin": {"member", "manage", "manage_team"},
    "owner": {"member", "manage", "manage_team", "own_team"},
    "outsider": {"member"},
}
MANAGERS = ("admin", "owner")


class Asked(NamedTuple):
    method: str
    path: str
    need: str
    handler: HTTPRouteHandler

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


class Caller(NamedTuple):
    name: str
    role: str  # of ROLES; empty: nobody
    scopes: tuple[str, ...]
    person: int
    token: str  # for the API
    everywhere: bool = True  # the token is not for other projects only


def routes(served: ServedTeam) -> list[Asked]:
    found = []
    for route in served.app.routes:
        if not isinstance(route, HTTPRoute):
            continue
        for handler in route.route_handlers:
            for method in sorted(handler.http_methods - {"OPTIONS", "HEAD"}):
                need = declared_access(handler) or ""
                found.append(Asked(str(method), route.path, need, handler))
    return found


class Two:
    """A server with two projects that hold words of their own, and everybody who may ask."""

    def __init__(self, served: ServedTeam) -> None:
        self.served = served
        here, there = served.project(), served.project()
        fill(here, "herringword")
        fill(there, "walrusword")
        self.here, self.there = here.number, there.number
        self.people = {
            "viewer": served.person("member", {self.here: "viewer"}),
            "member": served.person("member", {self.here: "member"}),
            "project admin": served.person("member", {self.here: "admin"}),
            "admin": served.person("admin"),
            "owner": served.person("owner"),
            "outsider": served.person("member", {self.there: "admin"}),
        }
        self.spare_owner = served.person("owner")
        self.callers = [self._caller(name, name, ALL) for name in self.people]
        for scope in ALL:
            self.callers.append(self._caller(f"only {scope}", "project admin", (scope,)))
        admin = self.people["project admin"]
        token = served.token(admin, ALL, projects=[self.there])
        self.callers.append(Caller("elsewhere", "project admin", ALL, admin, token, False))

    def _caller(self, name: str, role: str, scopes: tuple[str, ...]) -> Caller:
        person = self.people[role]
        return Caller(name, role, scopes, person, self.served.token(person, scopes))

    def nobody(self) -> dict[str, str]:
        """Tokens that are good for nothing."""
        served, admin = self.served, self.people["project admin"]
        revoked = served.token(admin, ALL)
        served.team.admin.execute(
            "UPDATE tokens SET revoked_at=1 WHERE id=(SELECT max(id) FROM tokens)"
        )
        left = served.person("member", {self.here: "admin"})
        gone = served.token(left, ALL)
        served.team.admin.execute("DELETE FROM memberships WHERE person_id=%s", (left,))
        suspended = served.person("member", {self.here: "admin"}, state="suspended")
        ended = served.token(admin, ALL, kind="web", days=-1)
        closed = served.cookie(admin)
        served.team.admin.execute(
            "UPDATE tokens SET revoked_at=1 WHERE id=(SELECT max(id) FROM tokens)"
        )
        return {
            "none": "",
            "garbage": "wft_" + "x" * 49,
            "expired": served.token(admin, ALL, days=-1),
            "revoked": revoked,
            "suspended": served.token(suspended, ALL),
            "left": gone,
            "invited": make_token(LINK_PREFIX),
            "garbage in a cookie": SESSION_PREFIX + "x" * 49,
            "a session that ended": ended,
            "a session that was closed": closed,
            "a session of somebody suspended": served.cookie(suspended),
            "a session of somebody who left": served.cookie(left),
        }

    # -- asking ------------------------------------------------------------------------------------

    def address(self, asked: Asked, project: int) -> str:
        """The path with the project, and other parameters that name nothing."""
        path = re.sub(r"\{project_id(:int)?\}", str(project), asked.path)
        path = re.sub(r"\{\w+:int\}", str(UNKNOWN), path)
        path = path.replace("{agent:str}", "claude")
        return re.sub(r"\{\w+(:\w+)?\}", "herringword", path)

    def ask(self, asked: Asked, project: int, token: str) -> httpx.Response:
        path = self.address(asked, project)
        more: dict[str, Any] = {}
        if asked.method in ("POST", "PUT", "PATCH") and path.startswith("/api/"):
            more = {"content": b"{}", "headers": {"content-type": "application/json"}}
        elif asked.method == "POST":
            own = {"origin": PUBLIC, "sec-fetch-site": "same-origin"}
            more = {"data": {"form": form_token(token)}, "headers": own}
        return self.served.ask(asked.method, path, token, **more)

    def key(self, asked: Asked, caller: Caller) -> str:
        """What a caller shows: a browser's session where only forms are taken."""
        if asked.method == "GET" or asked.path.startswith("/api/"):
            if asked.method == "GET" or caller.token == "":
                return caller.token
            projects = None if caller.everywhere else [self.there]
            return self.served.token(caller.person, caller.scopes, projects=projects)
        return self.served.cookie(caller.person)


@pytest.fixture(scope="module")
def two(postgres_18: Team, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    with serve_team(postgres_18, tmp_path_factory.mktemp("objects")) as served:
        yield Two(served)


def expected(caller: Caller, need: str, scopes: tuple[str, ...], own: bool, exists: bool) -> int:
    """200 stands for everything that a route itself may answer."""
    if need == "anyone":
        return 200
    allowed = ROLES[caller.role]
    if need in OF_PROJECT:
        manages = caller.role in MANAGERS and exists and need == "manage"
        member = own and caller.role not in MANAGERS and caller.role != "outsider"
        if not manages and not (member and caller.everywhere):
            return 404
    if SCOPE[need] not in scopes or need not in allowed:
        return 403
    if need == "manage_team" and not caller.everywhere:
        return 403
    return 200


def test_every_route_declares_who_may_call_it(two: Two) -> None:
    found = routes(two.served)
    assert len(found) > 50
    assert [asked.name for asked in found if not asked.need] == []
    wrong = [
        asked.name
        for asked in found
        if (asked.need in OF_PROJECT) != ("{project_id" in asked.path) and asked.need != "anyone"
    ]
    assert wrong == [], "routes of a project have its number in their path, others have not"
    open_to_all = {asked.path for asked in found if asked.need == "anyone"}
    assert {path.split("/")[1] for path in open_to_all} <= {
        *("healthz", "readyz", "signin", "join", "static", "api")
    }
    assert {path for path in open_to_all if path.startswith("/api/")} <= {
        *("/api/schema", "/api/schema/{path:str}", "/api/schema/openapi.json"),
        *("/api/v1/device/code", "/api/v1/device/token"),
    }


def test_every_route_as_everybody_in_every_project(two: Two) -> None:
    targets = {
        "own": two.here,
        "foreign": two.there,
        "unknown": UNKNOWN,
        "neighbour": two.there + 1,
    }

    def check(case: tuple[Asked, Caller, str]) -> None:
        asked, caller, target = case
        key = two.key(asked, caller)
        scopes = ALL if key.startswith(SESSION_PREFIX) else caller.scopes
        everywhere = caller.everywhere or key.startswith(SESSION_PREFIX)
        shown = caller._replace(everywhere=everywhere)
        want = expected(shown, asked.need, scopes, target == "own", target in ("own", "foreign"))
        if caller.role == "outsider" and target == "foreign" and asked.need in OF_PROJECT:
            want = 200  # it is theirs
        if asked.handler.opt.get("stream") and want == 200:
            return
        answer = two.ask(asked, targets[target], key)
        assert answer.status_code < 500, answer.text[:300]
        assert answer.status_code != 401
        refused = answer.status_code in (403, 404) and any(
            words in answer.text
            for words in (
                "no such project",
                "this is for ",
                "no scope",
                "viewers do not",
                "is good for some",
            )
        )
        if want == 200:
            assert not refused, (answer.status_code, answer.text[:200])
        else:
            assert refused and answer.status_code == want, (answer.status_code, answer.text[:200])

    cases = [
        (f"{asked.name} as {caller.name} in {target}", (asked, caller, target))
        for asked in routes(two.served)
        for caller in two.callers
        for target in (targets if asked.need in OF_PROJECT else ("own",))
        if not asked.path.startswith("/static")
    ]
    assert len(cases) > 800
    check_each(cases, check)


def test_nobody_gets_anything_but_what_anyone_may(two: Two) -> None:
    nobody = two.nobody()

    def check(case: tuple[Asked, str]) -> None:
        asked, token = case
        answers = [two.ask(asked, project, token) for project in (two.here, UNKNOWN)]
        seen = [(answer.status_code, answer.content) for answer in answers]
        assert seen[0] == seen[1] or asked.need not in OF_PROJECT
        form = asked.method == "POST" and not asked.path.startswith("/api/")
        cookie = token.startswith(SESSION_PREFIX)
        page = cookie and not form and not asked.path.startswith("/api/")
        assert answers[0].status_code in ((401,) if not form else (401, 403)), answers[0].text[:99]
        assert not page or "location" not in answers[0].headers
        assert "herring" not in answers[0].text

    cases = [
        (f"{asked.name} as {name}", (asked, token))
        for asked in routes(two.served)
        for name, token in nobody.items()
        if asked.need != "anyone"
    ]
    check_each(cases, check)


def test_outsiders_and_unknown_projects_get_the_same_bytes(two: Two) -> None:
    outsider = two.people["outsider"]

    def check(asked: Asked) -> None:
        caller = Caller("outsider", "outsider", ALL, outsider, two.served.token(outsider, ALL))
        answers = [
            two.ask(asked, project, two.key(asked, caller))
            for project in (two.here, UNKNOWN, 0, 1 << 40)
        ]
        seen = [
            (answer.status_code, answer.content, sorted(answer.headers.items()))
            for answer in answers
        ]
        assert seen[0][0] == 404
        assert all(each == seen[0] for each in seen)
        pages = [
            two.served.get(two.address(asked, project), two.served.cookie(outsider), headers=HTML)
            for project in (two.here, UNKNOWN)
            if asked.method == "GET"
        ]
        assert len({page.content for page in pages}) <= 1

    check_each([(a.name, a) for a in routes(two.served) if a.need in OF_PROJECT], check)
