"""Claude Code transcripts: what is a prompt, what a response cost, subagents, forks, branches,
and odd shapes."""

from __future__ import annotations

import copy
import functools
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import Result
from whyfor import config
from whyfor.agents import decode
from whyfor.agents.base import SourceShape
from whyfor.agents.claude import AGENT
from whyfor.agents.claude.places import subagent_id
from whyfor.model.events import Event
from whyfor.model.findings import Record, Sink
from whyfor.model.reports import Conversation
from whyfor.model.sources import UnparsedRecord
from whyfor.model.titles import TITLE_AGENT, TITLE_PERSON
from whyfor.store.sql.write import EventWriter
from whyfor.store.sqlite.connection import StoreConnection, connect
from whyfor.story.session_lookup import load_conversation

Cli = Callable[..., Result]
Keep = Callable[..., None]

SESSION = "c1a0de00-0000-4000-8000-000000000001"
FORK = "c1a0de00-0000-4000-8000-000000000002"
MODEL = "claude-opus-4-8"
T0 = 1777629600000  # 2026-05-01T10:00:00Z
PIXEL = "iVBORw0KGgoAAAANSUhEUgAA"  # 24 characters of base64 are 18 bytes
FIELDS = ("input", "cache_read", "cache_write", "output", "reasoning")


# -- miniature records ---------------------------------------------------------------------------


def tree(
    kind: str, uuid: str | None, parent: str | None = None, /, second: int = 0, **more: Any
) -> Record:
    """A line of the tree with its envelope."""
    envelope: Record = {
        "parentUuid": parent,
        "isSidechain": False,
        "type": kind,
        "timestamp": f"2026-05-01T10:00:{second:02}.000Z",
        "userType": "external",
        "entrypoint": "cli",
        "cwd": "/w",
        "sessionId": SESSION,
        "version": "2.1.197",
        "gitBranch": "main",
    }
    return {**envelope, **({"uuid": uuid} if uuid else {}), **more}


def user(uuid: str, content: object, parent: str | None = None, /, **more: Any) -> Record:
    return tree("user", uuid, parent, message={"role": "user", "content": content}, **more)


def usage(given: int, read: int, write: int, out: int) -> Record:
    names = (
        "input_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
        "output_tokens",
    )
    return dict(zip(names, (given, read, write, out), strict=True))


def assistant(  # noqa: PLR0913 - a record has as many fields
    uuid: str,
    content: object,
    parent: str | None = None,
    /,
    *,
    ident: str | None = None,
    request: str | None = None,
    cost: Record | None = None,
    model: str = MODEL,
    **more: Any,
) -> Record:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    message = {"id": ident or f"msg_{uuid}", "role": "assistant", "model": model, "content": blocks}
    if cost:
        message["usage"] = cost
    return tree(
        "assistant", uuid, parent, message=message, requestId=request or f"req_{uuid}", **more
    )


def tool_use(ident: str, name: str, /, **given: Any) -> Record:
    return {"type": "tool_use", "id": ident, "name": name, "input": given}


def result(
    uuid: str, ident: str, content: object, parent: str | None = None, /, **more: Any
) -> Record:
    block = {"type": "tool_result", "tool_use_id": ident, "content": content}
    if more.pop("failed", False):
        block["is_error"] = True
    return user(uuid, [block], parent, **more)


def image(kind: str = "image") -> Record:
    return {"type": kind, "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}


def queued(
    uuid: str | None,
    prompt: object,
    parent: str | None = None,
    /,
    mode: str = "prompt",
    **more: Any,
) -> Record:
    about = {"type": "queued_command", "prompt": prompt, "commandMode": mode, **more}
    return tree("attachment", uuid, parent, attachment=about)


def side(record: Record, agent_id: str) -> Record:
    """The same line as a subagent's file has it."""
    return {**record, "isSidechain": True, "agentId": agent_id}


def encoded(records: tuple[Record, ...]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


# -- reading them --------------------------------------------------------------------------------


def read(
    *records: Record,
    shape: SourceShape | None = None,
    state: Record | None = None,
    sink: Sink | None = None,
) -> Sink:
    shape = shape or SourceShape("lines", SESSION)
    sink = sink or Sink(shape.session_id, shape.parent)
    reader = AGENT.reader(shape, {} if state is None else state)
    offset = 0
    for record in copy.deepcopy(records):
        line = json.dumps(record).encode()
        reader.read(record, offset, line, sink)
        offset += len(line) + 1
    return sink


def spoken(sink: Sink, session_id: str = SESSION) -> list[Event]:
    """The events of a session without the one that says where it runs."""
    return [event for event in sink.buckets[session_id].events if event.kind != "session.started"]


def kinds(sink: Sink, session_id: str = SESSION) -> list[str]:
    return [event.kind for event in spoken(sink, session_id)]


def texts(sink: Sink, kind: str, session_id: str = SESSION) -> list[str]:
    return [event.text for event in spoken(sink, session_id) if event.kind == kind]


@pytest.fixture
def keep(home: Path, cli: Cli) -> Keep:
    """Write records to a transcript of the home, by its path below the project's folder, and
    ingest."""

    def run(path: str, *records: Record) -> None:
        file = home / ".claude" / "projects" / "-w" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(encoded(records))
        assert cli("ingest", "--json").code == 0

    return run


def kept(session_id: str = SESSION) -> Conversation:
    return load_conversation(config.load(), session_id)


def abandoned() -> list[str]:
    """Prompts of the turns that are no longer part of the conversation."""
    found = kept()
    return [turn.prompt or "" for turn in found.turns if turn.turn in found.abandoned]


# -- what a person said --------------------------------------------------------------------------


def test_a_prompt_is_a_string_or_text_blocks() -> None:
    blocks = [{"type": "text", "text": "Now"}, {"type": "text", "text": "this"}]
    found = spoken(read(user("u1", "Fix the bug", second=1), user("u2", blocks, "u1", second=2)))

    assert [(e.kind, e.actor, e.text, e.created_at) for e in found] == [
        ("user.prompt", "user", "Fix the bug", T0 + 1000),
        ("user.prompt", "user", "Now\nthis", T0 + 2000),
    ]


@pytest.mark.parametrize("origin", [None, {"kind": "human"}])
def test_a_person_is_the_origin_of_a_prompt_unless_another_is_named(origin: Record | None) -> None:
    more = {"origin": origin} if origin else {}
    assert kinds(read(user("u1", "Fix it", promptSource="typed", **more))) == ["user.prompt"]


@pytest.mark.parametrize("kind", ["channel", "task-notification", "auto-continuation", "peer"])
def test_what_another_origin_said_is_no_prompt(kind: str) -> None:
    sink = read(user("u1", "The build is green", origin={"kind": kind}))
    assert [(e.kind, e.actor, e.text) for e in spoken(sink)] == [
        ("status.changed", "system", "The build is green")
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<local-command-stdout>Set model</local-command-stdout>",
        "<local-command-stderr>No such model</local-command-stderr>",
        "<local-command-caveat>Caveat: do not answer</local-command-caveat>",
        "Caveat: The messages below were generated by the user while running local commands. DO "
        "NOT respond",
        "<task-notification>\n<task-id>a1</task-id>\n</task-notification>",
        "<system-reminder>Mind the rules</system-reminder>",
        "<user-prompt-submit-hook>lint is clean</user-prompt-submit-hook>",
        "  \n<system-reminder>indented</system-reminder>",
        "",
        " \n",
    ],
)
def test_text_a_program_wrote_for_the_model_is_nothing_a_person_said(text: str) -> None:
    assert kinds(read(user("u1", text))) == []
    assert kinds(read(user("u1", [{"type": "text", "text": text}]))) == []


def test_meta_lines_are_nothing_a_person_said() -> None:
    assert kinds(read(user("u1", "Continue from where you left off.", isMeta=True))) == []


def test_a_slash_command_is_told_but_is_no_prompt() -> None:
    echo = "<command-name>/model</command-name>\n<command-message>model</command-message>"
    arguments = "<command-args>opus</command-args>"
    first = (
        "<command-message>review is running</command-message>\n<command-name>/review</command-name>"
    )
    sink = read(
        user("u1", f"{echo}\n{arguments}"),
        user("u2", first),
        system("s1", "local_command", content=echo),
    )

    assert [(e.kind, e.actor, e.text) for e in spoken(sink)] == [
        ("status.changed", "user", "/model opus"),
        ("status.changed", "user", "/review"),
        ("status.changed", "user", "/model"),
    ]


def test_a_shell_line_is_a_call_of_the_persons_and_what_it_printed() -> None:
    printed = "<bash-stdout>one\n</bash-stdout><bash-stderr>two</bash-stderr>"
    sink = read(user("u1", "<bash-input>make</bash-input>"), user("u2", printed))

    assert [(e.kind, e.actor, e.name, e.text) for e in spoken(sink)] == [
        ("tool.call", "user", "Bash", "make"),
        ("tool.result", "user", "Bash", "one\n\ntwo"),
    ]


def test_what_the_editor_adds_beside_a_prompt_is_not_part_of_it() -> None:
    beside = (
        "<ide_opened_file>a.py</ide_opened_file>",
        "<ide_selection>x</ide_selection>",
        "<system-reminder>r",
    )
    blocks = [{"type": "text", "text": text} for text in (*beside, "Explain this")]
    assert texts(read(user("u1", blocks)), "user.prompt") == ["Explain this"]
    assert kinds(read(user("u2", blocks[:2]))) == []


def test_an_interruption_completes_the_turn() -> None:
    for text in ("[Request interrupted by user]", "[Request interrupted by user for tool use]"):
        (event,) = spoken(read(user("u1", [{"type": "text", "text": text}])))
        assert (event.kind, event.actor) == ("turn.completed", "user")
        assert event.data == {"uuid": "u1", "parent": None, "interrupted": True}


def test_an_image_in_a_prompt_is_a_reference_without_its_bytes() -> None:
    blocks = [{"type": "text", "text": "What is this?"}, image(), image("document")]
    (event,) = spoken(read(user("u1", blocks)))

    about = {"media_type": "image/png", "bytes": 18}
    images = [{"block": 1, "type": "image", **about}, {"block": 2, "type": "document", **about}]
    assert event.data == {"uuid": "u1", "parent": None, "images": images}
    assert PIXEL not in repr(event)


def test_an_image_alone_is_a_prompt_too() -> None:
    assert kinds(read(user("u1", [image()]))) == ["user.prompt"]


def test_a_prompt_typed_while_the_agent_worked_stands_in_an_attachment() -> None:
    blocks = [{"type": "text", "text": "and"}, {"type": "text", "text": "that"}, image()]
    sink = read(
        queued("q1", "Also this", "a1"),
        queued("q2", blocks, "q1"),
        queued(None, "Without an id", second=3),
    )

    found = spoken(sink)
    assert [(e.kind, e.actor, e.text) for e in found] == [
        ("user.prompt", "user", "Also this"),
        ("user.prompt", "user", "and\nthat"),
        ("user.prompt", "user", "Without an id"),
    ]
    assert found[0].data == {"uuid": "q1", "parent": "a1", "queued": True}
    assert [i["block"] for i in (found[1].data or {})["images"]] == [2]
    assert len({e.key for e in found}) == 3


def test_a_queued_image_alone_is_a_prompt() -> None:
    assert kinds(read(queued("q1", [image()]))) == ["user.prompt"]


def test_a_queued_notification_is_no_prompt() -> None:
    notice = "<task-notification>done</task-notification>"
    assert kinds(read(queued("q1", notice, mode="task-notification"))) == []
    assert kinds(read(queued("q1", notice))) == []
    assert kinds(read(queued("q1", "Injected", isMeta=True))) == []
    assert kinds(read(queued("q1", "From a peer", origin={"kind": "peer"}))) == ["status.changed"]
    assert kinds(read(queued("q1", "Typed", origin={"kind": "human"}, isMeta=False))) == [
        "user.prompt"
    ]


def test_the_same_queued_prompt_without_an_id_is_one_event_when_it_is_read_again() -> None:
    first, again = (spoken(read(queued(None, "Also this"))) for _ in range(2))
    assert [e.key for e in first] == [e.key for e in again]


def test_attachments_that_carry_context_say_nothing() -> None:
    for kind in (
        "skill_listing",
        "file",
        "hook_success",
        "hook_additional_context",
        "todo_reminder",
        "nested_memory",
    ):
        assert (
            kinds(read(tree("attachment", "x1", attachment={"type": kind, "content": "context"})))
            == []
        )


def test_a_prompt_in_a_subagents_file_is_the_agents_own() -> None:
    shape = SourceShape("lines", subagent_id("a1", SESSION), SESSION)
    (event,) = spoken(read(side(user("u1", "Look around"), "a1"), shape=shape), shape.session_id)
    assert (event.kind, event.actor) == ("user.prompt", "assistant")


# -- what the agent said, and what it cost -------------------------------------------------------


def test_one_response_over_many_lines_is_counted_once(keep: Keep, cli: Cli) -> None:
    same: Record = {"ident": "msg_1", "request": "req_1"}
    blocks: list[Record] = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "On it."},
        tool_use("toolu_1", "Bash", command="ls"),
    ]
    partial = usage(11, 1000, 100, 5)  # flushed before the stream ended
    whole = usage(11, 1000, 100, 631)
    costs = (partial, whole, whole)
    lines = [assistant(f"a{n}", [blocks[n]], cost=costs[n], **same) for n in range(3)]
    keep(f"{SESSION}.jsonl", user("u1", "Go"), *lines)

    (session,) = cli("sessions", "--json").json
    assert session["tokens"] == dict(zip(FIELDS, (11, 1000, 100, 631, None), strict=True))
    assert (session["models"], session["messages"], session["tool_calls"]) == ([MODEL], 2, 1)


def test_usage_is_the_maximum_per_field_whatever_the_order(keep: Keep, cli: Cli) -> None:
    same: Record = {"ident": "msg_1", "request": "req_1"}
    first = assistant("a1", "one", cost=usage(20, 5, 0, 90), **same)
    second = assistant("a2", "two", cost={"input_tokens": 7, "cache_read_input_tokens": 6}, **same)
    keep(f"{SESSION}.jsonl", first, second)

    (session,) = cli("sessions", "--json").json
    assert session["tokens"] == dict(zip(FIELDS, (20, 6, 0, 90, None), strict=True))


def test_the_same_message_id_in_another_request_is_another_response() -> None:
    sink = read(
        assistant("a1", "one", ident="msg_1", request="req_1", cost=usage(1, 0, 0, 2)),
        assistant("a2", "two", ident="msg_1", request="req_2", cost=usage(1, 0, 0, 2)),
    )
    assert len({item.key for item in sink.main.usage}) == 2


def test_usage_without_an_id_belongs_to_its_line() -> None:
    lines = [assistant(uuid, "x", cost=usage(1, 2, 3, 4)) for uuid in ("a1", "a2")]
    for record in lines:
        del record["message"]["id"], record["requestId"]
    assert len({item.key for item in read(*lines).main.usage}) == 2


def test_what_a_line_does_not_say_about_tokens_stays_unknown() -> None:
    (item,) = read(
        assistant("a1", "x", cost={"input_tokens": 3, "output_tokens": "many"})
    ).main.usage
    assert (item.input, item.cache_read, item.cache_write, item.output) == (3, None, None, None)


def test_thinking_is_kept_and_redacted_thinking_is_said_to_be() -> None:
    blocks = [
        {"type": "thinking", "thinking": "Let me see", "signature": "s"},
        {"type": "thinking", "thinking": "", "signature": "s"},
        {"type": "redacted_thinking", "data": "opaque"},
    ]
    found = spoken(read(assistant("a1", blocks)))
    assert [(e.kind, e.text, (e.data or {}).get("redacted")) for e in found] == [
        ("assistant.thinking", "Let me see", None),
        ("assistant.thinking", "", True),
        ("assistant.thinking", "", True),
    ]


def test_a_tool_call_has_its_name_its_input_and_its_words() -> None:
    call = tool_use("toolu_1", "Bash", command="grep -n 'a' b.py", description="look", timeout=5)
    (event,) = spoken(read(assistant("a1", [call], "u1")))

    assert (event.kind, event.actor, event.name) == ("tool.call", "assistant", "Bash")
    assert event.text == "grep -n 'a' b.py\nlook\n5"
    assert event.data == {
        "uuid": "a1",
        "parent": "u1",
        "model": MODEL,
        "id": "toolu_1",
        "input": {"command": "grep -n 'a' b.py", "description": "look", "timeout": 5},
    }


def test_a_tool_on_the_vendors_side_has_call_and_result_in_one_message() -> None:
    answer = {
        "type": "web_search_tool_result",
        "tool_use_id": "srv_1",
        "content": [{"type": "text", "text": "found"}],
    }
    call = {
        "type": "server_tool_use",
        "id": "srv_1",
        "name": "web_search",
        "input": {"query": "weather"},
    }
    found = spoken(read(assistant("a1", [call, answer])))
    assert [(e.kind, e.text) for e in found] == [("tool.call", "weather"), ("tool.result", "found")]


def test_a_subagent_call_says_that_one_started_and_its_result_that_it_stopped() -> None:
    given = {"description": "look", "prompt": "Look around", "subagent_type": "Explore"}
    for name in ("Task", "Agent"):
        outcome = {"status": "completed", "agentId": "ab12", "totalTokens": 9}
        sink = read(
            assistant("a1", [tool_use("toolu_1", name, **given)]),
            result("r1", "toolu_1", "seen", "a1", toolUseResult=outcome),
        )
        found = spoken(sink)
        assert [(e.kind, e.name, e.text) for e in found] == [
            ("tool.call", name, "look\nLook around\nExplore"),
            ("subagent.started", "Explore", "look"),
            ("subagent.stopped", None, ""),
            ("tool.result", None, "seen"),
        ]
        assert (found[3].data or {})["subagent"] == "ab12"
        assert sink.main.usage == [], "a subagent's tokens are in its own file"


def test_a_question_and_its_answer_are_kept() -> None:
    questions = [{"question": "Which colour?", "options": [{"label": "red"}]}]
    sink = read(
        assistant("a1", [tool_use("toolu_1", "AskUserQuestion", questions=questions)]),
        result("r1", "toolu_1", "red", "a1", toolUseResult={"answers": {"Which colour?": "red"}}),
    )
    asked, answered = spoken(sink)[1:]
    assert (asked.kind, asked.text) == ("question.asked", "Which colour?")
    assert (answered.data or {})["answers"] == {"Which colour?": "red"}


# -- what came back ------------------------------------------------------------------------------


def test_a_result_is_a_string_or_blocks_and_may_have_failed() -> None:
    parts = [{"type": "text", "text": "one"}, image(), {"type": "text", "text": "two"}]
    found = spoken(
        read(
            result("r1", "toolu_1", "plain"),
            result("r2", "toolu_2", parts),
            result("r3", "toolu_3", "Exit code 1", failed=True, toolUseResult="Error: Exit code 1"),
            result("r4", "toolu_4", None),
        )
    )
    assert [(e.kind, e.actor, e.text) for e in found] == [
        ("tool.result", "tool", text) for text in ("plain", "one\ntwo", "Exit code 1", "")
    ]
    about = [e.data or {} for e in found]
    assert [d.get("failed") for d in about] == [None, None, True, None]
    assert about[1]["images"] == [
        {"block": 1, "type": "image", "media_type": "image/png", "bytes": 18}
    ]
    assert PIXEL not in repr(found)


def test_text_beside_a_result_is_no_prompt() -> None:
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    assert kinds(read(user("u1", [block, {"type": "text", "text": "words"}]))) == ["tool.result"]


def test_the_exact_patch_of_an_edit_is_kept() -> None:
    patch = [
        {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-two", "+TWO"]}
    ]
    outcome = {
        "filePath": "/w/a.py",
        "structuredPatch": patch,
        "userModified": True,
        "originalFile": "two",
    }
    (event,) = spoken(read(result("r1", "toolu_1", "updated", toolUseResult=outcome)))
    assert event.data == {
        "uuid": "r1",
        "parent": None,
        "id": "toolu_1",
        "patch": patch,
        "user_modified": True,
    }


def test_a_file_is_modified_when_its_edit_worked_and_only_then(keep: Keep, cli: Cli) -> None:
    calls = [
        tool_use("t1", "Edit", file_path="/w/edited.py", old_string="a", new_string="b"),
        tool_use("t2", "Write", file_path="/w/written.py", content="x"),
        tool_use("t3", "MultiEdit", file_path="/w/many.py", edits=[]),
        tool_use("t4", "NotebookEdit", notebook_path="/w/book.ipynb", new_source="x"),
        tool_use("t5", "Edit", file_path="/w/failed.py", old_string="a", new_string="b"),
        tool_use("t6", "Edit", file_path="/w/unanswered.py", old_string="a", new_string="b"),
        tool_use("t7", "Read", file_path="/w/looked-at.py"),
        tool_use("t8", "Grep", file_path="/w/searched.py"),
    ]
    answers = [result(f"r{n}", f"t{n}", "done", failed=n == 5) for n in (1, 2, 3, 4, 5, 7, 8)]
    keep(f"{SESSION}.jsonl", assistant("a1", calls), *answers)

    (session,) = cli("sessions", "--json").json
    assert session["files_modified"] == [
        "/w/edited.py",
        "/w/written.py",
        "/w/many.py",
        "/w/book.ipynb",
    ]
    sink = read(assistant("a1", calls), *answers)
    assert [t.path for t in sink.main.touches if t.action == "read"] == ["/w/looked-at.py"]


def test_a_call_and_its_result_meet_across_two_readings() -> None:
    state: Record = {}
    read(assistant("a1", [tool_use("t1", "Write", file_path="/w/a.py", content="x")]), state=state)
    later = read(result("r1", "t1", "done", "a1"), state=json.loads(json.dumps(state)))
    assert [(t.path, t.action) for t in later.main.touches] == [("/w/a.py", "write")]


def test_a_refused_call_is_an_approval_denied() -> None:
    refused = "User rejected tool use"
    found = spoken(
        read(result("r1", "t1", "The user doesn't want this", failed=True, toolUseResult=refused))
    )
    assert [(e.kind, e.actor) for e in found] == [
        ("approval.resolved", "user"),
        ("tool.result", "tool"),
    ]
    assert found[0].data == {"id": "t1", "decision": "denied"}


def test_a_commit_a_tool_made_is_kept_with_its_result() -> None:
    commit = {"commit": {"sha": "126e95e", "kind": "committed"}}
    (event,) = spoken(
        read(result("r1", "t1", "ok", toolUseResult={"stdout": "ok", "gitOperation": commit}))
    )
    assert (event.data or {})["git"] == commit


def test_a_result_too_large_for_the_transcript_is_read_from_its_own_file(
    keep: Keep, home: Path, cli: Cli
) -> None:
    preview = "<persisted-output>Output too large (2 MB)"
    folder = home / ".claude" / "projects" / "-w" / SESSION / "tool-results"
    folder.mkdir(parents=True)
    (folder / "toolu_1.txt").write_text("the very last aardvark")
    keep(
        f"{SESSION}.jsonl",
        user("u1", "Print it"),
        assistant("a1", [tool_use("toolu_1", "Bash", command="cat big")], "u1"),
        result("r1", "toolu_1", preview, "a1"),
        user("u2", "And now?", "r1"),
    )

    found = [e for e in kept().events if e.kind == "tool.result"]
    assert [(e.turn, e.text, (e.data or {})["external"]) for e in found] == [
        (1, preview, True),
        (1, "the very last aardvark", True),
    ]
    assert [hit["turn"] for hit in cli("search", "aardvark", "--json").json] == [1]


# -- system lines, errors, what is silent and what is unknown ------------------------------------


def system(uuid: str, subtype: str, parent: str | None = None, /, **more: Any) -> Record:
    return tree("system", uuid, parent, subtype=subtype, **more)


def test_a_compaction_has_a_boundary_and_a_summary() -> None:
    about = {
        "trigger": "auto",
        "preTokens": 1199,
        "postTokens": 638,
        "durationMs": 986,
        "preservedMessages": {},
    }
    boundary = system(
        "b1", "compact_boundary", logicalParentUuid="a1", compactMetadata=about, content="compacted"
    )
    summary = (
        "This session is being continued from a previous conversation that ran out of context."
    )
    sink = read(
        boundary, user("u1", summary, "b1", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    )

    first, second = spoken(sink)
    assert [(e.kind, e.actor, e.text) for e in (first, second)] == [
        ("compaction", "system", ""),
        ("compaction", "system", summary),
    ]
    numbers = {"trigger": "auto", "preTokens": 1199, "postTokens": 638, "durationMs": 986}
    assert first.data == {"uuid": "b1", "parent": "a1", **numbers}
    assert second.data == {"uuid": "u1", "parent": "b1", "summary": True}


def test_errors_of_the_api_are_errors_and_cost_nothing(keep: Keep, cli: Cli) -> None:
    overloaded = {"status": 529, "error": {"type": "overloaded_error", "message": "Overloaded"}}
    failed: Record = {"model": "<synthetic>", "isApiErrorMessage": True, "cost": usage(0, 0, 0, 0)}
    keep(
        f"{SESSION}.jsonl",
        user("u1", "Go"),
        system(
            "s1", "api_error", "u1", error=overloaded, retryAttempt=1, retryInMs=500, maxRetries=10
        ),
        assistant("a1", "API Error: 529 Overloaded", "s1", **failed),
    )

    found = [(e.kind, e.actor, e.text) for e in kept().events if e.kind == "error"]
    assert found == [
        ("error", "system", "529\noverloaded_error\nOverloaded"),
        ("error", "assistant", "API Error: 529 Overloaded"),
    ]
    (session,) = cli("sessions", "--json").json
    assert session["tokens"] == dict.fromkeys(FIELDS)
    assert session["models"] == []


def test_synthetic_messages_are_in_no_statistics() -> None:
    made_up: Record = {"model": "<synthetic>", "cost": usage(0, 0, 0, 0)}
    sink = read(
        assistant("a1", "No response requested.", **made_up),
        assistant("a2", "Limit reached", **made_up),
    )
    assert [(e.kind, e.text) for e in spoken(sink)] == [("assistant.message", "Limit reached")]
    assert sink.main.usage == []
    assert "model" not in (spoken(sink)[0].data or {})


def test_the_end_of_a_turn_and_a_recap_are_told() -> None:
    sink = read(
        system("s1", "turn_duration", durationMs=3100),
        system("s2", "away_summary", content="While away: x"),
    )
    assert [(e.kind, e.text) for e in spoken(sink)] == [
        ("turn.completed", ""),
        ("status.changed", "While away: x"),
    ]


METADATA = """
    tag agent-name agent-color agent-setting mode permission-mode isolation-latch relocated worktree-state pr-link
    frame-link bridge-session speculation-accept ended-by-model queue-operation file-history-snapshot
    attribution-snapshot content-replacement fork-context-ref marble-origami-commit marble-origami-snapshot
    marble-origami-reset last-prompt
""".split()


@pytest.mark.parametrize("kind", METADATA)
def test_metadata_lines_are_known_and_silent(kind: str) -> None:
    sink = read(
        {
            "type": kind,
            "sessionId": SESSION,
            "content": "A prompt that was queued",
            "lastPrompt": "hello",
        }
    )
    assert (sink.main.events, sink.unknown) == ([], {})


@pytest.mark.parametrize(
    "subtype",
    [
        "informational",
        "stop_hook_summary",
        "memory_saved",
        "model_fallback",
        "something_of_tomorrow",
    ],
)
def test_other_system_lines_say_nothing(subtype: str) -> None:
    sink = read(system("s1", subtype, content="words"))
    assert (spoken(sink), sink.unknown) == ([], {})


def test_unknown_types_are_counted_and_reported(keep: Keep, cli: Cli) -> None:
    strange = (
        tree("hologram", "h1"),
        tree("hologram", "h2"),
        {"type": "teleport", "sessionId": SESSION},
    )
    keep(f"{SESSION}.jsonl", user("u1", "Hello"), *strange)

    assert cli("ingest", "--json").json["unknown_types"] == 3
    (health,) = [
        agent for agent in cli("doctor", "--json").json["agents"] if agent["agent"] == "claude"
    ]
    assert health["unknown_types"] == {"hologram": 2, "teleport": 1}


# -- where it ran --------------------------------------------------------------------------------


def test_folder_and_branch_are_told_at_the_start_and_when_they_change() -> None:
    sink = read(
        user("u1", "One"),
        user("u2", "Two", "u1"),
        user("u3", "Three", "u2", cwd="/w/sub"),
        user("u4", "Four", "u3", cwd="/w/sub", gitBranch="feature"),
    )
    told = [(e.kind, e.data) for e in sink.main.events if e.kind != "user.prompt"]
    about = {"version": "2.1.197", "entrypoint": "cli"}
    assert told == [
        ("session.started", {"cwd": "/w", "branch": "main", **about}),
        ("status.changed", {"cwd": "/w/sub", "branch": "main", **about}),
        ("status.changed", {"cwd": "/w/sub", "branch": "feature", **about}),
    ]
    assert (sink.main.facts["cwd"], sink.main.facts["branch"]) == ("/w", "feature")


def test_a_head_without_a_branch_is_an_unknown_branch() -> None:
    sink = read(user("u1", "One", gitBranch="HEAD"))
    assert "branch" not in sink.main.facts
    assert sink.main.events[0].data == {"cwd": "/w", "version": "2.1.197", "entrypoint": "cli"}


def test_a_grown_file_does_not_start_the_session_again() -> None:
    state: Record = {}
    read(user("u1", "One"), state=state)
    later = read(user("u2", "Two", "u1"), state=json.loads(json.dumps(state)))
    assert [e.kind for e in later.main.events] == ["user.prompt"]


# -- titles --------------------------------------------------------------------------------------


def test_a_title_a_person_gave_beats_the_agents_and_of_each_the_last_wins() -> None:
    made = [
        {"type": "ai-title", "aiTitle": title, "sessionId": SESSION}
        for title in ("Bug hunt", "Bug found")
    ]
    given = [
        {"type": "custom-title", "customTitle": t, "sessionId": SESSION}
        for t in ("Mine", "Mine, renamed")
    ]
    facts = read(*made).main.facts
    assert (facts["title"], facts["title_rank"]) == ("Bug found", TITLE_AGENT)
    facts = read(*given, *made).main.facts
    assert (facts["title"], facts["title_rank"]) == ("Mine, renamed", TITLE_PERSON)


def test_titles_in_their_order(keep: Keep, cli: Cli) -> None:
    def title() -> object:
        return {s["session_id"]: s["title"] for s in cli("sessions", "--json").json}[SESSION]

    lines = [user("u1", "\nFix the  bug\nplease"), assistant("a1", "Fixed.", "u1")]
    keep(f"{SESSION}.jsonl", *lines)
    assert title() == "Fix the bug"
    failed = "Invalid API key \u00b7 Please run /login"
    keep(f"{FORK}.jsonl", {"type": "summary", "summary": failed, "leafUuid": "a1"})
    assert title() == "Fix the bug"
    other = {"type": "summary", "summary": "Bug fixing day", "leafUuid": "a1"}
    keep(f"{FORK}.jsonl", other, {**user("u9", "Another day"), "sessionId": FORK})
    assert title() == "Bug fixing day"
    lines.append({"type": "ai-title", "aiTitle": "Bug fixed", "sessionId": SESSION})
    keep(f"{SESSION}.jsonl", *lines)
    assert title() == "Bug fixed"
    lines.append({"type": "custom-title", "customTitle": "My bug", "sessionId": SESSION})
    lines.append({"type": "ai-title", "aiTitle": "Bug fixed again", "sessionId": SESSION})
    keep(f"{SESSION}.jsonl", *lines)
    assert title() == "My bug"
    assert [hit["session_id"] for hit in cli("search", '"My bug"', "--json").json] == [SESSION]


@pytest.mark.parametrize("leaf", ["u1", "a1", "s1"])
def test_a_legacy_title_names_a_prompt_an_answer_or_a_system_line(
    leaf: str, keep: Keep, cli: Cli
) -> None:
    keep(
        f"{SESSION}.jsonl",
        user("u1", "Fix it"),
        assistant("a1", "Fixed.", "u1"),
        system("s1", "turn_duration", "a1", durationMs=5),
    )
    keep(f"{FORK}.jsonl", {"type": "summary", "summary": "Bug fixing day", "leafUuid": leaf})
    titles = {s["session_id"]: s["title"] for s in cli("sessions", "--json").json}
    assert titles[SESSION] == "Bug fixing day"


def test_a_legacy_title_waits_for_the_session_it_names(keep: Keep, cli: Cli) -> None:
    keep(f"{FORK}.jsonl", {"type": "summary", "summary": "Bug fixing day", "leafUuid": "a1"})
    keep(f"{SESSION}.jsonl", user("u1", "Fix it"), assistant("a1", "Fixed.", "u1"))
    titles = {s["session_id"]: s["title"] for s in cli("sessions", "--json").json}
    assert titles[SESSION] == "Bug fixing day"


def test_of_several_legacy_titles_the_one_of_the_latest_message_counts(
    keep: Keep, cli: Cli
) -> None:
    early, late = ("Zeroth steps", "a1"), ("A last word", "a2")
    keep(
        f"{SESSION}.jsonl",
        user("u1", "Fix it"),
        assistant("a1", "Started.", "u1"),
        assistant("a2", "Fixed.", "a1"),
    )
    keep(
        f"{FORK}.jsonl",
        *({"type": "summary", "summary": text, "leafUuid": leaf} for text, leaf in (late, early)),
    )
    titles = {s["session_id"]: s["title"] for s in cli("sessions", "--json").json}
    assert titles[SESSION] == "A last word"


# -- subagents -----------------------------------------------------------------------------------

NESTED = f"{SESSION}/subagents/agent-ab12.jsonl"
DEEP = f"{SESSION}/subagents/workflows/w1/agent-ab12.jsonl"
CHILD = subagent_id("ab12", SESSION)


def subagent_lines() -> tuple[Record, ...]:
    return (
        side(user("x1", "Look around", second=1), "ab12"),
        side(
            assistant(
                "x2", [tool_use("t9", "Read", file_path="/w/a.py")], "x1", cost=usage(1, 2, 3, 4)
            ),
            "ab12",
        ),
        side(result("x3", "t9", "text of a.py", "x2"), "ab12"),
        side(assistant("x4", "Seen.", "x3", second=2, cost=usage(10, 20, 30, 40)), "ab12"),
    )


def main_lines() -> tuple[Record, ...]:
    call = tool_use(
        "toolu_1", "Agent", description="look", prompt="Look around", subagent_type="Explore"
    )
    return (
        user("u1", "Have a look"),
        assistant("a1", [call], "u1", cost=usage(100, 0, 0, 5)),
        result(
            "r1",
            "toolu_1",
            "Seen.",
            "a1",
            second=3,
            toolUseResult={"agentId": "ab12", "usage": usage(9, 9, 9, 9)},
        ),
    )


@pytest.mark.parametrize("path", ["agent-ab12.jsonl", NESTED, DEEP])
def test_a_subagents_file_is_known_by_its_content_wherever_it_lies(path: str) -> None:
    shape = AGENT.sniff(Path("/p/-w") / path, encoded(subagent_lines()))
    assert shape == SourceShape("lines", CHILD, SESSION)


def test_what_a_main_file_is_does_not_depend_on_its_name() -> None:
    titled = {"type": "summary", "summary": "Old", "leafUuid": "a0"}
    shape = AGENT.sniff(Path("/p/-w/renamed.orphaned-1.jsonl"), encoded((titled, *main_lines())))
    assert shape == SourceShape("lines", SESSION)
    assert AGENT.sniff(Path("/p/-w/only-titles.jsonl"), encoded((titled,))) == SourceShape(
        "lines", "only-titles"
    )
    assert AGENT.sniff(Path("/p/-w/notes.jsonl"), b'{"note": 1}\n') is None


def test_what_hangs_on_a_session_is_known_by_its_folder() -> None:
    meta = Path("/p/-w") / DEEP.replace(".jsonl", ".meta.json")
    assert AGENT.sniff(meta, b"{}") == SourceShape("document", CHILD, SESSION, sidecar="meta")
    large = Path(f"/p/-w/{SESSION}/tool-results/toolu_1.txt")
    assert AGENT.sniff(large, b"text") == SourceShape("blob", SESSION, sidecar="result")


@pytest.mark.parametrize("path", ["agent-ab12.jsonl", NESTED, DEEP])
def test_a_subagent_in_a_file_of_its_own_is_a_session_below_its_parent(
    path: str, keep: Keep, cli: Cli
) -> None:
    keep(path, *subagent_lines())
    keep(f"{SESSION}.jsonl", *main_lines())

    main, child = cli("sessions", "--all", "--json").json
    assert [s["session_id"] for s in (main, child)] == [SESSION, CHILD]
    assert child["parent_session_id"] == SESSION
    assert (main["prompts"], child["prompts"]) == (1, 0)
    assert child["title"] == "Look around"
    assert main["tokens"] == dict(zip(FIELDS, (100, 0, 0, 5, None), strict=True))
    assert child["tokens"] == dict(zip(FIELDS, (11, 22, 33, 44, None), strict=True))
    assert cli("stats", "--json").json["tokens"] == dict(
        zip(FIELDS, (111, 22, 33, 49, None), strict=True)
    )
    assert [s["session_id"] for s in cli("sessions", "--json").json] == [SESSION]


def test_what_the_parent_called_a_subagent_stands_beside_it(
    keep: Keep, home: Path, cli: Cli
) -> None:
    about = {
        "agentType": "Explore",
        "description": "have a look",
        "toolUseId": "toolu_1",
        "spawnDepth": 1,
    }
    meta = home / ".claude" / "projects" / "-w" / NESTED.replace(".jsonl", ".meta.json")
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps(about))
    keep(NESTED, *subagent_lines())

    (child,) = cli("sessions", "--all", "--limit", 0, "--json").json
    assert (child["subagent"], child["title"], child["parent_session_id"]) == (
        "Explore",
        "have a look",
        SESSION,
    )


def inline(record: Record) -> Record:
    return {**record, "isSidechain": True}


def test_subagents_in_the_main_file_are_one_session_per_chain_of_parents() -> None:
    first = subagent_id("s1000000", SESSION)
    second = subagent_id("s2000000", SESSION)
    caveat = inline(user("s1000002", "<system-reminder>rules</system-reminder>", "s1000001"))
    sink = read(
        user("u1", "Go"),
        inline(user("s1000000", "First task")),
        inline(user("s2000000", "Second task")),
        inline(assistant("s1000001", "Working on the first", "s1000000", cost=usage(1, 1, 1, 1))),
        inline(assistant("s2000001", [tool_use("t2", "Read", file_path="/w/b.py")], "s2000000")),
        caveat,  # says nothing, but lies in the chain
        inline(result("s2000002", "t2", "text", "s2000001")),
        inline(assistant("s1000003", "First done", "s1000002")),
        assistant("a1", "Both are at work", "u1"),
    )

    assert set(sink.buckets) == {SESSION, first, second}
    assert kinds(sink) == ["user.prompt", "assistant.message"]
    assert texts(sink, "user.prompt", first) == ["First task"]
    assert texts(sink, "assistant.message", first) == ["Working on the first", "First done"]
    assert kinds(sink, second) == ["user.prompt", "tool.call", "tool.result"]
    assert [e.actor for e in spoken(sink, first) if e.kind == "user.prompt"] == ["assistant"]
    assert (len(sink.buckets[first].usage), len(sink.main.usage)) == (1, 0)
    assert sink.buckets[first].parent == SESSION
    parents = [(e.data or {}).get("parent") for e in spoken(sink, first)]
    assert parents == [None, "s1000000", "s1000001"], "the silent line is passed over"


def test_a_chain_in_the_main_file_goes_on_when_the_file_grows() -> None:
    state: Record = {}
    read(user("u1", "Go"), inline(user("s1000000", "First task")), state=state)
    later = read(
        inline(assistant("s1000001", "Done", "s1000000")), state=json.loads(json.dumps(state))
    )
    assert texts(later, "assistant.message", subagent_id("s1000000", SESSION)) == ["Done"]


def progress(uuid: str, parent: str, inner: Record) -> Record:
    told = {name: inner[name] for name in ("type", "message", "uuid", "timestamp")}
    if "requestId" in inner:
        told["requestId"] = inner["requestId"]
    return tree(
        "progress",
        uuid,
        parent,
        data={"type": "agent_progress", "agentId": "ab12", "message": told},
    )


def test_what_progress_tells_of_a_subagent_is_what_its_own_file_tells() -> None:
    shape = SourceShape("lines", CHILD, SESSION)
    own = read(*subagent_lines(), shape=shape)
    told = read(*(progress(f"p{i}", "a1", inner) for i, inner in enumerate(subagent_lines())))

    assert told.main.events == []
    assert [(e.key, e.kind, e.text) for e in spoken(told, CHILD)] == [
        (e.key, e.kind, e.text) for e in spoken(own, CHILD)
    ]
    assert [u.key for u in told.buckets[CHILD].usage] == [u.key for u in own.main.usage]


@pytest.mark.parametrize("own_file_first", [False, True])
def test_progress_and_the_subagents_file_are_one_session(
    own_file_first: bool, keep: Keep, cli: Cli
) -> None:
    lines = (
        *main_lines(),
        *(progress(f"p{i}", "a1", inner) for i, inner in enumerate(subagent_lines())),
    )
    files = [(f"{SESSION}.jsonl", lines), (NESTED, subagent_lines())]
    for path, records in reversed(files) if own_file_first else files:
        keep(path, *records)

    _, child = cli("sessions", "--all", "--json").json
    assert (child["session_id"], child["messages"], child["tool_calls"]) == (CHILD, 2, 1)
    assert child["tokens"] == dict(zip(FIELDS, (11, 22, 33, 44, None), strict=True))


def test_other_progress_says_nothing() -> None:
    odd = (
        {"type": "hook_progress", "hookName": "x"},
        {"type": "agent_progress", "agentId": 5, "message": {}},
        "text",
    )
    sink = read(*(tree("progress", f"p{i}", data=data) for i, data in enumerate(odd)))
    assert (list(sink.buckets), sink.main.events, sink.unknown) == ([SESSION], [], {})


# -- forks ---------------------------------------------------------------------------------------


def copied(records: tuple[Record, ...], **more: Any) -> tuple[Record, ...]:
    return tuple({**record, "sessionId": FORK, **more} for record in records)


def original_lines() -> tuple[Record, ...]:
    return user("u1", "Go"), assistant("a1", "Gone.", "u1", second=1, cost=usage(100, 10, 1, 5))


def fork_lines(**more: Any) -> tuple[Record, ...]:
    new = (
        user("u2", "Go on", "a1", second=8),
        assistant("a2", "Gone on.", "u2", second=9, cost=usage(200, 20, 2, 6)),
    )
    return (*copied(original_lines(), **more), *copied(new))


def totals(cli: Cli) -> tuple[dict[str, int], list[dict[str, int]]]:
    """Tokens of everything, and of each session by its id."""
    sessions = sorted(cli("sessions", "--all", "--json").json, key=lambda s: str(s["session_id"]))
    return cli("stats", "--json").json["tokens"], [s["tokens"] for s in sessions]


ONCE = dict(zip(FIELDS, (300, 30, 3, 11, None), strict=True))
SHARES = [
    dict(zip(FIELDS, share, strict=True))
    for share in ((100, 10, 1, 5, None), (200, 20, 2, 6, None))
]


@pytest.mark.parametrize("fork_first", [False, True])
@pytest.mark.parametrize("at_once", [False, True])
def test_a_fork_copies_lines_and_their_tokens_are_counted_once(
    fork_first: bool, at_once: bool, keep: Keep, home: Path, cli: Cli
) -> None:
    files = [(f"{SESSION}.jsonl", original_lines()), (f"{FORK}.jsonl", fork_lines())]
    (first, lines), second = reversed(files) if fork_first else files
    if at_once:
        path = home / ".claude" / "projects" / "-w" / first
        path.parent.mkdir(parents=True)
        path.write_bytes(encoded(lines))
    else:
        keep(first, *lines)
    keep(second[0], *second[1])

    assert totals(cli) == (ONCE, SHARES)
    fork, original = kept(FORK).session, kept(SESSION).session
    assert (fork.copy_of, fork.copy_kind) == (f"claude:{SESSION}", "resumed")
    assert (fork.prompts, original.prompts, original.copy_of) == (1, 1, None)


@pytest.mark.parametrize("fork_first", [False, True])
def test_a_branch_that_ended_first_still_leaves_the_tokens_to_its_origin(
    fork_first: bool, keep: Keep, cli: Cli
) -> None:
    origin = {"sessionId": SESSION, "messageUuid": "a1"}
    longer = (
        *original_lines(),
        user("u3", "Later", "a1", second=30),
        assistant("a3", "Done.", "u3", second=31),
    )
    files = [(f"{SESSION}.jsonl", longer), (f"{FORK}.jsonl", fork_lines(forkedFrom=origin))]
    for path, lines in reversed(files) if fork_first else files:
        keep(path, *lines)

    assert totals(cli) == (ONCE, SHARES)
    fork = kept(FORK).session
    assert (fork.copy_of, fork.copy_kind, fork.prompts) == (f"claude:{SESSION}", "forked", 1)


def test_a_fork_with_new_uuids_copies_the_same_responses(keep: Keep, cli: Cli) -> None:
    origin = {"sessionId": SESSION, "messageUuid": "a1"}
    keep(f"{SESSION}.jsonl", *original_lines())
    keep(
        f"{FORK}.jsonl", *({**r, "uuid": f"new-{r['uuid']}"} for r in fork_lines(forkedFrom=origin))
    )
    assert totals(cli) == (ONCE, SHARES)


def test_who_counts_a_shared_response_does_not_depend_on_when_it_was_read(
    keep: Keep, cli: Cli
) -> None:
    late = user("u3", "Later", "a1", second=30)  # a prompt that is not answered yet
    keep(f"{SESSION}.jsonl", *original_lines())
    keep(f"{FORK}.jsonl", *fork_lines())
    keep(f"{SESSION}.jsonl", *original_lines(), late)
    grown = totals(cli)
    assert cli("rebuild", "--json").code == 0
    rebuilt = totals(cli)
    assert grown[0] == rebuilt[0] == ONCE
    assert grown[1] == rebuilt[1]


# -- branches ------------------------------------------------------------------------------------


def test_a_prompt_that_was_rewound_is_abandoned(keep: Keep) -> None:
    keep(
        f"{SESSION}.jsonl",
        user("u1", "First"),
        assistant("a1", "Yes.", "u1"),
        user("u2", "A mistake", "a1"),
        assistant("a2", "As you like.", "u2"),
        user("u3", "On a wrong way", "a2"),
        assistant("a3", "Further down.", "u3"),
        user("u4", "Better", "a1"),
        assistant("a4", "Much.", "u4"),
    )
    assert abandoned() == ["A mistake", "On a wrong way"]


def test_a_rewind_to_the_very_start_abandons_the_first_prompt(keep: Keep) -> None:
    keep(
        f"{SESSION}.jsonl",
        user("u1", "A mistake"),
        assistant("a1", "Yes.", "u1"),
        user("u2", "Better"),
    )
    assert abandoned() == ["A mistake"]


def silent(uuid: str, parent: str | None) -> Iterator[Record]:
    """Lines of the tree that say nothing, each the parent of the next."""
    yield tree(
        "attachment", f"{uuid}-1", parent, attachment={"type": "skill_listing", "content": "x"}
    )
    yield tree("progress", f"{uuid}-2", f"{uuid}-1", data={"type": "hook_progress"})
    yield system(f"{uuid}-3", "stop_hook_summary", f"{uuid}-2", hookCount=1)
    yield user(f"{uuid}-4", "Mind the rules", f"{uuid}-3", isMeta=True)
    yield tree("something-of-tomorrow", f"{uuid}-5", f"{uuid}-4")


def test_lines_that_say_nothing_do_not_break_the_chain_of_parents(keep: Keep) -> None:
    keep(
        f"{SESSION}.jsonl",
        *silent("s1", None),
        user("u1", "First", "s1-5"),
        *silent("s2", "u1"),
        assistant("a1", "Yes.", "s2-5"),
        *silent("s3", "a1"),
        user("u2", "A mistake", "s3-5"),
        *silent("s4", "u2"),
        assistant("a2", "As you like.", "s4-5"),
        *silent("s5", "s3-5"),
        user("u3", "Better", "s5-5"),
        *silent("s6", "u3"),
        assistant("a3", "Much.", "s6-5"),
    )
    assert abandoned() == ["A mistake"]


def test_the_chain_of_parents_holds_when_the_file_is_read_line_by_line(keep: Keep) -> None:
    lines = (
        user("u1", "First"),
        *silent("s1", "u1"),
        assistant("a1", "Yes.", "s1-5"),
        user("u2", "A mistake", "a1"),
        *silent("s2", "a1"),
        user("u3", "Better", "s2-5"),
    )
    for end in range(1, len(lines) + 1):
        keep(f"{SESSION}.jsonl", *lines[:end])
    assert abandoned() == ["A mistake"]


def test_parallel_tool_results_are_no_branches(keep: Keep) -> None:
    same: Record = {"ident": "msg_1", "request": "req_1"}
    calls = [tool_use(f"t{n}", "Bash", command=f"echo {n}") for n in (1, 2, 3)]
    keep(
        f"{SESSION}.jsonl",
        user("u1", "Three at once"),
        assistant("a1", calls[:1], "u1", **same),
        assistant("a2", calls[1:2], "a1", **same),
        assistant("a3", calls[2:], "a2", **same),
        result("r2", "t2", "2", "a2"),
        result("r1", "t1", "1", "a1"),
        result("r3", "t3", "3", "a3"),
        assistant("a4", "All done.", "r3"),
        user("u2", "Thanks", "a4"),
        assistant("a5", "Welcome.", "u2"),
    )
    assert abandoned() == []


@pytest.mark.parametrize("name", ["Agent", "AskUserQuestion", "Bash"])
def test_a_result_hangs_on_the_line_of_its_call(name: str) -> None:
    sink = read(
        user("u1", "Go"),
        assistant("a1", [tool_use("t1", name, prompt="x", questions=[{"question": "?"}])], "u1"),
        result("r1", "t1", "done", "a1"),
    )
    assert (spoken(sink)[-1].data or {})["parent"] == "a1"


@pytest.mark.parametrize("last_before", ["a1", "s1-5"])
def test_a_compaction_abandons_nothing(last_before: str, keep: Keep) -> None:
    keep(
        f"{SESSION}.jsonl",
        user("u1", "First"),
        assistant("a1", "Yes.", "u1"),
        *silent("s1", "a1"),
        system(
            "b1",
            "compact_boundary",
            logicalParentUuid=last_before,
            compactMetadata={"trigger": "manual"},
        ),
        user("u2", "This session is being continued", "b1", isCompactSummary=True),
        user("u3", "Second", "u2"),
        assistant("a3", "Yes again.", "u3"),
    )
    assert abandoned() == []


def test_what_was_rewound_before_a_compaction_stays_abandoned(keep: Keep) -> None:
    keep(
        f"{SESSION}.jsonl",
        user("u1", "First"),
        assistant("a1", "Yes.", "u1"),
        user("u2", "A mistake", "a1"),
        user("u3", "Better", "a1"),
        *silent("s1", "u3"),
        system(
            "b1", "compact_boundary", logicalParentUuid="s1-5", compactMetadata={"trigger": "auto"}
        ),
        user("u4", "Second", "b1"),
    )
    assert abandoned() == ["A mistake"]


def test_a_compaction_that_does_not_say_what_came_before_abandons_nothing(keep: Keep) -> None:
    keep(
        f"{SESSION}.jsonl",
        user("u1", "First"),
        user("u2", "Second", "u1"),
        system("b1", "compact_boundary", compactMetadata={"trigger": "manual"}),
        user("u3", "This session is being continued", "b1", isCompactSummary=True),
        user("u4", "Third", "u3"),
    )
    assert abandoned() == []


def test_lines_that_do_not_tell_their_parent_abandon_nothing(keep: Keep) -> None:
    lines = (
        user("u1", "First"),
        assistant("a1", "Yes."),
        user("u2", "Second"),
        assistant("a2", "Yes again."),
    )
    for record in lines:
        del record["parentUuid"]
    keep(f"{SESSION}.jsonl", *lines)
    assert abandoned() == []


def test_a_queued_prompt_is_part_of_the_conversation(keep: Keep) -> None:
    keep(
        f"{SESSION}.jsonl",
        user("u1", "First"),
        assistant("a1", [tool_use("t1", "Bash", command="ls")], "u1"),
        queued(None, "Without an id"),
        result("r1", "t1", "x", "a1"),
        queued("q1", "Also this", "r1"),
        assistant("a2", "Both.", "q1"),
    )
    assert abandoned() == []
    assert kept().session.prompts == 3


def test_a_chain_that_leads_to_a_line_we_do_not_have_says_nothing(keep: Keep) -> None:
    keep(
        f"{SESSION}.jsonl",
        user("u1", "First"),
        assistant("a1", "Yes.", "u1"),
        user("u2", "Second", "lost"),
    )
    assert abandoned() == []


# -- odd shapes ----------------------------------------------------------------------------------

TEMPLATES: tuple[Record, ...] = (
    user(
        "u1",
        [{"type": "text", "text": "Go"}, image()],
        "u0",
        origin={"kind": "human"},
        isMeta=False,
    ),
    user(
        "u2",
        "This session is being continued",
        "u1",
        isCompactSummary=True,
        forkedFrom={"sessionId": "x"},
    ),
    user("u3", "<command-name>/model</command-name><command-args>opus</command-args>"),
    user("u4", "<bash-input>make</bash-input>"),
    side(user("x1", "Look"), "ab12"),
    assistant(
        "a1",
        [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "x"}],
        cost=usage(1, 2, 3, 4),
    ),
    assistant("a2", [tool_use("t1", "Edit", file_path="/w/a.py", old_string="a", new_string="b")]),
    assistant(
        "a3", [tool_use("t2", "Agent", description="d", prompt="p", subagent_type="Explore")]
    ),
    assistant("a4", [tool_use("t3", "AskUserQuestion", questions=[{"question": "?"}])]),
    result(
        "r1",
        "t1",
        [{"type": "text", "text": "ok"}, image()],
        "a2",
        toolUseResult={"structuredPatch": [1]},
    ),
    result(
        "r2",
        "t2",
        "seen",
        "a3",
        toolUseResult={"agentId": "ab12", "answers": {}, "gitOperation": {}},
    ),
    result("r3", "t3", "no", "a4", failed=True, toolUseResult="User rejected tool use"),
    system(
        "s1",
        "compact_boundary",
        logicalParentUuid="r3",
        compactMetadata={"trigger": "auto", "preTokens": 1},
    ),
    system("s2", "api_error", error={"status": 529, "cause": {"code": "x"}}, retryAttempt=1),
    system("s3", "turn_duration", durationMs=5),
    system("s4", "local_command", content="<command-name>/model</command-name>"),
    system("s5", "away_summary", content="words"),
    queued(
        "q1", [{"type": "text", "text": "Also"}, image()], origin={"kind": "human"}, isMeta=False
    ),
    progress("p1", "a3", assistant("x2", "Seen.", "x1", cost=usage(1, 2, 3, 4))),
    {"type": "summary", "summary": "A title", "leafUuid": "a1"},
    {"type": "ai-title", "aiTitle": "A title", "sessionId": SESSION},
    {"type": "custom-title", "customTitle": "A title", "sessionId": SESSION},
    {"type": "last-prompt", "lastPrompt": "Go", "leafUuid": "a1", "sessionId": SESSION},
)


def paths(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where in a record something else could stand: every field at every depth."""
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for name, inner in items:
        yield (*path, name)
        yield from paths(inner, (*path, name))


def replaced(record: Record, path: tuple[str | int, ...], value: object) -> Record:
    record = copy.deepcopy(record)
    at: Any = record
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    return record


PLACES = [(number, path) for number, record in enumerate(TEMPLATES) for path in paths(record)]
NASTY = [
    "",
    "\x00",
    "\ud800",
    0,
    -1,
    2**63,
    2**70,
    1.5,
    float("inf"),
    float("nan"),
    True,
    None,
    [],
    {},
    [[]],
    {"": {}},
]
WORDS = st.text(max_size=8) | st.sampled_from(["user", "text", "\x00", "\ud800", "<synthetic>"])
NUMBERS = st.integers() | st.floats()
ODD = st.recursive(
    st.none() | st.booleans() | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@functools.cache
def store() -> StoreConnection:
    return connect(Path(":memory:"))


def absorb(lines: list[bytes]) -> None:
    """From bytes to rows as ingest does it, without a trace."""
    shape = SourceShape("lines", SESSION)
    state: Record = {}
    writer = EventWriter(store())
    store().execute("BEGIN")
    try:
        for offset, line in enumerate(lines):
            found = decode.decode_line(line, offset)
            if isinstance(found, UnparsedRecord):
                continue
            sink = Sink(SESSION)
            reader = AGENT.reader(shape, state)
            for record in found:
                reader.read(record, offset, line, sink)
            state = json.loads(json.dumps(reader.state))
            for bucket in sink.buckets.values():
                writer.apply("claude", bucket, T0, mutable=False)
        writer.finish()
    finally:
        store().execute("ROLLBACK")


@pytest.mark.parametrize("value", NASTY, ids=repr)
def test_a_nasty_value_in_every_field_of_every_record_can_be_read_and_stored(value: object) -> None:
    odd = [replaced(TEMPLATES[number], path, value) for number, path in PLACES]
    absorb([json.dumps(record).encode("utf-8", "surrogatepass") for record in odd])


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from(PLACES), ODD)
def test_any_value_in_any_field_of_any_record_can_be_read_and_stored(
    place: tuple[int, Any], value: object
) -> None:
    number, path = place
    odd = replaced(TEMPLATES[number], path, value)
    absorb(
        [
            json.dumps(record).encode("utf-8", "surrogatepass")
            for record in (TEMPLATES[5], odd, *TEMPLATES[5:10])
        ]
    )


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(
        st.dictionaries(st.sampled_from(sorted({str(path[0]) for _, path in PLACES})), ODD),
        max_size=4,
    )
)
def test_records_of_any_shape_can_be_read_sniffed_and_stored(records: list[Record]) -> None:
    lines = [json.dumps(record).encode("utf-8", "surrogatepass") for record in records]
    absorb(lines)
    for name in ("x.jsonl", "agent-1.jsonl", "subagents/agent-1.meta.json", "tool-results/t.txt"):
        AGENT.sniff(Path("/p") / name, b"\n".join(lines))


@pytest.mark.parametrize("when", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_beyond_all_calendars_can_be_shown(when: str, keep: Keep, cli: Cli) -> None:
    keep(f"{SESSION}.jsonl", {**user("u1", "Go"), "timestamp": when})
    assert cli("sessions", "--json").code == 0
    assert cli("show", SESSION, "--json").json["session"]["prompts"] == 1


def test_events_of_one_record_have_keys_of_their_own() -> None:
    sink = read(*TEMPLATES)
    for session, bucket in sink.buckets.items():
        repeated = [
            key for key, number in Counter(e.key for e in bucket.events).items() if number > 1
        ]
        assert repeated == [], session


def test_a_home_may_be_named_in_the_environment() -> None:
    home = Path("/home/ada")
    assert AGENT.roots(home, {}) == [home / ".claude" / "projects"]
    assert AGENT.roots(home, {"CLAUDE_CONFIG_DIR": "/opt/claude"}) == [Path("/opt/claude/projects")]


def test_transcripts_are_found_before_what_hangs_on_them(home: Path) -> None:
    root = home / ".claude" / "projects"
    names = [
        NESTED,
        NESTED.replace(".jsonl", ".meta.json"),
        f"{SESSION}/tool-results/t1.txt",
        f"{SESSION}.jsonl",
    ]
    for name in (*names, "agent-cd34.jsonl", "memory/notes.txt", "sessions-index.json"):
        (root / "-w" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "-w" / name).write_text("{}\n")

    def refuse(error: OSError) -> None:
        raise error

    found = [str(path.relative_to(root / "-w")) for path in AGENT.find(root, refuse)]
    assert found[0] == f"{SESSION}.jsonl"
    assert set(found[1:3]) == {NESTED, "agent-cd34.jsonl"}
    assert set(found[3:]) == {names[1], names[2]}
