from __future__ import annotations

import json
from typing import Any

from tests.agents.samples import (
    ANSWER,
    BEFORE,
    CLOSING,
    COMMAND,
    CWD,
    FILE,
    MODEL,
    NOW,
    PATCH,
    PROMPT,
    SECOND,
    SHOWN,
    THOUGHT,
    TITLE,
    WORDS,
    Sample,
    Statement,
)

TIMES = "time_created integer, time_updated integer"
INJECTED = "Called the Read tool with the following input"


class Rows:
    """The statements of a database as OpenCode and its forks fill it."""

    def __init__(self, ident: str) -> None:
        self.ident = ident
        self.clock = NOW + int(ident[-1]) * 600_000
        self.made: list[Statement] = [
            (
                "CREATE TABLE session (id text PRIMARY KEY, parent_id text, directory text, "
                f"title text, version text, agent text, revert text, {TIMES})",
                (),
            ),
            (
                f"CREATE TABLE message (id text PRIMARY KEY, session_id text, {TIMES}, data text)",
                (),
            ),
            (
                "CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, "
                f"{TIMES}, data text)",
                (),
            ),
        ]

    def put(self, table: str, **row: Any) -> None:
        self.clock += 1000
        row |= {"time_created": self.clock, "time_updated": self.clock}
        marks = ", ".join("?" * len(row))
        values = tuple(json.dumps(v) if isinstance(v, dict) else v for v in row.values())
        self.made.append((f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", values))

    def name(self, ident: str) -> str:
        """Ids differ between programs."""
        return f"{ident}_{self.ident}"

    def message(self, ident: str, role: str, **data: Any) -> None:
        times = {"created": self.clock + 1000, "completed": self.clock + 2000}
        data = {"role": role, "time": times, **data}
        self.put("message", id=self.name(ident), session_id=self.ident, data=data)

    def part(self, ident: str, message: str, kind: str, **data: Any) -> None:
        data = {"type": kind, **data}
        self.put(
            "part",
            id=self.name(ident),
            message_id=self.name(message),
            session_id=self.ident,
            data=data,
        )

    def user(self, number: int, text: str, injected: str = "") -> None:
        self.message(f"msg_{number}", "user")
        self.part(f"prt_{number}", f"msg_{number}", "text", text=text)
        if injected:
            self.part(f"prt_{number}x", f"msg_{number}", "text", text=injected, synthetic=True)

    def answer(self, number: int, *parts: tuple[str, dict[str, Any]]) -> None:
        """Input without the cache, output without thought."""
        tokens = {"input": 400, "output": 45, "reasoning": 5, "cache": {"read": 600, "write": 0}}
        self.message(
            f"msg_{number}",
            "assistant",
            modelID=MODEL,
            providerID="mock",
            path={"cwd": CWD},
            tokens=tokens,
        )
        for index, (kind, data) in enumerate(parts):
            self.part(f"prt_{number}{index}", f"msg_{number}", kind, **data)


def tool(name: str, given: dict[str, Any], output: str, **meta: Any) -> tuple[str, dict[str, Any]]:
    state = {
        "status": "completed",
        "input": given,
        "output": output,
        "metadata": meta,
        "time": {"start": NOW + 60_000, "end": NOW + 61_000},
    }
    return "tool", {"tool": name, "callID": f"call_{name}", "state": state}


def conversation(ident: str) -> list[Statement]:
    rows = Rows(ident)
    rows.put("session", id=ident, directory=CWD, title=TITLE, version="1.18.33")
    # the program puts what it was given in quotes
    rows.user(1, f'"{PROMPT}"', INJECTED)
    rows.answer(
        2,
        ("reasoning", {"text": THOUGHT}),
        ("text", {"text": WORDS}),
        tool("write", {"filePath": FILE, "content": BEFORE}, "written"),
    )
    edit = {"filePath": FILE, "oldString": "world", "newString": "harbour"}
    rows.answer(3, tool("edit", edit, "edited", diff=PATCH))
    rows.answer(4, tool("bash", {"command": COMMAND}, SHOWN, exit=1))
    rows.answer(5, ("text", {"text": CLOSING}))
    rows.user(6, SECOND)
    rows.answer(7, ("text", {"text": ANSWER}))
    return rows.made


TOKENS = {"input": 2000, "cache_read": 3000, "output": 225, "reasoning": 25}
TOOLS = (("write", "write"), ("edit", "edit"), ("bash", "shell"))
SAMPLE = Sample(
    agent="opencode",
    session_id="ses_0001",
    files={".local/share/opencode/opencode.db": conversation("ses_0001")},
    tools=TOOLS,
    injected=(INJECTED,),
    tokens=TOKENS,
    branch=None,
    title=TITLE,
    resume="opencode --session ses_0001",
)
