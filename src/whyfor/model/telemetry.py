"""What agents' telemetry tells: requests to models, as numbers and names, never as words."""

from __future__ import annotations

from typing import Any

import msgspec

TELEMETRY = "WhyforTelemetry"  # the event under which the server writes down a request

Attributes = dict[str, Any]


class LogRecord(msgspec.Struct, frozen=True):
    """One log record of OTLP: its name, when it was made (ms), and its attributes."""

    name: str
    at: int
    attributes: Attributes


class TelemetryRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One request to a model. None means unknown; input excludes cached tokens."""

    agent: str
    session_id: str
    at: int  # when it was answered, in ms
    model: str | None = None
    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    usd: float | None = None  # what the agent says it cost
    duration_ms: int | None = None
    first_token_ms: int | None = None
    purpose: str = ""  # the agent's own word for what it was for
    status: int | None = None  # of HTTP, where it failed
    attempt: int | None = None
    ident: str = ""  # the provider's id of the request


def signed_tokens(request: TelemetryRequest) -> tuple[int, int, int, int]:
    """Return the tokens by which a request is recognised in a transcript."""
    return (
        request.input or 0,
        request.cache_read or 0,
        request.cache_write or 0,
        request.output or 0,
    )


class ToldRequest(msgspec.Struct, frozen=True):
    """A request with the number of the signal that told it, and of its session; None if that is not
    known here."""

    signal: int
    session: int | None
    request: TelemetryRequest


class StoredResponse(msgspec.Struct, frozen=True):
    """A response as a transcript tells it."""

    session: int
    key: int
    turn: int
    at: int | None
    # input, read from the cache, written to it, output; None: unknown
    tokens: tuple[int | None, int | None, int | None, int | None]
    model: str | None = None

    @property
    def signed(self) -> tuple[int, int, int, int]:
        """The tokens by which its request is recognised."""
        fresh, read, written, output = self.tokens
        return fresh or 0, read or 0, written or 0, output or 0


class PricedResponse(msgspec.Struct, frozen=True):
    """What telemetry says that a response cost."""

    session: int
    key: int
    usd: float


class SideRequest(msgspec.Struct, frozen=True):
    """A request that no transcript tells of, and the turn in which it was made."""

    session: int
    turn: int
    key: int
    request: TelemetryRequest
