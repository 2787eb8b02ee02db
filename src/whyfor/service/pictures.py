"""Pictures of a conversation: their bytes stand in the records; an event says only that there is
one."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, cast

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.base import Agent, Framing, SourceShape
from whyfor.capture.records import SegmentPiece, read_records
from whyfor.config import Settings
from whyfor.model.errors import NotFound
from whyfor.model.events import StoredEvent
from whyfor.model.findings import Sink
from whyfor.model.sessions import Session
from whyfor.model.sources import Source
from whyfor.store.open import OpenStore, reading
from whyfor.story.session_lookup import session_named

LARGEST = 12 << 20  # bytes
_HINTS = (b"base64", b"data:image", b"inlineData", b"image/")
# What it is, is told by its first bytes, not by who says so; nothing that can hold a script is
# among them.
_KINDS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)


class Image(msgspec.Struct, frozen=True):
    data: bytes
    media_type: str


def picture(settings: Settings, agent: str, session_id: str, seq: int, index: int) -> Image:
    """Return a picture of an event; raise NotFound if there is none that can be shown."""
    with reading(settings) as library:
        session = session_named(library, agent, session_id)
        key = library.conversation.key_of(session.id, seq)
        size = _listed_size(library.conversation.events_at(session.id, [seq], 1), index)
        if key is None or size is None or size > LARGEST:
            raise _missing()
        for record in _telling(library, session, key):
            found = list(_payloads(record))
            fitting = [text for text in found if len(text) * 3 // 4 == size]
            fitting += found[index : index + 1]
            if fitting:
                return _decoded(fitting[0])
    raise _missing()


def _listed_size(events: list[StoredEvent], index: int) -> int | None:
    """Return how many bytes an event says its picture has; None if it lists no such picture."""
    listed = (events[0].data or {}).get("images") if events else None
    if not isinstance(listed, list) or not 0 <= index < len(listed):
        return None
    size = listed[index].get("bytes") if isinstance(listed[index], dict) else None
    return size if isinstance(size, int) else None


def _telling(library: OpenStore, session: Session, key: int) -> Iterator[Any]:
    """Yield the records that told an event, found again by the event's key; only lines that may
    hold a picture are parsed."""
    for source in library.records.sources_of(session):
        if source.session_id != session.session_id and source.parent != session.session_id:
            continue
        for stored in library.records.pieces(source):
            piece = SegmentPiece(stored.start, library.blobs.get(stored.address), stored.gaps)
            if _has_hint(piece.data):
                yield from _in_piece(AGENTS[session.agent], source, piece, key)


def _has_hint(data: bytes) -> bool:
    return any(hint in data for hint in _HINTS)


def _in_piece(agent: Agent, source: Source, piece: SegmentPiece, key: int) -> Iterator[Any]:
    framing = cast(Framing, source.framing)
    shape = SourceShape(framing, source.session_id, source.parent, source.sidecar, source.cwd)
    for offset, line, record in read_records(source, [piece]):
        if line and not _has_hint(line):
            continue
        sink = Sink(source.session_id, source.parent)
        agent.reader(shape, {}).read(record, offset, line, sink)
        if any(event.key == key for event in sink.main.events):
            yield record


def _payloads(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield everything in a record that is a picture's bytes as text, in order."""
    if depth > 40:
        return
    inner: Iterable[Any] = ()
    if isinstance(value, dict):
        data = value.get("data")
        if isinstance(data, str) and _is_image(value):
            yield data
            return
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    elif isinstance(value, str):
        if value.startswith("data:image/"):
            head, comma, data = value.partition(",")
            if comma and head.endswith(";base64"):
                yield data
        elif value[:1] in ("{", "[") and "image/" in value:  # a database's column
            with suppress(msgspec.DecodeError, ValueError, RecursionError):
                inner = [msgspec.json.decode(value)]
    for one in inner:
        yield from _payloads(one, depth + 1)


def _is_image(value: dict[str, Any]) -> bool:
    kind = value.get("media_type") or value.get("mimeType") or value.get("mime_type")
    return isinstance(kind, str) and kind.startswith("image/")


def _decoded(text: str) -> Image:
    if len(text) * 3 // 4 > LARGEST:
        raise _missing()
    try:
        data = base64.b64decode(text, validate=False)
    except (binascii.Error, ValueError):
        raise _missing() from None
    for start, kind in _KINDS:
        if data.startswith(start):
            return Image(data, kind)
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return Image(data, "image/webp")
    raise _missing()


def _missing() -> NotFound:
    return NotFound(
        "there is no picture here that can be shown",
        "Its transcript may have it: whyfor show --raw",
    )
