"""Every agent's way of keeping things: documents that are rewritten, rows that change, files
that are packed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
import zstandard

from tests.agents.readers import test_gemini as gemini
from tests.agents.readers.test_opencode import Writer
from tests.capture.snapshot import assert_equal, derived
from tests.capture.test_ingest import write
from tests.service.forget.traces import CANARY, traces
from whyfor.capture.filters.forgotten import TextPattern
from whyfor.config import Settings
from whyfor.service.forget import ForgetArguments, carry_out, forget
from whyfor.service.forget.records import ForgetRequest
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.store.open import open_store
from whyfor.story.session_lookup import load_conversation

CODEX = "019d0000-0000-7000-8000-000000000001"
STAYS = "a word about apples"
Grow = Callable[[], None]


def codex(home: Path, *, packed: bool = False, more: int = 0) -> None:
    when = "2026-05-01T10:00:00.000Z"
    meta = {
        "id": CODEX,
        "timestamp": when,
        "cwd": "/code/shop",
        "cli_version": "0.166.0",
        "source": "cli",
    }
    lines: list[tuple[str, Any]] = [("session_meta", meta)]
    for text in (f"the word is {CANARY}", STAYS, *(f"more of it, {n}" for n in range(more))):
        said = {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": text}],
        }
        lines += [("response_item", said), ("event_msg", {"type": "user_message", "message": text})]
        given = json.dumps({"command": ["bash", "-lc", f"echo {text}"]})
        lines.append(
            (
                "response_item",
                {"type": "function_call", "name": "shell", "arguments": given, "call_id": "c"},
            )
        )
    history = [lines[1][1]]
    if more:
        lines.append(("compacted", {"message": "", "replacement_history": history}))
    data = b"".join(
        json.dumps({"timestamp": when, "type": kind, "payload": payload}).encode() + b"\n"
        for kind, payload in lines
    )
    path = (
        home
        / ".codex"
        / "sessions"
        / "2026"
        / "05"
        / "01"
        / f"rollout-2026-05-01T10-00-00-{CODEX}.jsonl"
    )
    if packed:
        path.unlink()
        path, data = path.with_name(path.name + ".zst"), zstandard.ZstdCompressor().compress(data)
    write(path, data)


def document(home: Path, *, more: int = 0, compact: bool = False) -> None:
    messages = [
        gemini.user("m1", f"the word is {CANARY}"),
        gemini.gemini(
            "m2",
            f"so it is {CANARY}",
            toolCalls=[gemini.call("c1", "shell", {"command": CANARY}, CANARY)],
        ),
        gemini.user("m3", STAYS, second=3),
        *(gemini.user(f"n{n}", f"more of it, {n}", second=9 + n) for n in range(more)),
    ]
    about = {**gemini.HEADER, "lastUpdated": gemini.at(20 + more), "messages": messages}
    text = json.dumps(about, indent=None if compact else 2)
    write(
        home / ".gemini" / "tmp" / "ab12" / "chats" / "session-2026-05-01T10-00-5e551011.json", text
    )


def log(home: Path, *, more: int = 0) -> None:
    messages = [
        gemini.user("m1", f"the word is {CANARY}"),
        gemini.gemini("m2", CANARY),
        gemini.user("m3", STAYS),
    ]
    later = [gemini.user(f"n{n}", f"more of it, {n}") for n in range(more)]
    replay = (
        [{"$set": {"messages": [*messages, *later], "lastUpdated": gemini.at(30)}}] if more else []
    )
    lines = [gemini.HEADER, *messages, *later, *replay]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    write(
        home / ".gemini" / "tmp" / "ab12" / "chats" / "session-2026-05-01T10-00-5e551011.jsonl",
        text,
    )


@pytest.fixture
def opencode(home: Path) -> Iterator[Writer]:
    folder = home / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    writer = Writer(folder / "opencode.db")
    yield writer
    writer.db.close()


def rows(writer: Writer) -> None:
    writer.session(title="A title")
    writer.user("m1")
    writer.part("p1", "m1", "text", text=f"the word is {CANARY}")
    writer.assistant("m2")
    writer.part("p2", "m2", "text", text=f"so it is {CANARY}")
    writer.tool("p3", "m2", "bash", {"command": CANARY}, output=CANARY)
    writer.user("m3")
    writer.part("p4", "m3", "text", text=STAYS)
    writer.session("ses_2", title="Another")
    writer.user("m4", "ses_2")
    writer.part("p5", "m4", "text", "ses_2", text=STAYS)


def change(writer: Writer) -> None:
    """What OpenCode does later to rows that are there: it compacts, it renames."""
    writer.part("p2", "m2", "text", text=f"so it is {CANARY}", time={"compacted": 1})
    writer.tool("p3", "m2", "bash", {"command": CANARY}, output=CANARY, time={"compacted": 1})
    writer.user("m5")
    writer.part("p6", "m5", "text", text="more of it, 0")


@pytest.fixture(params=["codex", "packed", "document", "compact document", "log", "opencode"])
def agent(request: pytest.FixtureRequest, home: Path, settings: Settings) -> tuple[str, Grow]:
    """A session of the agent that was read, its id, and how it goes on."""
    kind = request.param
    compact = kind.startswith("compact")
    if kind in ("codex", "packed"):
        codex(home)
        known: tuple[str, Grow] = CODEX, lambda: codex(home, packed=kind == "packed", more=2)
    elif kind.endswith("document"):
        document(home, compact=compact)
        known = gemini.SESSION, lambda: document(home, compact=compact, more=2)
    elif kind == "log":
        log(home)
        known = gemini.SESSION, lambda: log(home, more=2)
    else:
        writer: Writer = request.getfixturevalue("opencode")
        rows(writer)
        known = "ses_1", lambda: change(writer)
    ingest(settings)
    assert traces(settings.home)
    return known


def test_a_forgotten_session_stays_forgotten_when_it_goes_on(
    agent: tuple[str, Grow], settings: Settings
) -> None:
    ident, grow = agent
    forget(settings, Path.cwd(), ForgetArguments(ident))
    assert traces(settings.home) == []
    grow()
    ingest(settings)
    assert traces(settings.home) == []
    assert ident not in {row[1] for row in derived(settings)["sessions"]}
    rebuild(settings)
    ingest(settings)
    assert traces(settings.home) == []
    assert ident not in {row[1] for row in derived(settings)["sessions"]}


def test_a_forgotten_text_stays_forgotten_when_the_session_goes_on(
    agent: tuple[str, Grow], settings: Settings
) -> None:
    ident, grow = agent
    forget(settings, Path.cwd(), ForgetArguments(match=CANARY))
    assert traces(settings.home) == []
    after = derived(settings)
    rebuild(settings)
    assert_equal({**derived(settings), "sources": []}, {**after, "sources": []})
    grow()
    ingest(settings)
    assert traces(settings.home) == []
    texts = [event.text for event in load_conversation(settings, ident).events]
    assert STAYS in texts
    assert "more of it, 0" in texts
    assert ingest(settings).new_records == 0
    rebuild(settings)
    ingest(settings)
    assert traces(settings.home) == []


def test_records_of_some_events_go_and_stay_away(
    agent: tuple[str, Grow], settings: Settings
) -> None:
    """As for a commit, whatever the agent's format."""
    ident, _ = agent
    found = load_conversation(settings, ident)
    name = (found.session.agent, ident)
    _hide(
        settings,
        name,
        [event.seq for event in found.events if CANARY in event.text or CANARY in str(event.data)],
    )
    assert traces(settings.home) == []
    after = derived(settings)
    rebuild(settings)
    assert_equal({**derived(settings), "sources": []}, {**after, "sources": []})
    assert STAYS in [event.text for event in load_conversation(settings, ident).events]
    ingest(settings)
    assert traces(settings.home) == []


def _hide(settings: Settings, name: tuple[str, str], seqs: list[int]) -> None:
    with closing(open_store(settings.database)) as store:
        number = store.sessions.numbers([name])[name]
        keys = {key for key, seq in store.conversation.keys(number).items() if seq in seqs}
        words = [
            TextPattern(e.text[:60])
            for e in store.conversation.events(number)
            if e.seq in seqs and len(e.text) > 8
        ]
        carry_out(settings, store, ForgetRequest(events={name: keys}, words={name: words}))


def test_the_database_of_opencode_is_not_touched(opencode: Writer, settings: Settings) -> None:
    rows(opencode)
    ingest(settings)
    forget(settings, Path.cwd(), ForgetArguments("ses_1"))
    db = apsw.Connection(str(opencode.path), flags=apsw.SQLITE_OPEN_READONLY)
    assert CANARY in str(list(db.execute("SELECT data FROM part WHERE id='p1'")))
    db.close()
    assert [row[1] for row in derived(settings)["sessions"]] == ["ses_2"]
