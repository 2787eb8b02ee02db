"""Nothing changes unless a form of a page that is signed in was sent, by the browser that shows
it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

import msgspec
import pytest
from litestar import get, post
from litestar.response import Redirect
from playwright.sync_api import Browser, BrowserContext, expect

from tests.server.test_browser import another_site, browser
from tests.server.wire import Answer, Served, served
from whyfor.config import Settings
from whyfor.server.forms import FIELDS_MAX, FormData, go_to
from whyfor.server.guard import BODY_BYTES
from whyfor.server.page import TEMPLATES

__all__ = ["browser"]  # a fixture
FORM = "application/x-www-form-urlencoded"
PAGE = """<!doctype html><title>Form</title><form method="post" action="/say">
<input type="hidden" name="form" value="{{ form_token() }}">
<input type="hidden" name="back" value="/form?said"><input name="word" value="hello"><button>Say</button></form>"""


class Said(msgspec.Struct):
    word: str
    back: str = ""


class Desk:
    """A server with one page that has a form, and what was said through it."""

    def __init__(self, server: Served) -> None:
        self.server = server
        self.said: list[str] = []

        @get("/form", sync_to_thread=True, media_type="text/html")
        def form() -> str:
            return TEMPLATES.get().from_string(PAGE).render()

        @post("/say", sync_to_thread=True)
        def say(data: FormData[Said]) -> Redirect:
            self.said.append(data.word)
            return go_to(data.back, "/form")

        server.app.register(form)
        server.app.register(say)

    def sign_in(self) -> Browsing:
        given = self.server.ask(self.server.link()).headers["set-cookie"]
        cookie = given.partition(";")[0]
        until = int(cookie.partition("=")[2].partition(".")[0])
        return Browsing(self, cookie, self.server.app.guard.start.make_form_token(until))


class Browsing(msgspec.Struct):
    desk: Desk
    cookie: str
    token: str

    def send(self, body: str | None = None, **headers: str | None) -> Answer:
        """The form as a browser sends it, with something changed."""
        server = self.desk.server
        text = body if body is not None else urlencode({"word": "hello", "form": self.token})
        told: dict[str, str | None] = {
            "host": f"127.0.0.1:{server.port}",
            "origin": server.url,
            "sec-fetch-site": "same-origin",
            "cookie": self.cookie,
            "content-type": FORM,
            "content-length": str(len(text)),
        }
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = ["POST /say HTTP/1.1", *(f"{n}: {v}" for n, v in told.items() if v is not None)]
        head = "\r\n".join([*lines, "connection: close", "", ""])
        return server.raw((head + text).encode("latin-1"))


@contextmanager
def at_desk(settings: Settings) -> Iterator[Desk]:
    with served(settings) as running:
        yield Desk(running)


@pytest.fixture
def desk(settings: Settings) -> Iterator[Desk]:
    with at_desk(settings) as opened:
        yield opened


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context()
    yield made
    made.close()


# -- what is let through -------------------------------------------------------------------------


def test_a_form_of_ours_is_taken_and_answered_with_a_redirect(desk: Desk) -> None:
    answer = desk.sign_in().send()
    assert (answer.status, answer.headers["location"]) == (303, "/form")
    assert desk.said == ["hello"]


@pytest.mark.parametrize("scripts", [True, False], ids=["with script", "without script"])
def test_a_browser_sends_our_form(desk: Desk, browser: Browser, scripts: bool) -> None:
    context = browser.new_context(java_script_enabled=scripts)
    page = context.new_page()
    page.goto(desk.server.url + desk.server.link())
    page.goto(desk.server.url + "/form")
    page.locator("[name=word]").fill("grüß dich & mehr")
    page.locator("button").click()
    page.wait_for_url("**/form?said")
    context.close()
    assert desk.said == ["grüß dich & mehr"]


def test_a_browser_that_says_less_of_where_it_comes_from_is_enough(desk: Desk) -> None:
    assert desk.sign_in().send(sec_fetch_site=None).status == 303


# -- who is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "null",
        "",
        "https://evil.example",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "http://localhost:{port}",  # another name of ours, but not the one that was asked
        "https://127.0.0.1:{port}",
        "http://127.0.0.1:{port}.evil.example",
        "http://evil.example:{port}",
        "http://127.0.0.1:{port}, http://evil.example",
    ],
)
def test_a_form_of_another_origin_is_refused(desk: Desk, origin: str | None) -> None:
    told = origin and origin.format(port=desk.server.port)
    assert desk.sign_in().send(origin=told).status == 403
    assert desk.said == []


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none", "", "SAME-ORIGIN, none"])
def test_a_request_another_site_caused_is_refused(desk: Desk, site: str) -> None:
    assert desk.sign_in().send(sec_fetch_site=site).status == 403
    assert desk.said == []


def test_a_form_without_its_token_is_refused(desk: Desk) -> None:
    who = desk.sign_in()
    wrong = ["", who.token[:-1], who.token + "0", who.token.upper(), "0" * 64, who.cookie]
    for token in wrong:
        assert who.send(urlencode({"word": "x", "form": token})).status == 403, token
    for body in ("", "word=x", f"word=x&form={who.token}&form={who.token}", f"Form={who.token}"):
        assert who.send(body).status == 403, body
    assert desk.said == []


def test_a_token_in_the_address_is_no_token(desk: Desk) -> None:
    who = desk.sign_in()
    answer = desk.server.raw(
        f"POST /say?form={who.token} HTTP/1.1\r\nhost: 127.0.0.1:{desk.server.port}\r\n"
        f"origin: {desk.server.url}\r\ncookie: {who.cookie}\r\ncontent-type: {FORM}\r\n"
        "content-length: 6\r\nconnection: close\r\n\r\nword=x".encode()
    )
    assert answer.status == 403
    assert desk.said == []


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "application/json",
        "multipart/form-data; boundary=x",
        "application/x-www-form-urlencodedx",
        "text/plain, application/x-www-form-urlencoded",
    ],
)
def test_what_is_no_form_is_refused(desk: Desk, kind: str | None) -> None:
    assert desk.sign_in().send(content_type=kind).status == 415
    assert desk.said == []


def test_a_form_without_a_cookie_is_refused(desk: Desk) -> None:
    who = desk.sign_in()
    assert who.send(cookie=None).status == 401
    assert who.send(cookie=who.cookie[:-1]).status == 401
    bearer = desk.server.bearer["Authorization"]
    assert who.send(cookie=None, authorization=bearer).status == 403
    assert who.send(authorization=bearer).status == 403
    assert desk.said == []


def test_a_token_is_of_no_use_with_another_sign_in(desk: Desk) -> None:
    first = desk.sign_in()
    start = desk.server.app.guard.start
    until = int(time.time()) + 60
    other = f"whyfor-{desk.server.port}={start.make_cookie(until)}"
    assert first.send(cookie=other).status == 403
    assert Browsing(desk, other, start.make_form_token(until)).send().status == 303
    assert desk.said == ["hello"]


def test_a_form_sent_again_after_its_sign_in_has_ended_is_refused(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    who = desk.sign_in()
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 8 * 24 * 3600)
    assert who.send().status == 401
    assert desk.said == []


def test_a_form_sent_again_after_a_restart_is_refused(settings: Settings) -> None:
    with at_desk(settings) as first:
        who = first.sign_in()
        port = first.server.port
    with served(settings, port) as running:
        second = Desk(running)
        old = Browsing(second, who.cookie, who.token)
        assert old.send().status == 401
        assert old.send(cookie=second.sign_in().cookie).status == 403
        assert second.said == []


@pytest.mark.parametrize("host", ["evil.example:{port}", "127.0.0.1.evil.example:{port}", ""])
def test_a_name_that_was_made_to_point_here_changes_nothing(desk: Desk, host: str) -> None:
    told = host.format(port=desk.server.port)
    answer = desk.sign_in().send(host=told, origin=f"http://{told}")
    assert answer.status in (400, 421)
    assert desk.said == []


def test_a_get_changes_nothing(desk: Desk) -> None:
    who = desk.sign_in()
    query = urlencode({"word": "x", "form": who.token})
    for method in ("GET", "HEAD", "PUT", "PATCH", "DELETE"):
        answer = desk.server.ask(f"/say?{query}", method, cookie=who.cookie, origin=desk.server.url)
        assert answer.status == 405, method
    assert desk.said == []


# -- size ----------------------------------------------------------------------------------------


def test_a_form_that_is_too_long_is_refused(desk: Desk) -> None:
    who = desk.sign_in()
    room = BODY_BYTES - len(urlencode({"form": who.token})) - len("&word=")
    longest = f"form={who.token}&word={'x' * room}"
    assert who.send(longest).status == 303
    assert who.send(longest + "x").status == 413
    assert who.send("x" * 10, content_length=None, transfer_encoding="chunked").status == 413
    many = "&".join(["a=1"] * FIELDS_MAX)
    assert who.send(f"{many}&form={who.token}").status == 400
    assert [len(word) for word in desk.said] == [room]


def test_half_a_form_changes_nothing(desk: Desk) -> None:
    who = desk.sign_in()
    body = urlencode({"word": "half", "form": who.token})
    head = (
        f"POST /say HTTP/1.1\r\nhost: 127.0.0.1:{desk.server.port}\r\norigin: {desk.server.url}\r\n"
        f"cookie: {who.cookie}\r\ncontent-type: {FORM}\r\ncontent-length: {len(body) + 5}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", desk.server.port), timeout=10) as line:
        line.sendall((head + body).encode())
    assert who.send().status == 303
    assert desk.said == ["hello"]


# -- where it leads ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "back",
    [
        "https://evil.example/",
        "//evil.example/",
        "/\\evil.example",
        "\\\\evil.example",
        "javascript:alert(1)",
        "/a\r\nset-cookie: x=1",
        "/ a",
        "",
    ],
)
def test_a_redirect_leads_nowhere_else(desk: Desk, back: str) -> None:
    who = desk.sign_in()
    answer = who.send(urlencode({"word": "x", "form": who.token, "back": back}))
    assert (answer.status, answer.headers["location"]) == (303, "/form")
    assert "set-cookie" not in answer.headers


# -- another site, in a real browser -------------------------------------------------------------

STEAL = """<form id=f method=post action="URL/say" enctype="ENC"><input name=word value=stolen>
<input name=form value="TOKEN"></form><script>document.getElementById("f").submit()</script>"""
ASK = """<script>window.got = fetch("URL/say", {method: "POST", credentials: "include", mode: "no-cors",
headers: {"content-type": "application/x-www-form-urlencoded"}, body: "word=stolen&form=TOKEN"})
.then(() => "sent", () => "not sent");</script>"""


@pytest.mark.parametrize("kind", [FORM, "text/plain", "multipart/form-data"])
def test_a_form_on_another_site_changes_nothing(
    desk: Desk, context: BrowserContext, kind: str
) -> None:
    """It has everything, even a token: its origin gives it away."""
    page = context.new_page()
    page.goto(desk.server.url + desk.server.link())
    cookie = next(each for each in context.cookies() if "looked" not in each["name"])["value"]
    token = desk.server.app.guard.start.make_form_token(int(cookie.partition(".")[0]))
    stolen = STEAL.replace("URL", desk.server.url).replace("TOKEN", token).replace("ENC", kind)
    with another_site(stolen) as url:
        with page.expect_navigation(url="**/say"):
            page.goto(url, wait_until="commit")
        expect(page.locator("body")).to_contain_text("Another site may not ask")
    asked = ASK.replace("URL", desk.server.url).replace("TOKEN", token)
    with another_site(asked) as url:
        page.goto(url)
        page.evaluate("window.got")
    assert desk.said == []
