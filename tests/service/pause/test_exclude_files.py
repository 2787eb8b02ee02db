"""A session that runs elsewhere and reaches into an excluded project: what its file tools did
there is not stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.conftest import Result
from tests.hook import Installed
from tests.service.pause.canary import assert_nowhere, kept
from tests.service.pause.test_capture import STAMPS, check, opencode, told, write
from tests.service.pause.test_exclude import configured
from tests.service.pause.test_hooks import git, repository
from tests.transcripts import Transcript
from whyfor import config
from whyfor.capture.filters.excluded import Excluded
from whyfor.config import Exclude, Settings
from whyfor.service.ingest import ingest

Cli = Callable[..., Result]
SECRET = "/code/client-x/src/a.py"
PATCH = f"*** Begin Patch\n*** Add File: {SECRET}\n+canary\n*** End Patch"


def claude(home: Path) -> str:
    said = Transcript("reaches", cwd="/code/shop")
    said.prompt("before")
    said.call("Write", {"file_path": SECRET, "content": "canary one"}, "wrote canary")
    said.call("Read", {"file_path": "../client-x/b.py"}, "canary two")
    said.call("Grep", {"pattern": "x", "path": "/code/client-x"}, "canary three")
    said.lines[-1]["toolUseResult"] = {"filenames": ["canary four"], "content": "canary five"}
    said.call(
        "Edit",
        {"file_path": "/code/shop/a.py", "old_string": "a", "new_string": "open"},
        "open result",
    )
    said.add(
        "attachment", {}, attachment={"type": "file", "filename": SECRET, "content": "canary six"}
    )
    said.say("after")
    said.save(home)
    return said.session_id


def codex(home: Path) -> str:
    ident = "0199a213-81c0-7800-8aa1-bbab2a035a54"
    meta = {
        "id": ident,
        "cwd": "/code/shop",
        "timestamp": STAMPS[0],
        "originator": "codex",
        "cli_version": "1",
    }
    shell = json.dumps({"cmd": "cat a.py", "workdir": "/code/client-x"})
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "before"}]},
        {"type": "custom_tool_call", "call_id": "c1", "name": "apply_patch", "input": PATCH},
        {"type": "custom_tool_call_output", "call_id": "c1", "output": "wrote canary"},
        {"type": "function_call", "call_id": "c2", "name": "exec_command", "arguments": shell},
        {"type": "function_call_output", "call_id": "c2", "output": "canary"},
        {
            "type": "function_call",
            "call_id": "c3",
            "name": "exec_command",
            "arguments": json.dumps({"cmd": "ls"}),
        },
        {"type": "function_call_output", "call_id": "c3", "output": "open result"},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "after"}],
        },
    ]
    lines: list[dict[str, Any]] = [
        {"timestamp": STAMPS[0], "type": "session_meta", "payload": meta}
    ]
    lines += [
        {"timestamp": STAMPS[n], "type": "response_item", "payload": item}
        for n, item in enumerate(items)
    ]
    changes = {"type": "patch_apply_end", "call_id": "c1", "success": True, "stdout": "canary"}
    changes["changes"] = {SECRET: {"type": "add", "content": "canary"}}
    lines.insert(4, {"timestamp": STAMPS[2], "type": "event_msg", "payload": changes})
    path = (
        home
        / ".codex"
        / "sessions"
        / "2026"
        / "05"
        / "01"
        / f"rollout-2026-05-01T10-00-00-{ident}.jsonl"
    )
    write(path, "".join(json.dumps(line) + "\n" for line in lines))
    return ident


def gemini_messages() -> list[dict[str, Any]]:
    def call(ident: str, path: str, word: str) -> dict[str, Any]:
        answer = [
            {"functionResponse": {"id": ident, "name": "write_file", "response": {"output": word}}}
        ]
        args = {"file_path": path, "content": word}
        return {"id": ident, "name": "write_file", "args": args, "result": answer, "resultDisplay": word,
                "status": "success", "timestamp": STAMPS[2]}  # fmt: skip

    def message(number: int, kind: str, text: str, *calls: dict[str, Any]) -> dict[str, Any]:
        body = {"id": f"m{number}", "timestamp": STAMPS[number], "type": kind, "content": text}
        return {**body, "toolCalls": list(calls)} if calls else body

    return [
        message(0, "user", "before"),
        message(1, "gemini", "", call("t1", SECRET, "canary")),
        message(2, "gemini", "", call("t2", "/code/shop/a.py", "open result")),
        message(3, "gemini", "after"),
    ]


def gemini_lines(home: Path) -> str:
    head = {
        "sessionId": "g-1",
        "projectHash": "p",
        "startTime": STAMPS[0],
        "lastUpdated": STAMPS[0],
    }
    folder = home / ".gemini" / "tmp" / "p"
    write(folder / ".project_root", "/code/shop")
    lines = [head, *gemini_messages()]
    write(folder / "chats" / "session-1.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return "g-1"


def gemini_document(home: Path) -> str:
    body = {
        "sessionId": "g-2",
        "projectHash": "p",
        "startTime": STAMPS[0],
        "lastUpdated": STAMPS[9],
    }
    folder = home / ".gemini" / "tmp" / "p"
    write(folder / ".project_root", "/code/shop")
    write(folder / "chats" / "session-2.json", json.dumps({**body, "messages": gemini_messages()}))
    return "g-2"


def copilot(home: Path) -> str:
    def call(ident: str, path: str, word: str) -> list[dict[str, Any]]:
        given = {"path": path, "file_text": word}
        asked = [{"toolCallId": ident, "name": "create", "arguments": given}]
        return [
            {"type": "assistant.message", "data": {"content": "", "toolRequests": asked}},
            {
                "type": "tool.execution_start",
                "data": {"toolCallId": ident, "toolName": "create", "arguments": given},
            },
            {
                "type": "tool.execution_complete",
                "data": {"toolCallId": ident, "success": True, "result": {"content": word}},
            },
        ]

    events: list[dict[str, Any]] = [
        {"type": "session.start", "data": {"sessionId": "c-1", "context": {"cwd": "/code/shop"}}},
        {"type": "user.message", "data": {"content": "before"}},
        *call("t1", SECRET, "canary"),
        *call("t2", "/code/shop/a.py", "open result"),
        {"type": "assistant.message", "data": {"content": "after"}},
    ]
    lines = [
        {**event, "timestamp": STAMPS[n], "id": str(n), "parentId": None}
        for n, event in enumerate(events)
    ]
    write(
        home / ".copilot" / "session-state" / "c-1" / "events.jsonl",
        "".join(json.dumps(x) + "\n" for x in lines),
    )
    return "c-1"


def opencode_tools(home: Path) -> str:
    session = opencode(home)
    db = apsw.Connection(str(home / ".local" / "share" / "opencode" / "opencode.db"))
    db.execute("UPDATE session SET title = 'x'")
    db.execute("DELETE FROM part")
    for number, (path, word) in enumerate([(SECRET, "canary"), ("/code/shop/a.py", "open result")]):
        state = {
            "status": "completed",
            "input": {"filePath": path, "content": word},
            "output": word,
        }
        tool = {"type": "tool", "tool": "write", "callID": f"t{number}", "state": state}
        part = (f"prt_t{number}", "msg_1", session, 1, 1, json.dumps(tool))
        db.execute("INSERT INTO part VALUES(?,?,?,?,?,?)", part)
    for number, word in ((0, "before"), (3, "after")):
        part = (
            f"prt_{number}",
            f"msg_{number}",
            session,
            1,
            1,
            json.dumps({"type": "text", "text": word}),
        )
        db.execute("INSERT INTO part VALUES(?,?,?,?,?,?)", part)
    db.close()
    return session


AGENTS = [claude, codex, gemini_lines, gemini_document, copilot, opencode_tools]


@pytest.mark.parametrize("make", AGENTS)
def test_what_a_file_tool_wrote_or_read_there_is_stored_nowhere(
    make: Callable[[Path], str], settings: Settings, home: Path
) -> None:
    session = make(home)
    report = ingest(configured(settings, "/code/client-x"))
    assert report.withheld > 0
    assert_nowhere("canary", settings.home)
    assert b"open result" in kept(settings.home), "what it did elsewhere is there"
    shown = [text for text in told(settings, session) if text != "[private]"]
    assert [shown[0], shown[-1]] == ["before", "after"]
    check(settings, session, told(settings, session))


@pytest.mark.parametrize("make", AGENTS)
def test_without_the_exclusion_it_would_have_been_stored(
    make: Callable[[Path], str], settings: Settings, home: Path
) -> None:
    make(home)
    report = ingest(configured(settings, "/code/client"))
    assert report.withheld == 0
    assert b"canary" in kept(settings.home)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_result_that_comes_later_goes_with_its_call(
    step: int, settings: Settings, home: Path
) -> None:
    claude(home)
    path = next((home / ".claude").rglob("*.jsonl"))
    lines = path.read_text().splitlines(keepends=True)
    now = configured(settings, "/code/client-x")
    for number in range(0, len(lines), step):
        path.write_text("".join(lines[: number + step]))
        ingest(now)
        assert_nowhere("canary", settings.home)
    assert b"open result" in kept(settings.home)


def test_a_call_that_is_half_written_is_not_kept_either(settings: Settings, home: Path) -> None:
    claude(home)
    path = next((home / ".claude").rglob("*.jsonl"))
    whole = path.read_text()
    now = configured(settings, "/code/client-x")
    for cut in (whole.index("canary one") + 6, whole.index("canary two") + 6):
        path.write_text(whole[:cut])
        ingest(now)
        assert_nowhere("canary", settings.home)
    path.write_text(whole)
    ingest(now)
    assert_nowhere("canary", settings.home)
    assert b"open result" in kept(settings.home)


def test_a_large_result_kept_beside_the_transcript_goes_too(settings: Settings, home: Path) -> None:
    said = Transcript("large", cwd="/code/shop")
    said.prompt("before")
    said.call("Read", {"file_path": SECRET}, "<persisted-output>")
    path = said.save(home)
    ident = said.lines[-2]["message"]["content"][0]["id"]
    write(path.with_suffix("") / "tool-results" / f"{ident}.txt", "canary")
    ingest(configured(settings, "/code/client-x"))
    assert_nowhere("canary", settings.home)


def test_a_file_is_known_by_the_remote_of_the_clone_it_lies_in(
    settings: Settings, home: Path, tmp_path: Path
) -> None:
    clone = repository(tmp_path / "clone")
    git(clone, "remote", "add", "origin", "git@github.com:Acme/Secret.git")
    said = Transcript("remote", cwd="/code/shop")
    said.prompt("before")
    said.call("Write", {"file_path": str(clone / "deep" / "new.py"), "content": "canary"}, "canary")
    said.call(
        "Write", {"file_path": str(tmp_path / "clones" / "a.py"), "content": "open result"}, "done"
    )
    said.save(home)
    ingest(configured(settings, "github.com/acme/secret"))
    assert_nowhere("canary", settings.home)
    assert b"open result" in kept(settings.home)


def test_a_link_into_the_project_leads_there(
    settings: Settings, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "client-x").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "client-x")
    excluded = Excluded(Exclude([str(tmp_path / "client-x")]))
    assert excluded.covers_file(str(tmp_path / "link" / "a.py"))
    assert excluded.covers_file("link/../client-x/a.py", str(tmp_path))
    assert not excluded.covers_file(str(tmp_path / "client-xy" / "a.py"))
    assert not excluded.covers_file("a.py")


def test_what_a_hook_announced_of_such_a_file_is_erased_or_never_written(
    settings: Settings, hook: Installed
) -> None:
    payload = {
        "session_id": "s",
        "transcript_path": "/t",
        "cwd": "/code/shop",
        "hook_event_name": "PermissionRequest",
    }
    payload["tool_input"] = {"file_path": SECRET, "content": "canary"}  # type: ignore[assignment]
    header = {
        "v": 1,
        "at": 1777629600000,
        "agent": "claude",
        "event": "PermissionRequest",
        "cwd": "/code/shop",
    }
    file = settings.home / "spool" / "2026-05-01.spool"
    write(file, f"\n{json.dumps(header)}\t{json.dumps(payload)}\n")
    ingest(configured(settings, "/code/client-x"))
    assert_nowhere("canary", settings.home)
    (hook.folder / "excluded").write_bytes((settings.home / "hook" / "excluded").read_bytes())
    hook.run("claude", "PermissionRequest", payload=json.dumps(payload).encode())
    assert hook.lines() == []


@pytest.fixture
def hook(tmp_path: Path) -> Installed:
    return Installed(tmp_path / "hooks")


def test_what_a_shell_command_printed_elsewhere_is_stored_as_the_documentation_says(
    settings: Settings, home: Path, cli: Cli
) -> None:
    said = Transcript("shell", cwd="/code/shop")
    said.prompt("before")
    said.call("Bash", {"command": "cat /code/client-x/a.py"}, "printed")
    said.save(home)
    ingest(configured(settings, "/code/client-x", "/code/other"))
    assert b"printed" in kept(settings.home)
    other = Transcript("other", cwd="/code/other")
    other.prompt("x")
    other.save(home)
    ingest(config.load())
    (problem,) = [p for p in cli("doctor", "--json").json["problems"] if "[exclude]" in p["what"]]
    assert "shell command" in problem["next"]
