"""Gemini CLI's sessions, restored: the messages its edit log comes down to, where it looks for
them."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from tests.conftest import Result
from tests.service.restore.helpers import Json, bring_back, lines, seqs, texts
from whyfor.service.restore import RestoredSource

Cli = Callable[..., Result]
SESSION = "5e551011-0000-4000-8000-000000000001"


def message(ident: str, second: int, kind: str, content: object, **more: object) -> Json:
    return {
        "id": ident,
        "timestamp": f"2026-05-01T10:00:{second:02}.000Z",
        "type": kind,
        "content": content,
        **more,
    }


def call(ident: str, result: str | None) -> Json:
    answer = [{"functionResponse": {"id": ident, "name": "shell", "response": {"output": result}}}]
    done = (
        {"status": "success", "result": answer} if result is not None else {"status": "executing"}
    )
    return {"id": ident, "name": "run_shell_command", "args": {"command": ident}, **done}


def log(*records: Json, session: str = SESSION) -> str:
    head = {
        "sessionId": session,
        "projectHash": "ab",
        "startTime": "2026-05-01T10:00:00.000Z",
        "kind": "main",
    }
    return "".join(
        json.dumps(record) + "\n"
        for record in ({**head, "lastUpdated": head["startTime"]}, *records)
    )


def save(home: Path, text: str, name: str = "session-2026-05-01T10-00-5e551011.jsonl") -> Path:
    path = home / ".gemini" / "tmp" / "garden" / "chats" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


TALK = (
    {"$set": {"messages": [message("c", 0, "user", [{"text": "<session_context>\nhere"}])]}},
    message("u1", 1, "user", [{"text": "Plant a fern"}]),
    message("g1", 2, "gemini", "Digging.", tokens={"input": 5, "output": 7, "cached": 0}),
    message(
        "g1",
        2,
        "gemini",
        "Digging.",
        toolCalls=[call("commit", "done")],
        tokens={"input": 5, "output": 7},
    ),
    {"$set": {"lastUpdated": "2026-05-01T10:00:02.000Z"}},
    message("u2", 3, "user", [{"text": "A mistake"}]),
    {"$rewindTo": "u2"},
    message("u3", 4, "user", [{"text": "And the rose"}]),
    message("g3", 5, "gemini", "Cutting.", toolCalls=[call("cut", None)]),
)


def test_the_log_is_replayed_up_to_the_cut(home: Path, cwd: Path, cli: Cli) -> None:
    path = save(home, log(*TALK))
    before = path.read_bytes()
    cli("ingest")
    tokens = cli("stats", "--json").json["tokens"]
    commit = seqs("gemini", SESSION, "tool.result")[0]
    made = bring_back(cwd, RestoredSource("gemini", SESSION, commit), agent="gemini")

    assert path.read_bytes() == before
    assert made.command == f"gemini --resume {made.session_id}"
    head, *rest, end = lines(made.path)
    assert end["restoredFrom"] == f"gemini:{SESSION}"
    assert head["sessionId"] == made.session_id
    assert head["projectHash"] == sha256(str(cwd).encode()).hexdigest()
    assert [record["id"] for record in rest] == ["u1", "g1"]
    assert rest[1]["toolCalls"] == [call("commit", "done")]
    assert Path(made.path).name.endswith(f"-{made.session_id[:8]}.jsonl")
    cli("ingest")
    assert cli("stats", "--json").json["tokens"] == tokens
    session = cli("show", made.session_id, "--json").json["session"]
    assert (session["title"], session["cwd"]) == ("Restored 126e95e0: Ferns", str(cwd))
    assert session["started_at"] == "2026-05-01T10:00:01.000Z", (
        "its own time, not that of its restoring"
    )


def test_what_was_taken_back_or_never_answered_is_not_in_it(
    home: Path, cwd: Path, cli: Cli
) -> None:
    save(home, log(*TALK))
    cli("ingest")
    _, *rest, _ = lines(bring_back(cwd, RestoredSource("gemini", SESSION), agent="gemini").path)
    assert [record["id"] for record in rest] == ["u1", "g1", "u3", "g3"]
    assert rest[3]["toolCalls"] == []


def test_a_session_resumed_into_a_second_file_keeps_its_times(
    home: Path, cwd: Path, cli: Cli
) -> None:
    save(home, log(*TALK[:4]))
    again = [
        {**TALK[1], "timestamp": "2026-05-09T10:00:00.000Z"},
        {**TALK[2], "timestamp": "2026-05-09T10:00:00.000Z"},
    ]
    later = {
        **message("u4", 1, "user", [{"text": "And the lily"}]),
        "timestamp": "2026-05-09T10:00:01.000Z",
    }
    save(home, log({"$set": {"messages": again}}, later), "session-2026-05-09T10-00-5e551011.jsonl")
    cli("ingest")
    _, *rest, _ = lines(bring_back(cwd, RestoredSource("gemini", SESSION), agent="gemini").path)
    assert [(record["id"], record["timestamp"][8:19]) for record in rest] == [
        ("u1", "01T10:00:01"),
        ("g1", "01T10:00:02"),
        ("u4", "09T10:00:01"),
    ]


def test_the_older_documents_become_a_log(home: Path, cwd: Path, cli: Cli) -> None:
    body = {
        "sessionId": SESSION,
        "projectHash": "ab",
        "startTime": "2026-05-01T10:00:00.000Z",
        "messages": TALK[1:2],
    }
    whole = {**body, "messages": [TALK[1], TALK[3], TALK[7]]}
    save(home, json.dumps(whole, indent=2), "session-2026-05-01T10-00-5e551011.json")
    cli("ingest")
    commit = seqs("gemini", SESSION, "tool.result")[0]
    made = bring_back(cwd, RestoredSource("gemini", SESSION, commit), agent="gemini")
    assert [record.get("id") for record in lines(made.path)] == [None, "u1", "g1", None]


def test_a_folder_the_agent_does_not_know_is_registered(home: Path, cwd: Path, cli: Cli) -> None:
    save(home, log(*TALK))
    cli("ingest")
    root = home / ".gemini"
    (root / "projects.json").write_text(
        json.dumps({"projects": {"/code/garden": "garden", "/code/shop": "shop"}})
    )
    made = bring_back(cwd, RestoredSource("gemini", SESSION), agent="gemini")

    assert Path(made.path).parent == root / "tmp" / "shop-1" / "chats"
    known = json.loads((root / "projects.json").read_text())["projects"]
    assert known == {"/code/garden": "garden", "/code/shop": "shop", str(cwd): "shop-1"}
    assert (root / "tmp" / "shop-1" / ".project_root").read_text() == str(cwd)
    assert (root / "history" / "shop-1" / ".project_root").read_text() == str(cwd)
    again = bring_back(cwd, RestoredSource("gemini", SESSION), agent="gemini")
    assert Path(again.path).parent == Path(made.path).parent
    assert texts("gemini", SESSION, "assistant.message") == [
        ("assistant.message", "Digging."),
        ("assistant.message", "Cutting."),
    ]
