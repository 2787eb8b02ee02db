"""The words a scripted model speaks, the same for every agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Json = dict[str, Any]


@dataclass(frozen=True)
class Say:
    """Text the user sees."""

    text: str


@dataclass(frozen=True)
class Think:
    """Reasoning. For Gemini, "**Subject** description" is split into its two fields."""

    text: str


@dataclass(frozen=True)
class Call:
    """A tool call. Four tools have a neutral name:

    shell {command} · write {path, content} · edit {path, old, new} · read {path}

    Any other name and its arguments reach the agent unchanged. Claude edits only files it has
    read or written in that session; Codex edits whole lines, because its edit is a patch.
    """

    tool: str
    args: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Usage:
    """Tokens of one reply in five parts that do not overlap, so they may be added up for any
    agent.

    Each wire folds them into its own fields: OpenAI and Gemini count cached tokens inside input,
    Anthropic and OpenAI count reasoning inside output, and Gemini has no word for cache writes
    and calls them input.
    """

    input: int = 100
    cache_read: int = 0
    cache_write: int = 0
    output: int = 10
    reasoning: int = 0

    @property
    def prompt(self) -> int:
        return self.input + self.cache_read + self.cache_write

    @property
    def completion(self) -> int:
        return self.output + self.reasoning

    @property
    def total(self) -> int:
        return self.prompt + self.completion


Part = Say | Think | Call
SMALL = Usage()


class Reply:
    """One response of the model: its parts in order, and what they cost."""

    def __init__(self, *parts: Part, usage: Usage = SMALL) -> None:
        self.parts = parts
        self.usage = usage

    @property
    def calls(self) -> list[Call]:
        return [part for part in self.parts if isinstance(part, Call)]


@dataclass(frozen=True)
class Fail:
    """An HTTP error instead of a reply. Agents give up on 400 at once and try again after 500."""

    status: int = 400
    message: str = "scripted failure"


class Message(NamedTuple):
    """One message of the history an agent sent; what is not plain text is shown as JSON."""

    role: str
    text: str


@dataclass(frozen=True)
class Request:
    """What an agent asked. Only `main` requests take a step of the script; the others are
    asides."""

    path: str
    body: Json
    history: tuple[Message, ...]
    main: bool

    def said(self, role: str) -> str:
        """All that one role said so far, in one string to search in."""
        return "\n".join(message.text for message in self.history if message.role == role)

    def newest(self) -> str:
        """What came since the model's last words."""
        found: list[str] = []
        for message in reversed(self.history):
            if message.role == "assistant":
                break
            found.append(message.text)
        return "\n".join(reversed(found))


Answer = Reply | Fail
Step = Part | Answer | Callable[[Request], Answer]


def answer(step: Step, request: Request) -> Answer:
    """The answer a step stands for; a function decides when it is asked, and may wait before it
    returns."""
    if isinstance(step, Reply | Fail):
        return step
    if isinstance(step, Say | Think | Call):
        return Reply(step)
    return step(request)
