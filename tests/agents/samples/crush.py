from __future__ import annotations

import json
from typing import Any

from tests.agents.samples import (
    AFTER,
    ANSWER,
    BEFORE,
    CLOSING,
    COMMAND,
    FILE,
    MODEL,
    NOW,
    PROMPT,
    SECOND,
    SHOWN,
    THOUGHT,
    TITLE,
    WORDS,
    Sample,
    Statement,
    document,
)

ID, CHILD = "c4050000-0000-4000-8000-000000000001", "c4050000-0000-4000-8000-000000000002"
INJECTED = "Go on where you stopped"
SESSIONS = (
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, prompt_tokens "
    "INTEGER, completion_tokens INTEGER, cost REAL, created_at INTEGER, updated_at INTEGER)"
)
MESSAGES = (
    "CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT, model "
    "TEXT, created_at INTEGER, is_summary_message INTEGER)"
)
_count = iter(range(1, 100))


def message(role: str, *parts: tuple[str, dict[str, Any]], session: str = ID) -> Statement:
    number = next(_count)
    told = json.dumps([{"type": kind, "data": data} for kind, data in parts])
    model = MODEL if role == "assistant" else None
    values = (f"cr{number}", session, role, told, model, NOW // 1000 + number)
    return "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, 0)", values


def text(words: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "text", {"text": words, **more}


def call(ident: str, name: str, given: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    told = {"id": ident, "name": name, "input": json.dumps(given), "finished": True}
    return "tool_call", told


def result(ident: str, content: str, **about: Any) -> Statement:
    told = {"tool_call_id": ident, "content": content, "metadata": json.dumps(about)}
    return message("tool", ("tool_result", {**told, "is_error": False}))


def spent(answers: int) -> Statement:
    sql = "UPDATE sessions SET prompt_tokens=?, completion_tokens=? WHERE id=?"
    return sql, (1000 * answers, 50 * answers, ID)


EDIT = {"file_path": FILE, "old_string": "world", "new_string": "harbour"}
SAMPLE = Sample(
    agent="crush",
    session_id=ID,
    files={
        ".local/share/crush/projects.json": document(
            {"projects": [{"path": "{HOME}/quay", "data_dir": "{HOME}/quay/.crush"}]}
        ),
        "quay/.crush/crush.db": [
            (SESSIONS, ()),
            (MESSAGES, ()),
            (
                "INSERT INTO sessions (id, title, prompt_tokens, completion_tokens, created_at) "
                "VALUES (?, ?, 0, 0, ?)",
                (ID, TITLE, NOW // 1000),
            ),
            message("user", text(PROMPT)),
            message(
                "assistant",
                ("reasoning", {"thinking": THOUGHT}),
                text(WORDS),
                call("cr-1", "write", {"file_path": FILE, "content": BEFORE}),
                ("finish", {"reason": "tool_use", "time": NOW // 1000}),
            ),
            result("cr-1", "File successfully written", additions=2),
            message("assistant", call("cr-2", "edit", EDIT)),
            result("cr-2", "Content replaced", old_content=BEFORE, new_content=AFTER),
            message("assistant", call("cr-3", "bash", {"command": COMMAND})),
            result("cr-3", f"{SHOWN}\nExit code 1", output=SHOWN),
            message("user", text(INJECTED, hidden=True)),
            message("assistant", text(CLOSING)),
            (
                "INSERT INTO sessions (id, parent_session_id, title, prompt_tokens, "
                "completion_tokens, created_at) VALUES (?, ?, 'New Agent Session', 0, 0, ?)",
                (CHILD, ID, NOW // 1000 + 60),
            ),
            message("user", text("Look for greetings"), session=CHILD),
            message("user", text(SECOND)),
            message("assistant", text(ANSWER)),
            spent(5),
        ],
    },
    tools=(("write", "write"), ("edit", "edit"), ("bash", "shell")),
    injected=(INJECTED,),
    tokens={"input": 5000, "output": 250},
    cwd="/quay",
    branch=None,
    title=TITLE,
    children=(CHILD,),
    totals_only=True,
    resume=f"crush --session {ID}",
)
