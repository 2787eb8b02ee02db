"""The feed: what happened in all sessions, with filters, changing as it happens."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from .browser import Site


def test_the_feed_lists_filters_and_leads_to_what_happened(
    site: Site, page: Page, axe: Callable[[Page], None], shoot: Callable[[Page, str], None]
) -> None:
    site.open(page, "/feed?since=30d")
    axe(page)
    shoot(page, "feed")
    rows = page.locator(".feed-row")
    assert rows.count() > 5
    kinds = {text.strip() for text in page.locator(".feed-kind").all_inner_texts()}
    assert {"You asked", "Said at the end", "Commit"} <= kinds
    page.locator("select[name=kind]").select_option("prompt")
    expect(page.locator(".feed-kind").first).to_have_text("You asked")
    expect(page.locator(".feed-commit")).to_have_count(0)
    page.locator(".feed-row a").first.click()
    expect(page.locator("h1")).not_to_have_text("Feed")
    site.open(page, "/feed?only=waiting")
    expect(page.locator(".empty")).to_contain_text("Nothing fits")
