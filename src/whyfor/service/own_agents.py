"""The agents that the user defined, made known when a process starts. Imports nothing where there
is no definition, since every command runs it."""

from __future__ import annotations

import os
import sys


def use_own_agents() -> None:
    """Make the agents known whose definitions stand in Whyfor's directory."""
    from whyfor.config import own_home

    folder = own_home(os.environ) / "agents"
    if folder.is_dir() or "whyfor.agents.declared.registry" in sys.modules:
        from whyfor.agents.declared.registry import use_definitions

        use_definitions(folder)
