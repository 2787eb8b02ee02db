"""What hatchling runs before it builds or installs Whyfor: write the table of list prices."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PricesHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 (hatchling's)
        sys.path.insert(0, str(Path(self.root) / "docs"))
        import prices

        prices.write_table()
        written = (prices.TABLE, prices.LICENSE)
        build_data["artifacts"] += [str(path.relative_to(self.root)) for path in written]
