"""What work costs at list price, and how that is said."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.prices import NANO
from whyfor.model.sessions import Tokens

LABEL = "API price"  # what the tokens cost at list price; not what anybody paid


class Cost(msgspec.Struct, frozen=True):
    """Dollars at list price. None: nothing of it has a known price. `unpriced` responses are not in
    it, or not wholly: then it is the least it can be."""

    usd: float | None = None
    unpriced: int = 0

    @property
    def at_least(self) -> bool:
        return self.usd is not None and self.unpriced > 0


class DaySpend(msgspec.Struct, frozen=True):
    """The cost of a day at list price, and the budget; None if there is none."""

    cost: Cost
    budget: float | None

    @property
    def share(self) -> float | None:
        """Return how much of the budget is used, 1 for all of it; None without one, or if nothing
        of the cost is known."""
        if self.budget is None or self.cost.usd is None:
            return None
        return self.cost.usd / self.budget


def cost_of(tokens: Tokens) -> Cost:
    """Return the price of these tokens."""
    return nano_cost(tokens.cost, tokens.unpriced)


def nano_cost(nano: int | None, unpriced: int | None) -> Cost:
    """Return the cost for a number of billionths of a dollar. At least nothing is unknown."""
    if nano is None or (unpriced and not nano):
        return Cost(None, unpriced or 0)
    return Cost(nano / NANO, unpriced or 0)


def add_costs(parts: Iterable[Cost]) -> Cost:
    """Return the sum of what is known; responses without a price are counted."""
    kept = list(parts)
    known = [part.usd for part in kept if part.usd is not None]
    return Cost(sum(known) if known else None, sum(part.unpriced for part in kept))


def dollars(usd: float) -> str:
    """$2.31, −$0.16, $1,204.50; below a cent $0.004, and nothing but zero is $0.00."""
    sign = "−" if usd < 0 else ""
    size = abs(usd)
    if 0 < size < 0.01:
        return f"{sign}${size:.3f}" if size >= 0.0005 else "< $0.001"
    return f"{sign}${size:,.2f}"


def cost_text(cost: Cost) -> str:
    """$2.31, at least $2.31, or unknown."""
    if cost.usd is None:
        return "unknown"
    return f"at least {dollars(cost.usd)}" if cost.unpriced else dollars(cost.usd)


def short_cost(cost: Cost) -> str:
    """The same for a column: $2.31, ≥ $2.31; ? if it is unknown."""
    if cost.usd is None:
        return "?"
    return f"≥ {dollars(cost.usd)}" if cost.unpriced else dollars(cost.usd)
