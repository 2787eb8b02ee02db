"""Kilo: a fork of OpenCode, with the same tables in a database of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from whyfor.agents.kilo.facts import FACTS
from whyfor.agents.opencode import OpenCode
from whyfor.agents.opencode.facts import data_folder


class Kilo(OpenCode):
    name = "kilo"
    title = "Kilo"
    facts = FACTS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [data_folder("kilo", home, env)]

    def _is_own(self, path: Path) -> bool:
        return path.name.removesuffix(".db").partition("-")[0] == "kilo"


AGENT = Kilo()
