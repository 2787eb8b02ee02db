"""What the three model APIs have in common; each is a module shaped like `Wire`."""

from __future__ import annotations

import json
import uuid
from typing import Any, NamedTuple, Protocol

from .script import Json, Message, Reply


class Payload(NamedTuple):
    """A response body and its content type."""

    kind: str
    data: bytes


class Wire(Protocol):
    # whether a request path belongs to this API
    def claims(self, path: str) -> bool: ...
    # whether the request is the agent's main loop, not a title, a token count or another aside
    def is_main(self, path: str, body: Json) -> bool: ...
    # the conversation the request carries, roles named user and assistant
    def history(self, body: Json) -> list[Message]: ...
    # the reply as this API writes it
    def payload(self, path: str, body: Json, reply: Reply) -> Payload: ...
    # an error as this API writes it
    def error(self, status: int, message: str) -> Payload: ...


def fresh(prefix: str) -> str:
    """A new id: agents and readers alike drop messages and usage whose ids they have seen
    before."""
    return prefix + uuid.uuid4().hex[:24]


def as_json(value: object) -> Payload:
    return Payload("application/json", json.dumps(value).encode())


def as_events(events: list[Json]) -> Payload:
    """Server-sent events; those with a `type` also carry it as the event name."""
    return Payload("text/event-stream", "".join(map(_event, events)).encode())


def text_of(part: Any) -> str:
    """A content part as text: strings and text parts plain, everything else as JSON."""
    if isinstance(part, str):
        return part
    text = part.get("text")
    return text if isinstance(text, str) else json.dumps(part, ensure_ascii=False)


def _event(event: Json) -> str:
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event)}\n\n"
