from __future__ import annotations

from whyfor.agents.facts import AgentFacts, ArgumentNames, folder_from, kinds

own_folder = folder_from("QUILL_HOME", ".quill")
FACTS = AgentFacts(
    mark="Qu",
    colour="#445566",
    # `list` is another agent's tool for looking into a folder
    tools=kinds(shell="ink_command", write="scribble list", question="ponder"),
    arguments=ArgumentNames(path=("onto",), command=("line",), whole=("verses",)),
    folder_variables=("QUILL_HOME",),
    session_variables=("QUILL_SCROLL",),
)
