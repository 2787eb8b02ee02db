"""What sessions cost at list price, in every command that says so."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.config import Settings

Cli = Callable[..., Result]

MODEL = "claude-opus-4-6"  # $5 in, $0.5 from the cache, $6.25 or $10 to it, $25 out
KNOWN = {
    "input_tokens": 1_000,
    "cache_read_input_tokens": 200_000,
    "cache_creation_input_tokens": 10_000,
    "cache_creation": {"ephemeral_5m_input_tokens": 4_000, "ephemeral_1h_input_tokens": 6_000},
    "output_tokens": 2_000,
}
COST = 0.005 + 0.1 + 0.025 + 0.06 + 0.05
DAY = "2026-05-01"


def answer(session: Transcript, usage: dict[str, Any], model: str = MODEL, **extra: Any) -> None:
    """A response that says what it used."""
    message = {
        "id": f"msg_{len(session.lines)}_{session.session_id}",
        "role": "assistant",
        "model": model,
        "content": [{"type": "text", "text": "Done."}],
        "usage": usage,
    }
    session.add("assistant", message, requestId=f"req_{len(session.lines)}", **extra)


def priced(name: str, *models: str, day: str = DAY) -> Transcript:
    """A session of one turn with a response of each model."""
    session = Transcript(name, day=day)
    session.prompt(f"Ask {name}")
    for model in models:
        answer(session, KNOWN, model)
    return session


@pytest.fixture
def stored(home: Path, cli: Cli) -> dict[str, Transcript]:
    sessions = {
        "known": priced("known", MODEL),
        "mixed": priced("mixed", MODEL, "gpt-demo-2", day="2026-06-10"),
        "unknown": priced("unknown", "gpt-demo-2"),
    }
    for session in sessions.values():
        session.save(home)
    cli("ingest")
    return sessions


def test_a_cost_is_whole_at_least_or_unknown(stored: dict[str, Transcript], cli: Cli) -> None:
    rows = {row["session_id"]: row["cost"] for row in cli("sessions", "--json").json}
    found = {name: rows[session.session_id] for name, session in stored.items()}
    assert found["known"] == {"usd": pytest.approx(COST), "unpriced": 0}
    assert found["mixed"] == {"usd": pytest.approx(COST), "unpriced": 1}
    assert found["unknown"] == {"usd": None, "unpriced": 1}
    turns = cli("show", stored["mixed"].session_id, "--turns", "--json").json["turns"]
    assert turns[-1]["cost"] == found["mixed"]
    shown = cli("show", stored["mixed"].session_id).out
    assert "API price at least $0.24" in shown
    assert "API price unknown" in cli("show", stored["unknown"].session_id).out


def test_sums_say_what_is_not_in_them(stored: dict[str, Transcript], cli: Cli) -> None:
    said = cli("stats", "--cost", "--json").json
    assert said["cost"] == {"usd": pytest.approx(2 * COST), "unpriced": 2}
    assert [(one["name"], one["responses"]) for one in said["unpriced"]] == [("gpt-demo-2", 2)]
    assert [(one["name"], one["cost"]["usd"]) for one in said["by_model"]] == [
        (MODEL, pytest.approx(2 * COST)),
        ("gpt-demo-2", None),
    ]
    days = {one["name"]: one["cost"] for one in said["by_day"]}
    assert days == {
        DAY: {"usd": pytest.approx(COST), "unpriced": 1},
        "2026-06-10": {"usd": pytest.approx(COST), "unpriced": 1},
    }
    for by in ("by_agent", "by_project", "by_model", "by_day"):
        assert sum(one["cost"]["usd"] or 0 for one in said[by]) == pytest.approx(2 * COST)
    # 200,000 read for a tenth, 4,000 written for a quarter more, 6,000 for twice the price
    assert said["saved"] == pytest.approx(2 * (0.9 - 0.005 - 0.03))
    assert said["prices"]["source"].startswith("genai-prices ")
    assert cli("stats", "--json").json["cost"] == said["cost"]
    assert cli("stats", "--cost", "--until", "2026-05-31", "--json").json["cost"]["unpriced"] == 1


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_table_of_costs_fits_and_keeps_every_figure(
    stored: dict[str, Transcript], cli: Cli, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    out = cli("stats", "--cost").out
    assert max(map(len, out.splitlines())) <= width
    assert "API price: at least $0.48" in out
    assert "No price is known for: gpt-demo-2 (2)" in out
    assert out.count("≥ $0.48") == 2  # of the agent and of the project
    assert "genai-prices" in out


def test_sessions_are_sorted_by_cost_with_the_unknown_last(
    stored: dict[str, Transcript], cli: Cli, home: Path
) -> None:
    dear = priced("dear", MODEL, MODEL)
    dear.save(home)
    cli("ingest")
    names = [row["session_id"] for row in cli("sessions", "--sort", "cost", "--json").json]
    assert (names[0], names[-1]) == (dear.session_id, stored["unknown"].session_id)
    assert "$0.48" in cli("sessions", "--sort", "cost").out


def test_what_claude_code_says_it_cost_wins(home: Path, cli: Cli) -> None:
    session = Transcript("told")
    session.prompt("Old records have their cost")
    answer(session, KNOWN, costUSD=0.125)
    answer(session, {**KNOWN, "speed": "fast"})
    session.save(home)
    cli("ingest")
    (row,) = cli("sessions", "--json").json
    assert row["cost"] == {"usd": 0.125, "unpriced": 1}


def test_prices_of_ones_own_hold_for_what_was_stored_before(
    stored: dict[str, Transcript], cli: Cli, settings: Settings
) -> None:
    own = settings.home / "prices.toml"
    own.write_text('[[model]]\nmatch = "gpt-demo-*"\ninput = 1.0\noutput = 1.0\n')
    cli("ingest")
    said = cli("stats", "--cost", "--json").json
    assert said["cost"] == {"usd": pytest.approx(2 * COST + 2 * 0.213), "unpriced": 0}
    before = cli("sessions", "--all", "--json").json
    cli("rebuild")
    assert cli("sessions", "--all", "--json").json == before
    own.write_text("[[model]\n")
    cli("ingest")
    assert "Own prices are not used" in cli("stats", "--cost").err
    assert cli("stats", "--cost", "--json").json["cost"]["unpriced"] == 2


def test_a_run_that_is_summed_up_at_its_end_has_a_whole_price(home: Path, cli: Cli) -> None:
    """Copilot CLI tells the output with each response, and everything else when it ends."""
    model = "claude-sonnet-4.6"
    folder = home / ".copilot" / "session-state" / "0b7d0e2c-0000-4000-8000-000000000009"
    folder.mkdir(parents=True)
    usage = {"inputTokens": 3_000, "outputTokens": 40, "cacheReadTokens": 0, "cacheWriteTokens": 0}
    lines: list[tuple[str, dict[str, Any]]] = [
        ("session.start", {"sessionId": folder.name, "version": 1, "context": {"cwd": "/code/x"}}),
        ("user.message", {"content": "Go"}),
        (
            "assistant.message",
            {"messageId": "m1", "content": "a", "outputTokens": 40, "model": model},
        ),
        ("session.shutdown", {"modelMetrics": {model: {"requests": {"count": 1}, "usage": usage}}}),
    ]

    def write(count: int) -> None:
        with (folder / "events.jsonl").open("w") as file:
            for at, (kind, data) in enumerate(lines[:count]):
                stamp = f"{DAY}T10:00:0{at}.000Z"
                line = {"type": kind, "data": data, "id": f"e{at}", "timestamp": stamp}
                file.write(json.dumps({**line, "parentId": f"e{at - 1}" if at else None}) + "\n")

    write(3)
    cli("ingest")
    (open_row,) = cli("sessions", "--json").json
    assert open_row["cost"] == {"usd": pytest.approx(40 * 15e-6), "unpriced": 1}
    write(4)
    cli("ingest")
    (row,) = cli("sessions", "--json").json
    assert row["cost"] == {"usd": pytest.approx(40 * 15e-6 + 3_000 * 3e-6), "unpriced": 0}
