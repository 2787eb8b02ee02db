"""An exported page is read at any width: nothing is wider than the window."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.conftest import Result
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
