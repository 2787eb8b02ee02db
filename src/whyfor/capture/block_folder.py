"""The folder of blocks for next sessions, which the hook reads; it is there only while `init
--memory` is in effect."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from whyfor.capture.manifest import BLOCKS, TOLD, hook_folder
from whyfor.config import Settings
from whyfor.files import make_folders
from whyfor.model.times import DAY

TOLD_KEPT = 30 * DAY // 1000  # seconds for which it is remembered that a session was told


def block_folder(settings: Settings) -> Path:
    return hook_folder(settings) / BLOCKS


def told_folder(settings: Settings) -> Path:
    """Return where the hook notes which sessions it told something."""
    return hook_folder(settings) / TOLD


def switch_blocks(settings: Settings, wanted: bool) -> None:
    """Let blocks be made from the next ingest on, or remove them all."""
    if wanted:
        make_folders(block_folder(settings))
        return
    for folder in (block_folder(settings), told_folder(settings)):
        shutil.rmtree(folder, ignore_errors=True)


def drop_blocks(settings: Settings) -> None:
    """Delete every block, for the next ingest to make anew: what is in one may have to go."""
    folder = block_folder(settings)
    if folder.is_dir():
        for path in folder.iterdir():
            path.unlink(missing_ok=True)


def drop_old_marks(settings: Settings) -> None:
    """Delete what says that a session of long ago was told something."""
    folder = told_folder(settings)
    if folder.is_dir():
        oldest = time.time() - TOLD_KEPT
        for path in folder.iterdir():
            if path.stat().st_mtime < oldest:
                path.unlink(missing_ok=True)
