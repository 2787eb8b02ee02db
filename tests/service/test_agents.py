"""`whyfor agents`: what is known, what is here, what was recorded, what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.samples import Sample, sample
from tests.conftest import Result
from whyfor.agents import AGENTS, IMPORTED, RECORDED

Cli = Callable[..., Result]
CODING = [name for name in AGENTS if name not in (*IMPORTED, *RECORDED)]


def test_every_agent_is_listed_and_those_found_here_come_first(home: Path, cli: Cli) -> None:
    for name in ("qwen", "goose"):
        sample(name).write(home)
    cli("ingest")
    listed = cli("agents", "--json").json
    assert {row["agent"] for row in listed} == set(AGENTS)
    assert [row["found"] for row in listed] == [True] * 2 + [False] * (len(AGENTS) - 2)
    qwen = next(row for row in listed if row["agent"] == "qwen")
    assert (qwen["version"], qwen["sessions"], qwen["hooks"]) == ("0.24.4", 1, "absent")
    assert qwen["last_record_at"].startswith("2026-09-21T")
    assert qwen["missing"] == ["hooks not installed"]
    goose = next(row for row in listed if row["agent"] == "goose")
    assert (goose["hooks"], goose["restore"], goose["version"]) == (None, False, None)
    assert {"no hooks", "no restore", "no cached tokens"} <= set(goose["missing"])


def test_hooks_that_init_installed_are_told(home: Path, cli: Cli) -> None:
    (home / ".qwen").mkdir()
    assert cli("init", "--agent", "qwen").code == 0
    [row] = cli("agents", "--here", "--json").json
    assert (row["agent"], row["hooks"], row["missing"]) == ("qwen", "installed", [])


@pytest.mark.parametrize(
    ("name", "folder", "file"),
    [
        ("kilo", ".config/kilo", "plugins/whyfor.js"),
        ("pi", ".pi/agent", "extensions/whyfor.ts"),
    ],
)
def test_an_agent_without_command_hooks_gets_a_file_of_ours_and_loses_it(
    name: str, folder: str, file: str, home: Path, cli: Cli
) -> None:
    (home / folder).mkdir(parents=True)
    assert cli("init", "--agent", name).code == 0
    text = (home / folder / file).read_text()
    assert f'"--agent","{name}"' in text.replace('", "', '","')
    assert "__TELL__" not in text and "__HOOK__" not in text
    [row] = cli("agents", "--here", "--json").json
    assert (row["agent"], row["hooks"]) == (name, "installed")
    assert cli("uninstall").code == 0
    assert not [path for path in (home / folder).rglob("*") if path.is_file()]


def test_the_table_fits_a_terminal(home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "No agent was found here" in cli("agents").out
    for name in CODING:
        sample(name).write(home)
    cli("ingest")
    shown = cli("agents").out
    assert max(map(len, shown.splitlines())) <= 80
    for agent in AGENTS.values():
        assert agent.title in shown


@pytest.mark.parametrize("name", CODING)
def test_what_an_agent_is_said_not_to_tell_its_sample_lacks(name: str) -> None:
    assert set(AGENTS[name].facts.untold) == lacks(sample(name))


def lacks(one: Sample) -> set[str]:
    """What the sample, which has all that the agent writes, does not hold."""
    found = {
        "thinking": not one.thinking,
        "exit codes": one.exit_code is None,
        "branch": one.branch is None,
        "times": not one.timed,
        "model": one.model is None,
        "cached tokens": "cache_read" not in one.tokens,
        "tokens per answer": one.totals_only,
    }
    return {what for what, is_lacking in found.items() if is_lacking}
