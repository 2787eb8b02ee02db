"""After `whyfor init` the real agents run our hooks, and what happened is in the spool."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.service.init.tools import Spool, git
from whyfor.config import Settings

from . import Agent, Call, Claude, Codex, Gemini, Run, Say, ScriptedModel

COMMIT = "git commit -q --allow-empty -m agent"


@pytest.fixture
def ready(
    agent_home: Path,
    agent_repo: Path,
    cli: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
) -> Spool:
    """Hooks for all three agents and git, around a setting that was there before."""
    for name in (".claude", ".codex", ".gemini"):
        (agent_home / name).mkdir()
    monkeypatch.chdir(agent_repo)
    assert cli("init").code == 0
    return Spool(settings.home)


def _by_event(spool: Spool) -> dict[str, dict[str, Any]]:
    return {envelope["event"]: envelope for envelope in spool.all()}


def _committed(agent: Agent, model: ScriptedModel, *args: str) -> Run:
    model.add(Call("shell", {"command": COMMIT}), Say("Committed."))
    run = agent.run("Commit it", *args)
    assert (run.code, run.killed) == (0, ()), run.stdout + run.stderr
    return run


def _check(found: dict[str, dict[str, Any]], agent: str, run: Run, events: set[str]) -> None:
    assert events <= set(found)
    for event in events:
        payload = json.loads(found[event]["payload"])
        assert (found[event]["agent"], payload["session_id"]) == (agent, run.session_id)
        assert payload["hook_event_name"] == event


def _check_commit(found: dict[str, dict[str, Any]], repo: Path) -> None:
    """The commit, and among the processes around it one that is around the agent's hooks too."""
    commit = found["post-commit"]
    assert commit["sha"] == git(repo, "rev-parse", "HEAD").stdout.strip()
    around = {(pid, start) for pid, start, _ in commit["chain"] if start}
    assert around & {(pid, start) for pid, start, _ in found["SessionStart"]["chain"]}


def test_claude_announces_its_session_and_the_commit_in_it(
    agent_home: Path, agent_repo: Path, scripted_model: ScriptedModel, ready: Spool
) -> None:
    run = _committed(Claude(agent_home, agent_repo, scripted_model), scripted_model)
    found = _by_event(ready)
    _check(
        found,
        "claude",
        run,
        {"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"},
    )
    _check_commit(found, agent_repo)
    assert found["post-commit"]["env"]["CLAUDE_CODE_SESSION_ID"] == run.session_id
    assert found["post-commit"]["env"]["WHYFOR_SESSION"] == f"claude:{run.session_id}"


def test_a_claude_subagent_is_announced_when_it_starts_and_ends(
    agent_home: Path, agent_repo: Path, scripted_model: ScriptedModel, ready: Spool
) -> None:
    task = {"description": "look", "prompt": "Look around", "subagent_type": "general-purpose"}
    scripted_model.add(Call("Agent", task), Say("I looked."), Say("Done."))
    run = Claude(agent_home, agent_repo, scripted_model).run("Send somebody")
    assert (run.code, run.killed) == (0, ())
    tools = [
        json.loads(e["payload"])["tool_name"] for e in ready.all() if e["event"] == "PostToolUse"
    ]
    assert tools in (["Agent"], ["Task"])
    assert "SubagentStop" in ready.events()


def test_gemini_announces_its_session_though_it_turns_git_hooks_off(
    agent_home: Path, agent_repo: Path, scripted_model: ScriptedModel, ready: Spool
) -> None:
    run = _committed(Gemini(agent_home, agent_repo, scripted_model), scripted_model)
    found = _by_event(ready)
    _check(
        found,
        "gemini",
        run,
        {"SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "SessionEnd"},
    )
    assert COMMIT in found["AfterTool"]["payload"]
    assert "post-commit" not in found  # it sets core.hooksPath to nothing for every command it runs


def test_codex_announces_its_session_once_its_hooks_are_trusted(
    agent_home: Path, agent_repo: Path, scripted_model: ScriptedModel, ready: Spool
) -> None:
    codex = Codex(agent_home, agent_repo, scripted_model)
    _committed(codex, scripted_model)
    # it skips what nobody approved
    assert {envelope["agent"] for envelope in ready.all()} == {"git"}
    ready.clear()
    run = _committed(codex, scripted_model, "--dangerously-bypass-hook-trust")
    found = _by_event(ready)
    _check(
        found,
        "codex",
        run,
        {"SessionStart", "UserPromptSubmit", "PostToolUse", "Stop", "SessionEnd"},
    )
    _check_commit(found, agent_repo)
    assert found["post-commit"]["env"]["CODEX_THREAD_ID"] == run.session_id


def test_an_agent_runs_on_when_all_of_ours_is_gone(
    agent_home: Path,
    agent_repo: Path,
    scripted_model: ScriptedModel,
    ready: Spool,
    settings: Settings,
) -> None:
    for name in ("hook.py", "announce.py", "launch"):
        (settings.home / "hook" / name).unlink()
    run = _committed(Claude(agent_home, agent_repo, scripted_model), scripted_model)
    assert "hook" not in run.stderr.lower()
    assert not any(json.dumps(record).count("hook_non_blocking_error") for record in run.records)
    assert ready.all() == []
