"""Where Codex keeps its sessions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def session_folders(home: Path, env: Mapping[str, str]) -> list[Path]:
    """Return the folder of rollouts, then the one of archived rollouts."""
    override = env.get("CODEX_HOME")
    base = Path(override) if override else home / ".codex"
    return [base / "sessions", base / "archived_sessions"]
