"""What came of a session, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.story.links.workshop import Clock, Repo
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.server.page import TEMPLATES
from whyfor.server.pages.sessions import _project_names, _short_names
from whyfor.server.render import environment
from whyfor.server.session_rows import row_outcome
from whyfor.service.ingest import ingest
from whyfor.service.session_list import ListRequest, session_list

RUNS = {
    "no test was run": ([("ls", False)], ""),
    "a test passed": ([("pytest -q", False)], "tests passed"),
    "a test failed": ([("npm test", True)], "tests failed"),
    "it was mended": ([("pytest", True), ("pytest -x", False)], "tests passed"),
    "another check failed": ([("cargo test", False), ("ruff check .", True)], "tests passed"),
    "nobody can tell": ([("pytest", False), ("pytest", True)], ""),
    "one of two failed": ([("pytest", False), ("go test ./...", True)], "tests failed"),
}


@pytest.mark.parametrize("case", RUNS)
def test_the_last_run_of_tests_is_said_with_what_came_of_a_session(
    case: str, home: Path, settings: Settings
) -> None:
    commands, expected = RUNS[case]
    told = Transcript("s1")
    told.prompt("Mend the basket")
    told.call("Edit", {"file_path": "/code/shop/a.py", "old_string": "a", "new_string": "b"})
    for command, failed in commands:
        text = "Exit code 1" if failed else "ok"
        told.call("Bash", {"command": command}, text, failed=failed)
    told.save(home)
    ingest(settings)
    (row,) = session_list(settings, ListRequest()).rows
    came = row_outcome(row, {})
    assert came.words == "1 file written"
    assert came.more == expected


def test_projects_of_the_same_name_are_told_apart_by_the_folders_they_are_in(
    home: Path, settings: Settings
) -> None:
    paths = ["/a/shop", "/b/shop", "/x/one/till/app", "/x/two/till/app", "/alone/cart", "/shop"]
    for path in paths:
        told = Transcript(path, cwd=path)
        told.prompt("Look around")
        told.save(home)
    ingest(settings)
    TEMPLATES.set(environment())
    names = _project_names(session_list(settings, ListRequest()))
    assert names == {
        "/a/shop": "a/shop",
        "/b/shop": "b/shop",
        "/shop": "shop",
        "/x/one/till/app": "one/till/app",
        "/x/two/till/app": "two/till/app",
        "/alone/cart": "cart",
    }
    in_rows = {identity: name for identity, name in _short_names(names).items() if identity}
    assert len(set(in_rows.values())) == len(paths)


def test_repositories_without_a_remote_are_told_apart_so_too(
    tmp_path: Path, home: Path, settings: Settings
) -> None:
    for place in ("a", "b"):
        repo = Repo.made(tmp_path / place / "shop", Clock(), first=False)
        repo.commit(f"Begin {place}", {"a.py": place})
        told = Transcript(place, cwd=str(repo.path))
        told.prompt("Look around")
        told.save(home)
    ingest(settings)
    TEMPLATES.set(environment())
    found = session_list(settings, ListRequest())
    assert all((one.identity or "").startswith("git:") for one in found.projects)
    assert sorted(_project_names(found).values()) == ["a/shop", "b/shop"]
