"""Continue's tools, variables and marks."""

from __future__ import annotations

from whyfor.agents.facts import AgentFacts, ArgumentNames, folder_from, kinds, split_words

own_folder = folder_from("CONTINUE_GLOBAL_DIR", ".continue")
FACTS = AgentFacts(
    mark="Ct",
    colour="#9a8478",
    tools=kinds(
        shell="bash runterminalcommand",
        read="read readfile",
        list="list ls",
        search="search grepsearch",
        edit="edit multiedit editexistingfile",
        write="write createnewfile",
        fetch="fetch fetchurlcontent",
    ),
    untold=("thinking", "exit codes", "branch", "times"),
    arguments=ArgumentNames(
        path=("file_path", "filepath"),
        command=("command",),
        old=("old_string",),
        new=("new_string",),
        whole=("content", "contents"),
        edits=("edits",),
    ),
    folder_variables=("CONTINUE_GLOBAL_DIR",),
    structure=frozenset(split_words("role type id sessionId toolCallId name status model")),
    identities=frozenset(split_words("id sessionid toolcallid role type model")),
)
