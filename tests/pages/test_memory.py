"""Memory: what the next session is told, byte for byte; notes with filters, states and actions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.story.links.workshop import Clock, Repo
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.live.serve_lock import Running
from whyfor.model.memory import StoredObservation
from whyfor.service.ingest import ingest
from whyfor.service.memory import MemoryQuery, NewNote, add_note, mark_wrong, notes, pin, preview

from .browser import NARROW, Complaints, Site, no_sideways
from .hostile import HOSTILE
from .shop import Shop, settings_of

MANY = 60
CAUSE = "The basket is slow because every price is read from the disk twice."
FAILED = "2 failed: test_prices_are_read_once"


def write_sessions(home: Path, repo: Repo) -> None:
    """One session that finds, fixes and is told something; many that are told one rule each."""
    made = Transcript("main", cwd=str(repo.path), day="2026-05-03")
    made.prompt("Make the checkout faster. From now on always use pnpm, not npm.")
    made.say(CAUSE)
    checked = {"command": "python -m pytest -q tests"}
    made.call("Bash", checked, FAILED, failed=True)
    changed = {"file_path": str(repo.path / "basket.py"), "old_string": "a", "new_string": "b"}
    made.call("Edit", changed)
    made.call("Bash", checked, "4 passed")
    made.say("The basket reads every price once now. Next, the refunds should be looked at.")
    made.save(home)
    for number in range(MANY):
        other = Transcript(f"other-{number}", cwd=str(repo.path), day="2026-05-01")
        other.prompt(f"From now on never touch the folder number{number}.")
        other.say("Understood.")
        other.save(home)


def build(folder: Path) -> tuple[Settings, Repo]:
    settings = settings_of(folder)
    home = folder / "home"
    home.mkdir(parents=True, exist_ok=True)
    repo = Repo.made(folder / "shop", Clock())
    repo.commit("Begin", {"basket.py": "a = 1\n"})
    write_sessions(home, repo)
    ingest(settings)
    return settings, repo


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A repository with notes; tests only read it."""
    settings, repo = build(tmp_path_factory.mktemp("told"))
    found = find(settings, "disk twice")
    instead = NewNote(
        text="Prices are read from the cache.",
        replaces=found.observation.key,
        project=found.project,
    )
    pin(settings, add_note(settings, repo.path, instead).observation.key)
    mark_wrong(settings, find(settings, "number7.").observation.key)
    with Site(settings) as site:
        yield site


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Site]:
    """A repository with notes that a test may change."""
    settings, _ = build(tmp_path)
    with Site(settings) as site:
        yield site


def find(settings: Settings, words: str) -> StoredObservation:
    found = notes(settings, MemoryQuery(), 0)
    return next(
        each for each in found if words in f"{each.observation.title} {each.observation.narrative}"
    )


def rows(page: Page) -> list[str]:
    return page.locator(".ob-title").all_inner_texts()


def project_of(site: Site) -> Path:
    return Path(site.settings.user_home).parent / "shop"


# -- what is told --------------------------------------------------------------------------------


def test_the_text_is_shown_byte_for_byte(
    told: Site, page: Page, axe: Callable[[Page], None], shoot: Callable[[Page, str], None]
) -> None:
    told.open(page, "/memory")
    cells = page.locator(".told-text").evaluate_all("all => all.map(one => one.textContent)")
    block = preview(told.settings, project_of(told))
    assert "\n".join(cells) == block.text
    assert page.locator(".told [data-copy]").get_attribute("data-copy") == block.text
    expect(page.locator(".told-budget")).to_contain_text(f"{block.tokens:,} of 1,500 tokens")
    label = page.locator("svg.budget").get_attribute("aria-label") or ""
    assert label.startswith(f"About {block.tokens:,} of 1,500 tokens: ")
    axe(page)
    shoot(page, "memory")


def test_every_line_says_where_it_comes_from_and_why(told: Site, page: Page) -> None:
    told.open(page, "/memory")
    lines = page.locator(".told-tbl tbody tr:has(.told-why)")
    assert lines.count() == len(preview(told.settings, project_of(told)).lines)
    for row in lines.all():
        assert row.locator(".told-src").inner_text().strip()
        assert row.locator(".told-why").inner_text().strip()
    for row in page.locator(".told-sec").all():
        assert row.locator(".told-n").last.inner_text().endswith(("token", "tokens"))


def test_less_room_leaves_lines_out_and_says_so(told: Site, page: Page) -> None:
    told.open(page, "/memory?tokens=500")
    expect(page.locator(".told-budget")).to_contain_text("of 500 tokens")
    expect(page.locator(".told-foot")).to_contain_text("Left out for the budget")
    assert preview(told.settings, project_of(told), 500).text == "\n".join(
        page.locator(".told-text").evaluate_all("all => all.map(one => one.textContent)")
    )


def test_a_repository_that_is_gone_is_said(tmp_path: Path, page: Page) -> None:
    settings, repo = build(tmp_path)
    repo.path.rename(tmp_path / "elsewhere")
    with Site(settings) as site:
        site.open(page, "/memory")
        expect(page.locator(".told")).to_contain_text("not on this machine any more")
        assert len(rows(page)) == 50


def test_a_text_that_cannot_be_made_is_said_and_notes_are_still_there(
    tmp_path: Path, page: Page, axe: Callable[[Page], None]
) -> None:
    settings, _ = build(tmp_path)
    with Site(msgspec.structs.replace(settings, redact={"rules": "no list"})) as site:
        site.open(page, "/memory")
        expect(page.locator(".told .empty-title")).to_have_text("The text could not be made")
        expect(page.locator(".told")).to_contain_text("Sessions start without it, not late.")
        expect(page.locator(".told code").last).to_have_text("bad_input")
        expect(page.locator(".ob")).to_have_count(50)
        axe(page)


def test_nothing_remembered_yet(tmp_path: Path, page: Page, axe: Callable[[Page], None]) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    settings = settings_of(tmp_path)
    ingest(settings)
    with Site(settings) as site:
        site.open(page, "/memory")
        expect(page.locator(".empty-title")).to_have_text("Nothing remembered yet")
        expect(page.locator(".cmd-text")).to_have_text("whyfor ingest")
        axe(page)


# -- notes ---------------------------------------------------------------------------------------


def test_states_are_words_and_shapes(told: Site, page: Page) -> None:
    told.open(page, "/memory?q=disk+twice")
    row = page.locator(".ob")
    expect(row.locator(".is").first).to_have_text("Superseded")
    expect(row.locator(".ob-meta")).to_contain_text("by Prices are read from the cache.")
    told.open(page, "/memory?state=pinned")
    expect(page.locator(".ob .is-yours")).to_have_text("Pinned")
    told.open(page, "/memory?state=refuted")
    expect(page.locator(".ob .is-wrong")).to_have_text("Wrong")
    expect(page.locator(".ob-meta")).to_contain_text("never told again")
    told.open(page, "/memory?state=verified")
    expect(page.locator(".ob .is-fine").first).to_have_text("Verified")
    for icon in page.locator(".ob .is use").all():
        assert page.locator(icon.get_attribute("href") or "").count() == 1


def test_a_note_whose_file_changed_is_stale_and_says_which(
    shop: Shop, page: Page, axe: Callable[[Page], None]
) -> None:
    with Site(shop.settings) as site:
        site.open(page, "/memory")
        stale = page.locator(".ob", has=page.locator(".is-soon"))
        expect(stale.locator(".ob-title")).to_have_text(["Move refund rules out of the view"])
        expect(stale.locator(".is").first).to_have_text("Stale")
        expect(stale.locator(".ob-meta")).to_contain_text("views.py changed since")
        expect(page.locator(".lede")).to_contain_text("5 notes from 4 sessions, 4 of them current")
        site.open(page, "/memory?state=stale")
        assert rows(page) == ["Move refund rules out of the view"]
        expect(page.locator("#note .side-meta").first).to_contain_text("views.py changed since")
        axe(page)
        site.open(page, "/memory?state=verified")
        assert len(rows(page)) == 4


def test_a_note_whose_files_are_gone_is_not_told(fresh: Site, page: Page) -> None:
    repo = Repo(project_of(fresh), Clock())
    new = NewNote(text="The basket has one price list.", type="rule", files=("basket.py",))
    add_note(fresh.settings, repo.path, new)
    fresh.open(page, "/memory?q=price+list")
    expect(page.locator(".ob .is")).to_have_text("Stated")
    expect(page.locator(".told-tbl")).to_contain_text("one price list")
    repo.git("rm", "-q", "basket.py")
    repo.commit("Remove it")
    page.reload()
    expect(page.locator(".ob .is-soon")).to_have_text("Stale")
    expect(page.locator(".ob-meta")).to_contain_text("its files were deleted; not told")
    expect(page.locator(".told-tbl")).not_to_contain_text("one price list")


def test_notes_are_filtered(told: Site, page: Page) -> None:
    told.open(page, "/memory?type=bugfix")
    (bugfix,) = rows(page)
    assert "basket.py" in bugfix
    told.open(page, "/memory?file=basket.py&type=bugfix")
    assert rows(page) == [bugfix]
    told.open(page, "/memory?agent=codex")
    expect(page.locator(".empty-title")).to_have_text("No note is all of this")
    expect(page.locator(".drops")).to_contain_text("Without Codex")
    page.locator(".drops a").first.click()
    expect(page.locator(".ob")).to_have_count(50)
    told.open(page, "/memory?branch=nowhere")
    assert rows(page) == []
    told.open(page, "/memory?q=NUMBER7.")
    assert len(rows(page)) == 1
    told.open(page, "/memory?q=narrative")  # the name of a field is no word of a note
    assert rows(page) == []


def test_a_chosen_filter_applies_at_once_and_keeps_the_project(told: Site, page: Page) -> None:
    told.open(page, "/memory?tokens=500")
    with page.expect_navigation():
        page.locator("select[name=type]").select_option("rule")
    assert "type=rule" in page.url and "tokens=500" in page.url and "project=" in page.url
    expect(page.locator("select[name=type]")).to_have_value("rule")


def test_pages_of_fifty_hold_every_note_once(told: Site, page: Page) -> None:
    told.open(page, "/memory")
    everything = len(notes(told.settings, MemoryQuery(), 0))
    expect(page.locator(".filterbar-end")).to_contain_text(f"50 of {everything} shown")
    first = rows(page)
    page.get_by_role("link", name="Show older").click()
    expect(page.locator(".filterbar-end")).to_contain_text(f"{everything - 50} of {everything}")
    assert len({*first, *rows(page)}) == everything
    page.get_by_role("link", name="Newest").click()
    expect(page.locator(".ob")).to_have_count(50)
    assert rows(page) == first


def test_a_quote_leads_to_its_event(told: Site, page: Page) -> None:
    told.open(page, "/memory?q=disk+twice")
    panel = page.locator("#note")
    expect(panel.locator(".quote-agent").first).to_have_text(CAUSE)
    panel.locator(".quote-src a").first.click()
    event = page.locator(page.url[page.url.index("#") :])
    expect(event).to_contain_text(CAUSE)


def test_a_note_nobody_was_told_says_so(told: Site, page: Page) -> None:
    key = find(told.settings, "number3.").observation.key
    told.open(page, f"/memory?at={key}")
    expect(page.get_by_role("heading", name="Told to no session yet")).to_be_visible()


def test_keys_move_and_the_panel_follows(told: Site, page: Page) -> None:
    told.open(page, "/memory?type=rule")
    titles = rows(page)
    expect(page.locator("#h-note")).to_have_text(titles[0])
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(page.locator("#h-note")).to_have_text(titles[1])
    expect(page.locator(".ob[aria-current]")).to_contain_text(titles[1])
    page.keyboard.press("k")
    expect(page.locator("#h-note")).to_have_text(titles[0])
    page.reload()
    expect(page.locator("#h-note")).to_have_text(titles[0])
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/timeline*")
    page.keyboard.press("g")
    page.keyboard.press("m")
    page.wait_for_url("**/memory*")


def test_nothing_is_lost_on_a_narrow_screen(told: Site, page: Page) -> None:
    page.set_viewport_size(NARROW)  # type: ignore[arg-type]
    told.open(page, "/memory")
    no_sideways(page)
    title = rows(page)[2]
    page.locator(".ob-title").nth(2).click()
    page.wait_for_url("**#note")
    expect(page.locator("#h-note")).to_have_text(title)
    expect(page.locator("#h-note")).to_be_in_viewport()


def test_everything_works_without_a_script(fresh: Site, plain: Page) -> None:
    fresh.open(plain, "/memory?type=bugfix")
    plain.locator("#note form[action$='/pin'] button").click()
    expect(plain.locator(".banner-done")).to_contain_text("Pinned")
    expect(plain.locator(".ob .is-yours")).to_have_text("Pinned")
    plain.locator("#note summary", has_text="Forget").click()
    plain.locator("#note .btn-kill").click()
    expect(plain.locator(".banner-done")).to_contain_text("Forgotten")
    expect(plain.locator(".empty-title").last).to_have_text("No note is all of this")


# -- actions -------------------------------------------------------------------------------------


def test_a_pin_and_its_undo(fresh: Site, page: Page) -> None:
    fresh.open(page, "/memory?type=bugfix")
    page.keyboard.press(".")
    expect(page.locator(".banner-done")).to_contain_text("Pinned")
    expect(page).not_to_have_url(re.compile("did="))
    assert "type=bugfix" in page.url
    bugfix = find(fresh.settings, "basket.py")
    assert bugfix.observation.pinned
    expect(page.locator(".told-tbl tr.is-selected")).to_contain_text(bugfix.observation.key[:8])
    page.locator(".banner-done button").click()
    expect(page.locator(".banner-done")).to_contain_text("Unpinned")
    assert not find(fresh.settings, "basket.py").observation.pinned


def test_an_edit_keeps_the_old_words(fresh: Site, page: Page) -> None:
    fresh.open(page, "/memory?q=disk+twice")
    page.locator("#note summary", has_text="Edit").click()
    expect(page.locator("#edit-text")).to_have_value(CAUSE)
    page.locator("#edit-text").fill("Prices are read <b>twice</b>; größer & mehr.")
    page.locator("#note .act[open] .btn-main").click()
    expect(page.locator(".banner-done")).to_contain_text("Saved")
    expect(page.locator("#h-note")).to_have_text("Prices are read <b>twice</b>; größer & mehr.")
    expect(page.locator("#note .note-past")).to_contain_text("Written by you")


def test_what_is_wrong_is_replaced_by_what_is_right(fresh: Site, page: Page) -> None:
    fresh.open(page, "/memory?q=disk+twice")
    page.locator("#note summary", has_text="This is wrong").click()
    page.locator("#right-text").fill("Prices are read from a cache.")
    page.locator("#note .act[open] .btn-main").click()
    expect(page.locator(".banner-done")).to_contain_text("never told again")
    right = find(fresh.settings, "from a cache")
    assert right.observation.pinned and right.observation.by == "person"
    wrong = find(fresh.settings, "disk twice")
    assert wrong.observation.state == "refuted"
    assert wrong.superseded_by == right.observation.key
    expect(page.locator(".told-tbl")).to_contain_text("Prices are read from a cache.")
    expect(page.locator(".told-tbl")).not_to_contain_text("disk twice")


def test_forgetting_asks_first_and_says_what_stays(fresh: Site, page: Page) -> None:
    fresh.open(page, "/memory?type=bugfix")
    expect(page.locator("#note .btn-kill")).to_be_hidden()
    page.locator("#note summary", has_text="Forget").click()
    dialog = page.locator("#note .danger")
    expect(dialog).to_contain_text("told to no session again")
    expect(dialog).to_contain_text("The session and its commits stay")
    dialog.locator(".btn-kill").click()
    expect(page.locator(".banner-done")).to_contain_text("Forgotten")
    assert "bugfix" not in {
        each.observation.type for each in notes(fresh.settings, MemoryQuery(), 0)
    }


def test_a_note_that_is_gone_is_said(fresh: Site, page: Page, complaints: Complaints) -> None:
    fresh.open(page, "/memory?type=bugfix")
    page.locator("#note form[action$='/pin']").evaluate(
        "form => form.action = '/memory/ffffffff/pin'"
    )
    page.keyboard.press(".")
    expect(page.locator("main")).to_contain_text("No note is called")
    complaints.clear()


def test_a_form_survives_a_restart_of_the_server(tmp_path: Path, context: BrowserContext) -> None:
    settings, _ = build(tmp_path)
    page = context.new_page()
    with Site(settings) as first:
        page.goto(first.keys.link(Running(0, first.port)))
        page.goto(first.url + "/memory?type=bugfix")
        expect(page.locator(".live")).to_have_attribute("data-live", "on")
        page.locator("#note summary", has_text="Edit").click()
        page.locator("#edit-text").fill("Typed before the restart.")
    with Site(settings, port=first.port):
        expect(page.locator(".live")).to_have_attribute("data-live", "on")
        page.locator("#note .act[open] .btn-main").click()
        expect(page.locator("#h-note")).to_have_text("Typed before the restart.")
    assert find(settings, "Typed before").observation.type == "bugfix"


# -- hostile -------------------------------------------------------------------------------------


def test_a_note_is_text_whatever_it_holds(tmp_path: Path, page: Page) -> None:
    settings, repo = build(tmp_path)
    for text in HOSTILE:
        pin(settings, add_note(settings, repo.path, NewNote(text=text[:1500])).observation.key)
    with Site(settings) as site:
        site.open(page, "/memory?state=pinned")
        no_sideways(page)
        assert page.locator(".ob").count() == len(HOSTILE)
        for row in range(len(HOSTILE)):
            page.locator(".ob-title").nth(row).click()
        assert page.evaluate("fired") == []


# -- on other pages ------------------------------------------------------------------------------


def session_path(site: Site) -> str:
    row = find(site.settings, "disk twice")
    return f"/sessions/{row.agent}/{row.session_id}"


def test_a_session_begins_with_its_summary_and_the_notes_it_led_to(
    told: Site, page: Page, axe: Callable[[Page], None]
) -> None:
    told.open(page, session_path(told))
    summary = page.locator(".mem-sum")
    expect(summary.locator("dt")).to_contain_text(["Request", "Completed"])
    summary.locator("summary").click()
    types = summary.locator(".ob .ob-type").all_inner_texts()
    assert {"Rule", "Discovery", "Bugfix"} <= set(types)
    link = summary.locator("dd .turn-src").last
    words = link.locator("xpath=..").inner_text().rpartition(" turn ")[0]
    link.click()
    expect(page.locator(page.url[page.url.index("#") :])).to_contain_text(words.strip())
    axe(page)


def test_a_session_without_a_memory_has_no_summary(told: Site, page: Page) -> None:
    other = find(told.settings, "number9.")
    told.open(page, f"/sessions/{other.agent}/{other.session_id}")
    expect(page.locator(".mem-sum .ob")).to_have_count(1)


def test_a_commit_shows_what_is_remembered_about_its_files(
    told: Site, page: Page, axe: Callable[[Page], None]
) -> None:
    repo = Repo(project_of(told), Clock())
    told.open(page, f"/commits/{repo.git('rev-parse', 'HEAD~1')}")
    expect(page.locator("main")).to_contain_text("README.md")
    expect(page.locator(".commit-notes")).to_have_count(0)
    told.open(page, f"/commits/{repo.head}")
    row = page.locator(".commit-notes .ob-title", has_text="basket.py")
    title = row.inner_text()
    expect(page.locator(".commit-notes")).not_to_contain_text("disk twice")  # superseded
    axe(page)
    row.click()
    expect(page.locator("#h-note")).to_have_text(title)


def test_the_panel_beside_the_list_tells_the_summary_with_turns(told: Site, page: Page) -> None:
    row = find(told.settings, "disk twice")
    told.open(page, f"/sessions?at={row.agent}:{row.session_id}")
    peek = page.locator("#peek")
    expect(peek.locator("h3", has_text="Request")).to_contain_text("turn 1")
    expect(peek.locator("h3", has_text="Completed")).to_have_count(1)
    peek.locator(".mem-line .turn-src").first.click()
    page.wait_for_url("**/sessions/claude/**")
