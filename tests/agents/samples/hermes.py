from __future__ import annotations

import json
from typing import Any

from tests.agents.samples import (
    ANSWER,
    BEFORE,
    BRANCH,
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

ID = "20260921_141320_c0ffee"
SESSIONS = (
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, source TEXT, model TEXT, parent_session_id TEXT, "
    "started_at REAL, input_tokens INTEGER, output_tokens INTEGER, cache_read_tokens INTEGER, "
    "cache_write_tokens INTEGER, reasoning_tokens INTEGER, cwd TEXT, git_branch TEXT, title TEXT)"
)
MESSAGES = (
    "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT, role TEXT, "
    "content TEXT, tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL, "
    "reasoning_content TEXT, active INTEGER DEFAULT 1, api_content TEXT)"
)
INJECTED = "what a hook added, which only the model saw"
_count = iter(range(1, 100))


def message(role: str, content: str = "", **row: Any) -> Statement:
    row |= {"session_id": ID, "role": role, "content": content}
    row["timestamp"] = NOW / 1000 + next(_count)
    marks = ", ".join("?" * len(row))
    return f"INSERT INTO messages ({', '.join(row)}) VALUES ({marks})", tuple(row.values())


def answer(words: str = "", *calls: dict[str, Any], thought: str | None = None) -> Statement:
    told = json.dumps(calls) if calls else None
    return message("assistant", words, tool_calls=told, reasoning_content=thought)


def call(ident: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": ident,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(given)},
    }


def result(ident: str, name: str, **told: Any) -> Statement:
    return message("tool", json.dumps(told), tool_call_id=ident, tool_name=name)


def spent(answers: int) -> Statement:
    sql = (
        "UPDATE sessions SET input_tokens=?, cache_read_tokens=?, output_tokens=?, "
        "reasoning_tokens=? WHERE id=?"
    )
    return sql, (400 * answers, 600 * answers, 50 * answers, 5 * answers, ID)


EDIT = {"mode": "replace", "path": FILE, "old_string": "world", "new_string": "harbour"}
SAMPLE = Sample(
    agent="hermes",
    session_id=ID,
    files={
        ".hermes/state.db": [
            (SESSIONS, ()),
            (MESSAGES, ()),
            (
                "INSERT INTO sessions (id, source, model, started_at, cwd, git_branch, title) "
                "VALUES (?, 'cli', ?, ?, ?, ?, ?)",
                (ID, MODEL, NOW / 1000, CWD, BRANCH, TITLE),
            ),
            message("user", PROMPT, api_content=f"{PROMPT}\n{INJECTED}"),
            answer(
                WORDS,
                call("he-1", "write_file", {"path": FILE, "content": BEFORE}),
                thought=THOUGHT,
            ),
            result("he-1", "write_file", bytes_written=12, resolved_path=FILE),
            spent(1),
            answer("", call("he-2", "patch", EDIT)),
            result("he-2", "patch", success=True, diff=PATCH, resolved_path=FILE),
            spent(2),
            answer("", call("he-3", "terminal", {"command": COMMAND})),
            result("he-3", "terminal", output=SHOWN, exit_code=1, error=None),
            spent(3),
            answer(CLOSING),
            spent(4),
            message("user", SECOND),
            answer(ANSWER),
            spent(5),
        ],
    },
    tools=(("write_file", "write"), ("patch", "edit"), ("terminal", "shell")),
    injected=(INJECTED,),
    title=TITLE,
    totals_only=True,
    resume=f"hermes chat --resume {ID}",
)
