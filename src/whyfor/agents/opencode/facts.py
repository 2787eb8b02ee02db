"""OpenCode's tools, variables and marks. It has no command hooks, but loads a plugin of ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from whyfor.agents.facts import (
    AgentFacts,
    ApprovalFormat,
    ArgumentNames,
    NativeRules,
    PluginFile,
    ServerPlace,
    kinds,
    split_words,
)
from whyfor.agents.native_rules import add_to_table, quoted_words

SUBAGENT, QUESTION = "task", "question"


def config_folder(program: str, home: Path, env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_CONFIG_HOME") or home / ".config") / program


def data_folder(program: str, home: Path, env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_DATA_HOME") or home / ".local" / "share") / program


def state_folder(program: str, home: Path, env: Mapping[str, str]) -> Path:
    return Path(env.get("XDG_STATE_HOME") or home / ".local" / "state") / program


def _config_folder(home: Path, env: Mapping[str, str]) -> Path:
    return config_folder("opencode", home, env)


def _server(command: list[str], env: dict[str, str]) -> dict[str, Any]:
    made = {"type": "local", "command": command, "enabled": True}
    return {**made, "environment": env} if env else made


SERVERS = ServerPlace(
    agent="opencode",
    title="OpenCode",
    folder=_config_folder,
    files=("opencode.json", "opencode.jsonc"),
    table="mcp",
    entry=_server,
)
PLUGIN = PluginFile(
    agent="opencode",
    title="OpenCode",
    folder=_config_folder,
    file="plugins/whyfor.js",
    source="opencode/plugin.js",
    # With any plugin it waits at its start until npm has installed what plugins may import, and npm
    # tries for more than a minute where no registry answers. Ours imports nothing: one try is
    # enough, and what other plugins need is still installed where there is a network.
    settings_file=".npmrc",
    settings=("fetch-retries=0", "fetch-timeout=10000"),
)
FACTS = AgentFacts(
    mark="Oc",
    colour="#a19a3c",
    tools=kinds(
        shell="bash",
        read="read",
        list="list",
        search="grep glob codesearch",
        edit="edit multiedit patch",
        patch="apply_patch",
        write="write",
        web="websearch",
        fetch="webfetch",
        subagent=SUBAGENT,
        question=QUESTION,
        todo="todowrite todoread",
    ),
    untold=("branch",),
    arguments=ArgumentNames(
        path=("filePath", "path"),
        command=("command",),
        folder=("workdir",),
        old=("oldString",),
        new=("newString",),
        every=("replaceAll",),
        whole=("content",),
        edits=("edits",),
        patch=("patchText",),
    ),
    folder_variables=("XDG_DATA_HOME", "OPENCODE_DB"),
    native_rules=NativeRules(
        folder=_config_folder,
        file="opencode.json",
        add=lambda content, run: add_to_table(
            content, ("permission", "bash"), f"{quoted_words(run)}*", "allow"
        ),
    ),
    native_rule='opencode.json, permission.bash: "WORDS*": "allow"',
    approvals=ApprovalFormat(
        event="PermissionRequest",
        tool="tool_name",
        shells=(),  # it asks only what the person's own settings want to be asked: no rule answers
        given="tool_input",
        wrapped=False,
        waits=False,
        over_http=True,
    ),
    # It says so also where nobody was asked: who refused, only the plugin tells.
    refusals=("The user rejected permission to use",),
    servers=SERVERS,
    plugin=PLUGIN,
    hook_events={
        "SessionStart": "started",
        "UserPromptSubmit": "prompt",
        "PermissionRequest": "asked",
        "PermissionReplied": "answered",
        "Stop": "done",
    },
    presence_variables=("OPENCODE",),
    structure=frozenset(
        split_words(
            "type role id sessionID messageID parentID callID name version cwd modelID providerID "
            "status"
        )
    ),
    identities=frozenset(
        split_words("id sessionid messageid parentid callid type role version cwd")
    ),
)
