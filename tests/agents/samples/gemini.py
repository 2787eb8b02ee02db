from __future__ import annotations

from typing import Any

from tests.agents.samples import (
    AFTER,
    ANSWER,
    BEFORE,
    CLOSING,
    COMMAND,
    CWD,
    FILE,
    MODEL,
    PATCH,
    PROMPT,
    SECOND,
    SHOWN,
    THOUGHT,
    TITLE,
    WORDS,
    Sample,
    iso,
    lines,
)

ID = "9e310000-0000-4000-8000-000000000001"
INJECTED = "<session_context>\nThis is the Gemini CLI.\n</session_context>"
NEW = PATCH.replace(
    "@@ -1,2 +1,2 @@\n hello\n-world\n+harbour\n", "@@ -0,0 +1,2 @@\n+hello\n+world\n"
)


def user(number: int, text: str) -> dict[str, Any]:
    ident = f"m{number}"
    return {"id": ident, "timestamp": iso(number), "type": "user", "content": [{"text": text}]}


def answer(number: int, text: str = "", *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    tokens = {"input": 1000, "output": 50, "cached": 600, "thoughts": 5, "tool": 0, "total": 1055}
    return {
        "id": f"m{number}",
        "timestamp": iso(number),
        "type": "gemini",
        "content": text,
        "model": MODEL,
        "tokens": tokens,
        "toolCalls": list(calls),
        **more,
    }


def call(ident: str, name: str, given: dict[str, Any], text: str, shown: Any) -> dict[str, Any]:
    response = {"functionResponse": {"id": ident, "name": name, "response": {"output": text}}}
    return {
        "id": ident,
        "name": name,
        "args": given,
        "status": "success",
        "timestamp": iso(9),
        "result": [response],
        "resultDisplay": shown,
    }


def diff(text: str, before: str | None, after: str) -> dict[str, Any]:
    return {
        "fileDiff": text,
        "filePath": FILE,
        "originalContent": before,
        "newContent": after,
    }


EDIT = {"file_path": FILE, "old_string": "world", "new_string": "harbour"}
SAMPLE = Sample(
    agent="gemini",
    session_id=ID,
    files={
        ".gemini/tmp/quay/chats/session-2026-09-21T14-13-9e310000.jsonl": lines(
            {
                "sessionId": ID,
                "projectHash": "aa",
                "startTime": iso(0),
                "lastUpdated": iso(0),
                "kind": "main",
            },
            user(1, INJECTED),
            user(2, PROMPT),
            answer(
                3,
                WORDS,
                call(
                    "g1",
                    "write_file",
                    {"file_path": FILE, "content": BEFORE},
                    "written",
                    diff(NEW, None, BEFORE),
                ),
                thoughts=[{"subject": "", "description": THOUGHT, "timestamp": iso(3)}],
            ),
            answer(4, "", call("g2", "replace", EDIT, "edited", diff(PATCH, BEFORE, AFTER))),
            answer(
                5,
                "",
                call(
                    "g3",
                    "run_shell_command",
                    {"command": COMMAND},
                    f"Output: {SHOWN}\nExit Code: 1",
                    SHOWN,
                ),
            ),
            answer(6, CLOSING),
            {"$set": {"lastUpdated": iso(6), "summary": TITLE}},
            user(7, SECOND),
            answer(8, ANSWER),
        ),
        ".gemini/tmp/quay/.project_root": CWD.encode(),
    },
    tools=(("write_file", "write"), ("replace", "edit"), ("run_shell_command", "shell")),
    injected=(INJECTED,),
    branch=None,
    title=TITLE,
    resume=f"gemini --resume {ID}",
)
