"""Codex rollouts: both dialects, forks, subagents, and what counts as a prompt."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from whyfor.agents.base import SourceShape
from whyfor.agents.codex import AGENT
from whyfor.model.events import Event, Touch, Usage
from whyfor.model.findings import Sink
from whyfor.model.ids import fold

Lines = list[dict[str, Any]]

# UUIDv7, oldest first: the parent thread and its turn, then the child that was spawned in that
# turn.
PARENT = "019d0000-0000-7000-8000-000000000001"
PARENT_TURN = "019d0000-0001-7000-8000-000000000001"
CHILD = "019d0000-0002-7000-8000-000000000001"
CHILD_TURN = "019d0000-0003-7000-8000-000000000001"
WHEN = "2026-05-01T10:00:00.000Z"
WHEN_MS = 1777629600000


def line(kind: str, payload: dict[str, Any], /, **more: Any) -> dict[str, Any]:
    return {"timestamp": WHEN, "type": kind, "payload": payload, **more}


def meta(ident: str = PARENT, **more: Any) -> dict[str, Any]:
    head = {
        "id": ident,
        "timestamp": WHEN,
        "cwd": "/w",
        "cli_version": "0.166.0",
        "source": "cli",
        **more,
    }
    return line("session_meta", head)


def item(kind: str, /, **more: Any) -> dict[str, Any]:
    return line("response_item", {"type": kind, **more})


def event(kind: str, /, **more: Any) -> dict[str, Any]:
    return line("event_msg", {"type": kind, **more})


def completed(kind: str, /, thread: str = PARENT, **more: Any) -> dict[str, Any]:
    return event("item_completed", thread_id=thread, item={"type": kind, **more})


def said(role: str, *texts: str, **more: Any) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return item(
        "message", role=role, content=[{"type": kind, "text": text} for text in texts], **more
    )


def call(ident: str, cmd: str = "ls") -> dict[str, Any]:
    return item(
        "function_call", name="exec_command", arguments=json.dumps({"cmd": cmd}), call_id=ident
    )


def output(ident: str, text: Any = "ok") -> dict[str, Any]:
    return item("function_call_output", call_id=ident, output=text)


def tokens(given: int, cached: int, out: int, thought: int = 0) -> dict[str, int]:
    figures = {"input_tokens": given, "cached_input_tokens": cached, "output_tokens": out}
    return {**figures, "reasoning_output_tokens": thought, "total_tokens": given + out}


def token_count(total: dict[str, int], last: dict[str, int] | None = None) -> dict[str, Any]:
    return event(
        "token_count", info={"total_token_usage": total, "last_token_usage": last or total}
    )


def usage_record(ident: str, usage: dict[str, int], thread: dict[str, int]) -> dict[str, Any]:
    return line(
        "token_usage_record", {"response_id": ident, "usage": usage, "thread_token_usage": thread}
    )


def _refuse(error: OSError) -> None:
    raise error


def encoded(records: Lines) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


def sniffed(records: Lines, name: str = "x.jsonl") -> SourceShape | None:
    return AGENT.sniff(Path("/h", name), b"\n".join(encoded(records)) + b"\n")


def read(records: Lines, *, by_record: bool = False) -> Sink:
    """All records at once, or with the state through JSON after each, as when a file grows line
    by line."""
    shape = sniffed(records) or SourceShape("lines", PARENT)
    out = Sink(shape.session_id, shape.parent)
    reader = AGENT.reader(shape, {})
    offset = 0
    for raw in encoded(records):
        if by_record:
            reader = AGENT.reader(shape, json.loads(json.dumps(reader.state)))
        reader.read(json.loads(raw), offset, raw, out)
        offset += len(raw) + 1
    return out


def told(records: Lines) -> list[tuple[str, str, str]]:
    return [(e.kind, e.actor, e.text) for e in read(records).main.events]


def only(kind: str, records: Lines) -> list[Event]:
    return [e for e in read(records).main.events if e.kind == kind]


def prompts(*records: dict[str, Any]) -> list[str]:
    return [e.text for e in only("user.prompt", [meta(), *records])]


# -- where, and which files ----------------------------------------------------------------------


def test_both_session_folders_are_roots_and_the_environment_moves_them() -> None:
    assert AGENT.roots(Path("/h"), {}) == [
        Path("/h/.codex/sessions"),
        Path("/h/.codex/archived_sessions"),
    ]
    moved = AGENT.roots(Path("/h"), {"CODEX_HOME": "/c"})
    assert moved == [Path("/c/sessions"), Path("/c/archived_sessions")]


def test_plain_compressed_and_oldest_files_are_found(tmp_path: Path) -> None:
    day = tmp_path / "2026" / "05" / "01"
    day.mkdir(parents=True)
    for name in ("rollout-b.jsonl.zst", "rollout-a.jsonl", "rollout-c.json", "notes.txt"):
        (day / name).touch()
    found = [path.name for path in AGENT.find(tmp_path, _refuse)]
    assert found == ["rollout-a.jsonl", "rollout-b.jsonl.zst", "rollout-c.json"]


def test_a_rollout_is_known_by_its_first_head_whatever_its_name() -> None:
    assert sniffed([meta(), meta(CHILD)], "data.txt") == SourceShape("lines", PARENT)


@pytest.mark.parametrize(
    ("head", "parent"),
    [
        (
            {"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}},
            PARENT,
        ),
        ({"source": {"subagent": "review"}, "parent_thread_id": PARENT}, PARENT),
        ({"source": {"subagent": "review"}}, None),
        ({"source": "vscode"}, None),
    ],
)
def test_a_subagent_knows_its_parent(head: dict[str, Any], parent: str | None) -> None:
    assert sniffed([meta(CHILD, **head)]) == SourceShape("lines", CHILD, parent)


def test_without_its_head_a_rollout_is_known_by_the_name_of_the_file() -> None:
    name = f"rollout-2026-05-01T10-00-00-{PARENT}.jsonl"
    assert sniffed([said("user", "hi")], name) == SourceShape("lines", PARENT)
    reverted = f"rollout-2026-05-01T10-00-00-{PARENT}_{CHILD}.jsonl.zst"
    assert sniffed([said("user", "hi")], reverted) == SourceShape("lines", PARENT)


@pytest.mark.parametrize(
    "foreign",
    [
        {
            "type": "user",
            "sessionId": "s",
            "uuid": "u",
            "message": {"role": "user", "content": "hi"},
        },
        {"type": "session.start", "id": "1", "timestamp": WHEN, "data": {"sessionId": "s"}},
        {"sessionId": "s", "projectHash": "p", "startTime": WHEN, "kind": "main"},
        {"sessionId": "s", "messages": [], "startTime": WHEN},
        {"id": "x", "timestamp": WHEN},
        {"type": "message", "role": "user", "content": "hi"},
    ],
)
def test_other_agents_files_are_left_to_them(foreign: dict[str, Any]) -> None:
    assert sniffed([foreign]) is None
    assert AGENT.sniff(Path("/h/x.jsonl"), b"not json\n") is None


# -- what the person said ------------------------------------------------------------------------


def test_a_prompt_is_told_once_though_two_records_hold_it() -> None:
    assert prompts(said("user", "fix it"), event("user_message", message="fix it")) == ["fix it"]
    assert prompts(
        said("user", "fix it"), completed("UserMessage", content=[{"text": "fix it"}])
    ) == ["fix it"]


def test_a_prompt_that_only_the_event_holds_is_not_lost() -> None:
    again = [
        said("user", "one"),
        event("user_message", message="one"),
        event("user_message", message="two"),
    ]
    assert prompts(*again) == ["one", "two"]


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
        "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nbe kind\n</INSTRUCTIONS>",
        "<user_instructions>\nbe kind\n</user_instructions>",
        "<turn_aborted>\nThe user interrupted\n</turn_aborted>",
        "<user_action>\n  <action>review</action>\n</user_action>\n",
        "<skill>\n<name>x</name>\n</skill>",
    ],
)
def test_what_the_program_put_among_the_users_messages_is_no_prompt(text: str) -> None:
    assert (
        prompts(said("user", text), event("user_message", message=text, kind="environment_context"))
        == []
    )


def test_provenance_decides_where_it_is_written_down() -> None:
    origins = [{"provenance": {"type": "harness"}}, {"provenance": {"type": "user"}}]
    passed = {"content_item_metadata": origins}
    record = said(
        "user", "be kind", "<skill> is a word", internal_chat_message_metadata_passthrough=passed
    )
    assert prompts(record) == ["<skill> is a word"]


def test_developer_and_system_messages_are_nobodys_words() -> None:
    assert told([meta(), said("developer", "rules"), said("system", "rules")])[1:] == []


def test_an_image_is_a_reference_without_its_bytes() -> None:
    content = [
        {"type": "input_text", "text": '<image name=[Image #1] path="/w/a.png">'},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAABBBB"},
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "look"},
    ]
    [prompt] = only("user.prompt", [meta(), item("message", role="user", content=content)])
    image = {"block": 1, "type": "image", "media_type": "image/png", "bytes": 6, "path": "/w/a.png"}
    assert (prompt.text, prompt.data) == ("look", {"images": [image]})


def test_what_an_editor_put_before_the_request_is_kept_beside_it() -> None:
    text = (
        "# Context from my IDE setup:\n\n## Active file: a.py\n\n## My request for Codex:\nfix it\n"
    )
    [prompt] = only("user.prompt", [meta(), said("user", text)])
    context = "# Context from my IDE setup:\n\n## Active file: a.py"
    assert (prompt.text, prompt.data) == ("fix it", {"context": context})


def test_a_shell_line_of_the_person_is_a_call_not_a_prompt() -> None:
    text = (
        "<user_shell_command>\n<command>\nmake\n</command>\n<result>\nExit code: 2\nDuration: 1 "
        "seconds\n"
        "Output:\nno rule\n</result>\n</user_shell_command>"
    )
    ended = event(
        "exec_command_end", call_id="u1", source="user_shell", command=["make"], exit_code=2
    )
    _, asked, answered = read([meta(), ended, said("user", text)]).main.events
    assert (asked.kind, asked.actor, asked.name, asked.text) == (
        "tool.call",
        "user",
        "user_shell",
        "make",
    )
    assert (answered.kind, answered.text) == ("tool.result", "no rule")
    assert answered.data == {"exit_code": 2, "failed": True}


# -- what the agent said -------------------------------------------------------------------------


def test_a_turn_in_the_legacy_dialect() -> None:
    records = [
        meta(),
        event("task_started", turn_id="t1"),
        line("turn_context", {"turn_id": "t1", "cwd": "/w", "model": "gpt-5.5"}),
        said("user", "fix it"),
        event("user_message", message="fix it"),
        event("agent_reasoning", text="**Looking**"),
        item(
            "reasoning",
            summary=[{"type": "summary_text", "text": "**Looking**"}],
            encrypted_content="x",
        ),
        event("agent_message", message="On it."),
        said("assistant", "On it."),
        event("task_complete", turn_id="t1", last_agent_message="On it.", duration_ms=12),
    ]
    assert told(records) == [
        ("session.started", "system", ""),
        ("turn.started", "system", ""),
        ("user.prompt", "user", "fix it"),
        ("assistant.thinking", "assistant", "**Looking**"),
        ("assistant.message", "assistant", "On it."),
        ("turn.completed", "system", ""),
    ]
    events = read(records).main.events
    assert events[4].data == {"model": "gpt-5.5"}
    assert events[5].data == {"turn_id": "t1", "duration_ms": 12}
    assert {e.created_at for e in events} == {WHEN_MS}


def test_a_turn_in_the_paginated_dialect() -> None:
    records = [
        meta(history_mode="paginated"),
        said("user", "fix it", id="m1"),
        completed("UserMessage", id="u1", content=[{"type": "text", "text": "fix it"}]),
        completed("Reasoning", id="r1", summary_text=["Looking"]),
        item("reasoning", id="r1", summary=[{"type": "summary_text", "text": "Looking"}]),
        completed("AgentMessage", id="m2", content=[{"type": "Text", "text": "On it."}]),
        said("assistant", "On it.", id="m2"),
    ]
    events = read(records).main.events[1:]
    assert [(e.kind, e.key, e.text) for e in events] == [
        ("user.prompt", fold("m1"), "fix it"),
        ("assistant.thinking", fold("r1"), "Looking"),
        ("assistant.message", fold("m2"), "On it."),
    ]


def test_reasoning_without_words_is_nothing() -> None:
    assert told([meta(), item("reasoning", summary=[], encrypted_content="secret")])[1:] == []


# -- tools ---------------------------------------------------------------------------------------


def test_a_call_and_its_result_share_the_calls_id() -> None:
    asked, answered = read([meta(), call("c1", "ls -l"), output("c1")]).main.events[1:]
    assert asked == Event(
        "tool.call",
        fold("c1"),
        WHEN_MS,
        "assistant",
        "ls -l",
        "exec_command",
        {"id": "c1", "input": {"cmd": "ls -l"}},
    )
    assert answered == Event(
        "tool.result", fold("c1", "result"), WHEN_MS, "tool", "ok", None, {"id": "c1"}
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Exit code: 3\nWall time: 0 seconds\nOutput:\nhi\n", 3),
        (
            "Chunk ID: f2\nWall time: 0.1 seconds\nProcess exited with code 3\nOriginal token "
            "count: 1\nOutput:\nhi\n",
            3,
        ),
        (
            "Command: /bin/zsh -lc 'ls'\nChunk ID: a\nWall time: 1 seconds\nProcess exited with "
            "code 0\nOutput:\nhi\n",
            0,
        ),
        (
            "Wall time: 0.0000 seconds\nOutput:\nExit code: 0\nWall time: 0 seconds\nOutput:\nhi\n",
            0,
        ),
        ('{"output":"hi\\n","metadata":{"exit_code":3,"duration_seconds":0.0}}', 3),
    ],
)
def test_an_exit_code_is_read_from_the_output_where_no_event_tells_it(text: str, code: int) -> None:
    [result] = only("tool.result", [meta(), call("c1"), output("c1", text)])
    assert result.text == "hi\n"
    failed = {"failed": True} if code else {}
    assert result.data == {"id": "c1", "exit_code": code, **failed}


@pytest.mark.parametrize("dialect", ["legacy", "paginated"])
def test_the_end_of_a_command_gives_its_exit_code_and_the_files_it_read(dialect: str) -> None:
    ended: dict[str, Any] = {
        "command": ["/bin/bash", "-lc", "cat a.py"],
        "exit_code": 0,
        "status": "completed",
        "parsed_cmd": [
            {"type": "read", "cmd": "cat a.py", "path": "a.py"},
            {"type": "unknown", "cmd": "x"},
        ],
    }
    legacy = event("exec_command_end", call_id="c1", **ended)
    record = legacy if dialect == "legacy" else completed("CommandExecution", id="c1", **ended)
    out = read([meta(), call("c1", "cat a.py"), record, output("c1")])
    assert out.main.events[2].data == {"id": "c1", "exit_code": 0}
    assert out.main.touches == [Touch(fold("c1"), "a.py", "read")]


def test_a_command_that_ends_right_after_its_output_adds_nothing() -> None:
    text = "Chunk ID: a\nWall time: 1 seconds\nProcess exited with code 0\nOutput:\nhi\n"
    ended = event("exec_command_end", call_id="c1", exit_code=0, aggregated_output="hi\n")
    assert len(only("tool.result", [meta(), call("c1"), output("c1", text), ended])) == 1


def test_a_command_left_running_tells_its_end_later() -> None:
    text = "Chunk ID: a\nWall time: 1 seconds\nProcess running with session ID 7\nOutput:\n..."
    ended = event(
        "exec_command_end", call_id="c1", exit_code=1, status="failed", aggregated_output="boom"
    )
    _, late = only("tool.result", [meta(), call("c1"), output("c1", text), ended])
    assert (late.key, late.text) == (fold("c1", "end"), "boom")
    assert late.data == {"id": "c1", "exit_code": 1, "failed": True, "late": True}


PATCH = (
    "*** Begin Patch\n*** Add File: a.py\n+x\n*** Update File: b.py\n*** Move to: "
    "c.py\n@@\n-x\n+y\n*** End Patch"
)


def patch(ident: str) -> dict[str, Any]:
    return item("custom_tool_call", name="apply_patch", input=PATCH, call_id=ident)


def patch_output(
    ident: str, text: str = "Success. Updated the following files:\nA a.py\n"
) -> dict[str, Any]:
    return item("custom_tool_call_output", call_id=ident, output=text)


@pytest.mark.parametrize("dialect", ["legacy", "paginated"])
def test_files_written_come_from_the_patchs_own_event(dialect: str) -> None:
    changes = {
        "/w/a.py": {"type": "add", "content": "x"},
        "/w/b.py": {"type": "update", "move_path": "/w/c.py"},
    }
    legacy = event("patch_apply_end", call_id="p1", success=True, changes=changes)
    record = (
        legacy
        if dialect == "legacy"
        else completed("FileChange", id="p1", status="completed", changes=changes)
    )
    out = read([meta(), patch("p1"), record, patch_output("p1")])
    assert out.main.touches == [
        Touch(fold("p1"), path, "write") for path in ("/w/a.py", "/w/b.py", "/w/c.py")
    ]
    assert (out.main.events[1].text, out.main.events[1].name) == (PATCH, "apply_patch")


def test_files_written_come_from_the_patch_itself_where_no_event_tells_them() -> None:
    written = [Touch(fold("p1"), path, "write") for path in ("a.py", "b.py", "c.py")]
    assert read([meta(), patch("p1"), patch_output("p1")]).main.touches == written
    heredoc = call("p1", f"apply_patch <<'EOF'\n{PATCH}\nEOF")
    assert (
        read([meta(), heredoc, output("p1", "Exit code: 0\nOutput:\nDone\n")]).main.touches
        == written
    )


def test_a_patch_that_failed_wrote_nothing() -> None:
    out = read(
        [meta(), patch("p1"), patch_output("p1", "apply_patch verification failed: no such file")]
    )
    assert (out.main.touches, out.main.events[2].data) == ([], {"id": "p1", "failed": True})
    failed = event(
        "patch_apply_end", call_id="p1", success=False, changes={"/w/a.py": {"type": "add"}}
    )
    out = read([meta(), patch("p1"), failed, patch_output("p1", "oh")])
    assert (out.main.touches, out.main.events[2].data) == ([], {"id": "p1", "failed": True})


def test_an_image_that_was_not_there_was_not_read() -> None:
    asked = item("function_call", name="view_image", arguments='{"path": "a.png"}', call_id="c1")
    assert read([meta(), asked, output("c1", "attached")]).main.touches == [
        Touch(fold("c1"), "a.png", "read")
    ]
    assert (
        read([meta(), asked, output("c1", "unable to locate image at `a.png`")]).main.touches == []
    )


def test_a_declined_command_is_a_decision() -> None:
    declined = event("exec_command_end", call_id="c1", exit_code=-1, status="declined")
    [decision] = only("approval.resolved", [meta(), call("c1"), declined])
    assert (decision.actor, decision.data) == ("user", {"id": "c1", "decision": "denied"})


def test_tools_called_by_a_script_are_told_by_their_end() -> None:
    changes = {"/w/n.py": {"type": "add", "content": "x"}}
    command = ["/bin/bash", "-lc", "ls"]
    ran: dict[str, Any] = {
        "command": command,
        "cwd": "file:///w",
        "exit_code": 2,
        "aggregated_output": "no",
    }
    records = [
        meta(),
        item(
            "custom_tool_call",
            name="exec",
            input="await tools.exec_command({cmd:'ls'})",
            call_id="c1",
        ),
        completed("CommandExecution", id="exec-1", **ran),
        completed(
            "FileChange", id="exec-2", status="completed", changes=changes, stdout="Success."
        ),
        completed(
            "McpToolCall",
            id="exec-3",
            server="s",
            tool="t",
            arguments={"q": "x"},
            status="failed",
            error="e",
        ),
        item(
            "custom_tool_call_output",
            id="o1",
            call_id="c1",
            output=[{"type": "input_text", "text": "first"}],
        ),
        item(
            "custom_tool_call_output",
            id="o2",
            call_id="c1",
            output=[{"type": "input_text", "text": "second"}],
        ),
    ]
    out = read(records)
    assert [(e.kind, e.name, e.text) for e in out.main.events[2:]] == [
        ("tool.call", "exec_command", "ls\n/w"),
        ("tool.result", None, "no"),
        ("tool.call", "apply_patch", "add\nx"),
        ("tool.result", None, "Success."),
        ("tool.call", "mcp__s__t", "x"),
        ("tool.result", None, "e"),
        ("tool.result", None, "first"),
        ("tool.result", None, "second"),
    ]
    assert out.main.events[3].data == {"id": "exec-1", "exit_code": 2, "failed": True}
    assert out.main.touches == [Touch(fold("exec-2"), "/w/n.py", "write")]
    assert len({e.key for e in out.main.events}) == len(out.main.events)


def test_a_server_that_answered_with_an_error_failed_the_call() -> None:
    asked = item(
        "function_call", name="find", namespace="mcp__docs__", arguments="{}", call_id="c1"
    )
    ended = event("mcp_tool_call_end", call_id="c1", result={"Err": "down"})
    _, called, result = read([meta(), asked, ended, output("c1", "down")]).main.events
    assert (called.name, result.data) == ("mcp__docs__find", {"id": "c1", "failed": True})


def test_hosted_tools_are_calls_too() -> None:
    search = item(
        "web_search_call", id="w1", status="completed", action={"type": "search", "query": "zstd"}
    )
    ended = event("web_search_end", call_id="w1", query="zstd")
    [called] = read([meta(), ended, search]).main.events[1:]
    assert (called.kind, called.name, called.key) == ("tool.call", "web_search", fold("w1"))
    assert called.data == {"id": "w1", "input": {"type": "search", "query": "zstd"}}


def test_arguments_that_are_no_json_are_kept_as_they_are() -> None:
    broken = item("function_call", name="exec_command", arguments='{"cmd": "ls', call_id="c1")
    half = item("function_call", name="exec_command", arguments='{"cmd": "\\ud83d"}', call_id="c2")
    first, second = only("tool.call", [meta(), broken, half])
    assert (first.text, second.text) == ('{"cmd": "ls', '{"cmd": "\\ud83d"}')


def test_a_question_to_the_person_is_asked() -> None:
    questions = [{"id": "a", "question": "Which?", "options": []}]
    arguments = json.dumps({"questions": questions})
    asked = item("function_call", name="request_user_input", arguments=arguments, call_id="c1")
    [question] = only("question.asked", [meta(), asked])
    assert (question.text, question.data) == ("Which?", {"id": "c1", "questions": questions})


# -- where the session is ------------------------------------------------------------------------


def test_a_session_starts_once_and_says_where() -> None:
    head = meta(git={"branch": "main", "commit_hash": "abc"}, originator="codex-tui")
    out = read([head, head, line("turn_context", {"cwd": "/w", "model": "m"})])
    [started] = out.main.events
    assert (started.kind, started.key) == ("session.started", fold(PARENT, "started"))
    where = {
        "cwd": "/w",
        "branch": "main",
        "version": "0.166.0",
        "originator": "codex-tui",
        "source": "cli",
    }
    assert started.data == where
    assert out.main.facts == {"cwd": "/w", "branch": "main", "version": "0.166.0"}


def test_a_new_folder_or_branch_is_told_and_the_first_folder_stays_the_sessions() -> None:
    elsewhere = line("turn_context", {"cwd": "/w2", "model": "m"})
    resumed = meta(cwd="/w2", git={"branch": "topic"})
    out = read([meta(git={"branch": "main"}), elsewhere, elsewhere, resumed])
    assert [(e.kind, e.data) for e in out.main.events[1:]] == [
        ("status.changed", {"cwd": "/w2"}),
        ("status.changed", {"cwd": "/w2", "branch": "topic"}),
    ]
    assert (out.main.facts["cwd"], out.main.facts["branch"]) == ("/w", "topic")


def test_a_fork_names_its_origin_and_copied_heads_do_not_change_the_session() -> None:
    out = read([meta(CHILD, forked_from_id=PARENT), meta(PARENT, cwd="/other"), said("user", "hi")])
    assert out.main.session_id == CHILD
    assert out.main.facts == {"forked_from": PARENT, "cwd": "/w", "version": "0.166.0"}
    assert [e.kind for e in out.main.events] == ["session.started", "user.prompt"]


def test_turns_that_are_older_than_their_thread_were_copied() -> None:
    old, new = "019e0000-0000-7000-8000-000000000001", "019effff-0000-7000-8000-000000000001"
    began, ended = event("task_started", turn_id=old), event("task_complete", turn_id=old)
    own = [event("task_started", turn_id=new), said("user", "and now?")]
    copy = "019e8888-0000-7000-8000-000000000001"
    head = meta(copy, forked_from_id=old)
    out = read([head, meta(old), began, said("user", "hi"), ended, *own])
    kinds = [each.kind for each in out.main.events]
    assert out.main.copied == kinds.index("turn.completed") + 1
    assert kinds[out.main.copied :] == ["turn.started", "user.prompt"]
    assert read([meta(old), *own]).main.copied is None


def test_a_name_given_to_the_thread_is_its_title() -> None:
    renamed = event("thread_name_updated", thread_id=PARENT, thread_name="Fix the parser")
    assert read([meta(), renamed]).main.facts["title"] == "Fix the parser"
    other = event("thread_name_updated", thread_id=CHILD, thread_name="Not ours")
    assert "title" not in read([meta(), other]).main.facts


# -- subagents -----------------------------------------------------------------------------------

SPAWNED = {
    "subagent": {
        "thread_spawn": {"parent_thread_id": PARENT, "agent_nickname": "Volta", "agent_role": None}
    }
}


def test_a_subagents_prompt_comes_from_its_parent() -> None:
    out = read(
        [meta(CHILD, source=SPAWNED), said("user", "count files"), said("assistant", "three")]
    )
    assert (out.main.parent, out.main.facts["subagent"]) == (PARENT, "Volta")
    assert [(e.kind, e.actor, e.text) for e in out.main.events[1:]] == [
        ("user.prompt", "assistant", "count files"),
        ("assistant.message", "assistant", "three"),
    ]


def test_the_conversation_a_subagent_was_given_is_not_its_own() -> None:
    """By ordinal where the file says from where on it is its own."""
    records = [
        meta(CHILD, source=SPAWNED, forked_from_id=PARENT, subagent_history_start_ordinal=3),
        meta(PARENT),
        said("user", "the person's prompt"),
        said("user", "count files"),
    ]
    numbered = [{**record, "ordinal": ordinal} for ordinal, record in enumerate(records)]
    out = read(numbered)
    assert [e.text for e in out.main.events if e.kind == "user.prompt"] == ["count files"]
    assert "forked_from" not in out.main.facts


def test_the_conversation_a_subagent_was_given_ends_with_its_first_own_turn() -> None:
    """By the age of turn ids where it does not."""
    records = [
        meta(CHILD, source=SPAWNED),
        meta(PARENT),
        event("task_started", turn_id=PARENT_TURN),
        line("turn_context", {"turn_id": PARENT_TURN, "cwd": "/w", "model": "m"}),
        said("user", "the person's prompt"),
        token_count(tokens(100, 0, 10)),
        event("task_started", turn_id=CHILD_TURN),
        said("user", "count files"),
        token_count(tokens(300, 0, 20), tokens(200, 0, 10)),
    ]
    out = read(records)
    assert [(e.kind, e.text) for e in out.main.events[1:]] == [
        ("turn.started", ""),
        ("user.prompt", "count files"),
    ]
    assert [u.input for u in out.main.usage] == [200]


def test_agents_of_a_team_write_to_each_other() -> None:
    def letter(kind: str, payload: str, **who: str) -> dict[str, Any]:
        text = (
            f"Message Type: {kind}\nTask name: /root/count\nSender: "
            f"{who['author']}\nPayload:\n{payload}"
        )
        return item("agent_message", content=[{"type": "input_text", "text": text}], **who)

    task = letter("NEW_TASK", "", author="/root", recipient="/root/count")
    [prompt] = only("user.prompt", [meta(CHILD, source=SPAWNED), task])
    assert (prompt.actor, prompt.text) == ("assistant", "")
    assert prompt.data == {"from": "/root", "to": "/root/count", "redacted": True}
    answer = letter("FINAL_ANSWER", "three", author="/root/count", recipient="/root")
    [told_parent] = only("status.changed", [meta(), answer])
    assert (told_parent.actor, told_parent.text) == ("subagent", "three")


def test_a_parent_tells_when_a_subagent_starts_and_stops() -> None:
    arguments = json.dumps({"message": "count files", "agent_type": "explorer"})
    notice = '<subagent_notification>\n{"agent_path":"a1","status":{"completed":"three"}}\n</subagent_notification>'
    records = [
        meta(),
        item(
            "function_call",
            name="spawn_agent",
            namespace="collaboration",
            arguments=arguments,
            call_id="c1",
        ),
        completed("SubAgentActivity", id="c1", kind="started", agent_thread_id=CHILD),
        completed(
            "SubAgentActivity",
            id="x",
            kind="completed",
            agent_thread_id=CHILD,
            agent_path="/root/e",
        ),
        said("user", notice),
    ]
    events = [e for e in read(records).main.events if e.kind.startswith("subagent.")]
    assert [(e.kind, e.name, e.text, e.data) for e in events] == [
        ("subagent.started", "explorer", "count files", {"id": "c1", "prompt": "count files"}),
        ("subagent.stopped", "/root/e", "", {"session": CHILD, "status": "completed"}),
        ("subagent.stopped", None, "three", {"session": "a1", "status": "completed"}),
    ]


def test_a_review_is_another_threads_work() -> None:
    records = [
        meta(),
        completed("EnteredReviewMode", id="e1", user_facing_hint="current changes"),
        completed("UserMessage", thread=CHILD, content=[{"text": "Review the changes."}]),
        said("user", "<user_action>\n  <action>review</action>\n</user_action>"),
        completed("ExitedReviewMode", id="e2", review_output={"overall_explanation": "fine"}),
    ]
    assert told(records)[1:] == [
        ("status.changed", "user", "current changes"),
        ("status.changed", "system", "fine"),
    ]


# -- turns, compaction, errors -------------------------------------------------------------------


@pytest.mark.parametrize(
    "twin", [event("context_compacted"), completed("ContextCompaction", id="k1")]
)
def test_a_compaction_is_told_once(twin: dict[str, Any]) -> None:
    summary = line("compacted", {"message": "so far", "replacement_history": []})
    assert told([meta(), summary, twin])[1:] == [("compaction", "system", "so far")]
    assert told([meta(), twin])[1:] == [("compaction", "system", "")]


def test_a_rollback_keeps_what_was_said() -> None:
    out = read([meta(), said("user", "one"), event("thread_rolled_back", num_turns=1)])
    assert [(e.kind, e.data) for e in out.main.events[1:]] == [
        ("user.prompt", None),
        ("status.changed", {"rolled_back_turns": 1}),
    ]


def test_an_interrupted_turn_is_completed_by_the_person() -> None:
    aborted = event("turn_aborted", turn_id="t1", reason="interrupted", duration_ms=5)
    [done] = only("turn.completed", [meta(), aborted])
    assert (done.actor, done.key) == ("user", fold("t1", "completed"))
    assert done.data == {
        "turn_id": "t1",
        "interrupted": True,
        "reason": "interrupted",
        "duration_ms": 5,
    }


def test_an_error_is_told_once_though_the_end_of_the_turn_repeats_it() -> None:
    wrong = {"message": "limit reached", "codex_error_info": "usage_limit_exceeded"}
    records = [meta(), event("error", **wrong), event("task_complete", turn_id="t1", error=wrong)]
    error, done = read(records).main.events[1:]
    assert (error.kind, error.text, error.data) == (
        "error",
        "limit reached",
        {"info": "usage_limit_exceeded"},
    )
    assert done.data == {"turn_id": "t1", "failed": True}
    assert (
        told([meta(), event("task_complete", turn_id="t1", error=wrong)])[1][2] == "limit reached"
    )


# -- tokens --------------------------------------------------------------------------------------


def test_input_is_without_what_the_cache_gave_and_took() -> None:
    figures = {**tokens(170, 50, 15, 5), "cache_write_input_tokens": 20}
    context = line("turn_context", {"turn_id": "t1", "cwd": "/w", "model": "gpt-5.5"})
    [used] = read([meta(), context, usage_record("r1", figures, figures)]).main.usage
    assert used == Usage(fold("codex", "r1"), WHEN_MS, "gpt-5.5", 100, 50, 20, 15, 5)


def test_a_cache_write_nobody_stated_is_unknown() -> None:
    [used] = read([meta(), token_count(tokens(100, 40, 10, 4))]).main.usage
    assert (used.input, used.cache_read, used.cache_write, used.output, used.reasoning) == (
        60,
        40,
        None,
        10,
        4,
    )


def test_a_repeated_total_is_no_new_response() -> None:
    one, two = tokens(100, 0, 10), tokens(300, 0, 20)
    after_compaction = {**tokens(0, 0, 0), "total_tokens": 6785}
    records = [token_count(one), token_count(one), token_count(two, tokens(200, 0, 10))]
    records.append(token_count(two, after_compaction))
    assert [u.input for u in read([meta(), *records]).main.usage] == [100, 200]
    assert read([meta(), event("token_count", info=None, rate_limits={})]).main.usage == []


@pytest.mark.parametrize("record_first", [True, False])
def test_a_response_is_counted_once_though_two_records_tell_its_tokens(record_first: bool) -> None:
    one, two = tokens(100, 0, 10), tokens(300, 0, 20)
    pairs = [
        [usage_record("r1", one, one), token_count(one)],
        [usage_record("r2", tokens(200, 0, 10), two), token_count(two, tokens(200, 0, 10))],
    ]
    first, second = pairs[0] if record_first else pairs[0][::-1], pairs[1]
    assert [u.input for u in read([meta(), *first, *second]).main.usage] == [100, 200]


def test_an_old_session_resumed_by_a_newer_version_is_counted_through() -> None:
    one, two = tokens(100, 0, 10), tokens(300, 0, 20)
    records = [
        token_count(one),
        usage_record("r2", tokens(200, 0, 10), two),
        token_count(two, tokens(200, 0, 10)),
    ]
    assert [u.input for u in read([meta(), *records]).main.usage] == [100, 200]


def test_copies_of_responses_in_a_fork_have_the_keys_of_the_originals() -> None:
    one, two = tokens(100, 0, 10), tokens(300, 0, 20)
    turn = line("turn_context", {"turn_id": "t1", "cwd": "/w", "model": "m"})
    for copied in ([turn, token_count(one)], [token_count(one)], [usage_record("r1", one, one)]):
        parent = read([meta(PARENT), *copied]).main.usage
        own = usage_record("r9", two, two) if "response_id" in str(copied) else token_count(two)
        child = read([meta(CHILD, forked_from_id=PARENT), meta(PARENT), *copied, own]).main.usage
        assert [u.key for u in child][:1] == [u.key for u in parent]
        assert len({u.key for u in child}) == 2


@pytest.mark.parametrize("by_record", [False, True])
@pytest.mark.parametrize("lost", [0, 1, 2])
@pytest.mark.parametrize("counted_by", ["event", "record"])
def test_a_lost_count_is_made_good_by_the_next_total(
    counted_by: str, lost: int, by_record: bool
) -> None:
    totals = [tokens(100, 40, 10, 4), tokens(300, 90, 30, 9), tokens(700, 200, 60, 10)]
    steps = [tokens(100, 40, 10, 4), tokens(200, 50, 20, 5), tokens(400, 110, 30, 1)]
    if counted_by == "event":
        records = [token_count(*pair) for pair in zip(totals, steps, strict=True)]
    else:
        pairs = enumerate(zip(steps, totals, strict=True))
        records = [usage_record(f"r{number}", *pair) for number, pair in pairs]
    del records[lost]
    used = read([meta(), *records, *records[-1:]], by_record=by_record).main.usage
    whole = totals[1] if lost == 2 else totals[2]
    assert sum(u.input or 0 for u in used) == whole["input_tokens"] - whole["cached_input_tokens"]
    assert sum(u.cache_read or 0 for u in used) == whole["cached_input_tokens"]
    assert sum(u.output or 0 for u in used) == whole["output_tokens"]
    assert sum(u.reasoning or 0 for u in used) == whole["reasoning_output_tokens"]
    assert len({u.key for u in used}) == len(used)


@pytest.mark.parametrize(
    "head",
    [
        meta(CHILD, forked_from_id=PARENT),
        meta(CHILD, history_base={"thread_id": PARENT, "end_ordinal_exclusive": 3}),
        meta(CHILD, source={"subagent": {"thread_spawn": {"parent_thread_id": PARENT}}}),
    ],
)
def test_the_total_that_a_thread_was_given_is_not_its_own(head: dict[str, Any]) -> None:
    records = [
        token_count(tokens(4000, 0, 400), tokens(1000, 0, 100)),
        token_count(tokens(7000, 0, 600), tokens(2000, 0, 150)),  # one of 1000 and 50 is lost
    ]
    used = read([head, *records]).main.usage
    assert [(u.input, u.output) for u in used] == [(1000, 100), (1000, 50), (2000, 150)]


def test_a_total_that_began_anew_counts_by_its_responses() -> None:
    records = [
        token_count(tokens(5000, 0, 400), tokens(5000, 0, 400)),
        token_count(tokens(300, 0, 20), tokens(300, 0, 20)),
    ]
    assert [u.input for u in read([meta(), *records]).main.usage] == [5000, 300]


def test_the_oldest_counts_are_running_totals() -> None:
    records = [
        event("token_count", **tokens(100, 0, 10)),
        event("token_count", **tokens(250, 50, 30)),
    ]
    used = [(u.input, u.cache_read, u.output) for u in read([meta(), *records]).main.usage]
    assert used == [(100, 0, 10), (100, 50, 20)]


# -- the oldest files ----------------------------------------------------------------------------


def test_bare_items_without_an_envelope_are_read() -> None:
    context = "<environment_context>\n  <cwd>/old</cwd>\n</environment_context>"
    bare = [said("user", context), said("user", "fix it"), call("c1"), output("c1")]
    head = {"id": PARENT, "timestamp": WHEN, "instructions": None, "git": {"branch": "main"}}
    records: Lines = [head, {"record_type": "state"}, *(record["payload"] for record in bare)]
    assert sniffed(records) == SourceShape("lines", PARENT)
    out = read(records)
    assert [e.kind for e in out.main.events] == [
        "session.started",
        "status.changed",
        "user.prompt",
        "tool.call",
        "tool.result",
    ]
    assert (out.main.facts["cwd"], out.main.facts["branch"], out.unknown) == ("/old", "main", {})


def test_the_oldest_files_are_one_document() -> None:
    items = [record["payload"] for record in (said("user", "fix it"), call("c1"), output("c1"))]
    document = {"session": {"id": PARENT, "timestamp": WHEN, "instructions": ""}, "items": items}
    shape = AGENT.sniff(Path("/h/rollout-x.json"), json.dumps(document, indent=2).encode())
    assert shape == SourceShape("document", PARENT)
    reader, out = AGENT.reader(shape, {}), Sink(PARENT)
    reader.read(document, 0, b"", out)
    keys = [e.key for e in out.main.events]
    assert [e.kind for e in out.main.events] == [
        "session.started",
        "user.prompt",
        "tool.call",
        "tool.result",
    ]
    grown, again = (
        {**document, "items": [*items, said("assistant", "done")["payload"]]},
        Sink(PARENT),
    )
    reader.read(grown, 0, b"", again)
    new = [e.text for e in again.main.events if e.key not in keys]
    assert new == ["done"]


# -- everything else -----------------------------------------------------------------------------


def test_unknown_types_are_counted_and_silent_ones_are_not() -> None:
    records = [
        meta(),
        line("world_state", {"full": True}),
        event("thread_settings_applied"),
        item("additional_tools", tools=[]),
        completed("Plan", text="a plan that the message holds too"),
        line("new_line", {}),
        event("new_event"),
        item("new_item"),
        completed("NewItem"),
    ]
    out = read(records)
    assert [e.kind for e in out.main.events] == ["session.started"]
    names = ["new_line", "event_msg/new_event", "response_item/new_item", "item_completed/NewItem"]
    assert out.unknown == dict.fromkeys(names, 1)


SESSION: Lines = [
    meta(git={"branch": "main"}),
    event("task_started", turn_id=PARENT_TURN),
    line("turn_context", {"turn_id": PARENT_TURN, "cwd": "/w", "model": "gpt-5.5"}),
    said("user", "<environment_context></environment_context>"),
    said("user", "fix it"),
    event("user_message", message="fix it"),
    item("reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
    said("assistant", "On it."),
    call("c1"),
    token_count(tokens(100, 40, 10)),
    event("exec_command_end", call_id="c1", exit_code=1, status="failed", aggregated_output="no"),
    output("c1", "Exit code: 1\nOutput:\nno"),
    patch("p1"),
    patch_output("p1"),
    usage_record("r2", tokens(200, 0, 10), tokens(300, 40, 20)),
    token_count(tokens(300, 40, 20), tokens(200, 0, 10)),
    line("compacted", {"message": "so far"}),
    event("context_compacted"),
    call("c2"),
    output("c2", "Wall time: 1 seconds\nProcess running with session ID 7\nOutput:\n"),
    event("exec_command_end", call_id="c2", exit_code=0, aggregated_output="done"),
    event("error", message="late"),
    event("task_complete", turn_id=PARENT_TURN, error={"message": "late"}),
    event("user_message", message="only here"),
    meta(cwd="/w2"),
    event("thread_name_updated", thread_name="A title"),
]


def test_reading_record_by_record_equals_reading_at_once() -> None:
    whole, grown = read(SESSION), read(SESSION, by_record=True)
    assert grown.main.events == whole.main.events
    assert (grown.main.usage, grown.main.touches) == (whole.main.usage, whole.main.touches)
    assert (grown.main.facts, grown.unknown) == (whole.main.facts, whole.unknown)
    keys = [e.key for e in whole.main.events]
    assert len(set(keys)) == len(keys)


ODD: list[Any] = [
    None,
    True,
    -1,
    1.5,
    "",
    "x",
    [],
    {},
    [[]],
    {"type": []},
    ["a", {"text": 1}],
    {"a": {"b": 1}},
]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_a_record_of_any_shape_is_read_without_an_error(odd: Any) -> None:
    def twisted(value: Any) -> list[Any]:
        """The value with each of its parts in turn replaced."""
        if isinstance(value, dict):
            return [
                {**value, key: new} for key, part in value.items() for new in [odd, *twisted(part)]
            ]
        if isinstance(value, list):
            return [
                [*value[:at], new, *value[at + 1 :]]
                for at, part in enumerate(value)
                for new in [odd, *twisted(part)]
            ]
        return []

    review = completed("ExitedReviewMode", review_output={"overall_explanation": "x"})
    more = [
        review,
        said(
            "user", "x", internal_chat_message_metadata_passthrough={"content_item_metadata": [{}]}
        ),
    ]
    reader, out = AGENT.reader(SourceShape("lines", PARENT, CHILD), {}), Sink(PARENT, CHILD)
    for record in [*SESSION, *more]:
        for twist in twisted(record):
            reader.read(twist, 0, b"x", out)
            AGENT.sniff(Path("x.jsonl"), json.dumps(twist).encode())
    json.dumps(reader.state)


# -- real files ----------------------------------------------------------------------------------


def rollouts(corpus: Path) -> list[Path]:
    found = [
        path
        for root in AGENT.roots(corpus, {})
        if root.exists()
        for path in AGENT.find(root, _refuse)
    ]
    assert found
    return found


def test_every_rollout_of_the_corpus_is_understood(corpus: Path) -> None:
    for path in rollouts(corpus):
        records = [json.loads(raw) for raw in path.read_bytes().split(b"\n") if raw]
        out = read(records)
        kinds = Counter(e.kind for e in out.main.events)
        inside = Counter(record["payload"].get("type") for record in records)
        assert out.unknown == {}
        assert len({e.key for e in out.main.events}) == len(out.main.events)
        # The event of a prompt is the program's own word for what a person typed; the reader goes
        # by the items.
        assert kinds["user.prompt"] == inside["user_message"]
        assert kinds["turn.started"] == inside["task_started"]
        assert kinds["turn.completed"] == inside["task_complete"] + inside["turn_aborted"]
        assert kinds["compaction"] == inside["context_compacted"]
        calls = inside["function_call"] + inside["custom_tool_call"] + inside["web_search_call"]
        outputs = inside["function_call_output"] + inside["custom_tool_call_output"]
        late = sum(bool(e.data and e.data.get("late")) for e in out.main.events)
        assert (kinds["tool.call"], kinds["tool.result"] - late) == (calls, outputs)
        running = [
            r["payload"]
            for r in records
            if "Process running with session ID" in str(r["payload"].get("output"))
        ]
        ended = {
            r["payload"]["call_id"]
            for r in records
            if r["payload"].get("type") == "exec_command_end"
        }
        assert late == len({output["call_id"] for output in running} & ended)


def test_tokens_of_the_corpus_add_up_to_each_sessions_last_total(corpus: Path) -> None:
    for path in rollouts(corpus):
        records = [json.loads(raw) for raw in path.read_bytes().split(b"\n") if raw]
        infos = [r["payload"]["info"] for r in records if r["payload"].get("type") == "token_count"]
        total = [info["total_token_usage"] for info in infos if info][-1]
        used = read(records).main.usage
        assert (
            sum(u.input or 0 for u in used) == total["input_tokens"] - total["cached_input_tokens"]
        )
        assert sum(u.cache_read or 0 for u in used) == total["cached_input_tokens"]
        assert sum(u.output or 0 for u in used) == total["output_tokens"]
        assert sum(u.reasoning or 0 for u in used) == total["reasoning_output_tokens"]


def test_files_written_in_the_corpus_are_those_the_patches_changed(corpus: Path) -> None:
    for path in rollouts(corpus):
        records = [json.loads(raw) for raw in path.read_bytes().split(b"\n") if raw]
        patches = [r["payload"] for r in records if r["payload"].get("type") == "patch_apply_end"]
        changed = {name for done in patches if done["success"] for name in done["changes"]}
        written = {t.path for t in read(records).main.touches if t.action == "write"}
        texts = "".join(
            r["payload"]["input"] for r in records if r["payload"].get("type") == "custom_tool_call"
        )
        assert written >= changed
        # no event told of these patches
        assert all(f" File: {name}\n" in texts for name in written - changed)


def test_the_corpus_read_record_by_record_is_the_same(corpus: Path) -> None:
    for path in sorted(rollouts(corpus), key=lambda path: path.stat().st_size)[:5]:
        records = [json.loads(raw) for raw in path.read_bytes().split(b"\n") if raw]
        whole, grown = read(records), read(records, by_record=True)
        assert (grown.main.events, grown.main.usage) == (whole.main.events, whole.main.usage)
