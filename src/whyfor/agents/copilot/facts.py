"""Copilot CLI's tools, variables, hooks and marks."""

from __future__ import annotations

from whyfor.agents.facts import (
    HOOK_SECONDS,
    AgentFacts,
    ApprovalFormat,
    ArgumentNames,
    Hookable,
    HookEvent,
    ServerPlace,
    approval_asked,
    folder_from,
    hook_events,
    kinds,
    plain_server,
    prompt_submitted,
    session_start,
    split_words,
)
from whyfor.model import former_name

own_folder = folder_from("COPILOT_HOME", ".copilot")
EDITOR = "str_replace_editor"  # one tool for several things, as its argument `command` says
PATCH_TOOL = "apply_patch"
HOOKS = Hookable(
    agent="copilot",
    title="Copilot CLI",
    program="copilot",
    folder=own_folder,
    file="hooks/whyfor.json",
    local=".github/hooks/whyfor.json",
    events=(
        session_start("sessionStart"),
        prompt_submitted("userPromptSubmitted"),
        HookEvent("postToolUse", "bash"),
        approval_asked("permissionRequest"),
        *hook_events("notification agentStop subagentStop errorOccurred preCompact sessionEnd"),
    ),
    limit={"timeoutSec": HOOK_SECONDS},
    grouped=False,
    empty={"version": 1},
    off=("disableAllHooks", True),
    former_file=former_name.COPILOT_FILE,
    former_local=f".github/{former_name.COPILOT_FILE}",
)
SERVERS = ServerPlace(
    agent="copilot",
    title="Copilot CLI",
    folder=HOOKS.folder,
    files=("mcp-config.json",),
    entry=lambda command, env: {"type": "local", **plain_server(command, env), "tools": ["*"]},
)
FACTS = AgentFacts(
    mark="Cp",
    colour="#a177d6",
    tools=kinds(
        shell="bash powershell",
        read="view read_file",
        search="grep glob rg",
        edit=f"edit edit_file str_replace insert {EDITOR}",
        write="create write write_file",
        patch=PATCH_TOOL,
        fetch="web_fetch",
        web="web_search",
        subagent="task",
        question="ask_user",
        plan="exit_plan_mode",
    ),
    tool_commands={EDITOR: {"view": "read", "create": "write"}},
    arguments=ArgumentNames(
        path=("path",),
        command=("command",),
        old=("old_str",),
        new=("new_str",),
        line=("insert_line",),
        whole=("file_text",),
    ),
    folder_variables=("COPILOT_HOME",),
    session_variables=("COPILOT_SESSION_ID",),
    hooks=HOOKS,
    approvals=ApprovalFormat(
        event="permissionRequest",
        tool="toolName",
        shells=("bash",),
        given="toolInput",
        mode="permissionMode",
        wrapped=False,
    ),
    native_rule="copilot --allow-tool 'shell(WORDS:*)'",
    servers=SERVERS,
    hook_events={
        "sessionStart": "started",
        "userPromptSubmitted": "prompt",
        "preToolUse": "call",
        "postToolUse": "result",
        "permissionRequest": "asked",
        "agentStop": "done",
        "subagentStop": "child.stopped",
        "errorOccurred": "erred",
        "preCompact": "compacting",
        "sessionEnd": "exited",
    },
    structure=frozenset(
        split_words(
            "type role id parentId sessionId messageId requestId turnId toolCallId tool_call_id "
            "toolName callId agentId name timestamp startTime version cwd model mimeType"
        )
    ),
    identities=frozenset(
        split_words(
            "id parentid sessionid parentsessionid messageid requestid turnid toolcallid callid "
            "agentid interactionid timestamp type role model version cwd branch"
        )
    ),
    sealed=frozenset(("encryptedcontent",)),
)
