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
    PROMPT,
    SECOND,
    SHOWN,
    THOUGHT,
    TITLE,
    WORDS,
    Sample,
    Statement,
)

ID = "20260921_1"
INJECTED = "A note for the model alone"
SESSIONS = (
    "CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, description TEXT, user_set_name "
    "BOOLEAN, working_dir TEXT, created_at TIMESTAMP, updated_at TIMESTAMP, "
    "accumulated_input_tokens INTEGER, accumulated_output_tokens INTEGER, model_config_json TEXT)"
)
MESSAGES = (
    "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, message_id TEXT, session_id "
    "TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER, metadata_json TEXT)"
)
_count = iter(range(1, 100))


def message(role: str, *parts: dict[str, Any], visible: bool = True) -> Statement:
    number = next(_count)
    about = json.dumps({"userVisible": visible, "agentVisible": True})
    values = (f"msg_{number}", ID, role, json.dumps(parts), NOW // 1000 + number, about)
    return (
        "INSERT INTO messages (message_id, session_id, role, content_json, created_timestamp, "
        "metadata_json) VALUES (?, ?, ?, ?, ?, ?)",
        values,
    )


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def request(ident: str, name: str, given: dict[str, Any]) -> Statement:
    call = {"status": "success", "value": {"name": name, "arguments": given}}
    return message("assistant", {"type": "toolRequest", "id": ident, "toolCall": call})


def response(ident: str, words: str, **more: Any) -> Statement:
    value = {"content": [text(words)], "isError": False, **more}
    result = {"status": "success", "value": value}
    return message("user", {"type": "toolResponse", "id": ident, "toolResult": result})


def spent(answers: int) -> Statement:
    """The totals of the session, which grow."""
    sql = "UPDATE sessions SET accumulated_input_tokens=?, accumulated_output_tokens=? WHERE id=?"
    return sql, (1000 * answers, 50 * answers, ID)


RAN = {"stdout": SHOWN, "stderr": "", "exit_code": 1}
SAMPLE = Sample(
    agent="goose",
    session_id=ID,
    files={
        ".local/share/goose/sessions/sessions.db": [
            (SESSIONS, ()),
            (MESSAGES, ()),
            (
                "INSERT INTO sessions (id, name, user_set_name, working_dir, created_at, "
                "model_config_json) VALUES (?, ?, 1, ?, ?, ?)",
                (ID, TITLE, CWD, "2026-09-21 14:13:20", json.dumps({"model_name": MODEL})),
            ),
            message("user", text(PROMPT)),
            message("user", text(INJECTED), visible=False),
            message("assistant", {"type": "thinking", "thinking": THOUGHT}, text(WORDS)),
            request("go-1", "write", {"path": FILE, "content": BEFORE}),
            response("go-1", "Created"),
            spent(1),
            request("go-2", "edit", {"path": FILE, "before": "world", "after": "harbour"}),
            response("go-2", "Edited"),
            spent(2),
            request("go-3", "shell", {"command": COMMAND}),
            response("go-3", SHOWN, structuredContent=RAN, isError=True),
            spent(3),
            message("assistant", text(CLOSING)),
            spent(4),
            message("user", text(SECOND)),
            message("assistant", text(ANSWER)),
            spent(5),
        ],
    },
    tools=(("write", "write"), ("edit", "edit"), ("shell", "shell")),
    injected=(INJECTED,),
    tokens={"input": 5000, "output": 250},
    branch=None,
    title=TITLE,
    totals_only=True,
    resume=f"goose session --resume --session-id {ID}",
)
