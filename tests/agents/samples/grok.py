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
    lines,
)

ID = "01990000-0000-7000-8000-000000000041"
INJECTED = "A reminder that the program added"
_count = iter(range(1, 100))


def update(kind: str, prompt: int, stream: int = 0, **more: Any) -> dict[str, Any]:
    number = next(_count)
    own = kind in ("hook_execution", "turn_completed")
    about = {
        "eventId": f"{ID}-{number}",
        "agentTimestampMs": NOW + number * 1000,
        "promptId": f"p{prompt}",
        "streamStartMs": NOW + stream,
    }
    return {
        "timestamp": NOW // 1000 + number,
        "method": "_x.ai/session/update" if own else "session/update",
        "params": {"sessionId": ID, "update": {"sessionUpdate": kind, **more}, "_meta": about},
    }


def piece(kind: str, prompt: int, stream: int, words: str) -> dict[str, Any]:
    return update(kind, prompt, stream, content={"type": "text", "text": words})


def asked(index: int, words: str, **more: Any) -> dict[str, Any]:
    about = {"modelId": MODEL, "promptIndex": index, **more}
    content = {"type": "text", "text": words}
    return update("user_message_chunk", index, content=content, _meta=about)


def call(ident: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    tool = {"x.ai/tool": {"version": 1, "name": name}}
    return update("tool_call", 0, toolCallId=ident, title=name, rawInput=given, _meta=tool)


def done(ident: str, raw: dict[str, Any], *content: dict[str, Any]) -> list[dict[str, Any]]:
    """What a call says twice: when it is approved, and when it is done."""
    shown = list(content)
    last = update(
        "tool_call_update",
        0,
        toolCallId=ident,
        status="completed",
        content=shown,
        rawOutput=raw,
    )
    first = update("tool_call_update", 0, toolCallId=ident, title="again", content=shown)
    return [first, last]


def turn(index: int, answers: int) -> dict[str, Any]:
    spent = {
        "inputTokens": 1000 * answers,
        "outputTokens": 50 * answers,
        "cachedReadTokens": 600 * answers,
        "cacheCreationTokens": 0,
        "reasoningTokens": 5 * answers,
    }
    usage = {**spent, "modelCalls": answers, "modelUsage": {MODEL: spent}}
    return update(
        "turn_completed", index, prompt_id=f"p{index}", stop_reason="end_turn", usage=usage
    )


def of_child(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "params": {**record["params"], "sessionId": CHILD}}


def diff(before: str, after: str) -> dict[str, Any]:
    return {"type": "diff", "path": FILE, "oldText": before, "newText": after}


EDIT = {"file_path": FILE, "old_string": "world", "new_string": "harbour"}
APPLIED = {"type": "SearchReplace", "EditsApplied": {"tool_output_for_prompt": "updated"}}
RAN = {"type": "Bash", "output_for_prompt": f"exit: 1\n{SHOWN}", "exit_code": 1}
CHILD = "01990000-0000-7000-8000-000000000042"
CHILDS = f".grok/sessions/%2Fcode%2Fquay/{CHILD}"
FOLDER = f".grok/sessions/%2Fcode%2Fquay/{ID}"
SAMPLE = Sample(
    agent="grok",
    session_id=ID,
    files={
        f"{FOLDER}/summary.json": document(
            {
                "info": {"id": ID, "cwd": CWD},
                "session_summary": TITLE,
                "created_at": iso(0),
                "current_model_id": MODEL,
                "head_branch": BRANCH,
                "parent_session_id": "01990000-0000-7000-8000-000000000040",
                "forked_at": iso(0),
            }
        ),
        # A subagent is a session of its own; only its parent's folder says whose.
        f"{CHILDS}/summary.json": document(
            {
                "info": {"id": CHILD, "cwd": CWD},
                "session_summary": "Look for greetings",
                "created_at": iso(0),
                "session_kind": "subagent",
                "agent_name": "explore",
            }
        ),
        f"{FOLDER}/subagents/{CHILD}/meta.json": document({"child_session_id": CHILD}),
        f"{CHILDS}/updates.jsonl": lines(
            of_child(asked(0, "Look for greetings")), of_child(turn(0, 1))
        ),
        f"{FOLDER}/updates.jsonl": lines(
            update("hook_execution", 0, event_name="session_start", runs=[]),
            asked(0, PROMPT),
            asked(0, INJECTED, synthetic_reason="system_reminder"),
            piece("agent_thought_chunk", 0, 1, THOUGHT[:9]),
            piece("agent_thought_chunk", 0, 1, THOUGHT[9:]),
            piece("agent_message_chunk", 0, 1, WORDS[:4]),
            update("hook_execution", 0, event_name="pre_tool_use", runs=[]),
            piece("agent_message_chunk", 0, 1, WORDS[4:]),
            call("gr-1", "write", {"file_path": FILE, "content": BEFORE}),
            *done("gr-1", APPLIED, diff("", BEFORE)),
            call("gr-2", "search_replace", EDIT),
            *done("gr-2", APPLIED, diff("world", "harbour")),
            call("gr-3", "run_terminal_command", {"command": COMMAND}),
            *done("gr-3", RAN, {"type": "content", "content": {"type": "text", "text": SHOWN}}),
            piece("agent_message_chunk", 0, 4, CLOSING),
            turn(0, 4),
            asked(1, SECOND),
            piece("agent_message_chunk", 1, 5, ANSWER),
            turn(1, 1),
        ),
    },
    tools=(("write", "write"), ("search_replace", "edit"), ("run_terminal_command", "shell")),
    injected=(INJECTED,),
    children=(CHILD,),
    title=TITLE,
    forked_from="01990000-0000-7000-8000-000000000040",
    resume=f"grok --resume {ID}",
)
