"""Session: reading a conversation, long ones too, live, and whatever somebody put into it."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import msgspec
import pytest
from playwright.sync_api import Page, Route, expect

from tests.agents.readers.test_opencode import Writer
from whyfor import config
from whyfor.config import Settings
from whyfor.service.ingest import ingest
from whyfor.store.open import reading

from .browser import NARROW, WIDE, Complaints, Site, no_sideways
from .conftest import Home
from .hostile import HOSTILE
from .sessions import asking, standing
from .told import Talk, charges, hostile, long, png, rewound

TURNS = 40


def _git(folder: Path, *arguments: str, at: str = "") -> str:
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]
    env = {**os.environ, **({"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at} if at else {})}
    done = subprocess.run(
        ["git", "-C", str(folder), *who, *arguments],
        check=True,
        capture_output=True,
        text=True,
        env=env,
    )
    return done.stdout.strip()


def _commit(folder: Path) -> Callable[[Talk, str], None]:
    def make(talk: Talk, subject: str) -> None:
        notes = folder / "notes.md"
        notes.write_text((notes.read_text() if notes.exists() else "") + f"{subject}\n")
        _git(folder, "add", "--all")
        _git(folder, "commit", "-q", "-m", subject, at=talk.at.isoformat())
        sha = _git(folder, "rev-parse", "--short", "HEAD")
        printed = f"[main {sha}] {subject}\n 1 file changed, 1 insertion(+)"
        operation = {
            "stdout": printed,
            "gitOperation": {"commit": {"sha": sha, "kind": "committed"}},
        }
        talk.call("Bash", {"command": f"git commit -am '{subject}'"}, printed, outcome=operation)

    return make


def _settings(folder: Path) -> Settings:
    home = folder / "home"
    return config.load(
        {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "WHYFOR_HOME": str(folder / "whyfor"),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_DATA_HOME": str(home / ".local" / "share"),
        }
    )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with one session of everything, behind the name the other fixtures ask for."""
    folder = tmp_path_factory.mktemp("session")
    home, repository = folder / "home", folder / "home" / "checkout"
    repository.mkdir(parents=True)
    _git(repository, "init", "-q", "-b", "main")
    _git(repository, "remote", "add", "origin", "git@example.com:acme/checkout.git")
    (repository / "README.md").write_text("checkout\n")
    _git(repository, "add", "--all")
    _git(repository, "commit", "-q", "-m", "Begin", at="2026-03-01T10:00:00+00:00")
    charges(home, str(repository), _commit(repository)).save()
    long(home, str(repository), TURNS).save()
    rewound(home, str(repository)).save()
    hostile(home, str(repository), HOSTILE).save()
    settings = _settings(folder)
    ingest(settings)
    return Home(settings, home, repository)


def path_of(demo: Home, name: str) -> str:
    return f"/sessions/claude/{Talk(demo.home, str(demo.repository), name).ident}"


@pytest.fixture(scope="module")
def rich(demo: Home) -> str:
    return path_of(demo, "charges")


@pytest.fixture(scope="module")
def whole(demo: Home) -> str:
    return path_of(demo, "long")


@pytest.fixture
def client(site: Site) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {site.keys.token}", "Accept": "text/html"}
    with httpx.Client(base_url=site.url, headers=headers, timeout=30) as client:
        yield client


# -- how it reads --------------------------------------------------------------------------------


def test_it_looks_as_drawn(
    site: Site,
    page: Page,
    rich: str,
    axe: Callable[[Page], None],
    shoot: Callable[[Page, str], None],
) -> None:
    site.open(page, rich)
    shoot(page, "session")
    axe(page)
    page.keyboard.press("e")
    expect(page.locator("main details:not([open])")).to_have_count(0)
    shoot(page, "session-unfolded")
    axe(page)


def test_prompts_answers_and_what_was_done_between(site: Site, page: Page, rich: str) -> None:
    site.open(page, rich)
    expect(page.locator("h1")).to_have_text(re.compile("Retry card charges without charging twice"))
    expect(page.locator(".prompt")).to_have_count(4)
    expect(page.locator("#t1 .words ol li")).to_have_count(3)
    expect(page.locator("#t1 .tool-think > summary")).to_contain_text("for 12 s")
    assert page.locator("#t1 .tool-think").get_attribute("open") is None
    reads = page.locator("#t1 details.tool", has_text="Read").locator("summary")
    expect(reads).to_contain_text("src/checkout/charge.py")
    expect(reads).to_contain_text("84 lines")
    expect(
        page.locator("#t1 .answer > details.tool", has_text="Search").locator("> summary")
    ).to_contain_text("9 matches")
    expect(page.locator(".cmd-text")).to_have_text(re.compile(r"claude --resume [0-9a-f-]{36}"))
    expect(page.locator(".cmd-label")).to_contain_text("from ~/checkout")


def test_a_failure_is_open_with_twelve_lines_and_the_rest_on_demand(
    site: Site, page: Page, rich: str
) -> None:
    site.open(page, rich)
    failed = page.locator(".tool-bad")
    assert failed.get_attribute("open") is not None
    expect(failed.locator("summary")).to_contain_text("exit 1 · 6 s")
    assert failed.locator(".out").inner_text().count("\n") == 11
    expect(failed.locator(".out")).to_contain_text("1 failed, 3 passed in 5.81s")
    failed.get_by_text("9 earlier lines").click()
    expect(page.locator(".tool-bad .out")).to_contain_text("E   line 0")


def test_more_than_five_calls_are_one_line_that_counts_them(
    site: Site, page: Page, rich: str
) -> None:
    site.open(page, rich)
    run = page.locator("#t3 details.run")
    expect(run.locator("> summary")).to_contain_text(
        "7 tool calls: read 2 files, edited 2, ran 3 commands"
    )
    assert run.get_attribute("open") is None
    run.locator("> summary").click()
    expect(run.locator("details.tool")).to_have_count(7)


def test_an_edit_is_a_diff_with_numbers_words_and_colours(
    site: Site, page: Page, rich: str
) -> None:
    site.open(page, rich)
    edit = page.locator("#t2 details.tool-edit", has_text="src/checkout/charge.py")
    expect(edit.locator("> summary")).to_contain_text("+9 −3")
    edit.locator("> summary").click()
    rows = edit.locator("tr")
    expect(rows).to_have_count(15)
    assert rows.nth(1).locator("td").all_inner_texts()[:3] == ["25", "", "−"]
    assert rows.nth(3).locator("td").all_inner_texts()[:3] == ["", "26", "+"]
    expect(rows.nth(1).locator("em.w")).to_have_text("3")
    expect(rows.nth(3).locator("em.w")).to_have_text("MAX_ATTEMPTS")
    expect(rows.nth(0).locator("span.k")).to_have_text("def")
    expect(rows.nth(9).locator("span.s").first).to_have_text(re.compile('Idempotency-Key|"'))


def test_a_subagent_stands_where_it_was_called(site: Site, page: Page, rich: str) -> None:
    site.open(page, rich)
    sub = page.locator("#t1 details.sub")
    expect(sub.locator("> summary")).to_contain_text("Find every path that can charge an order")
    expect(sub.locator("> summary")).to_contain_text("7 tools")
    sub.locator("> summary").click()
    expect(sub).to_contain_text("List all callers of charge().")
    expect(sub).to_contain_text("Three of them.")
    expect(sub.locator("details.tool")).to_have_count(5)
    sub.get_by_text("2 more tool calls").click()
    expect(page.locator(".prompt-task")).to_contain_text("List all callers of charge().")
    expect(page.locator(".crumbs a").last).to_contain_text("Retry card charges")


def test_questions_compactions_commits_and_refusals(site: Site, page: Page, rich: str) -> None:
    site.open(page, rich)
    expect(page.locator(".qa-choice")).to_have_text("24 hours")
    expect(page.locator(".qa-rest")).to_have_text("not chosen: 1 hour, 72 hours")
    expect(page.locator(".qa .tool-meta")).to_have_text("answered in 48 s")
    expect(page.locator(".compact > summary")).to_contain_text("162k → 21k tokens, by the agent")
    marks = page.locator(".mark-commit")
    assert [text.split("\n")[-2:] for text in marks.all_inner_texts()] != []
    expect(marks).to_have_count(3)
    expect(marks.nth(1)).to_have_class(re.compile("mark-child"))
    expect(marks.first.locator(".ev")).to_contain_text("output")
    expect(page.locator(".outline-marks .sha")).to_have_count(3)
    refused = page.locator("#t4 details.tool").first
    expect(refused.locator("> summary")).to_contain_text("you denied or stopped it")
    assert refused.get_attribute("open") is None


def test_a_turn_that_was_taken_back_is_folded(site: Site, page: Page, demo: Home) -> None:
    site.open(page, path_of(demo, "rewound"))
    left = page.locator(".is-left details.left-fold")
    expect(left.locator("> summary")).to_contain_text("Turn 2 was taken back")
    expect(page.get_by_text("It is closed.")).not_to_be_visible()
    left.locator("> summary").click()
    expect(page.get_by_text("It is closed.")).to_be_visible()


def test_without_script_everything_can_be_read(
    site: Site, plain: Page, rich: str, whole: str
) -> None:
    site.open(plain, rich)
    plain.locator("#t2 details.tool-edit > summary").first.click()
    expect(plain.locator("#t2 details.tool-edit table").first).to_be_visible()
    site.open(plain, whole)
    plain.locator(".gap").first.click()
    expect(plain.locator(".prompt").first).not_to_have_text("Prompt number 1")


# -- pictures ------------------------------------------------------------------------------------


def test_a_picture_is_shown(site: Site, page: Page, rich: str) -> None:
    site.open(page, rich)
    page.locator(".picture summary").click()
    image = page.locator(".picture img")
    expect(image).to_be_visible()
    page.wait_for_function("() => document.querySelector('.picture img').naturalWidth === 40")


def test_only_pictures_are_served_as_such(client: httpx.Client, demo: Home, rich: str) -> None:
    seq = re.search(r"/images/(\d+)/0", client.get(rich).text)
    assert seq is not None
    found = client.get(f"{rich}/images/{seq[1]}/0")
    assert (found.status_code, found.headers["content-type"], found.content) == (
        200,
        "image/png",
        png(),
    )
    assert found.headers["x-content-type-options"] == "nosniff"
    for wrong in (
        f"{seq[1]}/1",
        f"{seq[1]}/-1",
        "999999/0",
        "1/0",
        f"{seq[1]}/../../../etc/passwd",
    ):
        assert client.get(f"{rich}/images/{wrong}").status_code in (400, 404), wrong
    # It says that it is a PNG, and is a document that could run scripts.
    bad = path_of(demo, "hostile")
    for lie in set(re.findall(r"/images/(\d+)/(\d+)", client.get(bad).text)):
        answer = client.get(f"{bad}/images/{lie[0]}/{lie[1]}")
        assert answer.status_code == 404 and "svg" not in answer.headers["content-type"]


# -- long ones -----------------------------------------------------------------------------------


def test_a_long_session_comes_page_by_page_as_one_scrolls(
    site: Site, page: Page, whole: str
) -> None:
    site.open(page, whole)
    shown = page.locator(".prompt").count()
    assert shown < TURNS
    expect(page.locator(".outline-link")).to_have_count(TURNS)
    gap = page.locator("[data-gap]")
    while gap.count():
        pages = page.locator(".stretch").count()
        page.evaluate("document.querySelector('[data-gap]')?.scrollIntoView({block: 'end'})")
        page.wait_for_function(
            "before => document.querySelectorAll('.stretch').length > before", arg=pages
        )
    expect(gap).to_have_count(0)
    prompts = page.locator(".prompt-text").all_text_contents()
    assert [text.split(":")[0] for text in prompts] == [
        f"Prompt number {n}" for n in range(1, TURNS + 1)
    ]
    ids = page.evaluate("[...document.querySelectorAll('.talk [id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))


def test_from_below_the_pages_come_without_a_jump(site: Site, page: Page, whole: str) -> None:
    site.open(page, whole)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    last = page.locator(".prompt").last
    before = last.bounding_box()
    assert before is not None
    page.locator("[data-gap]").evaluate("gap => gap.dataset.last")
    page.wait_for_timeout(600)
    after = last.bounding_box()
    assert after is not None
    assert abs(after["y"] - before["y"]) < 3


@pytest.mark.parametrize("late", [0.0, 0.4], ids=["", "script late"])
@pytest.mark.parametrize("ask", ["?at={seq}#e{seq}", "#e{seq}", "?after={before}#e{seq}"])
def test_a_link_to_any_event_lands_there(
    site: Site, page: Page, demo: Home, whole: str, ask: str, late: float
) -> None:
    with reading(demo.settings) as library:
        session = library.sessions.find(whole.rsplit("/", 1)[1], "claude")
        seq = [
            e.seq for e in library.conversation.events(session.id) if e.kind == "assistant.message"
        ][TURNS // 2]
    if late:  # the browser has gone to the anchor by itself before the script begins

        def wait(route: Route) -> None:
            time.sleep(late)
            route.continue_()

        page.route("**/session.js*", wait)
    site.open(page, whole + ask.format(seq=seq, before=seq - 1))
    target = page.locator(f"#e{seq}")
    expect(target).to_be_in_viewport()
    expect(target).to_contain_text(f"Step {TURNS // 2 + 1} is")
    page.wait_for_load_state("networkidle")  # what is above it has come
    assert page.locator(".stretch").count() > 1
    expect(target).to_be_in_viewport()


def test_a_link_into_a_fold_opens_it(site: Site, page: Page, rich: str) -> None:
    site.open(page, rich)
    inner = page.locator("#t3 .run-body details.tool").nth(3)
    ident = inner.get_attribute("id")
    assert ident is not None
    page.goto("about:blank")
    site.open(page, f"{rich}?at={ident[1:]}#{ident}")
    expect(page.locator(f"#{ident} > summary")).to_be_in_viewport()


def test_n_and_p_go_from_prompt_to_prompt_over_pages(site: Site, page: Page, whole: str) -> None:
    site.open(page, whole)
    for number in range(1, 26):
        page.keyboard.press("n")
        expect(page.locator(".prompt:focus")).to_contain_text(f"Prompt number {number}:")
    page.keyboard.press("p")
    expect(page.locator(".prompt:focus")).to_contain_text("Prompt number 24:")
    expect(page.locator(".prompt:focus")).to_be_in_viewport()


def test_a_page_of_a_long_session_is_small(client: httpx.Client, whole: str) -> None:
    first = client.get(whole).text
    assert len(first) < 400_000
    assert "out 20 119" not in first


# -- live ----------------------------------------------------------------------------------------


@pytest.fixture
def growing(tmp_path: Path) -> tuple[Talk, Settings]:
    home = tmp_path / "home"
    talk = Talk(home, str(home / "code"), "growing")
    talk.title("It grows")
    talk.prompt("Begin.")
    talk.say("Begun. " + "word " * 900)
    talk.prompt("Look around.")
    talk.save()
    settings = _settings(tmp_path)
    ingest(settings)
    return talk, settings


def test_what_is_new_comes_by_itself_and_the_view_follows_only_at_the_end(
    growing: tuple[Talk, Settings], page: Page
) -> None:
    talk, settings = growing
    with Site(settings) as site:
        site.open(page, f"/sessions/claude/{talk.ident}")
        expect(page.locator(".live")).to_have_attribute("data-live", "on")
        page.evaluate("scrollTo(0, 0)")
        call = talk.ask_for("Bash", {"command": "ls -la"})
        talk.save()
        ingest(settings)
        site.hub.publish()
        tool = page.locator("details.tool", has_text="ls -la")
        expect(tool.locator("> summary")).to_contain_text("no result yet")
        assert page.evaluate("scrollY") == 0
        expect(page.locator("[data-follow]")).to_be_visible()
        page.locator("[data-follow] button").click()
        tool.locator("> summary").click()
        expect(page.locator("[data-follow]")).to_be_hidden()
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        talk.answer(call, "total 0\nreadme.md")
        for number in range(30):
            talk.say(f"Line {number} of what I saw.")
        talk.save()
        looks: list[str] = []
        page.on(
            "request",
            lambda request: looks.append(request.url) if "/part?" in request.url else None,
        )
        ingest(settings)
        site.hub.publish()
        expect(page.get_by_text("Line 29 of what I saw.")).to_be_in_viewport()
        assert 1 <= len(looks) <= 2, "what comes together is looked at together"
        expect(page.locator("details.tool .out", has_text="readme.md")).to_be_attached()
        assert tool.get_attribute("open") is not None
        talk.prompt("Thank you.")
        talk.save()
        ingest(settings)
        site.hub.publish()
        expect(page.locator("#t3 .prompt")).to_contain_text("Thank you.")
        expect(page.locator(".outline-link")).to_have_count(3)
        ids = page.evaluate("[...document.querySelectorAll('.talk [id]')].map((one) => one.id)")
        assert len(ids) == len(set(ids))
        page.goto("about:blank")


def test_what_is_completed_later_is_renewed_wherever_it_stands(tmp_path: Path, page: Page) -> None:
    """OpenCode changes what it wrote: the end of a session, and pages that were read long
    before."""
    settings = _settings(tmp_path)
    folder = tmp_path / "home" / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    writer = Writer(folder / "opencode.db")
    writer.session()
    for number in range(130):
        writer.user(f"m{number}")
        writer.part(f"p{number}", f"m{number}", "text", text=f"Question {number}?")
        writer.assistant(f"n{number}")
        writer.part(f"q{number}", f"n{number}", "text", text=f"Half of answer {number}")
    ingest(settings)
    with Site(settings) as site:
        site.open(page, "/sessions/opencode/ses_1")
        expect(page.locator(".live")).to_have_attribute("data-live", "on")
        page.evaluate("window.same = true")
        page.get_by_text("Half of answer 3", exact=True).scroll_into_view_if_needed()
        kept = page.get_by_text("Question 3?", exact=True).first.evaluate_handle("one => one")
        for number in (3, 129):
            writer.part(f"q{number}", f"n{number}", "text", text=f"All of answer {number}")
        ingest(settings)
        site.hub.publish()
        expect(page.get_by_text("All of answer 3", exact=True)).to_be_visible()
        assert kept.evaluate("one => one.isConnected"), "what is the same is not touched"
        assert (
            page.evaluate("window.same")
            and page.get_by_text("Half of answer 3", exact=True).count() == 0
        )
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
        expect(page.get_by_text("All of answer 129", exact=True)).to_be_attached()
    writer.db.close()


def test_a_request_for_approval_is_shown_exactly_and_goes_when_answered(
    site: Site, page: Page, rich: str
) -> None:
    ident = rich.rsplit("/", 1)[1]
    command = 'docker compose exec db psql \\\n  -c "ALTER TABLE charges ADD COLUMN key text"'
    site.open(page, rich)
    expect(page.locator(".live")).to_have_attribute("data-live", "on")
    site.hub.stand([asking(ident, command)])
    ask = page.locator(".ask")
    expect(ask.locator(".ask-cmd")).to_have_text(command)
    expect(ask).to_contain_text("answer in its terminal, pid 48213")
    expect(page.locator(".head .status")).to_have_text("Needs approval")
    expect(page.locator(".outline-live")).to_have_text("needs approval")
    site.hub.stand([standing(ident, "running")])
    expect(ask).to_have_count(0)
    expect(page.locator(".head .status")).to_have_text("Running")
    site.hub.stand([])


# -- what must not happen ------------------------------------------------------------------------


def test_nothing_a_transcript_says_acts_or_breaks_the_page(
    site: Site, page: Page, demo: Home, complaints: Complaints
) -> None:
    site.open(page, path_of(demo, "hostile"))
    for _ in range(30):
        page.mouse.wheel(0, 4000)
        page.wait_for_timeout(30)
    page.keyboard.press("e")
    page.wait_for_timeout(300)
    for size in (WIDE, NARROW):
        page.set_viewport_size(size)  # type: ignore[arg-type]
        no_sideways(page)
    links = page.evaluate("[...document.querySelectorAll('main a[href]')].map((a) => a.protocol)")
    assert set(links) <= {"http:", "https:", "mailto:"}
    assert (
        page.evaluate(
            "document.querySelectorAll('main :is(script, iframe, form, style, meta, base, object, "
            "embed)').length"
        )
        == 0
    )
    names = page.evaluate(
        "[...document.querySelectorAll('main :not(.turn)')].flatMap((one) => "
        "one.getAttributeNames())"
    )
    assert not {name for name in names if name == "style" or name.startswith("on")}
    assert page.evaluate("window.fired") == []
    # what says it is a picture and is none
    refused = [said for said in complaints if "404" in said]
    assert len(refused) <= 1
    complaints[:] = [said for said in complaints if said not in refused]


def test_private_words_are_shown_as_withheld(tmp_path: Path) -> None:
    home = tmp_path / "home"
    talk = Talk(home, str(home / "code"), "private")
    talk.prompt("The door code is <private>tulip-4711</private>, do not tell.")
    talk.say("I will not.")
    talk.save()
    settings = _settings(tmp_path)
    ingest(settings)
    with Site(settings) as site:
        headers = {"Authorization": f"Bearer {site.keys.token}"}
        text = httpx.get(
            f"{site.url}/sessions/claude/{talk.ident}", headers=headers, timeout=30
        ).text
        assert "The door code is [private], do not tell." in text
        assert "tulip" not in text


@pytest.mark.parametrize(
    "path",
    [
        "/sessions/claude/nobody",
        "/sessions/nobody/x",
        "/sessions/claude/..%2f..%2fetc",
        "/sessions/claude/%00",
    ],
)
def test_what_is_not_there_is_said(client: httpx.Client, path: str) -> None:
    for tail in ("", "/part?at=1", "/events/1", "/images/1/0"):
        assert client.get(path + tail).status_code in (400, 404)


def test_a_beginning_of_an_id_is_no_session(client: httpx.Client, rich: str) -> None:
    assert client.get(rich[:-4]).status_code == 404


def test_pictures_of_all_agents_are_found_in_their_records() -> None:
    from whyfor.service.pictures import _payloads

    data = base64.b64encode(png()).decode()
    shapes = [
        {"source": {"type": "base64", "media_type": "image/png", "data": data}},
        {"image_url": f"data:image/png;base64,{data}"},
        {"inlineData": {"mimeType": "image/png", "data": data}},
        {"data": msgspec.json.encode({"url": f"data:image/png;base64,{data}"}).decode()},
        {"attachments": [{"mimeType": "image/png", "data": data}]},
    ]
    assert [list(_payloads(shape)) for shape in shapes] == [[data]] * len(shapes)
