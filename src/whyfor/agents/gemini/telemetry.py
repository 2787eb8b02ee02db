"""Gemini CLI's log records: `gemini_cli.api_response`, `gemini_cli.api_error`,
`gemini_cli.tool_call`. It sends prompts and instructions too, which are not read."""

from __future__ import annotations

from whyfor.agents.telemetry import TelemetrySwitch, log_time, short_text, whole_number
from whyfor.model.approvals import Answerer, ToldDecision
from whyfor.model.telemetry import LogRecord, TelemetryRequest

# It says `accept` too where nobody was asked, which tells nothing.
_DECIDED: dict[str, Answerer] = {"auto_accept": "agent", "modify": "terminal", "reject": "unknown"}


def read_gemini_log(record: LogRecord) -> TelemetryRequest | ToldDecision | None:
    kind = record.name.removeprefix("gemini_cli.")
    given = record.attributes
    session = short_text(given, "session.id")
    if not session:
        return None
    if kind == "tool_call":
        return _decision(record, session)
    if kind not in ("api_response", "api_error"):
        return None
    total = whole_number(given, "input_token_count")
    cached = whole_number(given, "cached_content_token_count")
    return TelemetryRequest(
        agent="gemini",
        session_id=session,
        at=log_time(record),
        model=short_text(given, "model") or short_text(given, "model_name") or None,
        input=None if total is None else max(0, total - (cached or 0)),
        cache_read=cached,
        output=whole_number(given, "output_token_count"),
        reasoning=whole_number(given, "thoughts_token_count"),
        duration_ms=whole_number(given, "duration_ms"),
        status=whole_number(given, "status_code") if kind == "api_error" else None,
    )


def _decision(record: LogRecord, session: str) -> ToldDecision | None:
    given = record.attributes
    decided = short_text(given, "decision")
    if decided not in _DECIDED:
        return None
    return ToldDecision(
        agent="gemini",
        session_id=session,
        at=log_time(record),
        allowed=decided != "reject",
        by=_DECIDED[decided],
        source=decided,
        tool=short_text(given, "function_name"),
    )


def _settings(address: str, key: str) -> dict[str, dict[str, object]]:
    """It has no setting for headers: the key stands in the address."""
    return {
        "telemetry": {
            "enabled": True,
            "target": "local",
            "otlpEndpoint": f"{address}/{key}",
            "otlpProtocol": "http",
            "logPrompts": False,
        }
    }


SWITCH = TelemetrySwitch(agent="gemini", file="settings.json", settings=_settings)
