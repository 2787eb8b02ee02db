"""Several sessions of the list at once: export and forget."""

from __future__ import annotations

import re
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Page, Route, expect

from tests.transcripts import Transcript
from whyfor.model.errors import BadInput, StoreError
from whyfor.service.ingest import ingest
from whyfor.service.saved_filters import (
    FILE,
    MOST,
    counted_filters,
    remove_filter,
    save_filter,
)
from whyfor.service.session_list import ListRequest
from whyfor.store.open import reading

from .browser import NARROW, Complaints, Site, judge, no_sideways
from .shop import settings_of

SECRET = "ghp_" + "x7Kq2vR9mT4wZ8nB3cY6" + "hL5jD1sF0gPaQeWu"


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Site]:
    """Three sessions; of one there is a fork."""
    settings = settings_of(tmp_path)
    home = tmp_path / "home"
    for number in range(3):
        made = Transcript(f"s{number}", day=f"2026-05-0{number + 1}")
        made.prompt(f"Look at sheet {number}, the key is {SECRET}")
        made.say("Done.")
        made.save(home)
    fork = Transcript("fork", day="2026-05-03")
    for line in made.lines:
        origin = {"sessionId": made.session_id, "messageUuid": line["uuid"]}
        fork.lines.append({**line, "sessionId": fork.session_id, "forkedFrom": origin})
    fork.prompt("And turn it")
    fork.say("Turned.")
    fork.save(home)
    ingest(settings)
    with Site(settings) as site:
        yield site


def kept(site: Site) -> int:
    with reading(site.settings) as library:
        return len(library.sessions.places())


def pick(page: Page, title: str) -> None:
    row = page.locator(".ses-row", has_text=title)
    row.hover()
    row.locator(".ses-pick input").check()


def test_what_can_be_done_with_sessions_is_shown_while_some_are_selected(
    desk: Site, page: Page
) -> None:
    desk.open(page, "/sessions")
    bar = page.locator(".ses-bar")
    expect(bar).to_be_hidden()
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(bar).to_be_visible()
    expect(page.locator(".ses-pick input:checked")).to_have_count(1)
    pick(page, "sheet 0")
    expect(page.locator(".ses-pick input:checked")).to_have_count(2)
    page.keyboard.press("Escape")
    expect(bar).to_be_hidden()
    expect(page.locator("#peek")).to_be_visible()


def test_sessions_are_exported_without_their_secrets(
    desk: Site, page: Page, tmp_path: Path
) -> None:
    desk.open(page, "/sessions")
    pick(page, "sheet 0")
    with page.expect_download() as one:
        page.get_by_role("button", name="Export").click()
    text = Path(one.value.path()).read_text(encoding="utf-8")
    assert one.value.suggested_filename.endswith(".md")
    assert "Look at sheet 0" in text and SECRET not in text
    pick(page, "sheet 1")
    with page.expect_download() as both:
        page.get_by_role("button", name="Export").click()
    with zipfile.ZipFile(both.value.path()) as archive:
        texts = [archive.read(name).decode() for name in archive.namelist()]
    assert len(texts) == 2 and not any(SECRET in text for text in texts)


def test_a_row_is_forgotten_with_all_its_parts_after_one_has_agreed(desk: Site, page: Page) -> None:
    desk.open(page, "/sessions")
    pick(page, "sheet 2")
    page.get_by_role("button", name="Forget").click()
    expect(page.get_by_role("heading", name="Forget this session?")).to_be_visible()
    expect(page.locator(".dialog")).to_contain_text("forked once, all of it")
    assert kept(desk) == 4, "nothing goes before one has agreed"
    page.get_by_role("link", name="Cancel").click()
    pick(page, "sheet 2")
    page.get_by_role("button", name="Forget").click()
    page.get_by_role("button", name="Forget this session").click()
    expect(page.locator(".ses-done")).to_contain_text("2 sessions are forgotten")
    expect(page.locator(".ses-row")).to_have_count(2)
    assert kept(desk) == 2


FORM = "button => [button.form.action, Object.fromEntries(new FormData(button.form))]"


def test_what_is_sent_twice_is_forgotten_once(desk: Site, page: Page) -> None:
    desk.open(page, "/sessions")
    pick(page, "sheet 2")
    page.get_by_role("button", name="Forget").click()
    action, form = page.get_by_role("button", name="Forget this session").evaluate(FORM)
    page.goto("about:blank")  # else it would see its session go, and look for it
    for _ in range(2):
        told = page.request.post(action, form=form, headers={"origin": desk.url})
        assert told.status == 200
        assert "forgotten" in told.text()
    assert kept(desk) == 2


def test_news_do_not_stop_the_answer_of_a_form(desk: Site, page: Page) -> None:
    def slow(route: Route) -> None:
        answer = route.fetch(max_redirects=0)
        time.sleep(2)  # in which the stream says that what is kept is otherwise
        route.fulfill(response=answer)

    desk.open(page, "/sessions")
    pick(page, "sheet 2")
    page.get_by_role("button", name="Forget").click()
    page.route("**/sessions/forgotten", slow)
    page.get_by_role("button", name="Forget this session").click()
    expect(page.locator(".ses-done")).to_contain_text("2 sessions are forgotten")


def test_selection_works_without_a_script(desk: Site, plain: Page) -> None:
    desk.open(plain, "/sessions")
    for title in ("sheet 0", "sheet 1"):
        pick(plain, title)
    plain.get_by_role("button", name="Forget").click()
    expect(plain.get_by_role("heading", name="Forget 2 sessions?")).to_be_visible()
    plain.get_by_role("button", name="Forget 2 sessions").click()
    expect(plain.locator(".ses-row")).to_have_count(1)


def test_sessions_that_are_not_there_are_said(
    desk: Site, page: Page, complaints: Complaints
) -> None:
    for path in ("/sessions/forget", "/sessions/export", "/sessions/forget?s=claude:no"):
        desk.open(page, path)
        expect(page.locator("h1")).to_be_visible()
        expect(page.locator(".dialog")).to_have_count(0)
    complaints.clear()  # that is what was asked for


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_question_is_readable(desk: Site, page: Page, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    desk.open(page, "/sessions")
    page.locator(".ses-pick input").first.check()
    no_sideways(page)
    assert judge(page) == []
    page.get_by_role("button", name="Forget").click()
    expect(page.locator(".dialog")).to_be_visible()
    no_sideways(page)
    assert judge(page) == []


def test_a_filter_is_kept_with_its_count_and_removed(desk: Site, page: Page) -> None:
    desk.open(page, "/sessions?q=sheet&sort=cost")
    page.get_by_role("link", name="Save this filter").first.click()
    expect(page.get_by_label("Name")).to_be_visible()
    assert judge(page) == []
    page.get_by_label("Name").fill("Sheets, dearest first")
    page.get_by_role("button", name="Save").click()
    saved = page.get_by_role("navigation", name="Saved filters").get_by_role("link")
    expect(saved).to_have_text(["Sheets, dearest first3"])
    expect(saved).to_have_attribute("aria-current", "true")
    expect(page.get_by_role("link", name="Save this filter")).to_have_count(0)
    assert judge(page) == []
    desk.open(page, "/sessions")
    saved.click()
    expect(page.locator(".ses-row")).to_have_count(3)
    expect(page).to_have_url(re.compile(r"/sessions\?q=sheet&sort=cost$"))
    page.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("navigation", name="Saved filters")).to_have_count(0)


def test_filters_are_kept_by_name_and_bad_ones_refused(desk: Site) -> None:
    settings = desk.settings
    asked = ListRequest(agent="claude")
    with pytest.raises(BadInput, match="nothing is filtered"):
        save_filter(settings, "All", ListRequest())
    with pytest.raises(BadInput, match="needs a name"):
        save_filter(settings, " \n", asked)
    save_filter(settings, "Mine", ListRequest(agent="codex", after="x"))
    save_filter(settings, "Mine", msgspec.structs.replace(asked, sort="cost"))
    save_filter(settings, "Gone", ListRequest(project="example.com/no/such"))
    found = counted_filters(settings)
    assert [(one.name, one.rows) for one in found] == [("Mine", 3), ("Gone", None)]
    for number in range(MOST - 2):
        save_filter(settings, f"n{number}", asked)
    with pytest.raises(BadInput, match="20 filters already"):
        save_filter(settings, "one more", asked)
    (settings.home / FILE).write_text("[{")
    assert counted_filters(settings) == []
    with pytest.raises(StoreError, match="cannot be read"):
        remove_filter(settings, "Mine")
