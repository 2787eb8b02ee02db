"""What was said in a pause is stored nowhere: not then, not after it, not by a rebuild, whatever
the agent."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.capture.snapshot import Snapshot, assert_equal, derived
from tests.conftest import Result
from tests.service.pause.canary import assert_nowhere, kept
from tests.transcripts import Transcript
from whyfor.capture.filters import pauses
from whyfor.config import Settings
from whyfor.model.query import SessionFilter
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.service.sessions import sessions
from whyfor.store.journal import PauseEntry
from whyfor.story.session_lookup import load_conversation

Cli = Callable[..., Result]


def ms(time: str) -> int:
    return int(datetime.fromisoformat(f"2026-05-01T{time}+00:00").timestamp() * 1000)


def paused(settings: Settings, since: str, until: str | None, **scope: Any) -> PauseEntry:
    """A pause on the day the transcripts are of."""
    entry = PauseEntry(
        f"{since}-{until}".replace(":", ""), ms(since), ms(until) if until else None, **scope
    )
    pauses.write_pause(settings.home, entry)
    return entry


def in_the_middle(**more: Any) -> Transcript:
    """A turn before, one in and one after a pause from 10:00:15 to 10:00:35."""
    said = Transcript("middle", **more)
    said.prompt("before the pause")  # 10:00:00
    said.call("Bash", {"command": "make"}, "made")  # :05, :10
    said.say("canary answer to what was asked before")  # :15
    said.prompt("canary question")  # :20
    said.call("Bash", {"command": "cat canary.txt"}, "canary result")  # :25, :30
    said.say("after the pause")  # :35
    said.prompt("something else")  # :40
    said.say("of course")
    return said


def told(settings: Settings, session: str) -> list[str]:
    return [
        e.text
        for e in load_conversation(settings, session).events
        if e.kind in ("user.prompt", "assistant.message")
    ]


def rows(settings: Settings) -> Snapshot:
    """Less what an agent's database looks like as a file: only its rows are stored."""
    found = derived(settings)
    files = [
        row if ".db#" not in row[1] else row[:-2] for row in found["sources"] if row[4] != "rows"
    ]
    return {**found, "sources": files}


def check(settings: Settings, session: str, expected: list[str]) -> None:
    """Now, after another ingest, after a rebuild and after the database was lost."""

    def holds() -> None:
        assert_nowhere("canary", settings.home)
        assert told(settings, session) == expected

    holds()
    before = rows(settings)
    ingest(settings)
    assert_equal(rows(settings), before)
    rebuild(settings)
    holds()
    assert_equal(rows(settings), before)
    assert ingest(settings).new_records == 0
    for path in settings.home.glob("whyfor.db*"):
        path.unlink()
    ingest(settings)
    holds()
    assert_equal(rows(settings), before)


REST = ["before the pause", "after the pause", "something else", "of course"]


def test_what_was_said_in_a_pause_is_stored_nowhere(settings: Settings, home: Path) -> None:
    said = in_the_middle()
    said.save(home)
    paused(settings, "10:00:15", "10:00:35")
    ingest(settings)
    check(settings, said.session_id, REST)
    assert pauses.pending_pauses(settings.home) == [], (
        "it is over and in the journal: hooks need not look at it"
    )
    shutil.copytree(home / ".claude", home / "copy" / ".claude")
    ingest(settings, [home / "copy"])
    assert_nowhere("canary", settings.home)


@pytest.mark.parametrize("step", [1, 2, 3, 5])
def test_a_file_that_is_read_while_it_grows_loses_the_same(
    step: int, settings: Settings, home: Path
) -> None:
    said = in_the_middle()
    lines = said.text().splitlines(keepends=True)
    path = said.path(home)
    path.parent.mkdir(parents=True)
    pause = paused(settings, "10:00:15", None)
    for number in range(0, len(lines), step):
        if number + step > 7:
            pauses.write_pause(settings.home, PauseEntry(pause.id, pause.since, ms("10:00:35")))
        path.write_text("".join(lines[: number + step]))
        ingest(settings)
        assert_nowhere("canary", settings.home)
    check(settings, said.session_id, REST)


def test_a_line_that_is_half_written_in_a_pause_is_not_kept_either(
    settings: Settings, home: Path
) -> None:
    said = in_the_middle()
    head, _, rest = said.text().partition("canary answer")
    path = said.path(home)
    path.parent.mkdir(parents=True)
    paused(settings, "10:00:15", None)
    path.write_text(head + "canary answer")
    ingest(settings)
    assert_nowhere("canary", settings.home)
    path.write_text(head + "canary answer" + rest)
    ingest(settings)
    assert_nowhere("canary", settings.home)
    assert told(settings, said.session_id) == ["before the pause"]


def test_titles_last_prompts_and_summaries_of_it_are_not_kept_either(
    settings: Settings, home: Path
) -> None:
    said = in_the_middle()
    for line in (
        {"type": "ai-title", "aiTitle": "About the canary", "sessionId": said.session_id},
        {"type": "last-prompt", "lastPrompt": "canary question", "sessionId": said.session_id},
    ):
        said.lines.append(line)
    said.add("user", {"role": "user", "content": "We spoke of a canary."}, isCompactSummary=True)
    said.prompt("goodbye")
    said.save(home)
    paused(settings, "10:00:15", "10:00:35")
    ingest(settings)
    check(settings, said.session_id, [*REST, "goodbye"])
    assert (
        sessions(settings, SessionFilter(), limit=0, everything=False)[0].session.title
        == "before the pause"
    )


def test_a_session_that_ran_wholly_in_a_pause_is_not_listed(settings: Settings, home: Path) -> None:
    said = Transcript("whole", cwd="/code/canary")
    said.prompt("canary question")
    said.say("canary answer")
    said.save(home)
    other = Transcript("other", day="2026-05-02")
    other.prompt("hello")
    other.save(home)
    paused(settings, "09:00:00", "11:00:00")
    ingest(settings)
    assert [
        item.session.session_id
        for item in sessions(settings, SessionFilter(), limit=0, everything=False)
    ] == [other.session_id]
    check(settings, other.session_id, ["hello"])


def test_other_sessions_are_recorded_while_one_is_paused(settings: Settings, home: Path) -> None:
    said, other = in_the_middle(), Transcript("other")
    other.prompt("one")
    for number in range(6):
        other.say(f"answer {number}")
    said.save(home)
    other.save(home)
    paused(settings, "10:00:15", "10:00:35", agent="claude", session_id=said.session_id)
    ingest(settings)
    check(settings, said.session_id, REST)
    assert len(told(settings, other.session_id)) == 7


def test_subagents_and_kept_results_of_a_paused_session_are_paused_with_it(
    settings: Settings, home: Path
) -> None:
    said = in_the_middle()
    path = said.save(home)
    folder = path.with_suffix("")
    (folder / "subagents").mkdir(parents=True)
    (folder / "tool-results").mkdir()
    side = Transcript("side")
    side.session_id = said.session_id
    side.day = "2026-05-01"
    for _ in range(4):
        side._time()
    side.prompt("canary task")
    side.say("canary done")
    for line in side.lines:
        line |= {"isSidechain": True, "agentId": "a1"}
    (folder / "subagents" / "agent-a1.jsonl").write_text(side.text())
    meta = folder / "subagents" / "agent-a1.meta.json"
    meta.write_text(json.dumps({"agentType": "Explore", "description": "canary"}))
    result = folder / "tool-results" / "toolu_x.txt"
    result.write_text("canary result")
    for file in (meta, result):
        os.utime(file, (ms("10:00:25") / 1000,) * 2)
    paused(settings, "10:00:15", "10:00:35", agent="claude", session_id=said.session_id)
    ingest(settings)
    check(settings, said.session_id, REST)


# -- a repository --------------------------------------------------------------------------------


def test_a_pause_of_a_repository_is_of_what_ran_there(settings: Settings, home: Path) -> None:
    said = in_the_middle(cwd="/code/secret/src")
    other = in_the_middle(cwd="/code/secretary")
    other.session_id = "other"
    for line in other.lines:
        line["sessionId"] = "other"
    said.save(home)
    other.save(home)
    paused(
        settings, "10:00:15", "10:00:35", repository="/code/secret/.git", folders=["/code/secret"]
    )
    ingest(settings)
    assert told(settings, said.session_id) == REST
    assert len(told(settings, "other")) == 6
    other.path(home).unlink()


def test_a_session_that_went_elsewhere_is_still_of_the_repository_it_began_in(
    settings: Settings, home: Path
) -> None:
    said = in_the_middle(cwd="/code/secret")
    for line in said.lines[2:]:
        line["cwd"] = "/elsewhere"
    said.save(home)
    paused(
        settings, "10:00:15", "10:00:35", repository="/code/secret/.git", folders=["/code/secret"]
    )
    ingest(settings)
    check(settings, said.session_id, REST)


# -- the other agents ----------------------------------------------------------------------------

STAMPS = [f"2026-05-01T10:00:{second:02}.000Z" for second in range(0, 60, 5)]
WORDS = [
    "before the pause",
    "made",
    "canary answer",
    "canary question",
    "canary more",
    "after the pause",
    "bye",
]
TIMES = [STAMPS[at] for at in (0, 1, 3, 4, 5, 7, 8)]


def codex(home: Path) -> str:
    ident = "0199a213-81c0-7800-8aa1-bbab2a035a53"
    meta = {
        "id": ident,
        "cwd": "/code/shop",
        "timestamp": STAMPS[0],
        "originator": "codex",
        "cli_version": "1",
    }
    lines: list[dict[str, Any]] = [
        {"timestamp": STAMPS[0], "type": "session_meta", "payload": meta}
    ]
    for number, (time, text) in enumerate(zip(TIMES, WORDS, strict=True)):
        role, kind = ("user", "input_text") if number % 2 == 0 else ("assistant", "output_text")
        item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
        lines.append({"timestamp": time, "type": "response_item", "payload": item})
    history = [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "canary question"}],
        }
    ]
    compacted = {"message": "of a canary", "replacement_history": history}
    lines.append({"timestamp": STAMPS[9], "type": "compacted", "payload": compacted})
    path = (
        home
        / ".codex"
        / "sessions"
        / "2026"
        / "05"
        / "01"
        / f"rollout-2026-05-01T10-00-00-{ident}.jsonl"
    )
    write(path, "".join(json.dumps(line) + "\n" for line in lines))
    return ident


def gemini_messages() -> list[dict[str, Any]]:
    kinds = ["user", "gemini"]
    return [
        {"id": f"m{number}", "timestamp": time, "type": kinds[number % 2], "content": text}
        for number, (time, text) in enumerate(zip(TIMES, WORDS, strict=True))
    ]


def gemini_lines(home: Path) -> str:
    head = {
        "sessionId": "g-1",
        "projectHash": "p",
        "startTime": STAMPS[0],
        "lastUpdated": STAMPS[0],
    }
    poor = [{"id": "n", "type": "user", "content": "canary question"}]
    again = {"$set": {"lastUpdated": STAMPS[9], "messages": poor, "summary": "canary"}}
    lines = [head, *gemini_messages(), again]
    folder = home / ".gemini" / "tmp" / "p"
    write(folder / ".project_root", "/code/shop")
    write(folder / "chats" / "session-1.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    return "g-1"


def gemini_document(home: Path, **style: Any) -> str:
    body = {
        "sessionId": "g-2",
        "projectHash": "p",
        "startTime": STAMPS[0],
        "lastUpdated": STAMPS[9],
    }
    text = json.dumps({**body, "messages": gemini_messages(), "summary": "canary"}, **style)
    folder = home / ".gemini" / "tmp" / "p"
    write(folder / ".project_root", "/code/shop")
    write(folder / "chats" / "session-2.json", text)
    return "g-2"


def gemini_pretty(home: Path) -> str:
    return gemini_document(home, indent=2)


def copilot(home: Path) -> str:
    start = {"sessionId": "c-1", "context": {"cwd": "/code/shop"}}
    lines: list[dict[str, Any]] = [
        {"type": "session.start", "data": start, "timestamp": STAMPS[0], "id": "0"}
    ]
    for number, (time, text) in enumerate(zip(TIMES, WORDS, strict=True)):
        kind = "user.message" if number % 2 == 0 else "assistant.message"
        lines.append(
            {
                "type": kind,
                "data": {"content": text},
                "timestamp": time,
                "id": str(number + 1),
                "parentId": None,
            }
        )
    summary = {"success": True, "summaryContent": "of a canary"}
    lines.append(
        {"type": "session.compaction_complete", "data": summary, "timestamp": STAMPS[9], "id": "9"}
    )
    write(
        home / ".copilot" / "session-state" / "c-1" / "events.jsonl",
        "".join(json.dumps(x) + "\n" for x in lines),
    )
    return "c-1"


def opencode(home: Path) -> str:
    path = home / ".local" / "share" / "opencode" / "opencode.db"
    path.parent.mkdir(parents=True)
    db = apsw.Connection(str(path))
    db.execute(
        "CREATE TABLE session(id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, title TEXT, "
        "version TEXT, "
        "time_created INTEGER, time_updated INTEGER);"
        "CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, "
        "time_updated INTEGER, "
        "data TEXT);"
        "CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created "
        "INTEGER, "
        "time_updated INTEGER, data TEXT);"
    )
    times = [int(datetime.fromisoformat(time).timestamp() * 1000) for time in TIMES]
    row = ("ses_1", None, "/code/shop", "About a canary", "1", times[0], times[-1])
    db.execute("INSERT INTO session VALUES(?,?,?,?,?,?,?)", row)
    for number, (time, text) in enumerate(zip(times, WORDS, strict=True)):
        role = "user" if number % 2 == 0 else "assistant"
        data = json.dumps({"role": role, "time": {"created": time}})
        db.execute(
            "INSERT INTO message VALUES(?,?,?,?,?)", (f"msg_{number}", "ses_1", time, time, data)
        )
        part = (
            f"prt_{number}",
            f"msg_{number}",
            "ses_1",
            time,
            time,
            json.dumps({"type": "text", "text": text}),
        )
        db.execute("INSERT INTO part VALUES(?,?,?,?,?,?)", part)
    db.close()
    return "ses_1"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


SCOPES = [{}, {"repository": "/code/shop/.git", "folders": ["/code/shop"]}]


@pytest.mark.parametrize("scope", SCOPES, ids=["everything", "repository"])
@pytest.mark.parametrize(
    "make", [codex, gemini_lines, gemini_document, gemini_pretty, copilot, opencode]
)
def test_a_pause_holds_for_every_agent(
    make: Callable[[Path], str], scope: dict[str, Any], settings: Settings, home: Path
) -> None:
    session = make(home)
    ingest(settings)
    assert b"canary" in kept(settings.home), "it would have been kept"
    shutil.rmtree(settings.home)
    paused(settings, "10:00:15", "10:00:35", **scope)
    ingest(settings)
    shown = [text for text in told(settings, session) if text != "[private]"]
    assert shown == ["before the pause", "made", "after the pause", "bye"]
    check(settings, session, told(settings, session))


@pytest.mark.parametrize(
    "make", [codex, gemini_lines, gemini_document, gemini_pretty, copilot, opencode]
)
def test_a_pause_of_another_time_or_place_changes_nothing(
    make: Callable[[Path], str], settings: Settings, home: Path
) -> None:
    session = make(home)
    ingest(settings)
    before, shown = derived(settings), told(settings, session)
    shutil.rmtree(settings.home)
    paused(settings, "08:00:00", "09:00:00")
    paused(settings, "12:00:00", None)
    paused(settings, "09:30:00", None, repository="/code/shopping/.git", folders=["/code/shopping"])
    paused(settings, "09:40:00", None, agent="claude", session_id=session)
    ingest(settings)
    assert told(settings, session) == shown
    assert [row[:4] for row in derived(settings)["events"]] == [row[:4] for row in before["events"]]


# -- the spool -----------------------------------------------------------------------------------


def test_what_a_hook_of_an_older_version_announced_in_a_pause_is_erased(
    settings: Settings, home: Path
) -> None:
    file = settings.home / "spool" / "2026-05-01.spool"
    lines = [
        {
            "v": 1,
            "at": ms(f"10:00:{second}"),
            "agent": "claude",
            "event": "UserPromptSubmit",
            "cwd": "/code/shop",
        }
        for second in ("10", "20", "40")
    ]
    payload = {"session_id": "s", "transcript_path": "/t", "prompt": "canary"}
    payloads = [{**payload, "prompt": "one"}, payload, {**payload, "prompt": "three"}]
    text = "".join(
        f"\n{json.dumps(a)}\t{json.dumps(b)}\n" for a, b in zip(lines, payloads, strict=True)
    )
    write(file, text)
    paused(settings, "10:00:15", "10:00:35")
    ingest(settings)
    assert_nowhere("canary", settings.home)
    assert file.stat().st_size == len(text), "nothing moved: hooks may be writing"
    assert len(rows(settings)["signals"]) == 2
    before = rows(settings)
    ingest(settings)
    rebuild(settings)
    ingest(settings)
    assert_equal(rows(settings), before)


def test_a_pause_that_begins_while_an_ingest_runs_is_noticed(
    settings: Settings, home: Path
) -> None:
    said, first = in_the_middle(), Transcript("first")
    first.prompt("hello")
    write(home / ".claude" / "projects" / "-a" / f"{first.session_id}.jsonl", first.text())
    said.save(home)

    def announce(total: int) -> Callable[[int], None]:
        def passed(size: int) -> None:  # first when the first file is read
            if not pauses.pending_pauses(settings.home):
                paused(settings, "10:00:15", "10:00:35")

        return passed

    assert pauses.pending_pauses(settings.home) == []
    ingest(settings, announce=announce)
    assert_nowhere("canary", settings.home)
    ingest(settings)
    check(settings, said.session_id, REST)
