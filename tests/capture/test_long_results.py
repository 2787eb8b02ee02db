"""Long results of tools: the database has their ends, and everybody who asks gets all of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.capture.snapshot import assert_equal, derived, found
from tests.capture.test_ingest import external, write
from tests.store.downgrade import downgrade
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.model.conversation import ToolCallItem
from whyfor.model.events import call_text
from whyfor.model.query import Filters, SessionFilter
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.service.sessions import event_page, sessions
from whyfor.service.show import session_item
from whyfor.store.open import OpenStore, reading_local
from whyfor.story.links.activity import acts
from whyfor.story.session_lookup import load_conversation
from whyfor.story.whole_text import whole_events

PRINTED = "[main 126e95e] Keep the till open"
LINES = [f"line {number} of what it printed" for number in range(400)]
OUTPUT = "\n".join([*LINES[:200], PRINTED, *LINES[200:]])
WHEN = "2026-05-01T10:00:00.000Z"


def claude(home: Path) -> str:
    said = Transcript("long")
    said.prompt("print it")
    said.call("Bash", {"command": "git commit -m x && cat log"}, OUTPUT)
    said.say("There it is.")
    said.save(home)
    return said.session_id


def claude_external(home: Path) -> str:
    said = Transcript("beside")
    said.prompt("print it")
    call = said.call("Bash", {"command": "cat log"}, "<persisted-output>saved</persisted-output>")
    said.say("There it is.")
    said.save(home)
    external(said, home, call, OUTPUT)
    return said.session_id


def codex(home: Path) -> str:
    ident = "019d0000-0000-7000-8000-000000000001"
    call = {"type": "function_call", "name": "exec_command", "call_id": "c1"}
    told = f"Chunk ID: f2\nProcess exited with code 0\nOutput:\n{OUTPUT}"
    records = [
        ("session_meta", {"id": ident, "timestamp": WHEN, "cwd": "/code/shop"}),
        ("response_item", {**call, "arguments": json.dumps({"cmd": "cat log"})}),
        (
            "response_item",
            {"type": "function_call_output", "call_id": "c1", "output": told},
        ),
    ]
    lines = [
        json.dumps({"timestamp": WHEN, "type": kind, "payload": payload})
        for kind, payload in records
    ]
    path = home / ".codex" / "sessions" / f"rollout-2026-05-01T10-00-00-{ident}.jsonl"
    write(path, "".join(f"{line}\n" for line in lines))
    return ident


def gemini(home: Path) -> str:
    ident = "7c1a1111-2222-4333-8444-555566667777"
    answer = {"functionResponse": {"id": "c1", "response": {"output": OUTPUT}}}
    call: dict[str, Any] = {"id": "c1", "name": "run_shell_command", "status": "success"}
    call |= {"args": {"command": "cat log"}, "timestamp": WHEN, "result": [answer]}
    said = {"id": "m1", "timestamp": WHEN, "type": "user", "content": "print it"}
    done = {"id": "m2", "timestamp": WHEN, "type": "gemini", "content": "", "toolCalls": [call]}
    whole = {"sessionId": ident, "projectHash": "0" * 64, "startTime": WHEN}
    path = home / ".gemini/tmp" / ("0" * 64) / "chats/session-2026-05-01T10-00-7c1a1111.json"
    write(path, json.dumps({**whole, "messages": [said, done]}, indent=2))
    return ident


AGENTS = {
    "claude": claude,
    "beside": claude_external,
    "codex": codex,
    "gemini": gemini,
}


@pytest.fixture(params=AGENTS)
def session(request: pytest.FixtureRequest, settings: Settings, home: Path) -> str:
    ident = AGENTS[request.param](home)
    ingest(settings)
    return ident


def results(settings: Settings, session: str, *, whole: bool) -> Iterator[str]:
    told = load_conversation(settings, session, whole=whole)
    return (event.text for event in told.events if event.kind == "tool.result")


def test_the_database_has_the_ends_of_it_only(settings: Settings, session: str) -> None:
    stored = settings.database.read_bytes()
    assert LINES[0].encode() in stored
    assert LINES[-1].encode() in stored
    assert LINES[200].encode() not in stored
    [short] = [text for text in results(settings, session, whole=False) if "line 0" in text]
    assert short.startswith(OUTPUT[:1500])
    assert short.endswith(OUTPUT[-500:])
    assert len(short) < 2010


def test_who_asks_for_a_session_gets_all_of_it(
    settings: Settings, session: str, cli: Callable[..., Any]
) -> None:
    assert OUTPUT in results(settings, session, whole=True)
    shown = cli("show", session, "--tools").out
    assert LINES[200] in shown
    told = cli("show", session, "--json").json["events"]
    assert OUTPUT in [event["text"] for event in told if event["kind"] == "tool.result"]
    [listed] = sessions(settings, SessionFilter(), limit=0, everything=False)
    agent = listed.session.agent
    page = event_page(settings, agent, session, after=0, limit=100)
    assert OUTPUT in [event.text for event in page.items]


def test_a_call_is_shown_whole_when_it_is_opened(settings: Settings, session: str) -> None:
    with reading_local(settings) as library:
        number = library.sessions.find(session).id
        agent = library.sessions.find(session).agent
        events = list(library.conversation.events(number))
    call = next(event.seq for event in events if event.kind == "tool.call")
    _, item = session_item(settings, agent, session, call)
    assert isinstance(item, ToolCallItem)
    if "<persisted-output>" not in item.output:  # what is kept beside is told by itself
        assert item.output == OUTPUT
        assert item.meta == ["401 lines"]


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_a_commit_that_it_says_was_made_is_known(
    agent: str, settings: Settings, home: Path
) -> None:
    session = AGENTS[agent](home)
    ingest(settings)
    with reading_local(settings) as library:
        number = library.sessions.find(session).id
        found_acts = acts(library.conversation.events(number))
    printed = [pair for made in found_acts.made for pair in made.printed]
    assert printed == [("126e95e", "Keep the till open")]


def test_it_is_the_same_after_a_rebuild(settings: Settings, session: str) -> None:
    before, told = derived(settings), list(results(settings, session, whole=True))
    rebuild(settings)
    assert_equal(derived(settings), before)
    assert list(results(settings, session, whole=True)) == told


def test_a_result_that_grows_is_told_as_it_is_now(settings: Settings, home: Path) -> None:
    ident = gemini(home)
    ingest(settings)
    path = next((home / ".gemini").rglob("session-*.json"))
    now = OUTPUT.replace(LINES[250], "another line in the middle")
    write(path, path.read_text().replace(LINES[250], "another line in the middle"))
    ingest(settings)
    assert now in results(settings, ident, whole=True)
    write(path, path.read_text().replace(json.dumps(now)[1:-1], "short"))
    ingest(settings)
    assert list(results(settings, ident, whole=True)) == ["short"]
    with reading_local(settings) as library:
        assert library.conversation.long_texts(library.sessions.find(ident).id) == {}


def test_one_whose_segment_is_lost_is_told_by_its_ends(settings: Settings, home: Path) -> None:
    ident = claude(home)
    ingest(settings)
    for segment in settings.segments.rglob("*.zst"):
        segment.unlink()
    [told] = results(settings, ident, whole=True)
    assert told.startswith(OUTPUT[:1500])
    assert told.endswith(OUTPUT[-500:])


def test_what_calls_were_given_stands_in_the_database_once(settings: Settings, home: Path) -> None:
    said = Transcript("calls")
    said.prompt("write it")
    said.call("Write", {"file_path": "/code/shop/a.py", "content": "hippopotamus\n", "mode": 7})
    said.save(home)
    ingest(settings)
    [call] = [e for e in load_conversation(settings, said.session_id).events if e.name == "Write"]
    assert call.text == "/code/shop/a.py\nhippopotamus\n\n7"
    assert call.text == call_text(call.data or {})
    with reading_local(settings) as library:
        rows = list(library.db.execute("SELECT text FROM events WHERE kind='tool.call'"))
        assert rows == [("",)]
        texts = list(library.db.execute("SELECT text FROM event_texts WHERE kind='tool.call'"))
        assert texts == [(call.text,)], "the search index reads it so"
    assert [hit["session_id"] for hit in found(settings, "hippopotamus")] == [said.session_id]


# -- databases of the version before -------------------------------------------------------------


def as_version_thirteen(settings: Settings) -> None:
    """Make the database what the version before would have written."""
    with reading_local(settings) as library:
        rows = [
            (event.text, (number << 24) + event.seq)
            for (number,) in library.db.execute("SELECT id FROM sessions")
            for event in whole_events(library, number, library.conversation.events(number))
        ]
    db = apsw.Connection(str(settings.database))
    db.execute("BEGIN")
    db.executemany("UPDATE events SET text=? WHERE id=?", rows)
    db.execute("COMMIT")
    downgrade(db, 13)
    db.close()


@pytest.fixture
def older(settings: Settings, home: Path) -> dict[str, Any]:
    """A database of version 13; returns what the one of this version says."""
    for make in AGENTS.values():
        make(home)
    said = Transcript("larger")
    for number in range(40):
        said.prompt(f"print number {number}")
        said.call("Bash", {"command": f"cat {number}"}, f"{OUTPUT}{number}" * 3)
    said.save(home)
    ingest(settings)
    before = derived(settings)
    as_version_thirteen(settings)
    return before


def test_a_database_of_the_version_before_becomes_smaller_and_says_the_same(
    settings: Settings, older: dict[str, Any]
) -> None:
    size = settings.database.stat().st_size
    [told] = [t for t in results(settings, codex_id(), whole=True) if "line 200" in t]
    assert told == OUTPUT, "until the next ingest, too"
    assert settings.database.stat().st_size >= size
    ingest(settings)
    assert_equal(derived(settings), older)
    assert settings.database.stat().st_size < 0.6 * size
    again = settings.database.stat().st_mtime_ns
    ingest(settings)
    assert settings.database.stat().st_mtime_ns == again, "once is enough"


def codex_id() -> str:
    return "019d0000-0000-7000-8000-000000000001"


def test_one_that_cannot_be_read_again_as_a_whole_stays_as_it_is(
    settings: Settings, home: Path, older: dict[str, Any]
) -> None:
    for segment in settings.segments.rglob("*.zst"):
        segment.unlink()
    ingest(settings)
    assert OUTPUT in results(settings, codex_id(), whole=True)
    with reading_local(settings) as library:
        assert library.mark("renew") == 0, "it is not tried again"


def test_it_may_be_killed_while_it_becomes_smaller(
    settings: Settings, home: Path, older: dict[str, Any]
) -> None:
    environment = {"HOME": str(home), "WHYFOR_HOME": str(settings.home), "PATH": "/usr/bin:/bin"}
    for _ in range(3):
        run = subprocess.Popen(
            [sys.executable, "-m", "whyfor", "ingest"], env=environment, stdout=subprocess.DEVNULL
        )
        fresh = settings.home / "rebuild.db"
        while run.poll() is None and not fresh.exists():
            time.sleep(0.001)
        run.send_signal(signal.SIGKILL)
        run.wait()
        assert OUTPUT in results(settings, codex_id(), whole=True)
    ingest(settings)
    assert_equal(derived(settings), older)
    assert not fresh.exists()


# -- everything agents wrote ---------------------------------------------------------------------


def test_every_long_result_of_the_corpus_is_told_whole(
    corpus: Path, tmp_path: Path, settings: Settings
) -> None:
    """Those of a few files of each agent, against what their readers say."""
    del settings
    from tests.capture.test_corpus import kept_at

    picked = tmp_path / "home"
    for folder in (".claude", ".codex", ".gemini", ".copilot"):
        for path in sorted((corpus / folder).rglob("*.json*"))[::9]:
            write(picked / path.relative_to(corpus), path.read_bytes())
    own = kept_at(picked, tmp_path / "own")
    ingest(own)
    long = 0
    with reading_local(own) as library:
        for name in library.sessions.matching(Filters(), limit=None, subagents=True):
            long += shortened(library, name.id)
    assert long > 100


def shortened(library: OpenStore, number: int) -> int:
    """Check a session's long results; returns how many there are."""
    places = library.conversation.long_texts(number)
    for event in whole_events(library, number, library.conversation.events(number)):
        assert event.whole_size == 0
        if event.seq in places:
            text = event.text.replace("\u2400", "\x00")
            assert len(text.encode()) == places[event.seq][1].size
            assert text.count("\n") + 1 == places[event.seq][1].lines
        if event.kind == "tool.call" and (event.data or {}).get("input"):
            assert event.text == call_text(event.data or {})
    return len(places)
