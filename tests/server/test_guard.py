"""Nobody gets in by another name, from another site, or without a key; and no answer helps
anybody to."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.server.wire import Served
from whyfor.demo.places import Demo
from whyfor.model.query import SessionFilter
from whyfor.server.guard import REFUSED
from whyfor.service.sessions import sessions

SECRET = "backoff"  # a word of the demo's sessions


def _filled(route: Any, values: dict[str, str]) -> str:
    """A route's path with something in the place of its parameters."""
    parts = (
        part if isinstance(part, str) else values.get(part.name, "x")
        for part in route.path_components
    )
    return "/" + "/".join(parts)


def _paths(server: Served) -> list[str]:
    """Every route the application has."""
    found = {_filled(route, {}) for route in server.app.routes}
    return sorted({*found, "/static/tokens.css", "/no/such/place", "/favicon.ico"})


def _climbed(server: Served, climb: str) -> list[str]:
    """Every route with it in the place of each of its parameters, and every query that names
    something."""
    found = {
        _filled(route, {"agent": "claude", part.name: climb})
        for route in server.app.routes
        for part in route.path_components
        if not isinstance(part, str)
    }
    asked = [
        "sessions?project=",
        "sessions?branch=",
        "sessions?after=",
        "commits?project=",
        "stats?project=",
    ]
    found |= {
        f"/api/v1/{path}{climb}"
        for path in [*asked, "search?q=x&project=", "stream?after=", "stream?kind="]
    }
    return sorted(
        {
            *found,
            f"/{climb}",
            f"/timeline?project={climb}",
            f"/search?q=x&project={climb}",
            f"/open/{climb}",
        }
    )


# -- Host ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:1",
        "localhost.evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "evil.example@127.0.0.1:{port}",
        "127.0.0.1:{port}/evil.example",
        "127.0.0.1:{port},evil.example",
        "0.0.0.0:{port}",
        "127.1:{port}",
        "2130706433:{port}",
        "[::ffff:127.0.0.1]:{port}",
        "",
    ],
)
def test_a_name_that_is_not_ours_is_refused_even_with_the_key(server: Served, host: str) -> None:
    answer = server.get("/api/v1/sessions", host=host.format(port=server.port))
    assert answer.status in (400, 421)
    assert SECRET not in answer.everything


def test_two_names_or_none_are_refused(server: Served) -> None:
    key = f"Authorization: {server.bearer['Authorization']}\r\nConnection: close\r\n"
    ours = f"Host: 127.0.0.1:{server.port}\r\n"
    for hosts in ("", ours + ours, ours + "Host: evil.example\r\n"):
        for version in ("1.0", "1.1"):
            answer = server.raw(f"GET /api/v1/sessions HTTP/{version}\r\n{hosts}{key}\r\n".encode())
            assert answer.status in (400, 421), hosts


def test_an_absolute_target_does_not_replace_the_name(server: Served) -> None:
    answer = server.get("http://evil.example/api/v1/sessions", host="evil.example")
    assert answer.status in (400, 421)


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
def test_our_own_names_are_answered(server: Served, name: str) -> None:
    assert server.get("/api/v1/sessions", host=f"{name}:{server.port}").status == 200


def test_only_this_machine_is_listened_to(server: Served) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no other address")
        outer = probe.getsockname()[0]
    if outer.startswith("127."):
        pytest.skip("this machine has no other address")
    with pytest.raises(OSError, match=r"refused|timed out|unreachable"):
        socket.create_connection((outer, server.port), timeout=2)


# -- Origin --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:1"},
        {"origin": "http://127.0.0.1"},
        {"origin": "https://127.0.0.1:{port}"},
        # another origin than 127.0.0.1, whatever it resolves to
        {"origin": "http://localhost:{port}"},
        {"origin": ""},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},  # another port of this machine
        {"sec_fetch_site": "whatever"},
        {"origin": "http://127.0.0.1:{port}", "sec_fetch_site": "cross-site"},
    ],
)
def test_another_site_gets_nothing_even_with_the_key(
    server: Served, headers: dict[str, str]
) -> None:
    told = {name: value.format(port=server.port) for name, value in headers.items()}
    for path in ("/", "/api/v1/sessions", "/api/v1/stream", "/static/tokens.css"):
        answer = server.get(path, **told)
        assert (answer.status, SECRET in answer.everything) == (403, False)
        assert "access-control-allow-origin" not in answer.headers


def test_our_own_pages_may_ask(server: Served) -> None:
    own = f"http://127.0.0.1:{server.port}"
    assert server.get("/api/v1/sessions", origin=own, sec_fetch_site="same-origin").status == 200
    assert server.get("/", sec_fetch_site="none").status == 200


def test_no_preflight_is_granted(server: Served) -> None:
    asked = {"origin": "http://evil.example", "access_control_request_method": "GET"}
    answer = server.ask("/api/v1/sessions", "OPTIONS", **asked)
    assert answer.status == 403
    assert not any(name.startswith("access-control") for name in answer.headers)


# -- keys ----------------------------------------------------------------------------------------


def test_every_route_is_known_to_these_tests(server: Served) -> None:
    paths = _paths(server)
    assert {
        "/",
        "/timeline",
        "/search",
        "/insights",
        "/api/v1/stream",
        "/api/v1/sessions",
        "/api/schema",
    } <= set(paths)
    assert len(paths) > 20


def test_every_route_needs_a_key(server: Served) -> None:
    token = server.keys.token
    wrong: list[dict[str, str]] = [
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer "},
        {"authorization": f"Bearer {token[:-1]}"},
        {"authorization": f"Bearer {token}x"},
        {"authorization": f"Bearer {server.cookie}"},
        {"authorization": f"Basic {token}"},
        {"authorization": token},
        {
            "authorization": f"Bearer {token[::-1]}",
            "cookie": f"whyfor-{server.port}={server.cookie}",
        },
        {"cookie": f"whyfor-{server.port}={token}"},
        {"cookie": f"whyfor-{server.port}="},
        {"cookie": f"whyfor={server.cookie}"},
        {"cookie": f"whyfor-1={server.cookie}"},
    ]
    for path in _paths(server):
        for headers in wrong:
            answer = server.ask(path, **headers)
            assert answer.status == 401, (path, headers)
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert SECRET not in answer.everything
        for method in ("POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND"):
            assert server.ask(path, method).status == 401, (path, method)
        assert server.ask(path + "?token=" + token).status == 401


def test_the_key_opens_every_route(server: Served) -> None:
    cookie = f"other=1; whyfor-{server.port}={server.cookie}; whyfor-2=x"
    for path in _paths(server):
        assert server.get(path).status not in (401, 403, 421), path
        assert server.ask(path, cookie=cookie).status not in (401, 403, 421), path


def test_nothing_can_be_changed_but_by_a_form(server: Served) -> None:
    key = server.bearer["Authorization"]
    for path in _paths(server):
        assert server.ask(path, "POST", authorization=key).status == 403, path
        for method in ("PUT", "PATCH", "DELETE"):
            assert server.ask(path, method, authorization=key).status in (404, 405), path


def test_a_key_is_long_its_owners_alone_and_made_once(server: Served, demo: Demo) -> None:
    path = demo.whyfor_home / "serve.token"
    assert len(server.keys.token) >= 43  # 256 bits
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == server.keys.token


def test_an_upgrade_to_another_protocol_is_not_granted(server: Served) -> None:
    upgrade = {
        "upgrade": "websocket",
        "sec_websocket_key": "x",
        "sec_websocket_version": "13",
        "connection": "upgrade",
    }
    assert server.ask("/api/v1/stream", **upgrade).status == 401


# -- the link ------------------------------------------------------------------------------------


def test_a_link_opens_once(server: Served) -> None:
    link = server.link()
    first = server.ask(link)
    assert (first.status, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
    assert server.ask("/", cookie=cookie.split(";")[0]).status == 200
    assert server.keys.token not in first.everything
    again = server.ask(link)
    assert (again.status, "set-cookie" in again.headers) == (401, False)


def test_a_link_is_refused_when_it_is_old(server: Served, demo: Demo) -> None:
    link = server.link()
    (made,) = (demo.whyfor_home / "serve.links").iterdir()
    assert made.stat().st_mode & 0o777 == 0o600
    assert link.partition("=")[2] not in made.name
    past = time.time() - 61
    os.utime(made, (past, past))
    assert server.ask(link).status == 401
    assert not made.exists()


@pytest.mark.parametrize(
    "code", ["", "x", "../serve.token", "%2e%2e%2fserve.token", "%00", "%ff", "a" * 4000]
)
def test_a_code_nobody_gave_out_opens_nothing(server: Served, demo: Demo, code: str) -> None:
    assert server.ask(f"/open?once={code}").status == 401
    assert (demo.whyfor_home / "serve.token").exists()


def test_looking_ahead_does_not_use_a_link_up(server: Served) -> None:
    link = server.link()
    assert server.ask(link, "HEAD").status == 405
    assert server.ask(link, "POST").status == 405
    assert server.ask(link, sec_purpose="prefetch;prerender").status == 401
    assert server.ask(link, sec_fetch_dest="image").status == 401
    assert server.ask(link, origin="http://evil.example").status == 401
    assert server.ask(link + "&once=x").status == 401
    assert server.ask(link, host=f"evil.example:{server.port}").status == 421
    assert server.ask(link, sec_fetch_dest="document", sec_fetch_site="none").status == 303


def test_a_link_followed_from_another_page_goes_on_by_itself(server: Served) -> None:
    """A redirect would be the other site's doing, and a strict cookie would stay behind."""
    answer = server.ask(server.link(), sec_fetch_dest="document", sec_fetch_site="cross-site")
    assert (answer.status, b'content="0; url=/"' in answer.body) == (200, True)
    assert "set-cookie" in answer.headers


def test_no_answer_holds_a_key(server: Served) -> None:
    cookie = server.cookie
    shown = f"whyfor-{server.port}={cookie}"
    told = [server.get(path, accept="text/html") for path in _paths(server)]
    told += [server.ask(path, accept="text/html", cookie=shown) for path in _paths(server)]
    told += [server.get("/api/v1/health"), server.get("/api/schema"), server.ask("/")]
    for answer in told:
        assert server.keys.token not in answer.everything
        assert cookie not in answer.everything


# -- what every answer says ----------------------------------------------------------------------


def test_every_answer_forbids_what_it_does_not_need(server: Served) -> None:
    answers = [server.get(path, accept="text/html") for path in _paths(server)]
    answers += [
        server.ask("/"),
        server.get("/", host="evil.example"),
        server.ask(server.link()),
        server.get("/", origin="null"),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
        assert parts["default-src"] == "'none'"
        if answer.status in (401, 403, 421):
            assert policy == REFUSED["content-security-policy"]  # it loads nothing at all
        else:
            assert {parts[f"{name}-src"] for name in ("script", "style", "img", "connect")} == {
                "'self'"
            }
            assert (parts["base-uri"], parts["form-action"]) == ("'none'", "'self'")
        assert parts["frame-ancestors"] == "'none'"
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert answer.headers["cache-control"] in ("no-store", "no-cache")
        assert "server" not in answer.headers


def test_an_error_while_an_error_is_told_is_no_bare_answer(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> int:
        raise RuntimeError(SECRET)

    # every page has it in its frame
    monkeypatch.setitem(server.app.templates.globals, "approvals", broken)
    page = server.get("/no/such/place", accept="text/html")
    assert (page.status, page.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert (
        page.headers.items() >= REFUSED.items()
        and "Unexpected" in page.everything
        and SECRET not in page.everything
    )
    # what needs no page is answered as ever
    assert server.get("/api/v1/no/such/place").status == 404


def test_what_is_kept_is_stored_by_no_cache(server: Served) -> None:
    for path in ("/", "/api/v1/sessions", "/api/v1/stream", "/open?once=x", "/nowhere"):
        assert server.get(path).headers["cache-control"] == "no-store"


# -- paths and sizes -----------------------------------------------------------------------------

CLIMBS = [
    "..",
    "../..",
    "..%2f..%2f",
    "%2e%2e%2f%2e%2e%2fserve.token",
    "..%5c..%5cserve.token",
    "....//....//serve.token",
    "%252e%252e%252fserve.token",
    "%00",
    "serve.token%00.css",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "~root",
    "C:%5cwindows",
    "%c0%ae%c0%ae/",
]


def test_no_parameter_of_a_path_leads_to_a_file(server: Served, demo: Demo) -> None:
    canary = "canary-" + "c4f1"
    for folder in (demo.whyfor_home, demo.whyfor_home.parent, demo.home):
        (folder / "canary.txt").write_text(canary)
    climbs = [
        *CLIMBS,
        "../canary.txt",
        "..%2fcanary.txt",
        quote(str(demo.home / "canary.txt"), safe=""),
    ]
    for climb in climbs:
        for path in _climbed(server, climb):
            answer = server.get(path)
            assert answer.status in (200, 400, 404, 405), (path, answer.status)
            for kept in (canary, server.keys.token, "root:x:0"):
                assert kept not in answer.everything, path


def test_these_tests_climb_through_every_parameter(server: Served) -> None:
    paths = _climbed(server, "CLIMB")
    assert {
        "/sessions/claude/CLIMB",
        "/sessions/CLIMB/x",
        "/commits/CLIMB",
        "/static/CLIMB",
    } <= set(paths)
    assert {"/api/v1/sessions/claude/CLIMB/events", "/api/v1/commits/CLIMB"} <= set(paths)


def test_a_folder_is_no_name_of_a_project(server: Served, demo: Demo) -> None:
    """The command line takes a path for a project; a client's words never become one."""
    for folder in (str(demo.repository), "."):
        for path in (
            "/api/v1/sessions?project=",
            "/api/v1/search?q=backoff&project=",
            "/api/v1/stats?project=",
        ):
            assert server.get(path + quote(folder, safe="")).status == 404, path
        page = server.get("/search?q=backoff&project=" + quote(folder, safe=""))
        assert "Retry dropped connections" not in page.everything
    assert "Retry dropped connections" in server.get("/search?q=backoff").everything


def test_what_is_too_big_is_refused_before_it_is_read(server: Served) -> None:
    key = server.bearer["Authorization"]
    assert server.ask("/", authorization=key, content_length=str(1 << 40)).status == 413
    assert server.ask("/", authorization=key, content_length="65537").status == 413
    assert server.ask("/", authorization=key, transfer_encoding="chunked").status == 413
    assert server.ask("/", authorization=key, content_length="-1").status == 400
    assert server.get("/search?q=" + "x" * 9000).status == 414
    assert server.get("/" + "x" * 9000).status == 414
    assert server.ask("/search?q=" + "x" * 9000).status == 414


def test_a_head_without_end_is_cut_off(server: Served) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
        line.sendall(
            f"GET / HTTP/1.1\r\nHost: localhost:{server.port}\r\nX-Long: ".encode() + b"x" * 40_000
        )
        assert line.recv(12) == b"HTTP/1.1 400"


def test_a_request_in_pieces_is_read_as_one(server: Served) -> None:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as line:
        text = (
            f"GET /api/v1/health HTTP/1.1\r\nHost: localhost:{server.port}\r\nConnection: close\r\n"
        )
        for byte in (text + f"Authorization: {server.bearer['Authorization']}\r\n\r\n").encode():
            line.send(bytes([byte]))
        assert line.recv(12) == b"HTTP/1.1 200"


def test_the_demo_has_what_these_tests_look_for(server: Served, shown: object, demo: Demo) -> None:
    assert SECRET in server.get("/api/v1/search?q=backoff").everything
    assert Path(demo.whyfor_home / "whyfor.db").exists()
    assert sessions(shown, SessionFilter(), limit=1, everything=False)  # type: ignore[arg-type]
