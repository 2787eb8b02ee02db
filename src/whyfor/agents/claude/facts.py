"""Claude Code's tools, variables, hooks and marks."""

from __future__ import annotations

from collections.abc import Mapping
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
from whyfor.agents.native_rules import add_to_list, quoted_words

SUBAGENTS = ("Task", "Agent")
QUESTION = "AskUserQuestion"
HOOKS = Hookable(
    agent="claude",
    title="Claude Code",
    program="claude",
    folder=folder_from("CLAUDE_CONFIG_DIR", ".claude"),
    file="settings.json",
    local=".claude/settings.local.json",
    events=(
        session_start("SessionStart"),
        prompt_submitted("UserPromptSubmit"),
        snapshot_event("PreToolUse", "before", "Bash"),
        HookEvent(
            "PostToolUse", "Bash|AskUserQuestion|Task|Agent", annotate=True, snapshot="after"
        ),
        snapshot_event("PostToolUseFailure", "after", "Bash"),
        approval_asked("PermissionRequest"),
        *hook_events(
            "PermissionDenied Notification Stop StopFailure SubagentStop PreCompact SessionEnd"
        ),
    ),
    limit={"timeout": HOOK_SECONDS},
    off=("disableAllHooks", True),
    skills="skills",
)


def _state_folder(home: Path, env: Mapping[str, str]) -> Path:
    """Return where its state is, servers of the user among it."""
    return Path(env["CLAUDE_CONFIG_DIR"]) if env.get("CLAUDE_CONFIG_DIR") else home


SERVERS = ServerPlace(
    agent="claude",
    title="Claude Code",
    folder=_state_folder,
    files=(".claude.json",),
    entry=lambda command, env: {"type": "stdio", **plain_server(command, env)},
)
FACTS = AgentFacts(
    mark="Cc",
    colour="#c8693f",
    tools=kinds(
        shell="bash powershell",
        read="read notebookread",
        list="ls",
        search="grep glob",
        edit="edit multiedit notebookedit",
        write="write",
        web="websearch",
        fetch="webfetch",
        subagent="task agent",
        question="askuserquestion",
        plan="exitplanmode",
        todo="todowrite todoread taskcreate taskupdate tasklist taskget",
        mode="enterplanmode",
        tools="toolsearch",
    ),
    untold=("exit codes",),
    arguments=ArgumentNames(
        path=("file_path", "notebook_path"),
        command=("command",),
        old=("old_string",),
        new=("new_string", "new_source"),
        every=("replace_all",),
        whole=("content",),
        edits=("edits",),
    ),
    refusals=(
        "The user doesn't want to",
        "Permission to use ",
        "Claude requested permissions to ",
    ),
    refused_by={
        "The user doesn't want to": "terminal",
        "Permission to use ": "agent",
        "Claude requested permissions to ": "nobody",
    },
    folder_variables=("CLAUDE_CONFIG_DIR",),
    session_variables=("CLAUDE_CODE_SESSION_ID",),
    presence_variables=("CLAUDECODE",),
    hooks=HOOKS,
    approvals=ApprovalFormat(
        event="PermissionRequest",
        tool="tool_name",
        shells=("Bash",),
        given="tool_input",
        alarming=("dangerouslyDisableSandbox",),
        required=("permission_suggestions",),  # absent if the person's rules say `ask`
        waits=False,
        over_http=True,
        waits_unattended=True,
    ),
    decision_sources={
        "config": "agent",
        "hook": "agent",
        "classifier": "agent",
        "user_permanent": "terminal",
        "user_temporary": "terminal",
        "user_reject": "terminal",
        "user_abort": "terminal",
    },
    native_rules=NativeRules(
        folder=HOOKS.folder,
        file="settings.json",
        add=lambda content, run: add_to_list(
            content, ("permissions", "allow"), f"Bash({quoted_words(run)}:*)"
        ),
    ),
    native_rule='settings.json, permissions.allow: "Bash(WORDS:*)"',
    servers=SERVERS,
    hook_events={
        "SessionStart": "started",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "call",
        "PostToolUse": "result",
        "PostToolUseFailure": "result",
        "PermissionRequest": "asked",
        "PermissionDenied": "result",
        "Stop": "done",
        "StopFailure": "failed",
        "SubagentStart": "child.active",
        "SubagentStop": "child.stopped",
        "PreCompact": "compacting",
        "PostCompact": "compacted",
        "SessionEnd": "exited",
    },
    notices={
        "permission_prompt": "noticed",
        "elicitation_dialog": "noticed",
        "agent_needs_input": "noticed",
        "idle_prompt": "ready",
    },
    single_turn={"entrypoint": "sdk-cli"},
    process_states={
        "busy": "busy",
        "idle": "ready",
        "shell": "ready",
        "waiting": "noticed",
        "waiting (dialog open)": "heard",  # a person looks at a menu
    },
    structure=frozenset(
        split_words(
            "type subtype role id uuid parentUuid logicalParentUuid sessionId tool_use_id "
            "toolUseId toolUseID message_id requestId request_id promptId agentId name timestamp "
            "version cwd gitBranch model media_type stop_reason userType entrypoint "
            # of what its hooks are given
            "session_id prompt_id agent_id agent_type tool_name hook_event_name transcript_path "
            "agent_transcript_path"
        )
    ),
    identities=frozenset(
        split_words(
            "id uuid parentuuid leafuuid logicalparentuuid sessionid session_id tool_use_id "
            "tooluseid messageid message_id requestid request_id agentid agent_id promptid "
            "sourcetooluseid snapshotid timestamp type role model version cwd gitbranch"
        )
    ),
    sealed=frozenset(("signature",)),
)
