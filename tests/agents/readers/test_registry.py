"""Which agents are looked for: one look at a folder tells, and only then is an agent's code
loaded."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.samples import sample
from tests.conftest import REPOSITORY, Result
from whyfor.agents import AGENTS, IMPORTED, RECORDED, USUAL, left_traces
from whyfor.capture.discover import agents_here
from whyfor.config import load

OTHERS = [name for name in AGENTS if name not in (*USUAL, *IMPORTED, *RECORDED)]


@pytest.mark.parametrize("agent", OTHERS)
def test_an_agent_is_looked_for_where_it_has_a_folder(agent: str, home: Path) -> None:
    assert not left_traces(agent, home, {})
    sample(agent).write(home)
    assert left_traces(agent, home, {})
    assert agent in {one.name for one in agents_here(load())}


@pytest.mark.parametrize("agent", OTHERS)
def test_a_variable_that_moves_its_folder_is_followed(
    agent: str, home: Path, tmp_path: Path
) -> None:
    for variable in AGENTS[agent].facts.folder_variables:
        elsewhere = tmp_path / variable
        env = {variable: str(elsewhere)}
        for root in AGENTS[agent].roots(home, env):
            root.mkdir(parents=True, exist_ok=True)
        assert elsewhere.is_dir()
        assert left_traces(agent, home, env)


def test_the_settings_name_more_folders(home: Path, tmp_path: Path) -> None:
    own = tmp_path / "whyfor"
    own.mkdir()
    (own / "config.toml").write_text(f'[roots]\npi = ["{tmp_path}"]\n')
    assert "pi" in {one.name for one in agents_here(load())}


def test_what_never_ran_here_is_not_loaded(home: Path, cli: Callable[..., Result]) -> None:
    sample("claude").write(home)
    cli("ingest")  # the first links what it reads, which needs the tools of all
    program = (
        "import sys; from whyfor.__main__ import main; main(['ingest']); "
        "print([name for name in sys.modules if name.startswith('whyfor.agents.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY, check=True
    )
    loaded = done.stdout.splitlines()[-1]
    assert "whyfor.agents.claude" in loaded
    for agent in OTHERS:
        assert f"'{type(AGENTS[agent]).__module__}'" not in loaded


def test_pages_have_a_colour_for_every_agent() -> None:
    static = REPOSITORY / "src" / "whyfor" / "web" / "static"
    styles = "".join((static / f"{name}.css").read_text() for name in ("app", "agents", "tokens"))
    styles += (static / "commit.css").read_text()
    for agent in AGENTS:
        assert f"--agent-{agent}: light-dark(" in styles
        for rule in (f".agent-{agent}", f".l-{agent} ", f".w-{agent} ", f".key-{agent} "):
            assert rule in styles
        assert f".d-{agent} " in styles


@pytest.mark.parametrize(
    "payload",
    [
        {"hookEventName": "stop", "hook_event_name": "Stop", "transcript_path": "/h/.grok/u.jsonl"},
        {"hook_event_name": "Stop", "transcript_path": "/h/.grok/sessions/a/updates.jsonl"},
        {"hook_event_name": "Stop", "client_type": "kimi_code_cli", "transcript_path": "/x"},
        {"hook_event_name": "Stop", "transcript_path": "/h/.factory/sessions/a/b.jsonl"},
    ],
    ids=["grok", "grok by its folder", "kimi", "droid"],
)
def test_a_hook_of_claude_that_another_agent_runs_is_not_claudes(payload: dict[str, str]) -> None:
    assert not AGENTS["claude"].owns_hook({"session_id": "s", **payload})
    own = {"session_id": "s", "transcript_path": "/h/.claude/projects/-w/s.jsonl"}
    assert AGENTS["claude"].owns_hook(own)


def test_qwen_asks_its_prompt_hook_for_results_of_tools_too() -> None:
    asked = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": ""}
    assert not AGENTS["qwen"].owns_hook(asked)
    assert AGENTS["qwen"].owns_hook({**asked, "prompt": "Write it"})


def test_an_agent_that_never_ran_is_not_told_of(home: Path, cli: Callable[..., Result]) -> None:
    sample("pi").write(home)
    cli("ingest")
    told = {item["agent"] for item in cli("doctor", "--json").json["agents"]}
    assert told == {*USUAL, "pi"}
