"""The search page: what is found, marked, counted and reached, as one types and without a
script."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, urlencode

import msgspec
import pytest
from playwright.sync_api import Page, Route, expect

from tests.story.links.workshop import Agent, Clock, Repo
from tests.transcripts import Transcript
from whyfor.model.query import Hit, SessionFilter
from whyfor.server.pages import search as pages
from whyfor.service.ingest import ingest
from whyfor.service.search import (
    CommitHit,
    HitRange,
    SearchPage,
    SearchRequest,
    search,
    search_page,
)

from .browser import Complaints, Site
from .hostile import HOSTILE
from .shop import Shop, build, settings_of

PAGE = 20


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A repository with stories, and enough sessions for more than one page of hits."""
    folder = tmp_path_factory.mktemp("shop")
    made = build(folder)
    for number in range(30):
        many = Transcript(
            f"many {number}",
            cwd="/code/elsewhere",
            branch="side",
            day=f"2026-05-{number % 28 + 1:02}",
        )
        many.prompt(f"Count the seagulls, part {number}.")
        many.think("seagulls are birds")
        many.call(
            "Read",
            {"file_path": "birds.py"},
            "    41→def gulls():\n    42→    return seagulls\n    43→\n",
        )
        many.say(f"There are {number} seagulls.")
        many.save(folder / "home")
    ingest(made.settings)
    return made


@pytest.fixture(scope="module")
def site(shop: Shop) -> Iterator[Site]:
    with Site(shop.settings) as site:
        yield site


def path(**asked: str) -> str:
    return f"/search?{urlencode(asked)}"


def turns(found: SearchPage) -> set[tuple[str, int]]:
    return {
        (passage.session.session_id, passage.turn)
        for hit in found.hits
        if isinstance(hit, Hit)
        for passage in hit.passages
    }


# -- what is found -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    ["idempotency key", "seagulls", '"refund view"', "retr*", "file:charge.py", "tool:Bash"],
)
def test_the_hits_are_those_of_the_command_in_the_same_order(shop: Shop, words: str) -> None:
    told = search(shop.settings, words, SessionFilter(), HitRange(PAGE))
    found = [
        hit
        for hit in search_page(shop.settings, SearchRequest(words), limit=PAGE).hits
        if isinstance(hit, Hit)
    ]
    assert told
    assert [(hit.session.id, hit.best.seq) for hit in found] == [
        (hit.session.id, hit.best.seq) for hit in told
    ]


def test_pages_follow_each_other_without_a_gap_or_a_hit_twice(shop: Shop) -> None:
    seen: list[tuple[str, int]] = []
    after: int | None = 0
    while after is not None:
        found = search_page(shop.settings, SearchRequest("seagulls", after=after), limit=7)
        seen += [
            (hit.session.session_id, hit.best.turn) for hit in found.hits if isinstance(hit, Hit)
        ]
        after = found.next
    whole = search_page(shop.settings, SearchRequest("seagulls"), limit=500)
    assert len(seen) == len(set(seen)) == len(turns(whole)) == 30


def test_counts_are_what_one_would_count_oneself(shop: Shop) -> None:
    def number(**chosen: object) -> int:
        found = search_page(shop.settings, SearchRequest("seagulls", **chosen), limit=500)  # type: ignore[arg-type]
        return len(turns(found))

    counts = search_page(shop.settings, SearchRequest("seagulls"), limit=5).counts
    assert counts is not None
    assert counts.results == counts.kinds[""] == counts.whens[""] == number() == 30
    for kind in ("prompts", "answers", "tools", "thinking"):
        assert counts.kinds[kind] == number(kind=kind) == 30
    assert counts.kinds["commits"] == 0
    assert counts.agents == {"claude": 30, "codex": 0, "gemini": 0, "copilot": 0, "opencode": 0}
    assert counts.whens["today"] == counts.whens["7d"] == number(when="7d") == 0


def test_a_kind_with_results_is_not_counted_as_none(shop: Shop) -> None:
    found = search_page(shop.settings, SearchRequest("count seagulls birds unheardof"), limit=5)
    assert found.partly and found.counts is not None
    assert any(hit.best.kind == "user.prompt" for hit in found.hits if isinstance(hit, Hit))
    assert found.counts.kinds["prompts"] is None
    assert found.counts.kinds["commits"] == 0


def test_more_than_can_be_counted_is_not_given_a_number(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("whyfor.service.search.COUNTED", 10)
    counts = search_page(shop.settings, SearchRequest("seagulls"), limit=5).counts
    assert counts is not None
    assert (counts.results, counts.agents["claude"], counts.whens[""]) == (None, None, None)


def test_a_commit_with_a_story_is_found_by_its_message(shop: Shop) -> None:
    found = search_page(
        shop.settings, SearchRequest("gateway times out", kind="commits"), limit=PAGE
    )
    assert [hit.sha for hit in found.hits if isinstance(hit, CommitHit)] == [shop.commits["keys"]]
    hit = found.hits[0]
    assert isinstance(hit, CommitHit)
    assert {hit.subject[a:b].lower() for a, b in hit.subject_marks} == {"gateway", "times", "out"}
    assert hit.agents == ["claude"] and hit.evidence in ("hook", "output")
    among = search_page(shop.settings, SearchRequest("gateway times out"), limit=PAGE).hits
    assert [type(one) for one in among].count(CommitHit) == 1


def test_a_commit_that_was_replaced_or_that_no_agent_took_part_in_is_not(shop: Shop) -> None:
    for words in ("Log failed charges", "Fix a typo"):
        found = search_page(shop.settings, SearchRequest(f'"{words}"', kind="commits"), limit=PAGE)
        assert found.hits == []


def test_only_turns_that_a_commit_came_of(shop: Shop) -> None:
    every = turns(search_page(shop.settings, SearchRequest("gateway OR webhooks"), limit=500))
    led = turns(
        search_page(shop.settings, SearchRequest("gateway OR webhooks", committed=True), limit=500)
    )
    assert led < every
    assert {name for name, _ in every - led} >= {shop.sessions["open"].session_id}
    assert shop.sessions["keys"].session_id in {name for name, _ in led}


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ("seagulls branch:side", 30),
        ("seagulls branch:main", 0),
        ("seagulls before:2026-05-03", 4),
        ("seagulls after:2026-05-28", 1),
        ("seagulls since:2026-05-27 until:2026-05-27", 1),
        ("seagulls agent:claude", 30),
        ("seagulls agent:codex", 0),
        ("seagulls project:checkout", 0),
        ("seagulls project:elsewhere", 30),
        ('seagulls "part 7"', 1),
    ],
)
def test_what_is_typed_as_a_filter_is_one(shop: Shop, typed: str, number: int) -> None:
    assert len(turns(search_page(shop.settings, SearchRequest(typed), limit=500))) == number


@pytest.mark.parametrize("typed", ["agent:smith", "before:lunch", "project:nowhere-at-all"])
def test_what_only_looks_like_a_filter_is_searched_for(shop: Shop, typed: str) -> None:
    found = search_page(shop.settings, SearchRequest(f"seagulls {typed}"), limit=PAGE)
    assert not found.hits and not found.trouble


def test_the_beginning_of_a_word_is_enough_if_nothing_has_the_word_itself(shop: Shop) -> None:
    found = search_page(shop.settings, SearchRequest("idempotenc"), limit=PAGE)
    assert found.hits and found.begun == "idempotenc*"
    assert search_page(shop.settings, SearchRequest("idempotency"), limit=PAGE).begun == ""
    typed = search_page(shop.settings, SearchRequest("branch:side seagu"), limit=PAGE)
    assert typed.begun == "branch:side seagu*" and typed.next == PAGE
    assert (
        len(turns(search_page(shop.settings, SearchRequest(typed.begun, after=PAGE), limit=PAGE)))
        == 10
    )
    assert search_page(shop.settings, SearchRequest("branch:main seagu"), limit=PAGE).hits == []


def test_a_word_that_is_written_wrong_is_put_right(shop: Shop) -> None:
    assert (
        search_page(shop.settings, SearchRequest("idempotncy key"), limit=PAGE).meant
        == "idempotency key"
    )
    assert (
        search_page(shop.settings, SearchRequest("branch:main idempotncy"), limit=PAGE).meant
        == "branch:main idempotency"
    )
    assert search_page(shop.settings, SearchRequest("xylophones"), limit=PAGE).meant == ""


@pytest.mark.parametrize("words", ['"open', "-only", "OR", "a OR", "x" * 501, "a*", "to be " * 17])
def test_a_query_that_cannot_be_understood_says_why(shop: Shop, words: str) -> None:
    found = search_page(shop.settings, SearchRequest(words), limit=PAGE)
    assert found.trouble and not found.hits


@pytest.mark.parametrize(
    "chosen",
    [{"kind": "x"}, {"sort": "x"}, {"when": "x"}, {"agents": ("x",)}, {"project": "/etc/passwd"}],
)
def test_a_choice_that_is_none_is_refused(shop: Shop, chosen: dict[str, object]) -> None:
    assert search_page(shop.settings, SearchRequest("seagulls", **chosen), limit=PAGE).trouble  # type: ignore[arg-type]


# -- in a browser --------------------------------------------------------------------------------


def test_a_result_is_found_as_one_types_and_leads_to_its_place(site: Site, page: Page) -> None:
    site.open(page, "/search")
    field = page.get_by_role("searchbox", name="Search", exact=True)
    expect(field).to_be_focused()
    field.press_sequentially("idempotency key", delay=20)
    first = page.locator(".hit").first
    expect(first).to_contain_text("idempotency key")
    expect(page).to_have_url(f"{site.url}/search?q=idempotency+key")
    expect(page).to_have_title("idempotency key · Whyfor")
    link = page.locator(".hit-prompt a[data-open]").first
    place = (link.get_attribute("href") or "").partition("#")[2]
    link.click()
    expect(page.locator(f"#{place}")).to_be_in_viewport()
    expect(page.locator(f"#{place}")).to_contain_text("idempotency key")
    page.go_back()
    expect(page.locator(".hit").first).to_contain_text("idempotency key")
    expect(page.get_by_role("searchbox", name="Search", exact=True)).to_have_value(
        "idempotency key"
    )


def test_marks_stand_where_the_words_do_and_nowhere_else(site: Site, page: Page) -> None:
    site.open(page, path(q="idempotency key"))
    marks = page.locator(".hit mark").all_inner_texts()
    assert {mark.lower() for mark in marks} == {"idempotency key"}, "neighbours share one"
    site.open(page, path(q="key idempotency", kind="tools"))
    assert {mark.lower() for mark in page.locator(".hit mark").all_inner_texts()} <= {
        "idempotency",
        "key",
        "keys",
    }


def test_lines_of_code_keep_their_numbers(site: Site, page: Page) -> None:
    site.open(page, path(q="seagulls", kind="tools"))
    code = page.locator(".hit-code").first
    expect(code.locator(".hit-line")).to_have_text(["41", "42", "43"])
    expect(code.locator("mark")).to_have_text("seagulls")
    assert "→" not in code.inner_text()


def test_what_an_agent_wrote_is_not_shown_as_typed_nor_with_its_signs(shop: Shop) -> None:
    (hit,) = search(shop.settings, "idempotency", SessionFilter(), HitRange(1))
    found = hit.best
    lines = pages.code_lines(msgspec.structs.replace(found, snippet="\n\n  two\n", marks=[(4, 7)]))
    assert [str(line) for _, line in lines] == ["  <mark>two</mark>", ""]
    text = "A **bold** word: ```python 2**n ``` and *two*"
    assert pages.spoken(text, [(11, 15)]) == "A bold <mark>word</mark>: 2**n and *two*"
    found = msgspec.structs.replace(found, kind="user.prompt")
    assert pages.look(found)[2] == "Prompt"
    assert pages.look(msgspec.structs.replace(found, named=True)) == ("answer", "i-list", "Title")


def test_the_latest_answer_wins_however_late_an_earlier_one_comes(
    site: Site, page: Page, complaints: Complaints
) -> None:
    held: list[Route] = []

    def slow(route: Route) -> None:
        held.append(route)

    site.open(page, "/search")
    page.route("**/search?q=webhooks", slow)
    field = page.get_by_role("searchbox", name="Search", exact=True)
    field.fill("webhooks")
    page.wait_for_function(
        "() => document.querySelector('.results').getAttribute('aria-busy') === 'true'"
    )
    field.fill("seagulls")
    expect(page.locator("[data-part=head] strong")).to_have_text("30 results")
    for route in held:
        route.abort()
    field.press("End")
    expect(page.locator(".hit").first).to_contain_text("seagulls")
    expect(page).to_have_url(f"{site.url}/search?q=seagulls")
    assert held
    complaints[:] = [said for said in complaints if "ERR_FAILED" not in said]


def test_a_server_that_does_not_answer_is_said_and_the_hits_stay(
    site: Site, page: Page, complaints: Complaints
) -> None:
    site.open(page, path(q="seagulls"))
    page.route("**/search?q=seagullsx", lambda route: route.abort())
    page.get_by_role("searchbox", name="Search", exact=True).fill("seagullsx")
    expect(page.locator("[data-part=head]")).to_contain_text("The server did not answer")
    expect(page.locator(".hit")).to_have_count(PAGE)
    assert [said for said in complaints if "ERR_FAILED" in said]
    complaints.clear()


def test_filters_apply_at_once_and_their_numbers_follow(site: Site, page: Page) -> None:
    site.open(page, path(q="gateway"))
    expect(page.locator(".hit-commit")).to_have_count(1)
    everything = page.locator('[data-count="kind:"]').inner_text()
    assert page.locator("[data-part=head] strong").inner_text() == f"{everything} results"
    page.get_by_label("Commits").check()
    expect(page.locator(".hit:not(.hit-commit)")).to_have_count(0)
    expect(page).to_have_url(f"{site.url}/search?q=gateway&kind=commits")
    page.get_by_label("Everything").check()
    page.get_by_label("Claude Code").uncheck()
    expect(page.locator(".empty-title")).to_have_text("Nothing for “gateway”")
    expect(page.locator("[data-count='kind:']")).to_have_text("0")
    expect(page.locator("[data-count='agent:claude']")).not_to_have_text("0")
    page.get_by_role("link", name="Search without them").click()
    expect(page.locator(".hit").first).to_be_visible()
    page.locator("select[name=project]").select_option(label="acme/checkout")
    expect(page.locator(".token")).to_contain_text("project:acme/checkout")
    page.get_by_role("link", name="Remove the project filter").click()
    expect(page.locator(".token")).to_have_count(0)
    expect(page).to_have_url(f"{site.url}/search?q=gateway")
    page.get_by_label("Order").select_option("time")
    expect(page.locator("[data-part=head]")).to_contain_text("newest first")
    stamps = page.locator(".hit time").evaluate_all("all => all.map(one => one.dateTime)")
    assert stamps == sorted(stamps, reverse=True)


def test_more_hits_are_put_under_those_that_are_there(site: Site, page: Page) -> None:
    site.open(page, path(q="seagulls"))
    expect(page.locator(".hit")).to_have_count(PAGE)
    page.get_by_role("link", name="Show 10 more").click()
    expect(page.locator(".hit")).to_have_count(30)
    expect(page.get_by_role("link", name="Show")).to_have_count(0)
    expect(page.locator(".hit").nth(PAGE).locator("a[data-open]")).to_be_focused()
    links = page.locator(".hit a[data-open]").evaluate_all("all => all.map(one => one.href)")
    assert len(set(links)) == 30


def test_keys(site: Site, page: Page) -> None:
    site.open(page, path(q="seagulls"))
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(page.locator(".hit").first).to_be_focused()
    page.keyboard.press("/")
    field = page.get_by_role("searchbox", name="Search", exact=True)
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    expect(page.locator(".empty-title")).to_have_text("Find what was said, and what came of it")
    field.press_sequentially("seagulls")
    expect(page.locator(".hit")).to_have_count(PAGE)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/sessions/claude/**")


def test_without_a_script_it_is_a_form_with_pages(site: Site, plain: Page) -> None:
    site.open(plain, "/search")
    plain.get_by_role("searchbox", name="Search", exact=True).fill("seagulls")
    plain.get_by_role("button", name="Search", exact=True).click()
    expect(plain.locator(".hit")).to_have_count(PAGE)
    plain.get_by_label("Thinking").check()
    plain.get_by_role("button", name="Apply filters").click()
    expect(plain.locator("li.hit-thinking")).to_have_count(PAGE)
    assert "kind=thinking" in plain.url
    plain.get_by_role("link", name="Show 10 more").click()
    expect(plain.locator("li.hit-thinking")).to_have_count(10)
    plain.get_by_role("link", name="Back to the first").click()
    expect(plain.locator("li.hit-thinking")).to_have_count(PAGE)


@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("", "Find what was said, and what came of it"),
        ('"open', 'Not understood: a quote (") is not closed'),
        ("idempotncy key", "Nothing for “idempotncy key”"),
    ],
)
def test_what_cannot_be_found_says_so_and_what_to_do(
    site: Site, page: Page, words: str, title: str
) -> None:
    site.open(page, path(q=words))
    expect(page.locator(".empty-title")).to_have_text(title)
    if "idempotncy" in words:
        page.get_by_role("link", name="idempotency key").click()
        expect(page.locator(".hit").first).to_be_visible()


@pytest.mark.parametrize(
    "asked", [{"q": "idempotency key"}, {"q": "seagulls", "kind": "tools"}, {}, {"q": "zzzz"}]
)
def test_axe_finds_nothing_wrong(
    site: Site, page: Page, axe: Callable[[Page], None], asked: dict[str, str]
) -> None:
    site.open(page, path(**asked))
    axe(page)


def test_pictures(site: Site, page: Page, shoot: Callable[[Page, str], None]) -> None:
    site.open(page, path(q="idempotency key"))
    expect(page.locator(".hit").first).to_be_visible()
    shoot(page, "search")


# -- what a transcript could do ------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Every field of a session and a commit holds what could act."""
    folder = tmp_path_factory.mktemp("hostile")
    home = folder / "home"
    home.mkdir()
    clock = Clock(time.time() - 86_400)
    repo = Repo.made(home / "code" / "<img src=x onerror=alert(1)>", clock)
    for number, text in enumerate(HOSTILE):
        agent = Agent(f"hostile {number}", repo)
        agent.branch = text[:100]
        agent.prompt(f"needle {text}")
        agent.think(f"needle {text}")
        agent.call(
            f"Bash{text[:60]}",
            {"command": f"needle {text}", "file_path": text},
            f"needle {text}\n{text}",
        )
        agent.say(f"needle {text}")
        if number < 6:
            agent.write(
                f"f{number}.txt", f"one {number}\ntwo {number}\nthree {number}\nfour {number}\n"
            )
            agent.commit("needle " + text.replace("\x00", "").replace("'", "").replace('"', ""))
        agent.lines.append(
            {"type": "ai-title", "aiTitle": f"needle {text}", "sessionId": agent.session_id}
        )
        agent.save(home)
    settings = settings_of(folder)
    ingest(settings)
    with Site(settings) as site:
        yield site


def test_nothing_that_was_said_acts(hostile: Site, page: Page, axe: Callable[[Page], None]) -> None:
    for kind in ("", "prompts", "answers", "tools", "thinking", "commits"):
        hostile.open(page, path(q="needle", kind=kind))
        expect(page.locator(".hit").first).to_contain_text("needle")
        assert (
            page.locator(
                "main script, main iframe, main img, main style, main object, main "
                "form:not(#search)"
            ).count()
            == 0
        )
        page.locator(".hit").first.hover()
    hostile.open(page, path(q="needle", kind="commits"))
    expect(page.locator(".hit-commit")).to_have_count(6)
    hostile.open(page, path(q="needle"))
    axe(page)


@pytest.mark.parametrize("text", [text for text in HOSTILE if "\x00" not in text])
def test_nothing_that_is_typed_acts(hostile: Site, page: Page, text: str) -> None:
    hostile.open(
        page, f"/search?q={quote(text[:400])}&project={quote(text[:50])}&kind={quote(text[:50])}"
    )
    expect(page.locator("#q")).to_have_value(text[:400].replace("\r", "").replace("\n", ""))
    assert page.locator("main script, main iframe, main img, main style, main object").count() == 0


def test_ids_of_clients_are_never_paths(shop: Shop, tmp_path: Path) -> None:
    for project in (str(tmp_path), ".", "~", "../..", str(shop.repo.path)):
        assert search_page(
            shop.settings, SearchRequest("seagulls", project=project), limit=1
        ).trouble


def test_a_home_without_anything_says_what_to_do(
    tmp_path: Path, page: Page, complaints: Complaints
) -> None:
    with Site(settings_of(tmp_path)) as empty:
        empty.open(page, "/search?q=x")
        expect(page.locator("main")).to_contain_text("whyfor init")
        page.goto("about:blank")
    complaints[:] = [said for said in complaints if "404" not in said]  # the browser's word for it
