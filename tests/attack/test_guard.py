"""Who has no key gets none: not by taking the server's port, not by waiting, not by holding
every connection."""

from __future__ import annotations

import http.client
import logging
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.server.test_browser import browser
from tests.server.wire import Answer, Served, served
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.live import hub as live
from whyfor.server import connections
from whyfor.server.start import LIFE_SECONDS, sign
from whyfor.service.ingest import ingest

__all__ = ["browser"]  # a fixture
MANY = 300
PATIENCE = 30_000  # ms: a browser on a busy machine is slow, not wrong
NONCE = "n" * 32
expect.set_options(timeout=PATIENCE)


@pytest.fixture
def kept(settings: Settings, home: Path) -> Settings:
    """A home in which one session is kept."""
    speak(settings, home, "first")
    return settings


def speak(settings: Settings, home: Path, *texts: str) -> None:
    """The session has said these things now, and they were ingested."""
    transcript = Transcript("a")
    for text in texts:
        transcript.say(text)
    transcript.save(home)
    ingest(settings)


def cookie_of(answer: Answer) -> str:
    """What a browser would send from then on."""
    return answer.headers["set-cookie"].partition(";")[0]


def let_in(server: Served) -> str:
    return cookie_of(server.ask(server.link()))


# -- what a cookie is worth ----------------------------------------------------------------------


def test_a_cookie_opens_only_the_start_that_gave_it(kept: Settings) -> None:
    with served(kept) as first:
        cookie = let_in(first)
        assert first.ask("/", cookie=cookie).status == 200
    with served(kept, first.port) as second:
        assert second.keys.token == first.keys.token
        for path in ("/", "/api/v1/sessions", "/api/v1/stream", "/static/app.js"):
            assert second.ask(path, cookie=cookie).status == 401
        assert second.ask("/", cookie=let_in(second)).status == 200


def test_a_cookie_opens_only_its_own_port(kept: Settings) -> None:
    with served(kept) as one, served(kept, beside=True) as other:
        value = let_in(one).partition("=")[2]
        assert one.ask("/", cookie=f"whyfor-{one.port}={value}").status == 200
        for port in (one.port, other.port):
            assert other.ask("/", cookie=f"whyfor-{port}={value}").status == 401


def test_a_cookie_ends_and_says_when_only_with_our_signature(kept: Settings) -> None:
    with served(kept) as server:
        name = f"whyfor-{server.port}"
        until, _, signature = let_in(server).partition("=")[2].partition(".")
        assert 0 <= time.time() + LIFE_SECONDS - int(until) < 60
        past = server.app.guard.start.make_cookie(int(time.time()) - 1)
        forged = [
            f"{int(until) + 1}.{signature}",
            f"{until}.",
            until,
            f".{signature}",
            f"-{until}.{signature}",
        ]
        for value in (
            past,
            *forged,
            f"{until}.{signature[:-1]}",
            f"{until}.{signature}0",
            "1e99." + signature,
        ):
            assert server.ask("/", cookie=f"{name}={value}").status == 401, value
        assert server.ask("/", cookie=f"{name}={until}.{signature}").status == 200


# -- how a page and a server know each other again -----------------------------------------------


class PageKey:
    """What our script finds in a page."""

    def __init__(self, answer: Answer) -> None:
        found = re.search(rb'<meta name="page-key" content="([^"]+)">', answer.body)
        assert found
        parts: list[str] = found[1].decode().split(".")
        self.page, self.until, self.secret, self.start = parts
        self.name = f"{self.page}.{self.until}"

    def again(self, server: Served, proof: str, nonce: str = NONCE, name: str = "") -> Answer:
        query = {"page": name or self.name, "nonce": nonce, "proof": proof}
        return server.ask(f"/again?{urlencode(query)}")


def hello(server: Served, name: str, nonce: str = NONCE) -> Answer:
    return server.ask(f"/hello?{urlencode({'page': name, 'nonce': nonce})}")


def test_a_page_gets_a_cookie_of_the_next_start_which_ends_when_the_first_would_have(
    kept: Settings,
) -> None:
    with served(kept) as first:
        cookie = let_in(first)
        key = PageKey(first.ask("/", cookie=cookie, accept="text/html"))
    with served(kept, first.port) as second:
        told = hello(second, key.name).json
        assert told["start"] != key.start
        assert told["proof"] == sign(key.secret, "server", second.port, told["start"], NONCE)
        answer = key.again(second, sign(key.secret, "page", second.port, told["start"], NONCE))
        fresh = cookie_of(answer)
        assert (
            fresh.partition("=")[2].partition(".")[0]
            == key.until
            == cookie.partition("=")[2].partition(".")[0]
        )
        page = second.ask("/", cookie=fresh, accept="text/html")
        assert (page.status, PageKey(page).until) == (200, key.until)


def test_no_other_proof_lets_a_page_in(kept: Settings) -> None:
    with served(kept) as first, served(kept, beside=True) as other:
        key = PageKey(first.ask("/", cookie=let_in(first), accept="text/html"))
        old = sign(key.secret, "page", first.port, key.start, NONCE)
        assert key.again(first, old).status == 200
        assert key.again(other, old).status == 401  # another port and start
    with served(kept, first.port) as second:
        told = hello(second, key.name).json
        start, port = told["start"], second.port
        right = sign(key.secret, "page", port, start, NONCE)
        wrong = [
            old,  # of the start before
            told["proof"],  # the server's own, sent back to it
            sign(key.secret, "page", port + 1, start, NONCE),
            sign(key.page, "page", port, start, NONCE),
            right[:-1],
            "x",
        ]
        for proof in wrong:
            answer = key.again(second, proof)
            assert (answer.status, "set-cookie" in answer.headers) == (401, False)
        assert key.again(second, right, nonce="m" * 32).status == 401
        later = f"{key.page}.{int(key.until) + 1}"
        assert key.again(second, right, name=later).status == 401  # nobody prolongs a page
        assert key.again(second, right).status == 200


def test_a_page_that_is_too_old_is_not_known_any_more(kept: Settings) -> None:
    with served(kept) as server:
        start = server.app.guard.start
        page, until, secret, name = start.make_page_key(int(time.time()) - 1).split(".")
        assert hello(server, f"{page}.{until}").status == 401
        proof = sign(secret, "page", server.port, name, NONCE)
        query = urlencode({"page": f"{page}.{until}", "nonce": NONCE, "proof": proof})
        assert server.ask(f"/again?{query}").status == 401


def test_a_greeting_gives_nothing_away_and_is_for_our_own_pages(kept: Settings) -> None:
    with served(kept) as server:
        key = PageKey(server.ask("/", cookie=let_in(server), accept="text/html"))
        target = f"/hello?{urlencode({'page': key.name, 'nonce': NONCE})}"
        answer = server.ask(target)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        for secret in (key.secret, server.keys.token):
            assert secret not in answer.everything
        assert server.ask(target, origin="http://evil.example").status == 403
        assert server.ask(target, sec_fetch_site="same-site").status == 403
        assert server.ask(target, host=f"evil.example:{server.port}").status == 421
        assert server.ask(target, "POST").status == 405
        for query in ("", "?page=x", f"?page={key.name}", f"?page={key.name}&nonce=a&nonce=b"):
            assert server.ask("/hello" + query).status == 400
        for name, nonce in (
            (key.name, "short"),
            (key.name, "n\n" * 16),
            (key.page, NONCE),
            ("x.99999999999", NONCE),
        ):
            assert hello(server, name, nonce).status == 401


# -- somebody else has the port ------------------------------------------------------------------

EVIL = "words-of-a-stranger"


class Impostor(ThreadingHTTPServer):
    """Another program on the server's port: it writes down all it is sent and says what it
    likes."""

    daemon_threads = True

    def __init__(self, port: int, relay: Served | None = None, *, waits: bool = False) -> None:
        self.relay = relay
        self.asked = threading.Event()
        self.waits = waits  # it holds back its answers, and keeps its connections
        self.ready = threading.Event()
        if not waits:
            self.ready.set()
        self.heard: list[tuple[str, str, dict[str, str], bytes]] = []
        super().__init__(("127.0.0.1", port), _Listening)

    @contextmanager
    def listening(self) -> Iterator[Impostor]:
        thread = threading.Thread(target=self.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield self
        finally:
            self.shutdown()
            thread.join()
            self.server_close()


class _Listening(BaseHTTPRequestHandler):
    server: Impostor
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers.get("content-length", "0")))
        self.server.heard.append((self.command, self.path, headers, body))
        self.server.asked.set()
        assert self.server.ready.wait(30)
        status, kind, said = self._answer(headers)
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(said)))
        if not self.server.waits:
            self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(said)

    do_POST = do_GET

    def _answer(self, headers: dict[str, str]) -> tuple[int, str, bytes]:
        relay = self.server.relay
        if relay is None:
            return (
                200,
                "application/json",
                b'{"start": "%s", "proof": "%s"}' % (EVIL.encode(), b"0" * 64),
            )
        answer = relay.ask(
            self.path,
            self.command,
            **{**headers, "host": f"127.0.0.1:{relay.port}", "connection": None},
        )
        return answer.status, answer.headers.get("content-type", "text/html"), answer.body

    def log_message(self, *_: object) -> None: ...


def open_page(server: Served, page: Page, path: str = "/") -> None:
    page.goto(server.url + server.link())
    if path != "/":
        page.goto(server.url + path)
    expect(page.locator(".live")).to_have_attribute("data-live", "on")


def cookies_of(page: Page) -> list[str]:
    return [key_cookie(page.context)]


def key_cookie(context: BrowserContext) -> str:
    """The key of a page; the other cookie says when one last looked."""
    (found,) = [each["value"] for each in context.cookies() if "looked" not in each["name"]]
    return found


def await_other_cookies(page: Page, before: list[str]) -> None:
    """Until the page has got a key of another start."""
    end = time.monotonic() + 30
    while cookies_of(page) == before:
        assert time.monotonic() < end, "the page did not come back"
        page.wait_for_timeout(20)


PICTURE = """() => { const far = document.createElement("div"); far.style.height = "30000px";
    const picture = new Image(); picture.loading = "lazy"; picture.id = "picture"; picture.src = "/later.png";
    document.body.append(far, picture); }"""


@pytest.mark.parametrize(
    "relays", [False, True], ids=["it answers itself", "it asks our server on another port"]
)
def test_whoever_takes_the_port_gets_nothing_that_opens_the_next_server(
    kept: Settings, browser: Browser, relays: bool
) -> None:
    with ExitStack() as stack:
        page = stack.enter_context(browser.new_context()).new_page()
        with served(kept) as first:
            open_page(first, page, "/search?q=first")
            page.evaluate(PICTURE)
        other = stack.enter_context(served(kept)) if relays else None
        with Impostor(first.port, other).listening() as impostor:
            banner = page.locator("#not-live")
            expect(banner).to_contain_text("Something else answers at this address")
            assert EVIL not in page.content()
            # which a browser would ask for now
            page.locator("#picture").scroll_into_view_if_needed()
            page.locator("#q").fill("a private question")  # what a person types goes nowhere
            expect(page.locator(".results-failed")).to_be_visible()
            page.get_by_role("button", name="Try now").click()
            expect(banner).to_contain_text("Something else answers at this address")
        heard = impostor.heard
        assert heard and {path.partition("?")[0] for _, path, _, _ in heard} == {"/hello"}
        assert not any(
            "cookie" in headers or "authorization" in headers for _, _, headers, _ in heard
        )
        assert "private" not in str(heard)
        with served(kept, first.port, beside=True) as second:
            for answer in replayed(second, heard):
                assert "set-cookie" not in answer.headers
                assert b"first" not in answer.body
            page.get_by_role("button", name="Try now").click()  # it is ours again
            expect(page.locator(".live")).to_have_attribute("data-live", "on")
            expect(page.locator("#picture")).to_have_attribute("src", "/later.png")
            page.goto("about:blank")


def test_whoever_held_a_connection_from_before_is_not_in_between(
    kept: Settings, browser: Browser
) -> None:
    """It passes our server's proof on, as if it were its own; what follows does not come its
    way."""
    with ExitStack() as stack:
        page = stack.enter_context(browser.new_context()).new_page()
        with served(kept) as first:
            open_page(first, page)
        before = cookies_of(page)
        impostor = Impostor(first.port, waits=True)
        with impostor.listening():
            assert impostor.asked.wait(30)
        # the connection to the impostor is still there
        with served(kept, first.port, beside=True) as second:
            impostor.relay = second
            impostor.ready.set()
            # what the page shows may still be of before the break
            await_other_cookies(page, before)
            expect(page.locator(".live")).to_have_attribute("data-live", "on")
            page.reload()
            expect(page.locator(".live")).to_have_attribute("data-live", "on")
            page.goto("about:blank")
            assert {path.partition("?")[0] for _, path, _, _ in impostor.heard} == {"/hello"}
            assert not any("cookie" in headers for _, _, headers, _ in impostor.heard)


def test_whoever_shows_a_page_at_our_address_gets_a_cookie_that_is_dead(
    kept: Settings, browser: Browser
) -> None:
    """A person who goes on in a tab that is left sends the cookie, whoever listens."""
    with browser.new_context() as context:
        page = context.new_page()
        with served(kept) as first:
            open_page(first, page)
        with Impostor(first.port).listening() as impostor:
            page.goto(first.url + "/timeline")
        sent = [headers["cookie"] for _, path, headers, _ in impostor.heard if path == "/timeline"]
        assert sent and sent[0].startswith(f"whyfor-{first.port}=")
        page.goto("about:blank")
        with served(kept, first.port, beside=True) as second:
            for answer in replayed(second, impostor.heard):
                assert "set-cookie" not in answer.headers
                assert answer.status == 401 or b"first" not in answer.body


def replayed(
    server: Served, heard: list[tuple[str, str, dict[str, str], bytes]]
) -> Iterator[Answer]:
    """Everything a stranger was sent, as it was and on the addresses that matter, with every
    value as every key."""
    for method, path, headers, _ in heard:
        told: dict[str, str | None] = {**headers, "connection": None, "content-length": None}
        for target in (
            path,
            "/",
            "/api/v1/sessions",
            "/again?" + path.partition("?")[2] + "&proof=" + "0" * 64,
        ):
            yield server.ask(target, method, **told)
        values = [headers.get("cookie", "").partition("=")[2], *re.findall(r"=([^&]+)", path)]
        for value in filter(None, values):
            yield server.ask("/api/v1/sessions", authorization=f"Bearer {value}")
            yield server.ask("/api/v1/sessions", cookie=f"whyfor-{server.port}={value}")
            yield server.ask(f"/open?once={value}")


def test_a_page_goes_on_where_it_was_after_a_restart_on_the_same_port(
    kept: Settings, home: Path, browser: Browser
) -> None:
    names = ["first", *(f"number {number}" for number in range(40))]
    listen = """async () => { const { live } = await import("/static/live.js"); window.heard = [];
        live.on("event", (event) => heard.push(event.text)); }"""
    with browser.new_context() as context:
        page = context.new_page()
        with served(kept) as first:
            open_page(first, page, f"/sessions/claude/{Transcript('a').session_id}")
            before = key_cookie(context)
            page.evaluate(listen)
            speak(kept, home, *names[:11])
            page.wait_for_function("() => heard.length >= 10")
        speak(kept, home, *names[:31])  # nobody serves
        with served(kept, first.port):
            page.wait_for_function("() => heard.length >= 30")
            speak(kept, home, *names)
            page.wait_for_function("() => heard.length >= 40")
            assert page.evaluate("heard") == names[1:]
            expect(page.locator(".live")).to_have_attribute("data-live", "on")
            after = key_cookie(context)
            assert before != after
            page.reload()
            expect(page.locator(".live")).to_have_attribute("data-live", "on")
            assert page.locator("meta[name=page-key]").count() == 0  # a saved page does not hold it
            page.goto("about:blank")


def test_a_page_that_is_too_old_asks_for_a_new_link_and_sends_nothing(
    kept: Settings, browser: Browser
) -> None:
    with browser.new_context() as context, ExitStack() as stack:
        page = context.new_page()
        with served(kept) as first:
            page.clock.install()
            open_page(first, page)
            page.clock.set_system_time(time.time() + LIFE_SECONDS + 1)
        impostor = stack.enter_context(Impostor(first.port).listening())
        page.clock.run_for(5000)
        expect(page.locator("#not-live")).to_contain_text(
            "This page needs a new key. Get one with: whyfor serve"
        )
        assert impostor.heard == []
        page.goto("about:blank")


# -- other users of this machine -----------------------------------------------------------------

ASK = """import os, socket, sys
os.setuid(int(sys.argv[4]))
with socket.socket(int(sys.argv[1])) as line:
    line.settimeout(20)
    line.connect((sys.argv[2], int(sys.argv[3])))
    try:
        line.sendall(sys.stdin.buffer.read())
        print(len(line.recv(1000)))
    except ConnectionError:
        print(0)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says who is at the other end")
def test_another_user_gets_no_answer_even_with_the_key(kept: Settings) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can be somebody else")
    with served(kept) as server:
        request = f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        request += f"Authorization: {server.bearer['Authorization']}\r\nConnection: close\r\n\r\n"
        for family, address in (
            (socket.AF_INET, "127.0.0.1"),
            (socket.AF_INET6, "::ffff:127.0.0.1"),
        ):
            answers = {}
            for user in (0, 65534):
                told = [str(int(family)), address, str(server.port), str(user)]
                command = [sys.executable, "-IS", "-c", ASK, *told]
                done = subprocess.run(
                    command, input=request.encode(), capture_output=True, check=True, timeout=60
                )
                answers[user] = int(done.stdout)
            assert answers[0] > 0 and answers[65534] == 0


# -- whoever holds connections -------------------------------------------------------------------

HELD = {
    "no byte": "",
    "half a line": "GET / HT",
    "half a head": "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: ",
    "half a body": "POST / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 5000\r\n\r\nx",
    "a request without a key": "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n",
    "a stream without a key": "GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: x=1.y\r\n\r\n",
}


@contextmanager
def holding(server: Served, text: str, number: int = MANY) -> Iterator[list[socket.socket]]:
    with ExitStack() as stack:
        lines = []
        for _ in range(number):
            line = stack.enter_context(
                socket.create_connection(("127.0.0.1", server.port), timeout=10)
            )
            try:
                line.sendall(text.format(port=server.port).encode())
            except ConnectionError:  # pushed out already
                continue
            lines.append(line)
        yield lines


@contextmanager
def streaming(server: Served) -> Iterator[tuple[http.client.HTTPResponse, socket.socket]]:
    line = socket.create_connection(("127.0.0.1", server.port), timeout=10)
    head = f"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
    line.sendall((head + f"Authorization: {server.bearer['Authorization']}\r\n\r\n").encode())
    response = http.client.HTTPResponse(line)
    try:
        response.begin()
        yield response, line
    finally:
        response.close()
        line.close()


@pytest.mark.parametrize("text", HELD.values(), ids=HELD)
def test_three_hundred_held_connections_keep_nobody_out_who_has_a_key(
    kept: Settings, text: str
) -> None:
    with served(kept, heartbeat=0.05) as server:
        cookie = let_in(server)
        with streaming(server) as (before, _), holding(server, text):
            for path in ("/", "/api/v1/sessions", "/timeline"):
                assert server.ask(path, cookie=cookie).status == 200
                assert server.get(path).status == 200
            with streaming(server) as (after, _):
                assert (before.status, after.status) == (200, 200)
                for stream in (before, after):
                    assert any(stream.readline().startswith(b"event: alive") for _ in range(20))
            assert server.ask(server.link()).status == 303  # and another browser may come


def test_connections_that_come_and_come_keep_nobody_out_who_has_a_key(kept: Settings) -> None:
    stop = threading.Event()

    def flood() -> None:
        held: list[socket.socket] = []
        while not stop.is_set():
            held.append(socket.create_connection(("127.0.0.1", server.port), timeout=10))
            if len(held) > MANY:
                held.pop(0).close()
        for line in held:
            line.close()

    with served(kept) as server:
        thread = threading.Thread(target=flood)
        thread.start()
        try:
            assert [server.get("/api/v1/status").status for _ in range(20)] == [200] * 20
        finally:
            stop.set()
            thread.join()


def test_who_shows_no_key_in_time_is_cut_off_and_who_has_is_not(
    kept: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "KEYLESS_SECONDS", 0.3)
    with served(kept, heartbeat=0.05) as server, streaming(server) as (stream, _):
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        client.request("GET", "/api/v1/status", headers=server.bearer)
        assert client.getresponse().read()
        with ExitStack() as stack:
            for (line,) in [
                stack.enter_context(holding(server, text, 1)) for text in HELD.values()
            ]:
                while line.recv(4096):  # until it is closed
                    pass
        assert stream.readline()
        client.request("GET", "/api/v1/status", headers=server.bearer)
        assert client.getresponse().status == 200
        client.close()


# -- too many who listen -------------------------------------------------------------------------


def test_the_sixty_fifth_stream_is_refused_before_it_begins(
    kept: Settings, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.WARNING), served(kept) as server, ExitStack() as stack:
        lines = []
        head = f"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        for _ in range(live.LISTENERS + 16):  # all at once
            line = stack.enter_context(
                socket.create_connection(("127.0.0.1", server.port), timeout=20)
            )
            line.sendall(
                (head + f"Authorization: {server.bearer['Authorization']}\r\n\r\n").encode()
            )
            lines.append(line)
        answers: list[tuple[http.client.HTTPResponse, socket.socket]] = []
        for line in lines:
            response = stack.enter_context(http.client.HTTPResponse(line))
            response.begin()
            answers.append((response, line))
        refused = [response for response, _ in answers if response.status != 200]
        assert len(refused) == 16
        for response in refused:
            assert (response.status, response.getheader("retry-after")) == (503, "5")
            assert response.getheader("content-type") == "application/problem+json"
            assert b'"kind":"busy"' in response.read()
        accepted = [response for response, _ in answers if response.status == 200]
        assert all(response.readline() == b"retry: 1000\n" for response in accepted)
        assert server.hub.listeners == live.LISTENERS
    assert server.hub.listeners == 0
    assert [record for record in caplog.records if record.name.startswith("uvicorn")] == []
    assert "Traceback" not in capfd.readouterr().err


def test_a_page_that_finds_no_room_says_so_and_comes_in_later(
    kept: Settings, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "LISTENERS", 1)
    with served(kept) as server, browser.new_context() as context:
        page = context.new_page()
        with streaming(server):
            page.goto(server.url + server.link())
            expect(page.locator("#not-live")).to_contain_text("Too many pages are live already")
            expect(page.locator(".live")).to_have_text("Not live")
        expect(page.locator(".live")).to_have_attribute("data-live", "on")
        expect(page.locator("#not-live")).to_have_count(0)
        page.goto("about:blank")
