"""A story as it leaves: records chosen, secrets taken out, cut into segments.

Secrets are looked for in everything that is known of the sessions, also in what stays here: a value
may be recognised only by what is said of it later. A record that cannot be parsed does not leave,
and if redaction fails, nothing does.
"""

from __future__ import annotations

import hashlib
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from whyfor.agents import AGENTS, decode
from whyfor.agents.base import Agent, Framing, SourceShape
from whyfor.config import Settings
from whyfor.model.checkpoints import Checkpoint, Part
from whyfor.model.errors import NotRedacted
from whyfor.model.findings import Record, Sink
from whyfor.model.sources import Source, UnparsedRecord
from whyfor.model.sync import SessionUpload, SharedNote, StoryUpload, UploadedSegment
from whyfor.privacy.engine import Engine
from whyfor.privacy.incremental import rules_digest
from whyfor.privacy.own_rules import engine_for, redact_settings
from whyfor.privacy.stream import Text
from whyfor.privacy.structure_redactor import StructureRedactor
from whyfor.store.blobs import Blobs
from whyfor.store.protocol import Store
from whyfor.sync.selection import SessionSelection, subagents_of

SEGMENT = 1 << 20  # bytes of redacted records in one object
PACKED_MAX = 8 << 20  # bytes of one object as it travels
RECORD_MAX = 64 << 20
T = TypeVar("T")


class SourcePackage(msgspec.Struct):
    """What leaves of one source."""

    local: Source
    path: str  # as it is called on the server: nothing of this machine's folders
    content: bytes
    keys: dict[int, int]  # by seq here: the key its event has in the content
    redacted: Counter[str]
    read: str  # what decided it: rules, and how much of the source was read


class StoryPackage(msgspec.Struct):
    """A story, ready to be sent."""

    sources: list[SourcePackage]
    checkpoints: list[Checkpoint]
    keys: dict[str, dict[int, int]]
    notes: list[SharedNote]
    statements: list[Any]
    redacted: Counter[str]
    rules: str

    @property
    def size(self) -> int:
        return sum(len(source.content) for source in self.sources)

    def digest(self) -> str:
        """Return a digest of all that would leave."""
        told = [
            (s.local.agent, s.path, hashlib.sha256(s.content).hexdigest()) for s in self.sources
        ]
        body = [told, self.checkpoints, self.notes, self.statements]
        return hashlib.sha256(msgspec.json.encode(body)).hexdigest()

    def upload(self, machine: str, sources: Iterable[SessionUpload]) -> StoryUpload:
        return StoryUpload(
            *(machine, self.rules, tuple(sources), tuple(self.checkpoints), self.keys),
            *(tuple(self.notes), tuple(self.statements)),
        )


class StoryPacker:
    """Packs stories of one pass; a session that several have in common is packed once."""

    def __init__(self, settings: Settings, store: Store, blobs: Blobs) -> None:
        self.store = store
        self.blobs = blobs
        self.engine = engine_for(settings, personal=True)
        self.rules = sharing_rules(settings)
        self._packed: dict[tuple[str, str], list[SourcePackage]] = {}
        self._values: dict[str, list[tuple[bytes, str]]] = {}

    def story(
        self,
        chosen: Iterable[SessionSelection],
        checkpoints: Iterable[Checkpoint],
        notes: Iterable[SharedNote] = (),
        statements: Iterable[Any] = (),
    ) -> StoryPackage:
        """Return a story without its secrets. Raises NotRedacted if they cannot be taken out."""
        sources: list[SourcePackage] = []
        keys: dict[str, dict[int, int]] = {}
        values: list[tuple[bytes, str]] = []
        told = list(checkpoints)
        for each in chosen:
            packed = self._session(each, told)
            sources += packed
            values += self._values[each.session.name]
            for source in packed:
                if source.keys:
                    name = f"{source.local.agent}:{source.local.session_id}"
                    keys.setdefault(name, {}).update(source.keys)
        redacted: Counter[str] = Counter()
        for source in sources:
            redacted += source.redacted
        cleaner = _Cleaner(self.engine, values)
        clean, noted, stated = cleaner.clean((told, list(notes), list(statements)))
        named = [_with_names(one, each) for one, each in zip(clean, told, strict=True)]
        redacted += cleaner.counts
        return StoryPackage(sources, named, keys, noted, stated, redacted, self.rules)

    def _session(self, chosen: SessionSelection, told: list[Checkpoint]) -> list[SourcePackage]:
        wanted = events_named_by(chosen.session.name, told)
        sign = msgspec.json.encode((chosen.last, chosen.withheld, sorted(wanted))).hex()
        known = self._packed.get((chosen.session.name, sign))
        if known is None:
            known = self._packed[chosen.session.name, sign] = self._pack(chosen, told)
        return known

    def _pack(self, chosen: SessionSelection, told: list[Checkpoint]) -> list[SourcePackage]:
        readings = list(self._readings(chosen, told))
        values = learned_values(self.engine, [reading.whole() for reading in readings])
        self._values[chosen.session.name] = values
        packed = [self._redacted(reading, values) for reading in readings]
        main = b"".join(each.content for each in packed if each.local.framing != "blob")
        return [each for each in packed if each.content and _is_mentioned(each, main)]

    def _readings(
        self, chosen: SessionSelection, told: list[Checkpoint]
    ) -> Iterator[SourceReading]:
        inside = {chosen.session.session_id} | {
            each.session_id for each in subagents_of(self.store, chosen)
        }
        numbers = self.store.sessions.numbers(
            [(chosen.session.agent, name) for name in sorted(inside)]
        )
        for source in self.store.records.sources_of(chosen.session):
            if source.session_id not in inside:
                continue
            number = numbers.get((source.agent, source.session_id))
            seqs = self.store.conversation.keys(number) if number is not None else {}
            own = source.session_id == chosen.session.session_id
            name = f"{source.agent}:{source.session_id}"
            reading = SourceReading(source, chosen if own else None, seqs)
            reading.wanted = events_named_by(name, told)
            reading.read(self._lines(source))
            yield reading

    def _lines(self, source: Source) -> Iterator[tuple[int, bytes]]:
        for piece in self.store.records.writer().stored_segments(source):
            data = self.blobs.get(piece.address)
            if source.framing in ("document", "blob"):
                text = source.framing == "blob"
                yield piece.start, decode.fill_gaps(data, piece.start, piece.gaps, text=text)
            else:
                yield from decode.split_lines(data, piece.start, piece.gaps)

    def _redacted(self, reading: SourceReading, values: list[tuple[bytes, str]]) -> SourcePackage:
        clean, counts = redact_bytes(self.engine, reading.whole(), values)
        content, keys = reading.chosen(clean)
        source = reading.source
        name = source.path.replace("\\", "/").rsplit("/", 1)[-1]
        path = f"{source.agent}/{source.session_id}/{name}"
        known = self.store.records.writer().source(source.agent, source.path)
        read = f"{self.rules[:16]}@{known.position if known else 0}"
        return SourcePackage(source, path, content, keys, counts if content else Counter(), read)


class SourceReading:
    """The records of one source, and which of them leave."""

    def __init__(
        self, source: Source, selection: SessionSelection | None, seqs: dict[int, int]
    ) -> None:
        self.source = source
        self.selection = selection  # None: all of it leaves
        self.seqs = seqs  # by key
        self.wanted: set[int] = set()  # events whose keys must be told
        self._agent: Agent = AGENTS[source.agent]
        self._lines: list[bytes] = []
        self._offsets: list[int] = []
        self._kept: list[bool] = []
        self._events: list[list[int]] = []  # by line: the seqs of its events

    def read(self, lines: Iterable[tuple[int, bytes]]) -> None:
        """Read the records, in order."""
        if self.source.framing == "blob":
            for start, data in lines:
                self._add(start, data, [], True)
            return
        reader = self._agent.reader(_shape(self.source), {})
        before = True
        for offset, line in lines:
            found = self._records(line, offset)
            if found is None:
                continue
            sink = Sink(self.source.session_id, self.source.parent)
            for index, record in enumerate(found):
                reader.read(record, offset + index, line, sink)
            seqs = [self.seqs[e.key] for e in sink.main.events if e.key in self.seqs]
            before = self._keeps(seqs, before)
            self._add(offset, line, seqs, before)

    def _records(self, line: bytes, offset: int) -> list[Record] | None:
        if self.source.framing == "document":
            found = decode.decode_document(line)
        else:
            found = decode.decode_line(line, offset)
        return None if isinstance(found, UnparsedRecord) else found

    def _keeps(self, seqs: list[int], before: bool) -> bool:
        """A record without events goes with the one before it."""
        if self.selection is None or self.source.framing == "document":
            return True
        return all(self.selection.keeps(seq) for seq in seqs) if seqs else before

    def _add(self, offset: int, line: bytes, seqs: list[int], kept: bool) -> None:
        self._offsets.append(offset)
        self._lines.append(line)
        self._kept.append(kept)
        self._events.append(seqs)

    def whole(self) -> bytes:
        """Return all records, also those that stay here."""
        if self.source.framing in ("blob", "document"):
            return b"".join(self._lines)
        return b"".join(line + b"\n" for line in self._lines)

    def chosen(self, clean: bytes) -> tuple[bytes, dict[int, int]]:
        """Return of the redacted records those that leave, and the keys of the events asked for."""
        if self.source.framing == "blob":
            return clean, {}
        if self.source.framing == "document":
            return self._chosen_document(clean)
        lines = clean.split(b"\n")
        if len(lines) != len(self._lines) + 1:
            raise NotRedacted("redaction changed the number of records", "Please report it.")
        kept: list[bytes] = []
        keys: dict[int, int] = {}
        at = 0
        for number, line in enumerate(lines[:-1]):
            if not self._kept[number]:
                continue
            line = _fitting(line)
            if self._is_wanted(number):
                keys.update(self._keys(number, line, at))
            kept.append(line + b"\n")
            at += len(line) + 1
        has_events = any(s for s, leaves in zip(self._events, self._kept, strict=True) if leaves)
        if not has_events and any(self._events):
            return b"", {}
        return b"".join(kept), keys

    def _is_wanted(self, number: int) -> bool:
        """Return whether a record has an event that is asked for, or the last before one that does
        not leave."""
        if self.wanted.intersection(self._events[number]):
            return True
        following = self._events[number + 1] if number + 1 < len(self._events) else []
        return any(seq in self.wanted for seq in following) and not self._kept[number + 1]

    def _keys(self, number: int, line: bytes, at: int) -> dict[int, int]:
        """Return the keys that a record's events have where it will stand."""
        before = self._event_keys(self._lines[number], self._offsets[number])
        after = self._event_keys(line, at)
        return {
            self.seqs[key]: there
            for key, there in zip(before, after, strict=False)
            if key in self.seqs
        }

    def _event_keys(self, line: bytes, at: int) -> list[int]:
        sink = Sink(self.source.session_id, self.source.parent)
        reader = self._agent.reader(_shape(self.source), {})
        for index, record in enumerate(self._records(line, at) or []):
            reader.read(record, at + index, line, sink)
        return [event.key for event in sink.main.events]

    def _chosen_document(self, clean: bytes) -> tuple[bytes, dict[int, int]]:
        """A session that is one document leaves without the messages that stay here."""
        keys = {seq: key for key, seq in self.seqs.items() if seq in self.wanted}
        if self.selection is None or self.source.sidecar is not None:
            return clean, keys
        found = decode.decode_document(clean)
        if isinstance(found, UnparsedRecord):
            return b"", {}
        reader = self._agent.reader(_shape(self.source), {})
        records = []
        for whole in found:
            messages = whole.get("messages")
            if not isinstance(messages, list):
                return (clean, keys) if self.selection.keeps(max(self.seqs.values())) else (b"", {})
            head = {name: value for name, value in whole.items() if name != "messages"}
            reader.read(head, 0, b"", Sink(self.source.session_id, self.source.parent))
            kept = [m for m in messages if isinstance(m, dict) and self._keeps_message(reader, m)]
            records.append({**whole, "messages": kept})
        body = records[0] if len(records) == 1 else records
        return msgspec.json.encode(body), keys

    def _keeps_message(self, reader: Any, message: Record) -> bool:
        sink = Sink(self.source.session_id, self.source.parent)
        reader.read(message, 0, b"", sink)
        seqs = [self.seqs[event.key] for event in sink.main.events if event.key in self.seqs]
        assert self.selection is not None
        return all(self.selection.keeps(seq) for seq in seqs)


# -- redaction -----------------------------------------------------------------------------------


def sharing_rules(settings: Settings) -> str:
    """Return a digest of everything that decides what is taken out."""
    wished = redact_settings(settings)
    return rules_digest(
        msgspec.json.encode([wished.personal, wished.allow]), msgspec.json.encode(wished.rule)
    )


def learned_values(engine: Engine, texts: Iterable[bytes]) -> list[tuple[bytes, str]]:
    """Return the secrets in texts that belong together, each with its rule: what one gives away is
    a secret in all."""
    known: dict[bytes, str] = {}
    for data in texts:
        text = Text(engine, io.BytesIO(data), 0, len(data), known.items())
        text.read()
        for value, label in text.labels.labels.items():
            known.setdefault(value, label[10:-1].split("#")[0])
    return list(known.items())


def redact_bytes(
    engine: Engine, data: bytes, values: Iterable[tuple[bytes, str]]
) -> tuple[bytes, Counter[str]]:
    """Return a text without its secrets and these values, and how many there were, by rule."""
    text = Text(engine, io.BytesIO(data), 0, len(data), values)
    text.read()
    clean = b"".join(part for _, part in text.redacted())
    if text.document:
        text.check_document(clean)
    return clean, Counter(item.rule for item in text.found)


class _Cleaner(StructureRedactor):
    """Takes secrets out of what is told of commits; those of its sessions are known."""

    def __init__(self, engine: Engine, values: Iterable[tuple[bytes, str]]) -> None:
        super().__init__(engine)
        for value, rule in values:
            self.know(value, rule)

    def clean(self, content: T) -> T:
        self.anything(content)  # all are learned first: a copy may stand before the name
        self.counts.clear()
        return self.anything(content)


# -- cutting -------------------------------------------------------------------------------------


def cut_segments(
    content: bytes, framing: str, before: Iterable[UploadedSegment] = (), most: int = SEGMENT
) -> tuple[UploadedSegment, ...]:
    """Cut content into segments at the ends of records. What was sent before keeps its cuts, as
    long as its bytes are the same."""
    found: list[UploadedSegment] = []
    at = 0
    for known in before:
        same = known.start == at and known.end <= len(content)
        if not same or _digest(content[known.start : known.end]) != known.digest:
            break
        found.append(known)
        at = known.end
    while at < len(content):
        end = len(content) if framing in ("blob", "document") else _cut(content, at, most)
        found.append(UploadedSegment(at, end, _digest(content[at:end])))
        at = end
    return tuple(found)


def _cut(content: bytes, at: int, most: int) -> int:
    """Return where a segment ends that begins here: after as many records as fit, or after one."""
    if len(content) - at <= most:
        return len(content)
    end = content.rfind(b"\n", at, at + most) + 1
    return end or content.index(b"\n", at) + 1


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _fitting(line: bytes) -> bytes:
    """Return a record, or what stands in its place if it is too large for any server."""
    if len(line) <= RECORD_MAX:
        return line
    return gap_record(len(line))


def gap_record(size: int) -> bytes:
    """Return what stands in the place of a record that is too large to be shared."""
    words = f"[record of {max(1, size >> 20)} MB not shared]"
    return msgspec.json.encode({"type": "whyfor-gap", "text": words})


def _is_mentioned(package: SourcePackage, main: bytes) -> bool:
    """A file beside a session leaves if what leaves of the session names it."""
    if package.local.framing != "blob":
        return True
    return package.path.rsplit("/", 1)[-1].encode() in main


def events_named_by(name: str, told: Iterable[Checkpoint]) -> set[int]:
    """Return the events of a session that checkpoints name."""
    found: set[int] = set()
    for checkpoint in told:
        for part in checkpoint.parts:
            if part.name == name:
                found |= _named_events(part)
        for changed in checkpoint.files:
            found |= {one.seq for one in changed.written if one.session == name and one.seq}
    return found


def _named_events(part: Part) -> set[int]:
    """Return the events of a session that a part names."""
    found = {part.first, part.last, part.cut}
    for first, last in part.pieces:
        found |= {first, last}
    return found


def _shape(source: Source) -> SourceShape:
    return SourceShape(
        cast(Framing, source.framing), source.session_id, source.parent, source.sidecar, source.cwd
    )


def _with_names(clean: Checkpoint, told: Checkpoint) -> Checkpoint:
    """Return a redacted checkpoint with the names that git tells everybody who pushed it, and the
    places in sessions, which are no words."""
    parts = [
        replace(whole, why=part.why) for part, whole in zip(clean.parts, told.parts, strict=True)
    ]
    files = [
        replace(one, written=whole.written)
        for one, whole in zip(clean.files, told.files, strict=True)
    ]
    return replace(
        told, subject=clean.subject, files=files, annotation=clean.annotation, parts=parts
    )
