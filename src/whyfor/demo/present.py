"""Sessions that are open now: some ask for approval, some wait, some run, and one has ended."""

from __future__ import annotations

from datetime import datetime, timedelta

from whyfor.demo.claude import ClaudeDemo
from whyfor.demo.codex import CodexDemo
from whyfor.demo.gemini import GeminiDemo
from whyfor.demo.logs import Log
from whyfor.demo.places import Demo

MIGRATE = """sqlite3 ~/.cache/tidewatch/tides.db \\
  "ALTER TABLE tides ADD COLUMN fetched_at TEXT\""""
PUBLISH = "rclone sync build/ preview:harbour-charts --checksum"
_WHERE = "Where should the depth tiles live?"


def present(tidewatch: Demo, charts: Demo, notes: Demo, now: datetime) -> None:
    """Write sessions that were active a moment ago; nobody continues them, so running ones become
    idle after a while."""

    def ago(**time: int) -> datetime:
        return now - timedelta(**time)

    _asks_to_migrate(tidewatch, ago(minutes=7), ago(seconds=100))
    _asks_to_publish(charts, ago(minutes=2), ago(seconds=12))
    _has_a_question(charts, ago(minutes=9), ago(minutes=6))
    _is_done(notes, ago(minutes=24), ago(minutes=18))
    _tests(tidewatch, ago(minutes=7), ago(seconds=21))
    _writes(charts, ago(minutes=3), ago(seconds=4))
    _looks_around(notes, ago(minutes=2), ago(seconds=9))
    _failed(notes, ago(minutes=62))
    _ended(charts, ago(hours=3))


def _begun(log: Log, prompt: str, title: str = "") -> None:
    if title and isinstance(log, ClaudeDemo):
        log.title(title)
    log.hook("SessionStart", source="startup")
    _asked(log, prompt)


def _asked(log: Log, prompt: str) -> None:
    log.prompt(prompt)
    log.hook("BeforeAgent" if log.agent == "gemini" else "UserPromptSubmit")


def _ran(log: Log, *commands: tuple[str, str]) -> None:
    for command, printed in commands:
        log.end(log.run(command), printed)


def _said(log: Log, words: str) -> None:
    log.say(words)
    log.hook("AfterAgent" if log.agent == "gemini" else "Stop")


def _may(log: Log, at: datetime, command: str) -> None:
    log.until(at)
    call = log.run(command)
    log.hook("PermissionRequest", tool_name="Bash", tool_use_id=call)
    log.save()


def _asks_to_migrate(demo: Demo, start: datetime, at: datetime) -> None:
    log = ClaudeDemo(demo, "a3e0b8d2-61f7-4d0c-8f52-7c9b1e4d6a35", start, "fetch-times")
    _begun(
        log,
        "Remember when a tide table was fetched, and say how old it is.",
        "Say how old a tide table is",
    )
    _ran(log, ("rg -n tides.db", "tidewatch/cache.py:9: PATH = '~/.cache/tidewatch/tides.db'"))
    _said(log, "The cache has no column for it. Shall I add one to the table that is there?")
    _asked(log, "Yes, keep what is in it.")
    log.think("Existing rows stay without a time: unknown, not now.")
    _may(log, at, MIGRATE)


def _asks_to_publish(demo: Demo, start: datetime, at: datetime) -> None:
    log = CodexDemo(demo, "019d7a41-3c55-7be2-a2f4-90c1d7e83b6a", start)
    _begun(log, "Publish the new harbour charts to the preview bucket")
    _ran(log, ("make charts", "42 charts written to build/"))
    _may(log, at, PUBLISH)


def _has_a_question(demo: Demo, start: datetime, at: datetime) -> None:
    log = ClaudeDemo(demo, "d90c2f7b-18a4-4e6d-b3c1-5f8e0a7d2946", start, "depth-tiles")
    _begun(
        log,
        "The map draws the depth of a harbour from tiles. Make that quick.",
        "Draw harbour depths from tiles",
    )
    _ran(
        log,
        ("du -sh tiles", "1.9G  tiles"),
        ("rg -n load_tile", "charts/map.py:41: tile = load_tile(z, x, y)"),
    )
    log.until(at)
    log.ask(
        _WHERE, "Tiles", ("On disk", "In memory, the last 200", "On the server"), answered=False
    )
    log.save()


def _is_done(demo: Demo, start: datetime, at: datetime) -> None:
    log = CodexDemo(demo, "019d7a2f-90e1-7c04-8d3b-1ab5c6f7e982", start, "old-dates")
    _begun(log, "Reject entries with a date in the future")
    _ran(
        log,
        ("sed -n 1,60p notes/entry.py", "def parse(line): ..."),
        ("python -m pytest -q", "31 passed"),
    )
    _asked(log, "Also say which date it was, not only that it is too late.")
    log.until(at)
    _said(
        log,
        "Done. A date after today is refused and **named in the message**; two tests cover both "
        "sides of it.",
    )
    log.save()


def _tests(demo: Demo, start: datetime, at: datetime) -> None:
    log = ClaudeDemo(demo, "71b6e4c9-2d83-49fa-9e07-c4a5d8f1302b", start, "split-http")
    _begun(
        log,
        "One module for each source of tide tables, no change of behaviour.",
        "Split the http module",
    )
    _ran(
        log,
        ("rg -n 'def ' tidewatch/http.py", "5: def fetch(url)"),
        ("python -m pytest -q", "7 passed"),
    )
    _said(log, "Moved the fetching into `sources/`, one module each. Now the tests.")
    _asked(log, "Run all of them, the slow ones too.")
    log.until(at)
    log.run("python -m pytest -q tests --slow")
    log.save()


def _writes(demo: Demo, start: datetime, at: datetime) -> None:
    log = GeminiDemo(demo, "5e7d3a10-94bc-4f68-a1d2-8b0c6e9f7543", start)
    _begun(log, "Explain the chart symbols to people who never saw a sea chart, no jargon.")
    _ran(log, ("ls symbols", "beacon.svg buoy.svg wreck.svg"))
    log.until(at)
    log.say("I have drafted three sections: depths, lights and dangers. Next are the buoys.")
    log.save()


def _looks_around(demo: Demo, start: datetime, at: datetime) -> None:
    log = ClaudeDemo(demo, "0f4a9c6e-b7d1-4825-93e8-6d2c5b1f8a70", start)
    _begun(log, "Why does the first search take two seconds?", "Trace the slow first search")
    _ran(log, ("python -X importtime -m notes search x", "import time: 411203 | notes.index"))
    log.until(at)
    log.begin(
        "Task",
        {
            "description": "Profile the index",
            "prompt": "Where is the time?",
            "subagent_type": "Explore",
        },
    )
    log.save()


def _failed(demo: Demo, start: datetime) -> None:
    log = ClaudeDemo(demo, "b85d1e37-4fa2-4c90-87b6-3e9a0d7c2f14", start)
    _begun(log, "Sort the entries of a day by their time.", "Sort the entries of a day")
    _ran(log, ("rg -n sorted notes", "notes/day.py:12: return sorted(entries)"))
    log.hook("StopFailure", error="overloaded")
    log.save()


def _ended(demo: Demo, start: datetime) -> None:
    log = CodexDemo(demo, "019d79c8-5b20-7a91-b6e7-4f3d2c1a0e95", start)
    _begun(log, "Show the legend in metres and in feet")
    _ran(log, ("python -m pytest -q", "18 passed"))
    _said(log, "The legend has both; metres come first.")
    log.hook("SessionEnd", reason="prompt_input_exit")
    log.save()
