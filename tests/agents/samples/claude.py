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
    TITLE,
    WORDS,
    Sample,
    iso,
    lines,
)

ID = "c1a00000-0000-4000-8000-000000000001"
INJECTED = "<system-reminder>The date has changed.</system-reminder>"
_count = iter(range(1, 100))


def line(kind: str, message: dict[str, Any], **more: Any) -> dict[str, Any]:
    number = next(_count)
    return {
        "parentUuid": f"u{number - 1}" if number > 1 else None,
        "isSidechain": False,
        "type": kind,
        "message": message,
        "uuid": f"u{number}",
        "timestamp": iso(number),
        "cwd": CWD,
        "sessionId": ID,
        "version": "2.1.197",
        "gitBranch": BRANCH,
        **more,
    }


def said(number: int, *blocks: dict[str, Any]) -> list[dict[str, Any]]:
    """An answer: one line for each block, each with the tokens of the whole answer."""
    usage = {
        "input_tokens": 400,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 600,
        "output_tokens": 50,
    }
    message = {"id": f"msg_{number}", "role": "assistant", "model": MODEL, "usage": usage}
    return [
        line("assistant", {**message, "content": [block]}, requestId=f"req_{number}")
        for block in blocks
    ]


def used(ident: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": ident, "name": name, "input": given}


def came(ident: str, text: str, outcome: Any, **more: Any) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": ident, "content": text, **more}
    return line("user", {"role": "user", "content": [block]}, toolUseResult=outcome)


HUNK = {"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2}
HUNKS = [{**HUNK, "lines": [" hello", "-world", "+harbour"]}]
SAMPLE = Sample(
    agent="claude",
    session_id=ID,
    files={
        f".claude/projects/-code-quay/{ID}.jsonl": lines(
            line("user", {"role": "user", "content": PROMPT}),
            line("user", {"role": "user", "content": INJECTED}, isMeta=True),
            *said(
                1,
                {"type": "thinking", "thinking": THOUGHT, "signature": "s"},
                {"type": "text", "text": WORDS},
                used("t1", "Write", {"file_path": FILE, "content": BEFORE}),
            ),
            came(
                "t1",
                "written",
                {"type": "create", "filePath": FILE, "content": BEFORE, "structuredPatch": []},
            ),
            *said(
                2,
                used(
                    "t2",
                    "Edit",
                    {"file_path": FILE, "old_string": "world", "new_string": "harbour"},
                ),
            ),
            came(
                "t2",
                "edited",
                {"filePath": FILE, "originalFile": BEFORE, "structuredPatch": HUNKS},
            ),
            *said(3, used("t3", "Bash", {"command": COMMAND})),
            came("t3", f"Exit code 1\n{SHOWN}", f"Error: Exit code 1\n{SHOWN}", is_error=True),
            *said(4, {"type": "text", "text": CLOSING}),
            {"type": "ai-title", "aiTitle": TITLE, "sessionId": ID},
            line("user", {"role": "user", "content": SECOND}),
            *said(5, {"type": "text", "text": ANSWER}),
        )
    },
    tools=(("Write", "write"), ("Edit", "edit"), ("Bash", "shell")),
    injected=(INJECTED,),
    tokens={"input": 2000, "cache_read": 3000, "output": 250},
    exit_code=None,
    title=TITLE,
    resume=f"claude --resume {ID}",
)
