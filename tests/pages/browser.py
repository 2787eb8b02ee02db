"""A real browser and a real server for it: what a person would see, and what a browser would
complain of."""

from __future__ import annotations

import functools
import hashlib
import os
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any

import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.conftest import missing_part
from tests.locks import locked
from whyfor.config import Settings
from whyfor.live.hub import Hub
from whyfor.live.serve_lock import Running
from whyfor.server.app import create_app
from whyfor.service.ingest import watch_agents
from whyfor.service.serve import AccessKeys

PACKAGE = Path(__file__).with_name("package.json")
CACHE = Path(__file__).parents[2] / ".cache" / "axe"
BROWSERS = CACHE.with_name("browsers")
WIDE = {"width": 1280, "height": 900}
NARROW = {"width": 400, "height": 900}
_STARTED = 20.0
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def chromium() -> str | None:
    """Debian's, or what else is called so here; else what tests/setup put in the cache."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    cached = (
        BROWSERS.glob(f"chromium_headless_shell-*/*/{name}")
        for name in ("headless_shell", "chrome-headless-shell")
    )
    return next(filter(None, map(shutil.which, names)), None) or next(
        map(str, chain(*cached)), None
    )


@contextmanager
def launched() -> Iterator[Browser]:
    """Start a browser and end it; skip or fail where there is none."""
    found = chromium()
    missing = "chromium" if found is None else "npm" if shutil.which("npm") is None else None
    if missing:
        missing_part(f"PAGES NOT TESTED IN A BROWSER: {missing} is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found)
        yield browser
        browser.close()


class Site:
    """A server over a home, in a thread; `hub` is its own, so that a test may say what sessions
    do."""

    def __init__(self, settings: Settings, *, watching: bool = False, port: int = 0) -> None:
        self.settings = settings
        self.keys = AccessKeys(settings)
        self.hub = Hub(settings)
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(("127.0.0.1", port))
        self.port = int(self._listener.getsockname()[1])
        app = create_app(settings, port=self.port, keys=self.keys, hub=self.hub)
        self._server = uvicorn.Server(
            uvicorn.Config(app, log_config=None, ws="none", timeout_graceful_shutdown=2)
        )
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._listener]}
        )
        self._stop = threading.Event()
        self._watch = (
            threading.Thread(target=watch_agents, args=(settings, self.hub, self._stop))
            if watching
            else None
        )
        self._pages: list[Page] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Site:
        self._thread.start()
        deadline = time.monotonic() + _STARTED
        while not self._server.started:
            assert time.monotonic() < deadline and self._thread.is_alive(), (
                "the server did not start"
            )
            time.sleep(0.01)
        if self._watch:
            self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        """Its pages go first: one that is left open would ask a server that is gone."""
        for page in self._pages:
            if not page.is_closed():
                assert page.evaluate("window.fired ?? []") == [], "a transcript's script ran"
                page.goto("about:blank")
        self.stop()

    def stop(self) -> None:
        self._stop.set()
        if self._watch and self._watch.is_alive():
            self._watch.join(_STARTED)
        if self._thread.is_alive():
            loop = self.hub._loop
            assert loop is not None
            with suppress(RuntimeError):  # it is ending already
                loop.call_soon_threadsafe(self.hub.close)
            self._server.should_exit = True
            self._thread.join(_STARTED)
        self._listener.close()

    def open(self, page: Page, path: str = "/") -> None:
        """As a person comes: by a one-time link, which leaves a cookie; then to a page."""
        if page not in self._pages:
            self._pages.append(page)
        known = [
            cookie
            for cookie in page.context.cookies(self.url)
            if cookie.get("name") == f"whyfor-{self.port}"
        ]
        if not known:
            page.goto(self.keys.link(Running(os.getpid(), self.port)))
        if path != "/" or known:
            page.goto(self.url + path)


class Complaints(list[str]):
    """What went wrong in a page; a test that expects something takes it away."""

    def of(self, page: Page) -> None:
        page.on(
            "console",
            lambda said: (
                self.append(f"console: {said.text}") if said.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: self.append(f"script: {error}"))
        page.on("dialog", self._fired)
        page.on("request", self._asked)

    def _fired(self, dialog: Any) -> None:
        self.append(f"a dialog opened: {dialog.message}")
        dialog.dismiss()

    def _asked(self, request: Any) -> None:
        if not request.url.startswith(("http://127.0.0.1:", "blob:")):
            self.append(f"a request left this machine: {request.url}")


@contextmanager
def tab(context: BrowserContext) -> Iterator[tuple[Page, Complaints]]:
    """A page in which nothing may go wrong."""
    complaints = Complaints()
    page = context.new_page()
    complaints.of(page)
    try:
        yield page, complaints
        assert page.evaluate("window.fired ?? []") == [], "a transcript's script ran"
        assert not complaints, complaints
    finally:
        page.close()


@functools.cache
def axe_script(cache: Path = CACHE) -> Path:
    """axe-core from npm, installed once per checkout."""
    target = cache / hashlib.sha256(PACKAGE.read_bytes()).hexdigest()[:16]
    cache.mkdir(parents=True, exist_ok=True)
    with locked(target.with_suffix(".lock")):
        if not target.exists():
            partial = target.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            shutil.copy(PACKAGE, partial)
            quiet = [
                "--ignore-scripts",
                "--cache=npm-cache",
                "--no-package-lock",
                "--no-audit",
                "--no-fund",
            ]
            subprocess.run(["npm", "install", *quiet], cwd=partial, check=True, capture_output=True)
            shutil.rmtree(partial / "npm-cache", ignore_errors=True)
            partial.rename(target)
    return target / "node_modules" / "axe-core" / "axe.min.js"


def judge(page: Page) -> list[str]:
    """What axe-core finds wrong, one line each."""
    if not page.evaluate("'axe' in window"):
        # not a script tag: the page's policy would refuse it, as it should
        page.evaluate(axe_script().read_text())
    found = page.evaluate("(tags) => axe.run({runOnly: tags})", _RULES)
    return [
        f"{rule['id']}: {node['target']} {node['html'][:200]} {node.get('failureSummary', '')}"
        for rule in found["violations"]
        for node in rule["nodes"]
    ]


def no_sideways(page: Page) -> None:
    """The page itself never scrolls sideways."""
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1], f"the page is {wide[0]} wide in a window of {wide[1]}"


def hide(page: Page, hidden: bool) -> None:
    """As when a person goes to another tab, and comes back."""
    page.evaluate(
        "hidden => { Object.defineProperty(document, 'hidden', {configurable: true, get: () => "
        "hidden});"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        hidden,
    )


def unheard(site: Site, page: Page) -> None:
    """Wait until nobody listens to the server."""
    deadline = time.monotonic() + _STARTED
    while site.hub.listeners:
        assert time.monotonic() < deadline, "somebody still listens"
        page.wait_for_timeout(20)
