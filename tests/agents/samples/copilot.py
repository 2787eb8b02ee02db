from __future__ import annotations

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
    PROMPT,
    SECOND,
    SHOWN,
    THOUGHT,
    WORDS,
    Sample,
    iso,
    lines,
)

ID = "c0910000-0000-4000-8000-000000000001"
INJECTED = "A note from the program itself"
_count = iter(range(1, 100))


def line(kind: str, **data: Any) -> dict[str, Any]:
    number = next(_count)
    return {
        "type": kind,
        "data": data,
        "id": f"e{number}",
        "timestamp": iso(number),
        "parentId": f"e{number - 1}" if number > 1 else None,
    }


def answer(number: int, text: str = "", *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return line(
        "assistant.message",
        messageId=f"m{number}",
        content=text,
        model=MODEL,
        toolRequests=list(calls),
        outputTokens=50,
        **more,
    )


def request(ident: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"toolCallId": ident, "name": name, "arguments": given, "type": "function"}


def done(ident: str, text: str) -> dict[str, Any]:
    return line("tool.execution_complete", toolCallId=ident, success=True, result={"content": text})


SPENT = {
    "inputTokens": 5000,
    "outputTokens": 250,
    "cacheReadTokens": 3000,
    "cacheWriteTokens": 0,
    "reasoningTokens": 25,
}
SAMPLE = Sample(
    agent="copilot",
    session_id=ID,
    files={
        f".copilot/session-state/{ID}/events.jsonl": lines(
            line(
                "session.start",
                sessionId=ID,
                copilotVersion="1.0.68",
                producer="copilot-agent",
                context={"cwd": CWD, "gitRoot": CWD, "branch": BRANCH},
            ),
            line("user.message", content=PROMPT),
            line("user.message", content=INJECTED, source="system"),
            answer(
                1,
                WORDS,
                request("t1", "create", {"path": FILE, "file_text": BEFORE}),
                reasoningText=THOUGHT,
            ),
            done("t1", "written"),
            answer(
                2,
                "",
                request("t2", "edit", {"path": FILE, "old_str": "world", "new_str": "harbour"}),
            ),
            done("t2", "edited"),
            answer(3, "", request("t3", "bash", {"command": COMMAND})),
            done("t3", f"{SHOWN}\n<exited with exit code 1>"),
            answer(4, CLOSING),
            line("user.message", content=SECOND),
            answer(5, ANSWER),
            line(
                "session.shutdown",
                shutdownType="routine",
                modelMetrics={MODEL: {"requests": {"count": 5}, "usage": SPENT}},
            ),
        )
    },
    tools=(("create", "write"), ("edit", "edit"), ("bash", "shell")),
    injected=(INJECTED,),
    resume=f"copilot --resume={ID}",
)
