"""Read the list prices that come with Whyfor, and those that a person wrote down beside them.

`prices.json` is made from the data of the package genai-prices when Whyfor is built or installed
(`hatch_build.py`).
"""

from __future__ import annotations

import fnmatch
import zlib
from functools import lru_cache
from pathlib import Path

import msgspec

from whyfor.model.prices import ModelPrices, PriceEra, PriceTable, Vendor

LISTED = Path(__file__).parent / "prices.json"
OWN_PRICES = "prices.toml"  # in the Whyfor directory
_SIZE_MAX = 1_000_000  # bytes of a file of own prices
_OWN = "own"


class OwnPrice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A `[[model]]` of the file of own prices: dollars for a million tokens."""

    match: str  # the model's name; * stands for anything
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None


class _OwnPrices(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    model: list[OwnPrice] = []


def load_prices(home: Path) -> PriceTable:
    """Return all prices that hold for this Whyfor directory, own ones first. A file of own prices
    that cannot be understood is not used; the table says why."""
    try:
        path = home / OWN_PRICES
        if path.stat().st_size > _SIZE_MAX:
            return _with_problem(f"{OWN_PRICES} is larger than {_SIZE_MAX:,} bytes")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return list_prices()
    except (OSError, ValueError) as error:
        return _with_problem(f"{OWN_PRICES} cannot be read: {error}")
    return _with_own(text)


@lru_cache(maxsize=1)
def list_prices() -> PriceTable:
    """Return the prices that come with Whyfor; an empty table says why there are none."""
    try:
        data = LISTED.read_bytes()
    except FileNotFoundError:
        problem = "The table of list prices is missing. Install Whyfor again."
        return PriceTable("", "", (), stamp=1, problem=problem)
    table = msgspec.json.decode(data, type=PriceTable)
    return msgspec.structs.replace(table, stamp=zlib.crc32(data) or 1)


@lru_cache(maxsize=4)
def _with_own(text: str) -> PriceTable:
    import tomllib  # here: few people have prices of their own

    try:
        given = msgspec.convert(tomllib.loads(text), _OwnPrices)
        models = tuple(_own_model(one) for one in given.model)
    except (ValueError, msgspec.ValidationError) as error:
        return _with_problem(f"{OWN_PRICES} is not understood: {error}")
    table = list_prices()
    return msgspec.structs.replace(
        table,
        vendors=(Vendor(_OWN, models), *table.vendors),
        looked_up={},
        stamp=zlib.crc32(text.encode(), table.stamp) or 1,
    )


def _with_problem(problem: str) -> PriceTable:
    return msgspec.structs.replace(list_prices(), problem=f"Own prices are not used: {problem}")


def _own_model(given: OwnPrice) -> ModelPrices:
    numbers = (given.input, given.output, given.cache_read, given.cache_write, given.cache_write_1h)
    if any(number is not None and not 0 <= number < 1_000_000 for number in numbers):
        raise ValueError(f"a price of {given.match!r} is not a number of dollars")
    era = PriceEra(
        input=((0, given.input),),
        output=((0, given.output),),
        cache_read=_rates(given.cache_read),
        cache_write=_rates(given.cache_write),
        cache_write_1h=_rates(given.cache_write_1h),
    )
    pattern = fnmatch.translate(given.match.lower())
    return ModelPrices(given.match, ["regex", pattern], (era,))


def _rates(price: float | None) -> tuple[tuple[int, float], ...] | None:
    return None if price is None else ((0, price),)
