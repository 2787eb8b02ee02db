"""A session as a Markdown file for an editor: redacted, readable by its owner only."""

from __future__ import annotations

import re
from pathlib import Path

from whyfor.config import Settings
from whyfor.files import make_folders, replace
from whyfor.service.export import ExportRequest, encoded, export

_NAME = re.compile(r"[^\w.-]+", re.ASCII)


def write_conversation(settings: Settings, agent: str, session_id: str) -> Path:
    """Write a session below Whyfor's directory and return the file; written again, it is replaced.
    Raises NotFound if there is no such session."""
    folder = settings.home / "editor"
    made = export(settings, f"{agent}:{session_id}", folder, ExportRequest("markdown"))
    path = folder / f"{_NAME.sub('-', f'{agent}-{session_id}')[:100]}.md"
    make_folders(folder)
    replace(path, encoded(made.text))
    return path
