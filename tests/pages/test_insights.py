"""The insights page: its numbers are those of `whyfor stats`, and what is not known is not drawn
as nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.model.cost import short_cost
from whyfor.model.errors import WhyforError
from whyfor.model.query import Filters, SessionFilter
from whyfor.model.sessions import Tokens
from whyfor.model.signals import Signal
from whyfor.model.stats import Stats
from whyfor.model.times import parse_iso
from whyfor.server.charts import calendar, histogram, quarters
from whyfor.server.pages.insights import rows
from whyfor.service.ingest import ingest
from whyfor.service.insights import (
    PERIODS,
    WAITS,
    Bar,
    Day,
    InsightsRequest,
    Overview,
    overview,
)
from whyfor.service.stats import cost_report, stats
from whyfor.store.sql.stats import SqlStats
from whyfor.store.sql.write import EventWriter
from whyfor.store.sqlite.connection import connect, fetch
from whyfor.story.failures import KINDS, kind_of

from .browser import Complaints, Site
from .hostile import HOSTILE
from .shop import settings_of

NOW = datetime(2026, 5, 31, 12, 0).astimezone()
TEXTS = [text for text in HOSTILE if "\x00" not in text]


def session(
    name: str, day: str, cwd: str = "/code/shop", turns: int = 2, model: str = "claude-test-1"
) -> Transcript:
    made = Transcript(name, cwd=cwd, day=day)
    for number in range(turns):
        made.prompt(f"{name} {number}")
        made.block({"type": "text", "text": "done"}, model=model)
    return made


def untold(name: str, day: str) -> Transcript:
    """A session of which nobody wrote down the tokens."""
    made = Transcript(name, day=day)
    made.prompt("How many?")
    made.add("assistant", {"role": "assistant", "content": [{"type": "text", "text": "Unknown."}]})
    return made


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("insights")
    made = [
        session(f"s{number}", f"2026-05-{number + 1:02}", turns=number % 4 + 1)
        for number in range(20)
    ]
    made += [
        session("other", "2026-05-20", "/code/other", 5, "claude-test-2"),
        session("old", "2026-01-05", turns=7),
    ]
    made += [untold("untold", "2026-05-21")]
    wrong = session("wrong", "2026-05-22", turns=1)
    for result in (
        "Exit code 1\nno",
        "Exit code 2",
        "<tool_use_error>String to replace not found in file.",
        "boom",
    ):
        wrong.call("Bash", {"command": "x"}, result, failed=True)
    wrong.prompt("Again")
    wrong.call("Bash", {"command": "x"}, "Exit code 1", failed=True)
    wrong.add(
        "user",
        {"role": "user", "content": [{"type": "text", "text": "[Request interrupted by user]"}]},
    )
    for each in [*made, wrong, approved()]:
        each.save(folder / "home")
    child = session("child", "2026-05-01", turns=3)
    path = made[0].path(folder / "home").with_suffix("") / "subagents" / "agent-a1.jsonl"
    path.parent.mkdir(parents=True)
    lines = [
        {**line, "isSidechain": True, "sessionId": made[0].session_id, "agentId": "a1"}
        for line in child.lines
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    settings = settings_of(folder)
    settings.home.mkdir(exist_ok=True)
    (settings.home / "prices.toml").write_text(
        '[[model]]\nmatch = "claude-test-1"\ninput = 10.0\noutput = 1000.0\n'
    )
    ingest(settings)
    asked(settings)
    return settings


def approved() -> Transcript:
    """Four calls that needed approval; their results come 5 s after the call."""
    made = Transcript("approved", day="2026-05-23")
    made.prompt("Do it")
    for number in range(4):
        made.call("Bash", {"command": f"step {number}"})
    return made


def asked(settings: Settings) -> None:
    """The hooks of these calls, 3 s before each result; one more for a question, and one that
    was never answered."""
    results = [line for line in approved().lines if line["type"] == "user"][1:]
    times = [(parse_iso(line["timestamp"]) or 0) - 3000 for line in results]
    asked = [(at, "Bash") for at in times] + [
        (times[0], "AskUserQuestion"),
        (times[-1] + 10_000, "Bash"),
    ]
    name = approved().session_id
    signals = [
        Signal(
            at,
            "claude",
            "PermissionRequest",
            None,
            "claude",
            name,
            "payload",
            data={"tool_name": tool},
        )
        for at, tool in asked
    ]
    db = connect(settings.database)
    with db:
        EventWriter(db).add_signals(signals)
    db.close()


@pytest.fixture(scope="module")
def site(home: Settings) -> Iterator[Site]:
    with Site(home) as site:
        yield site


def told(found: Overview, project: str = "") -> SessionFilter:
    return SessionFilter(since=str(found.since), until=str(found.until), identity=project or None)


def by(found: Overview) -> dict[str, tuple[int, int | None, Tokens]]:
    return {bar.name: (bar.sessions, bar.turns, bar.tokens) for bar in found.bars}


def counted(rows: list[object]) -> dict[str, tuple[int, int | None, Tokens]]:
    return {row.name: (row.sessions, row.turns, row.tokens) for row in rows}  # type: ignore[attr-defined]


# -- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("period", PERIODS)
@pytest.mark.parametrize("project", ["", "/code/shop", "/code/other"])
def test_the_numbers_are_those_of_the_command(home: Settings, period: str, project: str) -> None:
    for way in ("agent", "project", "model"):
        found = overview(home, InsightsRequest(period=period, project=project, by=way), NOW)
        same: Stats = stats(home, told(found, project))
        assert (found.sessions, found.subagents, found.turns) == (
            same.sessions,
            same.subagents,
            same.turns,
        )
        assert found.tokens == same.tokens
        assert by(found) == counted(getattr(same, f"by_{way}"))
        days = {str(day.date): day.turns for day in found.days if day.inside and day.turns}
        assert days == {
            row.name: row.turns for row in same.by_day if row.turns and row.name >= str(found.since)
        }


def test_what_is_counted_is_what_is_there(home: Settings) -> None:
    found = overview(home, InsightsRequest(period="365"), NOW)
    assert (found.sessions, found.subagents) == (25, 1)
    assert found.turns == sum(number % 4 + 1 for number in range(20)) + 5 + 7 + 1 + 2 + 1
    assert found.unknown == 1
    month = overview(home, InsightsRequest(period="30"), NOW)
    assert month.since == date(2026, 5, 2) and month.until == date(2026, 5, 31)
    assert (month.sessions, month.recent) == (23, 23)


@pytest.mark.parametrize("zone", ["Pacific/Auckland", "America/Los_Angeles", "Asia/Kathmandu"])
def test_a_day_is_a_day_where_one_is(
    home: Settings, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        found = overview(home, InsightsRequest(), datetime(2026, 5, 31, 12, 0).astimezone())
        days = {str(day.date): day.turns for day in found.days if day.turns}
        assert days == {
            row.name: row.turns for row in stats(home, SessionFilter()).by_day if row.turns
        }
    finally:
        monkeypatch.undo()
        time.tzset()


def test_before_the_first_capture_nothing_is_known(home: Settings) -> None:
    found = overview(home, InsightsRequest(), NOW)
    assert len(found.days) == 52 * 7 + NOW.weekday() + 1
    known = [day for day in found.days if day.turns is not None]
    assert known[0].date == date(2026, 1, 5) and known[0].turns == 7
    assert all(day.turns is None for day in found.days if day.date < date(2026, 1, 5))
    assert found.busiest is not None and found.busiest.turns == 9


def test_waits_are_from_the_question_to_the_result(home: Settings) -> None:
    waits = overview(home, InsightsRequest(), NOW).waits
    assert (waits.answered, waits.unknown, waits.median) == (4, 1, 3.0)
    assert waits.bars == [0, 4, 0, 0, 0, 0, 0, 0]
    assert overview(home, InsightsRequest(project="/code/other"), NOW).waits.answered == 0


def test_failures_are_counted_once_a_turn(home: Settings) -> None:
    found = {one.kind: one.turns for one in overview(home, InsightsRequest(), NOW).failures}
    assert set(found) == set(KINDS)
    assert {kind: number for kind, number in found.items() if number} == {
        "command": 2,
        "edit": 1,
        "call": 1,
        "interrupted": 1,
    }


@pytest.mark.parametrize(
    ("event", "head", "ran", "kind"),
    [
        ("tool.result", "Exit code 127\nnot found", False, "command"),
        ("tool.result", "whatever it printed", True, "command"),
        ("tool.result", "apply_patch verification failed: no such line", False, "edit"),
        ("tool.result", "<tool_use_error>File has not been read yet.", False, "edit"),
        ("tool.result", "This command requires approval", False, "blocked"),
        ("tool.result", "The user doesn't want to proceed with this tool use.", False, "denied"),
        ("tool.result", "<tool_use_error>Sibling tool call errored", False, None),
        ("tool.result", "", False, "call"),
        ("turn.completed", "[Request interrupted by user]", False, "interrupted"),
        ("approval.resolved", "", False, "denied"),
        ("error", "API Error: 529 overloaded", False, "api"),
        ("error", "Prompt is too long", False, "context"),
    ],
)
def test_what_went_wrong_is_told_apart(event: str, head: str, ran: bool, kind: str | None) -> None:
    assert kind_of(event, head, ran) == kind


def test_an_index_answers_as_the_events_would(home: Settings) -> None:
    db = connect(home.database, readonly=True)
    told = {(one.session, one.turn, one.kind, one.head) for one in SqlStats(db).wrong(Filters())}
    plain = fetch(
        db,
        "SELECT e.session_id, e.turn, e.kind, substr(e.text, 1, 120) FROM events e NOT INDEXED "
        "JOIN sessions s "
        "ON s.id=e.session_id WHERE s.parent IS NULL AND (e.kind='error' OR json_extract(e.data, "
        "'$.interrupted') OR "
        "e.kind='tool.result' AND json_extract(e.data, '$.failed'))",
    )
    db.close()
    assert told == set(plain) and len(told) > 3


@pytest.mark.parametrize(
    "asking",
    [
        InsightsRequest(period="7"),
        InsightsRequest(by="mood"),
        InsightsRequest(since="yesterday"),
        InsightsRequest(until="2026-13-01"),
        InsightsRequest(since="2026-05-02", until="2026-05-01"),
        InsightsRequest(project="/etc"),
    ],
)
def test_what_cannot_be_asked_is_refused(home: Settings, asking: InsightsRequest) -> None:
    with pytest.raises(WhyforError):
        overview(home, asking, NOW)


# -- shapes --------------------------------------------------------------------------------------


def test_bars_draw_what_is_not_known() -> None:
    tokens = Tokens(input=600, output=300)
    known = Bar("a", 1, 10, tokens, tokens.total)
    partly = Bar("b", 1, 10, tokens, tokens.total, unknown=5)
    dark = Bar("c", 1, 4, Tokens(), None, unknown=4)
    drawn = {
        row.bar.name: row
        for row in rows([known, partly, dark], lambda bar: bar.spent, uncertain=True)
    }
    assert (drawn["a"].width, drawn["a"].hatched) == (50.0, 0.0)
    assert (drawn["b"].width, drawn["b"].hatched) == (50.0, 50.0)
    assert (drawn["c"].value, drawn["c"].width, drawn["c"].hatched) == (None, 0.0, 12.0)


def test_small_bars_are_put_together_and_lose_nothing() -> None:
    bars = [Bar(str(number), 1, number, Tokens(output=number), number) for number in range(1, 12)]
    drawn = rows(bars, lambda bar: bar.turns, uncertain=False)
    assert [row.bar.name for row in drawn] == ["11", "10", "9", "8", "7", "6 others"]
    assert sum(row.value or 0 for row in drawn) == sum(range(1, 12))
    assert all(0 <= row.width <= 100 for row in drawn)


def test_one_busy_day_does_not_pale_the_others() -> None:
    first = date(2026, 5, 4)
    days = [
        Day(first + timedelta(days=number), turns, True)
        for number, turns in enumerate([1, 2, 3, 1000, 0, 4])
    ]
    levels = [
        cell.level for cell in calendar([*days, Day(first + timedelta(days=6), None, True)]).cells
    ]
    assert levels == [1, 1, 2, 4, 0, 3, None]
    assert quarters([]) == [0, 0, 0]


@pytest.mark.parametrize(
    ("median", "place"), [(0.0, 0.0), (1.0, 33.8), (14.0, 195.8), (3600.0, 506.2), (9e9, 506.2)]
)
def test_the_median_stands_in_its_own_column(median: float, place: float) -> None:
    drawn = histogram([1, 2, 3, 4, 5, 6, 7, 8], WAITS, median)
    assert drawn.median == pytest.approx(place, abs=0.1)
    assert all(column.y >= 38 and column.height <= 130 for column in drawn.columns)


def test_no_waits_make_no_columns() -> None:
    assert {column.height for column in histogram([0] * 8, WAITS, None).columns} == {0.0}


# -- in a browser --------------------------------------------------------------------------------


def test_the_page_shows_what_the_command_says(site: Site, page: Page) -> None:
    site.open(page, "/insights?since=2026-05-01&until=2026-05-31")
    same = stats(site.settings, SessionFilter(since="2026-05-01", until="2026-05-31"))
    names, values = page.locator(".stat dt"), page.locator(".stat dd:first-of-type")
    tiles = dict(zip(names.all_inner_texts(), values.all_inner_texts(), strict=True))
    assert tiles["Sessions"] == str(same.sessions)
    assert tiles["Turns"] == str(same.turns)
    assert tiles["Tokens"] == f"{same.tokens.total:,}"
    assert tiles["You answered in"] == "3.0 s"
    assert tiles["Commits with a story"] == "none seen"
    expect(page.locator("[aria-label='Turns by agent'] .num")).to_have_text([str(same.turns)])
    busy = page.locator(".heat title", has_text="Wed 20 May:")
    assert busy.text_content() == "Wed 20 May: 9 turns"
    expect(page.get_by_role("img", name="Calendar of turns per day")).to_be_visible()
    expect(page.get_by_role("img", name="2–5 s 4, 5–15 s 0")).to_be_visible()
    expect(page.locator(".stat", has_text="Tokens")).to_contain_text("unknown for 1 turn")


def test_costs_are_those_of_the_command(site: Site, page: Page) -> None:
    site.open(page, "/insights?since=2026-05-01&until=2026-05-31")
    page.get_by_role("link", name="Cost", exact=True).click()
    expect(page.get_by_role("heading", name="Cost per day")).to_be_visible()
    said = cost_report(site.settings, SessionFilter(since="2026-05-01", until="2026-05-31"))
    names, values = page.locator(".stat dt"), page.locator(".stat dd:first-of-type")
    tiles = dict(zip(names.all_inner_texts(), values.all_inner_texts(), strict=True))
    assert said.whole.cost.unpriced == 5  # claude-test-2 has no price
    assert tiles["API price"] == short_cost(said.whole.cost)
    assert tiles["Not in it"] == "5"
    expect(page.locator(".banner-note")).to_contain_text("claude-test-2 (5 responses)")
    columns = page.locator(".cost-svg g")
    expect(columns).to_have_count(31)
    twentieth = columns.nth(19)
    expect(twentieth.locator("rect.cap")).to_have_count(1)
    expect(twentieth.locator("title")).to_contain_text("20 May: at least $")
    expect(page.locator("[aria-labelledby=c-proj] th")).to_have_text(["shop", "other"])
    expect(page.locator("[aria-labelledby=c-proj] .num").last).to_have_text("unknown")
    page.get_by_role("link", name="12 months").click()
    expect(page.get_by_role("heading", name="Cost per week")).to_be_visible()
    assert "view=cost" in page.url


def test_unknown_is_hatched_and_said(site: Site, page: Page) -> None:
    site.open(page, "/insights?since=2026-05-21&until=2026-05-21")
    expect(page.locator(".stat", has_text="Tokens").locator("dd").first).to_have_text("unknown")
    row = page.locator("[aria-labelledby=c-tokens] tr")
    expect(row.locator(".num")).to_have_text("unknown")
    expect(row.locator("rect.heat-x")).to_have_count(1)
    expect(page.locator("[aria-labelledby=c-waits]")).to_contain_text("No approval was recorded")
    expect(page.locator(".stat", has_text="You answered in").locator("dd").first).to_have_text(
        "unknown"
    )


def test_filters(site: Site, page: Page) -> None:
    site.open(page, "/insights?since=2026-01-01&until=2026-05-31")
    page.locator("select[name=project]").select_option("/code/other")
    expect(page.locator(".stat", has_text="Sessions").locator("dd").first).to_have_text("1")
    assert "since=2026-01-01" in page.url and "project=%2Fcode%2Fother" in page.url
    page.get_by_role("link", name="Model").click()
    expect(page.locator("[aria-label='Sessions by model'] th")).to_have_text(["claude-test-2"])
    page.get_by_role("link", name="30 days").click()
    expect(page.get_by_role("link", name="30 days")).to_have_attribute("aria-current", "true")
    assert "since" not in page.url and "by=model" in page.url
    page.get_by_text("Other dates").click()
    page.get_by_label("From").fill("2026-05-20")
    page.get_by_label("to", exact=True).fill("2026-05-20")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".lede")).to_contain_text("20 May 2026 – 20 May 2026")
    expect(page.locator(".stat", has_text="Turns").locator("dd").first).to_have_text("5")


def test_without_a_script(site: Site, plain: Page) -> None:
    site.open(plain, "/insights?since=2026-05-01&until=2026-05-31")
    plain.locator("select[name=project]").select_option("/code/other")
    plain.get_by_role("button", name="Apply").click()
    expect(plain.locator(".stat", has_text="Sessions").locator("dd").first).to_have_text("1")
    plain.get_by_role("link", name="Project", exact=True).click()
    expect(plain.locator("[aria-label='Turns by project'] th")).to_have_text(["other"])


def test_a_date_that_is_none_is_said(site: Site, page: Page, complaints: Complaints) -> None:
    site.open(page, "/insights?since=lunch")
    expect(page.locator("main")).to_contain_text("Not a date: 'lunch'")
    complaints[:] = [said for said in complaints if "400" not in said]


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "?since=2026-05-01&until=2026-05-31",
        "?by=model",
        "?period=30",
        "?view=cost&since=2026-05-01&until=2026-05-31",
        "?view=cost&since=2025-01-01&until=2025-01-31",
    ],
)
def test_axe_finds_nothing_wrong(
    site: Site, page: Page, axe: Callable[[Page], None], asked: str
) -> None:
    site.open(page, "/insights" + asked)
    axe(page)


def test_pictures(site: Site, page: Page, shoot: Callable[[Page, str], None]) -> None:
    site.open(page, "/insights?since=2025-06-01&until=2026-05-31")
    expect(page.locator(".heat")).to_be_visible()
    shoot(page, "insights")


def test_nothing_that_was_said_acts(
    tmp_path: Path, page: Page, axe: Callable[[Page], None]
) -> None:
    folder = tmp_path / "home"
    for number, text in enumerate(TEXTS):
        made = Transcript(f"x{number}", cwd="/code/" + text[:200].replace("/", ""), live=True)
        made.prompt(f"x{number} 0")
        made.block({"type": "text", "text": "done"}, model=text)
        made.call("Bash", {"command": text}, text, failed=True)
        made.save(folder)
    settings = settings_of(tmp_path)
    ingest(settings)
    with Site(settings) as hostile:
        for way in ("view=cost", "by=agent", "by=project", "by=model"):
            hostile.open(page, f"/insights?{way}")
            if way == "view=cost":
                expect(page.locator(".banner-note")).to_contain_text("No price for")
            else:
                expect(page.locator(".stat", has_text="Sessions").locator("dd").first).to_have_text(
                    str(len(TEXTS))
                )
            assert (
                page.locator("main script, main iframe, main img, main style, main object").count()
                == 0
            )
        axe(page)
        page.goto("about:blank")


def test_causes_of_failures_have_examples_that_lead_to_them(
    settings: Settings, browser: Browser, axe: Callable[[Page], None]
) -> None:
    made = Transcript("broken", live=True)
    made.prompt("Run the tests")
    made.call("Bash", {"command": "pytest"}, "Exit code 1\nFAILED a.py\n2 failed", failed=True)
    made.call("Bash", {"command": "tox"}, "bash: tox: command not found", failed=True)
    made.save(settings.user_home)
    ingest(settings)
    found = overview(settings, InsightsRequest()).causes
    assert [(one.cause, one.times, one.sessions) for one in found] == [
        ("dependency", 1, 1),
        ("test", 1, 1),
    ]
    (example,) = found[1].examples
    assert (example.title, example.seq) == ("Run the tests", 4)
    with Site(settings) as site:
        page = browser.new_page()
        site.open(page, "/insights")
        page.get_by_text("Missing dependency").click()
        expect(page.locator(".cause-examples code").first).to_contain_text("tox: command not found")
        axe(page)
        page.locator(".cause-examples a").first.click()
        expect(page.locator("h1")).to_contain_text("Run the tests")
        page.close()
