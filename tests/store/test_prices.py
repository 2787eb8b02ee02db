"""Prices: the table that comes with Whyfor, and the file of own prices."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime
from pathlib import Path

import msgspec
import pytest
from genai_prices import Usage, calc_price, data

from whyfor.model.prices import NANO, UNPRICED, Consumption, Price, cache_saving, price_of
from whyfor.store import price_table
from whyfor.store.price_table import OWN_PRICES, load_prices

SONNET = Consumption("claude-sonnet-4-6", 0, 100, output=10)


def _price(used: Consumption, home: Path = Path("/nowhere")) -> Price:
    return price_of(used, load_prices(home).find)


def _at(day: str) -> int:
    return round(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp() * 1000)


def _listed_names() -> list[tuple[str, str]]:
    """Vendor and id of every model in the table."""
    table = load_prices(Path("/nowhere"))
    return [(vendor.name, model.id) for vendor in table.vendors for model in vendor.models]


def test_the_table_gives_the_figures_of_the_package_it_was_copied_from() -> None:
    chance = random.Random(7)
    compared = 0
    for vendor, name in _listed_names():
        for size in (900, 150_000, 250_000, 600_000):
            day = date.fromordinal(chance.randint(date(2024, 6, 1).toordinal(), 740_300))
            read, write = chance.randint(0, size), chance.randint(0, size // 4)
            hour = chance.randint(0, write)
            out = chance.randint(0, 9_000)
            given = Usage(
                input_tokens=size + read + write,
                cache_read_tokens=read,
                cache_write_tokens=write,
                cache_write_1h_tokens=hour,
                output_tokens=out,
            )
            when = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
            try:
                theirs = calc_price(given, name, genai_request_timestamp=when)
            except LookupError:
                continue  # a vendor it finds by its address only
            if theirs.provider.id != vendor or theirs.model.id != name:
                continue  # the name alone means a model of somebody else
            used = Consumption(name, _at(str(day)), size, read, write, hour, out)
            ours = _price(used).nano
            assert ours is not None, (vendor, name)
            assert ours / NANO == pytest.approx(float(theirs.total_price), rel=1e-9, abs=1e-9), name
            compared += 1
    assert compared > 700


def test_the_table_is_the_one_of_the_package() -> None:
    from docs import prices

    made = prices.price_table()
    kept = msgspec.json.decode(prices.TABLE.read_bytes())
    assert {**kept, "date": ""} == {**made, "date": ""}
    assert {provider.id for provider in data.providers} >= {
        vendor["name"] for vendor in kept["vendors"]
    }
    assert kept["date"] >= "2026-09-01"


def test_the_price_of_the_day_holds() -> None:
    big = msgspec.structs.replace(SONNET, input=300_000, output=0)
    before = _price(msgspec.structs.replace(big, at=_at("2026-03-12")))
    after = _price(msgspec.structs.replace(big, at=_at("2026-03-13")))
    assert (before.nano, after.nano) == (300_000 * 6_000, 300_000 * 3_000)


@pytest.mark.parametrize(
    "used",
    [
        msgspec.structs.replace(SONNET, model="gpt-demo-2"),
        msgspec.structs.replace(SONNET, model=None),
        msgspec.structs.replace(SONNET, terms="fast"),
        msgspec.structs.replace(SONNET, at=None),  # its price changed once
        msgspec.structs.replace(SONNET, input=None, output=None),
    ],
)
def test_what_has_no_known_price_stays_unknown(used: Consumption) -> None:
    assert _price(used) == UNPRICED


def test_a_part_without_its_tokens_is_the_least_it_can_cost() -> None:
    assert _price(msgspec.structs.replace(SONNET, input=None)) == Price(10 * 15_000, partial=True)
    assert _price(msgspec.structs.replace(SONNET, output=None)) == Price(100 * 3_000, partial=True)
    # Of many requests together nobody knows which were large enough for the higher price.
    many = msgspec.structs.replace(SONNET, model="claude-sonnet-4-5", input=900_000, lump=True)
    assert _price(many) == Price(900_000 * 3_000 + 10 * 15_000, partial=True)


def test_what_the_agent_says_it_cost_is_believed() -> None:
    told = msgspec.structs.replace(SONNET, model="gpt-demo-2", reported=123)
    assert _price(told) == Price(123, partial=False)


def test_nothing_used_costs_nothing_whatever_the_model() -> None:
    assert _price(Consumption("<synthetic>", None, 0, 0, 0, output=0)) == Price(0, partial=False)


def test_names_of_routers_and_dated_names_are_the_same_model() -> None:
    find = load_prices(Path("/nowhere")).find
    plain = find("claude-opus-4-6")
    assert plain is not None
    assert find("anthropic/Claude-Opus-4.6") is plain
    assert find("claude-opus-4-6[1m]") is plain
    assert find("x" * 100_000) is None


def test_the_cache_saves_what_reading_it_saves_less_what_writing_it_costs() -> None:
    find = load_prices(Path("/nowhere")).find
    read = msgspec.structs.replace(SONNET, at=_at("2026-05-01"), cache_read=1_000)
    assert cache_saving(read, find) == 1_000 * (3_000 - 300)
    written = msgspec.structs.replace(
        SONNET, at=_at("2026-05-01"), cache_write=1_000, cache_hour=400
    )
    assert cache_saving(written, find) == 1_000 * 3_000 - 600 * 3_750 - 400 * 6_000
    unknown = msgspec.structs.replace(read, model="?")
    assert cache_saving(unknown, find) is None
    assert cache_saving(msgspec.structs.replace(read, input=None), find) is None
    assert cache_saving(SONNET, find) == 0


def test_own_prices_come_first(tmp_path: Path) -> None:
    (tmp_path / OWN_PRICES).write_text(
        '[[model]]\nmatch = "gpt-demo-*"\ninput = 2.0\noutput = 8.0\n'
        '[[model]]\nmatch = "claude-sonnet-4-6"\ninput = 1\noutput = 1\n'
    )
    assert (
        _price(msgspec.structs.replace(SONNET, model="gpt-demo-2"), tmp_path).nano
        == 100 * 2_000 + 10 * 8_000
    )
    assert _price(SONNET, tmp_path).nano == 110_000
    assert load_prices(tmp_path).stamp != load_prices(tmp_path / "other").stamp


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[model]\n", "is not understood"),
        ('[[model]]\nmatch = "a"\n', "input"),
        ('[[model]]\nmatch = "a"\ninput = -1\noutput = 2\n', "not a number of dollars"),
        ('[[model]]\nmatch = "a"\ninput = 1\noutput = 2\nper = "hour"\n', "per"),
        ("x" * 1_000_001, "larger"),
    ],
)
def test_a_file_of_own_prices_that_is_wrong_is_named_and_not_used(
    tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / OWN_PRICES).write_text(text)
    found = load_prices(tmp_path)
    assert found.problem is not None
    assert said in found.problem
    assert found.find("claude-opus-4-6") is not None


def test_without_the_table_every_price_is_unknown_and_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(price_table, "LISTED", tmp_path / "prices.json")
    price_table.list_prices.cache_clear()
    try:
        found = load_prices(tmp_path)
        assert price_of(SONNET, found.find) == UNPRICED
        assert found.problem is not None and "missing" in found.problem
    finally:
        monkeypatch.undo()
        price_table.list_prices.cache_clear()
