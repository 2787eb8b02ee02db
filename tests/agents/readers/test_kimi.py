"""Records of Kimi Code that a short run does not write, and sessions of Kimi CLI."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.agents.contract import HomeReader, ReadSession
from tests.agents.samples import BEFORE, CLOSING, PROMPT, WORDS, lines, sample
from tests.agents.samples.kimi import ID, OLD, call, line, result, said
from tests.conftest import Result
from whyfor.agents import AGENTS

Cli = Callable[..., Result]


def read(home: Path, *records: Any) -> ReadSession:
    folder = home / f".kimi-code/sessions/wd_quay_0123456789ab/{ID}/agents/main"
    folder.mkdir(parents=True)
    head = {"type": "metadata", "protocol_version": "1.5", "created_at": 1}
    (folder / "wire.jsonl").write_bytes(lines(head, *records))
    reader = HomeReader(AGENTS["kimi"], home).look()
    assert reader.unknown == {}
    return reader.sessions[ID]


def test_what_a_person_decides_takes_back_and_ends_is_told(home: Path) -> None:
    steer = [{"type": "text", "text": "Also greet the lighthouse"}]
    asked = {"toolName": "Bash", "action": "run a command", "toolCallId": "km-1"}
    decided = {"decision": "rejected", "feedback": "not now"}
    session = read(
        home,
        *said(PROMPT, 1),
        call("km-1", "Bash", {"command": "make harbour"}),
        line("interaction.request", id="i1", kind="approval", toolCallId="km-1", request=asked),
        line(
            "permission.record_approval_result",
            turnId=0,
            toolCallId="km-1",
            toolName="Bash",
            action="run a command",
            result=decided,
        ),
        line("interaction.resolved", id="i1", response=decided),
        result("km-1", "Rejected by the user", isError=True),
        line("turn.steer", input=steer, origin={"kind": "user"}, messageId="m2"),
        line("turn.cancel", reason="user_cancelled"),
        line("context.undo", count=2),
        line("context.apply_compaction", summary="The quay is greeted.", compactedCount=4),
        line("context.clear"),
        line("config.update", modelAlias="other"),
    )
    assert [event.text for event in session.kind("user.prompt")] == [PROMPT, steer[0]["text"]]
    [wanted] = session.kind("approval.requested")
    [answer] = session.kind("approval.resolved")
    assert (wanted.name, (wanted.data or {})["id"], answer.data) == (
        "Bash",
        "km-1",
        {"id": "km-1", "decision": "denied"},
    )
    [compaction] = session.kind("compaction")
    assert compaction.text == "The quay is greeted."
    [ended] = session.kind("turn.completed")
    assert (ended.data or {})["interrupted"] is True
    told = [event.data for event in session.kind("status.changed")]
    assert {"undone": 2} in told and {"cleared": True} in told


def test_a_subagent_has_its_task_and_its_parents_call_names_it(home: Path) -> None:
    folder = home / f".kimi-code/sessions/wd_quay_0123456789ab/{ID}/agents/agent-0"
    folder.mkdir(parents=True)
    (folder.parents[1] / "state.json").write_text('{"agents": {"main": {}}}')
    task = "<git-context>\nBranch: main\n</git-context>\n\nLook for greetings"
    origin = {"kind": "system_trigger", "name": "subagent"}
    (folder / "wire.jsonl").write_bytes(
        lines(
            {"type": "metadata", "protocol_version": "1.5", "created_at": 1},
            line("profile.bind", profileName="explore"),
            line("turn.prompt", input=[{"type": "text", "text": task}], origin=origin),
        )
    )
    given = {"description": "Look", "prompt": "Look for greetings", "subagent_type": "explore"}
    parent = read(
        home,
        *said(PROMPT, 1),
        call("km-1", "Agent", given),
        line("subagent.spawned", subagentId="agent-0", parentToolCallId="km-1"),
        line("subagent.started", subagentId="agent-0"),
        line("subagent.completed", subagentId="agent-0", resultSummary="None."),
        result("km-1", "None."),
    )
    [answer] = parent.kind("tool.result")
    assert (answer.data or {})["subagent"] == f"agent-0@{ID}"
    child = HomeReader(AGENTS["kimi"], home).look().sessions[f"agent-0@{ID}"]
    assert child.parent == ID
    assert child.facts["subagent"] == "explore"
    [asked] = child.kind("user.prompt")
    assert (asked.actor, asked.text) == ("assistant", "Look for greetings")


def test_a_session_of_kimi_cli_is_restored_as_one_of_kimi_code(home: Path, cli: Cli) -> None:
    sample("kimi").write(home)
    wire = next(home.glob(f".kimi/sessions/*/{OLD}/wire.jsonl"))
    given = json.dumps({"path": "greeting.txt", "content": BEFORE})
    function = {"name": "WriteFile", "arguments": given}
    value = {"is_error": False, "output": "", "message": "Written."}
    more = [
        {"type": "ToolCall", "payload": {"type": "function", "id": "c1", "function": function}},
        {"type": "ToolResult", "payload": {"tool_call_id": "c1", "return_value": value}},
        {"type": "ContentPart", "payload": {"type": "text", "text": CLOSING}},
    ]
    at = json.loads(wire.read_text().splitlines()[1])["timestamp"]
    for number, message in enumerate(more, 1):
        with wire.open("a") as file:
            file.write(json.dumps({"timestamp": at + number, "message": message}) + "\n")
    settings = home / ".kimi-code/config.toml"
    settings.write_text('default_model = "stone"\n')
    cli("ingest")

    made = cli("restore", "--session", OLD, "--json").json

    records = [json.loads(each) for each in Path(made["path"]).read_text().splitlines()]
    assert [record["type"] for record in records[:2]] == ["metadata", "profile.bind"]
    assert records[1]["modelAlias"] == "stone"
    reader = HomeReader(AGENTS["kimi"], home).look()
    assert reader.unknown == {}
    session = reader.sessions[made["session_id"]]
    assert [event.text for event in session.kind("user.prompt")] == [PROMPT]
    assert [event.text for event in session.kind("assistant.message")] == [WORDS, CLOSING]
    [written] = session.kind("tool.call")
    assert (written.data or {})["input"] == {"path": "greeting.txt", "content": BEFORE}
    assert [event.text for event in session.kind("tool.result")] == ["Written."]
