"""Now: groups by status, the exact command, live changes that do not disturb whoever is at the
page."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.transcripts import Transcript
from whyfor import config
from whyfor.config import Settings
from whyfor.demo import build
from whyfor.model.query import Filters
from whyfor.model.sessions import Session
from whyfor.model.status import LiveStatus, PendingApproval, Summary
from whyfor.service.ingest import ingest
from whyfor.service.pause import Scope, pause
from whyfor.store.open import reading
from whyfor.story.status.inputs import StatusInput, of_event
from whyfor.story.status.judge import fold_inputs, judge_status
from whyfor.story.status.state import apply

from .browser import NARROW, Complaints, Site, hide, no_sideways, tab, unheard
from .conftest import Home
from .hostile import EVERYTHING, HOSTILE
from .sessions import asking, now, standing
from .shop import settings_of

COMMAND = (
    'psql -c "ALTER TABLE charges ADD COLUMN key text" \\\n  && '
    + "echo done; " * 40
    + "rm -rf ./build"
)


@pytest.fixture
def stand(site: Site) -> Iterator[Callable[..., None]]:
    """Says what sessions do, as the watcher would; afterwards none is there."""
    yield lambda *standings: site.hub.stand(standings)
    site.hub.stand([])


@pytest.fixture(scope="module")
def kept(demo: Home) -> list[Session]:
    """The demo's sessions, newest first."""
    with reading(demo.settings) as library:
        return library.sessions.matching(Filters(), limit=None, subagents=False)


def real(session: Session, phase: str, **facts: object) -> LiveStatus:
    return msgspec.structs.replace(standing(session.session_id, phase, **facts), session=session)  # type: ignore[arg-type]


def group(page: Page, key: str) -> list[str]:
    return page.locator(f".group-{key} .card-title").all_inner_texts()


def live(page: Page) -> None:
    expect(page.locator(".live")).to_have_attribute("data-live", "on")


# -- what it shows -------------------------------------------------------------------------------


def test_sessions_stand_in_groups_with_approvals_first(
    site: Site, page: Page, stand: Callable[..., None]
) -> None:
    stand(
        standing("runs", "running", status={"activity": "Bash: make test"}),
        standing("waits", "waiting"),
        standing("rests", "idle"),
        standing(
            "unread", "idle", project=None, cwd="/code/tides", status={"heard_at": now() - 60_000}
        ),
        standing("ended", "exited", status={"heard_at": now() - 90_000}),
        asking("asked late", "ls", status={"since": now() - 5_000}),
        asking("asked early", "pwd", status={"since": now() - 500_000}),
    )
    site.open(page)
    assert page.locator("section[data-key] > h2 .status").all_inner_texts() == [
        "Needs approval",
        "Waiting for you",
        "Running",
        "Idle and ended",
    ]
    assert group(page, "ask") == ["asked early", "asked late"]
    assert group(page, "wait") == ["waits"] and group(page, "run") == ["runs"]
    assert [one.strip() for one in page.locator(".row .row-title").all_inner_texts()] == [
        "rests",
        "unread",
        "ended",
    ]
    assert page.locator(".row .status").all_inner_texts() == ["Idle", "Idle", "Exited"]
    assert page.locator(".row .row-where").all_inner_texts() == [
        "acme/checkout",
        "/code/tides",
        "acme/checkout",
    ]
    assert (
        "2 need approval, 1 waits for you, 1 is running. 6 open sessions in 2 projects."
        in page.locator(".lede").inner_text().replace("\n", " ")
    )
    assert page.title() == "(2) Now · Whyfor"
    expect(page.locator("[data-approvals]")).to_have_text("2 need approval")


def test_a_card_says_who_where_and_what(
    site: Site, page: Page, kept: list[Session], stand: Callable[..., None]
) -> None:
    status = {"activity": "Bash: python -m pytest", "activity_at": now() - 41_000}
    words = Summary("Bash: python -m pytest", "read the log", "Put that into the readme.")
    stand(msgspec.structs.replace(real(kept[0], "running", status=status), summary=words))
    site.open(page)
    card = page.locator(".card")
    assert card.locator(".agent-mark").get_attribute("title") == "Claude Code"
    assert card.locator(".card-where").inner_text().split() == [
        "harbour/tidewatch",
        "branch",
        "main",
        "claude-demo-1",
    ]
    assert card.locator(".doing-verb").inner_text() == "Bash"
    assert card.locator(".doing code").inner_text() == "python -m pytest"
    # it goes on
    expect(card.locator(".doing-time")).to_have_text(re.compile(r"^(4[2-9]|[5-9]\d) s$"))
    # as the session stands
    assert card.locator("dd.said").inner_text() == "Put that into the readme."
    assert card.locator("dd.clamp").inner_text() == "read the log"
    assert (
        "Turn 2" in card.locator(".card-foot").inner_text()
        and "61k tokens" in card.locator(".card-foot").inner_text()
    )
    card.locator(".card-title a").click()
    page.wait_for_url(f"**/sessions/claude/{kept[0].session_id}")


def test_the_command_that_waits_for_an_answer_is_shown_whole(
    site: Site, page: Page, stand: Callable[..., None]
) -> None:
    stand(asking("asks", COMMAND, cwd="/home/ada/checkout"))
    for size in (None, NARROW):
        if size:
            page.set_viewport_size(size)  # type: ignore[arg-type]
        site.open(page)
        shown = page.locator(".ask-cmd code")
        assert shown.inner_text() == COMMAND
        box = page.locator(".ask-cmd").evaluate(
            "e => [e.scrollWidth <= e.clientWidth, e.scrollHeight <= e.clientHeight]"
        )
        assert box == [True, True], "a part of it is hidden"
        no_sideways(page)
    assert (
        page.locator(".ask-where").inner_text()
        == "in /home/ada/checkout · answer in its terminal, pid 48213"
    )
    assert page.locator(".ask button, .ask a").count() == 0, "the page watches; it does not approve"


def test_a_very_long_command_is_folded_and_whole_all_the_same(tmp_path: Path, page: Page) -> None:
    command = (
        "cat > notes <<'END'\n"
        + "".join(f"line {number}\u200b of it\n" for number in range(2000))
        + "END\n"
    )
    transcript = Transcript("asks")
    transcript.prompt("Write it all down.")
    transcript.block(
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": command}}
    )
    transcript.save(tmp_path)
    settings = config.load(
        {**os.environ, "HOME": str(tmp_path), "WHYFOR_HOME": str(tmp_path / "kept")}
    )
    ingest(settings)
    with reading(settings) as library:
        (session,) = library.sessions.matching(Filters(), limit=None, subagents=False)
        seen = fold_inputs(of_event(event) for event in library.conversation.events(session.id))
    asked = judge_status(
        apply(seen, StatusInput("asked", now(), "PermissionRequest hook", "hook", tool="Bash")),
        now(),
    ).approval
    assert asked and asked.cut and len(asked.action or "") < len(command)
    with Site(settings) as site:
        site.hub.stand([real(session, "waiting_approval", status={"approval": asked})])
        site.open(page)
        assert "than is kept here" not in page.locator(".ask").inner_text()
        begun, rest = page.locator(".ask-cmd code").all()
        assert begun.is_visible() and not rest.is_visible()
        page.locator(".ask-rest summary").click()
        assert rest.is_visible()
        shown = "".join(one.text_content() or "" for one in (begun, rest))
        assert shown == command.replace("\u200b", "U+200B")
        no_sideways(page)
        page.goto("about:blank")


def test_nothing_in_a_command_is_invisible(
    site: Site, page: Page, stand: Callable[..., None]
) -> None:
    stand(asking("asks", "echo ok\u202e #hidden\u200b\x1b[8m; rm -rf /"))
    site.open(page)
    assert page.locator(".unseen").all_inner_texts() == ["U+202E", "U+200B", "U+001B"]
    assert page.locator(".ask-cmd").inner_text().replace("\n", "").endswith("; rm -rf /")


@pytest.mark.parametrize(
    ("approval", "words"),
    [
        (PendingApproval("permission", 0, "Bash", "ls"), "Wants to run a command"),
        (
            PendingApproval("permission", 0, "Edit", "x", "/home/ada/checkout/a.py"),
            "Wants to change a file",
        ),
        (
            PendingApproval("permission", 0, "Edit", "x", "/etc/passwd"),
            "Wants to write outside its folder",
        ),
        (
            PendingApproval("permission", 0, "Read", "x", "/home/ada/checkouts/a.py"),
            "Wants to read outside its folder",
        ),
        (PendingApproval("permission", 0, "mcp__db__query", "{}"), "Wants to use mcp__db__query"),
        (PendingApproval("plan", 0, "ExitPlanMode", "1. do it"), "Wants you to agree to its plan"),
        (PendingApproval("permission", 0), "Wants to use a tool"),
        (
            PendingApproval("permission", 0, "Bash", "ls", cut=True),
            "There is more of it than is kept here.",
        ),
        (
            PendingApproval("permission", 0, "Bash", "ls", certain=False),
            "Several of its calls could be meant",
        ),
        (PendingApproval("permission", 0, "Bash"), "It has not told yet what exactly."),
    ],
)
def test_what_is_asked_is_said_in_words(
    site: Site, page: Page, stand: Callable[..., None], approval: PendingApproval, words: str
) -> None:
    stand(asking("asks", "", status={"approval": approval}))
    site.open(page)
    assert words in page.locator(".ask").inner_text()


def test_a_question_and_its_options(
    site: Site, page: Page, kept: list[Session], stand: Callable[..., None]
) -> None:
    asked = next(each for each in kept if each.title and "Retry" in each.title)
    stand(
        real(
            asked,
            "waiting",
            status={"questions": ["What should happen when a harbour stays silent?"]},
        )
    )
    site.open(page)
    assert (
        page.locator(".question-text").inner_text()
        == "What should happen when a harbour stays silent?"
    )
    assert page.locator(".options li").all_inner_texts() == [
        "Name the harbour",
        "Return the last table",
        "Exit quietly",
    ]


def test_failed_is_a_sort_of_waiting_or_ended(
    site: Site, page: Page, stand: Callable[..., None]
) -> None:
    failed = {"failed": "model API answered 529 three times"}
    stand(standing("stopped", "waiting", status=failed), standing("gone", "exited", status=failed))
    site.open(page)
    assert failed["failed"] in page.locator(".group-wait .card").inner_text()
    assert page.locator(".row .status").inner_text() == "Failed"
    assert failed["failed"] in page.locator(".row .row-note").inner_text()


# Chromium sends a pointermove also when the page changes under a pointer that stands still.
WATCH_POINTER = "addEventListener('pointermove', (event) => (window.seen = event), { once: true })"
STILL_POINTER = """
  const { screenX, screenY } = window.seen;
  dispatchEvent(new PointerEvent('pointermove', { screenX, screenY }));
"""


def test_a_tooltip_comes_with_hover_and_focus_and_goes_with_escape(
    site: Site, page: Page, kept: list[Session], stand: Callable[..., None]
) -> None:
    other = standing("other", "exited", status={"heard_at": now() - 9000})  # below the row
    stand(real(kept[0], "idle"), other, standing("busy", "running"))
    site.open(page)
    page.evaluate(WATCH_POINTER)
    row, tip = page.locator(".row").first, page.locator(".row .tip").first
    expect(tip).to_be_hidden()
    row.hover()
    expect(tip).to_be_visible()
    assert [one.strip() for one in tip.locator("dt").all_inner_texts()] == [
        "Current",
        "Recent",
        "Prompt",
    ]
    under = row.bounding_box(), tip.bounding_box()
    assert under[0] and under[1] and under[1]["y"] >= under[0]["y"] + under[0]["height"] - 6, (
        "it covers its row"
    )
    page.keyboard.press("Escape")
    expect(tip).to_be_hidden()
    page.evaluate(STILL_POINTER)
    expect(tip).to_be_hidden()
    page.mouse.move(2, 2)
    page.keyboard.press("j")  # the card that runs
    page.keyboard.press("j")
    expect(tip).to_be_visible()
    assert row.get_attribute("aria-describedby") == tip.get_attribute("id")


def test_capture_per_agent(demo: Home, site: Site, page: Page) -> None:
    site.open(page)
    items = page.locator(".health-item")
    assert items.locator(".agent-name").all_inner_texts() == [
        "Claude Code",
        "Codex",
        "Gemini CLI",
        "Copilot CLI",
        "OpenCode",
    ]
    states = items.locator(".health-state").all_inner_texts()
    assert states[0].endswith("min ago") and states[2:] == ["nothing captured"] * 3


def test_filters_leave_one_agent_or_project(
    site: Site, page: Page, stand: Callable[..., None]
) -> None:
    stand(
        standing("one", "waiting"),
        standing("two", "waiting", agent="codex"),
        standing("three", "waiting", agent="codex", project="example.com/acme/infra"),
    )
    site.open(page)
    page.locator("select[name=agent]").select_option("codex")
    page.wait_for_url("**agent=codex**")
    assert sorted(group(page, "wait")) == ["three", "two"]
    page.locator("select[name=project]").select_option("example.com/acme/infra")
    page.wait_for_url("**infra**")
    assert group(page, "wait") == ["three"]
    live(page)
    stand(
        standing("one", "running"),
        standing("two", "running", agent="codex"),
        standing("three", "running", agent="codex", project="example.com/acme/infra"),
    )
    # what comes live is filtered too
    expect(page.locator(".group-run .card-title")).to_have_text(["three"])


def test_what_is_over_is_cut_to_a_few_rows(
    site: Site, page: Page, stand: Callable[..., None]
) -> None:
    over = [standing(f"s{number}", "exited") for number in range(30)]
    stand(standing("busy", "running"), *over)
    site.open(page)
    expect(page.locator(".row")).to_have_count(12)
    page.get_by_role("link", name="All of the last day").click()
    expect(page.locator(".row")).to_have_count(30)
    page.get_by_role("link", name="All sessions today").click()
    expect(page.locator("h1")).to_have_text("Sessions")
    assert "since=today" in page.url


# -- without anything ----------------------------------------------------------------------------


def test_a_question_that_nobody_answered_can_be_picked_up(tmp_path: Path, page: Page) -> None:
    settings = settings_of(tmp_path)
    folder = tmp_path / "home" / "notes"
    folder.mkdir(parents=True)
    asks = Transcript("asks", cwd=str(folder), live=True)
    asks.prompt("Publish the sheets")
    question = {"questions": [{"question": "To which server?", "options": [{"label": "ours"}]}]}
    asks.block({"type": "tool_use", "id": "toolu_1", "name": "AskUserQuestion", "input": question})
    asks.save(tmp_path / "home")
    ingest(settings)
    with Site(settings) as site:
        site.open(page, "/")
        expect(page.locator("#g-pick")).to_contain_text("Pick up")
        thread = page.locator(".thread")
        expect(thread).to_contain_text("To which server?")
        shown = thread.locator(".cmd-text").inner_text()
        assert shown.startswith("cd ") and asks.session_id in shown
        assert thread.locator("[data-copy]").get_attribute("data-copy") == shown


def test_nothing_runs(site: Site, page: Page, axe: Callable[[Page], None]) -> None:
    site.open(page, "/")
    expect(page.locator(".lede")).to_contain_text("Nothing runs. An agent was last active")
    expect(page.locator(".today")).to_contain_text("Sessions")
    axe(page)


def test_the_first_look_is_at_a_day(site: Site, page: Page) -> None:
    site.open(page, "/")
    expect(page.locator(".today .health-title")).to_have_text("Last 24 hours")
    expect(page.locator("#g-away")).to_contain_text("In the last 24 hours")


def test_since_you_last_looked_begins_with_the_visit_before(site: Site, page: Page) -> None:
    name = f"whyfor-looked-{site.port}"
    long_ago = int(now() / 1000) - 7 * 86_400
    page.context.add_cookies([{"name": name, "value": f"0.{long_ago}", "url": site.url}])
    for _ in range(2):  # a second look is of the same visit
        site.open(page, "/")
        expect(page.locator("#g-away")).to_contain_text("Since you last looked")
    kept = {cookie.get("name"): cookie for cookie in page.context.cookies(site.url)}[name]
    assert str(kept.get("value", "")).startswith(f"{long_ago}.")
    assert kept.get("httpOnly") and kept.get("sameSite") == "Strict"


def test_the_first_run_says_what_to_do(
    tmp_path_factory: pytest.TempPathFactory, page: Page
) -> None:
    folder = tmp_path_factory.mktemp("bare")
    env = {"HOME": str(folder / "home"), "WHYFOR_HOME": str(folder / "kept"), "PATH": ""}
    with Site(config.load(env)) as bare:
        bare.open(page)
        assert page.locator(".empty-title").inner_text() == "Nothing captured yet"
        assert page.locator(".cmd-text").inner_text() == "whyfor init"
        ingest(bare.settings)  # a store with nothing in it is no more than none
        bare.open(page)
        assert page.locator(".cmd-text").inner_text() == "whyfor init"


def test_trouble_of_capture_is_said(site: Site, page: Page) -> None:
    site.hub.trouble = "cannot use /kept: Read-only file system"
    try:
        site.open(page)
        assert (
            "Capture is stuck. Cannot use /kept: Read-only file system."
            in page.get_by_role("alert").inner_text()
        )
    finally:
        site.hub.trouble = None


@pytest.fixture
def lone(tmp_path: Path, page: Page) -> Iterator[tuple[Settings, Site]]:
    """A home of the test's own, to do something to."""
    made = build(tmp_path / "lone")
    settings = config.load(
        {**os.environ, "HOME": str(made.home), "WHYFOR_HOME": str(made.whyfor_home)}
    )
    ingest(settings)
    with Site(settings) as site:
        yield settings, site
        page.goto("about:blank")


def test_a_hook_that_fell_silent_is_said(
    lone: tuple[Settings, Site], page: Page, axe: Callable[[Page], None]
) -> None:
    settings, site = lone
    db = apsw.Connection(str(settings.database))
    for agent, event, at in (
        ("claude", "Stop", now() - 3 * 3_600_000),  # its newest session began 40 minutes ago
        ("claude", "probe", now()),  # doctor's own
        ("codex", "Stop", now()),
    ):
        db.execute("INSERT INTO signals(at, agent, event) VALUES(?, ?, ?)", (at, agent, event))
    db.close()
    site.open(page)
    states = [
        " ".join(one.split())
        for one in page.locator(".health-item .health-state").all_inner_texts()
    ]
    assert states[0] in ("hook silent 3 h", "hook silent yesterday")
    assert "hook" not in states[1]
    note = page.locator(".health-note")
    assert (
        note.count() == 1
        and "Claude Code writes transcripts, but its hooks were last heard" in note.inner_text()
    )
    assert "whyfor doctor" in note.inner_text()
    axe(page)


def test_a_pause_is_said_with_the_way_out(lone: tuple[Settings, Site], page: Page) -> None:
    settings, site = lone
    pause(settings, Scope(), 3600)
    site.open(page)
    said = page.locator(".banner-ask").inner_text()
    assert "Capture is paused." in said and "until" in said and "whyfor resume" in said


# -- live ----------------------------------------------------------------------------------------


def test_a_card_moves_to_its_group_without_a_reload(
    site: Site, page: Page, stand: Callable[..., None]
) -> None:
    stand(standing("one", "running"), standing("two", "running"))
    site.open(page)
    live(page)
    page.evaluate("window.same = document.querySelector('[data-key=\"claude:one\"]')")
    stand(asking("one", "make deploy"), standing("two", "running"))
    expect(page.locator(".group-ask .ask-cmd")).to_have_text("make deploy")
    assert page.evaluate("same.isConnected && same.dataset.phase === 'waiting_approval'"), (
        "it is the same card"
    )
    assert page.evaluate("document.querySelectorAll('[data-key=\"claude:one\"]').length") == 1
    expect(page.locator("[data-approvals]")).to_have_text("1 need approval")
    assert page.title() == "(1) Now · Whyfor"
    expect(page.locator("#announcer")).to_have_text("one needs approval")
    stand(standing("one", "exited"), standing("two", "running"))
    expect(page.locator(".row")).to_contain_text("one")
    expect(page.locator(".group-ask")).to_have_count(0)
    expect(page.locator("[data-approvals]")).to_be_hidden()
    stand(standing("two", "running"))
    expect(page.locator("[data-key='claude:one']")).to_have_count(0)


def test_nothing_moves_under_the_pointer(
    site: Site, page: Page, stand: Callable[..., None]
) -> None:
    stand(
        standing("one", "running", status={"activity": "Bash: first"}), standing("two", "running")
    )
    site.open(page)
    live(page)
    card = page.locator("[data-key='claude:one']")
    card.hover()
    moved = time.monotonic()
    stand(
        standing("one", "running", status={"activity": "Bash: second"}),
        asking("two", "make deploy"),
        standing("three", "waiting"),
    )
    expect(card.locator(".doing code")).to_have_text("second")  # one line for another moves nothing
    expect(page.locator("[data-approvals]")).to_have_text("1 need approval")
    assert page.locator(".group-ask").count() == 0 or time.monotonic() - moved >= 1.9
    expect(page.locator(".group-ask .card-title")).to_have_text("two")
    assert time.monotonic() - moved >= 1.9, "it moved while the pointer was there"


def test_focus_stays_on_a_card_that_moves(
    site: Site, page: Page, stand: Callable[..., None]
) -> None:
    stand(standing("one", "running"), standing("two", "running"), standing("three", "waiting"))
    site.open(page)
    live(page)
    page.locator("[data-key='claude:two']").focus()
    stand(standing("one", "waiting"), standing("two", "waiting"), standing("three", "running"))
    expect(page.locator(".group-wait .card")).to_have_count(2)
    assert page.evaluate("document.activeElement.dataset.key") == "claude:two"


def test_many_changes_at_once_end_in_what_holds(
    site: Site, page: Page, stand: Callable[..., None]
) -> None:
    stand(*(standing(f"s{number}", "running") for number in range(60)))
    site.open(page)
    live(page)
    phases = ("running", "waiting", "exited", "idle", "waiting_approval")
    for turn in range(20):
        stand(*(standing(f"s{number}", phases[(number + turn) % 5]) for number in range(60)))
    last = {f"claude:s{number}": phases[(number + 19) % 5] for number in range(60)}
    page.wait_for_function(
        "last => [...document.querySelectorAll('[data-phase]')]"
        ".every(one => last[one.dataset.key] === one.dataset.phase)",
        arg=last,
    )
    expect(page.locator("[data-approvals] [data-number]")).to_have_text("12")
    expect(page.locator(".card")).to_have_count(36)


def test_a_count_that_comes_late_does_not_overwrite_what_the_stream_said(
    site: Site, page: Page, stand: Callable[..., None]
) -> None:
    held: list[Route] = []
    stand(standing("one", "running"))
    page.route("**/now/count", lambda route: held.append(route))
    site.open(page)
    live(page)
    stand(asking("one", "make deploy"))
    number = page.locator("[data-approvals] [data-number]")
    expect(number).to_have_text("1")
    held[0].fulfill(body='{"waiting_approval": 0}', content_type="application/json")
    page.wait_for_timeout(300)
    expect(number).to_have_text("1")


def test_a_server_that_stops_is_said_and_found_again(
    demo: Home, page: Page, complaints: Complaints, stand: Callable[..., None]
) -> None:
    with Site(demo.settings) as first:
        first.hub.stand([standing("one", "running")])
        first.open(page)
        live(page)
        first.stop()
        banner = page.locator("#not-live")
        expect(banner).to_contain_text("The server stopped answering at")
        expect(page.locator(".live")).to_have_text("Not live")
        with Site(demo.settings, port=first.port) as again:
            again.hub.stand([asking("one", "make deploy")])
            expect(page.locator(".ask-cmd")).to_have_text("make deploy")
            expect(banner).to_have_count(0)
            live(page)
            page.goto("about:blank")
    assert all("ERR_CONNECTION_REFUSED" in one or "ERR_INCOMPLETE" in one for one in complaints)
    complaints.clear()


def test_a_server_that_says_nothing_is_asked_again(
    site: Site, page: Page, stand: Callable[..., None]
) -> None:
    stand(standing("one", "running"))
    page.clock.install()
    site.open(page)
    live(page)
    asked_again: list[str] = []
    page.on(
        "request",
        lambda request: asked_again.append(request.url) if "/stream" in request.url else None,
    )
    for _ in range(5):
        # what the server says in between begins the silence anew: then once more
        with (
            suppress(PlaywrightTimeout),
            page.expect_request(lambda asked: "/api/v1/stream" in asked.url, timeout=6_000),
        ):
            page.clock.fast_forward(41_000)
            page.clock.fast_forward(1_000)
        if asked_again:
            break
    assert asked_again
    expect(page.locator(".live")).to_have_text("Live")


def test_a_hidden_page_lets_go_of_its_connection(
    site: Site, page: Page, context: BrowserContext, stand: Callable[..., None]
) -> None:
    stand(standing("one", "running"))
    site.open(page)
    live(page)
    hide(page, True)
    unheard(site, page)
    stand(asking("one", "make deploy"))
    hide(page, False)
    expect(page.locator(".ask-cmd")).to_have_text("make deploy")


# -- for everybody -------------------------------------------------------------------------------


def test_it_reads_fully_without_a_script(
    site: Site, plain: Page, kept: list[Session], stand: Callable[..., None]
) -> None:
    stand(asking("asks", COMMAND, agent="codex"), real(kept[0], "waiting"))
    site.open(plain)
    assert plain.locator(".ask-cmd code").inner_text() == COMMAND
    assert group(plain, "wait") == ["Why four attempts"]
    assert not plain.locator(".live, [data-theme-toggle]").first.is_visible()
    plain.locator("select[name=agent]").select_option("codex")
    plain.get_by_role("button", name="Apply").click()
    assert group(plain, "wait") == [] and group(plain, "ask") == ["asks"]


def test_keys_walk_and_open(
    site: Site, page: Page, kept: list[Session], stand: Callable[..., None]
) -> None:
    stand(asking("asks", "ls"), real(kept[0], "waiting"), standing("rests", "idle"))
    site.open(page)
    keys = []
    for _ in range(3):
        page.keyboard.press("j")
        keys.append(page.evaluate("document.activeElement.dataset.key"))
    assert keys == ["claude:asks", f"claude:{kept[0].session_id}", "claude:rests"]
    page.keyboard.press("k")
    assert page.evaluate("document.activeElement.dataset.key") == f"claude:{kept[0].session_id}"
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/sessions/claude/{kept[0].session_id}")


def test_nothing_turns_if_so_asked(site: Site, page: Page, stand: Callable[..., None]) -> None:
    stand(standing("runs", "running"))
    site.open(page)
    turning = "getComputedStyle(document.querySelector('.sprite .spin')).animationName"
    assert page.evaluate(turning) == "spin"
    page.emulate_media(reduced_motion="reduce")
    assert page.evaluate(turning) == "none"


def test_axe_finds_nothing_wrong(
    site: Site,
    page: Page,
    kept: list[Session],
    stand: Callable[..., None],
    axe: Callable[[Page], None],
) -> None:
    stand(
        asking("asks", COMMAND),
        asking(
            "writes",
            "x",
            status={
                "approval": PendingApproval("permission", now(), "Edit", "x", "/etc/x", cut=True)
            },
        ),
        real(kept[0], "waiting"),
        standing("asked", "waiting", status={"questions": ["Which?"]}),
        real(kept[1], "running", status={"activity": "Bash: ls", "activity_at": now()}),
        real(kept[2], "idle"),
        standing("lost", "unknown", agent="copilot"),
        standing("gone", "exited", agent="opencode", status={"failed": "no"}),
    )
    site.open(page)
    page.locator(".row").first.focus()
    axe(page)


def test_nothing_a_transcript_says_acts(
    site: Site, context: BrowserContext, stand: Callable[..., None]
) -> None:
    def everywhere(text: str, number: int) -> list[LiveStatus]:
        facts: dict[str, Any] = {
            "title": text,
            "branch": text,
            "models": [text],
            "project": text,
            "cwd": text,
        }
        told: dict[str, Any] = {"evidence": text, "activity": text, "failed": text}
        approval = PendingApproval(
            "permission", now(), text, text, text, certain=False, subagent=text
        )
        return [
            asking(f"a{number}", text, status={"approval": approval}, **facts),
            standing(f"w{number}", "waiting", status={"questions": [text, text]}, **facts),
            standing(f"f{number}", "waiting", status=told, **facts),
            standing(f"r{number}", "running", status=told, agent="codex", **facts),
            standing(f"e{number}", "exited", status=told, **facts),
            standing(f'"><img src=x onerror=alert(1)>{number}', "unknown", status=told, **facts),
        ]

    with tab(context) as (page, _):
        site.open(page)
        live(page)
        all_of_it = [
            each
            for number, text in enumerate([*HOSTILE, EVERYTHING])
            for each in everywhere(text, number)
        ]
        stand(*all_of_it[:6])
        expect(page.locator(".card")).to_have_count(4)  # live
        stand(*all_of_it)
        site.open(page, "/?rest=all")  # and as a page
        expect(page.locator(".card")).to_have_count(4 * (len(HOSTILE) + 1))
        assert (
            page.locator(
                "main script, main iframe, main img, main style, main meta, main base"
            ).count()
            == 0
        )
        assert (
            page.locator(
                "main [onerror], main [onload], main [onfocus], main [onmouseover]"
            ).count()
            == 0
        )
        hrefs = page.locator("main a").evaluate_all(
            "all => all.map(a => new URL(a.href).protocol + new URL(a.href).host)"
        )
        assert {*hrefs} == {f"http:127.0.0.1:{site.port}"}
        for size in (None, NARROW):
            if size:
                page.set_viewport_size(size)  # type: ignore[arg-type]
            no_sideways(page)
        for card in page.locator(".card").all()[:8]:
            card.hover(force=True)


def test_a_picture_of_it(
    site: Site,
    page: Page,
    kept: list[Session],
    stand: Callable[..., None],
    shoot: Callable[[Page, str], None],
) -> None:
    stand(
        asking("Rotate certificates", "make rotate"),
        real(kept[0], "waiting"),
        real(kept[1], "idle"),
    )
    site.open(page)
    live(page)
    shoot(page, "now")


def test_two_tabs_hear_the_same(site: Site, browser: Browser, stand: Callable[..., None]) -> None:
    stand(standing("one", "running"))
    contexts = [browser.new_context() for _ in range(2)]
    pages = [context.new_page() for context in contexts]
    for page in pages:
        site.open(page)
        live(page)
    stand(asking("one", "make deploy"))
    for page in pages:
        expect(page.locator(".ask-cmd")).to_have_text("make deploy")
    for context in contexts:
        context.close()
