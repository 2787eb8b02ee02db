"""A session with what it does now, and who is told of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import msgspec

from whyfor.model.sessions import Session
from whyfor.story.status.judge import Status
from whyfor.story.summary import Summary


class LiveStatus(msgspec.Struct, frozen=True):
    """A session and what it does now."""

    session: Session
    status: Status
    summary: Summary | None = None  # the last turns in a few lines
    pid: int | None = None  # of the agent, if it said

    @property
    def name(self) -> str:
        return f"{self.session.agent}:{self.session.session_id}"


class StatusSink(Protocol):
    """What is asked of the hub; all of it from the loop's thread."""

    trouble: str | None
    """Why nothing is read at the moment."""

    def publish(self) -> None:
        """The store has something new."""

    def stand(self, standings: Iterable[LiveStatus]) -> None:
        """Where all sessions stand that are attended to."""
