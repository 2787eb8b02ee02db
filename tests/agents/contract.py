"""Read a home as capture does: from where the last look ended, with the state through JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whyfor.agents.base import Agent, SourceShape
from whyfor.agents.decode import decode_document, decode_line, split_lines
from whyfor.model.events import Event, Touch, Usage
from whyfor.model.findings import Bucket, Sink
from whyfor.model.sources import UnparsedRecord

COUNTS = ("input", "cache_read", "cache_write", "output", "reasoning")


@dataclass
class ReadSession:
    """A session as the store would have it."""

    events: dict[int, Event] = field(default_factory=dict)
    usage: dict[int, Usage] = field(default_factory=dict)
    touches: set[tuple[int, str, str]] = field(default_factory=set)
    facts: dict[str, Any] = field(default_factory=dict)
    parent: str | None = None

    def take(self, bucket: Bucket, *, mutable: bool) -> None:
        """A later event with a known key replaces the earlier one only if the agent changes what it
        wrote; of usage the largest counts."""
        self.parent = bucket.parent
        for event in bucket.events:
            if mutable or event.key not in self.events:
                self.events[event.key] = event
        for spent in bucket.usage:
            self._spend(spent)
        self.touches |= {(one.key, one.path, one.action) for one in bucket.touches}
        rank = bucket.facts.get("title_rank", -1)
        if rank < self.facts.get("title_rank", -1):
            bucket.facts.pop("title", None)
        self.facts |= bucket.facts

    def _spend(self, spent: Usage) -> None:
        known = self.usage.setdefault(spent.key, spent)
        for name in COUNTS:
            values = [value for value in (getattr(known, name), getattr(spent, name)) if value]
            if values:
                setattr(known, name, max(values))

    def kind(self, kind: str) -> list[Event]:
        return [event for event in self.events.values() if event.kind == kind]

    def total(self) -> dict[str, int]:
        sums = {name: [getattr(one, name) for one in self.usage.values()] for name in COUNTS}
        return {name: sum(v or 0 for v in values) for name, values in sums.items() if any(values)}

    def comparable(self) -> tuple[object, ...]:
        """All that must not depend on how often it was looked at."""
        events = [
            (e.kind, e.key, e.created_at, e.actor, e.text, e.name, e.data)
            for e in self.events.values()
        ]
        return events, self.total(), sorted(self.touches), self.facts, self.parent


@dataclass
class _Source:
    shape: SourceShape
    state: dict[str, Any] = field(default_factory=dict)
    position: int = 0
    content: bytes = b""


class HomeReader:
    """Looks at an agent's files in a home, as often as they change."""

    def __init__(self, agent: Agent, home: Path) -> None:
        self.agent = agent
        self.home = home
        self.sessions: dict[str, ReadSession] = {}
        self.sources: dict[Path, _Source] = {}
        self.positions: dict[Path, dict[str, dict[str, Any]]] = {}
        self.unknown: dict[str, int] = {}
        self.unparsed: list[UnparsedRecord] = []
        self.lines = 0

    def look(self) -> HomeReader:
        for path in self.found():
            self._visit(path)
        return self

    def found(self) -> list[Path]:
        errors: list[OSError] = []
        paths = []
        for root in self.agent.roots(self.home, {}):
            if root.is_file():
                paths.append(root)
            elif root.is_dir():
                paths += self.agent.find(root, errors.append)
        assert errors == []
        return paths

    def _visit(self, path: Path) -> None:
        content = path.read_bytes()
        source = self.sources.get(path)
        if source is None:
            shape = self.agent.sniff(path, content)
            if shape is None:
                return
            source = self.sources[path] = _Source(shape)
        if source.shape.framing == "rows":
            self._rows(path)
        elif source.shape.framing == "lines":
            whole = content.rfind(b"\n") + 1
            self._lines(source, content[source.position : whole])
        elif content != source.content:
            self._document(source, content, path)

    def _rows(self, path: Path) -> None:
        known = self.positions.setdefault(path, {})
        for rows in self.agent.rows(path, json.loads(json.dumps(known))):
            assert rows.error is None, rows.error
            known[rows.session_id] = rows.position
            name = path.with_name(f"{path.name}#{rows.session_id}")
            source = self.sources.setdefault(
                name, _Source(SourceShape("lines", rows.session_id, rows.parent))
            )
            self._lines(source, rows.lines)

    def _lines(self, source: _Source, data: bytes) -> None:
        reader, out = self._begin(source)
        for offset, line in split_lines(data, source.position):
            self.lines += 1
            found = decode_line(line, offset)
            if isinstance(found, UnparsedRecord):
                self.unparsed.append(found)
                continue
            for index, record in enumerate(found):
                reader.read(record, offset + index, line, out)
        source.position += len(data)
        self._end(source, reader.state, out)

    def _document(self, source: _Source, content: bytes, path: Path) -> None:
        source.content, source.state = content, {}
        reader, out = self._begin(source)
        if source.shape.framing == "blob":
            found: Any = [{"name": path.name, "text": content.decode("utf-8", "replace")}]
        else:
            found = decode_document(content)
        if isinstance(found, UnparsedRecord):
            self.unparsed.append(found)
            return
        for index, record in enumerate(found):
            reader.read(record, index, b"", out)
        self._end(source, reader.state, out)

    def _begin(self, source: _Source) -> tuple[Any, Sink]:
        shape = source.shape
        out = Sink(shape.session_id, shape.parent)
        if shape.cwd:
            out.main.facts["cwd"] = shape.cwd
        return self.agent.reader(shape, json.loads(json.dumps(source.state))), out

    def _end(self, source: _Source, state: dict[str, Any], out: Sink) -> None:
        source.state = state
        for bucket in out.buckets.values():
            session = self.sessions.setdefault(bucket.session_id, ReadSession())
            session.take(bucket, mutable=self.agent.mutable)
        for name, number in out.unknown.items():
            self.unknown[name] = self.unknown.get(name, 0) + number


def touched(touches: list[Touch]) -> set[tuple[str, str]]:
    return {(one.path, one.action) for one in touches}
