from __future__ import annotations

from typing import Any

from tests.agents.samples import (
    ANSWER,
    BEFORE,
    CLOSING,
    COMMAND,
    CWD,
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
    iso,
    lines,
)

ID = "01990000-0000-7000-8000-000000000031"
INJECTED = "A note that an extension added"
_count = iter(range(1, 100))


def entry(kind: str, **more: Any) -> dict[str, Any]:
    number = next(_count)
    parent = f"pi0000{number - 1:02}" if number > 1 else None
    return {
        "type": kind,
        "id": f"pi0000{number:02}",
        "parentId": parent,
        "timestamp": iso(number),
        **more,
    }


def message(role: str, **more: Any) -> dict[str, Any]:
    return entry("message", message={"role": role, "timestamp": NOW, **more})


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def answer(*parts: dict[str, Any]) -> dict[str, Any]:
    """Input without the cache, output with the thoughts."""
    usage = {
        "input": 400,
        "output": 50,
        "cacheRead": 600,
        "cacheWrite": 0,
        "reasoning": 5,
        "totalTokens": 1050,
        "cost": {"total": 0.001},
    }
    return message(
        "assistant",
        content=list(parts),
        provider="mock",
        model=MODEL,
        usage=usage,
        stopReason="stop",
    )


def call(ident: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "toolCall", "id": ident, "name": name, "arguments": given}


def result(ident: str, name: str, words: str, **more: Any) -> dict[str, Any]:
    told = {"toolCallId": ident, "toolName": name, "content": [text(words)], "isError": False}
    return message("toolResult", **{**told, **more})


EDITS = [{"oldText": "world", "newText": "harbour"}]
SAMPLE = Sample(
    agent="pi",
    session_id=ID,
    files={
        f".pi/agent/sessions/--code-quay--/2026-09-21T14-13-20-000Z_{ID}.jsonl": lines(
            {
                "type": "session",
                "version": 3,
                "id": ID,
                "timestamp": iso(0),
                "cwd": CWD,
                "parentSession": "/h/.pi/agent/sessions/--code-quay--/2026-09-20_older-one.jsonl",
            },
            entry("model_change", provider="mock", modelId=MODEL),
            message("system", content="", sections={"preamble": "You are an assistant."}),
            message("user", content=[text(PROMPT)]),
            entry("custom_message", customType="note", content=INJECTED, display=False),
            answer(
                {"type": "thinking", "thinking": THOUGHT, "thinkingSignature": "s"},
                text(WORDS),
                call("pi-1", "write", {"path": "greeting.txt", "content": BEFORE}),
            ),
            result("pi-1", "write", "written"),
            answer(call("pi-2", "edit", {"path": "greeting.txt", "edits": EDITS})),
            result("pi-2", "edit", "replaced", details={"diff": "-2 world", "patch": PATCH}),
            answer(call("pi-3", "bash", {"command": COMMAND})),
            result("pi-3", "bash", f"{SHOWN}\nCommand exited with code 1", isError=True),
            answer(text(CLOSING)),
            entry("session_info", name=TITLE),
            message("user", content=SECOND),
            answer(text(ANSWER)),
        ),
    },
    tools=(("write", "write"), ("edit", "edit"), ("bash", "shell")),
    injected=(INJECTED,),
    branch=None,
    title=TITLE,
    forked_from="older-one",
    resume=f"pi --session {ID}",
)
