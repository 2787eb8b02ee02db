"""Grok Build's tools, variables, hooks and marks."""

from __future__ import annotations

from whyfor.agents.facts import (
    HOOK_SECONDS,
    AgentFacts,
    ArgumentNames,
    Hookable,
    folder_from,
    hook_events,
    kinds,
    split_words,
)

own_folder = folder_from("GROK_HOME", ".grok")
# It also runs the hooks in Claude Code's settings. What a hook prints when a turn ends makes it go
# on: nothing is ever printed there, and nothing at a session's start, which it ignores.
HOOKS = Hookable(
    agent="grok",
    title="Grok Build",
    program="grok",
    folder=own_folder,
    file="hooks/whyfor.json",
    local=".grok/hooks/whyfor.json",
    events=hook_events("SessionStart UserPromptSubmit PostToolUse Stop SessionEnd"),
    limit={"timeout": HOOK_SECONDS},
)
FACTS = AgentFacts(
    mark="Gr",
    colour="#8c94a6",
    tools=kinds(
        shell="run_terminal_command",
        read="read_file",
        list="list_dir",
        search="grep glob",
        edit="search_replace",
        write="write",
        web="web_search",
        fetch="web_fetch",
        subagent="spawn_subagent task",
        question="ask_user_question",
        plan="exit_plan_mode",
        todo="todo_write",
    ),
    arguments=ArgumentNames(
        path=("file_path",),
        command=("command",),
        old=("old_string",),
        new=("new_string",),
        whole=("content",),
    ),
    folder_variables=("GROK_HOME",),
    session_variables=("GROK_SESSION_ID",),
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
        split_words("method sessionId sessionUpdate toolCallId timestamp type kind status")
    ),
    identities=frozenset(
        split_words("sessionid toolcallid eventid promptid prompt_id timestamp type method")
    ),
)
