"""The type of the callback with which long work reports its progress."""

from __future__ import annotations

from collections.abc import Callable

# Called with the total; returns what is called with each amount done.
Announce = Callable[[int], Callable[[int], None]]
