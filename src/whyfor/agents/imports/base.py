"""What imported conversations share: one JSON document each, and no directory of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from whyfor.agents.base import FileAgent, OnError, SourceShape


class ImportedAgent(FileAgent):
    """A program whose conversations are imported."""

    mutable = True  # a later export may tell a conversation anew
    keys: tuple[bytes, ...] = ()  # that stand in every document

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return []

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        return iter(())

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        """A document as the import writes it: an object whose file is named by its id."""
        is_object = head.lstrip().startswith(b"{")
        is_own = is_object and path.suffix == ".json" and all(key in head for key in self.keys)
        return SourceShape("document", path.stem) if is_own else None
