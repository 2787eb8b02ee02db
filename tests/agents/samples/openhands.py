from __future__ import annotations

from typing import Any

from tests.agents.samples import (
    AFTER,
    ANSWER,
    ANSWERS,
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
    WORDS,
    Sample,
    document,
    iso,
)

HEX = "0a0d0000000040008000000000000001"
ID = "0a0d0000-0000-4000-8000-000000000001"
INJECTED = "what a hook added"
FOLDER = f".openhands/conversations/{HEX}"


def text(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


def message(source: str, words: str, **more: Any) -> dict[str, Any]:
    role = "user" if source == "user" else "assistant"
    told = {"role": role, "content": text(words)}
    return {"source": source, "llm_message": told, "kind": "MessageEvent", **more}


def action(ident: str, tool: str, given: dict[str, Any], **more: Any) -> dict[str, Any]:
    told = {"thought": [], "reasoning_content": None, "action": given, **more}
    about = {"tool_name": tool, "tool_call_id": ident, "kind": "ActionEvent"}
    return {"source": "agent", **told, **about}


def observation(ident: str, tool: str, kind: str, words: str, **more: Any) -> dict[str, Any]:
    seen = {"content": text(words), "is_error": False, "kind": f"{kind}Observation", **more}
    about = {"tool_name": tool, "tool_call_id": ident, "kind": "ObservationEvent"}
    return {"source": "environment", "observation": seen, **about}


EDITOR = {"kind": "FileEditorAction", "path": FILE, "file_text": None, "old_str": None}
CREATE = {**EDITOR, "command": "create", "file_text": BEFORE}
REPLACE = {**EDITOR, "command": "str_replace", "old_str": "world", "new_str": "harbour"}
RUN = {"kind": "TerminalAction", "command": COMMAND}
EVENTS = [
    {"source": "agent", "system_prompt": {"type": "text", "text": "You are OpenHands."}}
    | {"kind": "SystemPromptEvent"},
    message("user", PROMPT, extended_content=text(INJECTED)),
    action("oh-1", "file_editor", CREATE, thought=text(WORDS), reasoning_content=THOUGHT),
    observation(
        "oh-1",
        "file_editor",
        "FileEditor",
        "created",
        command="create",
        path=FILE,
        prev_exist=False,
        new_content=BEFORE,
    ),
    action("oh-2", "file_editor", REPLACE),
    observation(
        "oh-2",
        "file_editor",
        "FileEditor",
        "edited",
        command="str_replace",
        path=FILE,
        prev_exist=True,
        old_content=BEFORE,
        new_content=AFTER,
    ),
    action("oh-3", "terminal", RUN),
    observation("oh-3", "terminal", "Terminal", SHOWN, command=COMMAND, exit_code=1),
    message("agent", CLOSING),
    message("user", SECOND, extended_content=[]),
    message("agent", ANSWER),
]
SPENT = {
    "model": MODEL,
    "prompt_tokens": 1000,
    "completion_tokens": 50,
    "cache_read_tokens": 600,
    "cache_write_tokens": 0,
    "reasoning_tokens": 5,
}
USAGES = [{**SPENT, "response_id": f"r{number}"} for number in range(ANSWERS)]


def event(number: int, told: dict[str, Any]) -> bytes:
    return document({"id": f"oh{number}", "timestamp": iso(number, ""), **told})


SAMPLE = Sample(
    agent="openhands",
    session_id=ID,
    files={
        f"{FOLDER}/base_state.json": document(
            {
                "id": ID,
                "agent": {"llm": {"model": MODEL}},
                "workspace": {"working_dir": CWD, "kind": "LocalWorkspace"},
                "stats": {"usage_to_metrics": {"agent": {"token_usages": USAGES}}},
            }
        ),
        **{
            f"{FOLDER}/events/event-{number:05}-oh{number}.json": event(number, told)
            for number, told in enumerate(EVENTS)
        },
    },
    tools=(("file_editor", "write"), ("file_editor", "edit"), ("terminal", "shell")),
    injected=(INJECTED,),
    branch=None,
    resume=f"openhands --resume {ID}",
)
