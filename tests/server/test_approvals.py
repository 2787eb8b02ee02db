"""Answers from the browser: for one request, once, by somebody who is signed in, and never in the
way of the person's own dialog."""

from __future__ import annotations

import http.client
import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from tests.cases import check_each
from tests.server.wire import Answer, Served, served
from tests.transcripts import Transcript
from whyfor import config
from whyfor.live.answer_address import answer_key
from whyfor.model.approvals import ApprovalQuery, action_digest
from whyfor.service.approvals import list_approvals
from whyfor.service.ingest import ingest

FORM = "application/x-www-form-urlencoded"
PATH = "/whyfor/answers/claude"


class Office:
    """A home with an interactive session of Claude Code, a server, and a browser's key to it."""

    def __init__(self, folder: Path, server: Served, settings: config.Settings) -> None:
        self.server = server
        self.settings = settings
        self.folder = folder
        self.key = answer_key(settings)
        given = server.ask(server.link()).headers["set-cookie"]
        self.cookie = given.partition(";")[0]
        until = int(self.cookie.partition("=")[2].partition(".")[0])
        self.token = server.app.guard.start.make_form_token(until)

    def payload(self, command: str, session: str = "s-1") -> dict[str, Any]:
        return {
            "session_id": session,
            "cwd": str(self.folder),
            "hook_event_name": "PermissionRequest",
            "tool_name": "Bash",
            "tool_input": {"command": command},
        }

    def ask(self, command: str, session: str = "s-1", key: str | None = None) -> Waiter:
        return Waiter(self, self.payload(command, session), self.key if key is None else key)

    def page(self) -> str:
        answer = self.server.ask("/approvals", cookie=self.cookie)
        assert answer.status == 200, answer.everything
        return answer.body.decode()

    def request(self) -> tuple[str, str]:
        """Wait until the page has a form, and return where it goes and the command's digest."""
        found = None

        def is_there() -> bool:
            nonlocal found
            found = re.search(
                r'action="(/approvals/[^"]+/answer)".*?name="digest" value="([0-9a-f]+)"',
                self.page(),
                re.S,
            )
            return found is not None

        await_that(is_there)
        assert found
        return found[1], found[2]

    def post(self, path: str, fields: dict[str, str], **headers: str | None) -> Answer:
        body = urlencode({"form": self.token, **fields})
        told: dict[str, str | None] = {
            "host": f"127.0.0.1:{self.server.port}",
            "origin": self.server.url,
            "cookie": self.cookie,
            "content-type": FORM,
            "content-length": str(len(body)),
            "connection": "close",
            **headers,
        }
        lines = [f"POST {path} HTTP/1.1", *(f"{n}: {v}" for n, v in told.items() if v is not None)]
        return self.server.raw("\r\n".join([*lines, "", body]).encode())


class Waiter:
    """An agent that asks and waits in a thread, as Claude Code does."""

    def __init__(self, office: Office, payload: Any, key: str) -> None:
        self.status = 0
        self.body = b""
        self.line = http.client.HTTPConnection("127.0.0.1", office.server.port, timeout=60)
        raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        self.line.request("POST", PATH, raw, headers)
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        answer = self.line.getresponse()
        self.status, self.body = answer.status, answer.read()
        self.line.close()

    def answer(self) -> Any:
        self.thread.join(60)
        assert not self.thread.is_alive()
        return json.loads(self.body)


def await_that(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def behaviour(answer: Any) -> str:
    return str(answer["hookSpecificOutput"]["decision"]["behavior"])


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder = tmp_path_factory.mktemp("office")
    home = folder / "home"
    made = Transcript("s-1", cwd=str(folder), day=time.strftime("%Y-%m-%d"))
    made.prompt("Publish the charts")
    home.mkdir()
    made.save(home)
    listed = home / ".claude" / "sessions"
    listed.mkdir(parents=True)
    process = {"pid": os.getpid(), "sessionId": "s-1", "cwd": str(folder), "kind": "interactive"}
    (listed / f"{os.getpid()}.json").write_text(json.dumps({**process, "status": "waiting"}))
    settings = config.load({"HOME": str(home), "WHYFOR_HOME": str(folder / "whyfor")})
    ingest(settings)
    with served(settings, beside=True) as server:
        yield Office(folder, server, settings)


def test_a_request_is_allowed_once_and_that_is_on_record(office: Office) -> None:
    waiter = office.ask("make charts")
    path, digest = office.request()
    assert "make charts" in office.page()
    done = office.post(path, {"word": "allow", "digest": digest})
    assert done.status == 303, done.everything
    assert behaviour(waiter.answer()) == "allow"
    again = office.post(path, {"word": "deny", "digest": digest})
    assert again.status == 400 and b"answered already" in again.body
    spool = b"".join(p.read_bytes() for p in (office.settings.home / "spool").glob("*.spool"))
    assert b'"by":"browser","answer":"allow"' in spool
    assert b"make charts" not in spool, "what was asked is told by the hook, if it may be"


def test_a_denied_request_tells_the_agent_so(office: Office) -> None:
    waiter = office.ask("make charts")
    path, digest = office.request()
    assert office.post(path, {"word": "deny", "digest": digest}).status == 303
    assert behaviour(waiter.answer()) == "deny"


def test_only_a_form_of_the_page_with_what_was_shown_answers(office: Office) -> None:
    waiter = office.ask("make charts")
    path, digest = office.request()
    right = {"word": "allow", "digest": digest}
    now = str(time.time_ns() // 1_000_000 + 60_000)
    cases: list[tuple[str, tuple[dict[str, str], dict[str, str | None]]]] = [
        ("another command", ({**right, "digest": "0" * 24}, {})),
        ("no word", ({"digest": digest}, {})),
        ("a word nobody knows", ({**right, "word": "always"}, {})),
        ("too quick", ({**right, "shown": now}, {})),
        ("no token", ({**right, "form": ""}, {})),
        ("another origin", (right, {"origin": "http://evil.example"})),
        ("no origin", (right, {"origin": None})),
        ("not signed in", (right, {"cookie": None})),
        ("a bearer token", (right, {"authorization": f"Bearer {office.server.keys.token}"})),
        ("the hook's key", (right, {"authorization": f"Bearer {office.key}", "cookie": None})),
    ]

    def check(case: tuple[dict[str, str], dict[str, str | None]]) -> None:
        assert office.post(path, case[0], **case[1]).status >= 400

    check_each(cases, check)
    assert waiter.thread.is_alive(), "nothing of this was an answer"
    assert office.server.ask(path, cookie=office.cookie).status in (404, 405), "never with GET"
    assert office.post(path, right).status == 303
    assert behaviour(waiter.answer()) == "allow"


def test_what_no_rule_can_allow_needs_the_programs_name(office: Office) -> None:
    waiter = office.ask("git push origin main")
    path, digest = office.request()
    right = {"word": "allow", "digest": digest}
    assert office.post(path, right).status == 400
    assert office.post(path, {**right, "typed": "push"}).status == 400
    assert office.post(path, {**right, "typed": "git"}).status == 303
    assert behaviour(waiter.answer()) == "allow"


def test_an_edit_is_shown_with_what_it_changes_and_the_answer_is_bound_to_that(
    office: Office,
) -> None:
    payload = office.payload("")
    payload["tool_name"] = "Edit"
    edit = {"file_path": "/p/app.py", "old_string": "port = 80", "new_string": "port = 8080"}
    payload["tool_input"] = edit
    waiter = Waiter(office, payload, office.key)
    path, shown = office.request()
    page = office.page()
    assert "/p/app.py" in page
    assert "-port = 80\n+port = 8080" in page
    right = {"word": "allow", "digest": shown}
    assert office.post(path, {**right, "digest": action_digest("/p/app.py")}).status == 400
    assert office.post(path, right).status == 303
    assert behaviour(waiter.answer()) == "allow"


def test_an_edit_of_what_runs_later_needs_the_files_name(office: Office) -> None:
    payload = office.payload("")
    payload["tool_name"] = "Write"
    payload["tool_input"] = {"file_path": "/p/.github/workflows/ci.yml", "content": "on: push"}
    waiter = Waiter(office, payload, office.key)
    path, shown = office.request()
    assert "+on: push" in office.page()
    right = {"word": "allow", "digest": shown}
    assert office.post(path, right).status == 400
    assert office.post(path, {**right, "typed": "ci.yml"}).status == 303
    assert behaviour(waiter.answer()) == "allow"


def test_an_agent_without_the_key_or_without_a_person_never_waits(office: Office) -> None:
    assert office.ask("make charts", session="headless").answer() == {}
    for wrong in ("", "x", office.server.keys.token):
        waiter = office.ask("make charts", key=wrong)
        waiter.thread.join(60)
        assert waiter.status in (401, 403)
    for raw in (b"", b"[", b"[1]", b"{}", b'{"session_id": 3}'):
        assert Waiter(office, raw, office.key).answer() == {}
    assert office.post(PATH, {}).status == 403, "a browser is no agent"


def test_answers_are_joined_to_their_requests(office: Office) -> None:
    """The hook tells of the request, the server of the answer, the transcript of the result."""
    home = office.settings.home
    at = int(time.time() * 1000)
    header = {"v": 1, "at": at, "agent": "claude", "event": "PermissionRequest", "cwd": "/p"}
    told = {
        **office.payload("touch sealed"),
        "transcript_path": "/home/x/.claude/projects/p/s.jsonl",
    }
    line = msgspec.json.encode(header) + b"\t" + msgspec.json.encode(told) + b"\n"
    waiter = office.ask("touch sealed")
    path, digest = office.request()
    with (home / "spool" / "2026-11-18.spool").open("ab") as spool:
        spool.write(b"\n" + line)
    assert office.post(path, {"word": "allow", "digest": digest}).status == 303
    assert behaviour(waiter.answer()) == "allow"
    ingest(office.settings)
    assert _decided(office) == ("waiting", "unknown"), "until the call returns"


def _decided(office: Office) -> tuple[str, str]:
    rows = list_approvals(office.settings, ApprovalQuery()).rows
    (found,) = [row.decision for row in rows if row.decision.action == "touch sealed"]
    return found.decision, found.by
