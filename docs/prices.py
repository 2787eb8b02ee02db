"""Write the list prices of models, from the package genai-prices, into Whyfor's own package.

`hatch_build.py` does so when Whyfor is built or installed, `make prices` by hand. The import of
genai-prices takes a third of a second and brings two more packages, so that no command imports it.
The files written are not part of the repository.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

from genai_prices import data, types

TABLE = Path(__file__).parent.parent / "src" / "whyfor" / "store" / "prices.json"
LICENSE = TABLE.with_suffix(".LICENSE")
# Who makes models, and sells them under their own names; resellers have prices of their own.
VENDORS = "anthropic openai google x-ai deepseek mistral moonshotai minimax zai cohere meta".split()
_SORTS = {
    "input": "input_mtok",
    "cache_read": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
    "cache_write_1h": "cache_write_1h_mtok",
    "output": "output_mtok",
}
_ASKS = (
    (types.ClauseEquals, "equals"),
    (types.ClauseStartsWith, "starts_with"),
    (types.ClauseEndsWith, "ends_with"),
    (types.ClauseContains, "contains"),
    (types.ClauseRegex, "regex"),
)


def price_table() -> dict[str, Any]:
    """Return the prices of text models, as they are written to the file."""
    known = {provider.id: provider for provider in data.providers}
    vendors = [_vendor(known[name]) for name in VENDORS]
    return {
        "source": f"genai-prices {version('genai-prices')}",
        "license": "MIT, Copyright (c) 2025 to present Pydantic Services Inc.",
        "date": str(max(_dates(vendors))),
        "vendors": vendors,
    }


def write_table() -> None:
    table = price_table()
    vendors = [json.dumps(vendor, separators=(",", ":")) for vendor in table.pop("vendors")]
    head = json.dumps(table, indent=1).removesuffix("\n}")
    TABLE.write_text(f'{head},\n "vendors": [\n{_lines(vendors)}\n]}}\n', encoding="utf-8")
    LICENSE.write_text(_license(), encoding="utf-8")


def _license() -> str:
    text = distribution("genai-prices").read_text("licenses/LICENSE")
    if text is None:
        raise FileNotFoundError("genai-prices comes without its licence")
    return text


def _lines(parts: list[str]) -> str:
    return ",\n".join(part.replace('},{"id"', '},\n{"id"') for part in parts)


def _dates(vendors: list[dict[str, Any]]) -> Iterator[date]:
    """The days on which a price changed, up to today: the last one dates the table."""
    for vendor in vendors:
        for model in vendor["models"]:
            changes = [date.fromisoformat(era["since"]) for era in model["eras"] if era["since"]]
            yield from (day for day in changes if day <= date.today())


def _vendor(provider: types.Provider) -> dict[str, Any]:
    models = [_model(model) for model in provider.models]
    asks = None if provider.model_match is None else _clause(provider.model_match)
    return {
        "name": provider.id,
        "match": asks,
        "models": [model for model in models if model is not None],
    }


def _model(model: types.ModelInfo) -> dict[str, Any] | None:
    """Return None for one whose price depends on the time of day, or is not per token."""
    given = model.prices
    if isinstance(given, types.ModelPrice):
        eras = [_era(None, given)]
    else:
        eras = []
        for one in given:
            if isinstance(one.constraint, types.TimeOfDateConstraint):
                return None
            since = one.constraint.start_date if one.constraint else None
            eras.append(_era(since, one.prices))
    if any("input" not in era or "output" not in era for era in eras):
        return None
    return {"id": model.id, "match": _clause(model.match), "eras": eras}


def _era(since: date | None, prices: types.ModelPrice) -> dict[str, Any]:
    """Dollars for a million tokens, by the size of the request above which they hold."""
    found: dict[str, Any] = {"since": str(since) if since else None}
    for name, key in _SORTS.items():
        price = getattr(prices, key)
        if isinstance(price, types.TieredPrices):
            tiers = [[tier.start, float(tier.price)] for tier in price.tiers]
            found[name] = [[0, float(price.base)], *tiers]
        elif price is not None:
            found[name] = [[0, float(price)]]
    return found


def _clause(clause: Any) -> list[Any]:
    """Say how a name is compared: [how, text], or [any or all, clause …]."""
    if isinstance(clause, types.ClauseOr):
        return ["any", *map(_clause, clause.or_)]
    if isinstance(clause, types.ClauseAnd):
        return ["all", *map(_clause, clause.and_)]
    for sort, name in _ASKS:
        if isinstance(clause, sort):
            return [name, getattr(clause, name)]
    raise TypeError(f"no such clause: {clause!r}")


if __name__ == "__main__":
    write_table()
