"""A word that must be nowhere, sessions of every agent that hold it in private places, and a
look at every byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import zstandard

from tests.transcripts import Transcript

CANARY = "quetzalcoatlus"
OPEN = "heliotrope"  # stands beside private text, and must stay
BIT = f"{OPEN} <private>{CANARY}</private>"
ONLY = f"<private>{CANARY}</private>"
Record = dict[str, Any]


# -- looking everywhere --------------------------------------------------------------------------


def found(home: Path, word: str = CANARY) -> list[str]:
    """Places below a folder that hold the word, in any case: raw bytes, unpacked ones, rows, the
    index of words."""
    places = []
    for path in sorted(home.rglob("*")):
        if path.is_file() and any(word.encode() in content.lower() for content in _contents(path)):
            places.append(str(path.relative_to(home)))
        if path.name.endswith(".db"):
            places += [f"{path.name}: {place}" for place in _rows(path, word)]
    return places


def _contents(path: Path) -> Iterator[bytes]:
    content = path.read_bytes()
    yield content
    if path.suffix == ".zst":
        yield zstandard.ZstdDecompressor().decompress(content)


def _rows(path: Path, word: str) -> Iterator[str]:
    db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        names = [
            name for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type='table'")
        ]
        for name in names:
            for row in db.execute(f'SELECT * FROM "{name}"'):
                if any(word in str(value).lower() for value in row if not isinstance(value, bytes)):
                    yield f"{name} {row}"
        if "words" in names:
            yield from (
                f"word in {rowid}" for (rowid,) in db.execute("SELECT rowid FROM words(?)", (word,))
            )
    finally:
        db.close()


# -- sessions ------------------------------------------------------------------------------------


def lines(records: list[Record]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def save(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def claude_bits() -> Transcript:
    """Private words in every kind of line, none of them a whole prompt."""
    t = Transcript("bits")
    own = {"sessionId": t.session_id}
    t.lines.append(
        {
            "type": "queue-operation",
            "operation": "enqueue",
            "content": BIT,
            "timestamp": t._time(),
            **own,
        }
    )
    t.prompt(
        f"{BIT} and < PRIVATE class=x >{CANARY}<private>{CANARY}</private>{CANARY}</private> seen"
    )
    t.lines.append({"type": "last-prompt", "lastPrompt": BIT, **own})
    backups = {"trackedFileBackups": {f"/code/{ONLY}.txt": {"backupFileName": ONLY}}}
    t.lines.append({"type": "file-history-snapshot", "messageId": "m", "snapshot": backups, **own})
    t.think(f"they said <private>{CANARY}")
    t.call("Bash", {"command": f"echo '{BIT}'"}, result=f"{OPEN}\n{ONLY}\n")
    t.call("Write", {"file_path": "/code/a.txt", "content": f"{OPEN}\n<private>\n{CANARY}\n"})
    t.call(
        "Bash",
        {"command": "cat s.json"},
        result=json.dumps({"a": json.dumps({"b": f"<private>{CANARY}"})}),
    )
    blocks = [
        {"type": "text", "text": f"{OPEN} <private>{CANARY}"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": CANARY}},
        {"type": "text", "text": f"{CANARY}</private> {OPEN}"},
    ]
    t.add("user", {"role": "user", "content": blocks})
    t.add("user", {"role": "user", "content": f"{CANARY} <private>x</private>" * 101})
    queued = {"type": "queued_command", "prompt": BIT, "commandMode": "prompt"}
    t.add("attachment", {}, attachment=queued)
    t.say(BIT)
    t.lines.append({"type": "summary", "summary": BIT, "leafUuid": "x"})
    return t


def claude_turn() -> Transcript:
    """A prompt that is nothing but private, and all that comes of it, between two others."""
    t = Transcript("turn")
    t.prompt(f"{OPEN} first")
    t.say("done")
    t.prompt(f"\n{ONLY} <private>{CANARY}</private>\n")
    t.lines.append(
        {"type": "ai-title", "aiTitle": f"About the {CANARY}", "sessionId": t.session_id}
    )
    t.think(CANARY)
    t.call("Bash", {"command": f"echo {CANARY}"}, result=CANARY)
    t.call("Task", {"description": CANARY, "prompt": CANARY}, result=CANARY)
    t.say(f"It is {CANARY}")
    t.prompt(f"{OPEN} second")
    t.say("done again")
    t.lines.append(
        {"type": "ai-title", "aiTitle": f"About the {CANARY}", "sessionId": t.session_id}
    )
    return t


def claude_beside(home: Path, t: Transcript) -> None:
    """What lies beside a transcript: a large result of a private call, and the subagent it
    started."""
    calls = [
        b["id"]
        for r in t.lines
        for b in r.get("message", {}).get("content", [])
        if isinstance(b, dict) and "id" in b
    ]
    folder = t.path(home).with_suffix("")
    save(folder / "tool-results" / f"{calls[0]}.txt", f"{CANARY}\n")
    private = next(r for r in t.lines if CANARY in json.dumps(r))
    child: Record = {
        "agentId": "abc",
        "isSidechain": True,
        "sessionId": t.session_id,
        "cwd": "/code/shop",
    }
    when = private["timestamp"]
    save(
        folder / "subagents" / "agent-abc.jsonl",
        lines(
            [
                {
                    **child,
                    "type": "user",
                    "uuid": "c1",
                    "timestamp": when,
                    "message": {"role": "user", "content": CANARY},
                },
                {
                    **child,
                    "type": "user",
                    "uuid": "c2",
                    "timestamp": when,
                    "message": {"role": "user", "content": CANARY},
                },
            ]
        ),
    )
    meta = {"agentType": "Explore", "description": CANARY, "toolUseId": calls[1]}
    save(folder / "subagents" / "agent-abc.meta.json", json.dumps(meta))


def codex() -> str:
    def line(kind: str, payload: Record, second: int) -> Record:
        return {"timestamp": f"2026-05-01T10:00:{second:02}.000Z", "type": kind, "payload": payload}

    def said(role: str, text: str, second: int) -> Record:
        part = {"type": "output_text" if role == "assistant" else "input_text", "text": text}
        return line("response_item", {"type": "message", "role": role, "content": [part]}, second)

    def shown(text: str, second: int) -> Record:
        return line("event_msg", {"type": "user_message", "message": text}, second)

    call = {"type": "function_call", "name": "exec_command", "call_id": "c1"}
    return lines(
        [
            line(
                "session_meta",
                {"id": CODEX, "timestamp": "2026-05-01T10:00:00Z", "cwd": "/w", "source": "cli"},
                0,
            ),
            said("user", BIT, 1),
            shown(BIT, 1),
            line(
                "response_item",
                {**call, "arguments": json.dumps({"cmd": f"echo <private>{CANARY}"})},
                2,
            ),
            line(
                "response_item", {"type": "function_call_output", "call_id": "c1", "output": BIT}, 3
            ),
            said("assistant", f"ok {BIT}", 4),
            said("user", ONLY, 5),
            shown(ONLY, 5),
            line(
                "response_item",
                {**call, "call_id": "c2", "arguments": json.dumps({"cmd": CANARY})},
                6,
            ),
            said("assistant", CANARY, 7),
            line("event_msg", {"type": "task_started", "turn_id": "t3"}, 8),
            line("turn_context", {"cwd": "/w", "model": "m-9", "turn_id": "t3"}, 8),
            said("user", f"{OPEN} third", 9),
            line(
                "response_item",
                {"type": "function_call_output", "call_id": "c2", "output": CANARY},
                9,
            ),
            said("assistant", "fine", 10),
            line(
                "compacted",
                {
                    "message": CANARY,
                    "replacement_history": [said("assistant", CANARY, 7)["payload"]],
                },
                11,
            ),
            line("event_msg", {"type": "thread_name_updated", "thread_name": CANARY}, 12),
        ]
    )


CODEX = "019d0000-0000-7000-8000-000000000001"
GEMINI = "5f0c0000-0000-4000-8000-000000000001"


def gemini_messages() -> list[Record]:
    def message(ident: str, kind: str, content: Any, second: int, **more: Any) -> Record:
        when = f"2026-05-01T10:00:{second:02}.000Z"
        return {"id": ident, "timestamp": when, "type": kind, "content": content, **more}

    calls = [
        {
            "id": "g1",
            "name": "run_shell_command",
            "args": {"command": CANARY},
            "status": "success",
            "result": CANARY,
        }
    ]
    return [
        message("m1", "user", [{"text": BIT}], 1),
        message("m2", "gemini", f"ok {BIT}", 2, thoughts=[{"subject": "x", "description": BIT}]),
        message("m3", "user", [{"text": ONLY}], 3),
        message(
            "m4",
            "gemini",
            CANARY,
            4,
            toolCalls=calls,
            thoughts=[{"subject": CANARY, "description": CANARY}],
        ),
        message("m5", "user", [{"text": f"{OPEN} third"}], 5),
        message("m6", "gemini", "fine", 6),
    ]


def gemini_head() -> Record:
    when = "2026-05-01T10:00:00.000Z"
    return {"sessionId": GEMINI, "projectHash": "abc", "startTime": when, "lastUpdated": when}


def gemini_document() -> str:
    return json.dumps({**gemini_head(), "messages": gemini_messages(), "summary": CANARY}, indent=2)


def gemini_log() -> str:
    again = {"$set": {"messages": gemini_messages(), "lastUpdated": "2026-05-01T10:00:09.000Z"}}
    title = {"$set": {"summary": CANARY, "lastUpdated": "2026-05-01T10:00:10.000Z"}}
    return lines([gemini_head(), *gemini_messages(), again, title])


def copilot() -> str:
    def record(kind: str, data: Record, second: int) -> Record:
        when = f"2026-05-01T10:00:{second:02}.000Z"
        return {"type": kind, "data": data, "id": f"e{second}", "timestamp": when, "parentId": None}

    call = {"toolCallId": "k1", "name": "bash", "arguments": {"command": CANARY}}
    return lines(
        [
            record("session.start", {"sessionId": "cop-1", "context": {"cwd": "/w"}}, 0),
            record("user.message", {"content": BIT, "transformedContent": BIT}, 1),
            record("assistant.message", {"messageId": "a1", "content": BIT, "toolRequests": []}, 2),
            record("user.message", {"content": ONLY, "transformedContent": f"<x>{ONLY}</x>"}, 3),
            record(
                "assistant.message",
                {"messageId": "a2", "content": CANARY, "toolRequests": [call]},
                4,
            ),
            record(
                "tool.execution_complete",
                {"toolCallId": "k1", "success": True, "result": {"content": CANARY}},
                5,
            ),
            record("user.message", {"content": f"{OPEN} third"}, 6),
            record(
                "assistant.message", {"messageId": "a3", "content": "fine", "toolRequests": []}, 7
            ),
            record("session.title_changed", {"title": CANARY}, 8),
        ]
    )


def copilot_document() -> str:
    def entry(ident: str, kind: str, **more: Any) -> Record:
        return {"id": ident, "type": kind, "timestamp": "2026-05-01T10:00:01.000Z", **more}

    done = {
        "callId": "h1",
        "name": "bash",
        "arguments": {"command": CANARY},
        "result": {"log": CANARY},
    }
    timeline = [
        entry("t1", "user", text=BIT),
        entry("t2", "copilot", text=BIT),
        entry("t3", "user", text=ONLY),
        entry("t4", "copilot", text=CANARY),
        entry("t5", "tool_call_completed", **done),
        entry("t6", "user", text=f"{OPEN} third"),
    ]
    return json.dumps(
        {"sessionId": "cop-2", "startTime": "2026-05-01T10:00:00.000Z", "timeline": timeline},
        indent=2,
    )


def codex_document() -> str:
    def said(role: str, text: str) -> Record:
        return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}

    call = {
        "type": "function_call",
        "name": "shell",
        "call_id": "d1",
        "arguments": json.dumps({"command": [CANARY]}),
    }
    items = [
        said("user", BIT),
        said("assistant", BIT),
        said("user", ONLY),
        said("assistant", CANARY),
        call,
        {"type": "function_call_output", "call_id": "d1", "output": CANARY},
        said("user", f"{OPEN} third"),
    ]
    head = {
        "id": CODEX.replace("019d", "019a"),
        "timestamp": "2025-05-01T10:00:00Z",
        "instructions": "",
    }
    return json.dumps({"session": head, "items": items}, indent=2)


def codex_subagent() -> str:
    """Spawned in the private turn; nothing in it is marked."""
    spawned = {"subagent": {"thread_spawn": {"parent_thread_id": CODEX, "agent_role": "explorer"}}}
    meta = {
        "id": CODEX.replace("019d", "019e"),
        "timestamp": "2026-05-01T10:00:06Z",
        "cwd": "/w",
        "source": spawned,
    }
    part = {"type": "input_text", "text": CANARY}
    message = {"type": "message", "role": "user", "content": [part]}
    return lines(
        [
            {"timestamp": "2026-05-01T10:00:06.000Z", "type": "session_meta", "payload": meta},
            {"timestamp": "2026-05-01T10:00:07.000Z", "type": "response_item", "payload": message},
            {"timestamp": "2026-05-01T10:00:17.000Z", "type": "response_item", "payload": message},
        ]
    )


OPENCODE_SCHEMA = """
CREATE TABLE session(id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, directory TEXT, title TEXT, version TEXT,
  time_created INTEGER, time_updated INTEGER);
CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER,
  data TEXT);
"""
START = 1_770_000_000_000


class OpenCode:
    """Its database, as its program writes it."""

    def __init__(self, home: Path) -> None:
        folder = home / ".local" / "share" / "opencode"
        folder.mkdir(parents=True, exist_ok=True)
        self.db = apsw.Connection(str(folder / "opencode.db"))
        self.db.execute(OPENCODE_SCHEMA)
        self.session("ses_1", None, CANARY, 0)

    def session(self, ident: str, parent: str | None, title: str, at: int) -> None:
        row = (ident, "p", parent, "/code/shop", title, "1.2.3", START + at, START + at)
        self.db.execute("INSERT INTO session VALUES(?,?,?,?,?,?,?,?)", row)

    def message(self, ident: str, at: int, data: Record, session: str = "ses_1") -> None:
        row = (
            ident,
            session,
            START + at,
            START + at,
            json.dumps({**data, "time": {"created": START + at}}),
        )
        self.db.execute("INSERT OR REPLACE INTO message VALUES(?,?,?,?,?)", row)

    def part(self, ident: str, of: str, at: int, data: Record, session: str = "ses_1") -> None:
        row = (ident, of, session, START + at, START + at, json.dumps(data))
        self.db.execute("INSERT OR REPLACE INTO part VALUES(?,?,?,?,?,?)", row)

    def ask(self, number: int, at: int, text: str, session: str = "ses_1", **more: Any) -> None:
        self.message(f"msg_{number}", at, {"role": "user", **more}, session)
        self.part(f"prt_{number}", f"msg_{number}", at, {"type": "text", "text": text}, session)

    def answer(self, number: int, to: int, at: int, text: str, session: str = "ses_1") -> None:
        body = {
            "role": "assistant",
            "parentID": f"msg_{to}",
            "modelID": "m",
            "tokens": {"input": 1, "output": 2},
        }
        self.message(f"msg_{number}", at, body, session)
        state = {"status": "completed", "input": {"command": text}, "output": text, "title": text}
        self.part(f"prt_{number}a", f"msg_{number}", at, {"type": "text", "text": text}, session)
        tool = {"type": "tool", "callID": f"c{number}", "tool": "bash", "state": state}
        self.part(f"prt_{number}b", f"msg_{number}", at, tool, session)

    def fill(self) -> None:
        self.ask(1, 1, f"{OPEN} <private>{CANARY}")
        self.answer(2, 1, 2, BIT)
        self.ask(3, 3, ONLY, summary={"title": CANARY, "body": CANARY})
        self.answer(4, 3, 4, CANARY)
        self.session("ses_2", "ses_1", f"{CANARY} (@explore subagent)", 4)
        self.ask(5, 4, CANARY, "ses_2")
        self.ask(6, 6, f"{OPEN} third")
        self.answer(7, 6, 7, "fine")


def write_all(home: Path) -> None:
    claude_bits().save(home)
    turn = claude_turn()
    turn.save(home)
    claude_beside(home, turn)
    save(home / f".codex/sessions/2026/05/01/rollout-2026-05-01T10-00-00-{CODEX}.jsonl", codex())
    save(home / ".gemini/tmp/abc/chats/session-2026-05-01T10-00-5f0c0000.json", gemini_document())
    log = gemini_log().replace(GEMINI, GEMINI.replace("5f0c", "6f0c"))
    save(home / ".gemini/tmp/abc/chats/session-2026-05-01T10-00-6f0c0000.jsonl", log)
    save(home / ".copilot/session-state/cop-1/events.jsonl", copilot())
    save(home / ".copilot/history-session-state/session_cop-2_1.json", copilot_document())
    save(home / ".codex/sessions/rollout-2025-05-01-019a.json", codex_document())
    day = home / ".codex/sessions/2026/05/01"
    save(
        day / f"rollout-2026-05-01T10-00-06-{CODEX.replace('019d', '019e')}.jsonl", codex_subagent()
    )
    packed = zstandard.ZstdCompressor().compress(
        codex().replace(CODEX, CODEX.replace("019d", "019f")).encode()
    )
    (day / f"rollout-2026-05-01T10-00-00-{CODEX.replace('019d', '019f')}.jsonl.zst").write_bytes(
        packed
    )
    database = OpenCode(home)
    database.fill()
    database.db.close()
