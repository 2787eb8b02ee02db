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
    PROMPT,
    SECOND,
    SHOWN,
    THOUGHT,
    TITLE,
    WORDS,
    Sample,
    document,
    iso,
)

ID = "1790000000000_quay1"
INJECTED = '<hook_context source="PreToolUse">earlier work exists</hook_context>'
_count = iter(range(1, 100))


def message(role: str, *blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    number = next(_count)
    ident = f"cl{number}"
    return {"id": ident, "role": role, "content": list(blocks), "ts": NOW + number * 1000, **more}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def typed(words: str) -> dict[str, str]:
    return text(f'<user_input mode="act">{words}</user_input>')


def answer(*blocks: dict[str, Any]) -> dict[str, Any]:
    metrics = {
        "inputTokens": 1000,
        "outputTokens": 50,
        "cacheReadTokens": 600,
        "cacheWriteTokens": 0,
    }
    return message("assistant", *blocks, modelInfo={"id": MODEL}, metrics=metrics)


def use(ident: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": ident, "name": name, "input": given}


def result(ident: str, content: Any) -> dict[str, Any]:
    return message("user", {"type": "tool_result", "tool_use_id": ident, "content": content})


RAN = {"query": COMMAND, "result": f"[Command exited with code 1]\n{SHOWN}", "success": False}
MESSAGES = [
    message("user", typed(PROMPT)),
    answer(
        {"type": "thinking", "thinking": THOUGHT},
        text(WORDS),
        use("cl-1", "editor", {"path": FILE, "new_text": BEFORE}),
    ),
    result("cl-1", json.dumps({"query": "edit", "result": "created", "success": True})),
    answer(use("cl-2", "editor", {"path": FILE, "old_text": "world", "new_text": "harbour"})),
    result("cl-2", json.dumps({"query": "edit", "result": "edited", "success": True})),
    answer(use("cl-3", "run_commands", {"commands": [COMMAND]})),
    result("cl-3", [RAN]),
    answer(text(CLOSING)),
    message("user", text(INJECTED), typed(SECOND)),
    answer(text(ANSWER)),
]
FOLDER = f".cline/data/sessions/{ID}"
SAMPLE = Sample(
    agent="cline",
    session_id=ID,
    files={
        f"{FOLDER}/{ID}.json": document(
            {
                "version": 1,
                "session_id": ID,
                "source": "cli",
                "started_at": iso(0),
                "model": MODEL,
                "cwd": CWD,
                "prompt": PROMPT,
                "metadata": {"git": {"branch": BRANCH}, "title": TITLE},
                "messages_path": f"/h/{FOLDER}/{ID}.messages.json",
            }
        ),
        f"{FOLDER}/{ID}.messages.json": document(
            {"version": 1, "sessionId": ID, "messages": MESSAGES, "system_prompt": "You are Cline."}
        ),
    },
    list_name="messages",
    tools=(("editor", "edit"), ("editor", "edit"), ("run_commands", "shell")),
    injected=(INJECTED,),
    tokens={"input": 2000, "cache_read": 3000, "output": 250},
    title=TITLE,
    resume=f"cline --id {ID}",
)
