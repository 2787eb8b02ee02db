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
    PROMPT,
    SECOND,
    SHOWN,
    THOUGHT,
    TITLE,
    WORDS,
    Sample,
    document,
    iso,
    lines,
)

ID = "d2010000-0000-4000-8000-000000000001"
INJECTED = "<system-reminder>The tools listed below are available.</system-reminder>"
_count = iter(range(1, 100))


def message(role: str, *blocks: dict[str, Any], ident: str = "", **more: Any) -> dict[str, Any]:
    number = next(_count)
    return {
        "type": "message",
        "id": ident or f"d{number}",
        "parentId": f"d{number - 1}",
        "timestamp": iso(number),
        "message": {"role": role, "content": list(blocks), **more},
    }


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def answer(*blocks: dict[str, Any]) -> dict[str, Any]:
    return message("assistant", *blocks, modelId=MODEL)


def use(ident: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": ident, "name": name, "input": given}


def result(ident: str, content: Any, **more: Any) -> dict[str, Any]:
    told = content if isinstance(content, str) else json.dumps(content)
    block = {"type": "tool_result", "tool_use_id": ident, "is_error": False, "content": told}
    return message("user", {**block, **more})


ROWS = [
    {"type": "unchanged", "content": "hello", "lineNumber": {"old": 1, "new": 1}},
    {"type": "removed", "content": "world", "lineNumber": {"old": 2}},
    {"type": "added", "content": "harbour", "lineNumber": {"new": 2}},
]
TOTALS = {
    "inputTokens": 2000,
    "outputTokens": 250,
    "cacheCreationTokens": 0,
    "cacheReadTokens": 3000,
    "thinkingTokens": 25,
}
FAILED = f"Error: Command failed (exit code: 1)\n{SHOWN}\n\n[Process exited with code 1]"
SAMPLE = Sample(
    agent="droid",
    session_id=ID,
    files={
        f".factory/sessions/-code-quay/{ID}.jsonl": lines(
            {"type": "session_start", "id": ID, "title": TITLE, "version": 2, "cwd": CWD},
            message(
                "user",
                visibility="user_only",
                hookEventName="SessionStart",
                hookResults=[{"exitCode": 0}],
            ),
            message("user", text(INJECTED), ident="context-d3"),
            message("user", text(PROMPT), interactionMode="auto"),
            answer(
                {"type": "thinking", "thinking": THOUGHT, "durationMs": 0},
                text(WORDS),
                use("d-1", "Create", {"file_path": FILE, "content": BEFORE}),
            ),
            result("d-1", {"success": True, "file_path": FILE}),
            answer(
                use("d-2", "Edit", {"file_path": FILE, "old_str": "world", "new_str": "harbour"})
            ),
            result("d-2", {"success": True, "file_path": FILE, "diffLines": ROWS}),
            answer(use("d-3", "Execute", {"summary": "show", "command": COMMAND})),
            result("d-3", FAILED, is_error=True),
            answer(text(CLOSING)),
            message("user", text(SECOND)),
            answer(text(ANSWER)),
        ),
        f".factory/sessions/-code-quay/{ID}.settings.json": document(
            {
                "model": MODEL,
                "autonomyMode": "auto-low",
                "tokenUsage": TOTALS,
                "inclusiveTokenUsage": TOTALS,
                "lastCallTokenUsage": {"inputTokens": 400},
                "providerLockTimestamp": iso(1),
            }
        ),
    },
    tools=(("Create", "write"), ("Edit", "edit"), ("Execute", "shell")),
    injected=(INJECTED,),
    branch=None,
    title=TITLE,
    totals_only=True,
    resume=f"droid --resume {ID}",
)
