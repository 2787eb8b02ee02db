"""Facts about an agent besides its transcript format: tools, arguments, environment variables,
hooks, mark. Plain data; each agent's package has a `facts.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from whyfor.model.tools import ToolKind

HOOK_SECONDS = 5  # a hook of ours may take


class ArgumentNames(msgspec.Struct, frozen=True):
    """The names of the arguments of an agent's tools, the most likely first."""

    path: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    folder: tuple[str, ...] = ()  # where a command runs
    old: tuple[str, ...] = ()  # text that an edit takes away
    new: tuple[str, ...] = ()  # text that it puts in
    whole: tuple[str, ...] = ()  # all of a file that is written
    every: tuple[str, ...] = ()  # whether an edit changes every place with the text
    line: tuple[str, ...] = ()  # the line after which the text is put in
    edits: tuple[str, ...] = ()  # a list of edits of one file
    patch: tuple[str, ...] = ()  # the text of a patch
    changes: tuple[str, ...] = ()  # an object of changes by path


class HookEvent(msgspec.Struct, frozen=True):
    event: str
    matcher: str | None = None
    annotate: bool = False  # the hook may answer here, if annotation is wanted
    remember: bool = False  # and here, if the session is to be told what earlier ones found
    prompt: bool = False  # and here, if also with a prompt
    approve: bool = False  # and here, if rules may answer for the person
    # When this is, around a shell command: prompt | before | after. A snapshot is taken then, if
    # shell edits are wanted.
    snapshot: str = ""
    only_snapshot: bool = False  # the hook is needed for nothing else


class ApprovalFormat(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent's hook is told when it asks a person, and how the hook answers. Plain values,
    because a hook gets them without this package."""

    event: str
    tool: str
    """The field that names the tool."""
    shells: tuple[str, ...]
    """Its tools that run commands."""
    given: str
    """The field with what the tool is given; `command` in it is the command."""
    required: tuple[str, ...] = ()
    """Fields without which the person's own rules want them to be asked."""
    alarming: tuple[str, ...] = ()
    """Fields of what the tool is given with which only a person may answer, if they are set."""
    mode: str = "permission_mode"
    wrapped: bool = True
    """The answer stands in `hookSpecificOutput`, else alone."""
    waits: bool = True
    """The dialog is shown only after the hook."""
    over_http: bool = False
    """It can ask a server, and goes on with its own dialog meanwhile."""
    waits_unattended: bool = False
    """Where nobody sees a dialog, it waits for the server's answer."""


class Hookable(msgspec.Struct, frozen=True):
    """An agent whose settings can name commands to run as hooks."""

    agent: str
    title: str
    program: str
    folder: Callable[[Path, Mapping[str, str]], Path]
    """Its own folder, from the user's home and the environment."""
    file: str
    """Its settings, below that folder."""
    local: str
    """Its settings for one project, below the project."""
    events: tuple[HookEvent, ...]
    limit: dict[str, int]
    """How long a hook may take, in the agent's word and unit."""
    grouped: bool = True
    """Entries stand in groups with a matcher; else each by itself."""
    empty: dict[str, Any] = {}
    """What the file must hold besides hooks."""
    off: tuple[str, bool] | None = None
    """The setting that turns all hooks off, and at which value."""
    skills: str | None = None
    """Where it looks for skills, below its folder."""
    consent: str | None = None
    """What the person must still do before it runs our hooks."""
    untrusted: Callable[[Path, Path, list[str]], list[str]] | None = None
    """From its folder, the file of settings and our events: those it was not told to trust."""
    trust: str | None = None
    """How the person tells it to trust them."""
    former_file: str | None = None
    """A file of settings that was ours alone under our former name, below its folder."""
    former_local: str | None = None
    """And one below a project."""


class ServerPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent lists its MCP servers."""

    agent: str
    title: str
    folder: Callable[[Path, Mapping[str, str]], Path]
    """From the user's home and the environment."""
    files: tuple[str, ...]
    """Below that folder: those it reads, the usual one first."""
    table: str = "mcpServers"
    entry: Callable[[list[str], dict[str, str]], dict[str, Any]]
    """One server, from its command and its variables."""
    toml: bool = False


class PluginFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of ours that an agent without command hooks loads: it asks our hook."""

    agent: str
    title: str
    folder: Callable[[Path, Mapping[str, str]], Path]
    """From the user's home and the environment."""
    file: str
    """Below that folder."""
    source: str
    """The file it is made from, below `agents`."""
    settings_file: str = ""
    """A file of settings below that folder, without which a plugin makes the agent wait."""
    settings: tuple[str, ...] = ()
    """Its lines."""


def plain_server(command: list[str], env: dict[str, str]) -> dict[str, Any]:
    """Return a server as most agents write it."""
    made: dict[str, Any] = {"command": command[0], "args": command[1:]}
    return {**made, "env": env} if env else made


class NativeRules(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent's own settings allow commands, and how a rule is added."""

    folder: Callable[[Path, Mapping[str, str]], Path]
    """From the user's home and the environment."""
    file: str
    """Below that folder."""
    add: Callable[[bytes, list[str]], bytes]
    """From the file and the words that a command begins with: the file with the rule."""


class AgentFacts(msgspec.Struct, frozen=True, kw_only=True):
    mark: str  # two letters
    colour: str  # of its mark in a terminal
    tools: Mapping[str, ToolKind] = {}
    """By name in lower case."""
    tool_commands: Mapping[str, Mapping[str, ToolKind]] = {}
    """Tools that do several things, by the value of their argument `command`."""
    arguments: ArgumentNames = ArgumentNames()
    refusals: tuple[str, ...] = ()
    """How the result of a call begins that was denied."""
    refused_by: Mapping[str, str] = {}
    """Who denied it, by the same beginnings: terminal, agent (its settings), nobody."""

    untold: tuple[str, ...] = ()
    """What its files do not tell: of `thinking`, `exit codes`, `branch`, `times`, `model`,
    `tokens per answer`, `cached tokens`."""

    folder_variables: tuple[str, ...] = ()
    """Environment variables that say where it keeps its files."""
    session_variables: tuple[str, ...] = ()
    """Those that name the session a command runs in, the surest first."""
    presence_variables: tuple[str, ...] = ()
    """Those that are set for every command it runs."""
    awaited_variable: str | None = None
    """Set where it kills what a command leaves running, so that our git hooks wait."""

    hooks: Hookable | None = None
    approvals: ApprovalFormat | None = None
    decision_sources: Mapping[str, str] = {}
    """Who decided on a call, by the word of its telemetry: terminal, agent (its settings, its
    automatic mode or a hook) or nobody."""
    native_rule: str = ""
    """Where its own settings allow a command, and how: WORDS is its beginning, LIST the same as a
    JSON array."""
    native_rules: NativeRules | None = None
    servers: ServerPlace | None = None
    plugin: PluginFile | None = None
    hook_events: Mapping[str, str] = {}
    """What its hooks say of a session's status, by the event's name."""
    notices: Mapping[str, str] = {}
    """What kinds of its notifications say of it."""
    process_states: Mapping[str, str] = {}
    """What its list of processes says of it: by state, or by `state (what it waits for)`."""

    single_turn: Mapping[str, str] = {}
    """What a session's start says where the program ends with the turn: by field, its value."""

    structure: frozenset[str] = frozenset()
    """Keys that hold a record together and stay when its words go: ids, kinds, times, places."""
    identities: frozenset[str] = frozenset()
    """Keys in lower case whose values are no secrets, however random: ids, hashes, times."""
    sealed: frozenset[str] = frozenset()
    """Keys in lower case whose values the agent has signed or encrypted."""


def split_words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def kinds(**names: str) -> dict[str, ToolKind]:
    """Return a table of tool kinds by tool name, from names by kind."""
    return {name: kind for kind, each in names.items() for name in each.split()}  # type: ignore[misc]


def session_start(name: str) -> HookEvent:
    return HookEvent(name, remember=True)


def approval_asked(name: str) -> HookEvent:
    return HookEvent(name, approve=True)


def prompt_submitted(name: str) -> HookEvent:
    return HookEvent(name, prompt=True, snapshot="prompt")


def snapshot_event(name: str, phase: str, matcher: str) -> HookEvent:
    return HookEvent(name, matcher, snapshot=phase, only_snapshot=True)


def hook_events(names: str) -> tuple[HookEvent, ...]:
    return tuple(HookEvent(name) for name in names.split())


def folder_from(variable: str, name: str) -> Callable[[Path, Mapping[str, str]], Path]:
    """Return a function that gives the directory named by a variable, else one of this name in the
    user's home."""
    return lambda home, env: Path(env[variable]) if env.get(variable) else home / name


MARKER = "[Whyfor: "  # how lines begin that a restore added to a session
