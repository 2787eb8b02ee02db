"""Hermes Agent's tools, variables and marks. Its hooks need a consent of their own, and are not
installed."""

from __future__ import annotations

from whyfor.agents.facts import AgentFacts, ArgumentNames, folder_from, kinds, split_words

own_folder = folder_from("HERMES_HOME", ".hermes")
FACTS = AgentFacts(
    mark="He",
    colour="#c25b6e",
    tools=kinds(
        shell="terminal",
        read="read_file",
        search="search_files",
        edit="patch",
        write="write_file",
        web="web_search",
        fetch="web_extract",
        subagent="delegate_task",
        todo="todo",
    ),
    untold=("tokens per answer",),
    arguments=ArgumentNames(
        path=("path",),
        command=("command",),
        folder=("workdir",),
        old=("old_string",),
        new=("new_string",),
        whole=("content",),
    ),
    folder_variables=("HERMES_HOME",),
    structure=frozenset(
        split_words("type role id session_id tool_call_id tool_name timestamp model name cwd")
    ),
    identities=frozenset(split_words("id session_id tool_call_id timestamp type role model cwd")),
)
