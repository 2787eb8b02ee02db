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
    PATCH,
    PROMPT,
    SECOND,
    SHOWN,
    TITLE,
    WORDS,
    Sample,
    document,
)

ID = "c0470000-0000-4000-8000-000000000001"


def user(words: str) -> dict[str, Any]:
    return {"message": {"role": "user", "content": words}, "contextItems": []}


def answer(words: str, *calls: tuple[str, str, dict[str, Any], str]) -> dict[str, Any]:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 50,
        "prompt_tokens_details": {"cached_tokens": 600},
        "completion_tokens_details": {"reasoning_tokens": 5},
        "model": MODEL,
    }
    asked = [
        {"id": ident, "function": {"name": name, "arguments": json.dumps(given)}}
        for ident, name, given, _ in calls
    ]
    states = [
        {
            "toolCallId": ident,
            "status": "done",
            "parsedArgs": given,
            "output": [{"content": output}],
        }
        for ident, _, given, output in calls
    ]
    message = {"role": "assistant", "content": words, "toolCalls": asked, "usage": usage}
    return {"message": message, "contextItems": [], "toolCallStates": states}


EDIT = {"file_path": FILE, "old_string": "world", "new_string": "harbour"}
SHOWN_DIFF = f"Successfully edited\nDiff:\nIndex: {FILE}\n=====\n{PATCH}"
HISTORY = [
    user(PROMPT),
    answer(WORDS, ("ct-1", "Write", {"filepath": FILE, "content": BEFORE}, "created")),
    answer("", ("ct-2", "Edit", EDIT, SHOWN_DIFF)),
    answer("", ("ct-3", "Bash", {"command": COMMAND}, SHOWN)),
    answer(CLOSING),
    user(SECOND),
    answer(ANSWER),
]
SAMPLE = Sample(
    agent="continue",
    session_id=ID,
    files={
        f".continue/sessions/{ID}.json": document(
            {
                "sessionId": ID,
                "title": TITLE,
                "workspaceDirectory": CWD,
                "history": HISTORY,
                "usage": {"totalCost": 1, "promptTokens": 5000, "completionTokens": 250},
            }
        ),
        ".continue/sessions/sessions.json": document([{"sessionId": ID, "title": TITLE}]),
    },
    list_name="history",
    tools=(("Write", "write"), ("Edit", "edit"), ("Bash", "shell")),
    thinking=(),
    exit_code=None,
    fails=False,
    branch=None,
    title=TITLE,
    timed=False,
    resume=f"cn --fork {ID}",
)
