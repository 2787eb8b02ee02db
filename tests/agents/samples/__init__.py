"""One small conversation, as each agent writes it, and what must be read of it.

A person asks for a file; the agent thinks, writes it, changes it, shows it with a command that
fails, and says so. Then it is asked whether anything is left.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import apsw

from whyfor.agents import AGENTS

PROMPT = "Write greeting.txt and greet the harbour"
THOUGHT = "A small file is enough."
WORDS = "I write the greeting."
BEFORE, AFTER = "hello\nworld\n", "hello\nharbour\n"
PATCH = "--- greeting.txt\n+++ greeting.txt\n@@ -1,2 +1,2 @@\n hello\n-world\n+harbour\n"
COMMAND = "cat greeting.txt; false"
SHOWN = "hello\nharbour\n"
CLOSING = "The greeting names the harbour."
SECOND = "Is anything left?"
ANSWER = "Nothing is left."
CWD, BRANCH, MODEL = "/code/quay", "main", "mock-model"
FILE = f"{CWD}/greeting.txt"
TITLE = "Greeting the harbour"
NOW = 1_790_000_000_000  # ms
# What the model reports for each of five answers: 1000 tokens of input, 600 of them from the
# cache, and 50 of output, 5 of them thought.
ANSWERS = 5
TOKENS = {"input": 2000, "cache_read": 3000, "output": 250, "reasoning": 25}

HOME = b"{HOME}"  # in a file: the home it is written to

Statement = tuple[str, tuple[Any, ...]]
Content = bytes | list[Statement]


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What an agent leaves on disk, below a home, and what it means."""

    agent: str
    session_id: str
    files: Mapping[str, Content]
    """By path: bytes, or the statements that make a database. What grows comes first."""
    tools: tuple[tuple[str, str], ...]
    """The calls: name, kind."""
    list_name: str = ""
    """In a document: the array its messages stand in, which grows."""
    prompts: tuple[str, ...] = (PROMPT, SECOND)
    thinking: tuple[str, ...] = (THOUGHT,)
    answers: tuple[str, ...] = (WORDS, CLOSING, ANSWER)
    injected: tuple[str, ...] = ()
    """Texts that the program put into its records, and nobody typed."""
    tokens: Mapping[str, int] = field(default_factory=lambda: TOKENS)
    totals_only: bool = False
    """Tokens are told for all of a session, or a run of it, in one sum."""
    exit_code: int | None = 1
    fails: bool = True
    """It can be told that the command failed."""
    cwd: str = CWD
    branch: str | None = BRANCH
    title: str | None = None
    model: str | None = MODEL
    forked_from: str | None = None
    children: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    """Further sessions in the same store."""
    timed: bool = True
    """Its records say when they were written."""
    resume: str | None = None
    """The command that resumes the session."""

    def write(self, home: Path, much: float = 1.0) -> None:
        """Write the files, or as much of each as was there at some earlier moment."""
        for name, content in self.files.items():
            path = home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, list):
                _execute(path, content[: max(1, int(len(content) * much))])
            elif name.endswith(".jsonl"):
                path.write_bytes(content[: int(len(content) * much)])
            elif HOME in content:
                path.write_bytes(content.replace(HOME, str(home).encode()))
            else:
                path.write_bytes(self._earlier(content, much))

    def holds(self, text: str) -> bool:
        """Whether the text stands in one of the files."""
        told = json.dumps(text)[1:-1]
        for content in self.files.values():
            if isinstance(content, bytes):
                found = told.encode() in content
            else:
                found = any(text in str(value) for _, values in content for value in values)
            if found:
                return True
        return False

    def _earlier(self, content: bytes, much: float) -> bytes:
        if not self.list_name or much >= 1:
            return content
        document = json.loads(content)
        if not isinstance(document, dict) or self.list_name not in document:
            return content
        messages = document[self.list_name]
        document[self.list_name] = messages[: int(len(messages) * much)]
        return json.dumps(document, indent=2).encode()


def _execute(path: Path, statements: list[Statement]) -> None:
    """Run the statements that this database has not seen yet."""
    db = apsw.Connection(str(path))
    done = int(str(db.execute("PRAGMA user_version").fetchall()[0][0]))
    for sql, values in statements[done:]:
        db.execute(sql, values)
    db.execute(f"PRAGMA user_version = {max(done, len(statements))}")
    db.close()


def lines(*records: Mapping[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def document(record: Any) -> bytes:
    return json.dumps(record, indent=2).encode()


def iso(number: int, zone: str = "Z") -> str:
    """A time in the conversation, by seconds since it began."""
    seconds = number % 60
    return f"2026-09-21T14:{13 + number // 60:02}:{20 + seconds % 40:02}.000{zone}"


def sample(agent: str) -> Sample:
    """Return an agent's sample; it has one, in a module that is called as its package."""
    found: Sample = import_module(f"tests.agents.samples.{package_of(agent)}").SAMPLE
    return found


def package_of(agent: str) -> str:
    return type(AGENTS[agent]).__module__.rpartition(".")[2]
