"""A session with what it does now."""

from __future__ import annotations

import msgspec

from whyfor.model.sessions import Session
from whyfor.story.status import Status
from whyfor.story.summary import Summary


class Standing(msgspec.Struct, frozen=True):
    """A session and what it does now."""

    session: Session
    status: Status
    summary: Summary | None = None  # the last turns in a few lines
    pid: int | None = None  # of the agent, if it said

    @property
    def name(self) -> str:
        return f"{self.session.agent}:{self.session.session_id}"
