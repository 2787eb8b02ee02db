"""The page *Now*, in a real browser, while a person works with the real Claude Code in a
terminal."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.pages.browser import Site, launched
from tests.pages.conftest import complaints, context, opened, page
from whyfor import config

from .test_status import Gate, in_terminal
from .test_stories import PATIENCE, Desk, bare, desk, shell

__all__ = ["bare", "complaints", "context", "desk", "opened", "page"]  # fixtures
_MS = PATIENCE * 1000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launched() as browser:
        yield browser


@pytest.fixture
def served(desk: Desk) -> Iterator[Site]:
    """`whyfor serve`, as far as it matters here: the page and the loop that reads what agents
    write."""
    with Site(config.load({**desk.env, "WHYFOR_HOME": str(desk.kept)}), watching=True) as site:
        yield site


def test_claude_at_work_is_seen_as_it_happens(desk: Desk, served: Site, page: Page) -> None:
    gate = Gate()
    desk.model.add(shell("touch quokka.txt && echo 'made  it'"), gate)
    served.open(page)
    expect(page.locator(".live")).to_have_attribute("data-live", "on")
    assert page.locator(".empty-title").count() == 1
    with in_terminal(desk) as terminal:
        terminal.see("for shortcuts")
        expect(page.locator(".lede")).to_contain_text("Nothing runs", timeout=_MS)

        terminal.enter("Touch the quokka")
        terminal.see("Do you want to")
        asked = page.locator(".group-ask .card")
        expect(asked.locator(".ask-cmd")).to_have_text(
            "touch quokka.txt && echo 'made  it'", timeout=_MS
        )
        assert asked.locator(".ask-cmd").inner_text() == "touch quokka.txt && echo 'made  it'"
        expect(asked.locator(".card-title")).to_have_text("Touch the quokka", timeout=_MS)
        expect(asked.locator(".ask-where")).to_contain_text("answer in its terminal, pid ")
        expect(page.locator("[data-approvals]")).to_have_text("1 need approval")

        terminal.press("1")
        expect(page.locator(".group-run .card .doing-verb")).to_have_text("Thinking", timeout=_MS)
        expect(page.locator("[data-approvals]")).to_be_hidden()
        gate.opened.set()
        terminal.see("That is done.")
        waiting = page.locator(".group-wait .card")
        expect(waiting).to_contain_text("That is done.", timeout=_MS)
        expect(waiting.locator("dd.said")).to_have_text("Touch the quokka")

        terminal.enter("/exit")
        assert terminal.leave() == 0
    expect(page.locator(".card")).to_have_count(0, timeout=_MS)
    expect(page.locator(".lede")).to_contain_text("Nothing runs", timeout=_MS)
    page.get_by_role("link", name="Touch the quokka").first.click()
    expect(page.locator("h1")).to_contain_text("Touch the quokka")
