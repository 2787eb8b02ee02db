"""List prices of models: which one holds for a response, and what the response costs by it.

Money is counted in billionths of a dollar, as whole numbers: a token of the cheapest model costs a
few of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

NANO = 1_000_000_000  # of a dollar
_PER_MILLION = NANO / 1_000_000
_NAME_MAX = 200  # no model has a longer name
_LOOKED_UP_MAX = 500
# gpt-5.2-20251211 is the name some give to gpt-5.2-2025-12-11
_COMPACT_DATE = re.compile(r"-(20\d\d)(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")

Clause = list[Any]  # [how, text], or [any or all, clause …]
Rates = tuple[tuple[int, float], ...]  # size of a request above which it holds, dollars per million


class PriceEra(msgspec.Struct, frozen=True):
    """Prices of a model from a day on; from the beginning if `since` is None."""

    input: Rates
    output: Rates
    since: str | None = None  # 2026-03-13, in UTC
    cache_read: Rates | None = None
    cache_write: Rates | None = None
    cache_write_1h: Rates | None = None


class ModelPrices(msgspec.Struct, frozen=True):
    """A model under all its names, and what it cost when."""

    id: str
    match: Clause
    eras: tuple[PriceEra, ...]

    def era_at(self, at: int | None) -> PriceEra | None:
        """Return the prices of a time (ms); None if the time is unknown and they changed."""
        if len(self.eras) == 1:
            return self.eras[0]
        if at is None:
            return None
        day = str(datetime.fromtimestamp(at / 1000, UTC).date())
        active = [era for era in self.eras if era.since is None or era.since <= day]
        return active[-1] if active else self.eras[0]


class Vendor(msgspec.Struct, frozen=True):
    """Who makes models. Without `match`, every name may be one of its models."""

    name: str
    models: tuple[ModelPrices, ...]
    match: Clause | None = None


class PriceTable(msgspec.Struct, frozen=True):
    """The prices of all vendors, the more special first."""

    source: str  # where they are from, with its version
    date: str  # when the last of them changed
    vendors: tuple[Vendor, ...]
    stamp: int = 0  # another number for other prices
    problem: str | None = None  # why own prices are not used, or there are none at all
    looked_up: dict[str, ModelPrices | None] = {}  # names that were asked for

    def find(self, model: str) -> ModelPrices | None:
        """Return the prices of a model by any of its names; None if it is not known."""
        if model not in self.looked_up:
            if len(self.looked_up) >= _LOOKED_UP_MAX:
                self.looked_up.clear()
            self.looked_up[model] = self._find(model[:_NAME_MAX])
        return self.looked_up[model]

    def _find(self, model: str) -> ModelPrices | None:
        name = model.lower().rpartition("/")[2]
        dashed = _COMPACT_DATE.sub(r"-\1-\2-\3", name)
        for form in dict.fromkeys((name, dashed)):
            for vendor in self.vendors:
                found = _of_vendor(vendor, form)
                if found is not None:
                    return found
        return None


class Consumption(msgspec.Struct, frozen=True):
    """The tokens of one response, or of several together; None is unknown."""

    model: str | None
    at: int | None
    input: int | None  # without what came from the cache or went there
    cache_read: int | None = None
    cache_write: int | None = None
    cache_hour: int | None = None  # of those written, kept for an hour
    output: int | None = None  # with the reasoning, if that is paid for
    lump: bool = False  # of several responses: how large each was is unknown
    terms: str | None = None  # not the usual ones: batch, fast, priority
    reported: int | None = None  # what the agent says it cost, in NANO of a dollar

    @property
    def size(self) -> int:
        """Return the tokens of the request, as far as they are known."""
        return (self.input or 0) + (self.cache_read or 0) + (self.cache_write or 0)


class Price(msgspec.Struct, frozen=True):
    """What a response costs; `partial` if that is not all."""

    nano: int | None
    partial: bool


UNPRICED = Price(None, partial=True)


def price_of(used: Consumption, find: Callable[[str], ModelPrices | None]) -> Price:
    """Return the price of a response. What the agent says it cost is believed first."""
    if used.reported is not None:
        return Price(used.reported, partial=False)
    counts = (used.input, used.cache_read, used.cache_write, used.output)
    if used.input == 0 and used.output == 0 and not any(counts):
        return Price(0, partial=False)
    known = find(used.model) if used.model and not used.terms else None
    era = known.era_at(used.at) if known else None
    if era is None or (used.input is None and used.output is None):
        return UNPRICED
    nano = _list_price(used, era)
    missing = used.input is None or used.output is None
    if missing and not nano:
        return UNPRICED  # at least nothing says nothing
    tiered = used.lump and any(used.size > start for start, _ in era.input[1:])
    return Price(nano, partial=missing or tiered)


def _list_price(used: Consumption, era: PriceEra) -> int:
    """Return what the known tokens cost, in NANO of a dollar; a lump at the lowest tier."""
    hour = min(used.cache_hour or 0, used.cache_write or 0)
    written = era.cache_write or era.input
    size = 0 if used.lump else used.size
    dollars = (used.input or 0) * _rate(era.input, size)
    dollars += (used.cache_read or 0) * _rate(era.cache_read or era.input, size)
    dollars += ((used.cache_write or 0) - hour) * _rate(written, size)
    dollars += hour * _rate(era.cache_write_1h or written, size)
    dollars += (used.output or 0) * _rate(era.output, size)
    return round(dollars * _PER_MILLION)


def cache_saving(
    used: Consumption, find: Callable[[str], ModelPrices | None], known: Price | None = None
) -> int | None:
    """Return what the same tokens would cost more without the cache, in NANO of a dollar; less
    than 0 if writing it cost more than reading it saved. None if the price or the input is
    unknown. `known` is what `price_of` says of them, if it was asked already."""
    if used.input is None:
        return None
    if not used.cache_read and not used.cache_write:
        return 0
    bare = used if used.reported is None else msgspec.structs.replace(used, reported=None)
    if known is None or bare is not used:
        known = price_of(bare, find)
    plain = msgspec.structs.replace(
        bare, input=used.size, cache_read=None, cache_write=None, cache_hour=None
    )
    without = price_of(plain, find)
    if known.nano is None or without.nano is None:
        return None
    return without.nano - known.nano


def _rate(rates: Rates, size: int) -> float:
    """The price of a request of this size: the whole request costs what its tier costs."""
    found = rates[0][1]
    if len(rates) > 1:
        for start, price in rates[1:]:
            if size > start:
                found = price
    return found


def _of_vendor(vendor: Vendor, name: str) -> ModelPrices | None:
    if vendor.match is not None and not _fits(vendor.match, name):
        return None
    return next((model for model in vendor.models if _fits(model.match, name)), None)


def _fits(clause: Clause, name: str) -> bool:
    how, *rest = clause
    if how in ("any", "all"):
        fits = [_fits(part, name) for part in rest]
        return any(fits) if how == "any" else all(fits)
    return _COMPARES[how](name, rest[0])


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


_COMPARES: dict[str, Callable[[str, str], bool]] = {
    "equals": lambda name, text: name == text.lower(),
    "starts_with": lambda name, text: name.startswith(text.lower()),
    "ends_with": lambda name, text: name.endswith(text.lower()),
    "contains": lambda name, text: text.lower() in name,
    "regex": lambda name, text: _compiled(text).search(name) is not None,
}
