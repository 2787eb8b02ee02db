"""Mistral Vibe's tools, variables and marks. Its hooks stand in a TOML file, where none are
installed."""

from __future__ import annotations

from whyfor.agents.facts import AgentFacts, ArgumentNames, folder_from, kinds, split_words

own_folder = folder_from("VIBE_HOME", ".vibe")
FACTS = AgentFacts(
    mark="Vi",
    colour="#f08a24",
    tools=kinds(
        shell="file_system.bash",
        read="file_system.read_file file_system.read",
        search="file_system.grep",
        edit="file_system.search_replace file_system.edit",
        write="file_system.write_file",
        subagent="vibe.task",
        todo="vibe.todo",
    ),
    untold=("model", "tokens per answer"),
    arguments=ArgumentNames(
        path=("file_path", "path"),
        command=("command",),
        old=("old_str",),
        new=("new_str",),
        whole=("content",),
        edits=("content",),  # of an edit it is a list, of a whole file a text
    ),
    folder_variables=("VIBE_HOME",),
    structure=frozenset(
        split_words("type role id kind source sessionId turnId toolName createdAt updatedAt status")
    ),
    identities=frozenset(split_words("id sessionid turnid createdat updatedat type role")),
)
