"""The filters of an ingest, from the current pauses and exclusions."""

from __future__ import annotations

from whyfor.capture.exclusions import excluded, tell_hooks
from whyfor.capture.filters.paused import PauseFilter
from whyfor.capture.filters.pauses import Pauses
from whyfor.capture.pauses import settle_pauses
from whyfor.config import Settings
from whyfor.store.open import journal
from whyfor.store.protocol import Store


def load_filters(settings: Settings, store: Store) -> PauseFilter:
    """Load the current pauses and exclusions, and write them for the hooks."""
    settle_pauses(settings, store, journal(settings))
    found = excluded(settings, store)
    tell_hooks(settings, found, store)
    return PauseFilter(Pauses(settings.home, store.capture.pauses()), found)
