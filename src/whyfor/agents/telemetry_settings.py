"""Agents' settings for telemetry: set what is not set by the person, and take exactly that out
again."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from whyfor.agents.claude.facts import FACTS as CLAUDE
from whyfor.agents.claude.telemetry import SWITCH as CLAUDE_SWITCH
from whyfor.agents.codex.facts import FACTS as CODEX
from whyfor.agents.codex.telemetry import SWITCH as CODEX_SWITCH
from whyfor.agents.copilot.facts import FACTS as COPILOT
from whyfor.agents.copilot.telemetry import FILE as COPILOT_FILE
from whyfor.agents.gemini.facts import FACTS as GEMINI
from whyfor.agents.gemini.telemetry import SWITCH as GEMINI_SWITCH
from whyfor.agents.settings_file import (
    Unmergeable,
    decoded_text,
    parse_agent_settings,
    written_settings,
)
from whyfor.agents.telemetry import TelemetryFile, TelemetrySwitch

_MARK = "# by whyfor"
_BLOCK = re.compile(rf"(?ms)^\[[\w.-]+\] {_MARK}\n.*?(?=^\[|\Z)")
_HOOKS = {"claude": CLAUDE.hooks, "codex": CODEX.hooks, "gemini": GEMINI.hooks}
SWITCHES: Mapping[str, TelemetrySwitch] = {
    each.agent: each for each in (CLAUDE_SWITCH, CODEX_SWITCH, GEMINI_SWITCH)
}

FILES: tuple[TelemetryFile, ...] = (COPILOT_FILE,)


class TelemetryPlace(msgspec.Struct, frozen=True):
    """The file in which an agent is told to send its telemetry."""

    switch: TelemetrySwitch
    path: Path


def telemetry_places(home: Path, env: Mapping[str, str]) -> list[TelemetryPlace]:
    """Return the files of agents that are on this machine."""
    found = []
    for agent, switch in SWITCHES.items():
        hooks = _HOOKS[agent]
        folder = hooks.folder(home, env) if hooks else None
        if folder is not None and folder.is_dir():
            found.append(TelemetryPlace(switch, folder / switch.file))
    return found


def telemetry_files(home: Path, env: Mapping[str, str]) -> list[TelemetryFile]:
    """Return the files of agents on this machine that a variable names."""
    hooks = COPILOT.hooks
    is_here = hooks is not None and hooks.folder(home, env).is_dir()
    return [COPILOT_FILE] if is_here else []


def add_telemetry(content: bytes, switch: TelemetrySwitch, address: str, key: str) -> bytes:
    """Return the settings with ours. Raises Unmergeable if the person sends telemetry elsewhere."""
    wanted = switch.settings(address, key)
    if switch.toml:
        return _add_block(content, wanted)
    data = parse_agent_settings(content)
    for table, values in wanted.items():
        known = data.setdefault(table, {})
        if not isinstance(known, dict):
            raise Unmergeable(f"its {table} is not an object")
        if any(known.get(name, value) != value for name, value in values.items()):
            raise Unmergeable("it sends telemetry elsewhere")
        known.update(values)
    return content if data == parse_agent_settings(content) else written_settings(data, content)


def remove_telemetry(content: bytes, switch: TelemetrySwitch, address: str, key: str) -> bytes:
    """Return the settings without what is still as we set it."""
    if switch.toml:
        kept = _BLOCK.sub("", decoded_text(content))
        return (kept.rstrip("\n") + "\n" if kept.strip() else "").encode()
    data = parse_agent_settings(content)
    for table, values in switch.settings(address, key).items():
        known = data.get(table)
        if not isinstance(known, dict):
            continue
        for name, value in values.items():
            if known.get(name) == value:
                del known[name]
        if not known:
            del data[table]
    return content if data == parse_agent_settings(content) else written_settings(data, content)


def _add_block(content: bytes, wanted: dict[str, Any]) -> bytes:
    text = _BLOCK.sub("", decoded_text(content))
    try:
        known = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unmergeable(f"it is not valid TOML ({error})") from None
    if any(table in known for table in wanted):
        raise Unmergeable("it sends telemetry elsewhere")
    blocks = []
    for table, values in wanted.items():
        lines = [f"{name} = {_toml(value)}" for name, value in values.items()]
        blocks.append("\n".join([f"[{table}] {_MARK}", *lines, ""]))
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}{''.join(blocks)}".encode()


def _toml(value: object) -> str:
    if isinstance(value, dict):
        pairs = ", ".join(f"{json.dumps(name)} = {_toml(each)}" for name, each in value.items())
        return f"{{ {pairs} }}"
    return json.dumps(value)
