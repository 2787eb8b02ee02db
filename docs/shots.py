"""Pictures of every page, of invented work: `make shots`. The clock stands still, so only what
changed is different."""

from __future__ import annotations

import datetime as calendar
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import BrowserContext, expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Callable

    from whyfor.config import Settings
    from whyfor.live.serve_lock import Running

NOW = calendar.datetime(2026, 3, 5, 14, 32, 20, tzinfo=calendar.UTC)
IMAGES = Path(__file__).with_name("images")
CACHE = Path(__file__).parents[1] / ".cache" / "browsers"
LOOKS = (("light", 1280), ("dark", 1280), ("light", 400))
TALLEST = {1280: 1320, 400: 860}  # what is below is not in the picture
PATIENCE = 60_000  # ms, on a busy machine
SESSION = "/sessions/claude/5b1d0c3e-7f0a-4c7e-9d53-2a6f8e1b4c90"
UNFOLDED = ("Thought", "Write")
SESSIONS = f"/sessions?at=claude:{SESSION.rpartition('/')[2]}"
TIMELINE = "/timeline?project=example.com/harbour/tidewatch"
MAP = "/map?project=example.com/harbour/tidewatch"
FILE = "/file?project=example.com/harbour/tidewatch&path=tidewatch/http.py&line=7"


class Still(calendar.datetime):
    @classmethod
    def now(cls, tz: calendar.tzinfo | None = None) -> Still:
        return cls.fromtimestamp(NOW.timestamp(), tz)


def stop_the_clock() -> None:
    """Before anything of ours is imported: ages, dates and names of commits do not depend on
    when this runs."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    time.time = NOW.timestamp
    time.time_ns = lambda: int(NOW.timestamp()) * 10**9
    calendar.datetime = Still  # type: ignore[misc]


def main() -> None:
    stop_the_clock()
    from whyfor import config
    from whyfor.demo import build, fill
    from whyfor.service.ingest import ingest

    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="whyfor-shots-") as name:
        folder = Path(name)
        nothing = {
            "HOME": f"{name}/nobody",
            "WHYFOR_HOME": f"{name}/nothing",
            "PATH": os.environ["PATH"],
        }
        take(config.load(nothing), {"empty": "/"})
        demo = build(folder, NOW)
        fill(demo, NOW)
        settings = config.load(
            {**nothing, "HOME": str(demo.home), "WHYFOR_HOME": str(demo.whyfor_home)}
        )
        ingest(settings)
        told = subprocess.check_output(
            ["git", "-C", demo.repository, "rev-parse", "HEAD~4"], text=True
        ).strip()
        pages = {"now": "/", "sessions": SESSIONS, "timeline": TIMELINE}
        pages |= {"session": SESSION, "commit": f"/commits/{told}", "file": FILE, "map": MAP}
        take(
            settings,
            {**pages, "search": "/search?q=harbour", "memory": "/memory", "insights": "/insights"},
        )


def take(settings: Settings, pages: dict[str, str]) -> None:
    """By the real server, which is stopped when all are taken."""
    from whyfor.server.run import serve

    failed: list[BaseException] = []

    def look(running: Running) -> None:
        try:
            visit(running.address, lambda: fresh_link(settings, running), pages)
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            failed.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    serve(settings, 0, lambda running, *_: threading.Thread(target=look, args=(running,)).start())
    if failed:
        raise failed[0]


def fresh_link(settings: Settings, running: Running) -> str:
    """A one-time link of the moment at which the clock stands: its age is told by its file."""
    from whyfor.service.serve import AccessKeys

    link = AccessKeys(settings).link(running)
    for path in (settings.home / "serve.links").iterdir():
        os.utime(path, (NOW.timestamp(), NOW.timestamp()))
    return link


def visit(address: str, link: Callable[[], str], pages: dict[str, str]) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--lang=en-GB"])
        for theme, width in LOOKS:
            context = browser.new_context(
                viewport={"width": width, "height": 860},
                color_scheme=theme,  # type: ignore[arg-type]
                reduced_motion="reduce",
                timezone_id="UTC",
                locale="en-GB",
            )
            context.new_page().goto(link())
            for name, path in pages.items():
                shoot(context, address + path, IMAGES / f"{name}-{width}-{theme}.png")
            context.close()
        browser.close()


def shoot(context: BrowserContext, address: str, image: Path) -> None:
    page = context.new_page()
    page.clock.set_fixed_time(NOW)
    page.goto(address)
    expect(page.locator(".live")).to_have_attribute("data-live", "on", timeout=PATIENCE)
    if image.name.startswith("now"):
        expect(page.locator(".card")).to_have_count(8, timeout=PATIENCE)
    for words in UNFOLDED if image.name.startswith("session-") else ():
        page.locator("summary", has_text=words).first.click()
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement?.blur(); scrollTo(0, 0)")  # a click may have scrolled
    wide, tall = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    clip = {"x": 0, "y": 0, "width": wide, "height": min(tall, TALLEST[wide])}
    page.screenshot(path=image, animations="disabled", caret="hide", full_page=True, clip=clip)  # type: ignore[arg-type]
    page.close()


def chromium() -> str | None:
    """The system's, else what tests/setup put in the cache, else Playwright's own."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    cached = (
        CACHE.glob(f"chromium_headless_shell-*/*/{name}")
        for name in ("headless_shell", "chrome-headless-shell")
    )
    return next(filter(None, map(shutil.which, names)), None) or next(
        map(str, chain(*cached)), None
    )


if __name__ == "__main__":
    main()
