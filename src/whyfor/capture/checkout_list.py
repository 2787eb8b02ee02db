"""The list of stories that git's checkout hook looks in."""

from __future__ import annotations

import apsw

from whyfor.config import Settings
from whyfor.files import replace
from whyfor.store.sqlite.connection import fetch

STORIES = "stories"


def publish_stories(settings: Settings, db: apsw.Connection) -> None:
    """Write the list, one line per story, where `whyfor init` made a place for it."""
    folder = settings.home / "hook"
    if not folder.is_dir():
        return
    rows = []
    if settings.checkout_line:
        rows = fetch(
            db,
            """
            SELECT sha, id, coalesce(annotation ->> 'title', subject)
            FROM checkpoints
            WHERE evidence IS NOT NULL
            """,
        )
    lines = [f"{sha}\t{ident}\t{_printable(title)}\n" for sha, ident, title in rows]
    replace(folder / STORIES, "".join(lines).encode())


def _printable(title: str) -> str:
    """Return a title as a terminal may show it: no control characters."""
    return "".join(c if c.isprintable() else " " for c in title)
