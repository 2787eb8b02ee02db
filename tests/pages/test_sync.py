"""Sync: what this machine sends, exactly, and what it does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.store.team import TeamProject
from tests.sync.laptop import Laptop, new_origin
from whyfor.sync.remotes import load_remotes

from .browser import NARROW, Site, no_sideways

NOWHERE = "http://127.0.0.1:9"
SECRET = "ghp_0123456789abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(scope="module")
def sharing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Laptop, Site]]:
    """A laptop whose server does not answer, with one pushed commit and one that is not."""
    folder = tmp_path_factory.mktemp("sync")
    laptop = Laptop(folder / "one", new_origin(folder))
    told = laptop.transcript("gate")
    laptop.work(told, "Mend the gate", f"the key is {SECRET}, mend <b>the gate</b>")
    laptop.git("push", "-q", "origin", "main")
    laptop.work(told, "Paint the wall")
    laptop.ingest()
    with Site(laptop.settings) as site:
        yield laptop, site


def test_the_page_says_that_nothing_leaves_then_what_would_and_what_went_wrong(
    sharing: tuple[Laptop, Site],
    page: Page,
    axe: Callable[[Page], None],
    shoot: Callable[[Page, str], None],
) -> None:
    laptop, site = sharing
    site.open(page, "/sync")
    expect(page.locator("h1")).to_have_text("Sync")
    expect(page.locator(".nav-more summary .more-wide")).to_have_text("Sync")
    expect(page.locator(".empty-title")).to_have_text("Nothing leaves this laptop")
    share(laptop)
    laptop.sync()
    page.reload()
    expect(page.locator(".banner-ask")).to_contain_text("Nothing is lost")
    rows = page.locator(".tbl").first.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("Waits, 1 try")
    expect(rows.nth(1)).to_contain_text("Stays here")
    preview = page.locator(".preview")
    expect(preview.locator(".redacted")).to_have_text("github-token 1")
    expect(preview).to_contain_text("commit")
    expect(rows.first).to_contain_text("4 kB")
    expect(preview).not_to_contain_text(SECRET)
    expect(preview).to_contain_text("<b>the gate</b>")
    axe(page)
    shoot(page, "sync")
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    no_sideways(page)
    rows.first.get_by_role("button", name="Hold back").click()
    expect(page.locator(".tbl").first).to_contain_text("Send it")
    assert len(load_remotes(laptop.settings).keep_local) == 1
    page.locator("button[name=paused]").click()
    expect(page.locator("button[name=paused]")).to_have_text("Go on")
    assert load_remotes(laptop.settings).remotes[0].paused


def share(laptop: Laptop) -> None:
    project = TeamProject.__new__(TeamProject)
    project.number = 1
    laptop.share(NOWHERE, project, "token")
