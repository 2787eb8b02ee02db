"""Timeline: commits with their stories, groups, lanes, filters, pages, the panel, and what
changes while one looks."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.story.links.workshop import Agent, Clock, Repo, body
from whyfor.model.checkpoints import Note
from whyfor.model.stories import CommitFilter
from whyfor.service.ingest import ingest
from whyfor.service.note import note
from whyfor.service.timeline import timeline
from whyfor.service.unlink import unlink

from .browser import Site
from .conftest import Home
from .hostile import HOSTILE
from .sessions import standing
from .shop import Shop, build, settings_of

PROJECT = "example.com/acme/checkout"


@pytest.fixture(scope="module")
def store(shop: Shop) -> Iterator[Site]:
    with Site(shop.settings) as site:
        yield site


def _row(page: Page, shop: Shop, name: str) -> str:
    return f"#c-{shop.commits[name][:12]}"


# -- what is shown -------------------------------------------------------------------------------


def test_commits_stand_in_order_with_what_was_asked_and_how_we_know(
    store: Site, shop: Shop, page: Page
) -> None:
    store.open(page, "/timeline")
    expect(page.locator("h1")).to_have_text("acme/checkout")
    expect(page.locator(".lede")).to_contain_text(
        "11 commits in 30 days, 5 with a story. 6 sessions."
    )
    titles = page.locator(".tl-row[data-item] .tl-title").all_inner_texts()
    assert titles[:4] == [
        "Add all postcodes",
        "Sort the views by name",
        "Log every failed charge",
        "Merge branch 'refund-flow'",
    ]
    row = page.locator(_row(page, shop, "keys"))
    expect(row.locator(".said")).to_contain_text("One idempotency key per order attempt")
    expect(row.locator(".tl-nums")).to_have_text("2 prompts, 6 tools")
    expect(row.locator(".ev")).to_contain_text("output")
    expect(row.locator(".tag")).to_have_text("Feature")


def test_commits_without_a_story_say_why_in_one_line(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, "/timeline")
    expect(page.locator(_row(page, shop, "typo"))).to_contain_text("no agent took part")
    expect(page.locator(_row(page, shop, "first"))).to_contain_text(
        "before the first session kept here"
    )
    merge = page.locator(_row(page, shop, "merge"))
    expect(merge).to_contain_text("merge, no conversation of its own")
    expect(merge.locator(".node-merge")).to_have_count(1)
    near = page.locator(_row(page, shop, "near"))
    expect(near.locator(".hint")).to_contain_text(
        "nearby: Claude Code wrote shop/views.py shortly before"
    )
    expect(near.locator(".ev")).to_have_count(0)


def test_a_group_nests_under_its_root_and_folds(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, "/timeline")
    root, child = (
        page.locator(_row(page, shop, "keys")),
        page.locator(_row(page, shop, "changelog")),
    )
    expect(child).to_have_class(re.compile("tl-child"))
    expect(child).to_contain_text("The agent went on by itself")
    assert page.evaluate(
        "([a, b]) => document.querySelector(a).nextElementSibling.matches(b)",
        [_row(page, shop, "keys"), _row(page, shop, "changelog")],
    )
    fold = root.get_by_role("button", name="2 commits")
    fold.click()
    expect(child).to_be_hidden()
    expect(fold).to_have_attribute("aria-expanded", "false")
    fold.click()
    expect(child).to_be_visible()


def test_a_rewritten_commit_names_what_it_was(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, "/timeline")
    row = page.locator(_row(page, shop, "amended"))
    expect(row.locator(".was")).to_have_text(f"was {shop.commits['before'][:7]}")
    row.locator(".was a").click()
    expect(page.locator(".banner")).to_contain_text("This commit was rewritten.")


def test_sessions_are_lanes_tied_to_their_commits(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, "/timeline")
    expect(page.locator(_row(page, shop, "both")).locator(".knot")).to_have_count(2)
    expect(page.locator(_row(page, shop, "keys")).locator(".knot")).to_have_count(1)
    expect(page.locator(_row(page, shop, "typo")).locator(".knot")).to_have_count(0)
    first = page.locator(".tl-row").first
    expect(first).to_contain_text("Not in a commit yet")
    expect(first).to_contain_text("1 session, 1 file changed")
    expect(first.locator(".lane-letters")).to_have_text("Cc")


def test_a_running_session_is_not_in_a_commit_yet_whether_or_not_it_changed_a_file(
    shop: Shop,
) -> None:
    big, working = (shop.sessions[name].session_id for name in ("big", "open"))
    for running, names in (([], {working}), ([f"claude:{big}"], {working, big})):
        found = timeline(shop.settings, PROJECT, CommitFilter(), open_sessions=running).pending
        assert found is not None and found.files == 1
        assert {session.session_id for session in found.sessions} == names


def test_the_panel_tells_what_was_said_by_role(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, f"/timeline?at={shop.commits['keys']}")
    panel = page.locator(".tl-side")
    expect(panel.locator("header .sha")).to_have_text(shop.commits["keys"][:7])
    assert panel.locator(".role").all_inner_texts() == [
        "request",
        "request",
        "answer",
        "closing words",
        "question",
    ]
    expect(panel.locator(".said-block").nth(2)).to_have_text("24 hours")
    expect(panel.locator(".words").first).to_contain_text("The retry loop sends a new request")
    link = panel.locator(".rel-meta a").first
    expect(link).to_have_attribute(
        "href", re.compile(rf"^/sessions/claude/{shop.sessions['keys'].session_id}\?at=\d+#e\d+$")
    )


def test_no_projects_is_said(tmp_path: Path, page: Page) -> None:
    repo = Repo.made(tmp_path / "home" / "x", Clock(1_700_000_000))
    agent = Agent("nowhere", repo, cwd="/nowhere/at/all")
    agent.prompt("Hello")
    agent.save(tmp_path / "home")
    settings = settings_of(tmp_path)
    ingest(settings)
    with Site(settings) as site:
        site.open(page, "/timeline")
        expect(page.locator("h1")).to_have_text("all")
        expect(page.locator(".banner")).to_contain_text("not on this machine any more")
        expect(page.locator(".empty")).to_be_visible()


def test_projects_are_listed_the_latest_first(store: Site, page: Page) -> None:
    store.open(page, "/timeline/projects")
    expect(page.locator(".tl-project")).to_have_count(1)
    assert page.locator(".tl-project-where").inner_text().startswith("~/")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("acme/checkout")


# -- moving about --------------------------------------------------------------------------------


def test_keys_walk_the_rows_and_the_panel_follows(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, "/timeline")
    panel = page.locator(".tl-side header .sha")
    expect(panel).to_have_text(shop.commits["big"][:7])
    for _ in range(3):
        page.keyboard.press("j")
    expect(panel).to_have_text(shop.commits["amended"][:7])
    expect(page.locator(".is-selected")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Log every failed charge")


def test_a_click_beside_a_link_chooses_a_row(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, "/timeline")
    page.locator(_row(page, shop, "both")).locator(".said").click()
    expect(page.locator(".tl-side header .sha")).to_have_text(shop.commits["both"][:7])
    assert page.url.endswith("/timeline")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("tag=DOCS", ["changelog"]),
        ("story=with", ["big", "amended", "both", "keys", "changelog"]),
        ("story=without&author=ada", ["near", "merge", "typo", "side", "charge", "first"]),
        ("agent=codex", []),
        ("author=nobody", []),
        ("branch=refund-flow", ["side", "both", "keys", "changelog", "charge", "first"]),
        ("branch=*&tag=REFACTORING", ["both"]),
    ],
)
def test_filters(store: Site, shop: Shop, page: Page, query: str, names: list[str]) -> None:
    store.open(page, f"/timeline?{query}")
    ids = page.locator(".tl-row[data-item]").evaluate_all("rows => rows.map(row => row.id)")
    assert ids == [f"c-{shop.commits[name][:12]}" for name in names]
    expect(page.locator(".empty")).to_have_count(0 if names else 1)


def test_a_filter_is_sent_when_it_is_changed_and_stays(store: Site, page: Page) -> None:
    store.open(page, "/timeline")
    page.get_by_label("Without").check()
    expect(page).to_have_url(re.compile("story=without"))
    expect(page.get_by_label("Without")).to_be_checked()
    # the new page's script is there
    expect(page.locator(".live")).to_have_attribute("data-live", "on")
    page.locator("select[name=tag]").select_option("BUGFIX")
    expect(page).to_have_url(re.compile("tag=BUGFIX"))
    expect(page.locator(".empty")).to_contain_text("No commit fits")
    page.get_by_role("link", name="Show all commits").click()
    expect(page.locator(".tl-row[data-item]")).to_have_count(11)


def test_until_and_since_bound_the_list(store: Site, page: Page) -> None:
    store.open(page, "/timeline?until=2001-01-01")
    expect(page.locator(".empty")).to_be_visible()
    store.open(page, "/timeline?since=7d")
    expect(page.locator(".tl-row[data-item]")).to_have_count(11)


@pytest.mark.parametrize(
    "query",
    ["since=nonsense", "until=nonsense", "after=nonsense", "branch=--all", "project=nothing"],
)
def test_what_makes_no_sense_is_said(
    store: Site, page: Page, complaints: list[str], query: str
) -> None:
    store.open(page, f"/timeline?{query}")
    expect(page.locator("h1")).to_be_visible()
    assert any("40" in said for said in complaints)
    complaints.clear()


def test_pages_are_of_one_list_and_hold_every_commit_once(shop: Shop) -> None:
    whole = timeline(shop.settings, PROJECT, CommitFilter())
    seen, after, shown = [], None, []
    while True:
        part = timeline(shop.settings, PROJECT, CommitFilter(), after=after, limit=4)
        seen += [row.entry.told.commit.sha for row in part.rows if row.entry]
        shown.append(part.shown)
        after = part.next
        if after is None:
            break
    assert sorted(seen) == sorted(row.entry.told.commit.sha for row in whole.rows if row.entry)
    assert len(seen) == len(set(seen))
    assert shown == [4, 8, 11]


def test_a_group_that_begins_on_another_page_says_where(shop: Shop) -> None:
    names = [
        row.entry.told.commit.sha
        for row in timeline(shop.settings, PROJECT, CommitFilter()).rows
        if row.entry
    ]
    cut = names.index(shop.commits["keys"]) + 1  # after the child, which is newer, before its root
    entries = [
        row.entry
        for row in timeline(shop.settings, PROJECT, CommitFilter(), limit=cut).rows
        if row.entry
    ]
    assert entries[-1].told.commit.sha == shop.commits["changelog"]
    assert (entries[-1].root, entries[-1].child) == (shop.commits["keys"], False)


# -- while one looks -----------------------------------------------------------------------------


def test_a_new_commit_appears_without_a_reload_and_so_does_what_becomes_of_it(
    tmp_path: Path, page: Page
) -> None:
    shop = build(tmp_path)
    with Site(shop.settings) as site:
        site.open(page, "/timeline")
        expect(page.locator(".live")).to_have_attribute("data-live", "on")
        page.evaluate("window.same = true")
        webhooks = shop.sessions["open"]
        sha = webhooks.commit("Reject old webhooks")
        webhooks.save(tmp_path / "home")
        ingest(shop.settings)
        row = page.locator(f"#c-{sha[:12]}")
        expect(row).to_be_visible(timeout=15_000)
        expect(row.locator(".ev")).to_contain_text("output")
        expect(page.locator(".lede")).to_contain_text("12 commits")
        expect(page.locator(".tl-open")).to_have_count(0)
        # no agent says anything: only the commit is told
        said = Note(title="Turn old webhooks away")
        note(shop.settings, shop.repo.path, sha, said)
        expect(row).to_contain_text("Turn old webhooks away")
        assert page.evaluate("window.same")
        site.open(page, f"/commits/{sha}")
        expect(page.locator(".live")).to_have_attribute("data-live", "on")
        fold = page.locator("details.filediff").first
        was = fold.evaluate("fold => (window.same = true, fold.open = !fold.open)")
        unlink(shop.settings, shop.repo.path, sha, None)
        expect(page.locator(".no-story")).to_be_visible()
        assert page.evaluate("window.same") and fold.evaluate("fold => fold.open") == was


def test_a_commit_nobody_looked_at_yet_is_judged_on_the_spot(tmp_path: Path) -> None:
    shop = build(tmp_path)
    shop.repo.commit("Take the webhooks in")
    (row,) = (
        row
        for row in timeline(shop.settings, PROJECT, CommitFilter()).rows
        if row.entry and row.entry.told.commit.sha == shop.repo.head
    )
    assert row.kind == "story"


def test_a_session_known_to_run_keeps_its_mark(store: Site, shop: Shop, page: Page) -> None:
    store.hub.stand([standing(shop.sessions["open"].session_id, "running", project=PROJECT)])
    store.open(page, "/timeline")
    expect(page.locator(".tl-open .lane-head")).to_have_count(1)
    store.hub.stand([])


# -- what goes wrong -----------------------------------------------------------------------------


def test_without_its_repository_what_was_kept_is_told(tmp_path: Path, page: Page) -> None:
    shop = build(tmp_path)
    shutil.rmtree(shop.repo.path)
    with Site(shop.settings) as site:
        site.open(page, f"/timeline?project={PROJECT}")
        expect(page.locator(".banner")).to_contain_text("not on this machine any more")
        expect(page.locator(".tl-story")).to_have_count(5)
        expect(page.locator("#g-kept")).to_contain_text("Its sessions")
        expect(page.locator(".tl-kept .ses-row")).to_have_count(6)
        page.locator(f"#c-{shop.commits['keys'][:12]} .tl-title").click()
        expect(page.locator("h1")).to_have_text("Charge once when the gateway times out")
        expect(page.locator(".banner")).to_contain_text("not on this machine any more")
        expect(page.locator(".filediff")).to_have_count(2)


def test_it_opens_on_the_project_with_the_newest_story(tmp_path: Path, page: Page) -> None:
    shop = build(tmp_path)
    other = Repo.made(tmp_path / "home" / "other", Clock(shop.repo.clock.now + 60))
    other.git("remote", "add", "origin", "git@example.com:acme/other.git")
    later = Agent("later", other)
    later.prompt("Only a question, no commit.")
    later.say("An answer.")
    later.save(tmp_path / "home")
    ingest(shop.settings)
    with Site(shop.settings) as site:
        site.open(page, "/timeline")
        expect(page.locator("h1")).to_have_text("acme/checkout")


def test_a_repository_without_a_commit(tmp_path: Path, page: Page) -> None:
    repo = Repo.made(tmp_path / "home" / "empty", Clock(1_700_000_000), first=False)
    repo.git("remote", "add", "origin", "git@example.com:acme/empty.git")
    agent = Agent("empty", repo)
    agent.prompt("Begin")
    agent.save(tmp_path / "home")
    settings = settings_of(tmp_path)
    ingest(settings)
    with Site(settings) as site:
        site.open(page, "/timeline")
        expect(page.locator("h1")).to_have_text("acme/empty")
        expect(page.locator(".empty")).to_contain_text("No commits yet")


def test_nothing_of_a_transcript_or_a_commit_acts(
    tmp_path: Path, page: Page, axe: Callable[[Page], None]
) -> None:
    clock = Clock()
    repo = Repo.made(tmp_path / "home" / "<img src=x onerror=alert(1)>", clock)
    repo.git("checkout", "-q", "-b", 'x"><img/src=x/onerror=alert(1)>{{7}}')
    agent = Agent("hostile", repo)
    for number, words in enumerate(HOSTILE):
        agent.prompt(words + " in a prompt")
        agent.ask(words, words)
        name = re.sub(r"[\x00-\x1f\x7f/\\]", "_", words)[:80]
        text = words.replace("\x00", "")  # with it, git would take the file for a binary one
        agent.write(f"{name}.py", f"{text}\n" + body(f"hostile{number}"))
        repo.env["GIT_AUTHOR_NAME"] = re.sub(r"[\x00\n]", "", words)[:100]
        repo.commit(text)
        agent.say(words)
    agent.save(tmp_path / "home")
    settings = settings_of(tmp_path)
    ingest(settings)
    with Site(settings) as site:
        site.open(page, "/timeline?since=all")
        expect(page.locator(".tl-story")).to_have_count(len(HOSTILE))
        assert (
            page.locator(
                "main img, main iframe, main script, main style, main form:not(.filterbar)"
            ).count()
            == 0
        )
        axe(page)
        shas = page.locator(".tl-story").evaluate_all("rows => rows.map(row => row.dataset.sha)")
        for sha in shas:
            page.goto(f"{site.url}/timeline?since=all&at={sha}")
            assert page.locator(".tl-side :is(img, iframe, script, style, form)").count() == 0
            hrefs = page.locator("main a").evaluate_all("links => links.map(link => link.href)")
            assert all(re.match(r"https?://|mailto:", href) for href in hrefs)
            assert page.evaluate("fired") == []


# -- how it looks --------------------------------------------------------------------------------


def test_axe_finds_nothing(
    store: Site, page: Page, axe: Callable[[Page], None], shoot: Callable[[Page, str], None]
) -> None:
    store.open(page, "/timeline")
    axe(page)
    shoot(page, "timeline-shop")
    store.open(page, "/timeline/projects")
    axe(page)


def test_the_demo_looks_right(
    site: Site, demo: Home, page: Page, shoot: Callable[[Page, str], None]
) -> None:
    site.open(page, "/timeline")
    expect(page.locator(".tl-row[data-item]")).to_have_count(6)
    expect(page.locator(".tl-child")).to_contain_text("answers the agent’s question")
    shoot(page, "timeline")


def test_it_reads_without_a_script(store: Site, shop: Shop, plain: Page) -> None:
    store.open(plain, "/timeline")
    expect(plain.locator(".tl-row[data-item]")).to_have_count(11)
    expect(plain.locator(".fold")).to_have_text("2 commits")
    expect(plain.get_by_role("button", name="Apply")).to_be_visible()
    plain.locator(_row(plain, shop, "both")).locator(".tl-nums").click()
    expect(plain.locator(".tl-side header .sha")).to_have_text(shop.commits["both"][:7])
