"""Commit: why it is there, how we know, and who wrote each line of its change."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from markupsafe import Markup
from playwright.sync_api import Page, expect

from tests.story.links.workshop import Agent, Clock, Repo, body
from whyfor.model.checkpoints import Annotation, Note
from whyfor.model.errors import NotFound
from whyfor.server.pages.commit import alternative, steps
from whyfor.server.pages.diffs import emphasised, visible
from whyfor.service.commit import SHOWN_EACH, commit_page
from whyfor.service.ingest import ingest
from whyfor.service.note import note

from .browser import Site, no_sideways
from .hostile import HOSTILE
from .shop import Shop, build, settings_of


@pytest.fixture(scope="module")
def store(shop: Shop) -> Iterator[Site]:
    with Site(shop.settings) as site:
        yield site


def _gutter(page: Page, number: int) -> list[str]:
    """Who wrote each added line of a file, run by run."""
    found: list[str] = page.locator(f"#f{number} .d-add .d-who").evaluate_all(
        "cells => cells.map(c => c.textContent).filter(Boolean)"
    )
    return found


# -- who wrote what ------------------------------------------------------------------------------


def test_each_line_says_which_turn_wrote_it_and_why(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, f"/commits/{shop.commits['keys']}")
    expect(page.locator("h1")).to_have_text("Charge once when the gateway times out")
    assert _gutter(page, 0) == ["T2", "you", "T2", "T2"]
    cards = page.locator("#f0 .because")
    expect(cards).to_have_count(2)
    expect(cards.nth(0)).to_contain_text("One idempotency key per order attempt")
    expect(cards.nth(0)).to_contain_text("Every attempt now carries one key, valid for 24 hours.")
    expect(cards.nth(0).locator(".because-n")).to_have_text("3 lines")
    expect(cards.nth(1)).to_contain_text("Ada, by hand")
    expect(cards.nth(1)).to_contain_text("Not in any session. Written between")
    asked = page.locator("#f1 .because")
    expect(asked).to_have_count(1)
    expect(asked.locator(".because-ask")).to_have_text("How long should a key stay valid?")
    expect(asked.locator(".said-block")).to_have_text("24 hours")


def test_a_line_nobody_is_known_to_have_written_stays_unknown(
    store: Site, shop: Shop, page: Page
) -> None:
    store.open(page, f"/commits/{shop.commits['both']}")
    assert _gutter(page, 0) == ["T1a", "?"]
    assert _gutter(page, 1) == ["T1b"]
    expect(page.locator("#f0 .because-unknown")).to_contain_text("No session wrote it.")
    expect(page.locator(".who-key")).to_contain_text("1 unknown")
    assert page.locator(".evt tbody tr").count() == 2


def test_counts_of_lines_are_gits_own(shop: Shop) -> None:
    for name, sha in shop.commits.items():
        if name == "merge":
            continue
        found = commit_page(shop.settings, sha, project="example.com/acme/checkout")
        out = subprocess.run(
            ["git", "-C", str(shop.repo.path), "show", "--numstat", "--format=", sha],
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        assert (found.added, found.removed) == (sum(map(int, out[::3])), sum(map(int, out[1::3])))
        assert sum(found.counts.values()) == found.added


def _labels(shop_home: Path, sha: str) -> list[str]:
    found = commit_page(settings_of(shop_home), sha)
    return [
        row.who.label
        for file in found.files
        for hunk in file.hunks
        for row in hunk.rows
        if row.who and row.first
    ]


def test_a_subagents_lines_belong_to_the_turn_that_sent_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    repo = Repo.made(home / "shop", Clock())
    main, child = Agent("main", repo), Agent("child", repo)
    main.prompt("First think.")
    main.say("Done.")
    main.prompt("Now let somebody write the rules.")
    main.call(
        "Task",
        {"description": "rules", "prompt": "Write them", "subagent_type": "general"},
        "written",
    )
    child.session_id = main.session_id
    child.prompt("Write them")
    child.write("rules.py", body("rule"))
    child.lines = [{**line, "isSidechain": True, "agentId": "abcdef12"} for line in child.lines]
    sha = main.commit("Rules")
    folder = main.save(home).with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-abcdef12.jsonl").write_text(child.text())
    ingest(settings_of(tmp_path))
    assert _labels(tmp_path, sha) == ["T2"]


def test_a_line_is_a_persons_only_if_no_other_session_was_there(tmp_path: Path) -> None:
    home = tmp_path / "home"
    repo = Repo.made(home / "shop", Clock())
    agent, other = Agent("agent", repo), Agent("other", repo)
    agent.prompt("Write the rules.")
    agent.write("rules.py", body("rule"))
    repo.write("rules.py", repo.read("rules.py") + "by_somebody = compute('who')\n")
    sha = agent.commit("Rules")
    agent.save(home)
    ingest(settings_of(tmp_path))
    assert _labels(tmp_path, sha) == ["T1", "you"]
    other.clock = Clock(agent.clock.now - 3)
    other.prompt("Look around.")
    other.say("Nice.")
    other.save(home)
    ingest(settings_of(tmp_path))
    assert _labels(tmp_path, sha) == ["T1", "?"]


def test_what_was_written_after_the_commit_is_not_what_wrote_it(tmp_path: Path) -> None:
    home = tmp_path / "home"
    repo = Repo.made(home / "shop", Clock())
    agent = Agent("agent", repo)
    agent.prompt("Write the rules.")
    agent.write("rules.py", body("rule"))
    agent.commit("Rules")
    agent.prompt("Write them again.")
    (repo.path / "rules.py").unlink()
    agent.write("rules.py", body("rule"))
    repo.git("commit", "-q", "--amend", "-m", "The rules")
    agent.save(home)
    ingest(settings_of(tmp_path))
    assert _labels(tmp_path, repo.head) == ["T1"]


def test_lines_of_two_turns_in_the_demo(
    site: Site, page: Page, axe: Callable[[Page], None]
) -> None:
    site.open(page, "/timeline")
    page.get_by_role("link", name="Retry dropped connections with exponential backoff").click()
    expect(page.locator(".filediff")).to_have_count(2)
    assert _gutter(page, 0) == ["T2", "T2"]
    assert _gutter(page, 1) == ["T1", "T1"]
    assert page.locator("em.w .s, .s em.w").count(), (
        "coloured words on the strong tints, too, can be read"
    )
    axe(page)


# -- the story -----------------------------------------------------------------------------------


def test_evidence_is_told_in_words(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, f"/commits/{shop.commits['keys']}")
    proofs = page.locator(".proofs li").all_inner_texts()
    assert proofs == [
        f"output a tool result names {shop.commits['keys'][:7]}",
        "content 13 of 16 added lines were written there",
    ]
    expect(page.locator(".evt a")).to_have_attribute(
        "href", re.compile(rf"^/sessions/claude/{shop.sessions['keys'].session_id}\?")
    )
    expect(page.locator(".evt .quiet")).to_contain_text("turns 1–2, 3 messages, 3 new")
    expect(page.locator(".who-bar")).to_have_attribute(
        "aria-label", "Of 16 added lines: 13 by Claude Code, 3 a person (inferred)"
    )
    expect(page.locator(".siblings li")).to_have_count(2)


def test_the_restore_command_can_be_copied(store: Site, shop: Shop, page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    store.open(page, f"/commits/{shop.commits['keys']}")
    page.keyboard.press("c")
    expect(page.locator(".cmd-copy .btn-label")).to_have_text("Copied")
    assert (
        page.evaluate("navigator.clipboard.readText()")
        == f"whyfor restore {shop.commits['keys'][:8]}"
    )


def test_a_commit_without_a_story_says_so_and_shows_its_change(
    store: Site, shop: Shop, page: Page
) -> None:
    store.open(page, f"/commits/{shop.commits['typo']}")
    expect(page.locator(".no-story")).to_have_text(
        "No story: no session kept here made this commit or wrote its lines."
    )
    expect(page.locator(".cmd")).to_have_count(0)
    expect(page.locator(".d-who")).to_have_count(0)
    expect(page.locator(".d-add .d-code")).to_have_text("A shop, open.")


def test_nearby_is_a_hint_and_says_how_to_link(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, f"/commits/{shop.commits['near']}")
    expect(page.locator(".proofs .is-hint")).to_have_text(
        "nearby Claude Code wrote shop/views.py shortly before. Not linked."
    )
    expect(page.locator(".ev")).to_have_count(0)
    command = re.compile(rf"^whyfor link {shop.commits['near'][:10]} [0-9a-f]{{8}}$")
    expect(page.locator(".story code")).to_have_text(command)


def test_a_merge_names_its_parents(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, f"/commits/{shop.commits['merge']}")
    expect(page.locator(".no-story")).to_have_text("A merge: it has no conversation of its own.")
    assert page.locator(".parents a").all_inner_texts() == [
        shop.commits["typo"][:7],
        shop.commits["side"][:7],
    ]
    page.locator(".parents a").nth(1).click()
    expect(page.locator("h1")).to_have_text("Pin the gateway client")


def test_what_was_rewritten_and_what_took_its_place_lead_to_each_other(
    store: Site, shop: Shop, page: Page
) -> None:
    store.open(page, f"/commits/{shop.commits['before']}")
    page.locator(".banner a").click()
    expect(page.locator("h1")).to_have_text("Log every failed charge")
    page.locator(f".evidence a[href='/commits/{shop.commits['before']}']").click()
    expect(page.locator("h1")).to_have_text("Log failed charges")


def test_a_note_is_shown_with_who_wrote_it(tmp_path: Path, page: Page) -> None:
    shop = build(tmp_path)
    intent = "Charges ran twice → one key per attempt → no double charge"
    left = ["Ask the gateway first: one more request, and still a gap"]
    note(
        shop.settings,
        shop.repo.path,
        shop.commits["keys"],
        Note("Never charge twice", intent, left),
    )
    with Site(shop.settings) as site:
        site.open(page, f"/commits/{shop.commits['keys']}")
        expect(page.locator("h1")).to_have_text("Never charge twice")
        expect(page.locator(".story .by")).to_have_text("written by a person")
        assert page.locator(".intent dt").all_inner_texts() == ["Problem", "Solution", "Effect"]
        assert page.locator(".intent dd").all_inner_texts() == [
            part.strip() for part in intent.split("→")
        ]
        expect(page.locator(".alt-what")).to_have_text("Ask the gateway first")
        expect(page.locator(".notes li")).to_have_count(1)


# -- large, slow and gone ------------------------------------------------------------------------


def test_a_large_file_shows_its_beginning_and_can_be_opened_alone(
    store: Site, shop: Shop, page: Page
) -> None:
    store.open(page, f"/commits/{shop.commits['big']}")
    expect(page.locator("#f0 .d-add")).to_have_count(SHOWN_EACH)
    expect(page.locator("#f0 .more-lines")).to_contain_text(f"{3000 - SHOWN_EACH:,} more lines.")
    expect(page.locator("#f1 .d-add")).to_have_count(3)
    page.locator("#f0 .more-lines a").click()
    expect(page.locator("#f0 .d-add")).to_have_count(3000)
    expect(page.locator("#f1 .d-add")).to_have_count(0)
    page.get_by_role("link", name="Show all files").click()
    expect(page.locator("#f1 .d-add")).to_have_count(3)


def test_without_its_repository_what_was_kept_is_told(tmp_path: Path, page: Page) -> None:
    shop = build(tmp_path)
    shutil.rmtree(shop.repo.path)
    with Site(shop.settings) as site:
        site.open(page, f"/commits/{shop.commits['keys']}")
        expect(page.locator(".banner")).to_contain_text("not on this machine any more")
        expect(page.locator(".evt a")).to_have_count(1)
        assert page.locator(".filediff .file").all_inner_texts() == [
            "shop/charge.py",
            "shop/keys.py",
        ]
        expect(page.locator("#f0 .more-lines")).to_contain_text("git show")


@pytest.mark.parametrize("sha", ["0" * 40, "HEAD", "--all", "../../etc/passwd", "0" * 39])
def test_what_is_no_commit_is_not_found(shop: Shop, sha: str) -> None:
    with pytest.raises(NotFound):
        commit_page(shop.settings, sha)


def test_a_commit_that_was_not_seen_yet_is_found_by_its_project(shop: Shop, tmp_path: Path) -> None:
    sha = shop.commits["first"]
    assert (
        commit_page(shop.settings, sha, project="example.com/acme/checkout").told.commit.sha == sha
    )
    with pytest.raises(NotFound):
        commit_page(shop.settings, "1" * 40, project="example.com/acme/checkout")


# -- keys, folds, no script ----------------------------------------------------------------------


def test_brackets_walk_the_files_and_open_them(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, f"/commits/{shop.commits['big']}")
    page.locator("#f1 summary").click()
    expect(page.locator("#f1")).not_to_have_attribute("open", "")
    page.locator("#f0 summary").focus()
    page.keyboard.press("]")
    expect(page.locator("#f1")).to_have_attribute("open", "")
    expect(page.locator("#f1 summary")).to_be_focused()
    page.keyboard.press("[")
    expect(page.locator("#f0 summary")).to_be_focused()


def test_a_link_to_a_file_opens_it(store: Site, shop: Shop, page: Page) -> None:
    store.open(page, f"/commits/{shop.commits['big']}")
    page.locator("#f1 summary").click()
    page.locator(".file-link").nth(1).click()
    expect(page.locator("#f1")).to_have_attribute("open", "")


def test_it_reads_without_a_script(store: Site, shop: Shop, plain: Page) -> None:
    store.open(plain, f"/commits/{shop.commits['keys']}")
    expect(plain.locator(".because")).to_have_count(3)
    expect(plain.locator(".cmd-copy")).to_be_hidden()


@pytest.mark.parametrize("name", ["keys", "both", "merge", "near", "before"])
def test_axe_finds_nothing(
    store: Site,
    shop: Shop,
    page: Page,
    axe: Callable[[Page], None],
    shoot: Callable[[Page, str], None],
    name: str,
) -> None:
    store.open(page, f"/commits/{shop.commits[name]}")
    axe(page)
    if name == "keys":
        shoot(page, "commit")


# -- nothing acts --------------------------------------------------------------------------------


def test_nothing_of_a_transcript_or_a_commit_acts(
    tmp_path: Path, page: Page, axe: Callable[[Page], None]
) -> None:
    repo = Repo.made(tmp_path / "home" / "<img src=x onerror=alert(1)>", Clock())
    agent = Agent("hostile", repo)
    agent.lines.append(
        {
            "type": "ai-title",
            "aiTitle": "<img src=x onerror=alert(1)>",
            "sessionId": agent.session_id,
        }
    )
    agent.branch = 'x"><img/src=x/onerror=alert(1)>'
    shas = []
    for number, words in enumerate(HOSTILE):
        agent.prompt(words + " in a prompt")
        name = re.sub(r"[\x00-\x1f\x7f/\\]", "_", words)[:80]
        agent.write(f"{name}.html", f"{words}\n" + body(f"hostile{number}"))
        agent.ask(words, words)
        agent.write(f"{number}.md", f"{words}\n" + body(f"more{number}"))
        agent.say(words)
        repo.env["GIT_AUTHOR_NAME"] = re.sub(r"[\x00\n]", "", words)[:100]
        shas.append(repo.commit(words.replace("\x00", "") + "\n\n" + words.replace("\x00", "")))
    agent.save(tmp_path / "home")
    settings = settings_of(tmp_path)
    ingest(settings)
    for number, sha in enumerate(shas):
        note(settings, repo.path, sha, Note(HOSTILE[number], HOSTILE[number], [HOSTILE[number]]))
    with Site(settings) as site:
        for sha in shas:
            site.open(page, f"/commits/{sha}")
            expect(page.locator("h1")).to_have_count(1)
            expect(page.locator(".filediff")).to_have_count(2)
            assert (
                page.locator(
                    "main :is(img, iframe, script, style, form, meta, base, link, object)"
                ).count()
                == 0
            )
            hrefs = page.locator("main a").evaluate_all("links => links.map(link => link.href)")
            assert all(re.match(r"https?://|mailto:", href) for href in hrefs)
            assert page.evaluate("fired") == []
            no_sideways(page)
        axe(page)


def test_what_cannot_be_seen_in_code_is_made_visible() -> None:
    assert visible("a\x1b[31m\u202eb\x00\tc") == "a␛[31m⟨U+202E⟩b␀\tc"


def test_changed_words_are_marked_without_breaking_tags_or_entities() -> None:
    code = Markup('<span class="k">if</span> a &lt; b:')
    assert emphasised(code, [(3, 6)]) == '<span class="k">if</span> <em class="w">a &lt;</em> b:'
    assert (
        emphasised(code, [(0, 4)])
        == '<span class="k"><em class="w">if</em></span><em class="w"> a</em> &lt; b:'
    )
    assert emphasised(code, []) == code


def test_an_intent_has_three_steps_or_is_prose() -> None:
    def told(intent: str, by: str) -> list[tuple[str, str]]:
        return steps(Annotation("t", intent, [], "s", "DOCS", by))

    assert told("a → b → c", "person") == [("Problem", "a"), ("Solution", "b"), ("Effect", "c")]
    assert told("a → b → c", "derived") == [("Asked", "a"), ("Done", "b"), ("Said", "c")]
    assert told("just this", "person") == [("", "just this")]
    assert told("a → b → c → d", "person") == [("", "a"), ("", "b"), ("", "c"), ("", "d")]


def test_an_alternative_is_what_and_why() -> None:
    assert alternative("Random key per call — a retry would get a new one") == (
        "Random key per call",
        "a retry would get a new one",
    )
    assert alternative("Ask first: slow") == ("Ask first", "slow")
    assert alternative("no reason given") == ("no reason given", "")
