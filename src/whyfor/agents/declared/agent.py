"""An agent as its definition describes it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

from whyfor.agents.base import (
    FileAgent,
    OnError,
    RecordReader,
    RecordStamp,
    SourceShape,
    as_str,
    head_records,
    walk,
)
from whyfor.agents.declared.definition import AgentDefinition, find_value, is_met
from whyfor.model.findings import Record
from whyfor.model.times import parse_iso

_VARIABLE = re.compile(r"\$(\w+)")


class DeclaredAgent(FileAgent):
    def __init__(self, definition: AgentDefinition) -> None:
        self.definition = definition
        self.name = definition.name
        self.title = definition.title
        self.facts = definition.facts

    def roots(self, home: Path, env: Mapping[str, str]) -> list[Path]:
        found = (_expanded(folder, home, env) for folder in self.definition.folders)
        return [folder for folder in found if folder is not None]

    def find(self, root: Path, onerror: OnError) -> Iterator[Path]:
        for path in walk(root, ("",), onerror):
            if any(fnmatch(path.name, pattern) for pattern in self.definition.files):
                yield path

    def sniff(self, path: Path, head: bytes) -> SourceShape | None:
        rule = self.definition.session
        for record in head_records(head):
            if is_met(record, rule.when):
                ident = find_value(record, rule.id)
                found = as_str(ident) or path.name.rsplit(".", 1)[0]
                return SourceShape("lines", found, cwd=as_str(find_value(record, rule.cwd)) or None)
        return None

    def stamp(self, record: Record) -> RecordStamp:
        names = self.definition.record
        at = parse_iso(find_value(record, names.time))
        cwd = as_str(find_value(record, self.definition.session.cwd)) or None
        return RecordStamp(at=at, since=at, cwd=cwd, name=as_str(find_value(record, names.id)))

    def reader(self, shape: SourceShape, state: Record) -> RecordReader:
        from whyfor.agents.declared.read import DeclaredReader

        return DeclaredReader(state, shape, self.definition)

    def resume(self, session_id: str) -> str | None:
        command = self.definition.resume
        return command.replace("{id}", session_id) if command else None


def _expanded(folder: str, home: Path, env: Mapping[str, str]) -> Path | None:
    """Return a folder of a definition; None if it needs a variable that is not set."""
    names = _VARIABLE.findall(folder)
    if any(not env.get(name) for name in names):
        return None
    filled = _VARIABLE.sub(lambda match: env[match[1]], folder)
    if filled.startswith("~/"):
        return home / filled[2:]
    return Path(filled) if os.path.isabs(filled) else home / filled  # noqa: PTH117 - it is text
