"""Claude Code's log records: `claude_code.api_request`, `claude_code.tool_decision`."""

from __future__ import annotations

from whyfor.agents.telemetry import TelemetrySwitch, log_time, short_text, told_price, whole_number
from whyfor.model.approvals import Answerer, ToldDecision
from whyfor.model.telemetry import LogRecord, TelemetryRequest

_BY: dict[str, Answerer] = {"config": "agent", "hook": "agent"}


def read_claude_log(record: LogRecord) -> TelemetryRequest | ToldDecision | None:
    kind = record.name.removeprefix("claude_code.")
    given = record.attributes
    session = short_text(given, "session.id")
    if not session:
        return None
    if kind == "tool_decision":
        source = short_text(given, "source")
        return ToldDecision(
            agent="claude",
            session_id=session,
            at=log_time(record),
            allowed=given.get("decision") == "accept",
            by=_BY.get(source, "terminal" if source.startswith("user") else "unknown"),
            source=source,
            call=short_text(given, "tool_use_id"),
            tool=short_text(given, "tool_name"),
        )
    if kind not in ("api_request", "api_error"):
        return None
    return TelemetryRequest(
        agent="claude",
        session_id=session,
        at=log_time(record),
        model=short_text(given, "model") or None,
        input=whole_number(given, "input_tokens"),
        cache_read=whole_number(given, "cache_read_tokens"),
        cache_write=whole_number(given, "cache_creation_tokens"),
        output=whole_number(given, "output_tokens"),
        usd=told_price(given, "cost_usd"),
        duration_ms=whole_number(given, "duration_ms"),
        first_token_ms=whole_number(given, "ttft_ms"),
        purpose=short_text(given, "query_source"),
        status=whole_number(given, "status_code"),
        attempt=whole_number(given, "attempt"),
        ident=short_text(given, "request_id"),
    )


def _settings(address: str, key: str) -> dict[str, dict[str, str]]:
    return {
        "env": {
            "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
            "OTEL_LOGS_EXPORTER": "otlp",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
            "OTEL_EXPORTER_OTLP_ENDPOINT": address,
            "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer {key}",
        }
    }


SWITCH = TelemetrySwitch(agent="claude", file="settings.json", settings=_settings)
