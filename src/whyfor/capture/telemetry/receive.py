"""What arrives: read, and written to the spool before the sender is told that it was."""

from __future__ import annotations

from pathlib import Path

import msgspec

from whyfor.agents.telemetry import read_record
from whyfor.capture.spool import append_decisions, append_requests
from whyfor.capture.telemetry.otlp import read_logs, unpack_body
from whyfor.model.approvals import ToldDecision
from whyfor.model.telemetry import TelemetryRequest


class TelemetryBody(msgspec.Struct, frozen=True):
    """A request as it arrived."""

    signal: str  # logs | metrics | traces
    media_type: str
    encoding: str
    content: bytes


class Received(msgspec.Struct, frozen=True):
    """What was taken of a request."""

    records: int = 0
    requests: int = 0
    decisions: int = 0


def receive_telemetry(home: Path, body: TelemetryBody) -> Received:
    """Keep what a request tells, and wait until that is on disk. Metrics and traces tell nothing
    that log records do not, and are dropped. Raises BadInput if it cannot be read, OSError if it
    cannot be written."""
    content = unpack_body(body.content, body.encoding)
    if body.signal != "logs":
        return Received()
    records = read_logs(content, body.media_type)
    requests: list[TelemetryRequest] = []
    decisions: list[ToldDecision] = []
    for record in records:
        found = read_record(record)
        if isinstance(found, TelemetryRequest):
            requests.append(found)
        elif found is not None:
            decisions.append(found)
    append_requests(home, requests)
    append_decisions(home, decisions)
    return Received(len(records), len(requests), len(decisions))
