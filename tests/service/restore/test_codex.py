"""Codex's threads, restored: rollouts of both dialects, forks, rollbacks, compactions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.service.restore.helpers import Json, bring_back, lines, seqs, texts
from whyfor.model.errors import NotFound
from whyfor.service.restore import RestoredSource

Cli = Callable[..., Result]
THREAD = "019a0000-0000-7000-8000-00000000000{}"


class Rollout:
    """A thread, record by record."""

    def __init__(
        self, number: int, *, day: str = "2026-05-01", paginated: bool = True, **head: object
    ) -> None:
        self.id = THREAD.format(number)
        self.day, self.paginated = day, paginated
        self.first = 0
        self.records: list[Json] = []
        meta = {
            "id": self.id,
            "session_id": self.id,
            "timestamp": f"{day}T10:00:00.000Z",
            "cwd": "/code/shop",
        }
        self.add(
            "session_meta", {**meta, "originator": "codex_cli_rs", "cli_version": "0.166.0", **head}
        )

    def add(self, kind: str, payload: Json) -> None:
        number = len(self.records)
        record: Json = {
            "timestamp": f"{self.day}T10:00:{number:02}.000Z",
            "type": kind,
            "payload": payload,
        }
        self.records.append(
            {**record, "ordinal": self.first + number} if self.paginated else record
        )

    def prompt(self, text: str) -> None:
        self.add("event_msg", {"type": "task_started", "turn_id": f"turn {text}"})
        self.add(
            "turn_context", {"turn_id": f"turn {text}", "cwd": "/code/shop", "model": "gpt-test"}
        )
        self._message("user", "input_text", text)

    def say(self, text: str) -> None:
        self._message("assistant", "output_text", text)
        total = {"input_tokens": len(self.records), "output_tokens": 5}
        spent = {
            "response_id": f"r{self.id}{len(self.records)}",
            "usage": total,
            "thread_token_usage": total,
        }
        self.add("token_usage_record", {"thread_id": self.id, "session_id": self.id, **spent})

    def _message(self, role: str, kind: str, text: str) -> None:
        ident = f"msg_{self.id[-1]}_{len(self.records)}"
        content = [{"type": kind, "text": text}]
        self.add(
            "response_item", {"type": "message", "id": ident, "role": role, "content": content}
        )

    def call(self, name: str) -> None:
        given = json.dumps({"cmd": name})
        self.add(
            "response_item",
            {"type": "function_call", "name": "exec_command", "arguments": given, "call_id": name},
        )

    def answer(self, name: str) -> None:
        self.add(
            "response_item",
            {"type": "function_call_output", "call_id": name, "output": f"ran {name}"},
        )

    def text(self) -> str:
        return "".join(json.dumps(record) + "\n" for record in self.records)

    def save(self, home: Path) -> Path:
        folder = home / ".codex" / "sessions" / self.day.replace("-", "/")
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"rollout-{self.day}T10-00-00-{self.id}.jsonl"
        path.write_text(self.text())
        return path


def planted(number: int = 1, **more: object) -> Rollout:
    r = Rollout(number, **more)  # type: ignore[arg-type]
    r.add(
        "response_item",
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "Be kind."}],
        },
    )
    r.prompt(f"Plant a fern ({number})")
    r.say("Digging.")
    r.call(f"commit {number}")
    r.call(f"push {number}")
    r.answer(f"commit {number}")
    r.answer(f"push {number}")
    r.say("The fern stands.")
    return r


def items(records: list[Json]) -> list[str]:
    """The conversation of a rollout in short."""
    payloads = [record["payload"] for record in records if record["type"] == "response_item"]
    return [p.get("call_id") or p["content"][0]["text"] for p in payloads]


@pytest.mark.parametrize("paginated", [True, False])
def test_a_thread_cut_at_an_event_keeps_its_records(
    home: Path, cwd: Path, cli: Cli, paginated: bool
) -> None:
    r = planted(paginated=paginated)
    path = r.save(home)
    before = path.read_bytes()
    cli("ingest")
    tokens = cli("stats", "--json").json["tokens"]
    commit = seqs("codex", r.id, "tool.result")[0]
    made = bring_back(cwd, RestoredSource("codex", r.id, commit), agent="codex")

    assert path.read_bytes() == before
    assert re.fullmatch(
        r"rollout-[-T0-9]{19}-" + made.session_id + r"\.jsonl", Path(made.path).name
    )
    assert made.session_id[14] == "7" and made.command == f"codex resume {made.session_id}"
    head, *rest, name = lines(made.path)
    assert items(rest) == [
        "Be kind.",
        "Plant a fern (1)",
        "Digging.",
        "commit 1",
        "push 1",
        "commit 1",
        "push 1",
    ]
    payload = head["payload"]
    assert (payload["id"], payload["cwd"], payload["forked_from_id"]) == (
        made.session_id,
        str(cwd),
        r.id,
    )
    assert {p["thread_id"] for record in rest if "thread_id" in (p := record["payload"])} == {
        made.session_id
    }
    assert {p["cwd"] for record in rest if "cwd" in (p := record["payload"])} == {str(cwd)}
    if paginated:
        assert [record["ordinal"] for record in (head, *rest)] == list(range(len(rest) + 1))
    assert name["payload"]["thread_name"] == "Restored 126e95e0: Ferns"
    cli("ingest")
    assert cli("stats", "--json").json["tokens"] == tokens
    assert texts("codex", made.session_id, "user.prompt") == [("user.prompt", "Plant a fern (1)")]


def test_a_fork_brings_its_beginning_along(home: Path, cwd: Path, cli: Cli) -> None:
    parent = planted(1)
    base = {
        "thread_id": parent.id,
        "end_ordinal_exclusive": 5,
        "end_byte_offset": len(parent.text()),
    }
    child = Rollout(
        2, day="2026-05-02", history_mode="paginated", history_base=base, forked_from_id=parent.id
    )
    child.prompt("And the rose")
    child.say("Cut.")
    base = {"thread_id": child.id, "end_ordinal_exclusive": 9, "end_byte_offset": len(child.text())}
    grandchild = Rollout(3, day="2026-05-03", history_mode="paginated", history_base=base)
    grandchild.prompt("And the lily")
    for r in (child, grandchild):
        r.save(home)
    cli("ingest")
    with pytest.raises(
        NotFound, match=f"session {parent.id}, which it was forked from, is not kept"
    ):
        bring_back(cwd, RestoredSource("codex", grandchild.id), agent="codex")

    parent.save(home)
    cli("ingest")
    found = lines(bring_back(cwd, RestoredSource("codex", grandchild.id), agent="codex").path)
    said = [text for text in items(found) if text.startswith(("Plant", "The", "And"))]
    assert said == ["Plant a fern (1)", "The fern stands.", "And the rose", "And the lily"]
    assert [record["type"] for record in found].count("session_meta") == 1
    assert "history_base" not in found[0]["payload"]
    assert [record["ordinal"] for record in found[:-1]] == list(range(len(found) - 1))


def test_threads_become_one_as_their_models_knew_them(home: Path, cwd: Path, cli: Cli) -> None:
    a, b = planted(1), planted(2, day="2026-05-02")
    a.prompt("A mistake")
    a.say("Oops.")
    a.add("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    summary = {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "Summary: a fern"}],
    }
    b.add("compacted", {"message": "", "replacement_history": [summary]})
    b.prompt("Go on")
    b.say("Gone on.")
    for r in (a, b):
        r.save(home)
    cli("ingest")
    tokens = cli("stats", "--json").json["tokens"]
    made = bring_back(
        cwd, RestoredSource("codex", a.id), RestoredSource("codex", b.id), agent="codex"
    )

    said = items(lines(made.path))
    marker = said.index(next(text for text in said if text.startswith("[Whyfor: ")))
    assert said[:marker] == [
        "Plant a fern (1)",
        "Digging.",
        *["commit 1", "push 1"] * 2,
        "The fern stands.",
    ]
    assert b.id in said[marker]
    assert said[marker + 1 :] == ["Summary: a fern", "Go on", "Gone on."]
    cli("ingest")
    assert cli("stats", "--json").json["tokens"] == tokens
    shown = [text for _, text in texts("codex", made.session_id, "user.prompt")]
    assert shown == ["Plant a fern (1)", "Summary: a fern", "Go on"]


def test_bare_items_of_the_first_versions_are_wrapped(home: Path, cwd: Path, cli: Cli) -> None:
    folder = home / ".codex" / "sessions" / "2025" / "05" / "01"
    folder.mkdir(parents=True)
    bare = [
        {"id": THREAD.format(1), "timestamp": "2025-05-01T10:00:00.000Z", "instructions": None},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Good day."}],
        },
    ]
    path = folder / f"rollout-2025-05-01T10-00-00-{THREAD.format(1)}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in bare))
    cli("ingest")
    found = lines(bring_back(cwd, RestoredSource("codex", THREAD.format(1)), agent="codex").path)
    assert [record["type"] for record in found] == [
        "session_meta",
        "response_item",
        "response_item",
        "event_msg",
    ]
    assert items(found) == ["Hello", "Good day."]
