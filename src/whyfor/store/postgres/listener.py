"""Hearing at once what other processes change: LISTEN, on a connection of its own.

A notice says only that something may have ended or changed, never what: it is outside of policies.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import psycopg

_AGAIN = 2.0  # seconds until a lost connection is made again
_TURN = 1.0  # seconds until it is looked whether to stop


class PostgresListener:
    """Calls `heard(payload)` for each notice of a channel, and `lost()` when some may be missed."""

    def __init__(
        self, url: str, channel: str, heard: Callable[[str], None], lost: Callable[[], None]
    ) -> None:
        self._url = url
        self._channel = channel
        self._heard = heard
        self._lost = lost
        self._stop = threading.Event()
        self.ready = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"listen-{channel}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(_TURN * 3)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with psycopg.connect(self._url, autocommit=True) as driver:
                    driver.execute(f'LISTEN "{self._channel}"')
                    self._lost()  # what was said before this cannot be known
                    self.ready.set()
                    self._follow(driver)
            except psycopg.Error:
                self._lost()
                self._stop.wait(_AGAIN)

    def _follow(self, driver: psycopg.Connection[object]) -> None:
        while not self._stop.is_set():
            for notice in driver.notifies(timeout=_TURN):
                self._heard(notice.payload)
                if self._stop.is_set():
                    return
