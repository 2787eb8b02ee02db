"""Map: sessions, commits and files of a branch, and the lines that go from one to the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.story.links.workshop import Agent, Clock, Repo, body
from whyfor.model.branch_map import BY_HAND, COMMITS, FILES, SOURCES
from whyfor.model.errors import NotFound
from whyfor.service.ingest import ingest
from whyfor.service.map_page import MapQuery, map_page

from .browser import NARROW, Site, no_sideways
from .conftest import Home
from .hostile import EVERYTHING
from .shop import Shop, settings_of
from .test_file import file_project

PROJECT = "example.com/acme/checkout"


@pytest.fixture(scope="module")
def store(shop: Shop) -> Iterator[Site]:
    with Site(shop.settings) as site:
        yield site


def test_bands_are_the_lines_of_the_commits(shop: Shop) -> None:
    found = map_page(shop.settings, MapQuery(PROJECT))
    assert (found.branch, found.against, found.state) == ("main", "", "")
    lines = {band.path: band.lines for band in found.bands if band.source == BY_HAND}
    assert lines == {"shop/charge.py": 3}
    keys = f"claude:{shop.sessions['keys'].session_id}"
    own = {(band.path, band.lines) for band in found.bands if band.source == keys}
    assert own == {("shop/charge.py", 3), ("shop/keys.py", 10), ("CHANGELOG.md", 3)}
    big = next(source for source in found.sources if source.lines == 3003)
    assert found.selected == big.name  # the one with the most lines
    idle = [source.name for source in found.sources if not source.lines]
    assert idle == [f"claude:{shop.sessions['open'].session_id}"]
    chosen = map_page(shop.settings, MapQuery(PROJECT, session=keys))
    assert [(one.lines, one.rest) for one in chosen.trail] == [(13, {"person": 3}), (3, {})]
    assert chosen.trail[0].asked.startswith("Good. One idempotency key")
    side = map_page(shop.settings, MapQuery(PROJECT, "refund-flow", "main"))
    assert side.state == "no-commits"
    for wrong in (
        MapQuery("git:none"),
        MapQuery(PROJECT, "nowhere"),
        MapQuery(PROJECT, "main", "-x"),
    ):
        with pytest.raises(NotFound):
            map_page(shop.settings, wrong)


def test_a_session_is_followed_by_click_key_and_without_script(
    store: Site,
    shop: Shop,
    page: Page,
    plain: Page,
    axe: Callable[[Page], None],
    shoot: Callable[[Page, str], None],
) -> None:
    store.open(page, f"/map?project={quote(PROJECT)}")
    expect(page.locator("h1")).to_have_text("Map")
    expect(page.locator(".nav-more summary .more-wide")).to_have_text("Map")
    page.locator(".node-s", has_text="Charges sometimes run twice").click()
    expect(page.locator("#h-trail")).to_contain_text("Charges sometimes run twice")
    expect(page.locator(".trail li.because")).to_have_count(2)
    expect(page.locator(".band.is-on")).to_have_count(6)
    page.keyboard.press("j")
    expect(page.locator("#h-trail")).not_to_contain_text("Charges sometimes run twice")
    page.keyboard.press("k")
    expect(page.locator("#h-trail")).to_contain_text("Charges sometimes run twice")
    axe(page)
    shoot(page, "map")
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    expect(page.locator(".map-gut").first).to_be_hidden()
    expect(page.locator(".trail .mini .file").first).to_be_visible()
    page.locator(".trail .mini .file").first.click()
    expect(page.locator("h1")).to_have_text("keys.py")
    store.open(plain, f"/map?project={quote(PROJECT)}")
    plain.locator(".node-s", has_text="Charges sometimes run twice").click()
    expect(plain.locator("#h-trail")).to_contain_text("Charges sometimes run twice")
    page.goto(f"{store.url}/timeline?project={quote(PROJECT)}")
    page.keyboard.press("g")
    page.keyboard.press("p")
    expect(page.locator("h1")).to_have_text("Map")


def test_a_large_branch_is_drawn_in_part_and_hostile_names_stay_names(
    tmp_path: Path, page: Page
) -> None:
    home = tmp_path / "home"
    repo = Repo.made(home / "code", Clock())
    project = f"git:{repo.head}"
    repo.git("checkout", "-q", "-b", "topic<i>")
    agents = []
    for number in range(14):
        agent = Agent(f"s{number}", repo)
        agent.prompt(f"{EVERYTHING} {number}")
        for part in range(4):
            agent.write(f"<b>{number}/file{part}.py", body(f"a{number}x{part}", 3))
        repo.commit(f"Commit {number} {EVERYTHING[:60]}")
        agents.append(agent)
    for number in range(8):
        repo.commit(f"By hand {number}", {f"hand{number}.md": "by hand\n"})
    for agent in agents:
        agent.save(home)
    settings = settings_of(tmp_path)
    ingest(settings)
    found = map_page(settings, MapQuery(project))
    assert (found.branch, found.against) == ("topic<i>", "main")
    assert len(found.commits) == COMMITS and found.older == 2
    assert len(found.sources) <= SOURCES and len(found.files) <= FILES
    assert found.more_files == 12 * 4 - FILES
    with Site(settings) as site:
        site.open(page, f"/map?project={quote(project)}")
        expect(page.locator(".map-foot")).to_contain_text("2 older commits left out")
        no_sideways(page)
        page.set_viewport_size(NARROW)  # type: ignore[arg-type]
        no_sideways(page)


def test_the_demo_has_a_map(
    demo: Home, site: Site, page: Page, shoot: Callable[[Page, str], None]
) -> None:
    site.open(page, f"/map?project={quote(file_project(demo))}")
    expect(page.locator(".node-s").first).to_be_visible()
    shoot(page, "map-demo")
