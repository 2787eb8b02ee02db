"""Codex CLI: rollouts under ~/.codex/sessions, one file per thread, in two formats that share their
items."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from whyfor.agents.base import (
    AnswerRequest,
    FileAgent,
    OnError,
    RecordReader,
    RecordStamp,
    SourceShape,
    get_str,
    head_records,
    walk,
)
from whyfor.agents.codex.facts import FACTS
from whyfor.agents.codex.places import session_folders
from whyfor.agents.codex.records import RECORDS, is_bare_item, is_bare_meta, parent
from whyfor.model.findings import Record

if TYPE_CHECKING:
    from whyfor.agents.conversation import SessionWriter
from whyfor.agents.codex.stamp import stamp

_NAME = r"rollout-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-([0-9a-fA-F-]{36})(?:_|\.|$)"
_DOCUMENT = rb'\s*\{\s*"session"\s*:\s*\{'
_DOCUMENT_ID = rb'"id"\s*:\s*"([^"]+)"'


class Codex(FileAgent):
    name = "codex"
    title = "Codex"
    facts = FACTS
    lists = ("items", "replacement_history")

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        return session_folders(home, env)

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        return walk(root, (".jsonl", ".jsonl.zst", ".json"), onerror)

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        if re.match(_DOCUMENT, head) and (b'"items"' in head or b'"instructions"' in head):
            ident = re.search(_DOCUMENT_ID, head)
            return SourceShape(
                "document", ident[1].decode("utf-8", "replace") if ident else _named(path)
            )
        found = False
        for record in head_records(head):
            kind, payload = get_str(record, "type"), record.get("payload")
            if isinstance(payload, dict) and kind in RECORDS:
                if kind == "session_meta":
                    return SourceShape(
                        "lines", get_str(payload, "id") or _named(path), parent(payload)
                    )
                found = True
            elif is_bare_meta(record):
                return SourceShape("lines", record["id"])
            elif is_bare_item(record):
                found = found or re.match(_NAME, path.name) is not None
        return SourceShape("lines", _named(path)) if found else None

    def answers(self, home: Path, env: Mapping[str, str]) -> AnswerRequest | None:
        from whyfor.agents.codex.daemon import daemon_answers  # only a server asks

        return daemon_answers(home, env)

    def begins(self, record: Record) -> bool:
        payload = record.get("payload")
        started = isinstance(payload, dict) and payload.get("type") in (
            "task_started",
            "turn_started",
        )
        return started or record.get("type") == "turn_context"

    def stamp(self, record: Record) -> RecordStamp:
        return stamp(record)

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.codex.reader import RolloutReader  # most commands read nothing

        return RolloutReader(state, subagent=shape.parent is not None)

    def writer(self) -> SessionWriter:
        from whyfor.agents.codex.write import WRITER

        return WRITER


def _named(path: Path) -> str:
    found = re.match(_NAME, path.name)
    return found[1] if found else path.name.split(".")[0]


AGENT = Codex()
