"""Find the folder a session ran in from its records, before any of them is stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

from whyfor.agents import AGENTS, decode
from whyfor.agents.base import Framing, SourceShape
from whyfor.capture import tail
from whyfor.model.findings import Record, Sink
from whyfor.model.sources import Source, UnparsedRecord


def of_file(source: Source, path: Path) -> str | None:
    """Read a file until a record names the folder; None if no record does yet."""
    return source.cwd or _named(source, _records(source, path))


def of_lines(source: Source, lines: bytes) -> str | None:
    return _named(source, _in(lines))


def _named(source: Source, records: Iterable[Record]) -> str | None:
    """Return the folder as the agent's own reader finds it."""
    shape = SourceShape(
        cast(Framing, source.framing), source.session_id, source.parent, source.sidecar, source.cwd
    )
    reader = AGENTS[source.agent].reader(shape, {})
    for record in records:
        sink = Sink(source.session_id, source.parent)
        reader.read(record, 0, b"", sink)
        for bucket in sink.buckets.values():
            if isinstance(cwd := bucket.facts.get("cwd"), str):
                return cwd
    return None


def _records(source: Source, path: Path) -> Iterator[Record]:
    with tail.open_source(path) as file:
        if source.framing == "document":
            found = decode.decode_document(file.read(tail.MAX_DOCUMENT))
            yield from [] if isinstance(found, UnparsedRecord) else found
        elif source.framing == "lines":
            for chunk in tail.chunks(file, 0):
                yield from _in(chunk.data)


def _in(lines: bytes) -> Iterator[Record]:
    for offset, line in decode.split_lines(lines, 0):
        found = decode.decode_line(line, offset)
        yield from [] if isinstance(found, UnparsedRecord) else found
