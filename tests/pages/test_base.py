"""What every page has: the frame, the keys, the themes, the words when something is wrong."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from whyfor import config
from whyfor.server.render import (
    ago,
    hinted,
    render_age,
    render_duration,
    render_exact,
    render_inline,
)

from .browser import NARROW, Complaints, Site, hide, no_sideways, unheard
from .hostile import HOSTILE
from .sessions import asking

PAGES = ["/", "/sessions", "/timeline", "/search", "/insights"]
STATIC = Path(config.__file__).parent / "web" / "static"


@pytest.mark.parametrize("path", PAGES)
def test_a_page_opens_live_and_without_a_complaint(site: Site, page: Page, path: str) -> None:
    site.open(page, path)
    expect(page.locator("h1")).to_have_count(1)
    expect(page.locator(".live")).to_have_attribute("data-live", "on")
    expect(page.locator(".nav-link[aria-current=page]")).to_have_attribute("href", path)


def test_every_page_counts_approvals_live(site: Site, page: Page) -> None:
    site.open(page, "/search")
    expect(page.locator(".live")).to_have_attribute("data-live", "on")
    expect(page.locator("[data-approvals]")).to_be_hidden()
    site.hub.stand([asking("one", "ls"), asking("two", "ls")])
    expect(page.locator("[data-approvals]")).to_have_text("2 need approval")
    site.hub.stand([])
    expect(page.locator("[data-approvals]")).to_be_hidden()


# -- keys ----------------------------------------------------------------------------------------


def test_keys_lead_to_the_pages(site: Site, page: Page) -> None:
    site.open(page, "/")
    for letter, path in (("s", "/sessions"), ("t", "/timeline"), ("i", "/insights"), ("n", "/")):
        page.keyboard.press("g")
        page.keyboard.press(letter)
        page.wait_for_url(re.compile(re.escape(site.url + path) + r"(\?.*)?$"))


def test_slash_goes_to_the_search_and_escape_leaves_it(site: Site, page: Page) -> None:
    site.open(page, "/")
    page.keyboard.press("/")
    field = page.locator("#q-top")
    expect(field).to_be_focused()
    page.keyboard.type("g n j ?")  # a text field takes keys as letters
    expect(field).to_have_value("g n j ?")
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    page.keyboard.press("Escape")
    expect(field).not_to_be_focused()
    page.keyboard.press("/")
    page.keyboard.type("harbour")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search?q=harbour")


def test_at_400_slash_opens_the_search_page(site: Site, page: Page) -> None:
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    site.open(page, "/")
    page.keyboard.press("/")
    page.wait_for_url("**/search")


def test_the_key_sheet_opens_closes_and_turns_keys_off(
    site: Site, page: Page, axe: Callable[[Page], None]
) -> None:
    site.open(page, "/")
    sheet = page.locator("#sheet")
    page.keyboard.press("?")
    expect(sheet).to_be_visible()
    axe(page)
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Single keys work").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("/")
    expect(page.locator("#q-top")).not_to_be_focused()
    page.reload()
    page.keyboard.press("?")
    expect(sheet).to_be_hidden()
    page.get_by_role("button", name="Keyboard shortcuts").click()
    page.get_by_label("Single keys work").check()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("?")
    expect(sheet).to_be_visible()


def test_a_modifier_leaves_a_key_to_the_browser(site: Site, page: Page) -> None:
    site.open(page, "/")
    for key in ("Control+/", "Alt+/", "Meta+/"):
        page.keyboard.press(key)
    expect(page.locator("#q-top")).not_to_be_focused()


def test_the_first_tab_skips_to_the_content(site: Site, page: Page) -> None:
    site.open(page, "/")
    page.keyboard.press("Tab")
    skip = page.locator(".skip")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()


# -- navigation --------------------------------------------------------------------------------------


def test_what_has_no_room_in_the_bar_is_under_more(
    site: Site, page: Page, axe: Callable[[Page], None]
) -> None:
    site.open(page, "/timeline")
    expect(page.locator(".nav-more > summary .more-wide")).to_have_text("More")
    expect(page.locator(".nav-link[aria-current=page]")).to_have_text("Timeline")
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    expect(page.locator(".nav-more > summary .more-narrow")).to_have_text("Timeline")
    page.locator(".nav-more > summary").click()
    menu = page.locator(".nav-more .menu")
    listed = menu.get_by_role("link").all_text_contents()
    assert listed[:3] == ["Timeline", "Memory", "Insights"] and "Map" in listed
    page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    page.locator(".nav-more > summary").click()
    axe(page)
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    page.mouse.click(200, 800)
    expect(menu).to_be_hidden()
    page.locator(".nav-more > summary").click()
    menu.get_by_role("link", name="Insights").click()
    page.wait_for_url(site.url + "/insights")


def test_more_opens_without_a_script(site: Site, plain: Page) -> None:
    plain.set_viewport_size(NARROW)  # type: ignore[arg-type]
    site.open(plain, "/")
    plain.locator(".nav-more > summary").click()
    plain.locator(".menu-link", has_text="Insights").click()
    plain.wait_for_url(site.url + "/insights")


# -- themes --------------------------------------------------------------------------------------


def test_the_system_decides_the_theme_until_a_person_does(site: Site, page: Page) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    site.open(page, "/")
    light = page.evaluate(ground)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(ground)
    assert (light, dark) == ("rgb(247, 248, 250)", "rgb(14, 17, 21)")
    page.get_by_role("button", name="Change theme").click()
    assert page.evaluate(ground) == light
    page.goto(site.url + "/search")
    assert page.evaluate(ground) == light, "it is remembered"


def test_a_command_is_copied(site: Site, context: BrowserContext, page: Page) -> None:
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    site.open(page, "/")
    page.evaluate(
        """() => { const b = document.createElement("button"); b.dataset.copy = "claude --resume 1"; b.id = "b";
        b.innerHTML = '<span class="btn-label">Copy</span>'; document.querySelector("main").append(b); }"""
    )
    page.click("#b")
    expect(page.locator("#b")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == "claude --resume 1"
    expect(page.locator("#b")).to_have_text("Copy")


# -- when something is wrong ---------------------------------------------------------------------


def test_a_page_that_is_not_there(
    site: Site,
    page: Page,
    complaints: Complaints,
    axe: Callable[[Page], None],
    shoot: Callable[[Page, str], None],
) -> None:
    site.open(page, "/sessions/claude/nowhere")
    assert page.locator("h1").inner_text() == "Nothing is here"
    assert page.locator(".empty .quiet code").inner_text() == "not_found"
    axe(page)
    shoot(page, "error")
    page.locator("main").get_by_role("link", name="Now", exact=True).click()
    page.wait_for_url(site.url + "/")
    assert all("404" in one for one in complaints)
    complaints.clear()


@pytest.mark.parametrize("path", ["/sessions", "/timeline", "/search?q=x", "/insights"])
def test_before_anything_was_captured_every_page_says_what_to_do(
    tmp_path_factory: pytest.TempPathFactory, page: Page, complaints: Complaints, path: str
) -> None:
    folder = tmp_path_factory.mktemp("bare")
    env = {"HOME": str(folder / "home"), "WHYFOR_HOME": str(folder / "kept"), "PATH": ""}
    with Site(config.load(env)) as bare:
        bare.open(page, path)
        expect(page.locator("main")).to_contain_text("Nothing captured yet")
        expect(page.locator("main .cmd-text")).to_have_text("whyfor init")
    complaints[:] = [one for one in complaints if "404" not in one]


def test_what_an_address_holds_is_data(site: Site, page: Page, complaints: Complaints) -> None:
    for text in HOSTILE:
        if "\x00" not in text and len(text) < 2000:
            site.open(page, f"/sessions/claude/{quote(text, safe='')}")
            site.open(page, f"/?project={quote(text, safe='')}&agent={quote(text, safe='')}")
            no_sideways(page)
    assert page.evaluate("fired") == []
    complaints[:] = [one for one in complaints if "status of 40" not in one]


def test_a_link_that_was_used_says_how_to_get_another(
    site: Site, page: Page, complaints: Complaints, axe: Callable[[Page], None]
) -> None:
    page.goto(site.url + "/open?once=used")
    assert page.locator("h1").inner_text() == "This page needs a link"
    assert "This link was used already, or is too old." in page.locator("main").inner_text()
    assert "whyfor serve" in page.locator("main").inner_text()
    assert (
        page.evaluate("getComputedStyle(document.querySelector('main')).textAlign") == "center"
    ), "it has its style"
    axe(page)
    complaints[:] = [one for one in complaints if "401" not in one and "favicon" not in one]


def test_a_key_that_is_no_longer_good_is_said(
    site: Site, page: Page, complaints: Complaints
) -> None:
    site.open(page, "/")
    expect(page.locator(".live")).to_have_attribute("data-live", "on")
    page.context.clear_cookies()
    hide(page, True)
    unheard(site, page)
    hide(page, False)
    expect(page.locator("#not-live")).to_contain_text("needs a new key. Get one with: whyfor serve")
    page.goto("about:blank")  # where it asks no more
    complaints[:] = [one for one in complaints if "401" not in one]


# -- the same words on both sides ----------------------------------------------------------------


def test_script_and_server_tell_time_in_the_same_words(site: Site, page: Page) -> None:
    site.open(page, "/")
    now = time.time()
    moments = [
        int((now - seconds) * 1000)
        for seconds in (0.5, 1.5, 5, 59, 61, 3599, 3601, 40_000, 90_000, 400_000)
    ]
    told = page.evaluate(
        """async ([moments, now]) => { const w = await import("/static/words.js");
        return moments.map(m => [w.age(m, now), w.ago(m, now), w.duration(now - m)]); }""",
        [moments, now * 1000],
    )
    zone = page.evaluate("new Date().getTimezoneOffset()")
    assert zone == -time.localtime().tm_gmtoff / 60
    expected = [[render_age(m, now), None, render_duration(int(now * 1000) - m)] for m in moments]
    assert [[one[0], None, one[2]] for one in told] == expected
    assert told[0][1] == "now" and told[3][1] == "59 s ago" == f"{render_age(moments[3], now)} ago"
    assert ago(int(time.time() * 1000)) == "now"


def test_nothing_stays_unseen_in_what_a_person_must_judge() -> None:
    assert str(render_exact("a\x1b[8m<b>\u202e\u200d\r\n\tc")) == (
        'a<span class="unseen" title="a control character">U+001B</span>[8m&lt;b&gt;'
        '<span class="unseen" title="right-to-left override">U+202E</span>'
        '<span class="unseen" title="zero width joiner">U+200D</span>\n\tc'
    )


def test_a_command_in_advice_is_code_and_advice_is_data() -> None:
    assert (
        str(hinted("List them: whyfor sessions --all"))
        == "List them: <code>whyfor sessions --all</code>"
    )
    assert str(hinted("<b>: git branch (or whyfor demo)")) == (
        "&lt;b&gt;: <code>git branch</code> (or <code>whyfor demo</code>)"
    )


def test_a_line_of_markdown_keeps_its_code_and_nothing_else() -> None:
    assert str(render_inline("**Done**: `a<b>` and `c")) == "Done: <code>a&lt;b&gt;</code> and `c"
    assert str(render_inline("`x` `y`")) == "<code>x</code> <code>y</code>"


# -- what is shipped -----------------------------------------------------------------------------


def test_no_page_needs_anything_from_elsewhere() -> None:
    for path in STATIC.rglob("*"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"""(?:url\(|src=|href=|import |from )["'(]?(?:https?:)?//""", text), (
            path.name
        )
        assert "sourceMappingURL" not in text, path.name


def test_every_icon_that_is_used_is_in_the_sprite() -> None:
    templates = STATIC.parent / "templates"
    sprites = "".join(path.read_text() for path in templates.rglob("*sprite.html"))
    known = set(re.findall(r'<symbol id="([^"]+)"', sprites))
    used: dict[str, str] = {}
    for path in templates.rglob("*.html"):
        for name in re.findall(r"""["#']((?:i|s)-[a-z_]+)["']""", path.read_text()):
            used[name] = path.name
    assert not {name: where for name, where in used.items() if name not in known}


def test_scripts_of_others_cannot_be_asked_for_a_key(site: Site, page: Page) -> None:
    site.open(page, "/")
    assert page.evaluate("document.cookie") == ""
    stored = json.loads(page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})"))
    assert site.keys.token not in json.dumps(stored) + page.content()
