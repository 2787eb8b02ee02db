"""The list of stories that git's checkout hook reads."""

from __future__ import annotations

from whyfor.config import Settings
from whyfor.files import replace
from whyfor.store.protocol import Store

STORIES = "stories"


def publish_stories(settings: Settings, store: Store) -> None:
    """Write the list, one line per story, if `whyfor init` has created its directory."""
    folder = settings.home / "hook"
    if not folder.is_dir():
        return
    titles = store.checkpoints.titles() if settings.checkout_line else []
    lines = [f"{found.sha}\t{found.id}\t{_printable(found.title)}\n" for found in titles]
    replace(folder / STORIES, "".join(lines).encode())


def _printable(title: str) -> str:
    """Return a title as a terminal may show it: no control characters."""
    return "".join(c if c.isprintable() else " " for c in title)
