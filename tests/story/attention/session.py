"""A session's events, written as a story: prompt, call, fail, wait."""

from __future__ import annotations

from typing import Any

from whyfor.model.attention import Firing
from whyfor.model.events import Response, StoredEvent
from whyfor.story.attention.replay import FamilyEvent, family_events, replay_session

NOW = 1_777_629_600_000
MINUTE = 60_000


class Events:
    """Events a second apart unless time passes; each method returns itself."""

    def __init__(self, agent: str = "claude") -> None:
        self.agent = agent
        self.all: list[FamilyEvent] = []
        self.at = NOW
        self.turn = 0
        self.calls = 0
        self.responses: list[Response] = []

    def add(self, kind: str, text: str = "", *, child: str = "", **more: Any) -> Events:
        self.at += 1000
        actor = more.pop("actor", "user" if kind == "user.prompt" and not child else "assistant")
        event = StoredEvent(
            seq=len(self.all) + 1,
            turn=self.turn,
            kind=kind,
            source="transcript",
            confidence="high",
            created_at=self.at,
            observed_at=self.at,
            actor=actor,
            text=text,
            name=more.pop("name", None),
            data=more or None,
        )
        self.all += family_events(child, [event])
        return self

    def wait(self, minutes: float) -> Events:
        self.at += round(minutes * MINUTE)
        return self

    def prompt(self, text: str = "Do it") -> Events:
        self.turn += 1
        return self.add("user.prompt", text)

    def call(self, tool: str, child: str = "", **given: Any) -> Events:
        self.calls += 1
        ident = f"c{self.calls}"
        return self.add("tool.call", name=tool, child=child, id=ident, input=given)

    def back(self, text: str = "ok", *, child: str = "", **more: Any) -> Events:
        ident = f"c{self.calls}"
        return self.add("tool.result", text, child=child, actor="tool", id=ident, **more)

    def run(self, command: str, text: str = "ok", *, child: str = "", **more: Any) -> Events:
        return self.call("Bash", child, command=command).back(text, child=child, **more)

    def fail(self, command: str, text: str, **more: Any) -> Events:
        return self.run(command, text, failed=True, **more)

    def edit(self, path: str, old: str = "a", new: str = "b") -> Events:
        return self.call("Edit", file_path=path, old_string=old, new_string=new).back()

    def used(self, tokens: int, usd: float = 0.0, model: str = "claude-opus-4-5") -> Events:
        spent = Response(self.at, self.turn, model, tokens, round(usd * 1e9))
        self.responses.append(spent)
        return self

    def over(self, **more: Any) -> Events:
        return self.add("turn.completed", actor="system", **more)

    def firings(self, typical: float | None = None) -> list[Firing]:
        return replay_session(f"{self.agent}:s", self.all, self.responses, typical)

    def told(self, typical: float | None = None) -> list[tuple[str, str]]:
        """Cause and level of what would have been told."""
        return [(each.found.cause, each.level) for each in self.firings(typical)]
