"""How long work tells whoever shows a progress bar how far it is."""

from __future__ import annotations

from collections.abc import Callable

# Called with the total; returns what is called with each amount done.
Announce = Callable[[int], Callable[[int], None]]
