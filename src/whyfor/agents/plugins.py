"""The files of ours that agents without command hooks load."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.facts import PluginFile
from whyfor.agents.settings_file import Unmergeable

_OURS = b"// Written by `whyfor init"


class PluginWords(msgspec.Struct, frozen=True, kw_only=True):
    """What a plugin of ours runs and asks."""

    tell: list[str]
    """The command that tells of an event, which is its last word."""
    hook: list[str] | None = None
    """The command that asks what a session is told at its start; None: nothing."""
    answers: dict[str, str] | None = None
    """The address and the key by which it asks for answers from the browser; None: nowhere."""


def plugin_files() -> dict[str, PluginFile]:
    """Return the agents that load a file of ours, by name."""
    found = {name: agent.facts.plugin for name, agent in AGENTS.items()}
    return {name: plugin for name, plugin in found.items() if plugin}


def plugin_path(plugin: PluginFile, home: Path, env: Mapping[str, str]) -> Path:
    return plugin.folder(home, env) / plugin.file


def plugin_content(plugin: PluginFile, words: PluginWords, before: bytes) -> bytes:
    """Return the file with these words. Raises Unmergeable if a file of somebody else is there."""
    if before and not before.startswith(_OURS):
        raise Unmergeable("a file of that name is there, and it is not ours")
    content = files("whyfor").joinpath("agents", *plugin.source.split("/")).read_bytes()
    for name, value in msgspec.structs.asdict(words).items():
        place = f"__{name.upper()}__".encode()
        content = content.replace(place, msgspec.json.encode(value), 1)
    return content
