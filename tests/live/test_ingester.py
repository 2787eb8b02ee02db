"""What agents write is heard as they write it: all of it, once, in order, whatever happens
beside it."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.hook import Installed
from tests.transcripts import Transcript
from whyfor import config
from whyfor.capture import doorbell as wake
from whyfor.config import Settings
from whyfor.live.feed import FeedItem
from whyfor.live.hub import RING_ITEMS, StreamFilter
from whyfor.live.loop import LiveLoop
from whyfor.locks import ingest_lock
from whyfor.model.attention import Firing
from whyfor.model.errors import NotFound
from whyfor.model.memory import MemoryFilter
from whyfor.model.status import LiveStatus
from whyfor.recall.block_files import renew_memory
from whyfor.service.ingest import ingest, sweep
from whyfor.service.rebuild import rebuild
from whyfor.store.open import reading_local
from whyfor.store.protocol import Store

from . import Live

SESSIONS, RATE, STREAMED = 100, 20, 5  # sessions, appends a second to each, seconds


class Agent:
    """Writes a transcript line by line, as an agent does; its words are numbered."""

    def __init__(self, home: Path, name: str, cwd: str = "/code/shop") -> None:
        self.transcript = Transcript(name, cwd=cwd, live=True)
        self.transcript.prompt(f"Hello {name}")
        self.path = self.transcript.path(home)
        self.said = 0
        self.write()

    @property
    def id(self) -> str:
        return self.transcript.session_id

    def write(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(self.transcript.text())
        self.transcript.lines.clear()

    def say(self, times: int = 1) -> None:
        for _ in range(times):
            self.transcript.say(f"word {self.said}")
            self.said += 1
        self.write()

    def heard(self, live: Live) -> bool:
        return len(live.texts("assistant.message", self.id)) >= self.said

    def check(self, live: Live) -> None:
        """Everything once, in order."""
        assert live.texts("assistant.message", self.id) == [f"word {n}" for n in range(self.said)]
        seqs = [event["seq"] for event in live.events(self.id)]
        assert seqs == list(range(1, len(seqs) + 1))


class Quiet:
    """A hub nobody listens to."""

    def __init__(self) -> None:
        self.trouble: str | None = None
        self.published = 0
        self.standings: list[LiveStatus] = []

    def publish(self) -> None:
        self.published += 1

    def stand(self, standings: object) -> None:
        self.standings = list(standings)  # type: ignore[call-overload]

    def attend(self, firings: list[Firing], told: list[Firing]) -> None:
        self.firings, self.told = firings, told


@pytest.fixture
def agent(home: Path) -> Agent:
    return Agent(home, "quokka")


def await_all(live: Live, *agents: Agent, seconds: float = 30.0) -> None:
    live.until(lambda: all(agent.heard(live) for agent in agents), seconds)
    for agent in agents:
        agent.check(live)


# -- all of it, once, in order -------------------------------------------------------------------


def test_what_is_appended_is_heard(settings: Settings, agent: Agent) -> None:
    with Live(settings) as live:
        for _ in range(5):
            agent.say()
            await_all(live, agent)
        assert live.texts("user.prompt") == ["Hello quokka"]
        assert live.hub.trouble is None


def _bell(live: Live, settings: Settings) -> int:
    """The pipe to ring with, as soon as somebody listens to it."""
    found: list[int] = []

    def heard() -> bool:
        with suppress(OSError):
            found.append(os.open(settings.home / wake.FILE, os.O_WRONLY | os.O_NONBLOCK))
        return bool(found)

    live.until(heard)
    return found[0]


def test_rings_for_nothing_change_nothing(settings: Settings, agent: Agent) -> None:
    (settings.home / "hook").mkdir(parents=True)
    with Live(settings) as live:
        bell = _bell(live, settings)
        for _ in range(20):
            agent.say()
            os.write(bell, b"." * 50)
        os.close(bell)
        await_all(live, agent)


def test_a_truncated_and_a_replaced_file(settings: Settings, agent: Agent) -> None:
    """What it held before is kept; what it holds now is heard, and what is the same in both is
    heard once."""
    with Live(settings) as live:
        agent.say(10)
        await_all(live, agent)
        content = agent.path.read_bytes()
        lines = content.splitlines(keepends=True)
        agent.path.write_bytes(b"".join(lines[:3]))
        agent.say(2)
        await_all(live, agent)
        other = agent.path.with_suffix(".new")
        other.write_bytes(content)
        other.rename(agent.path)
        agent.say(2)
        await_all(live, agent)


def test_a_deleted_transcript_and_a_folder_that_vanishes(
    settings: Settings, home: Path, agent: Agent
) -> None:
    with Live(settings) as live:
        agent.say(3)
        await_all(live, agent)
        shutil.rmtree(agent.path.parent)
        other = Agent(home, "numbat")
        other.say(3)
        await_all(live, agent, other)
        agent.say(2)
        await_all(live, agent, other)
        assert live.hub.trouble is None


def test_a_line_that_is_written_in_two_pieces_is_heard_once(
    settings: Settings, agent: Agent
) -> None:
    with Live(settings) as live:
        agent.say()
        await_all(live, agent)
        agent.transcript.say("word 1")
        line = agent.transcript.text().encode()
        agent.transcript.lines.clear()
        size = agent.path.stat().st_size
        with agent.path.open("ab", buffering=0) as file:
            file.write(line[:60])
            live.until(lambda: stored(settings, agent) >= size + 60)
            file.write(line[60:])
        agent.said += 1
        await_all(live, agent)


def stored(settings: Settings, agent: Agent) -> int:
    """Bytes of its transcript; none while the database is being made."""
    try:
        with reading_local(settings) as library:
            sql = "SELECT position + tail FROM sources WHERE path=?"
            found = library.db.execute(sql, (str(agent.path),)).fetchone()
    except NotFound:
        return 0
    return int(found[0]) if found else 0


def test_a_hundred_sessions_that_all_write_twenty_times_a_second(
    settings: Settings, home: Path
) -> None:
    agents = [Agent(home, f"s{number}") for number in range(SESSIONS)]
    with Live(settings) as live:
        begun = time.monotonic()
        for step in range(RATE * STREAMED):
            for agent in agents:
                agent.say()
            time.sleep(max(0.0, begun + (step + 1) / RATE - time.monotonic()))
        live.until(lambda: len(live.heard) >= SESSIONS * (1 + RATE * STREAMED), 120)
        await_all(live, *agents)
        assert live.hub.trouble is None
        assert len(live.hub.standings) == SESSIONS


def test_what_another_process_ingests_is_heard(settings: Settings, agent: Agent) -> None:
    with Live(settings) as live:
        agent.say()
        await_all(live, agent)
        given = agent.path.with_name("elsewhere")
        given.mkdir()
        other = Agent(given, "numbat")
        other.say(3)
        shutil.move(other.path, settings.home / "given.jsonl")  # where no agent's folder is
        command = [sys.executable, "-m", "whyfor", "ingest", str(settings.home / "given.jsonl")]
        subprocess.run(command, check=True, capture_output=True)
        await_all(live, agent, other)


def test_ingests_beside_it_take_nothing_away(settings: Settings, agent: Agent) -> None:
    with Live(settings) as live:
        for _ in range(8):
            agent.say(5)
            ingest(settings)
        await_all(live, agent)


def test_one_who_does_not_listen_for_a_while_hears_all_of_it_later(
    settings: Settings, agent: Agent
) -> None:
    """Nothing is kept for it but its place: the ring has a limit, the rest is read from the
    store."""
    with Live(settings) as live:
        agent.say()
        await_all(live, agent)
        start = live.hub.cursor
        number = RING_ITEMS + 500
        agent.say(number)
        await_all(live, agent)
        assert len(live.hub._ring) <= RING_ITEMS

        async def catch_up() -> list[FeedItem]:
            found: list[FeedItem] = []
            async for item in live.hub.subscribe(StreamFilter(), start):
                if isinstance(item, FeedItem) and item.type == "event":
                    found.append(item)
                if len(found) == number:
                    break
            return found

        assert live._loop is not None
        items = asyncio.run_coroutine_threadsafe(catch_up(), live._loop).result(30)
        totals = [item.cursor.total for item in items if item.cursor]
        assert totals == list(range(start.total + 1, start.total + number + 1))


# -- whatever happens beside it ------------------------------------------------------------------


def test_somebody_has_the_lock_for_a_while(settings: Settings, agent: Agent) -> None:
    with Live(settings) as live:
        agent.say()
        await_all(live, agent)
        with ingest_lock(settings.home, 5):
            agent.say(3)
            time.sleep(1.5)  # as long as it likes: several tries fail
            assert len(live.texts("assistant.message")) == 1
            assert [standing.status.phase for standing in live.hub.standings] == ["running"], (
                "it answers all the same"
            )
        await_all(live, agent)
        assert live.hub.trouble is None


def test_stopping_does_not_wait_for_a_lock(settings: Settings, agent: Agent) -> None:
    with Live(settings) as live:
        agent.say()
        await_all(live, agent)
        with ingest_lock(settings.home, 5):
            agent.say()
            begun = time.monotonic()
            live.stop.set()
            live._threads[1].join(30)
            assert time.monotonic() - begun < 15
    ingest(settings)
    assert stored(settings, agent) == agent.path.stat().st_size


def test_a_home_that_cannot_be_written_is_told_and_nothing_is_lost(
    settings: Settings, agent: Agent
) -> None:
    with Live(settings) as live:
        agent.say()
        await_all(live, agent)
        settings.journal.rename(settings.home / "aside")
        settings.journal.mkdir()  # even root cannot append to it
        agent.say(3)
        live.until(lambda: live.hub.trouble is not None)
        assert str(settings.home) in (live.hub.trouble or "")
        settings.journal.rmdir()
        (settings.home / "aside").rename(settings.journal)
        await_all(live, agent)
        live.until(lambda: live.hub.trouble is None)


def test_a_database_that_is_rebuilt(settings: Settings, agent: Agent) -> None:
    with Live(settings) as live:
        agent.say(5)
        await_all(live, agent)
        rebuild(settings)
        agent.say(5)
        await_all(live, agent)


def test_a_database_that_is_damaged_set_aside_and_made_anew(
    settings: Settings, agent: Agent
) -> None:
    with Live(settings) as live:
        agent.say(5)
        await_all(live, agent)
        for suffix in ("-wal", "-shm"):
            settings.database.with_name(settings.database.name + suffix).unlink(missing_ok=True)
        settings.database.write_bytes(b"no database at all" * 1000)
        rebuild(settings)
        agent.say(5)
        live.until(lambda: stored(settings, agent) == agent.path.stat().st_size)
        live.until(lambda: live.hub.trouble is None)


def test_a_database_that_is_gone_comes_back_from_its_segments(
    settings: Settings, agent: Agent
) -> None:
    with Live(settings) as live:
        agent.say(5)
        await_all(live, agent)
        for path in settings.home.glob("whyfor.db*"):
            path.unlink()
        agent.say(5)
        live.until(
            lambda: (
                settings.database.exists() and stored(settings, agent) == agent.path.stat().st_size
            )
        )


def test_a_file_that_cannot_be_understood_stops_nothing(
    settings: Settings, home: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    from whyfor.agents.claude.read import TranscriptReader

    read = TranscriptReader.read

    def stumble(self: TranscriptReader, record: dict[str, object], *rest: object) -> None:
        if record.get("cwd") == "/code/odd":
            raise ZeroDivisionError("a fault of ours")
        read(self, record, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(TranscriptReader, "read", stumble)
    (settings.home / "hook").mkdir(parents=True)
    odd = Agent(home, "odd", cwd="/code/odd")
    others = [agent, *(Agent(home, f"s{number}") for number in range(5))]
    with Live(settings) as live:
        for each in others:
            each.say(2)
        await_all(live, *others, seconds=60)
        assert live.events(odd.id) == []
    assert "ZeroDivisionError" in (settings.home / "hook" / "errors.log").read_text()


def test_a_story_that_cannot_be_found_stops_no_reading(
    settings: Settings, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    from whyfor.live import ingester as taking

    def fail(*_: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(taking, "projects_to_link", fail)
    hook = Installed(settings.home)
    hook.stand_in()
    with Live(settings) as live:
        live.until((settings.home / wake.FILE).exists)
        for _ in range(3):
            hook.run(
                "claude",
                "Stop",
                payload=f'{{"session_id":"{agent.id}","transcript_path":"x"}}'.encode(),
            )
            agent.say()
            begun = time.monotonic()
            await_all(live, agent)
            assert time.monotonic() - begun < 15
        live.until((hook.folder / "errors.log").exists)
        assert live.hub.trouble is None
    assert hook.started() == []


# -- what is not wanted --------------------------------------------------------------------------


def test_what_is_written_in_a_pause_is_never_heard(settings: Settings, agent: Agent) -> None:
    from whyfor.service.pause import Scope, pause, resume

    with Live(settings) as live:
        agent.transcript._time = now  # type: ignore[method-assign]
        agent.say()
        await_all(live, agent)
        pause(settings, Scope(), None)
        agent.transcript.say("a canary")
        agent.write()
        live.until(lambda: stored(settings, agent) == agent.path.stat().st_size)
        resume(settings, Scope())
        agent.transcript.say("after it")
        agent.write()
        live.until(lambda: "after it" in live.texts("assistant.message"))
        assert live.texts("assistant.message") == ["word 0", "after it"]


def now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def test_a_project_that_is_excluded_meanwhile_is_read_no_more(
    settings: Settings, home: Path, agent: Agent
) -> None:
    with Live(settings) as live:
        agent.say()
        await_all(live, agent)
        with ingest_lock(settings.home, 30):  # not in the middle of a read
            (settings.home / "config.toml").write_text('[exclude]\nprojects = ["/code/shop"]\n')
            agent.transcript.say("a canary")
            agent.write()
        other = Agent(home, "numbat", cwd="/code/garden")
        other.say()
        await_all(live, other)
        assert live.texts("assistant.message", agent.id) == ["word 0"]


def test_while_the_configuration_is_not_right_nothing_is_read(
    settings: Settings, agent: Agent
) -> None:
    """It may say what is excluded."""
    with Live(settings) as live:
        agent.say()
        await_all(live, agent)
        with ingest_lock(settings.home, 30):  # not in the middle of a read
            (settings.home / "config.toml").write_text("[exclude")
            agent.say()
        live.until(lambda: "config.toml" in (live.hub.trouble or ""))
        assert len(live.texts("assistant.message")) == 1
        (settings.home / "config.toml").write_text("")
        await_all(live, agent)


def test_of_a_forgotten_session_nothing_stays_in_memory(
    settings: Settings, home: Path, agent: Agent
) -> None:
    other = Agent(home, "numbat")
    with Live(settings) as live:
        agent.say()
        other.say()
        await_all(live, agent, other)
        live.until(lambda: len(live.hub.standings) == 2)
        command = [sys.executable, "-m", "whyfor", "forget", agent.id, "--yes"]
        subprocess.run(command, check=True, capture_output=True)
        live.until(
            lambda: [standing.session.session_id for standing in live.hub.standings] == [other.id]
        )
        agent.say()
        other.say()
        live.until(lambda: "word 1" in live.texts("assistant.message", other.id))
        assert live.texts("assistant.message", agent.id) == ["word 0"]


# -- hooks, processes, the end -------------------------------------------------------------------


def test_a_hook_is_answered_at_once_and_its_story_looked_for(
    settings: Settings, agent: Agent
) -> None:
    hook = Installed(settings.home)
    hook.stand_in()
    with Live(settings) as live:
        agent.say()
        await_all(live, agent)
        live.until((settings.home / wake.FILE).exists)
        payload = f'{{"session_id":"{agent.id}","transcript_path":"{agent.path}","hook_event_name":"Stop"}}'
        hook.run("claude", "Stop", payload=payload.encode())
        live.until(lambda: live.phases(agent.id)[-1:] == ["waiting"])
        live.until(lambda: not hook.pending.exists())
    assert hook.started() == []
    assert not (settings.home / wake.FILE).exists()


def test_a_killed_agent_is_seen_to_be_gone(settings: Settings, agent: Agent) -> None:
    hook = Installed(settings.home)
    hook.stand_in()
    (hook.home / "go").touch()
    told = f'{{"session_id":"{agent.id}","transcript_path":"{agent.path}"}}'
    command = ["/bin/sh", "-c", hook.command("claude", "UserPromptSubmit")]
    script = (
        f"import subprocess, time; subprocess.run({command!r}, input={told.encode()!r}); "
        "time.sleep(60)"
    )
    with Live(settings) as live:
        agent.say()
        await_all(live, agent)
        # Any program that is no shell may be an agent.
        child = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
        live.until(
            lambda: any("UserPromptSubmit" in one.status.evidence for one in live.hub.standings)
        )
        assert live.phases(agent.id)[-1:] == ["running"]
        begun = time.monotonic()
        os.killpg(child.pid, 9)
        child.wait()
        live.until(lambda: live.phases(agent.id)[-1:] == ["exited"])
        assert time.monotonic() - begun < 15


def test_what_hooks_left_is_read_before_it_ends(settings: Settings, agent: Agent) -> None:
    hook = Installed(settings.home)
    hook.stand_in()
    watching = LiveLoop(settings, Quiet(), sweep)
    watching.turn()
    hook.run(
        "claude", "Stop", payload=f'{{"session_id":"{agent.id}","transcript_path":"x"}}'.encode()
    )
    assert wake.is_asked(settings.home)
    watching.close()
    assert not hook.pending.exists()
    with reading_local(settings) as library:
        assert library.db.execute("SELECT count(*) FROM signals").fetchone() == (1,)


def test_it_ends_without_a_trace(settings: Settings, agent: Agent) -> None:
    (settings.home / "hook").mkdir(parents=True)
    watching = LiveLoop(settings, Quiet(), sweep)  # what is imported on the way stays open
    watching.turn()
    watching.close()
    before, threads = open_files(), threading.active_count()
    with Live(settings) as live:
        agent.say()
        live.until(lambda: live.texts("assistant.message") == ["word 0"])
    assert (open_files(), threading.active_count()) == (before, threads)
    assert not (settings.home / wake.FILE).exists()


def open_files() -> list[str]:
    return sorted(
        str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()
    )


def test_it_waits_when_nothing_is_kept_and_nothing_is_there(settings: Settings) -> None:
    watching = LiveLoop(settings, Quiet(), sweep)
    watching.turn()
    assert watching.turn() > 0.05
    watching.close()


def test_a_hundred_idle_sessions_cost_a_few_turns_a_second(settings: Settings, home: Path) -> None:
    """Counted, not timed: how often the loop turns, and how often it looks at a file."""
    for number in range(100):
        agent = Agent(home, f"s{number}")
        os.utime(agent.path, (time.time() - 3600, time.time() - 3600))
    clock = [1000.0]
    hub = Quiet()
    watching = LiveLoop(config.load(), hub, sweep, clock=lambda: clock[0])
    watching._watch._clock = watching._attending._clock = lambda: clock[0]
    while watching._backlog or not watching._begun:
        clock[0] += watching.turn()
    while clock[0] < 1060:  # the first whole ingest writes what is remembered of the sessions
        clock[0] += watching.turn()
    begun, looks, turns, published = clock[0], watching._watch.looks, 0, hub.published
    while clock[0] < begun + 60:
        wait = watching.turn()
        assert wait > 0
        clock[0] += wait
        turns += 1
    assert turns <= 60 * 6
    assert watching._watch.looks - looks <= 60 * 60
    assert hub.published == published
    assert len(hub.standings) == 100
    watching.close()


def test_cards_have_a_title_and_say_what_was_done_last(settings: Settings, agent: Agent) -> None:
    with Live(settings) as live:
        agent.say(2)
        await_all(live, agent)
        live.until(lambda: bool(live.hub.standings))
        (standing,) = live.hub.standings
        assert standing.session.title == "Hello quokka"
        assert str(standing.summary).splitlines()[-1] == "Last prompt: Hello quokka"
        agent.transcript.prompt("And now?")
        agent.write()
        live.until(lambda: str(live.hub.standings[0].summary).endswith("And now?"), 5)


def test_notes_of_a_session_are_made_while_it_goes_on(settings: Settings, agent: Agent) -> None:
    with Live(settings) as live:
        agent.transcript.prompt("Always run the linter before you commit.")
        agent.write()
        live.until(lambda: "Always run the linter before you commit." in notes(settings), 20)
        agent.transcript.prompt("Never push to main.")
        agent.write()
        live.until(lambda: "Never push to main." in notes(settings), 20)


def notes(settings: Settings) -> list[str]:
    with suppress(NotFound), reading_local(settings) as library:
        found = library.memory.observations(MemoryFilter(), None)
        return [each.observation.title for each in found]
    return []


def test_only_the_memory_of_changed_sessions_is_renewed(settings: Settings, home: Path) -> None:
    agents = [Agent(home, f"s{number}") for number in range(3)]
    clock, renewed = [1000.0], []

    def renew(settings: Settings, store: Store, limit: int) -> int:
        renewed.append(renew_memory(settings, store, limit))
        clock[0] += 0.1  # so long it took
        return renewed[-1]

    watching = LiveLoop(settings, Quiet(), sweep, clock=lambda: clock[0], remember=renew)
    watching._watch._clock = lambda: clock[0]

    def run(seconds: float) -> None:
        ends = clock[0] + seconds
        while clock[0] < ends:
            clock[0] += max(watching.turn(rung=True), 0.05)

    run(20)
    assert sum(renewed) == 3
    begun, clock[0] = len(renewed), clock[0] + 60
    agents[1].say()
    run(2)
    assert renewed[begun:] == [1]
    agents[2].say()
    run(2)
    assert renewed[begun:] == [1]  # it rests for fifty times as long as it took
    run(4)
    assert renewed[begun:] == [1, 1]
    watching.close()


def test_somebody_who_holds_the_lock_for_long_is_said(settings: Settings, home: Path) -> None:
    clock, hub = [100.0], Quiet()
    watching = LiveLoop(settings, hub, sweep, clock=lambda: clock[0])
    agent = Agent(home, "locked")
    watching.turn()
    told = []
    with ingest_lock(settings.home, 5):
        agent.say()
        for clock[0] in (110.0, 111.0, 200.0, 300.0):
            watching.turn(rung=True)
            told.append(hub.trouble)
    assert told == [None, None, None, "another process has been reading for 3 min"]
    clock[0] = 301.0
    watching.turn(rung=True)
    assert hub.trouble is None
    with reading_local(settings) as library:
        assert library.sessions.find(agent.id).messages == 2
    watching.close()
