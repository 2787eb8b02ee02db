"""What we keep is its owner's alone, also where a copy or a backup brought it back more open than it was."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_OURS = ("segments", "spool", "hook", "journal.jsonl", "ingest.lock", "config.toml", "backstory.db*", "rebuild.db*")


def tighten(home: Path) -> None:
    """Our own things by name: the folder itself may be one that others use too."""
    for path in [found for name in _OURS for found in home.glob(name)]:
        with suppress(OSError):  # somebody else's by now: whoever writes to it will say so
            mode = path.stat().st_mode
            if mode & 0o077:
                path.chmod(mode & 0o700)
