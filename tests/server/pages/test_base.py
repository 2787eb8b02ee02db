"""What every page has: the frame, the keys, the themes, the words about the stream."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from .browser import Site

PAGES = ["/", "/timeline", "/search", "/insights"]


@pytest.mark.parametrize("path", PAGES)
def test_a_page_opens_without_a_complaint(site: Site, page: Page, path: str) -> None:
    site.open(page, path)
    expect(page.locator("h1")).to_have_count(1)
    expect(page.locator(".live")).to_have_attribute("data-live", "on")
