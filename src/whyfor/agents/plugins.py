"""The files of ours that agents without command hooks load."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.facts import PluginFile
from whyfor.agents.settings_file import Unmergeable

_OURS = b"// Written by `whyfor init --memory`"
_PLACE = b"__HOOK__"


def plugin_files() -> dict[str, PluginFile]:
    """Return the agents that load a file of ours, by name."""
    found = {name: agent.facts.plugin for name, agent in AGENTS.items()}
    return {name: plugin for name, plugin in found.items() if plugin}


def plugin_path(plugin: PluginFile, home: Path, env: Mapping[str, str]) -> Path:
    return plugin.folder(home, env) / plugin.file


def plugin_content(plugin: PluginFile, hook: list[str], before: bytes) -> bytes:
    """Return the file, which runs our hook by this command. Raises Unmergeable if a file of
    somebody else is there."""
    if before and not before.startswith(_OURS):
        raise Unmergeable("a file of that name is there, and it is not ours")
    source = files("whyfor").joinpath("agents", plugin.agent, plugin.source)
    return source.read_bytes().replace(_PLACE, msgspec.json.encode(hook), 1)
