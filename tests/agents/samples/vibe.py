from __future__ import annotations

from typing import Any

from tests.agents.samples import (
    ANSWER,
    BEFORE,
    CLOSING,
    COMMAND,
    CWD,
    FILE,
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
)

ID = "71be0000-0000-4000-8000-000000000001"
INJECTED = "A note that the program added"
FOLDER = f".vibe/logs/session/unified/{ID}"
_count = iter(range(1, 100))


def entry(kind: str, **more: Any) -> dict[str, Any]:
    number = next(_count)
    at = NOW + number * 1000
    times = {"createdAt": at, "updatedAt": at + 500}
    return {"type": kind, "id": f"vi{number}", "sessionId": ID, **times, **more}


def message(role: str, words: str, source: str = "harness") -> dict[str, Any]:
    return entry("message", role=role, source=source, content=[{"type": "text", "text": words}])


def effect(tool: str, given: dict[str, Any], told: dict[str, Any], **about: Any) -> dict[str, Any]:
    detail = {"kind": "tool", "toolName": tool, "input": given}
    output = {"type": "success", "structured_content": told, "_meta": about}
    state = {"status": "completed", "decision": "execute", "output": output}
    return entry("effect", detail=detail, state=state, title=tool)


EDITED = {"file_path": "greeting.txt", "content": [{"old_str": "world", "new_str": "harbour"}]}
PREVIOUS = {"mistralai.vibe.sdk.search_replace": {"previous_content": BEFORE, "blocks": []}}
RAN = {"stdout": SHOWN, "stderr": "", "returncode": 1, "timed_out": False}
FIRST = [
    message("user", PROMPT, "turn_start"),
    message("user", INJECTED, "context"),
    entry("reasoning", text=THOUGHT),
    message("assistant", WORDS),
    effect(
        "file_system.write_file",
        {"path": "greeting.txt", "content": BEFORE},
        {"bytes_written": 12, "file_existed": False, "path": FILE},
    ),
    effect("file_system.search_replace", EDITED, {"file": FILE, "lines_changed": 1}, **PREVIOUS),
    effect("file_system.bash", {"command": COMMAND}, RAN),
    message("assistant", CLOSING),
]
LAST = [message("user", SECOND, "turn_start"), message("assistant", ANSWER)]
SPENT = {"inputTokens": 5000, "cachedInputTokens": 3000, "outputTokens": 250}
SAMPLE = Sample(
    agent="vibe",
    session_id=ID,
    files={
        f"{FOLDER}/meta.json": document(
            {
                "session_id": ID,
                "parent_session_id": None,
                "start_time": iso(0),
                "git_branch": "main",
                "environment": {"working_directory": CWD},
                "title": TITLE,
                "title_source": "auto",
            }
        ),
        f"{FOLDER}/CURRENT": document({"generation": "0000000000000055", "session_id": ID}),
        f"{FOLDER}/generations/0000000000000055/manifest.json": document(
            {"projection_state": {"chunks": ["b2", "a1"]}, "checkpoint": {"chunks": ["c3"]}}
        ),
        f"{FOLDER}/generations/0000000000000055/projection-state.json": document(
            {
                "projection_state_version": 1,
                "snapshot": {"session": {"createdAt": NOW, "tokenUsage": SPENT}},
            }
        ),
        # in the order of the list, not of their names
        f"{FOLDER}/chunks/b2.json": document(FIRST),
        f"{FOLDER}/chunks/a1.json": document(LAST),
        f"{FOLDER}/chunks/c3.json": document([{"message": {"role": "user"}, "turn_index": 0}]),
    },
    tools=(
        ("file_system.write_file", "write"),
        ("file_system.search_replace", "edit"),
        ("file_system.bash", "shell"),
    ),
    injected=(INJECTED,),
    tokens={"input": 2000, "cache_read": 3000, "output": 250},
    model=None,
    title=TITLE,
    totals_only=True,
    resume=f"vibe --resume {ID}",
)
