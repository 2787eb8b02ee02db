"""Our MCP server in agents' settings: adding, finding and removing it."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from whyfor.agents import AGENTS
from whyfor.agents.facts import ServerPlace
from whyfor.agents.settings_file import (
    Unmergeable,
    decoded_text,
    parse_agent_settings,
    written_settings,
)

SERVER = "whyfor"
_ARGUMENTS = ["-I", "-m", "whyfor", "mcp"]  # by which an entry is known to be ours
_MARK = "# whyfor"
# Our table, and those below it, up to the next that is another's.
_TABLE = re.compile(
    rf"(?m)^\[mcp_servers\.{SERVER}(?:\.[^\]\n]*)?\][^\n]*\n?(?:(?!\[)[^\n]*\n|(?!\[)[^\n]+\Z)*"
)


def server_places() -> dict[str, ServerPlace]:
    """Return where agents list MCP servers, by the agent's name."""
    found = {name: agent.facts.servers for name, agent in AGENTS.items()}
    return {name: place for name, place in found.items() if place}


def server_file(place: ServerPlace, home: Path, env: Mapping[str, str]) -> Path:
    """Return the file of a user's servers; of several that the agent reads, the one that is
    there."""
    files = [place.folder(home, env) / name for name in place.files]
    return next((path for path in files if path.is_file()), files[0])


def server_command(python: str) -> list[str]:
    return [python, *_ARGUMENTS]


def add_server(
    content: bytes, place: ServerPlace, command: Sequence[str], env: Mapping[str, str]
) -> bytes:
    """Return the settings with our server; as they are if somebody listed one of this name."""
    if place.toml:
        return _add_table(content, command, env)
    data = parse_agent_settings(content)
    servers = data.setdefault(place.table, {})
    if not isinstance(servers, dict):
        raise Unmergeable(f"its {place.table} is not an object")
    if SERVER in servers and not _is_ours(servers[SERVER]):
        return content
    servers[SERVER] = place.entry(list(command), dict(env))
    return content if data == parse_agent_settings(content) else written_settings(data, content)


def remove_server(content: bytes, place: ServerPlace) -> bytes:
    """Return the settings without our server, and without a table that only contained it."""
    if place.toml:
        found = _own_table(decoded_text(content))
        return content if found is None else _without_table(content)
    data = parse_agent_settings(content)
    servers = data.get(place.table)
    if not isinstance(servers, dict) or not _is_ours(servers.get(SERVER)):
        return content
    del servers[SERVER]
    if not servers:
        del data[place.table]
    return written_settings(data, content)


def listed_server(content: bytes, place: ServerPlace) -> tuple[bool, bool]:
    """Return whether a server of our name is listed, and whether it is ours."""
    if place.toml:
        text = decoded_text(content)
        there = SERVER in tomllib.loads(text).get("mcp_servers", {})
        return there, _own_table(text) is not None
    servers = parse_agent_settings(content).get(place.table)
    entry = servers.get(SERVER) if isinstance(servers, dict) else None
    return entry is not None, _is_ours(entry)


def same_but_for_server(one: bytes, other: bytes, place: ServerPlace) -> bool:
    """Return whether two versions of the settings differ only in our server."""
    if place.toml:
        return remove_server(one, place).rstrip() == remove_server(other, place).rstrip()
    return _bare(one, place) == _bare(other, place)


def _bare(content: bytes, place: ServerPlace) -> dict[str, Any]:
    data = parse_agent_settings(remove_server(content, place))
    return {key: value for key, value in data.items() if key != place.table or value}


def _is_ours(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    words = entry.get("args") or entry.get("command")
    return isinstance(words, list) and words[-len(_ARGUMENTS) :] == _ARGUMENTS


# -- Codex's TOML --------------------------------------------------------------------------------


def _add_table(content: bytes, command: Sequence[str], env: Mapping[str, str]) -> bytes:
    text = decoded_text(content)
    try:
        known = tomllib.loads(text).get("mcp_servers", {})
    except tomllib.TOMLDecodeError as error:
        raise Unmergeable(f"it is not valid TOML ({error})") from None
    ours = _own_table(text)
    if SERVER in known and ours is None:
        return content
    lines = [f"[mcp_servers.{SERVER}] {_MARK}", f"command = {json.dumps(command[0])}"]
    lines.append(f"args = {json.dumps(list(command[1:]))}")
    if env:
        pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in env.items())
        lines.append(f"env = {{ {pairs} }}")
    table = "\n".join([*lines, ""])
    if ours == table:
        return content
    rest = _without_table(content).decode() if ours is not None else text
    gap = "" if not rest else "\n" if rest.endswith("\n") else "\n\n"
    made = f"{rest}{gap}{table}"
    try:
        tomllib.loads(made)
    except tomllib.TOMLDecodeError:
        raise Unmergeable("its mcp_servers are written in a way that only you can change") from None
    return made.encode()


def _own_table(text: str) -> str | None:
    """Return our table as it is written; None if there is none."""
    found = next(_TABLE.finditer(text), None)
    if found is None or _MARK not in found[0].partition("\n")[0]:
        return None
    return found[0]


def _without_table(content: bytes) -> bytes:
    text = decoded_text(content)
    kept = _TABLE.sub("", text)
    return (kept.rstrip("\n") + "\n" if kept.strip() else "").encode()
