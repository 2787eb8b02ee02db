"""Transcripts for tests of the session page, line by line in Claude Code's own format."""

from __future__ import annotations

import base64
import json
import struct
import uuid
import zlib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any


class Talk:
    """A session in the making; every line hangs on the one before it."""

    def __init__(self, home: Path, cwd: str, name: str, at: datetime | None = None) -> None:
        self.ident = str(uuid.uuid5(uuid.NAMESPACE_URL, name))
        self.cwd = cwd
        self.at = at or datetime(2026, 3, 4, 13, 41, tzinfo=UTC)
        self.lines: list[str] = []
        self.written = 0
        self.parent: str | None = None
        self.branch = "retry-idempotency"
        self.number = 0
        folder = "".join(c if c.isascii() and c.isalnum() else "-" for c in cwd)
        self.path = home / ".claude" / "projects" / folder[:200] / f"{self.ident}.jsonl"

    def line(self, kind: str, message: Any = None, seconds: float = 4, **extra: Any) -> str:
        self.number += 1
        self.at += timedelta(seconds=seconds)
        uid = str(uuid.uuid5(uuid.UUID(self.ident), str(self.number)))
        known = {
            "parentUuid": self.parent,
            "isSidechain": False,
            "type": kind,
            "uuid": uid,
            "cwd": self.cwd,
        }
        known |= {
            "timestamp": self.at.isoformat().replace("+00:00", "Z"),
            "sessionId": self.ident,
            "version": "2.1.197",
        }
        whole = {**known, "gitBranch": self.branch, **extra}
        if message is not None:
            whole["message"] = message
        self.lines.append(json.dumps(whole, ensure_ascii=False))
        self.parent = uid
        return uid

    def title(self, text: str) -> None:
        self.lines.append(
            json.dumps({"type": "ai-title", "aiTitle": text, "sessionId": self.ident})
        )

    def prompt(self, text: str, *pictures: bytes) -> str:
        blocks: list[Any] = [{"type": "text", "text": text}]
        for picture in pictures:
            source = {
                "type": "base64",
                "media_type": "image/png",
                "data": base64.b64encode(picture).decode(),
            }
            blocks.append({"type": "image", "source": source})
        return self.line(
            "user",
            {"role": "user", "content": blocks if pictures else text},
            origin={"kind": "human"},
        )

    def _assistant(self, block: dict[str, Any], seconds: float = 4) -> None:
        usage = {"input_tokens": 900, "cache_read_input_tokens": 9000, "output_tokens": 140}
        message = {
            "id": f"msg_{self.number}",
            "role": "assistant",
            "model": "opus-4.6",
            "content": [block],
        }
        self.line("assistant", {**message, "usage": usage}, seconds, requestId=f"req_{self.number}")

    def say(self, text: str) -> None:
        self._assistant({"type": "text", "text": text})

    def think(self, text: str, seconds: float = 12) -> None:
        self._assistant({"type": "thinking", "thinking": text, "signature": "x"}, seconds)

    def ask_for(self, name: str, given: dict[str, Any]) -> str:
        ident = f"toolu_{self.number:06}"
        self._assistant({"type": "tool_use", "id": ident, "name": name, "input": given})
        return ident

    def answer(
        self,
        ident: str,
        result: Any,
        *,
        failed: bool = False,
        seconds: float = 2,
        outcome: Any = None,
    ) -> None:
        block = {"type": "tool_result", "tool_use_id": ident, "content": result, "is_error": failed}
        extra = {"toolUseResult": outcome} if outcome is not None else {}
        self.line("user", {"role": "user", "content": [block]}, seconds, **extra)

    def call(self, name: str, given: dict[str, Any], result: Any, **more: Any) -> str:
        ident = self.ask_for(name, given)
        self.answer(ident, result, **more)
        return ident

    def edit(self, path: str, start: int, lines: list[str]) -> None:
        old = [line[1:] for line in lines if line[0] != "+"]
        new = [line[1:] for line in lines if line[0] != "-"]
        hunk = {
            "oldStart": start,
            "oldLines": len(old),
            "newStart": start,
            "newLines": len(new),
            "lines": lines,
        }
        given = {
            "file_path": f"{self.cwd}/{path}",
            "old_string": "\n".join(old),
            "new_string": "\n".join(new),
        }
        self.call("Edit", given, "The file has been updated.", outcome={"structuredPatch": [hunk]})

    def subagent(
        self, what: str, task: str, calls: list[tuple[str, dict[str, Any], str]], result: str
    ) -> None:
        agent_id = f"a{self.number:07}"
        given = {"description": what, "prompt": task, "subagent_type": "Explore"}
        ident = self.ask_for("Task", given)
        child = Talk(Path("/"), self.cwd, f"{self.ident}{agent_id}", self.at)
        child.ident = self.ident
        child.number = self.number * 1000
        child.prompt(task)
        for call in calls:
            child.call(*call)
        child.say(result)
        self.at = child.at
        self.answer(
            ident,
            [{"type": "text", "text": result}],
            outcome={"agentId": agent_id, "status": "completed"},
        )
        beside = self.path.with_suffix("") / "subagents" / f"agent-{agent_id}.jsonl"
        beside.parent.mkdir(parents=True, exist_ok=True)
        told = [
            {**json.loads(line), "isSidechain": True, "agentId": agent_id} for line in child.lines
        ]
        beside.write_text("".join(json.dumps(line) + "\n" for line in told))

    def question(
        self, text: str, labels: list[str], chosen: str | None, seconds: float = 48
    ) -> None:
        asked = [
            {
                "question": text,
                "header": "Choice",
                "options": [{"label": label} for label in labels],
            }
        ]
        ident = self.ask_for("AskUserQuestion", {"questions": asked})
        if chosen is not None:
            self.answer(
                ident, f'"{text}"="{chosen}"', seconds=seconds, outcome={"answers": {text: chosen}}
            )

    def compact(self, before: int, after: int, summary: str) -> None:
        meta = {"trigger": "auto", "preTokens": before, "postTokens": after}
        logical, self.parent = self.parent, None
        self.line(
            "system",
            None,
            subtype="compact_boundary",
            compactMetadata=meta,
            logicalParentUuid=logical,
        )
        self.line("user", {"role": "user", "content": summary}, isCompactSummary=True)

    def save(self) -> str:
        """What is new since it was last saved is appended, as the agent does it."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(line + "\n" for line in self.lines[self.written :])
        self.written = len(self.lines)
        return self.ident


def png(width: int = 40, height: int = 24) -> bytes:
    """A small picture that is one."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(
        b"\x00" + b"".join(bytes([x * 6 % 256, y * 9 % 256, 160]) for x in range(width))
        for y in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


_EDIT = """\
 def charge(order: Order, amount: Money) -> Receipt:
-    for attempt in range(3):
+    key = idempotency_key(order)
+    for attempt in range(MAX_ATTEMPTS):
         try:
-            return gateway.post("/charges", body(order, amount))
+            return gateway.post(
+                "/charges",
+                body(order, amount),
+                headers={"Idempotency-Key": key},
+            )
         except GatewayTimeout:
-            time.sleep(2 ** attempt)
+            clock.sleep(backoff(attempt))
+    raise ChargeFailed(order.id, key)"""


def charges(home: Path, cwd: str, make_commit: Any) -> Talk:
    """A session with one of everything."""
    talk = Talk(home, cwd, "charges")
    talk.title("Retry card charges without charging twice")
    talk.prompt(
        "Charges sometimes run twice when the gateway times out. Look at src/checkout/charge.py "
        "and tell me why "
        "before changing anything.",
        png(),
    )
    talk.think("The retry loop may send a second request.")
    talk.call(
        "Read",
        {"file_path": f"{cwd}/src/checkout/charge.py"},
        "\n".join(f"{n:5}→line {n}" for n in range(1, 85)),
    )
    found = [
        f"src/checkout/orders.py:{n}:    receipt = charge(order, order.total)" for n in range(9)
    ]
    talk.call("Grep", {"pattern": "charge\\(", "path": "src"}, "\n".join(found))
    grep = ("Grep", {"pattern": "charge"}, "src/checkout/orders.py")
    talk.subagent(
        "Find every path that can charge an order",
        "List all callers of charge().",
        [grep] * 7,
        "Three of them.",
    )
    talk.say(
        "The retry loop is the cause. On a timeout it sends a *new* request, but the gateway may "
        "already have taken "
        "the money:\n\n1. `charge()` posts to `/charges` and waits 5 s.\n2. The gateway charges "
        "the card after 6 s. "
        "We have stopped listening.\n3. The loop posts again, without a key, so the gateway sees a "
        "second purchase.\n\n"
        "Nothing changed yet. Two ways to fix it: send an idempotency key, or ask the gateway "
        "before each retry."
    )
    talk.prompt(
        "Good. One idempotency key per order attempt. Keep the public signature of charge()."
    )
    talk.think(
        "The key must stay the same across retries of one attempt, but differ when the customer "
        "tries again.",
        21,
    )
    talk.question(
        "How long should a key stay valid? The gateway allows 1 to 72 hours.",
        ["1 hour", "24 hours", "72 hours"],
        "24 hours",
    )
    talk.edit("src/checkout/charge.py", 24, _EDIT.split("\n"))
    test = (
        "def test_charged_once(fake):\n    charge(order(), Money(12))\n    assert "
        "len(fake.requests) == 1\n"
    )
    talk.call(
        "Write",
        {"file_path": f"{cwd}/tests/test_charge_once.py", "content": test},
        "created",
        outcome={"type": "create"},
    )
    lines = [f"E   line {n}" for n in range(20)] + ["1 failed, 3 passed in 5.81s"]
    talk.call(
        "Bash",
        {"command": "pytest -q tests/test_charge_once.py"},
        "Exit code 1\n" + "\n".join(lines),
        failed=True,
        seconds=6,
    )
    talk.edit(
        "tests/test_charge_once.py",
        3,
        [
            "-    assert len(fake_gateway.requests) == 1",
            "+    assert len(fake_gateway.keys()) == 1",
        ],
    )
    talk.call("Bash", {"command": "pytest -q"}, "212 passed", seconds=48)
    make_commit(talk, "Charge once when the gateway times out")
    make_commit(talk, "Note the change in the changelog")
    talk.say(
        "Done. Every attempt now carries one key, valid for 24 hours. `charge()` keeps its "
        "signature."
    )
    talk.prompt("The timeout test is slow, use the fake clock we already have.")
    for name in ("tests/conftest.py", "src/checkout/clock.py"):
        talk.call("Read", {"file_path": f"{cwd}/{name}"}, "class Clock: ...")
    for number in (1, 2):
        talk.edit(
            "tests/test_charge_once.py", number, ["-    time.sleep(5)", "+    clock.advance(5)"]
        )
    for command in ("pytest -q tests", "ruff check .", "git diff --stat"):
        talk.call("Bash", {"command": command}, "ok", seconds=9)
    talk.say(
        "The test now takes 20 ms. `backoff()` sleeps through `clock`, so production code did not "
        "change otherwise."
    )
    make_commit(talk, "Cover the timeout with the fake clock")
    talk.compact(
        162_000, 21_000, "You want charges to be idempotent. Key = order id + attempt. Tests pass."
    )
    talk.prompt("What happens to orders already in flight?")
    denied = talk.ask_for("Bash", {"command": "psql -c 'select count(*) from charges'"})
    refusal = "The user doesn't want to proceed with this tool use."
    talk.answer(denied, refusal, failed=True, outcome="User rejected tool use")
    talk.say("They keep the old path until they finish; a charge without a key is never retried.")
    return talk


def long(home: Path, cwd: str, turns: int = 40) -> Talk:
    """More than fits on a page: each turn some calls with long outputs."""
    talk = Talk(home, cwd, "long")
    talk.title("A long day")
    for turn in range(1, turns + 1):
        talk.prompt(f"Prompt number {turn}: please go on with step {turn}.")
        for step in range(3):
            talk.call(
                "Bash",
                {"command": f"make step-{turn}-{step}"},
                "\n".join(f"out {turn} {n}" for n in range(120)),
            )
        talk.say(f"Step {turn} is **done**, and here is why it matters. " + "It does. " * 30)
    return talk


def rewound(home: Path, cwd: str) -> Talk:
    """A turn that was taken back: the next prompt hangs on what came before it."""
    talk = Talk(home, cwd, "rewound")
    talk.title("Another way")
    talk.prompt("Which way is shorter?")
    talk.say("The left one.")
    before = talk.parent
    talk.prompt("Take the left one.")
    talk.say("It is closed.")
    talk.parent = before
    talk.prompt("Take the right one.")
    talk.say("Arrived.")
    return talk


def hostile(home: Path, cwd: str, texts: list[str]) -> Talk:
    """Every field of the page holds something that wants to act."""
    talk = Talk(home, cwd, "hostile")
    whole = "\n\n".join(texts)
    talk.branch = texts[0] + texts[2]
    talk.title(whole[:400])
    talk.prompt(whole, b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")
    talk.think(whole)
    talk.say(whole)
    for text in texts:
        talk.say(text)
        talk.say(
            f"```{text}\n{text}\n```\n[{text}]({text})\n\n# {text}\n\n> {text}\n\n| {text} | b "
            f"|\n|-|-|\n| {text} | d |"
        )
        talk.call("Bash", {"command": text, "description": text}, text, failed=True)
        talk.call("Read", {"file_path": f"{cwd}/{text}"}, text)
        talk.call(text, {text: text, "list": [text]}, text)
        talk.edit(text, 3, [f" {text}", f"-{text} old", f"+{text} new"])
        talk.call("Grep", {"pattern": text, "path": text}, text)
    talk.subagent(whole, whole, [("Bash", {"command": whole}, whole)], whole)
    talk.question(whole, texts, texts[0])
    talk.compact(10, 5, whole)
    talk.prompt(whole)
    denied = talk.ask_for(texts[1], {"command": whole})
    talk.answer(denied, "no", failed=True, outcome="User rejected tool use")
    talk.line("system", None, subtype="api_error", error={"message": whole})
    talk.line(
        "user",
        {
            "role": "user",
            "content": (
                f"<command-name>{texts[1]}</command-name><command-args>{whole}</command-args>"
            ),
        },
    )
    return talk
