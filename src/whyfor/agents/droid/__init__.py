"""Droid (Factory): a log per session under ~/.factory/sessions/<folder>, and beside it a file of
settings that alone knows the tokens."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from whyfor.agents.base import (
    FileAgent,
    OnError,
    RecordReader,
    RecordStamp,
    SourceShape,
    get_dict,
    get_str,
    head_records,
    walk,
)
from whyfor.agents.droid.facts import FACTS, FORK, TOTALS, factory_folder
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso

if TYPE_CHECKING:
    from whyfor.agents.conversation import SessionWriter

SETTINGS = ".settings.json"


class Droid(FileAgent):
    name = "droid"
    title = "Droid"
    facts = FACTS

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return [factory_folder(home, env) / "sessions"]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        beside: list[Path] = []
        for path in walk(root, (".jsonl", SETTINGS), onerror):
            if path.suffix == ".jsonl":
                yield path
            else:
                beside.append(path)
        yield from beside

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        if path.name.endswith(SETTINGS):
            return _settings_shape(path, head)
        for record in head_records(head):
            kind, ident = record.get("type"), get_str(record, "id")
            if kind == "session_start" and ident and "version" in record:
                return SourceShape("lines", ident)
        return None

    def stamp(self, record: Record) -> RecordStamp:
        at = parse_iso(record.get("timestamp"))
        is_start = record.get("type") == "session_start"
        return RecordStamp(
            at=at,
            since=at,
            cwd=get_str(record, "cwd") or None,
            session_id=get_str(record, "id") or None if is_start else None,
            retells=is_start,
            name=get_str(record, "id"),
            is_link="message" in record,
        )

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.droid.read import DroidReader, TotalsReader  # most commands read nothing

        if shape.sidecar:
            return TotalsReader(state, shape)
        return DroidReader(state, shape, FACTS)

    def writer(self) -> SessionWriter:
        from whyfor.agents.droid.write import WRITER

        return WRITER


def _settings_shape(path: Path, head: bytes) -> SourceShape | None:
    if b'"tokenUsage"' not in head and b'"autonomy' not in head:
        return None
    ident = path.name.removesuffix(SETTINGS)
    transcript = path.with_name(f"{ident}.jsonl")
    return SourceShape("document", ident, sidecar=FORK if _is_fork(transcript) else TOTALS)


def _is_fork(transcript: Path) -> bool:
    try:
        with transcript.open("rb") as file:
            first = next(head_records(file.readline(1 << 20), 1), {})
    except OSError:
        return False
    return bool(first.get("parent")) or bool(get_dict(first, "forkedFrom"))


AGENT = Droid()
