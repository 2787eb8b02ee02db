"""The work feed: what happened in all sessions, and who else works here."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from tests.conftest import Result
from tests.live.test_tracker import Process
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.model.attention import AttentionMark, Concern
from whyfor.model.work_feed import WorkEntry, WorkQuery
from whyfor.service.feed import follow_feed, work_feed
from whyfor.service.ingest import ingest

Cli = Callable[..., Result]


def _query(**more: object) -> WorkQuery:
    return WorkQuery(since=int(time.time() * 1000) - 3_600_000, **more)  # type: ignore[arg-type]


def _told(found: list[WorkEntry]) -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in found]


def _work(home: Path, name: str, **more: object) -> Transcript:
    talk = Transcript(name, live=True, ago=timedelta(minutes=10), **more)  # type: ignore[arg-type]
    talk.prompt(f"Fix the {name}")
    talk.call("Bash", {"command": "make test"}, "Exit code 2\nno rule", failed=True)
    talk.call("Bash", {"command": "rm x"}, "The user doesn't want to proceed", failed=True)
    talk.say(f"The {name} is fixed.")
    talk.save(home)
    return talk


def test_everything_that_happened_is_one_line_newest_first(settings: Settings, home: Path) -> None:
    _work(home, "basket")
    ingest(settings)
    found = work_feed(settings, _query())
    assert _told(found) == [
        ("done", "The basket is fixed."),
        ("failure", "Exit code 2 no rule"),
        ("prompt", "Fix the basket"),
    ]
    assert all(one.title == "Fix the basket" and one.agent == "claude" for one in found)
    assert _told(work_feed(settings, _query(kinds=("failure",)))) == [
        ("failure", "Exit code 2 no rule")
    ]
    assert work_feed(settings, _query(agent="codex")) == []
    assert len(work_feed(settings, _query(limit=1))) == 1


def test_the_same_failure_again_and_again_is_one_line(settings: Settings, home: Path) -> None:
    talk = Transcript("loop", live=True, ago=timedelta(minutes=10))
    talk.prompt("Build it")
    for text in ("no rule", "no rule", "no rule", "disk full", "no rule"):
        talk.call("Bash", {"command": "make"}, text, failed=True)
    talk.save(home)
    ingest(settings)
    found = [(one.text, one.times) for one in work_feed(settings, _query(kinds=("failure",)))]
    assert found == [("no rule", 1), ("disk full", 1), ("no rule", 3)]


def test_the_last_words_of_a_turn_at_work_are_not_its_end(settings: Settings, home: Path) -> None:
    talk = Transcript("now", live=True)
    talk.prompt("Go")
    talk.say("I begin.")
    talk.save(home)
    ingest(settings)
    assert _told(work_feed(settings, _query())) == [("prompt", "Go")]


def test_sessions_are_chosen_by_what_they_do(settings: Settings, home: Path) -> None:
    _work(home, "basket")
    asks = Transcript("asks", live=True)
    asks.prompt("Which one?")
    asks.save(home)
    waits = Process(home, asks.session_id, "waiting", waitingFor="permission prompt")
    tests = Transcript("tests", live=True)
    tests.prompt("Run them")
    given = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "pytest -q"}}
    tests.block(given)
    tests.save(home)
    runs = Process(home, tests.session_id, "busy")
    ingest(settings)
    assert _told(work_feed(settings, _query(only="waiting"))) == [("prompt", "Which one?")]
    assert _told(work_feed(settings, _query(only="testing"))) == [("prompt", "Run them")]
    failing = work_feed(settings, _query(only="failing"))
    assert {one.title for one in failing} == {"Fix the basket"} and len(failing) == 3
    waits.kill()
    runs.kill()


def test_a_feed_that_is_followed_tells_each_thing_once(settings: Settings, home: Path) -> None:
    _work(home, "basket")
    ingest(settings)
    heard: list[WorkEntry] = []
    stop = threading.Event()

    def tell(entry: WorkEntry) -> None:
        heard.append(entry)
        if len(heard) == 3:
            _work(home, "price")
            ingest(settings)
        if len(heard) == 6:
            stop.set()

    thread = threading.Thread(target=follow_feed, args=(settings, _query(), tell, stop))
    thread.start()
    thread.join(30)
    assert stop.is_set() and len({one.key for one in heard}) == 6
    assert [one.kind for one in heard[:3]] == ["prompt", "failure", "done"]


def test_what_needed_attention_is_in_the_feed(settings: Settings, home: Path, cli: Cli) -> None:
    from whyfor.capture.spool import append_mark

    talk = _work(home, "basket")
    found = Concern(cause="wall", key="1", at=1, fact="rm: refused.", evidence="e", step="s")
    mark = AttentionMark(state="told", cause="wall", key="1", found=found)
    settings.home.mkdir(exist_ok=True)
    append_mark(settings.home, ("claude", talk.session_id), mark, int(time.time() * 1000))
    ingest(settings)
    result = cli("feed", "--kind", "attention", "--json")
    (told,) = json.loads(result.out)
    assert (told["text"], told["state"]) == ("Blocked: rm: refused.", "act")
    assert told["title"] == "Fix the basket"
    assert "Blocked: rm: refused." in cli("feed").out


def test_what_was_written_since_is_read_without_a_server(
    settings: Settings, home: Path, cli: Cli
) -> None:
    _work(home, "basket")
    ingest(settings)
    _work(home, "door")
    assert "Fix the door" in cli("feed").out
