"""File: each line with the turn that wrote it, at any version, and what is said where it cannot be
told."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.cases import check_each
from tests.story.links.workshop import Agent, Clock, Repo, body
from whyfor.model.errors import BadInput, NotFound
from whyfor.service.file_page import PAGE, FileQuery, file_page
from whyfor.service.ingest import ingest

from .browser import Site, no_sideways
from .conftest import Home
from .hostile import EVERYTHING as HOSTILE
from .shop import Shop, settings_of

PROJECT = "example.com/acme/checkout"


@pytest.fixture(scope="module")
def store(shop: Shop) -> Iterator[Site]:
    with Site(shop.settings) as site:
        yield site


def _at(path: str, **more: object) -> str:
    rest = "".join(f"&{name}={quote(str(value))}" for name, value in more.items())
    return f"/file?project={quote(PROJECT)}&path={quote(path)}{rest}"


def _gutter(page: Page) -> list[str]:
    found: list[str] = page.locator(".b-t").evaluate_all(
        "all => all.map(one => one.firstChild.data)"
    )
    return found


def test_each_line_has_its_turn_and_each_turn_its_card(
    store: Site,
    shop: Shop,
    page: Page,
    axe: Callable[[Page], None],
    shoot: Callable[[Page, str], None],
) -> None:
    store.open(page, _at("shop/charge.py"))
    expect(page.locator("h1")).to_have_text("charge.py")
    labels = _gutter(page)
    assert set(labels) == {"Cc T2", "?", "Ada"}
    expect(page.locator(".who-key")).to_contain_text("3 Claude Code")
    expect(page.locator(".who-key")).to_contain_text("from before capture")
    cards = page.locator("[data-cards] .because")
    expect(cards).to_have_count(3)
    expect(cards.nth(1)).to_contain_text("One idempotency key per order attempt")
    # a run is chosen by its key or a click, and its card comes first
    page.locator(".b-in", has_text="Cc T2").first.click()
    expect(page.locator("#h-selected")).to_have_text("Line 2")
    expect(page.locator(".because-sel")).to_contain_text("Every attempt now carries one key")
    expect(page.locator(".because-sel .ev")).to_contain_text("output")
    page.keyboard.press("j")
    expect(page.locator("#h-selected")).to_have_text("Lines 3–4")
    expect(page.locator(".b-sel")).to_have_count(2)
    page.keyboard.press("k")
    expect(page.locator("#h-selected")).to_have_text("Line 2")
    axe(page)
    shoot(page, "file")
    page.locator(".because-sel header a").click()
    expect(page).to_have_url(
        f"{store.url}/sessions/claude/{shop.sessions['keys'].session_id}?at=4#e4"
    )


def test_versions_are_gone_through_by_keys_and_without_script(
    store: Site, shop: Shop, page: Page, plain: Page
) -> None:
    store.open(page, _at("shop/charge.py"))
    chosen = page.locator("select[name=at] option[selected]")
    assert chosen.get_attribute("value") == shop.commits["keys"]
    page.keyboard.press("[")
    expect(page.locator(".lede")).to_contain_text("12 lines")
    assert chosen.get_attribute("value") == shop.commits["charge"]
    page.wait_for_load_state()
    page.keyboard.press("]")
    expect(page.locator(".b-t", has_text="Cc T2").first).to_be_visible()
    store.open(plain, _at("shop/charge.py", at=shop.commits["charge"]))
    plain.locator("select[name=at]").select_option(shop.commits["keys"])
    plain.get_by_role("button", name="Show").click()
    plain.locator(".b-in", has_text="Cc T2").first.click()
    expect(plain.locator(".because-sel")).to_contain_text("One idempotency key")


def test_commits_and_sessions_lead_to_the_file_and_back(
    store: Site, shop: Shop, page: Page
) -> None:
    store.open(page, f"/commits/{shop.commits['keys']}")
    page.locator("#f0").get_by_role("link", name="Who wrote this file").click()
    expect(page.locator("h1")).to_have_text("charge.py")
    page.locator(".because-unknown a.sha").first.click()
    expect(page.locator("h1")).to_have_text("Charge cards")
    store.open(page, f"/sessions/claude/{shop.sessions['keys'].session_id}")
    page.locator("details.tool", has=page.locator("a.file-open")).first.locator("summary").click()
    page.locator("a.file-open").first.click()
    expect(page.locator("h1")).to_have_text("charge.py")


def test_a_long_file_comes_in_parts_and_is_counted_whole(
    store: Site, shop: Shop, page: Page
) -> None:
    store.open(page, _at("data/postcodes.py"))
    expect(page.locator(".who-key")).to_contain_text("3,000 Claude Code")
    expect(page.locator(".blame tr")).to_have_count(PAGE)
    page.get_by_role("link", name="Lines after").first.click()
    expect(page.locator(".blame tr")).to_have_count(1000)
    store.open(page, _at("data/postcodes.py", line=2500))
    expect(page.locator("#L2001")).to_be_visible()
    expect(page.locator("#h-selected")).to_have_text("Lines 1–3000")
    no_sideways(page)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Repo]:
    """A repository with everything that is no plain text file, and files that are gone."""
    folder = tmp_path_factory.mktemp("odd")
    home = folder / "home"
    home.mkdir()
    repo = Repo.made(home / "code", Clock())
    agent = Agent("odd", repo)
    agent.prompt(HOSTILE)
    agent.write("old.py", body("old"))
    agent.commit("Old name")
    repo.git("mv", "old.py", "new.py")
    agent.write("brief.py", "# " + HOSTILE.replace("\0", "") + "\n" + body("brief"))
    agent.write("<i>ä'.py", body("named"))
    agent.commit(f"New name {HOSTILE[:60]}")
    repo.git("rm", "-q", "brief.py")
    (repo.path / "link").symlink_to("new.py")
    repo.write("picture.bin", "a\0b")
    repo.write("empty.txt", "")
    repo.write("weights.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    repo.write("large.txt", "a line of text\n" * 600_000)
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.head},module")
    repo.git("add", "-A", "--", "link", "picture.bin", "empty.txt", "weights.bin", "large.txt")
    repo.git("commit", "-q", "-m", "Odd files")
    agent.save(home)
    ingest(settings_of(folder))
    return folder, repo


def test_what_has_no_lines_says_so_in_words(
    odd: tuple[Path, Repo], page: Page, axe: Callable[[Page], None]
) -> None:
    folder, repo = odd
    settings = settings_of(folder)
    project = f"git:{repo.sha('HEAD~3')}"

    def check(case: tuple[str, str, str, str]) -> None:
        path, at, state, renamed = case
        found = file_page(settings, FileQuery(project, path, at))
        assert (found.state, found.renamed or "") == (state, renamed)

    cases = [
        ("picture.bin", "", "not-text", ""),
        ("large.txt", "", "too-large", ""),
        ("link", "", "link", ""),
        ("module", "", "submodule", ""),
        ("nowhere.py", "", "none", ""),
        ("new.py", "f" * 40, "no-commit", ""),
        ("new.py", "--output=x", "no-commit", ""),
        ("old.py", "", "", "new.py"),
        ("brief.py", "", "", ""),
        ("empty.txt", "", "", ""),
        (f"{repo.path}/new.py", "", "", ""),
    ]
    check_each([(f"{case[0]} at {case[1]}", case) for case in cases], check)
    gone = file_page(settings, FileQuery(project, "brief.py"))
    assert gone.removed is not None and gone.removed.sha == repo.head
    assert gone.at is not None and gone.at.sha == repo.sha("HEAD~1")
    renamed = file_page(settings, FileQuery(project, "new.py"))
    assert [version.path for version in renamed.versions] == ["new.py", "old.py"]
    assert [card.label for card in renamed.cards] == ["Cc T1"]
    for path in ("../../etc/passwd", "/etc/passwd", "", "a\0b", ".", ".."):
        with pytest.raises(BadInput):
            file_page(settings, FileQuery(project, path))
    with pytest.raises(NotFound):
        file_page(settings, FileQuery("git:none", "new.py"))
    with Site(settings) as site:
        for path in ("brief.py", "picture.bin", "weights.bin", "<i>ä'.py", "empty.txt"):
            site.open(page, f"/file?project={quote(project)}&path={quote(path)}")
            expect(page.locator("h1")).to_have_text(path)
            no_sideways(page)
        site.open(page, f"/file?project={quote(project)}&path=brief.py&line=1")
        axe(page)


def test_a_repository_that_is_gone_is_told_from_what_was_kept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    repo = Repo.made(home / "code", Clock())
    project = f"git:{repo.head}"
    agent = Agent("gone", repo)
    agent.prompt("Write the rules.")
    agent.write("rules.py", body("rule"))
    sha = agent.commit("Rules")
    agent.save(home)
    settings = settings_of(tmp_path)
    ingest(settings)
    subprocess.run(["mv", str(repo.path), str(tmp_path / "elsewhere")], check=True)
    found = file_page(settings, FileQuery(project, "rules.py"))
    assert (found.state, [version.sha for version in found.versions]) == ("no-git", [sha])


def test_the_demo_has_a_file_that_two_agents_wrote(
    demo: Home, site: Site, page: Page, shoot: Callable[[Page, str], None]
) -> None:
    project = file_project(demo)
    site.open(page, f"/file?project={quote(project)}&path=tidewatch/http.py&line=7")
    expect(page.locator("h1")).to_have_text("http.py")
    shoot(page, "file-demo")


def file_project(demo: Home) -> str:
    """The identity of the demo's project."""
    from whyfor.store.open import reading

    with reading(demo.settings) as library:
        return next(
            project.identity
            for _, project in library.projects.known()
            if project.path == str(demo.repository)
        )
