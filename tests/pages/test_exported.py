"""An exported page is read at any width: nothing is wider than the window."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.conftest import Result
from tests.story.links.workshop import Agent, Clock, Repo
from tests.transcripts import Transcript

LONG = "src/" + "a_directory_with_a_long_name/" * 8 + "file.py"


@pytest.mark.parametrize("width", [600, 800, 1000, 1200])
def test_an_exported_session_fits_the_window(
    width: int, home: Path, cli: Callable[..., Result], page: Page, tmp_path: Path
) -> None:
    told = Transcript("wide", cwd=f"/code/{'x' * 150}", branch="b" * 150)
    told.prompt(f"Look at {LONG}")
    told.think("t" * 300)
    told.call("Edit", {"file_path": LONG, "old_string": "a" * 300, "new_string": "b" * 300})
    told.call("Bash", {"command": f"cat {LONG}"}, "c" * 500, failed=True)
    rows = f"| {' | '.join(['word' * 12] * 6)} |\n|{'---|' * 6}\n| {' | '.join(['x'] * 6)} |"
    told.say(f"`{LONG}`\n\n{rows}\n\n# {'h' * 200}\n\n- https://example.com/{'p' * 300}")
    told.save(home)
    cli("ingest")
    file = tmp_path / "story.html"
    arguments = ("--tools", "--thinking", "--format", "html", "--output", file)
    assert cli("export", told.session_id, *arguments).code == 0
    page.set_viewport_size({"width": width, "height": 800})
    page.set_content(file.read_text())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    assert page.locator("main").bounding_box()["width"] >= min(width, 896) - 1  # type: ignore[index]


def test_an_exported_story_prints_to_pages(
    home: Path,
    cli: Callable[..., Result],
    browser: Browser,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repo = Repo.made(tmp_path / "code", Clock())
    monkeypatch.chdir(repo.path)
    for number in range(3):
        agent = Agent(f"s{number}", repo)
        agent.prompt(f"Write part {number}. " + "Say every word of it. " * 40)
        agent.write(f"part{number}.py", "wide = " + "1 + " * 200 + "1\n" + "line = 1\n" * 150)
        agent.say("Done:\n\n```\n" + "a_very_long_line_of_code(" * 30 + "\n```\n")
        repo.commit(f"Part {number}")
        agent.save(home)
    cli("ingest")
    file = tmp_path / "story.html"
    arguments = ("--tools", "--format", "html", "--output", file)
    assert cli("export", "HEAD~3..HEAD", *arguments).code == 0
    page = browser.new_page(viewport={"width": 680, "height": 980}, color_scheme="dark")
    try:
        page.set_content(file.read_text())
        printed = page.pdf(format="A4", print_background=True)
        # the overview with the first commit, then a page for each of the others at least
        assert printed.startswith(b"%PDF")
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 3
        page.emulate_media(media="print")
        page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
        found = page.evaluate(
            """() => {
              const style = (name) => getComputedStyle(document.querySelector(name));
              const all = [...document.querySelectorAll("main *")];
              return {
                wide: document.documentElement.scrollWidth,
                ink: style("body").color,
                paper: style("body").backgroundColor,
                prompt: style(".prompt").breakInside,
                heading: style("h2").breakAfter,
                chapters: [...document.querySelectorAll(".commit")].map(
                  (one) => getComputedStyle(one).breakBefore),
                scrolled: all.filter((one) => one.scrollWidth > one.clientWidth + 1
                  && getComputedStyle(one).overflowX !== "visible").length,
              };
            }"""
        )
    finally:
        page.close()
    assert found["wide"] <= 680 and found["scrolled"] == 0
    assert found["ink"] == "rgb(24, 29, 36)"  # dark ink also for those who read in the dark
    assert found["paper"] == "rgba(0, 0, 0, 0)"
    assert (found["prompt"], found["heading"]) == ("avoid", "avoid")
    assert found["chapters"] == ["auto", "page", "page"]
