"""export --all: everything that is kept, for another machine of its owner."""

from __future__ import annotations

from pathlib import Path

from whyfor.capture.home_archive import write_home
from whyfor.config import Settings
from whyfor.model.errors import BadInput
from whyfor.model.progress import Announce


def export_home(settings: Settings, target: Path, announce: Announce | None = None) -> int:
    """Write the archive and return its size. Raises BadInput if the file exists or cannot be
    written."""
    if target.exists():
        raise BadInput(f"{target} exists", "Name another file, or move this one away.")
    if not target.absolute().parent.is_dir():
        raise BadInput(f"there is no folder {target.parent}", "Make it, or name another.")
    return write_home(settings, target, announce)
