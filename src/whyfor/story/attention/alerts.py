"""Which firings are worth an alert now: levels, quiet hours, and one for what several share."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, time

import msgspec

from whyfor.model.attention import Firing, Level

SHARED = 3  # sessions with one cause that are told together
NEAR = 120_000  # ms within which they are
_HOURS = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\s*[-–]\s*([01]?\d|2[0-3]):([0-5]\d)")


class AlertGroup(msgspec.Struct, frozen=True):
    """One alert: a firing, or several of one cause."""

    firings: tuple[Firing, ...]

    @property
    def first(self) -> Firing:
        return self.firings[0]

    @property
    def level(self) -> Level:
        return "act" if any(each.level == "act" for each in self.firings) else self.first.level


class QuietHours(msgspec.Struct, frozen=True):
    """From one time of day to another, over midnight if need be."""

    begin: time
    end: time

    def holds(self, now: datetime) -> bool:
        at = now.time()
        if self.begin <= self.end:
            return self.begin <= at < self.end
        return at >= self.begin or at < self.end


def parse_hours(text: str) -> QuietHours | None:
    """Return the hours that `22:00-07:00` means; None if it is empty. Raises ValueError."""
    if not text.strip():
        return None
    found = _HOURS.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"not two times of day: {text!r}")
    numbers = [int(part) for part in found.groups()]
    return QuietHours(time(numbers[0], numbers[1]), time(numbers[2], numbers[3]))


class AlertGate:
    """Folds what several sessions share into one alert."""

    def __init__(self) -> None:
        self._recent: dict[str, dict[str, tuple[int, Firing]]] = {}  # by cause and session
        self._folded: dict[str, int] = {}  # when a cause was told for several

    def pick(self, told: Iterable[Firing], now: int) -> list[AlertGroup]:
        """Return the alerts for what is new: the same cause in three sessions within two minutes
        is one, and further ones are told with it."""
        by_cause: dict[str, list[Firing]] = {}
        for firing in told:
            by_cause.setdefault(firing.found.cause, []).append(firing)
        found: list[AlertGroup] = []
        for cause, firings in by_cause.items():
            found += self._of_cause(cause, firings, now)
        return found

    def _of_cause(self, cause: str, firings: list[Firing], now: int) -> list[AlertGroup]:
        kept = {
            session: (at, firing)
            for session, (at, firing) in self._recent.get(cause, {}).items()
            if now - at < NEAR
        }
        for firing in firings:
            kept[firing.session] = (now, firing)
        self._recent[cause] = kept
        if len(kept) < SHARED:
            return [AlertGroup((firing,)) for firing in firings]
        if now - self._folded.get(cause, -NEAR) < NEAR:
            return []
        self._folded[cause] = now
        return [AlertGroup(tuple(firing for _, firing in kept.values()))]
