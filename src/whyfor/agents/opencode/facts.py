"""OpenCode's tools, variables and marks; it has no command hooks."""

from __future__ import annotations

from whyfor.agents.facts import AgentFacts, ArgumentNames, kinds, split_words

SUBAGENT, QUESTION = "task", "question"
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
    arguments=ArgumentNames(
        path=("filePath", "path"),
        command=("command",),
        folder=("workdir",),
        old=("oldString",),
        new=("newString",),
        whole=("content",),
        edits=("edits",),
        patch=("patchText",),
    ),
    folder_variables=("XDG_DATA_HOME", "OPENCODE_DB"),
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
