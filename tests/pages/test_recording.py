"""A recorded terminal on its session's page: it plays, and nothing in it acts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.agents.readers.test_terminal import ID, cast, write
from whyfor import config
from whyfor.service.ingest import ingest

from .browser import Site

SHOWN = (
    [
        0.1,
        "o",
        "\x1b]0;title\x07plain \x1b[31mcrimson\x1b[0m \x1b[1;48;2;10;70;30mgreen\x1b[0m\r\n",
    ],
    [0.1, "o", "wrong\rright \x1b[Kleft<script>alert(1)</script>\r\n"],
    [0.1, "o", "\x1b[?1049h\x1b[2J\x1b[3;5Hinside"],
    [0.1, "o", "\x1b[?1049l漢字 after\r\n"],
    [9.0, "r", "40x12"],
    [0.1, "o", "".join(f"line {n}\r\n" for n in range(30))],
    [0.1, "x", "0"],
)


@pytest.fixture
def recorded() -> Iterator[Site]:
    settings = config.load()
    write(settings, cast(*SHOWN))
    ingest(settings)
    with Site(settings) as site:
        yield site


def test_a_recording_plays_on_the_page(
    recorded: Site, page: Page, axe: Callable[[Page], None], shoot: Callable[[Page, str], None]
) -> None:
    recorded.open(page, f"/sessions/terminal/{ID}")
    screen = page.locator("[data-screen]")
    expect(screen).to_be_empty()
    page.get_by_label("Speed").select_option("16")
    page.get_by_role("button", name="Play").click()
    expect(page.locator("[data-time]")).to_contain_text("0:03 / 0:03")
    expect(screen).to_contain_text("line 29")
    expect(screen.locator("div")).to_have_count(12)  # as large as it was made
    seek = page.get_by_label("Moment")
    seek.evaluate("e => { e.value = 0.25; e.dispatchEvent(new Event('input')) }")
    expect(screen.locator("div")).to_have_count(10)
    expect(screen.locator("div").first).to_have_text("plain crimson green", use_inner_text=False)
    expect(screen.locator(".tf-1")).to_have_text("crimson")
    expect(screen.locator("div").nth(1)).to_contain_text("right left<script>alert(1)</script>")
    seek.evaluate("e => { e.value = 0.35; e.dispatchEvent(new Event('input')) }")
    expect(screen.locator("div").nth(2)).to_contain_text("    inside")
    seek.evaluate("e => { e.value = 0.45; e.dispatchEvent(new Event('input')) }")
    expect(screen).to_contain_text("漢字 after")
    expect(screen).to_contain_text("crimson")
    assert page.evaluate("window.fired") == []
    shoot(page, "recording")
    axe(page)
