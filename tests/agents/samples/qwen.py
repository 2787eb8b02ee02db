from __future__ import annotations

from typing import Any

from tests.agents.samples import (
    AFTER,
    ANSWER,
    BEFORE,
    BRANCH,
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

ID = "9e400000-0000-4000-8000-000000000001"
INJECTED = (
    "<qwen:user-prompt-submit-context>\nearlier work exists\n</qwen:user-prompt-submit-context>"
)
NEW = "--- greeting.txt\n+++ greeting.txt\n@@ -0,0 +1,2 @@\n+hello\n+world\n"
_count = iter(range(1, 100))


def line(kind: str, provenance: str, **more: Any) -> dict[str, Any]:
    number = next(_count)
    return {
        "uuid": f"q{number}",
        "parentUuid": f"q{number - 1}" if number > 1 else None,
        "sessionId": ID,
        "timestamp": iso(number),
        "type": kind,
        "provenance": provenance,
        "cwd": CWD,
        "version": "0.24.4",
        "gitBranch": BRANCH,
        **more,
    }


def user(*texts: str) -> dict[str, Any]:
    parts = [{"text": text} for text in texts]
    return line("user", "real_user", message={"role": "user", "parts": parts})


def answer(*parts: dict[str, Any]) -> list[dict[str, Any]]:
    """A response: its telemetry, then itself, both with its tokens."""
    told = {
        "event.name": "qwen-code.api_response",
        "model": MODEL,
        "input_token_count": 1000,
        "output_token_count": 50,
        "cached_content_token_count": 600,
        "thoughts_token_count": 5,
    }
    usage = {
        "promptTokenCount": 1000,
        "candidatesTokenCount": 50,
        "thoughtsTokenCount": 5,
        "totalTokenCount": 1050,
        "cachedContentTokenCount": 600,
    }
    return [
        line("system", "system", subtype="ui_telemetry", systemPayload={"uiEvent": told}),
        line(
            "assistant",
            "assistant_output",
            model=MODEL,
            message={"role": "model", "parts": list(parts)},
            usageMetadata=usage,
        ),
    ]


def call(ident: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"functionCall": {"id": ident, "name": name, "args": given}}


def result(ident: str, name: str, text: str, shown: Any, status: str = "success") -> dict[str, Any]:
    answered = {"functionResponse": {"id": ident, "name": name, "response": {"output": text}}}
    return line(
        "tool_result",
        "tool_result",
        message={"role": "user", "parts": [answered]},
        toolCallResult={"callId": ident, "status": status, "resultDisplay": shown},
    )


def diff(text: str, before: str, after: str) -> dict[str, Any]:
    return {
        "fileDiff": text,
        "fileName": "greeting.txt",
        "filePath": FILE,
        "originalContent": before,
        "newContent": after,
    }


RAN = {"type": "shell_result", "version": 1, "exitCode": 1, "outcome": "failed", "output": SHOWN}
EDIT = {"file_path": FILE, "old_string": "world", "new_string": "harbour"}
SAMPLE = Sample(
    agent="qwen",
    session_id=ID,
    files={
        f".qwen/projects/-code-quay/chats/{ID}.jsonl": lines(
            user(PROMPT, INJECTED),
            line(
                "system",
                "system",
                subtype="attribution_snapshot",
                systemPayload={"snapshot": {"promptCount": 1}},
            ),
            *answer(
                {"text": THOUGHT, "thought": True},
                {"text": WORDS},
                call("q-1", "write_file", {"file_path": FILE, "content": BEFORE}),
            ),
            result("q-1", "write_file", "written", diff(NEW, "", BEFORE)),
            *answer(call("q-2", "edit", EDIT)),
            result("q-2", "edit", "edited", diff(PATCH, BEFORE, AFTER)),
            *answer(call("q-3", "run_shell_command", {"command": COMMAND})),
            result("q-3", "run_shell_command", f"{SHOWN}\nExit Code: 1", RAN, "error"),
            *answer({"text": CLOSING}),
            line(
                "system",
                "system",
                subtype="custom_title",
                systemPayload={"customTitle": TITLE, "titleSource": "auto"},
            ),
            user(SECOND),
            *answer({"text": ANSWER}),
        ),
    },
    tools=(("write_file", "write"), ("edit", "edit"), ("run_shell_command", "shell")),
    injected=(INJECTED,),
    title=TITLE,
    resume=f"qwen --resume {ID}",
)
