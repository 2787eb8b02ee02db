"""Gemini CLI's tools, variables, hooks and marks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from whyfor.agents.facts import (
    HOOK_SECONDS,
    AgentFacts,
    ArgumentNames,
    Hookable,
    HookEvent,
    NativeRules,
    ServerPlace,
    hook_events,
    kinds,
    plain_server,
    prompt_submitted,
    session_start,
    snapshot_event,
    split_words,
)
from whyfor.agents.native_rules import append_block, quoted_text, quoted_words

SHELL, EDIT, FETCH = "run_shell_command", "replace", "web_fetch"
QUESTION = "ask_user"


def own_folder(home: Path, env: Mapping[str, str]) -> Path:
    return Path(env.get("GEMINI_CLI_HOME") or home) / ".gemini"


HOOKS = Hookable(
    agent="gemini",
    title="Gemini CLI",
    program="gemini",
    folder=own_folder,
    file="settings.json",
    local=".gemini/settings.json",
    events=(
        session_start("SessionStart"),
        prompt_submitted("BeforeAgent"),
        *hook_events("AfterAgent"),
        snapshot_event("BeforeTool", "before", SHELL),
        HookEvent("AfterTool", SHELL, annotate=True, snapshot="after"),
        *hook_events("Notification SessionEnd"),
    ),
    limit={"timeout": HOOK_SECONDS * 1000},
    off=("hooksConfig.enabled", False),
    skills="skills",
)
SERVERS = ServerPlace(
    agent="gemini",
    title="Gemini CLI",
    folder=own_folder,
    files=("settings.json",),
    entry=plain_server,
)
FACTS = AgentFacts(
    mark="Ge",
    colour="#5a8ee6",
    tools=kinds(
        shell=SHELL,
        read="read_file read_many_files",
        list="list_directory",
        search="glob search_file_content grep_search",
        edit=EDIT,
        write="write_file",
        web="google_web_search",
        fetch=FETCH,
        subagent="invoke_agent delegate_to_agent",
        question=QUESTION,
        plan="exit_plan_mode",
        todo="write_todos",
    ),
    untold=("branch",),
    arguments=ArgumentNames(
        path=("file_path", "absolute_path"),
        command=("command",),
        folder=("dir_path",),
        old=("old_string",),
        new=("new_string",),
        whole=("content",),
    ),
    folder_variables=("GEMINI_CLI_HOME",),
    session_variables=("GEMINI_SESSION_ID",),
    presence_variables=("GEMINI_CLI",),
    hooks=HOOKS,
    decision_sources={
        "accept": "terminal",
        "modify": "terminal",
        "reject": "terminal",
        "auto_accept": "agent",
    },
    native_rules=NativeRules(
        folder=own_folder,
        file="policies/whyfor.toml",
        add=lambda content, run: append_block(
            content,
            f'[[rule]]\ntoolName = "{SHELL}"\ncommandPrefix = {quoted_text(quoted_words(run))}\n'
            'decision = "allow"\npriority = 100',
        ),
    ),
    native_rule='policies/whyfor.toml: commandPrefix = "WORDS", decision = "allow"',
    servers=SERVERS,
    hook_events={
        "SessionStart": "started",
        "BeforeAgent": "prompt",
        "BeforeTool": "call",
        "AfterTool": "result",
        "AfterAgent": "done",
        "SessionEnd": "exited",
    },
    notices={"ToolPermission": "noticed"},
    structure=frozenset(
        split_words(
            "type kind id sessionId callId name timestamp startTime lastUpdated projectHash model "
            "mimeType status"
        )
    ),
    identities=frozenset(split_words("id sessionid callid timestamp type model projecthash")),
    sealed=frozenset(split_words("thoughtsignature thought_signature")),
)
