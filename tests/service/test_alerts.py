"""Alerts: what of all that needs a person is sent, when, and to whom."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import time_machine

from tests.cases import check_each
from tests.conftest import missing_part
from tests.service.test_notify import Told, told
from whyfor.config import Settings, load
from whyfor.live.notify import NotifySettings, Terminal
from whyfor.live.push import push, ring_text
from whyfor.model.attention import CAUSES, Concern, Firing
from whyfor.model.errors import BadInput
from whyfor.privacy.samples import expand
from whyfor.service.alerts import alert_ways, try_alerts
from whyfor.story.attention.alerts import AlertGate, parse_hours

__all__ = ["told"]
# Apprise imports what Python 3.13 has no more.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
NOW = 1_777_629_600_000


def firing(cause: str, session: str = "s", fact: str = "It is so.", **more: Any) -> Firing:
    found = Concern(cause=cause, key="1", at=NOW, fact=fact, evidence="e", step="Do it.", **more)
    return Firing(agent="claude", session_id=session, found=found, told_at=NOW)


class Receiver(HTTPServer):
    """Takes what is posted to it on this machine; the first answers may be errors."""

    def __init__(self, errors: int = 0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posted: list[dict[str, Any]] = []
        self.errors = errors
        self.asked = 0
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"json://127.0.0.1:{self.server_port}/alerts"

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked += 1
        if self.server.asked <= self.server.errors:
            self.send_response(503)
        else:
            self.server.posted.append(body)
            self.send_response(200)
        self.end_headers()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    if find_spec("apprise") is None:
        missing_part("ALERTS NOT TESTED: apprise is not installed")
    made = Receiver()
    yield made
    made.stop()


# -- what is sent --------------------------------------------------------------------------------


def test_what_needs_a_person_is_sent_with_its_next_step(told: Told) -> None:
    told.watcher.attend([], [firing("wall", fact="rm: refused 3 times.")])
    (notice,) = told.all()
    assert (notice["status"], notice["level"]) == ("attention", "act")
    assert notice["text"] == "rm: refused 3 times. Do it."


def test_levels_mutes_and_open_sessions_are_respected(told: Told) -> None:
    told.looked_at.add("claude:open")
    told.watcher.attend(
        [],
        [
            firing("done"),
            firing("wall", "open"),
            firing("asks", level="look"),
            firing("quiet", "kept"),
        ],
    )
    assert [notice["session"] for notice in told.all()] == ["claude:kept"]


def test_a_turn_that_stopped_is_told_once(told: Told) -> None:
    told.watcher.attend([], [firing("sign-in")])
    told.watcher.attend([], [firing("retrying")])
    assert len(told.all()) == 1


def test_secrets_do_not_leave(told: Told) -> None:
    secret = expand("ghp_{A36}")
    told.watcher.attend([], [firing("asks", fact=f"Use {secret}?", level="act")])
    (notice,) = told.all()
    assert secret not in json.dumps(notice) and "Use " in notice["text"]


def test_three_sessions_with_one_cause_are_one_alert() -> None:
    gate = AlertGate()
    at_once = gate.pick([firing("limit", name) for name in "abc"], NOW)
    assert [len(group.firings) for group in at_once] == [3]
    assert gate.pick([firing("limit", "d")], NOW + 60_000) == []
    apart = AlertGate()
    sizes = [
        [len(group.firings) for group in apart.pick([firing("limit", name)], NOW + at)]
        for at, name in enumerate("abcd")
    ]
    assert sizes == [[1], [1], [3], []]
    late = apart.pick([firing("limit", "e")], NOW + 200_000)
    assert [len(group.firings) for group in late] == [1]


def test_quiet_hours() -> None:
    cases = {
        "22:00-07:00 at 23:10": ("22:00-07:00", "23:10", True),
        "22:00-07:00 at 06:59": ("22:00-07:00", "06:59", True),
        "22:00-07:00 at 07:00": ("22:00-07:00", "07:00", False),
        "12:00 – 13:30 at 13:00": ("12:00 – 13:30", "13:00", True),
        "12:00-13:30 at 11:59": ("12:00-13:30", "11:59", False),
    }

    def check(case: tuple[str, str, bool]) -> None:
        hours = parse_hours(case[0])
        assert hours is not None
        assert hours.holds(datetime.fromisoformat(f"2026-05-01T{case[1]}")) is case[2]

    check_each(cases.items(), check)
    for wrong in ("late", "25:00-07:00", "22:00"):
        with pytest.raises(ValueError, match="not two times"):
            parse_hours(wrong)


def test_at_night_only_what_is_wished_for_is_sent() -> None:
    night = datetime.fromisoformat("2026-05-01T23:00")
    wished = NotifySettings(quiet="22:00-07:00")
    assert wished.is_quiet("act", night) and wished.is_quiet("look", night)
    wished = NotifySettings(quiet="22:00-07:00", quiet_act=True)
    assert not wished.is_quiet("act", night) and wished.is_quiet("look", night)


def test_nothing_is_sent_in_quiet_hours(told: Told) -> None:
    told.configure([sys.executable, str(told.program), str(told.file)], 'quiet = "00:00-23:59"')
    with time_machine.travel(datetime.fromisoformat("2026-05-01T12:00"), tick=True):
        told.watcher.attend([], [firing("wall")])
        assert told.all() == []


# -- to whom -------------------------------------------------------------------------------------


def test_a_service_gets_what_apprise_sends(settings: Settings, receiver: Receiver) -> None:
    settings.home.mkdir(parents=True, exist_ok=True)
    (settings.home / "config.toml").write_text(f'[notify]\nurl = ["{receiver.url}"]\n')
    report = try_alerts(load(settings.env), lambda _: None)
    assert [(way.way, way.to, way.error) for way in report.ways] == [("url", "json://…", None)]
    (posted,) = receiver.posted
    assert posted["title"] == "Test" and "This is a test" in posted["message"]
    (settings.home / "config.toml").write_text('[notify]\nurl = ["bogus://topsecret"]\n')
    (way,) = alert_ways(load(settings.env)).ways
    assert "bogus://… is not an address" in (way.error or ""), "seen before an alert is lost"


def test_a_service_that_fails_is_asked_three_times(receiver: Receiver) -> None:
    receiver.errors = 2
    assert push([receiver.url], "head", "body", pause=0) == []
    receiver.errors, receiver.asked = 9, 0
    assert push([receiver.url], "head", "body", pause=0) == [
        "json://… did not take the alert, 3 times"
    ]
    assert receiver.asked == 3
    wrong = push(["nosuch://key"], "head", "body", pause=0)
    assert wrong == ["[notify] url: nosuch://… is not an address that Apprise knows"]


def test_a_terminal_rings(told: Told) -> None:
    heard: list[str] = []
    told.configure([], 'terminal = ["bell", "osc777"]')
    told.watcher._terminal = Terminal(heard.append, alone=True)
    told.watcher.attend([], [firing("wall", fact="a;b\x1b]0;x\x07c")])
    told.all()
    (text,) = heard
    assert text.startswith("\a\x1b]777;notify;Blocked;") and text.endswith("\x1b\\")
    assert text.count("\x1b") == 2 and text.count("\a") == 1
    assert ring_text(("osc9",), "h", "b") == "\x1b]9;h: b\x1b\\"


def test_ways_are_listed_without_their_keys(settings: Settings, tmp_path: Path) -> None:
    settings.home.mkdir(parents=True, exist_ok=True)
    file = settings.home / "config.toml"
    file.write_text('[notify]\nurl = ["ntfy://topsecret"]\nterminal = ["bell"]\n')
    report = alert_ways(load(settings.env))
    assert [(way.way, way.to) for way in report.ways] == [("url", "ntfy://…"), ("terminal", "bell")]
    file.write_text('[notify]\nquiet = "late"\n')
    with pytest.raises(BadInput, match="not two times of day"):
        alert_ways(load(settings.env))
    file.write_text("")
    with pytest.raises(BadInput, match="no way to send alerts"):
        try_alerts(load(settings.env), lambda _: None)


def test_every_cause_has_a_level_and_a_word() -> None:
    assert all(cause.word and cause.level for cause in CAUSES.values())
