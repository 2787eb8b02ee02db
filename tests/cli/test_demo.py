"""The demo's repository has the stories that `log` and `show` are for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from whyfor.cli.demo import PLACES
from whyfor.config import Settings
from whyfor.demo.present import MIGRATE, PUBLISH
from whyfor.live.tracker import StatusTracker

Cli = Callable[..., Result]


@pytest.fixture
def log(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """The commits of a demo that was kept, by the first word of their subjects."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = cli("demo", "--keep", "--json").json
    monkeypatch.setenv("HOME", kept["home"])
    monkeypatch.setenv("WHYFOR_HOME", kept["whyfor_home"])
    monkeypatch.chdir(kept["repository"])
    return {entry["subject"].split()[0]: entry for entry in cli("log", "--json").json}


def test_every_commit_an_agent_took_part_in_has_its_story(log: dict[str, dict[str, Any]]) -> None:
    told = {word: (entry["checkpoint"] or {}).get("evidence") for word, entry in log.items()}
    assert told == {
        "Fetch": None,
        "Retry": "output",
        "Say": "output",
        "Choose": "output",
        "Explain": "content",
        "Pin": None,
    }
    agents = {
        word: entry["checkpoint"]["sessions"][0]["agent"]
        for word, entry in log.items()
        if entry["checkpoint"]
    }
    assert agents == {"Retry": "claude", "Say": "claude", "Choose": "codex", "Explain": "claude"}
    assert all(entry["nearby"] == [] for entry in log.values())


def test_two_commits_with_a_question_in_between_are_one_request(
    log: dict[str, dict[str, Any]], cli: Cli
) -> None:
    first, second = log["Retry"]["checkpoint"], log["Say"]["checkpoint"]
    assert first["group_root"] == second["group_root"] == first["id"]
    assert log["Choose"]["checkpoint"]["group_root"] != first["id"]
    related = cli("show", log["Say"]["commit"], "--json").json["related"]
    assert [said["role"] for said in related] == ["request", "question", "answer", "closing words"]
    assert related[2]["text"] == "Name the harbour"


def test_the_demo_ends_with_what_to_type_next(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = Path.cwd()
    shown = cli("demo")
    assert shown.code == 0
    assert "$ whyfor log" in shown.out
    assert "One request" in shown.out or "one request" in shown.out
    assert "whyfor log" in shown.err
    assert "whyfor show COMMIT" in shown.err
    assert Path.cwd() == before


def test_the_pages_of_the_demo_show_sessions_in_every_state(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("whyfor.demo.past", lambda *_: None)  # only the charts need it
    for name in PLACES:
        monkeypatch.setenv(name, str(tmp_path / "mine"))  # what is there is not the demo's
    phases: Counter[str] = Counter()
    places: set[str | None] = set()

    def serve(settings: Settings, *_: object) -> None:
        assert {name for name in PLACES if name in settings.env} == {"HOME", "WHYFOR_HOME"}
        attending = StatusTracker(settings)
        attending.look()
        attending.judge()
        for standing in attending.standings():
            phases[standing.status.phase] += 1
            places.add(standing.session.project)
            if asked := standing.status.approval:
                assert asked.certain and asked.action in (MIGRATE, PUBLISH)
        attending.close()

    monkeypatch.setattr("whyfor.server.run.serve", serve)
    assert cli("demo", "--serve").code == 0
    assert phases == {"waiting_approval": 2, "waiting": 3, "running": 3, "idle": 2, "exited": 1}
    assert places == {
        "example.com/harbour/tidewatch",
        "example.com/harbour/charts",
        "example.com/robin/notes",
    }
    assert list(tmp_path.glob("whyfor-demo-*")) == [] and not (tmp_path / "mine").exists()
