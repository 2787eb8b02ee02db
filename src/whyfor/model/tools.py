"""What a tool does, in one word for all agents, whatever each of them calls it."""

from __future__ import annotations

from typing import Literal

ToolKind = Literal[
    "shell",  # runs a command
    "typed",  # ran a command that the person typed
    "read",
    "list",  # names what is in a folder
    "search",
    "edit",  # changes part of a file
    "patch",  # changes files as a patch says, which is its text
    "write",  # writes a whole file
    "web",  # asks the web
    "fetch",  # reads one page
    "subagent",
    "question",  # asks the person
    "plan",  # asks the person to agree to a plan
    "todo",  # keeps a list of steps
    "mode",  # changes how the agent works from now on
    "tools",  # looks for further tools
    "mcp",  # of an MCP server
    "other",
]
MCP = "mcp__"  # how the names of an MCP server's tools begin; its own name follows
