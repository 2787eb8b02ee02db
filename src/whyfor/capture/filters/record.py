"""One record as the filters see it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from whyfor.agents import decode
from whyfor.agents.base import Agent, RecordStamp, as_dict
from whyfor.model.events import Event
from whyfor.model.findings import Record, Sink
from whyfor.model.sources import UnparsedRecord


class Verdict(Enum):
    """What happens to a record."""

    KEEP = 0
    HOLLOW = 1  # its structure stays, its words go
    DROP = 2


class SourceLine:
    """A line as the agent wrote it, including its end; it is decoded at most once."""

    __slots__ = ("_decoded", "_is_sound", "data", "start")

    def __init__(self, data: bytes, start: int) -> None:
        self.data = data
        self.start = start  # its place in the source
        self._decoded: list[Record] | UnparsedRecord | None = None
        self._is_sound = False

    @property
    def is_whole(self) -> bool:
        return self.data.endswith(b"\n")

    @property
    def text(self) -> bytes:
        return self.data.rstrip(b"\r\n")

    def records(self) -> list[Record] | UnparsedRecord:
        if self._decoded is None:
            self._decoded, self._is_sound = decode.read_line(self.text, self.start)
        return self._decoded

    def known_records(self) -> list[Record] | None:
        """Return the records of a sound line that was decoded, else None."""
        return self._decoded if self._is_sound and isinstance(self._decoded, list) else None

    def stamp(self, agent: Agent) -> RecordStamp | None:
        """The record's stamp; None if the line is not a record, is damaged, or contains several."""
        found = self.records()
        if isinstance(found, UnparsedRecord) or not self._is_sound:
            return None
        return agent.stamp(found[0])


def source_lines(data: bytes, start: int) -> Iterator[SourceLine]:
    at = 0
    while at < len(data):
        end = data.find(b"\n", at) + 1 or len(data)
        yield SourceLine(data[at:end], start + at)
        at = end


class ReadRecord:
    """The records of a line, or a message in one, as the agent's reader understands them."""

    __slots__ = ("agent", "events", "marked", "names", "prompts", "records", "sink", "stamps")

    def __init__(self, agent: Agent, records: list[Record], sink: Sink, *, marked: bool) -> None:
        self.agent = agent
        self.records = records
        self.sink = sink
        self.marked = marked  # something in it is private
        self.stamps = [agent.stamp(record) for record in records]
        buckets = sink.buckets.items()
        self.events = [event for _, bucket in buckets for event in bucket.events]
        self.prompts = [event for event in sink.main.events if event.kind == "user.prompt"]
        subagents = [name for name, bucket in buckets if bucket is not sink.main]
        # of the calls that it tells of, and of the subagents in the same file
        self.names = [*_ids(self.events), *subagents]

    def call_names(self) -> list[str]:
        """The ids of the calls in it, and of the calls it answers."""
        return _ids([one for one in self.events if one.kind in ("tool.call", "tool.result")])


def _ids(events: list[Event]) -> list[str]:
    found = (as_dict(event.data).get("id") for event in events)
    return [ident for ident in found if isinstance(ident, str)]
