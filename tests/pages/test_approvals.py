"""Approvals: what waits, rules and suggestions, the log; answered with a real browser."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import Page, expect

from tests.story.links.workshop import Clock, Repo
from tests.transcripts import Transcript
from whyfor.live.answer_address import answer_key
from whyfor.service.ingest import ingest

from .browser import Site
from .hostile import HOSTILE
from .sessions import asking, now
from .shop import settings_of

RULES = """
mode = "dry-run"
[[rule]]
id = "r1"
run = ["git", "log"]
added = 2026-11-06
[[rule]]
id = "r2"
run = ["wc"]
[[rule]]
id = "r3"
run = ["make", "charts"]
[[rule]]
id = "r4"
run = ["rclone", "sync", "*", "preview:*"]
decision = "deny"
[[rule]]
id = "r5"
run = ["git", "push", "*"]
decision = "ask"
"""
PUBLISH = (
    'make charts && rclone sync build/ preview:harbour-charts --checksum && sh -c "$(cat next.txt)"'
)


class Log:
    """Sessions that asked, and what came of it, as hooks and transcripts tell."""

    def __init__(self, home: Path, whyfor: Path, cwd: str) -> None:
        self.home = home
        self.cwd = cwd
        self.spool = whyfor / "spool"
        self.spool.mkdir(parents=True)
        self.lines: list[bytes] = []

    def session(self, name: str, title: str, ago: int, *asked: tuple[str, str, str]) -> None:
        """`asked`: a command, what the person said, what rules said in the dry run."""
        made = Transcript(name, cwd=self.cwd, live=True, ago=timedelta(hours=ago))
        made.prompt(title)
        for command, said, dry in asked:
            time.sleep(0.002)  # so that it is asked later than what was before
            at = int((time.time() - ago * 3600) * 1000)
            self._tell(made.session_id, command, at, {"answer": dry, "dry": True, "reason": ""})
            time.sleep(0.002)
            no = said == "denied"
            refused = "The user doesn't want to proceed with this tool use."
            made.call("Bash", {"command": command}, refused if no else "ok", failed=no)
        made.save(self.home)

    def _tell(self, name: str, command: str, at: int, answer: dict[str, Any]) -> None:
        header = {"v": 1, "at": at, "agent": "claude", "event": "PermissionRequest"}
        told = {
            "session_id": name,
            "transcript_path": "/home/x/.claude/projects/p/s.jsonl",
            "hook_event_name": "PermissionRequest",
            "tool_name": "Bash",
            "tool_input": {"command": command},
        }
        head = msgspec.json.encode({**header, "cwd": self.cwd, "answer": answer})
        self.lines.append(b"\n" + head + b"\t" + msgspec.json.encode(told) + b"\n")

    def save(self) -> None:
        (self.spool / "2026-11-18.spool").write_bytes(b"".join(self.lines))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("approvals")
    settings = settings_of(folder)
    repo = Repo.made(folder / "shop", Clock())
    repo.commit("Begin", {"a.py": "a = 1\n"})
    settings.home.mkdir(mode=0o700)
    (settings.home / "rules.toml").write_text(RULES)
    (settings.home / "rules.toml").chmod(0o600)
    log = Log(folder / "home", settings.home, str(repo.path))
    for number in range(3):
        commands = [(f"ruff format src/a{each}.py", "allowed", "abstain") for each in range(3)]
        log.session(f"f{number}", "Format it all", 1 + 30 * number, *commands)
    log.session("h", "Split the http module", 2, ("git push origin main", "denied", "ask"))
    log.session("x", "Hostile", 3, *((line, "allowed", "abstain") for line in HOSTILE[:3]))
    log.save()
    ingest(settings)
    with Site(settings) as made:
        yield made


class Waiter:
    """OpenCode's plugin, which asks and waits."""

    def __init__(self, site: Site, command: str) -> None:
        self.body = b""
        payload = {
            "session_id": "oc",
            "cwd": str(site.settings.user_home),
            "tool_name": "bash",
            "tool_input": {"command": command},
        }
        self.line = http.client.HTTPConnection("127.0.0.1", site.port, timeout=60)
        headers = {"Authorization": f"Bearer {answer_key(site.settings)}"}
        self.line.request("POST", "/whyfor/answers/opencode", json.dumps(payload), headers)
        self.thread = threading.Thread(target=self._read)
        self.thread.start()

    def _read(self) -> None:
        with suppress(OSError, http.client.HTTPException):
            self.body = self.line.getresponse().read()
        self.line.close()

    def answer(self) -> Any:
        self.thread.join(30)
        return json.loads(self.body)

    def give_up(self) -> None:
        with suppress(OSError, AttributeError):
            self.line.sock.shutdown(socket.SHUT_RDWR)
        self.thread.join(30)


@pytest.fixture
def waiting(site: Site) -> Iterator[Waiter]:
    (site.settings.home / "hook").mkdir(exist_ok=True)
    made = Waiter(site, "git log --since=monday --oneline | wc -l")
    early = {"since": now() - 100_000}
    late = {"since": now() - 12_000}
    database = 'sqlite3 ~/.cache/tidewatch/tides.db \\\n  "ALTER TABLE tides ADD COLUMN at TEXT"'
    site.hub.stand(
        [
            asking("Say how old a tide table is", database, status=early),
            asking("Publish the page of chart symbols", PUBLISH, agent="gemini", status=late),
            asking("Lint it", "ruff check src | tail -5", status=late),
        ]
    )
    yield made
    site.hub.stand([])
    made.give_up()


def test_the_page_shows_what_waits_rules_suggestions_and_the_log(
    site: Site,
    page: Page,
    waiting: Waiter,
    axe: Callable[[Page], None],
    shoot: Callable[[Page, str], None],
) -> None:
    site.open(page, "/approvals")
    cards = page.locator(".req")
    expect(cards).to_have_count(4)
    publish = cards.filter(has_text="chart symbols")
    expect(publish).to_contain_text("takes no answer from here")
    expect(publish.locator(".part")).to_have_count(4)
    expect(publish.locator(".part", has_text="rclone")).to_contain_text("denied")
    expect(publish).to_contain_text("would have been refused")
    expect(cards.filter(has_text="git log").locator(".part-yes")).to_have_count(2)
    lint = cards.filter(has_text="Lint it")
    expect(lint.get_by_role("button", name="Make a rule for ruff check")).to_be_visible()
    expect(page.locator(".sug")).to_contain_text("ruff format")
    expect(page.locator(".sug")).to_contain_text("allowed 9 times")
    log = page.locator(".tbl-log")
    row = log.locator("tr").filter(has_text="git push origin main")
    expect(row).to_contain_text("denied")
    expect(row).to_contain_text("you, in the terminal")
    axe(page)
    shoot(page, "approvals")


def test_an_answer_reaches_the_agent_without_script_too(
    site: Site, plain: Page, waiting: Waiter
) -> None:
    site.open(plain, "/approvals")
    time.sleep(0.6)  # the buttons do nothing in the first half second
    plain.locator(".req", has_text="git log").get_by_role("button", name="Allow once").click()
    expect(plain.locator(".banner-done")).to_contain_text("Allowed, once.")
    assert waiting.answer() == {"behavior": "allow"}


def test_what_was_answered_elsewhere_stays_a_moment_and_says_so(site: Site, page: Page) -> None:
    site.hub.stand([asking("Lint it", "ruff check src | tail -5")])
    site.open(page, "/approvals")
    expect(page.locator(".live")).to_have_attribute("data-live", "on")
    card = page.locator(".req", has_text="Lint it")
    expect(card).to_be_visible()
    site.hub.stand([])
    expect(card).to_contain_text("Answered elsewhere")
    expect(card.locator("form")).to_have_count(0)
    expect(card).to_have_count(0)
    expect(page.locator("#waiting")).to_contain_text("Nobody waits for you.")


def test_a_suggestion_goes_to_the_agents_own_settings_after_it_was_asked_again(
    site: Site, page: Page
) -> None:
    site.open(page, "/approvals")
    page.get_by_role("button", name="Add to Claude Code's settings").first.click()
    settings = site.settings.user_home / ".claude" / "settings.json"
    form = page.locator("#rule form")
    expect(form).to_contain_text("allows every option")
    assert not settings.exists()
    form.get_by_role("button", name="Allow these commands").click()
    expect(page.locator(".banner-done")).to_contain_text("the agent's own settings")
    assert "Bash(ruff format:*)" in settings.read_text()
