"""Now: what needs a person, with the evidence and the next step."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.transcripts import Transcript
from whyfor.config import Settings, load
from whyfor.model.attention import AttentionQuery, Concern, Firing
from whyfor.model.query import Filters
from whyfor.model.sessions import Session
from whyfor.service.attention import attention_history
from whyfor.service.ingest import ingest
from whyfor.store.open import reading

from .browser import NARROW, Site, no_sideways
from .conftest import Home
from .hostile import HOSTILE
from .sessions import now, standing


@pytest.fixture(scope="module")
def kept(demo: Home) -> Session:
    with reading(demo.settings) as library:
        return library.sessions.matching(Filters(), limit=1, subagents=False)[0]


def firing(session: Session | None, cause: str, **more: object) -> Firing:
    words: dict[str, object] = {
        "fact": "rm -r build: refused 3 times.",
        "evidence": "tool results, high",
        "step": "Allow it in the agent's settings.",
    }
    found = Concern(cause=cause, key="1", at=now() - 60_000, **{**words, **more})  # type: ignore[arg-type]
    agent = session.agent if session else None
    ident = session.session_id if session else None
    return Firing(agent=agent, session_id=ident, found=found, told_at=now())


@pytest.fixture
def attend(site: Site) -> Iterator[Site]:
    yield site
    site.hub.stand([])
    site.hub.attend([], [])


def test_what_needs_a_person_is_on_top_and_can_be_muted(
    attend: Site, page: Page, kept: Session, axe: Callable[[Page], None]
) -> None:
    attend.hub.stand([standing("works", "running")])
    wall = firing(kept, "wall", seq=3)
    full = firing(kept, "context", share=0.94, command="whyfor handoff claude:x")
    attend.hub.attend([wall, full], [])
    attend.open(page)
    rows = page.locator(".attn")
    expect(rows).to_have_count(2)
    axe(page)
    first = rows.first
    assert first.locator(".attn-kind").inner_text().strip() == "Blocked"
    assert first.locator(".attn-what").inner_text() == "rm -r build: refused 3 times."
    assert first.locator(".attn-title a").inner_text() == kept.title
    assert "2 need a look" in page.locator(".lede").inner_text()
    assert rows.nth(1).locator(".attn-kind").inner_text().strip() == "Context 94 % full"
    link = first.get_by_role("link", name="See the refusals").get_attribute("href") or ""
    assert link.endswith("?at=3#e3")

    first.get_by_role("button", name="Mute").click()
    expect(rows).to_have_count(1)
    page.get_by_role("link", name="1 muted").click()
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Unmute").click()
    expect(page.locator(".attn-muted")).to_have_count(0)
    ingest(attend.settings)
    assert attention_history(attend.settings, AttentionQuery()) == []  # muting tells nothing


def test_a_page_that_is_open_hears_of_it_and_of_its_end(
    attend: Site, page: Page, kept: Session
) -> None:
    attend.hub.stand([standing("works", "running")])
    attend.open(page)
    expect(page.locator(".live")).to_have_attribute("data-live", "on")
    expect(page.locator(".attn")).to_have_count(0)
    attend.hub.attend([firing(kept, "limit")], [])
    expect(page.locator(".attn-kind")).to_have_text("Rate limited")
    attend.hub.attend([], [])
    expect(page.locator(".attn")).to_have_count(0)


def test_hostile_words_and_a_narrow_screen_do_no_harm(
    attend: Site, page: Page, kept: Session
) -> None:
    attend.hub.stand([standing("works", "running")])
    text = " ".join(HOSTILE)[:300]
    told = [firing(kept, "asks", fact=text, evidence=text, step="x" * 300)]
    attend.hub.attend([*told, firing(None, "backlog")], [])
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    attend.open(page)
    expect(page.locator(".attn")).to_have_count(2)
    no_sideways(page)


def test_the_day_so_far_is_one_line_of_figures(
    settings: Settings, browser: Browser, axe: Callable[[Page], None]
) -> None:
    settings.home.mkdir(parents=True, exist_ok=True)
    (settings.home / "config.toml").write_text("[cost]\nday_budget = 2.00\n")
    talk = Transcript("dear", live=True)
    talk.prompt("Think hard")
    talk.block({"type": "text", "text": "Thought."}, output=90_000, model="claude-opus-4-5")
    talk.save(settings.user_home)
    ingest(settings)
    with Site(load(settings.env)) as site:
        page = browser.new_page()
        site.hub.stand([standing("works", "running")])
        site.open(page)
        figures = [text.split("\n") for text in page.locator(".today-item").all_inner_texts()]
        assert figures[0] == ["Sessions", "1"] and figures[1] == ["Turns", "1"]
        assert figures[3] == ["API price", "$2.25 of $2.00"]
        expect(page.locator(".today-item.is-over")).to_have_count(1)
        axe(page)
        page.close()
