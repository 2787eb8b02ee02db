"""Sessions to restore, and what must hold of every restored one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.transcripts import Transcript
from whyfor import config
from whyfor.service.restore import RestoredSource, RestoreReport, RestoreRequest, restore
from whyfor.store.open import reading

Json = dict[str, Any]


def lines(path: str | Path) -> list[Json]:
    text = Path(path).read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text[:-1].split("\n")]


def bring_back(
    cwd: Path,
    *taken: RestoredSource,
    agent: str = "claude",
    title: str = "Restored 126e95e0: Ferns",
) -> RestoreReport:
    return restore(config.load(), RestoreRequest(list(taken), title, agent, cwd))


def seqs(agent: str, session_id: str, kind: str) -> list[int]:
    """Where events of a kind stand in a stored session."""
    with reading(config.load()) as library:
        session = library.sessions.find(session_id, agent)
        return [
            event.seq for event in library.conversation.events(session.id) if event.kind == kind
        ]


def texts(agent: str, session_id: str, *kinds: str) -> list[tuple[str, str]]:
    kinds = kinds or ("user.prompt", "assistant.message", "tool.call", "tool.result")
    with reading(config.load()) as library:
        session = library.sessions.find(session_id, agent)
        return [
            (e.kind, e.text) for e in library.conversation.events(session.id) if e.kind in kinds
        ]


def tree(records: Sequence[Json]) -> list[Json]:
    return [record for record in records if record.get("uuid")]


def blocks(record: Json, kind: str) -> list[Json]:
    content = record.get("message", {}).get("content")
    return (
        [block for block in content if block["type"] == kind] if isinstance(content, list) else []
    )


def assert_one_chain(records: Sequence[Json]) -> None:
    """Each line hangs on the one before, and only the first on none."""
    found = tree(records)
    assert [record["parentUuid"] for record in found] == [
        None,
        *(record["uuid"] for record in found[:-1]),
    ]
    assert len({record["uuid"] for record in found}) == len(found)


def assert_sound(records: Sequence[Json], session_id: str) -> None:
    """What Claude Code asks of a transcript, and we of a restored one."""
    found = tree(records)
    uuids = [record["uuid"] for record in found]
    assert len(set(uuids)) == len(uuids)
    assert {record["parentUuid"] for record in found} <= {None, *uuids}
    assert {record["sessionId"] for record in records} == {session_id}
    assert all(record.get("timestamp") for record in found)
    called = [block["id"] for record in found for block in blocks(record, "tool_use")]
    answered = [block["tool_use_id"] for record in found for block in blocks(record, "tool_result")]
    assert set(answered) <= set(called)
    assert [record["customTitle"] for record in records if record["type"] == "custom-title"] != []


def talked(name: str = "s1", day: str = "2026-05-01") -> Transcript:
    t = Transcript(name, day=day)
    t.prompt(f"Plant a fern ({name})")
    t.think("Ferns like shade.")
    t.say("Digging.")
    t.call("Bash", {"command": "git commit -m fern"}, "[main 126e95e] fern")
    t.say("The fern stands.")
    t.prompt("Now the cactus")
    t.say("It is wet.")
    return t


def parallel(t: Transcript, *calls: tuple[str, str | None]) -> None:
    """Calls made at once: a line each, then their results, each hanging on its call; None is
    never answered."""
    opened = []
    for name, result in calls:
        opened.append(
            (
                name,
                result,
                t.block(
                    {"type": "tool_use", "id": name, "name": "Bash", "input": {"command": name}}
                ),
            )
        )
    for name, result, parent in opened:
        if result is not None:
            answer = {"type": "tool_result", "tool_use_id": name, "content": result}
            t.add("user", {"role": "user", "content": [answer]}, parentUuid=parent)


def as_subagent(t: Transcript, agent_id: str, parent: str) -> str:
    """A transcript's text as that of a subagent."""
    t.lines = [
        {**line, "sessionId": parent, "isSidechain": True, "agentId": agent_id} for line in t.lines
    ]
    return t.text()
