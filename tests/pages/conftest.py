"""Fixtures for tests of the pages: the demo's home behind a real server, in a real browser."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from whyfor import config
from whyfor.config import Settings
from whyfor.demo import build
from whyfor.service.ingest import ingest

from .browser import NARROW, WIDE, Complaints, Site, judge, launched, no_sideways, tab
from .shop import Shop
from .shop import build as build_shop

# Whatever a transcript's script would do to be noticed, it does it through one of these.
_TRAP = (
    "window.fired = []; for (const name of ['alert', 'confirm', 'prompt']) window[name] = (x) => "
    "fired.push(String(x));"
)
_PATIENCE = 30_000  # milliseconds: a browser on a busy machine is slow, not wrong

expect.set_options(timeout=_PATIENCE)


class Home(msgspec.Struct, frozen=True):
    settings: Settings
    home: Path
    repository: Path


# Once for all tests of this folder that a worker runs. Not for the whole session: Playwright's
# event loop runs as long as the browser, and other tests start their own.
@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The demo's sessions, ingested and linked; tests only read it."""
    folder = tmp_path_factory.mktemp("demo")
    made = build(folder)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(made.home),
        "WHYFOR_HOME": str(made.whyfor_home),
        "XDG_CONFIG_HOME": str(made.home / ".config"),
        "XDG_DATA_HOME": str(made.home / ".local" / "share"),
    }
    settings = config.load(env)
    ingest(settings)
    return Home(settings, made.home, made.repository)


@pytest.fixture(scope="module")
def site(demo: Home) -> Iterator[Site]:
    """A server over the demo; nothing watches, so that only the test changes anything."""
    with Site(demo.settings) as site:
        yield site


@pytest.fixture(scope="package")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A repository with stories; tests only read it."""
    return build_shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    context = browser.new_context(viewport=WIDE, color_scheme="light")  # type: ignore[arg-type]
    context.set_default_timeout(_PATIENCE)
    context.add_init_script(_TRAP)
    yield context
    context.close()


@pytest.fixture
def opened(context: BrowserContext) -> Iterator[tuple[Page, Complaints]]:
    with tab(context) as found:
        yield found


@pytest.fixture
def page(opened: tuple[Page, Complaints]) -> Page:
    """A page at 1280; any console error, script error, dialog or request to elsewhere fails the
    test."""
    return opened[0]


@pytest.fixture
def complaints(opened: tuple[Page, Complaints]) -> Complaints:
    """What the browser has complained of so far; a test that expects a complaint clears it."""
    return opened[1]


@pytest.fixture
def plain(browser: Browser) -> Iterator[Page]:
    """A page in a browser that runs no script."""
    context = browser.new_context(viewport=WIDE, java_script_enabled=False)  # type: ignore[arg-type]
    page = context.new_page()
    yield page
    context.close()


@pytest.fixture
def axe() -> Callable[[Page], None]:
    """In both themes and at 400 px nothing is wrong that axe-core knows of, and nothing scrolls
    sideways."""

    def check(page: Page) -> None:
        for theme, size in (("light", WIDE), ("dark", WIDE), ("light", NARROW)):
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            page.set_viewport_size(size)  # type: ignore[arg-type]
            assert judge(page) == []
            no_sideways(page)
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]

    return check


@pytest.fixture
def shoot() -> Callable[[Page, str], None]:
    """Pictures to look at, if SHOTS names a folder for them."""

    def take(page: Page, name: str) -> None:
        if not (folder := os.environ.get("SHOTS")):
            return
        for theme, size in (("light", WIDE), ("dark", WIDE), ("light", NARROW)):
            page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
            page.set_viewport_size(size)  # type: ignore[arg-type]
            page.screenshot(path=f"{folder}/{name}-{size['width']}-{theme}.png", full_page=True)
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]

    return take
