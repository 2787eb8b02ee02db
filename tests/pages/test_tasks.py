"""Tasks: the table, one task with its decisions, and what a person changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.story.links.workshop import Clock, Repo
from tests.transcripts import Transcript
from whyfor.service.ingest import ingest
from whyfor.service.tasks import SpokenTask, say_task, task_view

from .browser import NARROW, Site, no_sideways
from .hostile import HOSTILE
from .shop import settings_of

WORDS = "No. Three tries without a pause hammer the harbour master’s server. Leave it."


def write_sessions(home: Path, repo: Repo) -> None:
    def session(name: str, ago: int = 0) -> Transcript:
        return Transcript(name, cwd=str(repo.path), live=True, ago=timedelta(days=ago))

    done = session("done")
    done.prompt("Retry dropped connections.")
    done.call("Bash", {"command": "bd update tw-39 --claim"}, "✓ tw-39")
    done.prompt("Keep four, change the test. Then close it.")
    done.call("Bash", {"command": "bd close tw-39"}, "✓ tw-39")
    done.save(home)
    refused = session("refused", 1)
    refused.prompt("Cache whole pages.")
    refused.call("Bash", {"command": "bd close tw-36"}, "✓ tw-36")
    refused.prompt(WORDS)
    refused.call("Bash", {"command": "bd reopen tw-36"}, "✓ tw-36")
    refused.save(home)
    silent = session("silent", 5)
    silent.prompt("\n".join(HOSTILE))
    silent.call("Bash", {"command": "bd update tw-35 --claim"}, "✓ tw-35")
    silent.save(home)
    other = session("other")
    other.prompt("Something without a task.")
    other.save(home)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("tasks")
    settings = settings_of(folder)
    repo = Repo.made(folder / "shop", Clock())
    repo.commit("Begin", {"a.py": "a = 1\n"})
    write_sessions(folder / "home", repo)
    ingest(settings)
    with Site(settings) as made:
        yield made


def keys(page: Page) -> list[str]:
    return page.locator(".tbl .task-id").all_inner_texts()


def test_the_table_says_what_became_of_each_task(
    site: Site,
    page: Page,
    context: BrowserContext,
    axe: Callable[[Page], None],
    shoot: Callable[[Page, str], None],
) -> None:
    site.open(page, "/tasks")
    assert keys(page) == ["tw-39", "tw-36", "tw-35"]
    states = page.locator(".tbl tbody .is").all_inner_texts()
    assert states == ["Complete", "Rejected", "Abandoned"]
    assert page.locator(".tbl td[data-l=turns]").all_inner_texts() == ["2", "2", "1"]
    expect(page.locator(".lede")).to_contain_text("0 in progress, 1 complete, 1 rejected")
    expect(page.locator(".lede")).to_contain_text("1 of 4 sessions belongs to no task")
    expect(page.locator(".side .said-block").first).to_have_text(
        "Keep four, change the test. Then close it."
    )
    axe(page)
    shoot(page, "tasks")
    page.set_viewport_size({"width": NARROW["width"], "height": NARROW["height"]})
    no_sideways(page)
    axe(page)


def test_a_task_is_opened_filtered_and_found_by_its_key_of_the_keyboard(
    site: Site, page: Page
) -> None:
    site.open(page, "/sessions")
    page.keyboard.press("g")
    page.keyboard.press("k")
    expect(page.locator("h1")).to_have_text("Tasks")
    page.get_by_role("link", name="tw-36").click()
    expect(page.locator("#task .task-id")).to_have_text("tw-36")
    expect(page.locator("#task .said-block").first).to_have_text(WORDS)
    page.wait_for_load_state()
    page.locator(".filterbar input[value=abandoned]").click()
    expect(page.locator(".tbl .task-id")).to_have_text(["tw-35"])
    site.open(page, "/tasks?q=nosuch")
    expect(page.locator(".empty")).to_contain_text("No task is all of this")
    site.open(page, "/sessions?task=tw-36")
    assert page.locator(".ses-row").count() == 1


def test_a_person_changes_a_status_and_adds_sessions_without_script(site: Site, page: Page) -> None:
    site.open(page, "/tasks?at=tw-35&since=all")
    form = page.locator("#task form[action='/tasks/status']")
    page.get_by_text("Change status").click()
    form.get_by_label("Rejected").check()
    form.get_by_label("Why").fill("Nobody asked for it")
    form.get_by_role("button", name="Save").click()
    expect(page.locator("[data-done]")).to_contain_text("Saved")
    view = task_view(site.settings, "tw-35")
    assert (view.task.status, view.decisions[0].text) == ("rejected", "Nobody asked for it")
    site.open(page, "/sessions")
    row = page.locator(".ses-row", has_text="Something without a task")
    row.locator("input[type=checkbox]").check(force=True)
    page.get_by_role("button", name="Add to task").click()
    page.get_by_label("Task", exact=True).fill("TW-35")
    page.get_by_role("button", name="Add to task").click()
    expect(page.locator("#task .task-id")).to_have_text("tw-35")
    assert task_view(site.settings, "tw-35").task.sessions == 2
    name = next(
        part.session.name
        for part in task_view(site.settings, "tw-35").sessions
        if part.evidence == "person"
    )
    page.get_by_text("Move a session").click()
    move = page.locator("#task form[action='/tasks/move']")
    move.locator("select").select_option(name)
    move.get_by_role("button", name="Move").click()
    expect(page.locator("[data-done]")).to_contain_text("Moved")
    assert task_view(site.settings, "tw-35").task.sessions == 1


def test_without_a_task_the_page_says_where_tasks_come_from(tmp_path: Path, page: Page) -> None:
    settings = settings_of(tmp_path)
    (tmp_path / "home").mkdir(exist_ok=True)
    ingest(settings)
    with Site(settings) as made:
        made.open(page, "/tasks")
        expect(page.locator(".empty")).to_contain_text("No tasks yet")
        say_task(settings, SpokenTask("X-1", "start", project="example.com/x"))
        made.open(page, "/tasks")
        expect(page.locator(".tbl .task-id")).to_have_text(["X-1"])
