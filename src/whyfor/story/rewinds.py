"""Which prompts were abandoned: rewound, rolled back, or on a branch the conversation left."""

from __future__ import annotations

from collections.abc import Sequence

from whyfor.model.events import StoredEvent


def abandoned(events: Sequence[StoredEvent]) -> set[int]:
    """Turns that are no longer part of the conversation, though nothing of them is lost."""
    return _left_branches(events) | _rolled_back(events)


def _left_branches(events: Sequence[StoredEvent]) -> set[int]:
    """Return, in a tree of parents, the turns that do not lead to the last message."""
    parents: dict[str, str | None] = {}
    turn_of: dict[str, int] = {}
    prompts: set[int] = set()
    last: str | None = None
    for event in events:
        data = event.data or {}
        uuid = data.get("uuid")
        if isinstance(uuid, str):
            parents[uuid] = data.get("parent")
            turn_of[uuid] = event.turn
            last = uuid
            if event.kind == "user.prompt":
                prompts.add(event.turn)
    path, ended = _path_to_root(parents, last)
    # A chain that breaks off at a record we have no event for says nothing about what came before.
    if ended and not any(parents.get(node, "") is None for node in path):
        return set()
    kept = {turn_of[node] for node in path if node in turn_of}
    return prompts - kept


def _path_to_root(parents: dict[str, str | None], node: str | None) -> tuple[set[str], bool]:
    """Return a node with all above it, and whether they end; False if they go in a circle."""
    path: set[str] = set()
    while node is not None and node not in path:
        path.add(node)
        node = parents.get(node)
    return path, node is None


def _rolled_back(events: Sequence[StoredEvent]) -> set[int]:
    """Return the turns that a later record took back, by their number or by the prompt's id."""
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
        target = data.get("rewound_to")
        turn = by_id.get(target) if target is not None else None
        if turn in live:
            index = live.index(turn)
            gone.update(live[index:])
            del live[index:]
    return gone
