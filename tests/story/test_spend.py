"""What today cost against the budget, with and without one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.model.cost import Cost, DaySpend
from whyfor.service.ingest import ingest
from whyfor.store.open import reading
from whyfor.story.spend import day_spend

Cli = Callable[..., Result]


def test_a_day_is_counted_from_midnight_and_compared_with_the_budget(
    settings: Settings, home: Path, cli: Cli
) -> None:
    for name, ago in (("now", timedelta(0)), ("before", timedelta(days=2))):
        talk = Transcript(name, live=True, ago=ago)
        talk.prompt("Fix the door")
        talk.block({"type": "text", "text": "Fixed."}, output=100_000, model="claude-opus-4-8")
        talk.save(home)
    ingest(settings)
    now = datetime.now().astimezone()
    with reading(settings) as library:
        today = day_spend(library, 2.0, now)
        quiet = day_spend(library, None, now - timedelta(days=1))
    assert today.cost.usd is not None and 2.4 < today.cost.usd < 2.6
    assert today.share is not None and 1.2 < today.share < 1.3
    assert (quiet.cost, quiet.share) == (Cost(None, 0), None)
    (settings.home / "config.toml").write_text("[cost]\nday_budget = 2.0\n")
    assert "Today: $2.50 of $2.00" in cli("stats", "--cost").out
    assert cli("stats", "--cost", "--json").json["day_budget"] == 2.0


def test_without_a_known_cost_nothing_is_compared() -> None:
    assert DaySpend(Cost(None, 3), 5.0).share is None
    assert DaySpend(Cost(5.0), None).share is None
