"""Codex's tools, variables, hooks and marks."""

from __future__ import annotations

import json
import os
from pathlib import Path

from whyfor.agents.facts import (
    HOOK_SECONDS,
    AgentFacts,
    ApprovalFormat,
    ArgumentNames,
    Hookable,
    HookEvent,
    NativeRules,
    ServerPlace,
    approval_asked,
    folder_from,
    hook_events,
    kinds,
    plain_server,
    prompt_submitted,
    session_start,
    snapshot_event,
    split_words,
)
from whyfor.agents.native_rules import append_block

PATCH_TOOL = "apply_patch"


def untrusted(folder: Path, settings: Path, events: list[str]) -> list[str]:
    """Return the events whose hooks the person has not yet told Codex to trust."""
    import tomllib  # here: only doctor asks

    try:
        hooks = tomllib.loads((folder / "config.toml").read_text(encoding="utf-8")).get("hooks", {})
        known = list(hooks["state"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        known = []
    files = {str(settings), os.path.realpath(settings)}
    seen = {
        key.split(":")[-3]
        for key in known
        if key.count(":") >= 3 and key.rsplit(":", 3)[0] in files
    }
    return [event for event in events if _snake_case(event) not in seen]


def _snake_case(event: str) -> str:
    parts = (f"_{letter.lower()}" if letter.isupper() else letter for letter in event)
    return "".join(parts).lstrip("_")


HOOKS = Hookable(
    agent="codex",
    title="Codex",
    program="codex",
    folder=folder_from("CODEX_HOME", ".codex"),
    file="hooks.json",
    local=".codex/hooks.json",
    events=(
        session_start("SessionStart"),
        prompt_submitted("UserPromptSubmit"),
        snapshot_event("PreToolUse", "before", "Bash"),
        HookEvent("PostToolUse", "Bash", annotate=True, snapshot="after"),
        approval_asked("PermissionRequest"),
        *hook_events("Stop SubagentStop PreCompact SessionEnd"),
    ),
    limit={"timeout": HOOK_SECONDS},
    skills="skills",
    consent=(
        "Codex runs hooks only after you trust them: start codex, type /hooks, and approve those "
        "of Whyfor."
    ),
    untrusted=untrusted,
    trust="Start codex, type /hooks, and approve those of Whyfor.",
)
SERVERS = ServerPlace(
    agent="codex",
    title="Codex",
    folder=HOOKS.folder,
    files=("config.toml",),
    entry=plain_server,
    toml=True,
)
FACTS = AgentFacts(
    mark="Cx",
    colour="#2a9c95",
    tools=kinds(
        shell="shell exec_command shell_command local_shell container.exec",
        typed="user_shell",
        read="view_image",
        list="list_dir",
        patch=PATCH_TOOL,
        web="web_search",
        subagent="spawn_agent",
        question="request_user_input",
        todo="update_plan",
    ),
    arguments=ArgumentNames(
        path=("path",),
        command=("command", "cmd"),
        folder=("workdir",),
        patch=("input",),
        changes=("changes",),
    ),
    refusals=("exec command rejected", "patch rejected"),
    refused_by={"exec command rejected": "terminal", "patch rejected": "terminal"},
    folder_variables=("CODEX_HOME",),
    session_variables=("CODEX_THREAD_ID", "CODEX_SESSION_ID"),
    presence_variables=("CODEX_SANDBOX",),
    awaited_variable="CODEX_THREAD_ID",
    hooks=HOOKS,
    approvals=ApprovalFormat(
        event="PermissionRequest", tool="tool_name", shells=("Bash",), given="tool_input"
    ),
    decision_sources={"Config": "agent", "User": "terminal", "AutomatedReviewer": "agent"},
    native_rules=NativeRules(
        folder=HOOKS.folder,
        file="rules/default.rules",
        add=lambda content, run: append_block(
            content, f'prefix_rule(pattern={json.dumps(run)}, decision="allow")'
        ),
    ),
    native_rule='rules/default.rules: prefix_rule(pattern=LIST, decision="allow")',
    servers=SERVERS,
    hook_events={
        "SessionStart": "started",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "call",
        "PostToolUse": "result",
        "PermissionRequest": "asked",
        "Stop": "done",
        "SubagentStop": "child.stopped",
        "PreCompact": "compacting",
        "SessionEnd": "exited",
    },
    single_turn={"source": "exec"},
    structure=frozenset(
        split_words(
            "type role kind id session_id call_id turn_id parent_id name timestamp cwd model status"
        )
    ),
    identities=frozenset(
        split_words(
            "id session_id call_id turn_id thread_id parent_id timestamp created_at updated_at "
            "type role model cwd branch commit_hash"
        )
    ),
    sealed=frozenset(("encrypted_content",)),
)
