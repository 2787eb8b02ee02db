"""The API: everything the commands tell, page by page, and errors a program can act on."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from tests.server.wire import Served, served
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.demo.places import Demo
from whyfor.model.wire.commits import wire_commit
from whyfor.model.wire.memory import wire_memory_note
from whyfor.service.ingest import ingest
from whyfor.service.log import LogFilter, log
from whyfor.service.memory import MemoryQuery, notes, preview


def _pages(server: Served, path: str, limit: int) -> list[list[Any]]:
    """All pages of a list."""
    found: list[list[Any]] = []
    after = ""
    while True:
        joint = "&" if "?" in path else "?"
        answer = server.get(
            f"/api/v1/{path}{joint}limit={limit}" + (f"&after={after}" if after else "")
        )
        assert answer.status == 200, answer.body
        found.append(answer.json["items"])
        if answer.json["next"] is None:
            return found
        after = str(answer.json["next"])


def _session(server: Served) -> str:
    """The demo's longest session."""
    items = server.get("/api/v1/sessions").json["items"]
    longest = max(items, key=lambda item: item["messages"])
    return f"sessions/{longest['agent']}/{longest['session_id']}"


# -- sessions ------------------------------------------------------------------------------------


def test_sessions_come_newest_first_and_each_once(server: Served) -> None:
    (whole,) = _pages(server, "sessions", 200)
    assert [item["started_at"] for item in whole] == sorted(
        (item["started_at"] for item in whole), reverse=True
    )
    assert _pages(server, "sessions", 1) == [[item] for item in whole]
    everyone = server.get("/api/v1/sessions?subagents=true").json["items"]
    assert len(everyone) > len(whole)
    assert server.get("/api/v1/sessions?agent=codex").json["items"] == [
        i for i in whole if i["agent"] == "codex"
    ]


def test_a_list_stays_right_while_new_sessions_come(settings: Settings, home: Path) -> None:
    for number in range(6):
        transcript = Transcript(f"s{number}", day=f"2026-05-{number + 1:02}")
        transcript.prompt(f"prompt {number}")
        transcript.save(home)
    ingest(settings)
    with served(settings) as server:
        first = server.get("/api/v1/sessions?limit=3").json
        for number in (7, 8):
            transcript = Transcript(f"s{number}", day=f"2026-05-{number + 1:02}")
            transcript.prompt(f"prompt {number}")
            transcript.save(home)
        ingest(settings)
        second = server.get(f"/api/v1/sessions?limit=3&after={first['next']}").json
        titles = [item["title"] for item in first["items"] + second["items"]]
        assert titles == [f"prompt {number}" for number in (5, 4, 3, 2, 1, 0)]
        assert second["next"] is None


def test_a_session_is_told_with_its_subagents_and_by_the_beginning_of_its_id(
    server: Served,
) -> None:
    path = _session(server)
    whole = server.get(f"/api/v1/{path}").json
    assert whole["session"]["title"] == "Retry dropped connections to the harbour server"
    assert len(whole["subagents"]) == 1
    assert whole["status"] is None
    assert server.get(f"/api/v1/{path[:-20]}").json == whole


def test_events_come_after_a_seq_in_pages(server: Served) -> None:
    path = _session(server)
    pages = _pages(server, f"{path}/events", 7)
    assert all(len(page) == 7 for page in pages[:-1])
    events = [event for page in pages for event in page]
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    assert {"user.prompt", "assistant.message", "tool.call", "tool.result"} <= {
        event["kind"] for event in events
    }
    last = server.get(f"/api/v1/{path}/events?after={len(events)}").json
    assert last == {"items": [], "next": None}


def test_a_page_of_big_events_is_bounded(settings: Settings, home: Path) -> None:
    transcript = Transcript("big")
    for _ in range(5):
        transcript.say("x" * 1_500_000)
    transcript.save(home)
    ingest(settings)
    with served(settings) as server:
        pages = _pages(server, f"sessions/claude/{transcript.session_id}/events", 200)
        sizes = [sum(len(event["text"]) for event in page) for page in pages]
        assert len(pages) > 1
        assert max(sizes) <= 4 << 20
        assert sum(len(page) for page in pages) == 6


def test_turns_come_in_pages(server: Served) -> None:
    path = _session(server)
    (whole,) = _pages(server, f"{path}/turns", 200)
    assert [turn for page in _pages(server, f"{path}/turns", 1) for turn in page] == whole
    assert whole[1]["prompt"].startswith("Keep four")


def test_a_summary_is_three_lines(server: Served) -> None:
    told = server.get(f"/api/v1/{_session(server)}/summary").json
    assert told["prompt"].startswith("Keep four")
    assert told["current"].startswith("idle")
    assert "fetch" in told["recent"]


# -- commits -------------------------------------------------------------------------------------


@pytest.fixture
def project(server: Served) -> str:
    (found,) = server.get("/api/v1/projects").json["items"]
    assert (found["name"], found["here"], found["sessions"]) == ("tidewatch", True, 3)
    return quote(found["identity"], safe="")


def test_a_timeline_tells_what_log_tells(
    server: Served, shown: Settings, demo: Demo, project: str
) -> None:
    stories = log(shown, demo.repository, LogFilter(), 0)
    expected = msgspec.json.decode(msgspec.json.encode([wire_commit(told) for told in stories]))
    told = server.get(f"/api/v1/commits?project={project}&limit=200").json
    assert (told["items"], told["next"], told["branches"]) == (expected, None, ["main"])
    for size in (1, 2, 4):
        assert [
            item for page in _pages(server, f"commits?project={project}", size) for item in page
        ] == expected
    everywhere = server.get(f"/api/v1/commits?project={project}&branch=%2A").json["items"]
    assert {item["commit"] for item in everywhere} == {item["commit"] for item in expected}


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("story=true", lambda item: bool(item["checkpoint"])),
        ("story=false", lambda item: not item["checkpoint"]),
        ("agent=codex", lambda item: "codex" in str(item["checkpoint"])),
        ("tag=BUGFIX", lambda item: "'BUGFIX'" in str(item["checkpoint"])),
        ("author=ROB", lambda item: True),
        ("author=nobody", lambda item: False),
        ("until=2020-01-01", lambda item: False),
        ("branch=main&since=2020-01-01", lambda item: True),
    ],
)
def test_a_timeline_can_be_narrowed(server: Served, project: str, query: str, fits: Any) -> None:
    whole = server.get(f"/api/v1/commits?project={project}").json["items"]
    wanted = [item for item in whole if fits(item)]
    for size in (1, 50):
        pages = _pages(server, f"commits?project={project}&{query}", size)
        assert [item for page in pages for item in page] == wanted


def test_a_story_is_told_with_its_conversation_in_pages(server: Served, project: str) -> None:
    first = server.get(f"/api/v1/commits?project={project}&story=true").json["items"][-1]
    story = server.get(f"/api/v1/commits/{first['commit']}").json
    assert story["checkpoint"] == first["checkpoint"]
    assert {said["role"] for said in story["related"]} >= {"request", "closing words"}
    (whole,) = _pages(server, f"commits/{first['commit']}/conversation", 200)
    assert len(whole) > 5
    pages = _pages(server, f"commits/{first['commit']}/conversation", 3)
    assert [line for page in pages for line in page] == whole


def test_a_commit_nobody_has_looked_at_yet_is_told(settings: Settings, tmp_path: Path) -> None:
    from whyfor import config
    from whyfor.demo import build

    demo = build(tmp_path / "other")
    other = config.load(
        {**settings.env, "HOME": str(demo.home), "WHYFOR_HOME": str(demo.whyfor_home)}
    )
    ingest(other)
    name = ["-c", "user.name=Robin", "-c", "user.email=robin@example.com"]
    commit = [
        "git",
        "-C",
        str(demo.repository),
        *name,
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "Just now",
    ]
    subprocess.run(commit, check=True)
    with served(other) as server:
        identity = quote(server.get("/api/v1/projects").json["items"][0]["identity"], safe="")
        newest = server.get(f"/api/v1/commits?project={identity}&limit=1").json["items"][0]
        assert newest["subject"] == "Just now"
        assert server.get(f"/api/v1/commits/{newest['commit']}").json["subject"] == "Just now"


def test_a_repository_that_is_gone_is_said_and_its_stories_are_still_told(
    settings: Settings, tmp_path: Path
) -> None:
    import shutil

    from whyfor import config
    from whyfor.demo import build

    demo = build(tmp_path / "other")
    other = config.load(
        {**settings.env, "HOME": str(demo.home), "WHYFOR_HOME": str(demo.whyfor_home)}
    )
    ingest(other)
    with served(other) as server:
        identity = quote(server.get("/api/v1/projects").json["items"][0]["identity"], safe="")
        (commit, *_) = server.get(f"/api/v1/commits?project={identity}&story=true").json["items"]
        shutil.rmtree(demo.repository)
        assert server.get(f"/api/v1/commits?project={identity}").json["kind"] == "not_found"
        assert server.get("/api/v1/projects").json["items"][0]["here"] is False
        assert (
            server.get(f"/api/v1/commits/{commit['commit']}").json["subject"] == commit["subject"]
        )


# -- the rest ------------------------------------------------------------------------------------


def test_search_marks_the_words(server: Served) -> None:
    hits = server.get("/api/v1/search?q=exponential%20backoff").json["items"]
    start, end = hits[0]["marks"][0]
    assert hits[0]["snippet"][start:end].lower() in ("exponential", "backoff")


def test_health_says_when_each_agent_was_heard(server: Served) -> None:
    told = server.get("/api/v1/health").json
    agents = {agent["agent"]: agent for agent in told["agents"]}
    assert agents["claude"]["last_record_at"] is not None
    assert (agents["gemini"]["last_record_at"], agents["gemini"]["title"]) == (None, "Gemini CLI")
    assert (told["trouble"], told["paused"]) == ([], [])


@pytest.mark.parametrize(
    ("path", "status", "kind"),
    [
        ("sessions/claude/zzz", 404, "not_found"),
        ("sessions/nobody/x", 404, "not_found"),
        ("sessions?limit=0", 400, "bad_input"),
        ("sessions?limit=201", 400, "bad_input"),
        ("sessions?limit=x", 400, "bad_input"),
        ("sessions?after=zz", 400, "bad_input"),
        ("sessions?after=WzFlOTksMV0", 400, "bad_input"),  # a number too big for any store
        ("sessions?agent=nobody", 400, "bad_input"),
        ("sessions?since=whenever", 400, "bad_input"),
        ("sessions?since=99999999999999999999d", 400, "bad_input"),
        ("sessions?since=0001-01-01", 400, "bad_input"),
        ("sessions?until=9999-12-31", 400, "bad_input"),
        ("commits", 400, "bad_input"),
        ("commits?project=nowhere", 404, "not_found"),
        ("commits/HEAD", 404, "not_found"),
        ("commits/" + "0" * 40, 404, "not_found"),
        ("commits/--all", 404, "not_found"),
        ("search", 400, "bad_input"),
        ("sessions?agnet=codex", 400, "bad_input"),
        ("stream?sesion=x", 400, "bad_input"),
        ("health?x=1", 400, "bad_input"),
        ("search?q=x&fields=nothing", 400, "bad_input"),
        ("nowhere", 404, "not_found"),
    ],
)
def test_errors_are_problems_with_a_kind(server: Served, path: str, status: int, kind: str) -> None:
    answer = server.get(f"/api/v1/{path}")
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert (answer.json["status"], answer.json["kind"]) == (status, kind)
    assert answer.json["detail"]
    assert "Traceback" not in answer.everything


def test_an_id_that_fits_several_says_so(settings: Settings, home: Path) -> None:
    for number in range(20):
        transcript = Transcript(f"s{number}")
        transcript.prompt("x")
        transcript.save(home)
    ingest(settings)
    with served(settings) as server:
        ids = [item["session_id"] for item in server.get("/api/v1/sessions").json["items"]]
        first = next(
            letter
            for letter in "0123456789abcdef"
            if sum(name.startswith(letter) for name in ids) > 1
        )
        answer = server.get(f"/api/v1/sessions/claude/{first}")
        assert (answer.status, answer.json["kind"]) == (409, "ambiguous")


@pytest.mark.parametrize(
    "branch", ["--all", "-n1", "..", "HEAD", "main%00", "main..HEAD", "refs/heads/main", "%ff"]
)
def test_nothing_but_a_branch_is_a_branch(server: Served, project: str, branch: str) -> None:
    assert server.get(f"/api/v1/commits?project={project}&branch={branch}").status in (400, 404)


def test_a_cursor_cannot_be_made_to_ask_git_something_else(server: Served, project: str) -> None:
    import base64
    import json

    for value in (
        ["--all", 0],
        ["HEAD", 0],
        ["main", 0],
        ["*", -1],
        [0, 0],
        ["0" * 40, 10**30],
        "x",
        None,
    ):
        cursor = base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
        answer = server.get(f"/api/v1/commits?project={project}&after={cursor}")
        assert (answer.status, answer.json["kind"]) == (400, "bad_input"), value


def test_reading_writes_nothing(server: Served, demo: Demo, project: str) -> None:
    def state() -> dict[str, tuple[int, int]]:
        paths = [
            p for p in demo.whyfor_home.rglob("*") if p.is_file() and not p.name.endswith("-shm")
        ]
        return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in paths}

    before = state()
    for path in (
        "sessions",
        "projects",
        f"commits?project={project}",
        "search?q=tide",
        "stats",
        "health",
        "status",
    ):
        assert server.get(f"/api/v1/{path}").status == 200
    for path in ("/", "/timeline", "/search?q=tide", "/insights"):
        assert server.get(path).status == 200
    assert state() == before


# -- memory --------------------------------------------------------------------------------------


def _project(server: Served) -> str:
    return str(server.get("/api/v1/projects").json["items"][0]["identity"])


def test_notes_are_those_of_the_command_page_by_page(server: Served, shown: Settings) -> None:
    (whole,) = _pages(server, "notes", 200)
    found = [wire_memory_note(note) for note in notes(shown, MemoryQuery(), 0)]
    assert [each["id"] for each in whole] == [note.id for note in found]
    assert [set(each) for each in whole] == [set(note.__struct_encode_fields__) for note in found]
    assert len(whole) > 3
    assert _pages(server, "notes", 1) == [[note] for note in whole]
    kind = whole[0]["type"]
    (some,) = _pages(server, f"notes?type={kind}&project={quote(_project(server), safe='')}", 200)
    assert some == [note for note in whole if note["type"] == kind]
    (verified,) = _pages(server, "notes?state=verified", 200)
    assert verified and all(note["state"] == "verified" for note in verified)
    for wrong in ("type=fact", "state=sure", "q=x&limit=0", "agent=nobody", "after=x", "kind=rule"):
        assert server.get(f"/api/v1/notes?{wrong}").status == 400, wrong


def test_a_note_is_told_with_the_summary_of_its_session(server: Served) -> None:
    first = server.get("/api/v1/notes").json["items"][0]
    detail = server.get(f"/api/v1/notes/{first['id'][:8]}").json
    assert detail["note"]["id"] == first["id"]
    assert detail["session_summary"]["request"]
    assert server.get("/api/v1/notes/ffffffffff").status == 404


def test_the_block_is_what_the_command_prints(server: Served, shown: Settings, demo: Demo) -> None:
    path = f"/api/v1/memory?project={quote(_project(server), safe='')}"
    block = server.get(path).json
    assert block["text"] == preview(shown, demo.repository).text
    assert (
        server.get(f"{path}&tokens=300").json["text"] == preview(shown, demo.repository, 300).text
    )
    assert len(block["lines"]) == block["text"].count("\n- ")
    assert server.get("/api/v1/memory?project=nowhere").status == 404
    assert server.get(f"{path}&tokens=1").status == 400
