"""Quill, an agent that does not exist: what a sixth agent takes, all of it in this package."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tests.agents.quill.facts import FACTS, own_folder
from whyfor.agents.base import (
    FileAgent,
    OnError,
    RecordReader,
    RecordStamp,
    SourceShape,
    head_records,
    walk,
)
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso

if TYPE_CHECKING:
    from whyfor.agents.conversation import SessionWriter


class Quill(FileAgent):
    name = "quill"
    title = "Quill"
    facts = FACTS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [own_folder(home, env) / "scrolls"]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        return walk(root, (".jsonl",), onerror)

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        for record in head_records(head):
            if isinstance(record.get("scroll"), str):
                return SourceShape("lines", record["scroll"])
        return None

    def stamp(self, record: Record) -> RecordStamp:
        at = parse_iso(record.get("timestamp"))
        return RecordStamp(at=at, since=at, cwd=record.get("cwd"), session_id=record.get("scroll"))

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from tests.agents.quill.read import ScrollReader

        return ScrollReader(state)

    def writer(self) -> SessionWriter:
        from tests.agents.quill.write import QuillWriter

        return QuillWriter()


AGENT = Quill()
