"""Sessions: rows by day, projects beside them, filters in the address, pages, the panel, news."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.story.links.workshop import Clock, Repo
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.service.ingest import ingest

from .browser import NARROW, Complaints, Site, no_sideways
from .conftest import Home
from .hostile import HOSTILE
from .sessions import standing
from .shop import Shop, settings_of

MANY = 330


def write(home: Path, name: str, prompt: str, **more: str) -> Transcript:
    made = Transcript(name, **more)  # type: ignore[arg-type]
    made.prompt(prompt)
    made.say("Done.")
    made.save(home)
    return made


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Many sessions over two months, of two folders that are no repositories."""
    folder = tmp_path_factory.mktemp("crowd")
    settings = settings_of(folder)
    for place in ("charts", "notes"):
        (folder / "home" / place).mkdir(parents=True)
    for number in range(MANY):
        place = "notes" if number % 3 else "charts"
        write(
            folder / "home",
            f"s{number}",
            f"Look at sheet {number}",
            cwd=str(folder / "home" / place),
            day=str(date(2026, 5, 1) - timedelta(days=number // 6)),
        )
    asks = Transcript("asks", cwd=str(folder / "home" / "notes"), day="2026-05-02")
    asks.prompt("Publish the sheets")
    question = {"questions": [{"question": "To which server?", "options": [{"label": "ours"}]}]}
    asks.block({"type": "tool_use", "id": "toolu_1", "name": "AskUserQuestion", "input": question})
    asks.save(folder / "home")
    ingest(settings)
    with Site(settings) as site:
        yield site


@pytest.fixture(scope="module")
def store(shop: Shop) -> Iterator[Site]:
    with Site(shop.settings) as site:
        yield site


def rows(page: Page) -> list[str]:
    return page.locator(".ses-title").all_inner_texts()


# -- what is shown -------------------------------------------------------------------------------


def test_sessions_stand_by_day_with_what_came_of_them(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, "/sessions")
    expect(page.locator(".lede")).to_contain_text("6 sessions in 1 project")
    row = page.locator(".ses-row", has_text="Charges sometimes run twice").first
    expect(row.locator(".is")).to_have_text(re.compile("^2 commits( · tests (passed|failed))?$"))
    expect(row.locator(".cms-dot")).to_have_count(2)
    expect(row.locator(".branch-name")).to_have_text("main")
    changed = page.locator(".ses-row", has_text="webhooks")
    expect(changed.locator(".is")).to_have_text("1 file, not committed")
    days = page.locator(".ses-day").all_inner_texts()
    assert days and all(re.search(r"\d+ sessions?", day) for day in days)
    expect(page.locator(".proj").nth(1)).to_contain_text("acme/checkout")


def test_one_project_is_not_repeated_in_its_rows(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, "/sessions")
    expect(page.locator(".ses-proj").first).to_have_text("checkout")
    page.locator(".proj", has_text="acme/checkout").click()
    expect(page.locator(".ses-row")).to_have_count(6)
    expect(page.locator(".ses-proj")).to_have_count(0)
    expect(page.locator(".proj[aria-current]")).to_contain_text("acme/checkout")
    assert "project=example.com" in page.url


def test_other_orders_have_no_days(crowd: Site, page: Page) -> None:
    crowd.open(page, "/sessions")
    page.get_by_role("link", name="Longest").click()
    expect(page.locator(".seg-s [aria-current]")).to_have_text("Longest")
    expect(page.locator(".ses-day")).to_have_count(0)
    expect(page.locator(".ses-row")).to_have_count(100)
    expect(page.locator(".ses-jump")).to_have_count(0)


def test_an_open_session_says_what_it_does_and_a_question_is_shown(crowd: Site, page: Page) -> None:
    crowd.open(page, "/sessions?outcome=asked")
    expect(page.locator(".ses-row .is")).to_have_text("asked, not answered · To which server?")
    known = crowd.hub
    ident = page.locator(".ses-row").get_attribute("data-row")
    assert ident
    number = _number(crowd.settings, ident)
    try:
        known.stand([standing(ident.partition(":")[2], "running", id=number)])
        crowd.open(page, "/sessions?outcome=open")
        expect(page.locator(".ses-row .is")).to_have_text("Running")
        expect(page.locator(".ses-time")).to_have_text("now")
    finally:
        known.stand([])


def _number(settings: Settings, name: str) -> int:
    from whyfor.store.open import reading

    with reading(settings) as library:
        agent, _, ident = name.partition(":")
        return library.sessions.find(ident, agent).id


def test_worktrees_stand_under_their_project_and_a_lost_repository_says_so(
    tmp_path: Path, page: Page, axe: Callable[[Page], None]
) -> None:
    home = tmp_path / "home"
    repo = Repo.made(home / "code" / "tide", Clock(1_777_000_000))
    repo.git("remote", "add", "origin", "git@example.com:harbour/tide.git")
    repo.git("worktree", "add", "-q", "../tide-split", "-b", "split")
    other = Repo.made(home / "code" / "thesis", Clock(1_777_100_000))
    other.git("remote", "add", "origin", "git@example.com:robin/thesis.git")
    write(home, "main", "Count the tides", cwd=str(repo.path))
    write(home, "split", "Split the module", cwd=str(home / "code" / "tide-split"))
    write(home, "gone", "Draw figure four", cwd=str(other.path))
    settings = settings_of(tmp_path)
    ingest(settings)
    shutil.rmtree(other.path)
    with Site(settings) as site:
        site.open(page, "/sessions")
        project = page.locator(".projs > li", has_text="harbour/tide")
        expect(project.locator(".proj").first.locator(".proj-n")).to_have_text("2")
        expect(project.locator(".proj-tree .proj-name")).to_have_text(["main folder", "tide-split"])
        lost = page.locator(".proj", has_text="robin/thesis")
        expect(lost).to_contain_text("not on this machine")
        axe(page)
        project.locator(".proj-tree", has_text="tide-split").click()
        expect(page.locator(".ses-title")).to_have_text("Split the module")
        page.locator(".proj", has_text="robin/thesis").click()
        expect(page.locator(".ses-note")).to_contain_text("can be read, not resumed")
        expect(page.locator(".live")).to_have_text("Live")  # the scripts are there
        page.locator(".ses-row").click(position={"x": 300, "y": 6})
        expect(page.locator("#peek")).to_contain_text("not on this machine any more")
        expect(page.locator("#peek .cmd")).to_have_count(0)


# -- filters -------------------------------------------------------------------------------------


def test_filters_stand_in_the_address_and_can_be_dropped(crowd: Site, page: Page) -> None:
    crowd.open(page, "/sessions")
    page.keyboard.press("/")
    expect(page.locator("#q-ses")).to_be_focused()
    page.keyboard.type("publish")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions?q=publish")
    assert rows(page) == ["Publish the sheets"]
    page.locator("select[name=outcome]").select_option("committed")
    page.wait_for_url("**/sessions?q=publish&outcome=committed")
    expect(page.locator(".empty-title")).to_have_text("No session is all of this")
    expect(page.locator(".drops a")).to_have_text([re.compile("Without Has commits.*1 session")])
    page.locator(".drops a").click()
    expect(page.locator(".ses-title")).to_have_text("Publish the sheets")
    page.get_by_role("link", name="Clear all").click()
    page.wait_for_url("**/sessions")


def test_a_file_a_branch_and_an_agent_filter(store: Site, page: Page) -> None:
    store.open(page, "/sessions?file=charge.py")
    expect(page.locator(".ses-row")).to_have_count(1)
    store.open(page, "/sessions?branch=main&agent=claude")
    expect(page.locator(".ses-row")).to_have_count(6)
    store.open(page, "/sessions?branch=nowhere")
    expect(page.locator(".empty-title")).to_have_text("No session is all of this")
    expect(page.locator("select[name=branch]")).to_have_value("nowhere")


@pytest.mark.parametrize(
    "query", ["agent=vim", "sort=luck", "outcome=bliss", "since=soon", "after=x", "project=nope"]
)
def test_what_makes_no_sense_is_said(
    crowd: Site, page: Page, complaints: Complaints, query: str
) -> None:
    crowd.open(page, f"/sessions?{query}")
    expect(page.locator(".page-problem")).to_be_visible()
    assert all("40" in one for one in complaints)
    complaints.clear()


def test_folders_of_the_same_name_are_told_apart(tmp_path: Path, page: Page) -> None:
    settings = settings_of(tmp_path)
    for number, place in enumerate(("/code/a/shop", r"C:\code\b\shop", "/code/c/notes")):
        write(tmp_path / "home", f"s{number}", f"Look at sheet {number}", cwd=place)
    ingest(settings)
    with Site(settings) as site:
        site.open(page, "/sessions")
        shown = page.locator(".projs > li .proj-name").all_inner_texts()
        assert sorted(shown) == ["All projects", "a/shop", "b/shop", "notes"]
        in_rows = page.locator(".ses-proj").all_inner_texts()
        assert sorted(in_rows) == ["a/shop", "b/shop", "notes"]


# -- pages ---------------------------------------------------------------------------------------


def test_older_rows_come_below_up_to_three_hundred_then_as_another_page(
    crowd: Site, page: Page
) -> None:
    crowd.open(page, "/sessions")
    expect(page.locator(".ses-row")).to_have_count(100)
    expect(page.locator("[data-count]")).to_have_text(f"1–100 of {MANY + 1}")
    for shown in (200, 300):
        page.locator("[data-older]").click()
        expect(page.locator(".ses-row")).to_have_count(shown)
        expect(page.locator("[data-count]")).to_have_text(f"1–{shown} of {MANY + 1}")
    days = page.locator(".ses-day > span:first-child").all_inner_texts()
    assert len(days) == len(set(days)), "a day that was begun goes on"
    page.locator("[data-older]").click()
    page.wait_for_url("**/sessions?after=*")
    expect(page.locator("[data-count]")).to_have_text(f"301–{MANY + 1} of {MANY + 1}")
    page.get_by_role("link", name="Show newer").click()
    page.wait_for_url("**/sessions?before=*")
    expect(page.locator("[data-count]")).to_have_text(f"201–300 of {MANY + 1}")


def test_a_month_is_jumped_to(crowd: Site, page: Page) -> None:
    crowd.open(page, "/sessions")
    month = page.locator(".ses-jump a", has_text="Apr")
    count = int(month.locator("span").inner_text())
    month.click()
    expect(page.locator(".ses-day").first).to_contain_text("30 Apr")
    first = (
        MANY
        + 1
        - count
        - int(page.locator(".ses-jump a", has_text="Mar").locator("span").inner_text())
    )
    expect(page.locator("[data-count]")).to_have_text(re.compile(rf"^{first + 1}–"))


def test_a_list_that_stops_says_where_and_can_be_tried_again(
    crowd: Site, page: Page, complaints: Complaints
) -> None:
    crowd.open(page, "/sessions")
    page.route("**/sessions?after=*", lambda route: route.abort())
    page.locator("[data-older]").click()
    expect(page.locator(".ses-failed")).to_contain_text("The list stopped at")
    page.unroute("**/sessions?after=*")
    page.get_by_role("link", name="Try again").click()
    expect(page.locator(".ses-row")).to_have_count(200)
    expect(page.locator(".ses-failed")).to_have_count(0)
    complaints.clear()


def test_it_reads_fully_without_a_script(crowd: Site, plain: Page) -> None:
    crowd.open(plain, "/sessions")
    assert plain.locator(".ses-row").count() == 100
    plain.locator("#q-ses").fill("publish")
    plain.locator("button", has_text="Apply").click()
    expect(plain.locator(".ses-row .ses-title")).to_have_text(["Publish the sheets"])
    crowd.open(plain, "/sessions")
    plain.locator("[data-older]").click()
    expect(plain.locator("[data-count]")).to_have_text(f"101–200 of {MANY + 1}")
    name = plain.locator(".ses-row").first.get_attribute("data-row")
    crowd.open(plain, f"/sessions?q=sheet&at={name}")
    assert plain.locator("#peek h2").is_visible()
    plain.locator("[data-peek-close]").click()
    expect(plain).to_have_url(re.compile(r"/sessions\?q=sheet$"))


# -- the panel -----------------------------------------------------------------------------------


def test_keys_walk_the_rows_and_the_panel_follows(
    store: Site, shop: Shop, context: BrowserContext, page: Page
) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    store.open(page, "/sessions")
    expect(page.locator("#peek")).to_be_hidden()
    titles = rows(page)
    page.keyboard.press("j")
    expect(page.locator("#peek h2")).to_have_text(titles[0])
    page.keyboard.press("j")
    expect(page.locator("#peek h2")).to_have_text(titles[1])
    expect(page.locator(".ses-row[aria-current] .ses-title")).to_have_text(titles[1])
    page.keyboard.press("k")
    expect(page.locator("#peek h2")).to_have_text(titles[0])
    assert "at=claude" in page.url
    shown = page.locator("#peek .cmd-text").inner_text()
    page.keyboard.press("c")
    expect(page.locator("#peek .cmd .btn-label")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == shown
    assert re.fullmatch(r"cd ~/code/shop && claude --resume [0-9a-f-]+", copied)
    page.keyboard.press("Escape")
    expect(page.locator("#peek")).to_be_hidden()
    assert "at=" not in page.url
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/claude/*")


def test_the_panel_tells_what_was_asked_and_what_came_of_it(
    store: Site, shop: Shop, page: Page
) -> None:
    name = f"claude:{shop.sessions['keys'].session_id}"
    store.open(page, f"/sessions?at={name}")
    panel = page.locator("#peek")
    expect(panel.locator(".said-block")).to_contain_text("Charges sometimes run twice")
    expect(panel).to_contain_text("Every attempt now carries one key")
    expect(panel.locator(".mini-c .sha")).to_have_text(
        [shop.commits["changelog"][:7], shop.commits["keys"][:7]]
    )
    expect(panel.locator(".mini .file").nth(1)).to_have_text("shop/charge.py")
    expect(panel.locator(".ev").first).to_be_visible()


def test_to_1080_the_panel_is_a_sheet(store: Site, page: Page) -> None:
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    store.open(page, "/sessions")
    page.locator(".ses-row").first.click(position={"x": 200, "y": 50})
    panel = page.locator("#peek")
    expect(panel).to_be_visible()
    assert page.evaluate("getComputedStyle(document.getElementById('peek')).position") == "fixed"
    no_sideways(page)
    panel.get_by_role("link", name="Close the panel").click()
    expect(panel).to_be_hidden()


# -- what is new ---------------------------------------------------------------------------------


def test_a_new_session_comes_in_at_the_top_and_waits_once_one_has_scrolled(
    tmp_path: Path, page: Page
) -> None:
    home = tmp_path / "home"
    for number in range(60):
        write(home, f"old{number}", f"Old thing {number}")
    settings = settings_of(tmp_path)
    ingest(settings)
    with Site(settings) as site:
        site.open(page, "/sessions")
        expect(page.locator(".live")).to_have_attribute("data-live", "on")
        write(home, "new1", "A new thing", day="2026-05-02")
        ingest(settings)
        site.hub.stand([standing("x", "idle")])
        expect(page.locator(".ses-title").first).to_have_text("A new thing")
        page.locator(".ses-row").nth(50).scroll_into_view_if_needed()
        write(home, "new2", "Another new thing", day="2026-05-03")
        ingest(settings)
        site.hub.stand([])
        told = page.locator("[data-new]")
        expect(told).to_have_text("1 newer")
        assert "Another new thing" not in rows(page)
        told.locator("a").click()
        expect(page.locator(".ses-title").first).to_have_text("Another new thing")


# -- care ----------------------------------------------------------------------------------------


def test_nothing_of_a_transcript_or_an_address_acts(tmp_path: Path, page: Page) -> None:
    home = tmp_path / "home"
    for number, text in enumerate(HOSTILE):
        write(home, f"h{number}", text, branch=text[:60].replace("\x00", ""))
    settings = settings_of(tmp_path)
    ingest(settings)
    with Site(settings) as site:
        site.open(page, "/sessions")
        no_sideways(page)
        for text in HOSTILE:
            if "\x00" not in text and len(text) < 150:
                page.goto(site.url + "/sessions?" + _query(q=text, file=text, at=f"claude:{text}"))
                no_sideways(page)
        page.set_viewport_size(NARROW)  # type: ignore[arg-type]
        page.goto(site.url + "/sessions")
        no_sideways(page)
        for _ in range(3):
            page.keyboard.press("j")
        assert page.evaluate("fired") == []


def _query(**values: str) -> str:
    from urllib.parse import urlencode

    return urlencode(values)


def test_axe_finds_nothing(
    demo: Home, site: Site, crowd: Site, page: Page, axe: Callable[[Page], None]
) -> None:
    crowd.open(page, "/sessions?agent=codex&q=publish")
    axe(page)
    crowd.open(page, "/sessions")
    page.keyboard.press("j")
    expect(page.locator("#peek h2")).to_be_visible()
    axe(page)


def test_the_demo_looks_right(site: Site, page: Page, shoot: Callable[[Page, str], None]) -> None:
    site.open(page, "/sessions")
    page.keyboard.press("j")
    expect(page.locator("#peek h2")).to_be_visible()
    shoot(page, "sessions")
