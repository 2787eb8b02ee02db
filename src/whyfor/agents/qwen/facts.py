"""Qwen Code's tools, variables, hooks and marks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from whyfor.agents.facts import (
    HOOK_SECONDS,
    AgentFacts,
    ArgumentNames,
    Hookable,
    HookEvent,
    ServerPlace,
    folder_from,
    hook_events,
    kinds,
    plain_server,
    session_start,
    split_words,
)

SHELL = "run_shell_command"
own_folder = folder_from("QWEN_HOME", ".qwen")


def runtime_folder(home: Path, env: Mapping[str, str]) -> Path:
    """Return where its sessions are: beside its settings, unless the environment says another
    place."""
    elsewhere = env.get("QWEN_RUNTIME_DIR")
    return Path(elsewhere) if elsewhere else own_folder(home, env)


HOOKS = Hookable(
    agent="qwen",
    title="Qwen Code",
    program="qwen",
    folder=own_folder,
    file="settings.json",
    local=".qwen/settings.json",
    events=(
        session_start("SessionStart"),
        *hook_events("UserPromptSubmit"),
        HookEvent("PostToolUse", SHELL, annotate=True),
        *hook_events("Stop SessionEnd"),
    ),
    limit={"timeout": HOOK_SECONDS * 1000},
    off=("disableAllHooks", True),
    skills="skills",
)
SERVERS = ServerPlace(
    agent="qwen",
    title="Qwen Code",
    folder=own_folder,
    files=("settings.json",),
    entry=plain_server,
)
FACTS = AgentFacts(
    mark="Qw",
    colour="#7a6ff0",
    tools=kinds(
        shell=SHELL,
        read="read_file read_many_files",
        list="list_directory",
        search="glob search_file_content grep_search",
        edit="edit replace",
        write="write_file",
        web="web_search",
        fetch="web_fetch",
        subagent="task",
        plan="exit_plan_mode",
        todo="todo_write",
    ),
    arguments=ArgumentNames(
        path=("file_path", "absolute_path"),
        command=("command",),
        folder=("directory",),
        old=("old_string",),
        new=("new_string",),
        whole=("content",),
    ),
    folder_variables=("QWEN_HOME", "QWEN_RUNTIME_DIR"),
    session_variables=("QWEN_CODE_SESSION_ID",),
    hooks=HOOKS,
    servers=SERVERS,
    hook_events={
        "SessionStart": "started",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "call",
        "PostToolUse": "result",
        "PostToolUseFailure": "result",
        "Stop": "done",
        "SessionEnd": "exited",
    },
    structure=frozenset(
        split_words(
            "type subtype role uuid parentUuid sessionId timestamp version cwd gitBranch id"
        )
    ),
    identities=frozenset(
        split_words("uuid parentuuid sessionid callid id timestamp type role model version cwd")
    ),
)
