"""How people and devices enter: links, passkeys, codes, and an organisation's own provider."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, urlsplit

import httpx
import msgspec
import pytest

from tests.cases import check_each
from tests.store.team import Team
from tests.team.browser import Browser
from tests.team.passkey import SoftPasskey
from tests.team.served import HTML, PUBLIC, ServedTeam, serve_team
from whyfor.model.errors import BadInput, WhyforError
from whyfor.team import entry
from whyfor.team.actor import TeamActor
from whyfor.team.entry import Entering
from whyfor.team.people import invite_person
from whyfor.team.settings import OidcSettings
from whyfor.team.tokens import PREFIX, is_token

pytestmark = pytest.mark.slow
GRANT = "urn:ietf:params:oauth:grant-type:device_code"


def actor(served: ServedTeam, person: int) -> TeamActor:
    member = served.app.resources.member(served.cookie(person), cookie=True)
    assert member is not None
    return TeamActor(served.app.resources, member, "192.0.2.1")


def invited(served: ServedTeam, email: str, projects: tuple[int, ...] = ()) -> str:
    owner = actor(served, served.person("owner"))
    return invite_person(owner, email, "member", list(projects), "viewer").removeprefix(PUBLIC)


def join(browser: Browser, link: str, key: SoftPasskey, name: str = "Mika") -> httpx.Response:
    browser.get(link)
    options = browser.post(f"{link}/options", name=name).json()
    return browser.post(f"{link}/accept", name=name, credential=key.create(options))


def sign_in(browser: Browser, key: SoftPasskey, then: str = "/") -> httpx.Response:
    browser.get("/signin")
    options = browser.post("/signin/options").json()
    return browser.post("/signin/passkey", credential=key.get(options), next=then)


def test_an_invited_person_joins_with_a_passkey_and_signs_in_again(served: ServedTeam) -> None:
    project = served.project().number
    link = invited(served, "mika@example.com", (project,))
    browser, key = Browser(served), SoftPasskey()
    shown = browser.get(link).text
    assert "mika@example.com" in shown
    assert "read stories" in shown
    assert join(browser, link, key).headers["location"] == "/"
    assert "Mika" in browser.get("/projects").text
    assert served.get(f"/projects/{project}/settings", "").status_code == 401
    assert "cannot be used" in Browser(served).get(link).text

    again = Browser(served)
    assert sign_in(again, key, "/account").headers["location"] == "/account"
    assert "mika@example.com" in again.get("/account").text
    again.get("/account")
    again.post("/signout")
    assert again.get("/account").headers["location"].startswith("/signin")


def test_a_passkey_is_refused_elsewhere_twice_and_by_another_key(served: ServedTeam) -> None:
    browser, key = Browser(served), SoftPasskey()
    join(browser, invited(served, "anna@example.com"), key)
    other = Browser(served)
    other.get("/signin")
    options = other.post("/signin/options").json()
    good = key.get(options)
    foreign = SoftPasskey("https://team.example.evil")
    foreign.key, foreign.id, foreign.count = key.key, key.id, 5
    stranger = SoftPasskey()
    stranger.id = key.id
    cases = {
        "another origin": foreign.get(options),
        "another key": stranger.get(options),
        "an unknown passkey": SoftPasskey().get(options),
        "no answer": "{}",
        "garbage": "[1]",
    }

    def check(credential: str) -> None:
        answer = other.post("/signin/passkey", credential=credential)
        assert "error=" in answer.headers["location"]

    check_each(cases.items(), check)
    assert other.post("/signin/passkey", credential=good).headers["location"] == "/"
    other.get("/signin")
    replayed = other.post("/signin/passkey", credential=good)
    assert "error=" in replayed.headers["location"]


def test_of_two_who_use_one_invitation_at_once_one_wins(served: ServedTeam) -> None:
    code = invited(served, "tove@example.com").rpartition("/")[2]
    team = served.app.resources
    keys = [SoftPasskey(), SoftPasskey()]
    answers = [
        key.create(msgspec.json.decode(entry.join_options(team, code, "Tove", ""))) for key in keys
    ]
    won: list[str] = []
    lost: list[WhyforError] = []

    def use(answer: str) -> None:
        try:
            won.append(entry.join(team, code, "Tove", "", answer, Entering("192.0.2.1", "x")))
        except WhyforError as error:
            lost.append(error)

    threads = [threading.Thread(target=use, args=(answer,)) for answer in answers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 1)
    assert isinstance(lost[0], BadInput)
    people = served.team.admin.execute("SELECT 1 FROM people WHERE email='tove@example.com'")
    assert len(people.fetchall()) == 1


def test_links_that_ended_were_withdrawn_or_are_made_up_look_the_same(served: ServedTeam) -> None:
    ended = invited(served, "late@example.com")
    served.team.admin.execute("UPDATE invites SET expires_at=1 WHERE email='late@example.com'")
    withdrawn = invited(served, "not@example.com")
    served.team.admin.execute("UPDATE invites SET withdrawn_at=1 WHERE email='not@example.com'")
    pages = {Browser(served).get(link).status_code for link in (ended, withdrawn, "/join/wfl_x")}
    assert pages == {200}
    for link in (ended, withdrawn, "/join/wfl_x"):
        assert "cannot be used" in Browser(served).get(link).text


# -- devices ---------------------------------------------------------------------------------------


def ask_for_codes(served: ServedTeam, **more: str) -> dict[str, str]:
    answer = served.ask("POST", "/api/v1/device/code", data={"name": "robin-laptop", **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, str] = answer.json()
    return found


def poll(served: ServedTeam, codes: dict[str, str]) -> httpx.Response:
    served.team.admin.execute("UPDATE device_codes SET polled_at=NULL")
    data = {"grant_type": GRANT, "device_code": codes["device_code"]}
    return served.ask("POST", "/api/v1/device/token", data=data)


def signed_in(served: ServedTeam, person: int) -> Browser:
    browser = Browser(served)
    browser.cookies["__Host-whyfor"] = served.cookie(person)
    return browser


def test_a_device_is_let_in_by_its_person(served: ServedTeam) -> None:
    person = served.person()
    codes = ask_for_codes(served)
    assert re.fullmatch(r"[B-DF-HJ-NP-TV-Z]{4}-[B-DF-HJ-NP-TV-Z]{4}", codes["user_code"])
    assert codes["verification_uri_complete"].startswith(f"{PUBLIC}/device?code=")
    assert poll(served, codes).json() == {"error": "authorization_pending"}
    browser = signed_in(served, person)
    typed = codes["user_code"].lower().replace("-", " ")
    shown = browser.get(f"/device?code={typed}").text
    assert codes["user_code"] in shown
    assert "robin-laptop" in shown
    assert (
        "is let in" in browser.post("/device/answer", code=codes["user_code"], answer="allow").text
    )
    got = poll(served, codes).json()
    assert is_token(got["access_token"], PREFIX)
    me = served.get("/api/v1/me", got["access_token"]).json()
    assert (me["kind"], me["scopes"]) == ("device", ["read", "write"])
    assert poll(served, codes).json() == {"error": "expired_token"}
    assert served.ask("DELETE", "/api/v1/me/token", got["access_token"]).status_code == 204
    assert served.get("/api/v1/me", got["access_token"]).status_code == 401


def test_a_device_that_is_refused_or_asks_too_often_is_told(served: ServedTeam) -> None:
    codes = ask_for_codes(served)
    data = {"grant_type": GRANT, "device_code": codes["device_code"]}
    answers = [
        served.ask("POST", "/api/v1/device/token", data=data).json()["error"] for _ in range(2)
    ]
    assert answers == ["authorization_pending", "slow_down"]
    browser = signed_in(served, served.person())
    browser.get(f"/device?code={codes['user_code']}")
    browser.post("/device/answer", code=codes["user_code"], answer="deny")
    assert poll(served, codes).json() == {"error": "access_denied"}
    late = ask_for_codes(served)
    served.team.admin.execute("UPDATE device_codes SET expires_at=1")
    assert poll(served, late).json() == {"error": "expired_token"}
    wide = {"name": "x", "scope": "read admin"}
    assert served.ask("POST", "/api/v1/device/code", data=wide).status_code == 400


def test_five_wrong_codes_lock_the_page_and_old_sign_ins_do_not_count(served: ServedTeam) -> None:
    codes = ask_for_codes(served)
    browser = signed_in(served, served.person())
    for _ in range(5):
        assert "no device waits" in browser.get("/device?code=BBBB-BBBB").text.lower()
    locked = browser.get(f"/device?code={codes['user_code']}")
    assert locked.status_code == 429
    assert int(locked.headers["retry-after"]) > 0
    old = served.person()
    stale = served.token(old, ("read", "write", "admin"), kind="web", days=6)
    answer = served.get("/device", stale, headers=HTML)
    assert answer.headers["location"].startswith("/signin?next=%2Fdevice")


# -- an organisation's own provider ----------------------------------------------------------------


_PROVIDER = """
from oidc_provider_mock import run_server_in_thread
import sys
with run_server_in_thread() as server:
    print(server.server_port, flush=True)
    sys.stdin.read()
"""


@contextmanager
def running_provider() -> Iterator[str]:
    """A real OpenID provider, in a process of its own; it ends when its input does."""
    command = [sys.executable, "-W", "ignore", "-c", _PROVIDER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://localhost:{int(process.stdout.readline())}"
        process.communicate()


@pytest.fixture(scope="module")
def with_oidc(
    postgres_18: Team, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[ServedTeam, str]]:
    with running_provider() as issuer:
        oidc = OidcSettings(issuer, "whyfor", "secret", ("harbour.example",))
        with serve_team(postgres_18, tmp_path_factory.mktemp("objects"), oidc=oidc) as served:
            yield served, issuer


def known_there(issuer: str, subject: str, **claims: object) -> None:
    httpx.put(f"{issuer}/users/{subject}", json=claims).raise_for_status()


def through_provider(browser: Browser, issuer: str, subject: str, **fields: str) -> httpx.Response:
    """Sign in at the provider as a subject, and come back."""
    if not browser.page:
        browser.get("/signin")
    where = browser.post("/signin/oidc", **fields).headers["location"]
    assert where.startswith(issuer)
    asked = parse_qs(urlsplit(where).query)
    assert asked["code_challenge_method"] == ["S256"]
    answer = httpx.post(where, data={"sub": subject})
    back = answer.headers["location"]
    return browser.get(back.removeprefix(PUBLIC))


def test_a_person_of_an_allowed_domain_joins_and_is_known_by_subject(
    with_oidc: tuple[ServedTeam, str],
) -> None:
    served, issuer = with_oidc
    mail = "newcomer@harbour.example"
    known_there(issuer, "u1", email=mail, email_verified=True, name="Robin")
    browser = Browser(served)
    assert (
        through_provider(browser, issuer, "u1", next="/account").headers["location"] == "/account"
    )
    assert mail in browser.get("/account").text
    known_there(issuer, "u1", email="new@elsewhere.example", email_verified=True, name="Robin")
    again = Browser(served)
    assert through_provider(again, issuer, "u1").headers["location"] == "/"
    assert mail in again.get("/account").text, "an address changes nothing about who it is"


def test_strangers_unverified_and_taken_addresses_are_refused(
    with_oidc: tuple[ServedTeam, str],
) -> None:
    served, issuer = with_oidc
    taken = served.person(email="taken@harbour.example")
    cases = {
        "another domain": {"email": "x@evil.example", "email_verified": True},
        "not verified": {"email": "y@harbour.example", "email_verified": False},
        "a domain that ends like ours": {"email": "z@evilharbour.example", "email_verified": True},
        "somebody else's address": {"email": "taken@harbour.example", "email_verified": True},
    }
    before = served.team.admin.execute("SELECT count(*) FROM identities").fetchone()

    def check(case: tuple[str, dict[str, object]]) -> None:
        name, claims = case
        known_there(issuer, name.replace(" ", "-").replace("'", ""), **claims)
        answer = through_provider(Browser(served), issuer, name.replace(" ", "-").replace("'", ""))
        assert "error=" in answer.headers["location"]
        assert "__Host-whyfor=" not in str(answer.headers.get_list("set-cookie"))

    check_each([(name, (name, claims)) for name, claims in cases.items()], check)
    assert served.team.admin.execute("SELECT count(*) FROM identities").fetchone() == before
    assert taken


def test_an_invitation_is_for_its_address_and_a_sign_in_for_its_browser(
    with_oidc: tuple[ServedTeam, str],
) -> None:
    served, issuer = with_oidc
    link = invited(served, "guest@pier.example")
    code = link.rpartition("/")[2]
    known_there(issuer, "other", email="other@pier.example", email_verified=True)
    browser = Browser(served)
    browser.get(link)
    refused = through_provider(browser, issuer, "other", code=code)
    assert "another+address" in refused.headers["location"]
    known_there(issuer, "guest", email="Guest@pier.example", email_verified=True, name="Guest")
    guest = Browser(served)
    guest.get(link)
    assert through_provider(guest, issuer, "guest", code=code).headers["location"] == "/"
    thief = Browser(served)
    assert "error=" in thief.get("/signin/callback?code=x&state=y").headers["location"]
    thief.get("/signin")
    thief.post("/signin/oidc")
    assert "error=" in thief.get("/signin/callback?code=x&state=y").headers["location"]
