"""Kilo's marks and places; its tools and records are OpenCode's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from whyfor.agents.opencode.facts import FACTS as OPENCODE
from whyfor.agents.opencode.facts import PLUGIN, SERVERS, config_folder


def _config_folder(home: Path, env: Mapping[str, str]) -> Path:
    return config_folder("kilo", home, env)


FACTS = replace(
    OPENCODE,
    mark="Ki",
    colour="#c9a227",
    folder_variables=("XDG_DATA_HOME",),
    presence_variables=(),
    plugin=replace(PLUGIN, agent="kilo", title="Kilo", folder=_config_folder),
    servers=replace(
        SERVERS,
        agent="kilo",
        title="Kilo",
        folder=_config_folder,
        files=("kilo.json", "kilo.jsonc"),
    ),
)
