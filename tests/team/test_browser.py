"""The team's own pages in a real browser: a passkey, no script, narrow and dark, by keyboard."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.pages.browser import Complaints, judge, launched, no_sideways
from tests.store.postgres.conftest import fill
from tests.store.team import Team
from tests.team.served import ServedTeam, listening
from tests.team.test_entry import actor
from whyfor.team.people import create_token, invite_person

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as running:
        yield running


@pytest.fixture(scope="module")
def office(postgres_18: Team, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedTeam]:
    with listening(postgres_18, tmp_path_factory.mktemp("objects")) as served:
        yield served


def opened(browser: Browser, served: ServedTeam, person: int, **more: object) -> BrowserContext:
    context = browser.new_context(**more)  # type: ignore[arg-type]
    context.add_cookies(
        [
            {
                "name": "__Host-whyfor",
                "value": served.cookie(person),
                "url": served.settings.public_url.replace("http:", "https:"),
                "secure": True,
            }
        ]
    )
    return context


def faults(complaints: Complaints, served: ServedTeam) -> list[str]:
    """What went wrong in a page. The server is called localhost here, because passkeys need a
    name."""
    own = f"a request left this machine: {served.settings.public_url}/"
    streams = any(route.path.endswith("/stream") for route in served.app.routes)
    missing = "" if streams else "status of 404"
    return [
        each
        for each in complaints
        if not each.startswith(own) and not (missing and missing in each)
    ]


def follow(page: Page, control: Locator) -> None:
    """Click a control that leads to another page, and wait until that page is there."""
    with page.expect_navigation():
        control.click()


def with_passkey(page: Page) -> None:
    """Give the browser an authenticator that says yes."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True}
    options |= {"hasUserVerification": True, "isUserVerified": True}
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def test_a_person_joins_and_signs_in_with_a_passkey(browser: Browser, office: ServedTeam) -> None:
    owner = actor(office, office.person("owner"))
    link = invite_person(owner, "mika@harbour.example", "member", [], "member")
    context = browser.new_context()
    page = context.new_page()
    complaints = Complaints()
    complaints.of(page)
    with_passkey(page)
    page.goto(link)
    page.get_by_label("Your name").fill("Mika")
    page.get_by_role("button", name="Join with a passkey").click()
    page.wait_for_url("**/projects")
    page.get_by_title("Signed in as Mika").click()
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/signin")
    page.get_by_role("button", name="Sign in with a passkey").click()
    page.wait_for_url("**/projects")
    assert faults(complaints, office) == []
    context.close()


def test_every_page_fits_narrow_and_dark_and_has_no_fault(
    browser: Browser, office: ServedTeam, tmp_path: Path
) -> None:
    team = office.team
    project = office.project()
    fill(project, "Mend the retry")
    number = project.number
    team.admin.execute("UPDATE team_projects SET name='harbour/tidewatch' WHERE id=%s", (number,))
    robin = office.person("owner", {number: "admin"}, name="Robin", email="robin@pier.example")
    office.person("admin", {number: "member"}, name="Aino", email="aino@harbour.example")
    office.person("member", {number: "viewer"}, name="Ünal İlknur " + "x" * 50, state="suspended")
    office.token(robin, kind="device")
    doing = actor(office, robin)
    invite_person(doing, "tove@harbour.example", "member", [number], "member")
    create_token(doing, "ci", "Pull request notes", ["read"], [number], 90)
    pages = {
        "signin": "/signin",
        "projects": "/projects",
        "people": "/people",
        "account": "/account",
        "settings": f"/projects/{number}/settings",
        "danger": f"/projects/{number}/settings?ask=delete",
        "audit": "/audit",
        "device": "/device",
    }
    shots = Path(os.environ.get("WHYFOR_SHOTS", tmp_path))
    found: list[str] = []
    for theme in ("light", "dark"):
        for width in (1280, 400):
            look = {"color_scheme": theme, "viewport": {"width": width, "height": 900}}
            context = opened(browser, office, robin, **look)
            page = context.new_page()
            complaints = Complaints()
            complaints.of(page)
            for name, path in pages.items():
                page.goto(office.settings.public_url + path)
                no_sideways(page)
                page.screenshot(path=shots / f"{name}-{width}-{theme}.png", full_page=True)
                if width == 1280 or theme == "light":
                    found += [f"{name} {width} {theme}: {each}" for each in judge(page)]
            found += faults(complaints, office)
            context.close()
    assert found == []


def test_settings_are_changed_without_a_script(browser: Browser, office: ServedTeam) -> None:
    project = office.project()
    robin = office.person("owner", {project.number: "admin"})
    mika = office.person(email=f"mika-{robin}@harbour.example")
    context = opened(browser, office, robin, java_script_enabled=False)
    page = context.new_page()
    place = f"{office.settings.public_url}/projects/{project.number}/settings"
    page.goto(place)
    page.get_by_label("E-mail address of somebody").fill(f"mika-{robin}@harbour.example")
    follow(page, page.get_by_role("button", name="Add a member"))
    assert page.url.startswith(place)
    page.get_by_label("Members see figures").check()
    follow(page, page.locator("#see").get_by_role("button", name="Change"))
    follow(page, page.get_by_role("link", name="Delete the project"))
    page.get_by_label("Type").fill("another name")
    follow(page, page.get_by_role("button", name="Delete the project"))
    expect(page.locator("body")).to_contain_text("not the project's name")
    page.goto(f"{place}?ask=delete")
    [(name,)] = office.team.admin.execute(
        "SELECT name FROM team_projects WHERE id=%s", (project.number,)
    ).fetchall()
    page.get_by_label("Type").fill(name)
    follow(page, page.get_by_role("button", name="Delete the project"))
    expect(page.locator("body")).to_contain_text("will be deleted")
    follow(page, page.get_by_role("button", name="Keep it"))
    rows = office.team.admin.execute(
        "SELECT visibility, taking, delete_at FROM team_projects WHERE id=%s", (project.number,)
    ).fetchall()
    assert rows == [("metrics", True, None)]
    roles = office.team.admin.execute(
        "SELECT role FROM project_members WHERE person_id=%s", (mika,)
    ).fetchall()
    assert roles == [("member",)]
    context.close()
