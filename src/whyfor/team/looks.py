"""Writing down who looked at which story, and who was refused; once in ten minutes for the same."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from whyfor.model.accounts import AuditNote
from whyfor.model.errors import WhyforError
from whyfor.team.actor import TeamActor

_AGAIN_MS = 10 * 60_000
_KNOWN_MOST = 10_000


class LookLog:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[int, AuditNote], int] = {}

    def looked(self, actor: TeamActor, project: int, params: Mapping[str, object]) -> None:
        """Write down that somebody read what the parameters of a route name: a session or a
        commit. Nothing if they name neither."""
        if "session_id" in params:
            what, which = "session.read", f"{params.get('agent', '')}:{params['session_id']}"
        elif "sha" in params:
            what, which = "commit.read", str(params["sha"])
        else:
            return
        self._write(actor, AuditNote("looked", what, which[:200], project))

    def refused(self, actor: TeamActor, route: str, project: int | None, status: int) -> None:
        """Write down that somebody asked for what they may not. A project that is nothing to them
        is named by its number, and belongs to no project's log."""
        said = f"{route}, project {project}" if project is not None else route
        self._write(actor, AuditNote("refused", "route.refuse", said, None, str(status)))

    def _write(self, actor: TeamActor, note: AuditNote) -> None:
        key = (actor.member.token, note)
        with self._lock:
            if self._known.get(key, 0) > actor.now - _AGAIN_MS:
                return
            if len(self._known) >= _KNOWN_MOST:
                self._known.clear()
            self._known[key] = actor.now
        try:
            actor.record(note)
        except WhyforError:
            with self._lock:
                self._known.pop(key, None)
            raise
