"""The card of a session: what it was about, in few words, so that it is found as a whole."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from whyfor.agents.tools import command_of
from whyfor.model.events import StoredEvent
from whyfor.model.memory import SearchCard, SessionSummary
from whyfor.model.text import one_line
from whyfor.model.titles import (
    TITLE_COMMAND,
    TITLE_COMMIT,
    TITLE_WORK,
    WORK_COMMAND,
    ProposedTitle,
)

PROMPT = 1_200  # characters of a prompt
CLOSING = 500  # of the agent's last words in a turn
_RAN = 80  # characters of a command in a title
_WHOLE = 40_000  # characters of all prompts, and of all closing words
_COMMIT = re.compile(r"\bgit\b[^\n|;&]*?\bcommit\b")
_MESSAGE = re.compile(
    r"""(?:\s-[a-zA-Z]*m|\s--message)(?:\s+|=)?
    (?:"\$\(cat\s*<<-?\s*['"\\]?(?P<end>\w+)['"]?\s*\n(?P<here>.*?)\n\s*(?P=end)\b
    |"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>[^']*)'|(?P<bare>[^\s'"$;&|]+))""",
    re.X | re.S,
)


class CardBuilder:
    """Collects what goes onto a card, while a session's events pass by."""

    def __init__(self) -> None:
        self.commits: list[str] = []
        self._prompts: list[str] = []
        self._told = ""  # the first command that begins work
        self._closing: dict[int, str] = {}  # by turn
        self._ran: Counter[str] = Counter()  # commands

    def watch(self, events: Iterable[StoredEvent]) -> Iterator[StoredEvent]:
        """Yield the events, and keep what the card needs of them."""
        for event in events:
            if event.kind == "user.prompt":
                self._prompts.append(event.text[:PROMPT])
            elif event.kind == "assistant.message" and event.text:
                self._closing[event.turn] = event.text[:CLOSING]
            elif event.kind == "status.changed" and event.actor == "user":
                if not self._told and WORK_COMMAND.match(event.text):
                    self._told = event.text
            elif event.kind == "tool.call":
                command = command_of((event.data or {}).get("input"))
                if command:
                    self._ran[command] += 1
                    self.commits += commit_messages(command)
            yield event

    def title(self) -> ProposedTitle | None:
        """Return what to call a session whose prompts say nothing: its first commit, else a command
        that began work, else what it ran; None if it did nothing of the kind."""
        if self.commits:
            return ProposedTitle(TITLE_COMMIT, self.commits[0])
        if self._told:
            return ProposedTitle(TITLE_COMMAND, one_line(self._told))
        if self._prompts or not self._ran:
            return None
        [(command, times)] = self._ran.most_common(1)
        often = {1: "", 2: " twice"}.get(times, f" {times} times")
        return ProposedTitle(TITLE_WORK, f"No words: ran {one_line(command)[:_RAN]}{often}")

    def card(self, summary: SessionSummary) -> SearchCard:
        return SearchCard(
            prompts="\n".join(self._prompts)[:_WHOLE],
            closing="\n".join(self._closing.values())[:_WHOLE],
            commits="\n".join(self.commits)[:_WHOLE],
            learned="\n".join(quote.text for quote in summary.learned),
        )


def commit_messages(command: str) -> list[str]:
    """Return the messages that a shell command commits with, as far as its text has them."""
    found = _COMMIT.search(command) if "commit" in command else None
    if found is None:
        return []
    messages: list[str] = []
    for match in _MESSAGE.finditer(command, found.end()):
        text = match["here"] or match["double"] or match["single"] or match["bare"] or ""
        if text.strip():
            messages.append(text.strip())
    return messages
