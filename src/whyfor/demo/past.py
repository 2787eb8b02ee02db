"""Most of a year of small sessions in three projects, for the calendar and charts of Insights."""

from __future__ import annotations

import random
import uuid
from datetime import datetime, timedelta

from whyfor.demo.claude import ClaudeDemo
from whyfor.demo.codex import CodexDemo
from whyfor.demo.gemini import GeminiDemo
from whyfor.demo.logs import Log
from whyfor.demo.places import Demo, commit, write_file

DAYS = 290
_AWAY = range(96, 110)  # a fortnight of holidays
_AGENTS: tuple[type[Log], ...] = (
    ClaudeDemo,
    ClaudeDemo,
    ClaudeDemo,
    CodexDemo,
    CodexDemo,
    GeminiDemo,
)
_DO = "Speed up|Test|Simplify|Explain|Rename|Log|Document|Check".split("|")
_WHAT = (
    "the tide parser|the station list|the map tiles|the retry loop|the unit table|the depth legend|"
    "the sunrise column|the import of buoys|the search box|the print layout"
).split("|")
_WHEN = (
    "before the release|on slow networks|for harbours without a gauge|when the file is empty|in "
    "the nightly run"
).split("|")
_WRONG = (
    "Exit code 1\n1 failed, 12 passed",
    "The user doesn't want to proceed with this tool use.",
    "String to replace not found in file.",
)
_RUN = (
    "python -m pytest -q",
    "git status --short",
    "ruff check .",
    "make charts",
    "python -m tidewatch Husum",
)


def past(projects: tuple[Demo, ...], now: datetime) -> None:
    """Write the sessions; they are the same in every run."""
    chance = random.Random(20)
    for back in range(DAYS, 1, -1):
        day = now - timedelta(days=back)
        if back in _AWAY:
            continue
        more = 1 + 2 * (DAYS - back) / DAYS  # it grows on one
        for number in range(round(chance.random() * (more if day.weekday() < 5 else more / 4))):
            start = day.replace(
                hour=7 + 3 * number + chance.randrange(3), minute=chance.randrange(60)
            )
            _session(chance, chance.choices(projects, (5, 3, 2))[0], start)


def _session(chance: random.Random, demo: Demo, at: datetime) -> None:
    agent = chance.choice(_AGENTS)
    log = agent(demo, str(uuid.UUID(int=chance.getrandbits(128), version=4)), at)
    for _ in range(1 + chance.randrange(5)):
        _turn(chance, log)
        log.at += timedelta(seconds=chance.randrange(20, 400))
    # this project has its own history
    if demo.repository.name != "tidewatch" and chance.random() < 0.4:
        _commit(chance, log)
    log.save()


def _turn(chance: random.Random, log: Log) -> None:
    log.prompt(f"{chance.choice(_DO)} {chance.choice(_WHAT)} {chance.choice(_WHEN)}.")
    for _ in range(chance.randrange(1, 5)):
        call = log.run(chance.choice(_RUN))
        if log.agent != "gemini" and chance.random() < 0.3:
            log.hook("PermissionRequest", tool_name="Bash", tool_use_id=call)
            log.until(
                log.at + timedelta(seconds=min(7200, 1 + round(chance.lognormvariate(2.4, 1.7))))
            )
        wrong = chance.choices([None, *_WRONG], (93, 4, 1, 1))[0]
        log.end(call, wrong or "13 passed", failed=wrong is not None)
    if isinstance(log, ClaudeDemo) and chance.random() < 0.04:
        log.interrupt()
    else:
        log.say("Done, and the tests pass.")


def _commit(chance: random.Random, log: Log) -> None:
    """Commit, as the agent or as a person with their own lines."""
    subject = f"{chance.choice(_DO)} {chance.choice(_WHAT)}"
    write_file(log.demo.repository / "settings", f"{chance.getrandbits(64):x}\n")
    if isinstance(log, ClaudeDemo | CodexDemo):
        log.commit(subject)
        log.say("It is committed.")
    else:
        commit(log.demo.repository, subject, log.at)
