"""Goose's tools, variables and marks. Its hooks come with plugins, of which none is installed."""

from __future__ import annotations

from whyfor.agents.facts import AgentFacts, ArgumentNames, kinds, split_words

FACTS = AgentFacts(
    mark="Go",
    colour="#6fae6f",
    tools=kinds(
        shell="shell developer__shell",
        read="read developer__read",
        list="tree developer__tree",
        edit="edit developer__edit developer__text_editor",
        write="write developer__write",
        subagent="subagent delegate",
        todo="todo__write todo_write",
    ),
    tool_commands={"developer__text_editor": {"view": "read", "write": "write"}},
    untold=("branch", "tokens per answer", "cached tokens"),
    arguments=ArgumentNames(
        path=("path",),
        command=("command",),
        old=("old_str",),
        new=("new_str",),
        whole=("content", "file_text"),
    ),
    folder_variables=("GOOSE_PATH_ROOT", "XDG_DATA_HOME"),
    structure=frozenset(
        split_words(
            "type role id session_id message_id name created_timestamp status version model"
        )
    ),
    identities=frozenset(
        split_words("id session_id message_id type role created_timestamp created_at updated_at")
    ),
)
