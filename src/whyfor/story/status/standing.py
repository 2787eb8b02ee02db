"""Who is told what sessions do now."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from whyfor.model.attention import Firing
from whyfor.model.status import LiveStatus


class StatusSink(Protocol):
    """What is asked of the hub; all of it from the loop's thread."""

    trouble: str | None
    """Why nothing is read at the moment."""

    def publish(self) -> None:
        """The store has something new."""

    def stand(self, standings: Iterable[LiveStatus]) -> None:
        """Where all sessions stand that are attended to."""

    def attend(self, firings: list[Firing], told: list[Firing]) -> None:
        """What a person should know now, and what of it is new or more urgent."""
