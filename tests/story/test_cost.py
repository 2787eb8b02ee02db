"""Sums of cost: groups, days and weeks, one period against another."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from whyfor.model.cost import Cost, add_costs, cost_of, cost_text, dollars, short_cost
from whyfor.model.prices import NANO
from whyfor.model.sessions import Tokens
from whyfor.model.stats import CostChange, CostRow, PriceSource
from whyfor.server.cost_charts import FLOOR, ROOF, change_words, cost_chart, cost_meters
from whyfor.service.insights_cost import CostGroup, CostOverview
from whyfor.story.cost import cost_periods, group_costs, sum_costs, unpriced_models

START = date(2026, 5, 4)


def row(
    day: date, usd: float | None, model: str = "a", *, agent: str = "claude", unpriced: int = 0
) -> CostRow:
    nano = None if usd is None else round(usd * NANO)
    tokens = Tokens(100, 300, None, 50, None, nano, unpriced)
    return CostRow(str(day), agent, "shop", model, 2, None if usd is None else NANO, tokens)


ROWS = [
    row(START, 1.0),
    row(START, 2.0, "b", agent="codex"),
    row(START + timedelta(days=8), 4.0),
    row(START + timedelta(days=9), None, "c", unpriced=2),
]


def test_groups_add_up_and_the_unknown_stays_unknown() -> None:
    for by in ("agent", "project", "model", "day"):
        assert add_costs(one.cost for one in group_costs(ROWS, by)) == Cost(7.0, 2)
    models = {one.name: one.cost for one in group_costs(ROWS, "model")}
    assert models == {"a": Cost(5.0), "b": Cost(2.0), "c": Cost(None, 2)}
    assert [one.name for one in group_costs(ROWS, "agent")] == ["claude", "codex"]
    assert [one.name for one in unpriced_models(ROWS)] == ["c"]
    whole = sum_costs("all", ROWS)
    assert (whole.responses, whole.saved, whole.cached) == (8, 3.0, 0.75)
    nothing = sum_costs("none", [])
    assert (nothing.cost, nothing.saved, nothing.cached) == (Cost(), None, None)


def test_days_are_told_one_by_one_and_many_by_weeks() -> None:
    days = cost_periods(ROWS, START, START + timedelta(days=9), ["a"])
    assert len(days) == 10
    assert days[0].shares == (1.0, 2.0)
    assert days[-1].cost == Cost(None, 2)
    weeks = cost_periods(ROWS, START, START + timedelta(days=99), ["a", "b"])
    assert [week.shares for week in weeks[:3]] == [(1.0, 2.0, 0.0), (4.0, 0.0, 0.0), (0.0,) * 3]
    assert weeks[1].cost == Cost(4.0, 2)
    assert weeks[-1].last == START + timedelta(days=99)
    assert sum(sum(week.shares) for week in weeks) == 7.0


@pytest.mark.parametrize(
    ("usd", "said"),
    [
        (0.0, "$0.00"),
        (2.314, "$2.31"),
        (1204.5, "$1,204.50"),
        (0.0041, "$0.004"),
        (0.0001, "< $0.001"),
        (-0.16, "−$0.16"),
    ],
)
def test_dollars_are_never_a_silent_zero(usd: float, said: str) -> None:
    assert dollars(usd) == said


def test_a_cost_says_whether_it_is_all() -> None:
    assert (cost_text(Cost(2.0)), short_cost(Cost(2.0))) == ("$2.00", "$2.00")
    assert (cost_text(Cost(2.0, 1)), short_cost(Cost(2.0, 1))) == ("at least $2.00", "≥ $2.00")
    assert (cost_text(Cost()), short_cost(Cost(None, 3))) == ("unknown", "?")
    assert cost_of(Tokens(cost=0, unpriced=1)) == Cost(None, 1)
    assert cost_of(Tokens(cost=0, unpriced=0)) == Cost(0.0)


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [(112.0, 100.0, "↑ 12 %"), (97.0, 100.0, "↓ 3 %"), (100.2, 100.0, "the same as before")],
)
def test_one_period_is_compared_with_the_other(now: float, before: float, said: str) -> None:
    assert change_words(CostChange(Cost(now), Cost(before))) == said


def test_what_is_unknown_is_not_compared() -> None:
    assert change_words(CostChange(Cost(None, 3), Cost(1.0))) == ""
    assert change_words(CostChange(Cost(1.0), Cost())) == ""


def test_columns_stack_to_their_sum_and_stay_in_the_picture() -> None:
    until = START + timedelta(days=9)
    whole = sum_costs("all", ROWS)
    periods = cost_periods(ROWS, START, until, ["a"])
    before = sum_costs("all", [row(START, 30.0)])
    found = CostOverview(
        since=START,
        until=until,
        days=10,
        whole=whole,
        before=before,
        change=CostChange(whole.cost, before.cost),
        periods=periods,
        models=[],
        other_models=0,
        by_agent=[],
        by_project=[],
        turns=0,
        unknown_turns=0,
        unpriced=[],
        prices=PriceSource("", "", None),
        projects=[],
    )
    assert found.dearest == periods[8]
    chart = cost_chart(found)
    first = chart.columns[0]
    assert sum(part.height for part in first.parts) == pytest.approx(FLOOR - first.top, abs=0.2)
    assert chart.columns[-1].cap is not None  # something has no price there
    assert all(ROOF <= column.top <= FLOOR for column in chart.columns)
    assert chart.before is not None
    assert chart.before.word == "before: $3.00 a day"
    assert [line.word for line in chart.lines] == ["$0", "$1", "$2", "$3", "$4"]


def test_small_groups_are_put_together_and_lose_nothing() -> None:
    groups = [
        CostGroup(sum_costs(str(number), [row(START, float(10 - number))]), None, 1, 0)
        for number in range(10)
    ]
    meters = cost_meters(groups)
    assert len(meters) == 6
    assert (meters[-1].name, meters[-1].others) == ("5 others", 5)
    assert add_costs(meter.cost for meter in meters).usd == pytest.approx(55.0)
    assert meters[0].width <= 100
    assert meters[0].each == "$10.00 a turn"
