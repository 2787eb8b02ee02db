"""Codex's log records: `codex.sse_event` with the tokens of a response, `codex.tool_decision`. Its
`codex.tool_result` has arguments and output, and is not read."""

from __future__ import annotations

from whyfor.agents.telemetry import TelemetrySwitch, log_time, short_text, whole_number
from whyfor.model.approvals import ToldDecision
from whyfor.model.telemetry import LogRecord, TelemetryRequest

_ALLOWED = ("approved", "approved_for_session", "approved_execpolicy_amendment")


def read_codex_log(record: LogRecord) -> TelemetryRequest | ToldDecision | None:
    kind = record.name.removeprefix("codex.")
    given = record.attributes
    session = short_text(given, "conversation.id")
    if not session:
        return None
    if kind == "tool_decision":
        source = short_text(given, "source")
        return ToldDecision(
            agent="codex",
            session_id=session,
            at=log_time(record),
            allowed=short_text(given, "decision").lower() in _ALLOWED,
            by="terminal" if source.lower() == "user" else "agent",
            source=source,
            call=short_text(given, "call_id"),
            tool=short_text(given, "tool_name"),
        )
    if kind != "sse_event" or given.get("event.kind") != "response.completed":
        return None
    total, cached = (
        whole_number(given, "input_token_count"),
        whole_number(given, "cached_token_count"),
    )
    if total is None:
        return None  # it tells of the same response once more, without tokens
    written = whole_number(given, "cache_write_token_count")
    return TelemetryRequest(
        agent="codex",
        session_id=session,
        at=log_time(record),
        model=short_text(given, "model") or None,
        input=max(0, total - (cached or 0) - (written or 0)),
        cache_read=cached,
        cache_write=written,
        output=whole_number(given, "output_token_count"),
        reasoning=whole_number(given, "reasoning_token_count"),
        duration_ms=whole_number(given, "duration_ms"),
    )


def _settings(address: str, key: str) -> dict[str, dict[str, object]]:
    """Only its log records: its traces are a thousand internal spans a session."""
    sender = {
        "endpoint": f"{address}/v1/logs",
        "protocol": "binary",
        "headers": {"Authorization": f"Bearer {key}"},
    }
    return {"otel": {"exporter": {"otlp-http": sender}, "log_user_prompt": False}}


SWITCH = TelemetrySwitch(agent="codex", file="config.toml", toml=True, settings=_settings)
