"""`export --dataset`: turns with what came of them, without secrets, and a datasheet."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Result
from tests.transcripts import Transcript

Cli = Callable[..., Result]
SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def test_turns_have_their_labels_and_no_secrets(home: Path, cli: Cli, tmp_path: Path) -> None:
    talk = Transcript("s-1")
    talk.prompt(f"Fix the door with {SECRET}")
    talk.call("Bash", {"command": "pytest -q"}, "1 failed", failed=True)
    talk.call("Bash", {"command": "pytest -q"}, "3 passed")
    talk.say("Fixed.")
    talk.prompt("Delete everything")
    talk.call(
        "Bash",
        {"command": "rm -rf ."},
        "The user doesn't want to proceed with this tool use.",
        failed=True,
    )
    talk.prompt("Read it" + "y" * 30_000)
    talk.call("Bash", {"command": "pytest -q | tail"}, "3 passed")
    talk.call("Bash", {"command": "git commit -am Read"}, "[main 126e95e] Read\n 1 file changed")
    talk.say("Read.")
    talk.save(home)
    cli("ingest")
    output = tmp_path / "turns.jsonl"
    sheet = cli("export", "--dataset", "--output", str(output), "--json").json
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["labels"] for row in rows] == [
        {"commit_made": None, "tests_passed": True, "rejected": False},
        {"commit_made": None, "tests_passed": None, "rejected": True},
        {"commit_made": True, "tests_passed": None, "rejected": False},
    ]
    assert [step["outcome"] for step in rows[0]["steps"]] == ["failed", "ok"]
    assert rows[0]["steps"][1]["input"] == "pytest -q"
    assert SECRET not in output.read_text()
    assert (sheet["turns"], sheet["steps"], sheet["rejected"], sheet["texts_cut"]) == (3, 5, 1, 1)
    assert (sheet["commit_made"], sheet["commit_unknown"]) == (1, 2)
    assert sum(sheet["secrets_removed"].values()) >= 1
    beside = json.loads((tmp_path / "turns.jsonl.datasheet.json").read_text())
    assert {**beside, "made_at": 0} == {**sheet, "made_at": 0}
    assert output.stat().st_mode & 0o777 == 0o600


def test_nothing_to_export_is_an_error(cli: Cli, tmp_path: Path) -> None:
    cli("ingest")
    told = cli("export", "--dataset", "--output", str(tmp_path / "x.jsonl"))
    assert told.code == 2 and "no session fits" in told.err
    assert not (tmp_path / "x.jsonl").exists()
