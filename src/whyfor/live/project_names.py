"""Names of projects without a remote: their identity is a commit's hash, their name that of their
directory."""

from __future__ import annotations

from collections import Counter

from whyfor.config import Settings
from whyfor.model.errors import NotFound
from whyfor.model.text import label
from whyfor.store.open import reading


class ProjectNames:
    """Reads the store when it meets a project for the first time."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._known: dict[str, str | None] = {}

    def __call__(self, identity: str) -> str | None:
        if identity not in self._known:
            self._known = {identity: None, **self._known, **self._read()}
        return self._known[identity]

    def _read(self) -> dict[str, str]:
        """Read all names; projects with the same name get their hash added."""
        try:
            with reading(self.settings) as library:
                found = {
                    one.identity: label(one.name)
                    for _, one in library.projects.known()
                    if one.root_commit
                }
        except NotFound:
            return {}
        often = Counter(found.values())
        return {
            identity: name if often[name] == 1 else f"{name} {identity.removeprefix('git:')[:8]}"
            for identity, name in found.items()
            if name
        }
