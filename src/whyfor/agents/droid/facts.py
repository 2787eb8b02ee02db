"""Droid's tools, hooks and marks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from whyfor.agents.facts import (
    HOOK_SECONDS,
    AgentFacts,
    ArgumentNames,
    Hookable,
    HookEvent,
    hook_events,
    kinds,
    session_start,
    split_words,
)

# Kinds of settings: of a session, and of a fork, which begins with the totals of its origin.
TOTALS, FORK = "meta", "fork"


def factory_folder(home: Path, _env: Mapping[str, str]) -> Path:
    return home / ".factory"


HOOKS = Hookable(
    agent="droid",
    title="Droid",
    program="droid",
    folder=factory_folder,
    file="settings.json",
    local=".factory/settings.json",
    events=(
        session_start("SessionStart"),
        *hook_events("UserPromptSubmit"),
        HookEvent("PostToolUse", "Execute", annotate=True),
        *hook_events("Stop SessionEnd"),
    ),
    limit={"timeout": HOOK_SECONDS},
)
FACTS = AgentFacts(
    mark="Dr",
    colour="#e2763a",
    tools=kinds(
        shell="execute",
        read="read",
        list="ls",
        search="grep glob",
        edit="edit multiedit",
        write="create",
        patch="applypatch",
        web="websearch",
        fetch="fetchurl",
        subagent="task",
        plan="exitspecmode",
        todo="todowrite",
    ),
    untold=("branch", "tokens per answer"),
    arguments=ArgumentNames(
        path=("file_path",),
        command=("command",),
        old=("old_str",),
        new=("new_str",),
        every=("change_all",),
        whole=("content",),
    ),
    hooks=HOOKS,
    hook_events={
        "SessionStart": "started",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "call",
        "PostToolUse": "result",
        "Stop": "done",
        "SessionEnd": "exited",
    },
    structure=frozenset(
        split_words("type role id parentId timestamp version cwd tool_use_id name")
    ),
    identities=frozenset(split_words("id parentid timestamp type role version cwd tool_use_id")),
)
