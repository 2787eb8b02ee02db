"""Gemini CLI's two dialects, read from records written for these tests and from the corpus."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from whyfor.agents.base import SourceShape
from whyfor.agents.gemini import AGENT
from whyfor.model.events import Event
from whyfor.model.findings import Record, Sink
from whyfor.model.ids import fold

SESSION = "5e551011-0000-4000-8000-000000000001"
HEADER = {
    "sessionId": SESSION,
    "projectHash": "ab12",
    "startTime": "2026-05-01T10:00:00.000Z",
    "kind": "main",
}
T0 = 1777629600000
MODEL = {"model": "gemini-2.5-pro"}


def at(seconds: int) -> str:
    return f"2026-05-01T10:00:{seconds:02}.000Z"


def user(ident: str, *parts: object, second: int = 1, **more: object) -> Record:
    content = [{"text": part} if isinstance(part, str) else part for part in parts]
    return {"id": ident, "timestamp": at(second), "type": "user", "content": content, **more}


def gemini(ident: str, text: str = "", second: int = 2, **more: object) -> Record:
    return {
        "id": ident,
        "timestamp": at(second),
        "type": "gemini",
        "content": text,
        "model": "gemini-2.5-pro",
        **more,
    }


def call(
    ident: str, name: str, args: Record, output: str, status: str = "success", **more: object
) -> Record:
    word = "output" if status == "success" else "error"
    answer = {"functionResponse": {"id": ident, "name": name, "response": {word: output}}}
    about = {"id": ident, "name": name, "args": args, "result": [answer], "status": status}
    return {**about, "timestamp": at(9), **more}


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
    for record in records:
        line = json.dumps(record).encode()
        reader.read(record, offset, line, sink)
        offset += len(line) + 1
    return sink


def latest(sink: Sink) -> list[Event]:
    """As the store has it: of one key the last version, in the place of the first."""
    events: dict[int, Event] = {}
    for event in sink.main.events:
        events[event.key] = event
    return list(events.values())


def kinds(sink: Sink) -> list[str]:
    return [event.kind for event in latest(sink)]


def only(sink: Sink, kind: str) -> Event:
    (event,) = (event for event in latest(sink) if event.kind == kind)
    return event


def complain(error: OSError) -> None:
    raise error


# -- where it writes -----------------------------------------------------------------------------


def test_its_folder_is_below_home_or_where_the_environment_says() -> None:
    assert AGENT.roots(Path("/home/ada"), {}) == [Path("/home/ada/.gemini/tmp")]
    assert AGENT.roots(Path("/home/ada"), {"GEMINI_CLI_HOME": "/elsewhere"}) == [
        Path("/elsewhere/.gemini/tmp")
    ]


def test_sessions_are_found_before_subagents_and_nothing_else_is(tmp_path: Path) -> None:
    chats = tmp_path / "slug" / "chats"
    names = [
        "parent/child.jsonl",
        "session-b.jsonl",
        "session-a.json",
        "note.txt",
        "../logs.json",
        "a/b/c.jsonl",
    ]
    for name in names:
        (chats / name).parent.mkdir(parents=True, exist_ok=True)
        (chats / name).touch()
    found = [str(path.relative_to(chats)) for path in AGENT.find(tmp_path, complain)]
    assert found == ["session-a.json", "session-b.jsonl", "parent/child.jsonl"]


def log(*records: Record) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def test_an_edit_log_is_known_by_its_first_line() -> None:
    assert AGENT.sniff(Path("x"), log(HEADER)) == SourceShape("lines", SESSION)


def test_an_edit_log_whose_first_line_is_damaged_is_known_by_its_changes() -> None:
    damaged = b'{"sessionId":"' + b"\0" * 40 + b"\n" + log({"$set": {"lastUpdated": at(1)}})
    path = Path("chats/session-2026-05-01T10-00-5e551011.jsonl")
    assert AGENT.sniff(path, damaged) == SourceShape("lines", "5e551011")
    assert AGENT.sniff(Path("chats/parent/the-child.jsonl"), damaged) == SourceShape(
        "lines", "the-child", "parent"
    )


def test_a_subagents_log_names_its_parent_by_its_folder() -> None:
    path = Path(f"/h/.gemini/tmp/slug/chats/{SESSION}/child.jsonl")
    shape = AGENT.sniff(path, log({**HEADER, "sessionId": "child", "kind": "subagent"}))
    assert shape == SourceShape("lines", "child", SESSION)


@pytest.mark.parametrize("indent", [None, 2])
def test_a_document_is_known_pretty_printed_or_not(indent: int | None) -> None:
    document = json.dumps({**HEADER, "messages": [user("u", "hello")]}, indent=indent).encode()
    assert AGENT.sniff(Path("session-x.jsonl"), document[:400]) == SourceShape("document", SESSION)


@pytest.mark.parametrize("place", ["first", "last", "compact"])
def test_a_subagents_document_gets_an_id_of_its_own(tmp_path: Path, place: str) -> None:
    about = {name: HEADER[name] for name in ("sessionId", "projectHash", "startTime")}
    messages = {"messages": [user("u", "x" * 500)]}
    kind = {"kind": "subagent"}
    record = {**about, **messages, **kind} if place == "last" else {**about, **kind, **messages}
    path = tmp_path / "session-2026.json"
    path.write_text(json.dumps(record, indent=None if place == "compact" else 2))
    head = path.read_bytes() if place == "compact" else path.read_bytes()[:300]
    assert AGENT.sniff(path, head) == SourceShape(
        "document", f"agent-20260501100000000@{SESSION}", SESSION
    )


def test_the_oldest_subagents_are_known_by_the_task_they_were_given() -> None:
    task = "Your task is to do a deep investigation of the codebase to find it"
    message = {"id": "u", "timestamp": at(1), "type": "user", "content": task}
    document = json.dumps({**HEADER, "messages": [message]}, indent=2).encode()
    shape = AGENT.sniff(Path("session-x.json"), document)
    assert shape is not None and shape.parent == SESSION and shape.session_id != SESSION


def test_the_word_subagent_inside_a_message_means_nothing() -> None:
    spoken = user("u", 'it says\n  "kind": "subagent"', nested={"kind": "subagent"})
    document = json.dumps({**HEADER, "messages": [spoken]}, indent=2).encode()
    assert AGENT.sniff(Path("session-x.json"), document) == SourceShape("document", SESSION)


@pytest.mark.parametrize(
    "foreign",
    [
        {
            "type": "user",
            "sessionId": SESSION,
            "uuid": "u",
            "message": {"role": "user", "content": "hi"},
        },
        {"timestamp": at(1), "type": "session_meta", "payload": {"id": SESSION}},
        {"type": "session.start", "data": {"sessionId": SESSION}, "id": "1"},
        {"sessionId": SESSION, "messages": [], "title": "somebody else's"},
        {"$set": {"theme": "dark"}},
    ],
)
def test_what_others_wrote_is_left_alone(foreign: Record) -> None:
    assert AGENT.sniff(Path("session-x.jsonl"), log(foreign)) is None


@pytest.mark.parametrize(
    "head", [b"", b"hello\n", b'[{"sessionId": "x", "messageId": 0}]', b"SQLite format 3\0", b"{\n"]
)
def test_what_is_no_session_is_left_alone(head: bytes) -> None:
    assert AGENT.sniff(Path("logs.json"), head) is None


def chats(home: Path, project: str) -> Path:
    folder = home / ".gemini" / "tmp" / project / "chats"
    folder.mkdir(parents=True)
    return folder


def test_the_project_folder_stands_in_a_marker_beside_the_sessions(tmp_path: Path) -> None:
    folder = chats(tmp_path, "slug")
    (folder.parent / ".project_root").write_text("/code/thing\n")
    for path in (folder / "session-x.jsonl", folder / SESSION / "child.jsonl"):
        shape = AGENT.sniff(path, log(HEADER))
        assert shape is not None and shape.cwd == "/code/thing"


@pytest.mark.parametrize("project", ["slug", sha256(b"/code/thing").hexdigest()])
def test_else_the_list_of_projects_tells_it(tmp_path: Path, project: str) -> None:
    known = {"projects": {"/code/other": "other", "/code/thing": "slug"}}
    folder = chats(tmp_path, project)
    (tmp_path / ".gemini" / "projects.json").write_text(json.dumps(known))
    shape = AGENT.sniff(folder / "session-x.jsonl", log(HEADER))
    assert shape is not None and shape.cwd == "/code/thing"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("/code/thing", "/code/thing/src/main.ts"),
        ("/code/my things/thing", "/code/my things/thing/src/main.ts"),
        ("/code/thing", "look at /code/thing/src/main.ts, then at /else."),
        (r"C:\Users\ada", r"C:\Users\ada\src\main.ts"),
        (r"C:\Users\ada", r"Directory: C:\Users\ada"),
        ("C:\\", r"C:\Users"),
    ],
)
def test_else_the_hash_that_its_folder_is_called_by_tells_which_named_path_it_is(
    tmp_path: Path, place: str, said: str
) -> None:
    folder = chats(tmp_path, sha256(place.encode()).hexdigest())
    call = {"name": "read_file", "args": {"file_path": said}}
    told = {**HEADER, "messages": [{"type": "gemini", "toolCalls": [call]}]}
    (folder / "session-1.json").write_text(json.dumps(told))
    for name in ("session-1.json", "session-2.jsonl"):  # the second one names nothing itself
        shape = AGENT.sniff(folder / name, log(HEADER))
        assert shape is not None and shape.cwd == place


def test_a_path_with_another_hash_is_not_taken_for_the_folder(tmp_path: Path) -> None:
    folder = chats(tmp_path, sha256(b"/code/thing").hexdigest())
    (folder / "session-1.jsonl").write_bytes(log(HEADER, {"content": "see /code/other/a.ts"}))
    shape = AGENT.sniff(folder / "session-1.jsonl", log(HEADER))
    assert shape is not None and shape.cwd is None


def test_else_it_is_unknown(tmp_path: Path) -> None:
    folder = chats(tmp_path, "slug")
    (tmp_path / ".gemini" / "projects.json").write_text("{not json")
    shape = AGENT.sniff(folder / "session-x.jsonl", log(HEADER))
    assert shape is not None and shape.cwd is None


# -- what was said -------------------------------------------------------------------------------


def test_a_whole_session_reads_the_same_in_both_dialects() -> None:
    thought = {"subject": "Plan", "description": "Look first.", "timestamp": at(3)}
    messages = [user("u", "Fix it."), gemini("g", "Done.", second=4, thoughts=[thought])]
    started = Event("session.started", fold(SESSION, "started"), T0, "system")
    prompt = Event("user.prompt", fold("u", "text"), T0 + 1000, "user", "Fix it.")
    thinking = Event(
        "assistant.thinking", fold("g", "thought", 0), T0 + 3000, "assistant", "Plan\nLook first."
    )
    answer = Event("assistant.message", fold("g", "text"), T0 + 4000, "assistant", "Done.")
    thinking.data = answer.data = MODEL
    expected = [started, prompt, thinking, answer]
    assert read({**HEADER, "messages": messages}).main.events == expected
    assert read(HEADER, *messages).main.events == expected


def test_the_start_says_where_when_that_is_known() -> None:
    sink = read(HEADER, user("u", "hi"), shape=SourceShape("lines", SESSION, cwd="/code/thing"))
    assert only(sink, "session.started").data == {"cwd": "/code/thing"}
    assert sink.main.facts["cwd"] == "/code/thing"


def test_the_folder_is_taken_from_the_injected_context_when_nothing_else_says_it() -> None:
    context = (
        "<session_context>\nThis is it.\n- **Workspace Directories:**\n  - /code/a thing\n- "
        "**More:**"
    )
    sink = read(HEADER, {"$set": {"messages": [user("c", context)]}}, user("u", "hi"))
    assert sink.main.facts["cwd"] == "/code/a thing"
    assert kinds(sink) == ["session.started", "user.prompt"]


def test_a_subagents_header_names_its_folder() -> None:
    sink = read({**HEADER, "directories": ["/code/thing", "/code/more"]})
    assert sink.main.facts["cwd"] == "/code/thing"


def test_a_summary_is_the_title_wherever_it_stands() -> None:
    assert (
        read({**HEADER, "messages": [], "summary": "Fix the gate"}).main.facts["title"]
        == "Fix the gate"
    )
    assert read(HEADER, {"$set": {"summary": "Fix the gate"}}).main.facts["title"] == "Fix the gate"


def test_a_prompt_is_what_was_typed_not_what_it_was_expanded_to() -> None:
    content = [
        "Explain @a.txt",
        "\n--- Content from referenced files ---",
        "\nContent from @a.txt:\n",
        "alpha",
    ]
    shown = read(HEADER, user("u", *content, displayContent=[{"text": "Explain @a.txt, please"}]))
    assert only(shown, "user.prompt").text == "Explain @a.txt, please"
    assert only(read(HEADER, user("u", *content)), "user.prompt").text == "Explain @a.txt"
    old = {"id": "u", "type": "user", "content": "".join(content)}
    assert only(read({**HEADER, "messages": [old]}), "user.prompt").text == "Explain @a.txt"


@pytest.mark.parametrize(
    "text",
    [
        "You have exceeded the maximum number of turns. You have one final chance to complete the "
        "task with a short",
        "System: Please continue.",
        "Here is the user's editor context as a JSON object. This is for your information only.",
    ],
)
def test_what_the_program_says_in_the_users_name_is_no_prompt(text: str) -> None:
    assert kinds(read(HEADER, user("u", text))) == ["session.started", "status.changed"]


def test_a_subagents_task_comes_from_its_parent() -> None:
    task = only(
        read(HEADER, user("u", "Find it."), shape=SourceShape("lines", "child", SESSION)),
        "user.prompt",
    )
    assert (task.actor, task.text) == ("assistant", "Find it.")
    assert (
        only(read({**HEADER, "kind": "subagent"}, user("u", "Find it.")), "user.prompt").actor
        == "assistant"
    )


def test_images_are_references() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "A" * 400}}
    remote = {"fileData": {"mimeType": "video/mp4", "fileUri": "gs://x/y"}}
    prompt = only(read(HEADER, user("u", "What is this?", image, remote)), "user.prompt")
    assert prompt.data == {
        "images": [
            {"block": 1, "type": "inline", "media_type": "image/png", "bytes": 300},
            {"block": 2, "type": "file", "media_type": "video/mp4", "uri": "gs://x/y"},
        ]
    }


def test_errors_notices_and_interruptions() -> None:
    said = [
        ("error", "[API Error: no]"),
        ("info", "Update successful!"),
        ("warning", "Careful."),
        ("info", "Request cancelled."),
    ]
    records = [
        {"id": f"m{i}", "timestamp": at(i), "type": kind, "content": text}
        for i, (kind, text) in enumerate(said)
    ]
    events = read(HEADER, *records).main.events[1:]
    assert [(event.kind, event.actor, event.text) for event in events] == [
        ("error", "system", "[API Error: no]"),
        ("status.changed", "system", "Update successful!"),
        ("status.changed", "system", "Careful."),
        ("turn.completed", "user", "Request cancelled."),
    ]
    assert events[3].data == {"interrupted": True}


# -- an edit log ---------------------------------------------------------------------------------


def test_a_message_that_comes_again_with_more_in_it_replaces_its_events() -> None:
    tokens = {"input": 1000, "output": 50, "cached": 600, "thoughts": 20, "tool": 0, "total": 1070}
    first = gemini("g", "Working.", tokens=tokens)
    again = {
        **first,
        "content": "Working on it.",
        "toolCalls": [call("c", "read_file", {"file_path": "a"}, "alpha")],
    }
    sink = read(HEADER, first, again)
    assert kinds(sink) == ["session.started", "assistant.message", "tool.call", "tool.result"]
    assert only(sink, "assistant.message").text == "Working on it."
    assert len({usage.key for usage in sink.main.usage}) == 1


def test_input_tokens_exclude_the_cache_and_unknown_stays_unknown() -> None:
    tokens = {"input": 1000, "output": 50, "cached": 600, "thoughts": 20, "tool": 0, "total": 1070}
    (usage,) = read(HEADER, gemini("g", "Hi.", tokens=tokens)).main.usage
    assert usage.key == fold("gemini", SESSION, "g")
    assert (usage.model, usage.created_at) == ("gemini-2.5-pro", T0 + 2000)
    assert (usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning) == (
        400,
        600,
        None,
        50,
        20,
    )
    (bare,) = read(HEADER, gemini("g", "Hi.", tokens={"output": 7})).main.usage
    assert (bare.input, bare.cache_read, bare.output, bare.reasoning) == (None, None, 7, None)
    assert read(HEADER, gemini("g", "Hi.", tokens=None)).main.usage == []


def conversation() -> list[Record]:
    done = call(
        "c1", "run_shell_command", {"command": "ls"}, "Output: a\nExit Code: 0", resultDisplay="a"
    )
    return [
        HEADER,
        {"$set": {"messages": [user("ctx", "<session_context>\nhello")], "lastUpdated": at(0)}},
        user(
            "u1",
            "First @a",
            "\n--- Content from referenced files ---",
            displayContent=[{"text": "First @a"}],
        ),
        gemini(
            "g1",
            "One.",
            thoughts=[{"subject": "S", "description": "D", "timestamp": at(2)}],
            toolCalls=[done],
        ),
        user("r1", {"functionResponse": done["result"][0]["functionResponse"]}, second=3),
        user("u2", "yes", second=4),
        gemini("g2", "Two.", second=5),
        user("u3", "yes", second=6),
    ]


def poorer(message: Record, ident: str) -> Record:
    """How a resumed or compressed history has it: parts only, times of now, no tools and tokens."""
    parts = (
        message["content"]
        if isinstance(message["content"], list)
        else [{"text": message["content"]}]
    )
    calls = [
        {"functionCall": {"id": c["id"], "name": c["name"], "args": c["args"]}}
        for c in message.get("toolCalls", [])
    ]
    thoughts = [{"text": "**S** D", "thought": True}] if message.get("thoughts") else []
    return {
        "id": ident,
        "timestamp": at(30),
        "type": message["type"],
        "content": [*thoughts, *parts, *calls],
    }


def test_a_resume_repeats_the_history_poorer_and_changes_nothing() -> None:
    before = conversation()
    replayed = [poorer(message, message["id"]) for message in before[2:]]
    resumed = [
        *before,
        {**HEADER, "startTime": at(20)},
        {"$set": {"messages": replayed, "lastUpdated": at(30)}},
    ]
    assert read(*resumed).main.events == read(*before).main.events


def test_a_compression_keeps_what_was_said_under_new_ids_and_is_told_once() -> None:
    before = conversation()
    summary = user("s", "<state_snapshot>all of it</state_snapshot>", second=40)
    nod = gemini("n", "Got it. Thanks for the additional context!", second=40)
    kept = [poorer(message, f"new-{message['id']}") for message in before[2:]]
    sink = read(
        *before, {"$set": {"messages": [summary, nod, *kept]}}, user("u4", "Go on.", second=50)
    )
    old = read(*before).main.events
    assert sink.main.events[: len(old)] == old
    assert [(event.kind, event.text) for event in sink.main.events[len(old) :]] == [
        ("compaction", "<state_snapshot>all of it</state_snapshot>"),
        ("user.prompt", "Go on."),
    ]


def test_a_history_that_was_not_seen_before_is_read() -> None:
    asked = {"functionCall": {"id": "c9", "name": "glob", "args": {"pattern": "*.py"}}}
    answered = {"functionResponse": {"id": "c9", "name": "glob", "response": {"output": "a.py"}}}
    model = {
        "id": "m",
        "timestamp": at(2),
        "type": "gemini",
        "content": [{"text": "hm", "thought": True}, {"text": "Ok."}, asked],
    }
    history = [user("p", "yes"), user("q", "yes"), model, user("r", answered)]
    sink = read(HEADER, {"$set": {"messages": history}})
    said = [(event.kind, event.text) for event in sink.main.events[1:]]
    assert said == [
        ("user.prompt", "yes"),
        ("user.prompt", "yes"),
        ("assistant.thinking", "hm"),
        ("assistant.message", "Ok."),
        ("tool.call", "*.py"),
        ("tool.result", "a.py"),
    ]


def test_a_rewind_keeps_the_events_and_says_so() -> None:
    sink = read(*conversation(), {"$rewindTo": "u2"}, user("u4", "Otherwise.", second=50))
    rewound = sink.main.events[-2]
    assert (rewound.kind, rewound.actor, rewound.data) == (
        "status.changed",
        "user",
        {"rewound_to": "u2"},
    )
    assert sink.main.events[-1].text == "Otherwise."
    assert (
        kinds(read(*conversation(), {"$rewindTo": "u2"}, {"$rewindTo": "u2"})).count(
            "status.changed"
        )
        == 2
    )


def test_what_is_unknown_is_counted_and_nothing_else() -> None:
    sink = read(
        HEADER,
        {"$set": {"mood": 1, "memoryScratchpad": {}}},
        {"id": "x", "type": "hologram"},
        {"odd": 1},
    )
    assert sink.unknown == {"$set.mood": 1, "hologram": 1, "odd": 1}
    assert kinds(sink) == ["session.started"]


# -- tools ---------------------------------------------------------------------------------------


def test_a_call_and_its_result() -> None:
    sink = read(
        HEADER, gemini("g", toolCalls=[call("c", "read_file", {"file_path": "src/a.py"}, "alpha")])
    )
    assert sink.main.events[1:] == [
        Event(
            "tool.call",
            fold("c"),
            T0 + 2000,
            "assistant",
            "src/a.py",
            "read_file",
            {**MODEL, "id": "c", "input": {"file_path": "src/a.py"}},
        ),
        Event("tool.result", fold("c", "result"), T0 + 9000, "tool", "alpha", None, {"id": "c"}),
    ]
    (touch,) = sink.main.touches
    assert (touch.key, touch.path, touch.action) == (fold("c", "result"), "src/a.py", "read")


def test_an_edit_has_its_diff_and_touches_its_file() -> None:
    shown = {
        "fileDiff": "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n",
        "filePath": "/code/a.py",
        "newContent": "y",
        "originalContent": "x",
    }
    edit = call(
        "c",
        "replace",
        {"file_path": "a.py", "old_string": "x", "new_string": "y"},
        "ok",
        resultDisplay=shown,
    )
    sink = read(HEADER, gemini("g", toolCalls=[edit]))
    assert only(sink, "tool.result").data == {
        "id": "c",
        "diff": shown["fileDiff"],
        "path": "/code/a.py",
    }
    assert [(touch.path, touch.action) for touch in sink.main.touches] == [("a.py", "write")]


def test_an_edit_the_person_changed_says_so() -> None:
    shown = {"fileDiff": "x", "diffStat": {"user_added_lines": 2}}
    edit = call("c", "write_file", {"file_path": "a.py", "content": "y"}, "ok", resultDisplay=shown)
    assert only(read(HEADER, gemini("g", toolCalls=[edit])), "tool.result").data == {
        "id": "c",
        "diff": "x",
        "user_modified": True,
    }


def test_a_failed_call_touches_nothing() -> None:
    sink = read(
        HEADER,
        gemini(
            "g", toolCalls=[call("c", "write_file", {"file_path": "a"}, "no such folder", "error")]
        ),
    )
    result = only(sink, "tool.result")
    assert (result.text, result.data) == ("no such folder", {"id": "c", "failed": True})
    assert sink.main.touches == []


def test_a_shell_command_has_its_exit_code() -> None:
    output = "Output: Exit Code: 9 was expected\nExit Code: 9\nExit Code: 3\nProcess Group PGID: 7"
    done = call("c", "run_shell_command", {"command": "false"}, output)
    assert only(read(HEADER, gemini("g", toolCalls=[done])), "tool.result").data == {
        "id": "c",
        "exit_code": 3,
        "failed": True,
    }


def test_a_refused_call_is_a_denied_approval() -> None:
    reason = "[Operation Cancelled] Reason: User denied execution."
    sink = read(
        HEADER,
        gemini(
            "g", toolCalls=[call("c", "run_shell_command", {"command": "rm"}, reason, "cancelled")]
        ),
    )
    assert only(sink, "tool.result").data == {"id": "c", "failed": True, "rejected": True}
    resolved = only(sink, "approval.resolved")
    assert (resolved.actor, resolved.data) == ("user", {"id": "c", "decision": "denied"})


def test_a_result_that_stands_only_in_a_message_of_its_own_is_read() -> None:
    answer = {
        "functionResponse": {
            "id": "c",
            "name": "x",
            "response": {"error": "Unauthorized tool call"},
        }
    }
    result = only(read(HEADER, gemini("g"), user("r", answer)), "tool.result")
    assert (result.text, result.data) == ("Unauthorized tool call", {"id": "c", "failed": True})


def test_a_subagent_is_started_and_stopped_with_its_session() -> None:
    args = {"agent_name": "codebase_investigator", "prompt": "Find it."}
    done = call(
        "c",
        "invoke_agent",
        args,
        "Found.",
        agentId="child",
        resultDisplay={"isSubagentProgress": True},
    )
    sink = read(HEADER, gemini("g", toolCalls=[done]))
    assert kinds(sink)[1:] == ["tool.call", "subagent.started", "tool.result", "subagent.stopped"]
    started = only(sink, "subagent.started")
    assert (started.name, started.text) == ("codebase_investigator", "Find it.")
    assert started.data == {"id": "c", "prompt": "Find it.", "subagent": "child"}
    assert only(sink, "tool.result").data == {"id": "c", "subagent": "child"}


def test_a_question_to_the_person() -> None:
    asked = call(
        "c", "ask_user", {"questions": [{"question": "Which?"}, {"question": "When?"}]}, "the first"
    )
    assert (
        only(read(HEADER, gemini("g", toolCalls=[asked])), "question.asked").text == "Which?\nWhen?"
    )


def test_an_image_a_tool_returned_is_a_reference() -> None:
    done = call("c", "read_file", {"file_path": "a.png"}, "Binary content provided")
    done["result"].append({"inlineData": {"mimeType": "image/png", "data": "AAAA"}})
    data = only(read(HEADER, gemini("g", toolCalls=[done])), "tool.result").data
    assert data is not None
    assert data["images"] == [{"block": 1, "type": "inline", "media_type": "image/png", "bytes": 3}]


# -- properties ----------------------------------------------------------------------------------


def everything() -> list[Record]:
    sub = call("c5", "invoke_agent", {"agent_name": "x", "prompt": "y"}, "z", agentId="k")
    edit = call(
        "c6",
        "replace",
        {"file_path": "a"},
        "ok",
        resultDisplay={"fileDiff": "d", "diffStat": {"user_added_lines": 1}},
    )
    denied = call("c7", "run_shell_command", {}, "User denied", "cancelled")
    asked = call("c8", "ask_user", {"questions": [{"question": "Which?"}]}, "a")
    tokens = {"input": 9, "cached": 3, "output": 2, "thoughts": 1}
    image = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    return [
        *conversation(),
        gemini("g5", "Hm.", second=7, toolCalls=[sub, edit, denied, asked], tokens=tokens),
        user("u5", "Look:", image, {"fileData": {"fileUri": "x"}}, second=8),
        user("r5", {"functionResponse": {"id": "c9", "response": {"error": "no"}}}, second=8),
        {
            "id": "i",
            "type": "info",
            "content": "Current workspace directories:\n- /work",
            "timestamp": at(8),
        },
        {"id": "e", "type": "error", "content": "no", "timestamp": at(8)},
        {
            "$set": {
                "messages": [poorer(m, f"n{m['id']}") for m in conversation()[2:]],
                "summary": "T",
                "directories": ["/w"],
            }
        },
        {"$rewindTo": "u5"},
        gemini("g5", "Hm, hm.", second=7, toolCalls=[sub], tokens=tokens),
        user("u6", "End.", second=9),
    ]


def test_read_record_by_record_equals_read_at_once() -> None:
    records = everything()
    whole = read(*records)
    state: Record = {}
    parts = Sink(SESSION)
    offset = 0
    for record in records:
        line = json.dumps(record).encode()
        reader = AGENT.reader(SourceShape("lines", SESSION), state)
        reader.read(record, offset, line, parts)
        state = json.loads(json.dumps(reader.state))
        offset += len(line) + 1
    assert parts.main.events == whole.main.events
    assert parts.main.usage == whole.main.usage
    assert parts.main.touches == whole.main.touches
    assert parts.main.facts == whole.main.facts


def test_reading_again_gives_the_same_keys() -> None:
    keys = [event.key for event in read(*everything()).main.events]
    assert keys == [event.key for event in read(*everything()).main.events]
    unique = {event.key for event in latest(read(*everything()))}
    assert len(unique) == len(latest(read(*everything())))


def spots(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for name, inner in items:
        yield from spots(inner, (*path, name))


@pytest.mark.parametrize(
    "odd", [None, True, 7, -1.5, "x", [], {}, [1], [None], ["x"], {"x": []}, [[{}]]], ids=repr
)
def test_odd_shapes_anywhere_never_raise(odd: object) -> None:
    for record in [*everything(), {**HEADER, "messages": everything()[2:4], "directories": ["/w"]}]:
        for path in spots(record):
            if path:
                damaged = copy.deepcopy(record)
                spot: Any = damaged
                for name in path[:-1]:
                    spot = spot[name]
                spot[path[-1]] = odd
                sink = read(damaged)
                json.dumps([event.data for event in sink.main.events])


# -- the corpus ----------------------------------------------------------------------------------


def documents(corpus: Path) -> Iterator[tuple[Path, Record, SourceShape, Sink]]:
    for path in AGENT.find(AGENT.roots(corpus, {})[0], complain):
        record = json.loads(path.read_bytes())
        shape = AGENT.sniff(path, path.read_bytes()[:65536])
        assert shape is not None
        assert shape.framing == "document"
        yield path, record, shape, read(record, shape=shape)


def test_every_session_of_the_corpus_is_read_in_full(corpus: Path) -> None:
    found = list(documents(corpus))
    assert len(found) == 54
    for _, record, _, sink in found:
        counted = Counter(event.kind for event in sink.main.events)
        messages = record["messages"]
        calls = [call for message in messages for call in message.get("toolCalls", ())]
        assert counted["tool.call"] == counted["tool.result"] == len(calls)
        assert counted["assistant.message"] == sum(
            bool(m["content"].strip()) for m in messages if m["type"] == "gemini"
        )
        assert counted["assistant.thinking"] == sum(len(m.get("thoughts", ())) for m in messages)
        assert counted["error"] == sum(m["type"] == "error" for m in messages)
        assert len({event.key for event in sink.main.events}) == len(sink.main.events)
        assert sink.unknown == {}


def test_the_prompts_of_the_corpus_are_what_people_typed(corpus: Path) -> None:
    prompts = Counter(
        event.actor
        for *_, sink in documents(corpus)
        for event in sink.main.events
        if event.kind == "user.prompt"
    )
    # of 135 messages one was the program's last warning to a subagent
    assert prompts == {"user": 133, "assistant": 1}


def test_the_tokens_of_the_corpus_add_up(corpus: Path) -> None:
    for _, record, _, sink in documents(corpus):
        total = sum(
            message["tokens"]["total"] for message in record["messages"] if message.get("tokens")
        )
        fields = [(u.input, u.cache_read, u.output, u.reasoning) for u in sink.main.usage]
        assert sum(value or 0 for row in fields for value in row) == total


def test_the_one_subagent_of_the_corpus_is_found(corpus: Path) -> None:
    subagents = [(shape, record) for _, record, shape, _ in documents(corpus) if shape.parent]
    assert [
        (len(record["messages"]), shape.parent == record["sessionId"])
        for shape, record in subagents
    ] == [(2, True)]
