"""How often somebody may ask. Counters are in the database: processes share them."""

from __future__ import annotations

import threading

from whyfor.model.errors import TooMany
from whyfor.store.shared import TeamDatabase

MINUTE = 60_000  # ms
CODES_MOST = 5  # wrong codes of a person in ten minutes
_STEP = 20  # requests that a process counts before it tells the database


class RateLimiter:
    def __init__(self, database: TeamDatabase, requests: int, entries: int) -> None:
        self._database = database
        self._requests = requests
        self._entries = entries
        self._lock = threading.Lock()
        self._counted: dict[str, tuple[int, int, int]] = {}  # the minute, told, not told yet

    def enter(self, ip: str, now: int) -> None:
        """Count an attempt to enter. Raises TooMany."""
        self._count(f"enter {ip}", MINUTE, self._entries, now)

    def wrong_code(self, person: int, now: int) -> None:
        """Count a wrong code of a device."""
        self._add(f"code {person}", 10 * MINUTE, 1, now)

    def check_codes(self, person: int, now: int) -> None:
        """Raise TooMany if a person has entered too many wrong codes."""
        if self._add(f"code {person}", 10 * MINUTE, 0, now) >= CODES_MOST:
            raise _too_many("five wrong codes were entered", 10 * MINUTE, now)

    def request(self, key: str, now: int) -> None:
        """Count a request of a token or an address. Raises TooMany. The database is told of every
        twentieth only."""
        minute, most = now // MINUTE, self._requests
        with self._lock:
            known, told, fresh = self._counted.get(key, (minute, 0, 0))
            if known != minute:
                told, fresh = 0, 0
            fresh += 1
            if fresh < _STEP and told + fresh <= most:
                self._counted[key] = (minute, told, fresh)
                return
            if len(self._counted) > 10_000:
                self._counted.clear()
        told = self._add(key, MINUTE, fresh, now)
        with self._lock:
            self._counted[key] = (minute, told, 0)
        if told > most:
            raise _too_many(f"{most} requests were made in this minute", MINUTE, now)

    def _count(self, key: str, period: int, most: int, now: int) -> None:
        if self._add(key, period, 1, now) > most:
            raise _too_many("this was tried too often", period, now)

    def _add(self, key: str, period: int, amount: int, now: int) -> int:
        with self._database.accounts.by(None) as accounts:
            return accounts.count_use(key, period, amount, now)


def _too_many(message: str, period: int, now: int) -> TooMany:
    seconds = (period - now % period) // 1000 + 1
    return TooMany(message, f"Try again in {seconds} seconds.", seconds)
