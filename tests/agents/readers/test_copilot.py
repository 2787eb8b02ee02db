"""Copilot CLI event logs: chunked answers, subagents in the same log, and totals told only at
the end."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from whyfor.agents.base import SourceShape
from whyfor.agents.copilot import AGENT
from whyfor.agents.copilot.read import EVENTS, SILENT, EventsReader
from whyfor.model.events import Event, Touch, Usage
from whyfor.model.findings import Sink
from whyfor.model.ids import fold

Lines = list[dict[str, Any]]

SESSION_ID = "0b7d0e2c-0000-4000-8000-000000000001"
WHEN = "2026-07-01T10:00:00.000Z"
WHEN_MS = 1782900000000


def record(kind: str, data: dict[str, Any], /, ident: str = "", **envelope: Any) -> dict[str, Any]:
    return {
        "type": kind,
        "data": data,
        "id": ident,
        "timestamp": WHEN,
        "parentId": None,
        **envelope,
    }


def start(**context: Any) -> dict[str, Any]:
    where = {"cwd": "/w", "gitRoot": "/w", "branch": "main", "repository": "o/r", **context}
    data = {
        "sessionId": SESSION_ID,
        "copilotVersion": "1.0.68",
        "producer": "copilot-agent",
        "context": where,
    }
    return record("session.start", data, "e0")


def message(ident: str, text: str = "", **more: Any) -> dict[str, Any]:
    data = {
        "messageId": ident,
        "content": text,
        "model": "claude-sonnet-4.6",
        "toolRequests": [],
        **more,
    }
    return record("assistant.message", data, f"e-{ident}")


def request(ident: str, name: str = "bash", arguments: Any = None) -> dict[str, Any]:
    return {
        "toolCallId": ident,
        "name": name,
        "arguments": arguments or {"command": "ls"},
        "type": "function",
    }


def done(ident: str, text: str = "ok", **more: Any) -> dict[str, Any]:
    data = {"toolCallId": ident, "success": True, "result": {"content": text}, **more}
    return record("tool.execution_complete", data, f"d-{ident}")


def figures(
    given: int, output: int, read: int = 0, written: int = 0, thought: int = 0
) -> dict[str, int]:
    cache = {"cacheReadTokens": read, "cacheWriteTokens": written}
    return {"inputTokens": given, "outputTokens": output, **cache, "reasoningTokens": thought}


def shutdown(ident: str, models: dict[str, dict[str, int]], **more: Any) -> dict[str, Any]:
    metrics = {model: {"requests": {"count": 1}, "usage": usage} for model, usage in models.items()}
    return record(
        "session.shutdown", {"shutdownType": "routine", "modelMetrics": metrics, **more}, ident
    )


def encoded(records: Lines) -> list[bytes]:
    return [json.dumps(each).encode() for each in records]


def sniffed(records: Lines, path: str = "/h/x/events.jsonl") -> SourceShape | None:
    return AGENT.sniff(Path(path), b"\n".join(encoded(records)) + b"\n")


def read(records: Lines, *, by_record: bool = False) -> Sink:
    """All records at once, or with the state through JSON after each, as when a file grows line
    by line."""
    shape = SourceShape("lines", SESSION_ID)
    out, reader, offset = Sink(SESSION_ID), AGENT.reader(shape, {}), 0
    for raw in encoded(records):
        if by_record:
            reader = AGENT.reader(shape, json.loads(json.dumps(reader.state)))
        reader.read(json.loads(raw), offset, raw, out)
        offset += len(raw) + 1
    return out


def told(*records: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(e.kind, e.actor, e.text) for e in read([start(), *records]).main.events[1:]]


def one(each: dict[str, Any]) -> Event:
    [event] = read([start(), each]).main.events[1:]
    return event


def total(records: Lines) -> dict[str, int | None]:
    """The session's tokens as the store adds them up: the maximum per key, then the sum, unknown
    if all are."""
    best: dict[int, Usage] = {}
    names = ("input", "cache_read", "cache_write", "output", "reasoning")
    for bucket in read(records).buckets.values():
        for used in bucket.usage:
            row = best.setdefault(used.key, used)
            for name in names:
                known = [
                    value
                    for value in (getattr(row, name), getattr(used, name))
                    if value is not None
                ]
                setattr(row, name, max(known) if known else None)
    columns = {name: [getattr(row, name) for row in best.values()] for name in names}
    return {
        name: sum(v or 0 for v in values) if set(values) - {None} else None
        for name, values in columns.items()
    }


# -- where, and which files ----------------------------------------------------------------------


def test_both_folders_are_roots_and_the_environment_moves_them() -> None:
    assert AGENT.roots(Path("/h"), {}) == [
        Path("/h/.copilot/session-state"),
        Path("/h/.copilot/history-session-state"),
    ]
    assert AGENT.roots(Path("/h"), {"COPILOT_HOME": "/c"})[0] == Path("/c/session-state")


def test_a_sessions_own_files_are_no_transcripts(tmp_path: Path) -> None:
    for name in (
        "a/events.jsonl",
        "a/files/data.json",
        "a/notes.jsonl",
        "b.jsonl",
        "a/workspace.yaml",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def refuse(error: OSError) -> None:
        raise error

    assert [path.relative_to(tmp_path).as_posix() for path in AGENT.find(tmp_path, refuse)] == [
        "b.jsonl",
        "a/events.jsonl",
    ]


def test_a_log_is_known_by_its_content_whatever_its_name() -> None:
    assert sniffed([start()], "/h/data.txt") == SourceShape("lines", SESSION_ID)


def test_without_its_start_a_log_is_known_by_its_folder_or_name() -> None:
    assert sniffed([message("m1", "hi")], "/h/abc/events.jsonl") == SourceShape("lines", "abc")
    assert sniffed([message("m1", "hi")], "/h/abc.jsonl") == SourceShape("lines", "abc")


@pytest.mark.parametrize(
    "foreign",
    [
        {
            "type": "user",
            "sessionId": "s",
            "uuid": "u",
            "timestamp": WHEN,
            "message": {"role": "user"},
        },
        {"type": "session_meta", "timestamp": WHEN, "payload": {"id": "x"}},
        {"type": "custom.event", "timestamp": WHEN, "parentId": None, "data": {}},
        {"sessionId": "s", "messages": [], "startTime": WHEN},
        {"sessionId": "s", "projectHash": "p", "startTime": WHEN, "kind": "main"},
    ],
)
def test_other_agents_files_are_left_to_them(foreign: dict[str, Any]) -> None:
    assert sniffed([foreign]) is None


# -- the session ---------------------------------------------------------------------------------


def test_a_session_starts_once_and_says_where() -> None:
    resumed = record(
        "session.resume", {"eventCount": 1, "context": {"cwd": "/w", "branch": "main"}}, "e1"
    )
    out = read([start(), resumed])
    [started] = out.main.events
    where = {"cwd": "/w", "branch": "main", "repository": "o/r", "version": "1.0.68"}
    assert started == Event(
        "session.started", fold("e0", "place"), WHEN_MS, "system", "", None, where
    )
    assert out.main.facts == {"cwd": "/w", "branch": "main", "version": "1.0.68"}


@pytest.mark.parametrize("kind", ["session.resume", "session.context_changed"])
def test_a_new_folder_or_branch_is_told(kind: str) -> None:
    context = {"cwd": "/w2", "branch": "topic"}
    out = read(
        [start(), record(kind, {"context": context} if kind == "session.resume" else context, "e1")]
    )
    assert (out.main.events[1].kind, out.main.events[1].data) == ("status.changed", context)
    assert (out.main.facts["cwd"], out.main.facts["branch"]) == ("/w", "topic")


def test_a_compaction_holds_its_summary() -> None:
    data = {
        "success": True,
        "trigger": "manual",
        "preCompactionTokens": 9,
        "summaryContent": "so far",
    }
    event = one(record("session.compaction_complete", data, "e1"))
    assert (event.kind, event.text) == ("compaction", "so far")
    assert event.data == {"trigger": "manual", "preCompactionTokens": 9}
    failed = one(
        record("session.compaction_complete", {"success": False, "error": "no room"}, "e1")
    )
    assert (failed.kind, failed.text) == ("error", "no room")


def test_other_things_that_happen_to_a_session() -> None:
    assert told(
        record("session.error", {"errorType": "quota", "message": "limit reached"}, "e1"),
        record("session.snapshot_rewind", {"upToEventId": "e9"}, "e2"),
        record("session.mode_changed", {"previousMode": "interactive", "newMode": "plan"}, "e3"),
        record("abort", {"reason": "user_initiated"}, "e4"),
        record(
            "system.notification",
            {"content": "<system_notification>\nshell 1 ended\n</system_notification>"},
            "e5",
        ),
    ) == [
        ("error", "system", "limit reached"),
        ("status.changed", "user", ""),
        ("status.changed", "user", ""),
        ("turn.completed", "user", ""),
        ("status.changed", "system", "shell 1 ended"),
    ]
    assert one(record("session.snapshot_rewind", {"upToEventId": "e9"}, "e2")).data == {
        "rewound_to": "e9"
    }
    assert one(record("abort", {"reason": "user_initiated"}, "e4")).data == {
        "interrupted": True,
        "reason": "user_initiated",
    }


def test_a_title_comes_from_the_agent() -> None:
    out = read([start(), record("session.title_changed", {"title": "Fix the parser"}, "e1")])
    assert out.main.facts["title"] == "Fix the parser"


# -- the conversation ----------------------------------------------------------------------------


def test_a_prompt_is_what_was_typed_not_what_was_made_of_it() -> None:
    data = {
        "content": "fix it",
        "transformedContent": "<current_datetime>…</current_datetime>\n\nfix it",
    }
    assert one(record("user.message", data, "e1")) == Event(
        "user.prompt", fold("e1"), WHEN_MS, "user", "fix it"
    )


@pytest.mark.parametrize("origin", [{"source": "skill-pdf"}, {"isAutopilotContinuation": True}])
def test_what_the_program_said_in_the_users_name_is_no_prompt(origin: dict[str, Any]) -> None:
    assert (
        one(record("user.message", {"content": "go on", **origin}, "e1")).kind == "status.changed"
    )


def test_an_attachment_is_a_reference_without_its_bytes() -> None:
    attached = [
        {"type": "blob", "mimeType": "image/png", "data": "AAAABBBB", "displayName": "a.png"}
    ]
    prompt = one(record("user.message", {"content": "look", "attachments": attached}, "e1"))
    image = {
        "block": 0,
        "type": "blob",
        "media_type": "image/png",
        "displayName": "a.png",
        "bytes": 6,
    }
    assert prompt.data == {"images": [image]}


def test_an_answer_is_a_thought_words_and_calls() -> None:
    answer = message(
        "m1",
        "On it.",
        reasoningText="hm",
        toolRequests=[request("c1"), request("c2", "view", {"path": "a"})],
    )
    model = {"model": "claude-sonnet-4.6"}
    assert read([start(), answer]).main.events[1:] == [
        Event(
            "assistant.thinking", fold("m1", 0, "thinking"), WHEN_MS, "assistant", "hm", None, model
        ),
        Event("assistant.message", fold("m1", 0), WHEN_MS, "assistant", "On it.", None, model),
        Event(
            "tool.call",
            fold("c1"),
            WHEN_MS,
            "assistant",
            "ls",
            "bash",
            {"id": "c1", "input": {"command": "ls"}},
        ),
        Event(
            "tool.call",
            fold("c2"),
            WHEN_MS,
            "assistant",
            "a",
            "view",
            {"id": "c2", "input": {"path": "a"}},
        ),
    ]


def test_a_thought_is_told_once_though_two_records_hold_it() -> None:
    thought = record("assistant.reasoning", {"reasoningId": "r1", "content": "hm"}, "e1")
    for records in (
        [thought, message("m1", reasoningText="hm")],
        [message("m1", reasoningText="hm"), thought],
    ):
        assert told(*records) == [("assistant.thinking", "assistant", "hm")]
    twice = [message("m1", reasoningText="hm"), message("m2", reasoningText="hm")]
    assert len(told(*twice)) == 2


def test_arguments_may_be_an_object_or_its_text() -> None:
    asked = message(
        "m1",
        toolRequests=[request("c1", "bash", '{"command": "ls"}'), request("c2", "bash", "{broken")],
    )
    first, second = read([start(), asked]).main.events[1:]
    assert first.data == {"id": "c1", "input": {"command": "ls"}}
    assert (second.text, second.data) == ("{broken", {"id": "c2", "input": "{broken"})


# -- tools ---------------------------------------------------------------------------------------


def test_a_call_is_told_by_the_message_that_asked_or_else_by_its_start() -> None:
    started = record(
        "tool.execution_start",
        {"toolCallId": "c1", "toolName": "bash", "arguments": {"command": "ls"}},
    )
    assert len(told(message("m1", toolRequests=[request("c1")]), started)) == 1
    assert told(started) == [("tool.call", "assistant", "ls")]
    by_hand = record(
        "tool.user_requested",
        {"toolCallId": "c1", "toolName": "bash", "arguments": {"command": "ls"}},
    )
    assert told(by_hand, started) == [("tool.call", "user", "ls")]


def test_a_result_knows_its_exit_code() -> None:
    result = one(done("c1", "no rule\n<shellId: 3 completed with exit code 2>"))
    assert result.key == fold("c1", "result")
    assert result.data == {"id": "c1", "exit_code": 2, "failed": True}
    assert one(done("c1", "fine\n<exited with exit code 0>")).data == {"id": "c1", "exit_code": 0}


def test_a_failed_call_tells_its_error() -> None:
    data = {
        "toolCallId": "c1",
        "success": False,
        "error": {"message": "no such path", "code": "failure"},
    }
    result = one(record("tool.execution_complete", data, "e1"))
    assert (result.text, result.data) == ("no such path", {"id": "c1", "failed": True})


def test_files_are_touched_when_the_call_succeeded() -> None:
    patch = "*** Begin Patch\n*** Add File: new.py\n+x\n*** End Patch"
    asked = [
        request("c1", "view", {"path": "/w/a"}),
        request("c2", "edit", {"path": "/w/b", "old_str": "x", "new_str": "y"}),
        request("c3", "create", {"path": "/w/c", "file_text": "x"}),
        request("c4", "edit", {"path": "/w/d"}),
        request("c5", "apply_patch", patch),
        request("c6", "glob", {"path": "/w"}),
    ]
    failed = done("c4", success=False, error={"message": "no"})
    results = [done("c1"), done("c2"), done("c3"), failed, done("c5"), done("c6")]
    out = read([start(), message("m1", toolRequests=asked), *results])
    assert out.main.touches == [
        Touch(fold("c1", "result"), "/w/a", "read"),
        Touch(fold("c2", "result"), "/w/b", "write"),
        Touch(fold("c3", "result"), "/w/c", "write"),
        Touch(fold("c5", "result"), "new.py", "write"),
    ]


def test_a_permission_is_asked_for_and_decided() -> None:
    wanted = {
        "kind": "shell",
        "toolCallId": "c1",
        "fullCommandText": "rm -r x",
        "intention": "Clean up",
    }
    asked = record("permission.requested", {"requestId": "p1", "permissionRequest": wanted}, "e1")
    denied = {
        "requestId": "p1",
        "toolCallId": "c1",
        "result": {"kind": "denied-interactively-by-user"},
    }
    request_event, decision = read(
        [start(), asked, record("permission.completed", denied, "e2")]
    ).main.events[1:]
    assert (request_event.kind, request_event.name, request_event.text) == (
        "approval.requested",
        "shell",
        "rm -r x",
    )
    assert request_event.data == {"id": "c1", "request": "p1"}
    assert (decision.kind, decision.actor) == ("approval.resolved", "user")
    assert decision.data is not None and decision.data["decision"] == "denied"
    approved = record(
        "permission.completed",
        {"requestId": "p1", "result": {"kind": "approved-for-session"}},
        "e2",
    )
    assert (one(approved).data or {})["decision"] == "approved"


def test_a_question_to_the_person_is_asked() -> None:
    given = {"question": "Which?", "choices": ["a", "b"]}
    _, question = read(
        [start(), message("m1", toolRequests=[request("c1", "ask_user", given)])]
    ).main.events[1:]
    assert (question.kind, question.text, question.data) == (
        "question.asked",
        "Which?",
        {"id": "c1", "questions": [given]},
    )


# -- subagents -----------------------------------------------------------------------------------


def test_subagents_write_into_the_same_log_but_are_sessions_of_their_own() -> None:
    started = record(
        "subagent.started",
        {"toolCallId": "c1", "agentName": "explore", "agentDisplayName": "Explore"},
        "e1",
    )
    inner = message("m2", "three files", outputTokens=5, apiCallId="a2")
    records = [
        start(),
        message("m1", toolRequests=[request("c1", "task", {"prompt": "count files"})]),
        started,
        record("user.message", {"content": "count files"}, "e2", agentId="c1"),
        {**inner, "agentId": "c1"},
        record(
            "subagent.completed",
            {"toolCallId": "c1", "agentName": "explore", "durationMs": 9},
            "e3",
            agentId="c1",
        ),
        done("c1", "three"),
    ]
    out = read(records)
    child = out.buckets[f"agent-c1@{SESSION_ID}"]
    assert (child.parent, child.facts["subagent"]) == (SESSION_ID, "explore")
    assert [(e.kind, e.actor, e.text) for e in child.events] == [
        ("user.prompt", "assistant", "count files"),
        ("assistant.message", "assistant", "three files"),
    ]
    assert [u.output for u in child.usage] == [5]
    assert [(e.kind, e.name, e.text, e.data) for e in out.main.events[2:4]] == [
        ("subagent.started", "explore", "Explore", {"id": "c1"}),
        ("subagent.stopped", "explore", "", {"id": "c1", "duration_ms": 9}),
    ]


def test_older_logs_name_the_call_that_started_the_subagent() -> None:
    out = read([start(), message("m2", "three files", parentToolCallId="c1")])
    assert [e.text for e in out.buckets[f"agent-c1@{SESSION_ID}"].events] == ["three files"]


def test_a_subagent_that_failed_says_why() -> None:
    failed = one(
        record(
            "subagent.failed",
            {"toolCallId": "c1", "agentName": "explore", "error": "crashed"},
            "e1",
        )
    )
    assert (failed.kind, failed.text, failed.data) == (
        "subagent.stopped",
        "crashed",
        {"id": "c1", "failed": True},
    )


# -- tokens --------------------------------------------------------------------------------------

MODEL = "claude-sonnet-4.6"


def test_a_killed_session_knows_only_its_output() -> None:
    records = [
        start(),
        message("m1", "a", outputTokens=10, apiCallId="a1"),
        message("m2", "b", outputTokens=5),
    ]
    assert read(records).main.usage == [
        Usage(fold("copilot", "a1"), WHEN_MS, MODEL, output=10),
        Usage(fold("copilot", "m2"), WHEN_MS, MODEL, output=5),
    ]
    assert total(records) == dict.fromkeys(("input", "cache_read", "cache_write", "reasoning")) | {
        "output": 15
    }


def test_chunks_of_one_answer_are_counted_once() -> None:
    chunks = [message("m1", "a", outputTokens=10, apiCallId="a1", chunkIndex=0, chunkCount=2)]
    chunks.append(message("m2", "b", outputTokens=10, apiCallId="a1", chunkIndex=1, chunkCount=2))
    ended = shutdown("e9", {MODEL: figures(100, 10)})
    assert total([start(), *chunks])["output"] == 10
    assert total([start(), *chunks, ended])["output"] == 10
    assert [text for _, _, text in told(*chunks)] == ["a", "b"]


def test_a_session_ends_with_the_totals_of_its_shutdown() -> None:
    """Input is stated with cache reads and writes in it; reasoning is a part of output."""
    said = [message("m1", "a", outputTokens=10), message("m2", "b", outputTokens=5)]
    ended = shutdown("e9", {MODEL: figures(1000, 40, 600, 300, 8)})
    assert read([start(), *said, ended]).main.usage[2] == Usage(
        fold("copilot", SESSION_ID, MODEL, "e9"), WHEN_MS, MODEL, 100, 600, 300, 25, 8, lump=True
    )
    whole = {"input": 100, "cache_read": 600, "cache_write": 300, "output": 40, "reasoning": 8}
    assert total([start(), *said, ended]) == whole


def test_the_agents_own_breakdown_of_input_is_believed() -> None:
    ended = shutdown("e9", {MODEL: figures(1000, 40, 600, 300)})
    ended["data"]["modelMetrics"][MODEL]["tokenDetails"] = {"input": {"tokenCount": 101}}
    assert total([start(), ended])["input"] == 101
    without_cache = shutdown("e9", {MODEL: figures(50, 40, 600, 300)})
    assert total([start(), without_cache])["input"] == 50


def test_output_is_set_off_per_model() -> None:
    said = [
        message("m1", "a", outputTokens=10),
        message("m2", "b", outputTokens=5, model="gpt-5.4-mini"),
    ]
    ended = shutdown("e9", {MODEL: figures(100, 12), "gpt-5.4-mini": figures(50, 9)})
    used = read([start(), *said, ended]).main.usage[2:]
    assert [(u.model, u.input, u.output) for u in used] == [
        (MODEL, 100, 2),
        ("gpt-5.4-mini", 50, 4),
    ]


def test_messages_of_a_model_the_totals_do_not_name_are_in_them_all_the_same() -> None:
    nameless = message("m1", "a", outputTokens=10)
    del nameless["data"]["model"]
    assert total([start(), nameless, shutdown("e9", {MODEL: figures(100, 12)})])["output"] == 12


def test_runs_of_a_resumed_session_add_up_when_each_counts_anew() -> None:
    first = [message("m1", "a", outputTokens=100), shutdown("e1", {MODEL: figures(1000, 120, 400)})]
    second = [message("m2", "b", outputTokens=30), shutdown("e2", {MODEL: figures(5000, 40, 3000)})]
    used = total([start(), *first, *second])
    assert (used["input"], used["cache_read"], used["output"]) == (2600, 3400, 160)


def test_the_last_run_of_a_resumed_session_counts_when_the_totals_go_on() -> None:
    first = [message("m1", "a", outputTokens=100), shutdown("e1", {MODEL: figures(1000, 120, 400)})]
    second = [
        message("m2", "b", outputTokens=30),
        shutdown("e2", {MODEL: figures(6000, 160, 3400)}),
    ]
    used = total([start(), *first, *second])
    assert (used["input"], used["cache_read"], used["output"]) == (2600, 3400, 160)


def test_what_was_said_after_the_last_shutdown_is_counted_too() -> None:
    first = [message("m1", "a", outputTokens=100), shutdown("e1", {MODEL: figures(1000, 120)})]
    assert total([start(), *first, message("m2", "b", outputTokens=30)])["output"] == 150


def call_usage(call: str, used: dict[str, int], **envelope: Any) -> dict[str, Any]:
    told = {"model": MODEL, "apiCallId": call, **used}
    return record("session.usage_record", {"usage": told}, f"u-{call}", **envelope)


def test_each_call_is_counted_and_of_the_totals_only_what_no_call_told() -> None:
    first = [
        call_usage("c1", figures(1000, 40, 600, 100, 8)),
        message("m1", "a", apiCallId="c1"),
        shutdown("e1", {MODEL: figures(1500, 50, 800, 100, 8)}),  # a call was not told
    ]
    # The next run goes on counting, and every call of it is told.
    second = [
        call_usage("c2", figures(200, 5, 100)),
        shutdown("e2", {MODEL: figures(1700, 55, 900, 100, 8)}),
    ]
    for by_record in (False, True):
        out = read([start(), *first, *second], by_record=by_record)
        by_key = {spent.key: spent for spent in out.main.usage}
        told = [(u.input, u.cache_read, u.output, u.lump) for u in by_key.values()]
        assert told == [
            (300, 600, 40, False),
            (300, 200, 10, True),
            (100, 100, 5, False),
        ]


def test_what_a_subagents_call_used_is_the_subagents() -> None:
    out = read([start(), call_usage("c1", figures(10, 4), agentId="a1")])
    assert out.main.usage == []
    (child,) = (bucket for bucket in out.buckets.values() if bucket is not out.main)
    assert [(spent.input, spent.output) for spent in child.usage] == [(10, 4)]


def test_a_shutdown_tells_what_was_changed() -> None:
    changes = {"linesAdded": 3, "linesRemoved": 1, "filesModified": ["/w/a"]}
    out = read([start(), shutdown("e1", {}, codeChanges=changes)])
    assert out.main.events[1].kind == "session.exited"
    assert out.main.events[1].data == {"type": "routine", "lines_added": 3, "lines_removed": 1}
    assert out.main.touches == [Touch(fold("e1"), "/w/a", "write")]


# -- the oldest files ----------------------------------------------------------------------------


def test_the_oldest_sessions_are_one_document() -> None:
    timeline = [
        {"id": "t1", "timestamp": WHEN, "type": "user", "text": "fix it"},
        {"id": "t2", "timestamp": WHEN, "type": "info", "text": "signed in"},
        {
            "id": "t3",
            "type": "tool_call_requested",
            "callId": "c1",
            "name": "bash",
            "arguments": {"command": "ls"},
        },
        {
            "id": "t4",
            "type": "tool_call_completed",
            "callId": "c1",
            "name": "bash",
            "result": {"type": "success", "log": "a"},
        },
        {
            "id": "t5",
            "type": "tool_call_completed",
            "callId": "c2",
            "toolTitle": "str_replace_editor",
            "arguments": {"command": "create", "path": "/w/a"},
            "result": {"type": "success", "log": "made"},
        },
        {"id": "t6", "type": "copilot", "text": "Done."},
    ]
    document = {"sessionId": SESSION_ID, "startTime": WHEN, "timeline": timeline}
    assert AGENT.sniff(Path("/h/s.json"), json.dumps(document, indent=2).encode()) == SourceShape(
        "document", SESSION_ID
    )
    out = Sink(SESSION_ID)
    AGENT.reader(SourceShape("document", SESSION_ID), {}).read(document, 0, b"", out)
    assert [(e.kind, e.text) for e in out.main.events] == [
        ("session.started", ""),
        ("user.prompt", "fix it"),
        ("tool.call", "ls"),
        ("tool.result", "a"),
        ("tool.call", "create\n/w/a"),
        ("tool.result", "made"),
        ("assistant.message", "Done."),
    ]
    assert out.main.touches == [Touch(fold("c2", "result"), "/w/a", "write")]


def test_without_a_timeline_the_messages_to_the_model_are_read() -> None:
    messages = [
        {"role": "user", "content": "fix it"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": "c1", "function": {"name": "bash", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "ok"},
        {"role": "assistant", "content": "Done."},
    ]
    document = {"sessionId": SESSION_ID, "startTime": WHEN, "chatMessages": messages}
    out = Sink(SESSION_ID)
    AGENT.reader(SourceShape("document", SESSION_ID), {}).read(document, 0, b"", out)
    kinds = ["session.started", "user.prompt", "tool.call", "tool.result", "assistant.message"]
    assert [e.kind for e in out.main.events] == kinds


# -- everything else -----------------------------------------------------------------------------


def test_hooks_and_steps_are_silent_and_unknown_types_are_counted() -> None:
    silent = [
        record(kind, {})
        for kind in ("hook.start", "hook.end", "assistant.turn_start", "system.message")
    ]
    out = read([start(), *silent, record("new.event", {})])
    assert [e.kind for e in out.main.events] == ["session.started"]
    assert out.unknown == {"new.event": 1}


def test_each_known_type_has_its_method_and_is_not_silent() -> None:
    assert not EVENTS.keys() & SILENT
    assert [
        kind for kind in EVENTS if not hasattr(EventsReader, "_" + kind.replace(".", "_"))
    ] == []


SESSION: Lines = [
    start(),
    record("session.model_change", {"newModel": MODEL}, "e1"),
    record(
        "user.message",
        {"content": "fix it", "attachments": [{"type": "file", "path": "/w/a"}]},
        "e2",
    ),
    record("assistant.reasoning", {"reasoningId": "r1", "content": "hm"}, "e3"),
    message(
        "m1",
        "On it.",
        reasoningText="hm",
        outputTokens=9,
        apiCallId="a1",
        toolRequests=[request("c1", "edit", {"path": "a"})],
    ),
    record(
        "permission.requested",
        {"requestId": "p1", "permissionRequest": {"kind": "write", "fileName": "a"}},
        "e4",
    ),
    record("permission.completed", {"requestId": "p1", "result": {"kind": "approved"}}, "e5"),
    record(
        "tool.execution_start",
        {"toolCallId": "c1", "toolName": "edit", "arguments": {"path": "a"}},
        "e6",
    ),
    done("c1"),
    record("subagent.started", {"toolCallId": "c2", "agentName": "explore"}, "e7"),
    record("user.message", {"content": "look"}, "e8", agentId="c2"),
    record(
        "subagent.failed", {"toolCallId": "c2", "agentName": "explore", "error": "crashed"}, "e9"
    ),
    record("session.context_changed", {"cwd": "/w2", "branch": "topic"}, "e10"),
    record("session.compaction_complete", {"success": True, "summaryContent": "so far"}, "e11"),
    record("session.truncation", {"messagesRemovedDuringTruncation": 2}, "e12"),
    record("session.error", {"message": "oh"}, "e13"),
    record("system.notification", {"content": "x", "kind": {"type": "y"}}, "e14"),
    record("skill.invoked", {"name": "pdf"}, "e15"),
    record("exit_plan_mode.requested", {"requestId": "p2", "summary": "a plan"}, "e16"),
    record("exit_plan_mode.completed", {"requestId": "p2", "approved": True}, "e17"),
    record("elicitation.requested", {"requestId": "p3", "message": "Which?"}, "e18"),
    record("session.task_complete", {"summary": "did it", "success": True}, "e19"),
    shutdown(
        "e20", {MODEL: figures(100, 12, 40)}, codeChanges={"linesAdded": 1, "filesModified": ["a"]}
    ),
    message("m2", "again", outputTokens=5, apiCallId="a2"),
    shutdown("e21", {MODEL: figures(200, 20, 80)}),
]


def test_reading_record_by_record_equals_reading_at_once() -> None:
    whole, grown = read(SESSION), read(SESSION, by_record=True)
    assert whole.buckets.keys() == grown.buckets.keys()
    for bucket, other in zip(whole.buckets.values(), grown.buckets.values(), strict=True):
        assert (bucket.events, bucket.usage, bucket.touches) == (
            other.events,
            other.usage,
            other.touches,
        )
        assert bucket.facts == other.facts
        assert len({e.key for e in bucket.events}) == len(bucket.events)
    assert whole.unknown == {}


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

    reader, out = AGENT.reader(SourceShape("lines", SESSION_ID), {}), Sink(SESSION_ID)
    old: Lines = [
        {"timeline": [{"type": "user", "text": "x"}], "sessionId": "s", "startTime": WHEN}
    ]
    for each in [*SESSION, *old]:
        for twist in twisted(each):
            reader.read(twist, 0, b"x", out)
            AGENT.sniff(Path("x.jsonl"), json.dumps(twist).encode())
    json.dumps(reader.state)


# -- real files ----------------------------------------------------------------------------------


def logs(corpus: Path) -> list[Lines]:
    found = sorted((corpus / ".copilot" / "session-state").glob("*/events.jsonl"))
    assert found
    return [[json.loads(raw) for raw in path.read_bytes().split(b"\n") if raw] for path in found]


def test_every_log_of_the_corpus_is_understood(corpus: Path) -> None:
    for records in logs(corpus):
        out = read(records)
        kinds = Counter(e.kind for bucket in out.buckets.values() for e in bucket.events)
        inside = Counter(each["type"] for each in records)
        assert out.unknown == {}
        assert len({e.key for e in out.main.events}) == len(out.main.events)
        assert kinds["user.prompt"] == inside["user.message"]
        assert kinds["tool.call"] == inside["tool.execution_start"]
        assert kinds["tool.result"] == inside["tool.execution_complete"]
        thoughts = sum(bool(each["data"].get("reasoningText")) for each in records)
        assert kinds["assistant.thinking"] == thoughts
        assert sniffed(records) == SourceShape("lines", records[0]["data"]["sessionId"])


def test_tokens_of_the_corpus_are_those_of_each_shutdown(corpus: Path) -> None:
    for records in logs(corpus):
        ends = [
            each["data"]["modelMetrics"] for each in records if each["type"] == "session.shutdown"
        ]
        usages = [metric["usage"] for metric in (ends[-1].values() if ends else ())]
        used = {"session_id": records[0]["data"]["sessionId"], **total(records)}
        said = sum(
            each["data"].get("outputTokens", 0)
            for each in records
            if each["type"] == "assistant.message"
        )
        assert used["output"] == (sum(u["outputTokens"] for u in usages) if usages else said)
        if not usages:
            assert used["input"] is None
            continue
        cached = sum(u["cacheReadTokens"] + u["cacheWriteTokens"] for u in usages)
        assert used["input"] == sum(u["inputTokens"] for u in usages) - cached
        assert used["cache_read"] == sum(u["cacheReadTokens"] for u in usages)


def test_the_corpus_read_record_by_record_is_the_same(corpus: Path) -> None:
    for records in logs(corpus):
        whole, grown = read(records), read(records, by_record=True)
        assert (grown.main.events, grown.main.usage) == (whole.main.events, whole.main.usage)
        assert grown.main.touches == whole.main.touches
