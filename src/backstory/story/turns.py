"""Turns: from a real user prompt to the next one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from backstory.model.events import StoredEvent


class Turn(msgspec.Struct):
    turn: int
    prompt: str | None = None
    closing: str | None = None  # the agent's last words
    started_at: int | None = None
    ended_at: int | None = None
    tools: dict[str, int] = {}
    failures: int = 0
    errors: list[str] = []
    questions: list[str] = []
    interrupted: bool = False
    first_seq: int = 0
    last_seq: int = 0


def turns(events: Iterable[StoredEvent]) -> list[Turn]:
    found: dict[int, Turn] = {}
    tools: dict[int, Counter[str]] = {}
    for event in events:
        turn = found.get(event.turn)
        if turn is None:
            turn = found[event.turn] = Turn(event.turn, errors=[], questions=[], first_seq=event.seq)
            tools[event.turn] = Counter()
        _add(turn, tools[event.turn], event)
    for number, turn in found.items():
        turn.tools = dict(tools[number].most_common())
    return [found[number] for number in sorted(found)]


def _add(turn: Turn, tools: Counter[str], event: StoredEvent) -> None:
    turn.last_seq = event.seq
    data = event.data or {}
    if event.created_at is not None:
        turn.started_at = min(turn.started_at or event.created_at, event.created_at)
        turn.ended_at = max(turn.ended_at or event.created_at, event.created_at)
    if event.kind == "user.prompt":
        turn.prompt = turn.prompt or event.text
    elif event.kind == "assistant.message":
        turn.closing = event.text
    elif event.kind == "tool.call":
        tools[event.name or "unknown"] += 1
    elif event.kind == "tool.result":
        turn.failures += bool(data.get("failed"))
    elif event.kind == "error":
        turn.errors.append(event.text)
    elif event.kind == "question.asked":
        turn.questions.append(event.text)
    elif event.kind == "turn.completed":
        turn.interrupted = turn.interrupted or bool(data.get("interrupted"))
