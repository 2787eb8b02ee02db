"""The tables of docs/agents.md say what the tests run, and no more."""

from __future__ import annotations

import json
import re
from pathlib import Path

from whyfor.agents import AGENTS

from .install import PACKAGE
from .readers.test_contract import EVERYBODY
from .record import RECIPES
from .recordings import RECORDED, recorded_on, version_of

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
PACKAGES = {
    "claude": "@anthropic-ai/claude-code",
    "codex": "@openai/codex",
    "gemini": "@google/gemini-cli",
    "copilot": "@github/copilot",
    "opencode": "opencode-ai",
}


def table(*columns: str) -> list[dict[str, str]]:
    """The rows of the table that begins with these columns."""
    head = re.escape("| " + " | ".join(columns))
    found = re.search(rf"(?m)^({head}.*)\n\|[-|]+\n((?:\|.*\n)+)", PAGE.read_text())
    assert found, columns
    names = cells(found[1])
    return [dict(zip(names, cells(line), strict=True)) for line in found[2].splitlines()]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def proofs() -> dict[str, str]:
    return {
        name: "run" if name in PACKAGES else "recorded" if name in RECORDED else "docs"
        for name in EVERYBODY
    }


def test_the_versions_are_those_that_were_tried() -> None:
    pinned = json.loads(PACKAGE.read_text())["dependencies"]
    tried = {name: (pinned[package], "run") for name, package in PACKAGES.items()}
    others = [(name, version_of(name), "recorded") for name in RECORDED]
    known = [(name, *each) for name, each in tried.items()]
    new = [one for one in others if one[:2] not in [each[:2] for each in known]]
    told = table("agent", "version", "tried")
    assert sorted((row["agent"], row["version"], row["tried"]) for row in told) == sorted(
        (AGENTS[name].title, version, how) for name, version, how in [*known, *new]
    )
    days = {AGENTS[name].title: recorded_on(name) for name in RECORDED}
    for row in told:
        when = days[row["agent"]] if row["tried"] == "recorded" else "with every test run"
        assert row["when"] == when, row


def test_recordings_are_of_the_versions_that_are_installed() -> None:
    assert set(RECORDED) == set(RECIPES)
    assert {name: version_of(name) for name in RECORDED} == {
        name: recipe.version for name, recipe in RECIPES.items()
    }


def test_what_each_agent_can_do_is_told_as_it_is() -> None:
    told = {row["agent"]: row for row in table("agent", "thinking")}
    assert list(told) == [AGENTS[name].title for name in EVERYBODY]
    for name, proof in proofs().items():
        agent, row = AGENTS[name], told[AGENTS[name].title]
        hooks = "yes" if agent.facts.hooks else "plugin" if agent.facts.plugin else "–"
        assert (row["proven"], row["hooks"]) == (proof, hooks), name
        assert (row["restore"] == "yes") is (agent.writer() is not None), name
        assert (row["branch"] == "–") is ("branch" in agent.facts.untold), name
        assert (row["thinking"] == "–") is ("thinking" in agent.facts.untold), name
        assert (row["resume"] == "–") is (agent.resume("x") is None), name
