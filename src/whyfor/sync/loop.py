"""Sending while somebody serves: at once after git's hooks, and whatever waits now and then."""

from __future__ import annotations

import threading
import time

from whyfor.capture.faults import log_error
from whyfor.config import Settings
from whyfor.model.errors import WhyforError
from whyfor.store.open import reading_local
from whyfor.sync.worker import run_sync

LOOK = 2.0  # seconds between two looks at what hooks told
LIVELY = 30.0  # seconds after a hook in which every look is a pass: a push takes a while
EVERY = 60.0  # seconds between two passes without a hook


def sync_continuously(settings: Settings, stop: threading.Event) -> None:
    """Send what waits until `stop` is set; never raises."""
    heard, lively, due = -1, 0.0, 0.0
    while not stop.wait(LOOK):
        if not settings.shares_anything:
            continue
        now = time.monotonic()
        try:
            newest = _newest_signal(settings)
            if newest != heard:
                heard, lively = newest, now + LIVELY
            if now < lively or now >= due:
                due = now + EVERY
                run_sync(settings, "serve")
        except WhyforError:
            continue  # the outbox says what is wrong
        except Exception as error:  # noqa: BLE001 - written down, and the next pass tries again
            log_error(settings, error)


def _newest_signal(settings: Settings) -> int:
    with reading_local(settings) as store:
        return store.signals.newest()
