"""Which prompts were abandoned: rewound, rolled back, or on a branch the conversation left."""

from __future__ import annotations

from collections.abc import Sequence

from whyfor.model.events import StoredEvent


def abandoned(events: Sequence[StoredEvent]) -> set[int]:
    """Turns that are no longer part of the conversation, though nothing of them is lost."""
    return _left_branches(events) | _rolled_back(events)


def _left_branches(events: Sequence[StoredEvent]) -> set[int]:
    """In a tree of parents, turns that do not lead to the last message."""
    parents: dict[str, str | None] = {}
    turn_of: dict[str, int] = {}
    last: str | None = None
    for event in events:
        data = event.data or {}
        uuid = data.get("uuid")
        if isinstance(uuid, str):
            parents[uuid] = data.get("parent")
            turn_of[uuid] = event.turn
            last = uuid
    kept: set[int] = set()
    seen: set[str] = set()
    at = last
    while at is not None and at not in seen:
        seen.add(at)
        if at in turn_of:
            kept.add(turn_of[at])
        at = parents.get(at)
    broken = at is None and not _reaches_root(parents, seen)
    prompts = {
        e.turn for e in events if e.kind == "user.prompt" and (e.data or {}).get("uuid") in turn_of
    }
    return set() if broken or last is None else prompts - kept


def _reaches_root(parents: dict[str, str | None], path: set[str]) -> bool:
    """A chain that breaks off at a record we have no event for says nothing about what came
    before."""
    return any(parents.get(node, "") is None for node in path)


def _rolled_back(events: Sequence[StoredEvent]) -> set[int]:
    gone: set[int] = set()
    live: list[int] = []
    by_id: dict[object, int] = {}
    for event in events:
        data = event.data or {}
        if event.kind == "user.prompt":
            live.append(event.turn)
            by_id[data.get("id")] = event.turn
        count = data.get("rolled_back_turns")
        if isinstance(count, int) and count > 0:
            gone.update(live[-count:])
            del live[-count:]
        if (target := data.get("rewound_to")) is not None and target in by_id:
            index = live.index(by_id[target]) if by_id[target] in live else len(live)
            gone.update(live[index:])
            del live[index:]
    return gone
