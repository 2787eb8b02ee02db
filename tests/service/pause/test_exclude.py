"""Of an excluded project or agent nothing is stored; what is left out is counted, and what was
there stays."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.service.pause.canary import assert_nowhere
from tests.service.pause.test_capture import codex, copilot, gemini_lines, opencode, told
from tests.service.pause.test_hooks import git, repository
from tests.transcripts import Transcript
from whyfor import config
from whyfor.capture.filters import excluded as exclude
from whyfor.config import Settings
from whyfor.service.ingest import ingest

Cli = Callable[..., Result]


def configured(settings: Settings, *projects: str, agents: tuple[str, ...] = ()) -> Settings:
    settings.home.mkdir(parents=True, exist_ok=True)
    text = f"[exclude]\nprojects = {json.dumps(projects)}\nagents = {json.dumps(agents)}\n"
    (settings.home / "config.toml").write_text(text)
    return config.load()


def session(home: Path, name: str, cwd: str, word: str = "canary") -> Transcript:
    said = Transcript(name, cwd=cwd)
    said.prompt(f"{word} question")
    said.say(f"{word} answer")
    said.save(home)
    return said


def test_sessions_of_an_excluded_folder_are_counted_and_not_stored(
    settings: Settings, home: Path, cli: Cli
) -> None:
    session(home, "a", str(home / "jobs" / "client-x"))
    session(home, "b", str(home / "jobs" / "client-x" / "src"))
    other = session(home, "c", str(home / "jobs" / "client-xy"), "other")
    configured(settings, "~/jobs/client-x")
    report = cli("ingest", "--json").json
    assert (report["excluded"], report["unplaced"], report["sessions"]) == (2, 0, 1)
    assert_nowhere("canary", settings.home)
    listed = cli("sessions", "--json")
    assert [item["session_id"] for item in listed.json] == [other.session_id]
    assert "2 sessions of excluded projects" in listed.err
    found = cli("doctor", "--json").json
    assert all(agent["waiting"] == 0 for agent in found["agents"])
    assert any("2 sessions of excluded" in problem["what"] for problem in found["problems"])
    configured(settings)
    assert cli("ingest", "--json").json["sessions"] == 3, "once they are wanted they are read"


def test_what_was_stored_before_stays_and_doctor_says_how_to_forget_it(
    settings: Settings, home: Path, cli: Cli
) -> None:
    said = session(home, "a", "/code/client-x", "early")
    ingest(settings)
    configured(settings, "*/client-*")
    said.prompt("canary")
    said.save(home)
    assert cli("ingest", "--json").json["excluded"] == 1
    assert_nowhere("canary", settings.home)
    assert told(settings, said.session_id) == ["early question", "early answer"]
    problems = cli("doctor", "--json").json["problems"]
    assert any(problem["next"].endswith(f"whyfor forget {said.session_id}") for problem in problems)


@pytest.mark.parametrize("make", [codex, gemini_lines, copilot, opencode])
def test_every_agents_sessions_are_known_by_where_they_ran(
    make: Callable[[Path], str], settings: Settings, home: Path
) -> None:
    make(home)
    report = ingest(configured(settings, "/code/shop"))
    assert (report.excluded, report.sessions) == (1, 0)
    assert_nowhere("canary", settings.home)
    assert ingest(config.load()).excluded == 1, "and counted again each time"
    configured(settings, "/code/shopping")
    assert ingest(config.load()).sessions == 1


@pytest.mark.parametrize("make", [codex, copilot, opencode])
def test_an_excluded_agent_is_not_read(
    make: Callable[[Path], str], settings: Settings, home: Path
) -> None:
    make(home)
    session(home, "a", "/code/shop", "other")
    report = ingest(configured(settings, agents=(make.__name__,)))
    assert report.sessions == 1
    assert report.excluded == 1
    assert_nowhere("canary", settings.home)


def test_a_project_is_known_by_its_remote_in_every_clone(
    settings: Settings, home: Path, tmp_path: Path
) -> None:
    clone = repository(tmp_path / "clone")
    git(clone, "remote", "add", "origin", "git@github.com:Acme/Secret.git")
    (clone / "src").mkdir()
    session(home, "a", str(clone / "src"))
    ingest(configured(settings, "https://github.com/acme/secret"))
    assert_nowhere("canary", settings.home)


def test_a_session_whose_folder_is_named_late_waits_until_it_is(
    settings: Settings, home: Path
) -> None:
    said = Transcript("late", cwd="/code/client-x")
    path = said.path(home)
    path.parent.mkdir(parents=True)
    head = (
        json.dumps({"type": "queue-operation", "content": "canary", "sessionId": said.session_id})
        + "\n"
    )
    path.write_text(head)
    now = configured(settings, "/code/client-x")
    assert ingest(now).unplaced == 1
    assert_nowhere("canary", settings.home)
    said.prompt("canary")
    path.write_text(head + said.text())
    assert ingest(now).excluded == 1
    assert_nowhere("canary", settings.home)


def test_records_written_in_an_excluded_folder_are_left_out_of_a_session_from_elsewhere(
    settings: Settings, home: Path
) -> None:
    said = Transcript("moves", cwd="/code/shop")
    said.prompt("hello")
    said.cwd = "/code/client-x/src"
    said.prompt("canary")
    said.cwd = "/code/shop"
    said.prompt("bye")
    said.save(home)
    report = ingest(configured(settings, "/code/client-x"))
    assert report.withheld == 1
    assert_nowhere("canary", settings.home)
    assert told(settings, said.session_id) == ["hello", "bye"]


def test_subagents_and_results_go_with_their_session(settings: Settings, home: Path) -> None:
    said = session(home, "a", "/code/client-x")
    folder = said.path(home).with_suffix("")
    for name, text in {
        "tool-results/toolu_1.txt": "canary",
        "subagents/agent-a1.meta.json": json.dumps({"agentType": "x", "description": "canary"}),
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    report = ingest(configured(settings, "/code/client-x"))
    assert_nowhere("canary", settings.home)
    assert report.sessions == report.subagents == 0


def test_hooks_are_told_by_ingest(settings: Settings, home: Path, tmp_path: Path) -> None:
    ingest(configured(settings, "~/jobs/client-x", "github.com/acme/secret", agents=("codex",)))
    lines = (settings.home / exclude.FILE).read_text().splitlines()
    assert lines == [f"path {home}/jobs/client-x", "project github.com/acme/secret", "agent codex"]
    assert (settings.home / exclude.FILE).stat().st_mode & 0o777 == 0o600
    ingest(configured(settings))
    assert not (settings.home / exclude.FILE).exists()


def test_a_setting_nobody_understands_stops_ingest_before_anything_is_stored(
    settings: Settings, home: Path, cli: Cli
) -> None:
    session(home, "a", "/code/client-x")
    for text in (
        '[exclude]\nproject = ["/code"]\n',
        '[exclude]\nprojects = ["client-x"]\n',
        '[exclude]\nagents = ["x"]\n',
    ):
        settings.home.mkdir(exist_ok=True)
        (settings.home / "config.toml").write_text(text)
        done = cli("ingest", "--json")
        assert (done.code, done.json["error"]["kind"]) == (2, "bad_input"), text
        (settings.home / "config.toml").write_text("")
        assert_nowhere("canary", settings.home)
