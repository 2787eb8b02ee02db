"""What the readers of all agents share: where a record's events go, and the events that mean the
same in every format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from whyfor.agents.base import as_dict, as_list, flatten, get_str
from whyfor.model.events import Event, Touch
from whyfor.model.findings import Bucket, Record
from whyfor.model.ids import fold
from whyfor.model.memory_fence import without_memory

_TOOLS = ("tool.call", "tool.result")


class RecordPlace:
    """One record while it is read: the session its events go to, and when they happened."""

    __slots__ = ("bucket", "when")

    def __init__(self, bucket: Bucket, when: int | None) -> None:
        self.bucket = bucket
        self.when = when

    def add(
        self,
        kind: str,
        key: int,
        actor: str,
        text: str = "",
        name: str | None = None,
        data: Record | None = None,
    ) -> None:
        """Add an event; an empty name or no data is stored as None. What Whyfor told the session is
        left out."""
        if kind not in _TOOLS:
            text = without_memory(text)
        self.bucket.events.append(
            Event(kind, key, self.when, actor, text, name or None, data or None)
        )

    def locate(self, key: int, place: Record, *, first: bool) -> None:
        """Add where the session runs, at its start (`first`) or because it changed: `cwd`,
        `branch`, `version`, `forked_from` and more; empty values are left out."""
        data = {name: value for name, value in place.items() if value}
        facts = self.bucket.facts
        if isinstance(data.get("cwd"), str):
            facts.setdefault("cwd", data["cwd"])
        for name in ("branch", "version", "forked_from"):
            if isinstance(data.get(name), str):
                facts[name] = data[name]
        self.add("session.started" if first else "status.changed", key, "system", data=data)

    def call(
        self,
        key: int,
        ident: object,
        name: str,
        given: object,
        actor: str = "assistant",
        **more: object,
    ) -> None:
        """Add a tool call; `more` stands in its data before the call's id and input."""
        data = {**more, "id": ident, "input": given}
        self.add("tool.call", key, actor, flatten(given), name or "unknown", data)

    def question(self, key: int, ident: object, questions: object, **more: object) -> None:
        """Add what the call with this key asks the person."""
        texts = [get_str(as_dict(each), "question") for each in as_list(questions)]
        data = {**more, "id": ident, "questions": questions}
        self.add("question.asked", fold(key, "ask"), "assistant", "\n".join(texts), data=data)

    def denied(self, ident: object) -> None:
        """Add that the person did not allow a call."""
        data = {"id": ident, "decision": "denied"}
        self.add("approval.resolved", fold(ident, "denied"), "user", data=data)

    def touch(self, key: int, paths: Iterable[str], action: str) -> None:
        """Add files that the event with this key read or wrote."""
        self.bucket.touches.extend(Touch(key, path, action) for path in paths)


def known_values(data: Record) -> Record:
    """Return the data without what is None."""
    return {name: value for name, value in data.items() if value is not None}


def remember(known: dict[str, Any], name: str, value: object, limit: int) -> None:
    """Remember a value by its name, and forget the oldest ones beyond the limit."""
    known[name] = value
    while len(known) > limit:
        del known[next(iter(known))]
