"""The four neutral tools of a script, as each agent calls them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from .script import Call, Json


class Tool(NamedTuple):
    name: str
    arguments: Callable[[Json], Json]


Dialect = Mapping[str, Tool]


def named(tool: str, /, **names: str) -> Tool:
    """A tool with the neutral arguments under other names."""
    return Tool(tool, lambda args: {names.get(key, key): args[key] for key in args})


def adding(tool: Tool, **more: object) -> Tool:
    """The same with arguments that it insists on."""
    return Tool(tool.name, lambda args: {**more, **tool.arguments(args)})


def one_edit(args: Json) -> Json:
    return {"path": args["path"], "edits": [{"oldText": args["old"], "newText": args["new"]}]}


OLD_NEW = {"old": "old_string", "new": "new_string"}
FILE_PATH = {"path": "file_path"}
CLAUDE: Dialect = {
    "shell": adding(named("Bash"), description="run a command"),
    "write": named("Write", **FILE_PATH),
    "edit": named("Edit", **FILE_PATH, **OLD_NEW),
    "read": named("Read", **FILE_PATH),
}
OPENCODE: Dialect = {
    "shell": adding(named("bash"), description="run a command"),
    "write": named("write", path="filePath"),
    "edit": named("edit", path="filePath", old="oldString", new="newString"),
    "read": named("read", path="filePath"),
}
RISK = {"riskLevel": "low", "riskLevelReason": "It only shows a file.", "summary": "Show it"}
LOW = {"security_risk": "LOW", "summary": "It works on one file"}
DIALECTS: dict[str, Dialect] = {
    "claude": CLAUDE,
    "copilot": {
        "shell": adding(named("bash"), description="run a command"),
        "write": named("create", content="file_text"),
        "edit": named("edit", old="old_str", new="new_str"),
        "read": named("view"),
    },
    "opencode": OPENCODE,
    "kilo": OPENCODE,
    "qwen": {
        "shell": adding(named("run_shell_command"), is_background=False),
        "write": named("write_file", **FILE_PATH),
        "edit": named("edit", **FILE_PATH, **OLD_NEW),
        "read": named("read_file", **FILE_PATH),
    },
    "pi": {
        "shell": named("bash"),
        "write": named("write"),
        "edit": Tool("edit", one_edit),
        "read": named("read"),
    },
    "droid": {
        "shell": adding(named("Execute"), **RISK),
        "write": named("Create", **FILE_PATH),
        "edit": named("Edit", **FILE_PATH, old="old_str", new="new_str"),
        "read": named("Read", **FILE_PATH),
    },
    "cline": {
        "shell": Tool("run_commands", lambda args: {"commands": [args["command"]]}),
        "write": named("editor", content="new_text"),
        "edit": named("editor", old="old_text", new="new_text"),
        "read": Tool("read_files", lambda args: {"files": [{"path": args["path"]}]}),
    },
    "grok": {
        "shell": adding(named("run_terminal_command"), description="run a command"),
        "write": named("write", **FILE_PATH, content="content"),
        "edit": named("search_replace", **FILE_PATH, **OLD_NEW),
        "read": named("read_file", path="target_file"),
    },
    "kimi": {
        "shell": named("Bash"),
        "write": named("Write"),
        "edit": named("Edit", **OLD_NEW),
        "read": named("Read"),
    },
    "goose": {
        "shell": named("shell"),
        "write": named("write"),
        "edit": named("edit", old="before", new="after"),
        "read": named("read"),
    },
    "vibe": {
        "shell": named("bash"),
        "write": named("write_file"),
        "edit": named("edit", **FILE_PATH, **OLD_NEW),
        "read": named("read_file"),
    },
    "openhands": {
        "shell": adding(named("terminal"), **LOW),
        "write": adding(named("file_editor", content="file_text"), command="create", **LOW),
        "edit": adding(
            named("file_editor", old="old_str", new="new_str"), command="str_replace", **LOW
        ),
        "read": adding(named("file_editor"), command="view", **LOW),
    },
    "continue": {
        "shell": named("Bash"),
        "write": named("Write", path="filepath"),
        "edit": named("Edit", **FILE_PATH, **OLD_NEW),
        "read": named("Read", path="filepath"),
    },
    "hermes": {
        "shell": named("terminal"),
        "write": named("write_file"),
        "edit": adding(named("patch", **OLD_NEW), mode="replace"),
        "read": named("read_file"),
    },
}


def speaker(path: str) -> str:
    """The agent that asks: those that share an API have their name before its path."""
    first = path.split("/")[1]
    return first if first in DIALECTS else ""


def in_words_of(agent: str, call: Call) -> tuple[str, Json]:
    """A call by the name and the arguments that this agent knows."""
    args = {name: _plain(value) for name, value in call.args.items()}
    tool = DIALECTS[agent].get(call.tool)
    return (tool.name, tool.arguments(args)) if tool else (call.tool, args)


def _plain(value: object) -> object:
    """A value as JSON has it: a path is text there."""
    return json.loads(json.dumps(value, default=str))
