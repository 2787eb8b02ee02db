"""The guard as a real browser meets it: a link lets it in, another site gets nothing out of it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from tests.conftest import missing_part
from tests.pages.browser import chromium
from tests.server.wire import Served

STEAL = """<script>
window.got = [];
fetch("URL/api/v1/sessions", {credentials: "include"}).then((a) => got.push("read")).catch(() => got.push("no"));
const stream = new EventSource("URL/api/v1/stream", {withCredentials: true});
stream.onopen = () => got.push("stream");
stream.onerror = () => got.push("no");
</script><script src="URL/static/app.js" onload="got.push('script')" onerror="got.push('no')"></script>
<link rel="stylesheet" href="URL/static/tokens.css" onload="got.push('style')" onerror="got.push('no')">
<iframe src="URL/"></iframe>"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    found = chromium()
    if found is None:
        reason = "THE GUARD IS NOT TESTED IN A BROWSER: chromium is not installed"
        missing_part(reason)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found)
        yield started
        started.close()


@contextmanager
def another_site(page: str) -> Iterator[str]:
    """A server on another port of this machine, which a browser sends our cookie to."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as other:
        thread = threading.Thread(target=other.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{other.server_port}/"
        finally:
            other.shutdown()
            thread.join()


def test_a_link_opens_the_page_and_leaves_no_code_behind(server: Served, browser: Browser) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(server.url + server.link())
        assert page.url == f"{server.url}/"
        assert page.title().startswith("Now")
        assert page.evaluate("document.cookie") == ""
        assert page.evaluate("document.referrer") == ""
        assert page.evaluate("fetch('/api/v1/sessions').then((answer) => answer.status)") == 200
        cookies = context.cookies()
        assert len(cookies) == 2, "the key, and when one last looked"
        for cookie in cookies:
            assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")


def test_a_link_in_another_page_opens_it_too(
    server: Served, browser: Browser, tmp_path: Path
) -> None:
    with (
        another_site(f'<a href="{server.url}{server.link()}">open</a>') as site,
        browser.new_context() as context,
    ):
        page = context.new_page()
        page.goto(site)
        page.click("a")
        page.wait_for_url(f"{server.url}/")
        assert page.title().startswith("Now")


def test_another_site_gets_nothing_from_a_browser_that_may_look(
    server: Served, browser: Browser
) -> None:
    with another_site(STEAL.replace("URL", server.url)) as site, browser.new_context() as context:
        context.new_page().goto(server.url + server.link())
        page = context.new_page()
        page.goto(site)
        page.wait_for_function("() => got.length >= 4")
        assert set(page.evaluate("got")) == {"no"}
        assert [frame.url for frame in page.frames[1:]] == ["chrome-error://chromewebdata/"]


def test_without_a_link_there_is_nothing_to_see(server: Served, browser: Browser) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        answer = page.goto(server.url)
        assert answer is not None
        assert answer.status == 401
        assert "whyfor serve" in page.content()
