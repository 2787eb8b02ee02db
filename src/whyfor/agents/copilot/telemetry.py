"""Copilot CLI's own file of spans and metrics: of its requests to models, the numbers. It is not
told where to write by a setting, but by a variable."""

from __future__ import annotations

from whyfor.agents.base import as_int, as_list, get_dict, get_str
from whyfor.agents.telemetry import TelemetryFile, short_text, whole_number
from whyfor.model.findings import Record
from whyfor.model.telemetry import Attributes, TelemetryRequest


def read_copilot_span(record: Record) -> TelemetryRequest | None:
    """Return the request that a line of the file tells of; None if it tells of something else."""
    given: Attributes = get_dict(record, "attributes")
    session = short_text(given, "gen_ai.conversation.id")
    is_request = given.get("gen_ai.operation.name") == "chat" and get_str(record, "type") == "span"
    end = _time(record.get("endTime"))
    if not is_request or not session or end is None:
        return None
    start = _time(record.get("startTime"))
    read = whole_number(given, "gen_ai.usage.cache_read.input_tokens")
    written = whole_number(given, "gen_ai.usage.cache_write.input_tokens")
    total = whole_number(given, "gen_ai.usage.input_tokens")
    cached = (read or 0) + (written or 0)
    first = given.get("gen_ai.response.time_to_first_chunk")
    model = short_text(given, "gen_ai.response.model") or short_text(given, "gen_ai.request.model")
    return TelemetryRequest(
        agent="copilot",
        session_id=session,
        at=end,
        model=model or None,
        input=None if total is None else max(0, total - cached),
        cache_read=read,
        cache_write=written,
        output=whole_number(given, "gen_ai.usage.output_tokens"),
        reasoning=whole_number(given, "gen_ai.usage.reasoning.output_tokens"),
        duration_ms=None if start is None else max(0, end - start),
        first_token_ms=round(first * 1000) if isinstance(first, float) and first < 1e6 else None,
        purpose=short_text(given, "github.copilot.initiator"),
        status=whole_number(given, "error.type"),
        ident=short_text(given, "gen_ai.response.id"),
    )


def _time(value: object) -> int | None:
    """Return ms of a time that is given as seconds and nanoseconds."""
    parts = [as_int(part) for part in as_list(value)]
    if len(parts) != 2 or parts[0] is None or parts[1] is None:
        return None
    at = parts[0] * 1000 + parts[1] // 1_000_000
    return at if 0 <= at < 1 << 53 else None


FILE = TelemetryFile(
    agent="copilot",
    title="Copilot CLI",
    variable="COPILOT_OTEL_FILE_EXPORTER_PATH",
    read=read_copilot_span,
)
