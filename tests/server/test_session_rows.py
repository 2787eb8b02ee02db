"""What came of a session, in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transcripts import Transcript
from whyfor.config import Settings
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
