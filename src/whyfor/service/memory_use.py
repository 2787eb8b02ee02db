"""memory use: what sessions made of what they were told of earlier ones."""

from __future__ import annotations

from whyfor.config import Settings
from whyfor.model.errors import NotFound
from whyfor.model.memory import Injection, MemoryUse
from whyfor.model.query import SessionFilter
from whyfor.store.open import reading
from whyfor.store.protocol import SharedStore
from whyfor.story.injections import session_injections
from whyfor.story.session_lookup import parse_filters

PARTS = ("start", "threads", "prompt")


def memory_use(settings: Settings, since: str | None = None) -> list[MemoryUse]:
    """Return for each moment at which sessions were told something what they used of it, since a
    time; raises BadInput for one that is none."""
    with reading(settings) as store:
        begun = parse_filters(store, SessionFilter(since=since)).since or 0
        told = _told(store, begun)
    by_part: dict[str, list[list[Injection]]] = {}
    for session in told:
        for part in PARTS:
            of_part = [each for each in session if each.part == part]
            if of_part:
                by_part.setdefault(part, []).append(of_part)
    return [_together(part, by_part[part]) for part in PARTS if part in by_part]


def _told(store: SharedStore, since: int) -> list[list[Injection]]:
    """Return what each session was told, of those that are known."""
    found = []
    for agent, session_id in store.signals.told_sessions(since):
        try:
            session = store.sessions.find(session_id, agent)
        except NotFound:  # nothing was written in it, or it was forgotten
            continue
        injected = session_injections(store, session)
        found.append([each for each in injected if each.at >= since])
    return found


def _together(part: str, sessions: list[list[Injection]]) -> MemoryUse:
    every = [each for session in sessions for each in session]
    return MemoryUse(
        part=part,
        sessions=len(sessions),
        times=len(every),
        tokens=sum(each.tokens for each in every),
        files=sum(len(each.files) for each in every),
        files_used=sum(len(each.files_used) for each in every),
        sources=sum(len(each.sources) for each in every),
        fetched=sum(len(each.fetched) for each in every),
    )
