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

ID = "c0de0000-0000-7000-8000-000000000001"
INJECTED = "<environment_context>\n  <shell>bash</shell>\n</environment_context>"
_count = iter(range(1, 100))


def line(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": iso(next(_count)), "type": kind, "payload": payload}


def item(kind: str, **more: Any) -> dict[str, Any]:
    return line("response_item", {"type": kind, **more})


def words(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}])


def event(kind: str, **more: Any) -> dict[str, Any]:
    return line("event_msg", {"type": kind, **more})


def spent(answers: int) -> dict[str, Any]:
    """Totals so far, input with what came from the cache."""
    one = {
        "input_tokens": 1000,
        "cached_input_tokens": 600,
        "output_tokens": 50,
        "reasoning_output_tokens": 5,
        "total_tokens": 1050,
    }
    total = {name: value * answers for name, value in one.items()}
    return event("token_count", info={"total_token_usage": total, "last_token_usage": one})


def patch(*body: str) -> str:
    return "\n".join(("*** Begin Patch", *body, "*** End Patch"))


ADD = patch(f"*** Add File: {FILE}", *(f"+{text}" for text in BEFORE.split()))
CHANGE = patch(f"*** Update File: {FILE}", "@@", " hello", "-world", "+harbour")
PLACE = {"cwd": CWD, "model": MODEL, "approval_policy": "never"}
SAMPLE = Sample(
    agent="codex",
    session_id=ID,
    files={
        f".codex/sessions/2026/09/21/rollout-2026-09-21T14-13-20-{ID}.jsonl": lines(
            line(
                "session_meta",
                {
                    "id": ID,
                    "timestamp": iso(0),
                    "cwd": CWD,
                    "originator": "codex_cli_rs",
                    "cli_version": "0.166.0",
                    "git": {"branch": BRANCH},
                },
            ),
            line("turn_context", PLACE),
            words("user", INJECTED),
            words("user", PROMPT),
            event("user_message", message=PROMPT),
            event("agent_reasoning", text=THOUGHT),
            item("reasoning", summary=[{"type": "summary_text", "text": THOUGHT}]),
            words("assistant", WORDS),
            event("agent_message", message=WORDS),
            item("custom_tool_call", call_id="c1", name="apply_patch", input=ADD),
            item("custom_tool_call_output", call_id="c1", output="Success."),
            spent(1),
            item("custom_tool_call", call_id="c2", name="apply_patch", input=CHANGE),
            item("custom_tool_call_output", call_id="c2", output="Success."),
            spent(2),
            item(
                "function_call",
                call_id="c3",
                name="exec_command",
                arguments=f'{{"cmd":"{COMMAND}"}}',
            ),
            item(
                "function_call_output",
                call_id="c3",
                output=f"Chunk ID: 1\nProcess exited with code 1\nOutput:\n{SHOWN}",
            ),
            spent(3),
            words("assistant", CLOSING),
            event("agent_message", message=CLOSING),
            spent(4),
            line("turn_context", PLACE),
            words("user", SECOND),
            event("user_message", message=SECOND),
            words("assistant", ANSWER),
            event("agent_message", message=ANSWER),
            spent(5),
        )
    },
    tools=(("apply_patch", "patch"), ("apply_patch", "patch"), ("exec_command", "shell")),
    injected=(INJECTED,),
    resume=f"codex resume {ID}",
)
