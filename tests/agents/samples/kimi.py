from __future__ import annotations

from typing import Any

from tests.agents.samples import (
    ANSWER,
    BEFORE,
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
    lines,
)

ID = "session_a1300000-0000-4000-8000-000000000001"
OLD = "a1300000-0000-4000-8000-000000000002"
INJECTED = "<system-reminder>Auto permission mode is active.</system-reminder>"
_count = iter(range(1, 200))


def line(kind: str, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "agentId": "main", **more, "time": NOW + next(_count) * 1000}


def said(words: str, number: int) -> list[dict[str, Any]]:
    """A prompt, which is written three times."""
    content = [{"type": "text", "text": words}]
    message = {"role": "user", "content": content, "origin": {"kind": "user"}}
    return [
        line("turn.prompt", input=content, origin={"kind": "user"}, promptId=f"msg_{number}"),
        line("context.append_message", message=message),
        line("agent.message.appended", message={"message": message}, kind="event"),
    ]


def event(kind: str, /, **more: Any) -> dict[str, Any]:
    number = next(_count)
    return line("context.append_loop_event", event={"type": kind, "uuid": f"k{number}", **more})


def answer(*events: dict[str, Any]) -> list[dict[str, Any]]:
    """A response, whose tokens are written three times, under the name of a setting."""
    usage = {"inputOther": 400, "output": 50, "inputCacheRead": 600, "inputCacheCreation": 0}
    return [
        line("llm.request", kind="loop", model=MODEL, modelAlias="mock"),
        line("usage.record", model="mock", usage=usage, usageScope="turn"),
        *events,
        event("step.end", usage=usage),
        line("agent.message.appended", message={"meta": {"usage": usage}}, kind="event"),
    ]


def part(kind: str, words: str) -> dict[str, Any]:
    return event("content.part", part={"type": kind, kind: words})


def call(ident: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    return event("tool.call", toolCallId=ident, name=name, args=given)


def result(ident: str, words: str, **more: Any) -> dict[str, Any]:
    return event("tool.result", toolCallId=ident, result={"output": words, **more})


INJECTION = {
    "role": "user",
    "content": [{"type": "text", "text": INJECTED}],
    "origin": {"kind": "injection", "variant": "mode"},
}
EDIT = {"path": FILE, "old_string": "world", "new_string": "harbour"}
FOLDER = f".kimi-code/sessions/wd_quay_0123456789ab/{ID}"
FORMER = ".kimi/sessions/43a6d9a5f4d4b0f3d8f7d4d3c2b1a0ff"


def former(kind: str, /, **payload: Any) -> dict[str, Any]:
    """A record of Kimi CLI, the program before it."""
    return {"timestamp": NOW / 1000 + next(_count), "message": {"type": kind, "payload": payload}}


SAMPLE = Sample(
    agent="kimi",
    session_id=ID,
    files={
        # before the stream, which is found first: the state names the folder
        f"{FOLDER}/state.json": document(
            {
                "id": ID,
                "version": 2,
                "cwd": CWD,
                "title": TITLE,
                "forkedFrom": "session_0",
                "agents": {"main": {}},
                "createdAt": NOW,
            }
        ),
        f"{FOLDER}/agents/main/wire.jsonl": lines(
            {"type": "metadata", "protocol_version": "1.5", "created_at": NOW},
            line("profile.bind", modelAlias="mock", environmentDisclosure={"cwd": CWD}),
            *said(PROMPT, 1),
            line("context.append_message", message=INJECTION),
            *answer(
                part("think", THOUGHT),
                part("text", WORDS),
                call("km-1", "Write", {"path": FILE, "content": BEFORE}),
                result("km-1", "Wrote 12 bytes"),
            ),
            *answer(call("km-2", "Edit", EDIT), result("km-2", "Replaced 1 occurrence")),
            *answer(
                call("km-3", "Bash", {"command": COMMAND}),
                result("km-3", f"{SHOWN}Command failed with exit code: 1.", isError=True),
            ),
            *answer(part("text", CLOSING)),
            *said(SECOND, 2),
            *answer(part("text", ANSWER)),
        ),
        f"{FOLDER}/agents/scout/wire.jsonl": lines(
            {"type": "metadata", "protocol_version": "1.5", "created_at": NOW},
            *said("Look for greetings", 9),
        ),
        f"{FORMER}/{OLD}/wire.jsonl": lines(
            {"type": "metadata", "protocol_version": "1.10"},
            former("TurnBegin", user_input=PROMPT),
            former("ContentPart", type="text", text=WORDS),
            former("TurnEnd"),
        ),
    },
    tools=(("Write", "write"), ("Edit", "edit"), ("Bash", "shell")),
    injected=(INJECTED,),
    tokens={"input": 2000, "cache_read": 3000, "output": 250},
    branch=None,
    title=TITLE,
    forked_from="session_0",
    children=(f"scout@{ID}",),
    others=(OLD,),
    resume=f"kimi --session {ID}",
)
