"""Kimi's tools, variables and marks. Its hooks stand in a TOML file, where none are installed."""

from __future__ import annotations

from whyfor.agents.facts import AgentFacts, ArgumentNames, folder_from, kinds, split_words

own_folder = folder_from("KIMI_CODE_HOME", ".kimi-code")
former_folder = folder_from("KIMI_SHARE_DIR", ".kimi")
FACTS = AgentFacts(
    mark="Km",
    colour="#4aa3df",
    tools=kinds(
        shell="bash shell",
        read="read readfile readmediafile",
        search="grep glob",
        edit="edit strreplacefile",
        write="write writefile",
        web="searchweb websearch",
        fetch="fetchurl",
        subagent="agent task",
        todo="todolist settodolist",
    ),
    untold=("branch",),
    arguments=ArgumentNames(
        path=("path",),
        command=("command",),
        old=("old_string",),
        new=("new_string",),
        whole=("content",),
    ),
    folder_variables=("KIMI_CODE_HOME", "KIMI_SHARE_DIR"),
    structure=frozenset(
        split_words(
            "type role kind id uuid turnId toolCallId tool_call_id name time timestamp model"
        )
    ),
    identities=frozenset(
        split_words("id uuid turnid toolcallid tool_call_id promptid time timestamp type role cwd")
    ),
)
