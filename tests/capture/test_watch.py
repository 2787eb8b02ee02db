"""Watching the agents' files: what changed is offered, and nothing is looked at more than it is
worth."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.hook import Installed, await_that
from whyfor.agents import AGENTS
from whyfor.capture import doorbell as wake
from whyfor.capture.discover import FoundFile
from whyfor.capture.doorbell import Doorbell
from whyfor.capture.watch import AT_REST, MANY, ROUND, STEADY, YOUNG, Watch
from whyfor.processes import FRESH, Processes, exists

CLAUDE = AGENTS["claude"]
HOUR = 3600.0


class Clocks:
    """Time passes when it is told to, for the watch and for the files it sees."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._began = time.time_ns()

    def clock(self) -> float:
        return self.now

    def wall(self) -> int:
        return self._began + round((self.now - 1000.0) * 1e9)


class Eye:
    """A watch over one root, looked through until something is seen."""

    def __init__(self, root: Path, agent: str = "claude") -> None:
        self.root = root
        self.clocks = Clocks()
        self.watch = Watch([(AGENTS[agent], root)], self.clocks.clock, self.clocks.wall)

    def after(self, seconds: float, step: float = 0.1) -> list[str]:
        """Names of what was offered, in order, in the seconds that follow."""
        found: list[str] = []
        end = self.clocks.now + seconds
        while self.clocks.now < end:
            found += [item.path.name for item in self.watch.look()]
            self.clocks.now += max(step, self.watch.due())
        return found

    def looks(self, seconds: float) -> int:
        before = self.watch.looks
        self.after(seconds)
        return self.watch.looks - before


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".claude" / "projects"


@pytest.fixture
def eye(root: Path) -> Eye:
    return Eye(root)


def put(path: Path, text: str = "{}\n", age: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    when = time.time() - age
    os.utime(path, (when, when))
    return path


def append(path: Path, text: str = "{}\n") -> None:
    with path.open("a") as file:
        file.write(text)


# -- what is offered -----------------------------------------------------------------------------


def test_what_lies_there_is_offered_once_and_what_changes_each_time(eye: Eye, root: Path) -> None:
    paths = [put(root / "-a" / f"{n}.jsonl") for n in range(3)]
    assert sorted(eye.after(10)) == ["0.jsonl", "1.jsonl", "2.jsonl"]
    assert eye.after(60) == []
    for _ in range(3):
        append(paths[1])
        assert eye.after(3) == ["1.jsonl"]


def test_a_change_is_offered_however_long_the_file_was_at_rest(eye: Eye, root: Path) -> None:
    path = put(root / "-a" / "s.jsonl", age=40 * HOUR)
    assert eye.after(1) == ["s.jsonl"]
    assert eye.after(2 * HOUR) == []
    append(path)
    assert eye.after(2 * ROUND) == ["s.jsonl"]


def test_new_files_are_found_in_folders_old_and_new_and_in_a_root_that_comes_later(
    eye: Eye, root: Path
) -> None:
    assert eye.after(5) == []
    put(root / "-a" / "s.jsonl")
    assert eye.after(2 * ROUND) == ["s.jsonl"]
    put(root / "-a" / "t.jsonl")
    put(root / "-b" / "x" / "subagents" / "agent-1.jsonl")
    assert sorted(eye.after(2 * ROUND)) == ["agent-1.jsonl", "t.jsonl"]
    put(root / "-b" / "x" / "subagents" / "agent-2.jsonl")
    assert eye.after(2 * ROUND) == ["agent-2.jsonl"]


def test_a_file_made_in_the_same_tick_as_its_folder_was_listed_is_found(
    eye: Eye, root: Path
) -> None:
    folder = root / "-a"
    put(folder / "s.jsonl")
    tick = eye.clocks.wall()
    os.utime(folder, ns=(tick, tick))
    eye.after(1)
    put(folder / "t.jsonl")
    os.utime(folder, ns=(tick, tick))
    assert eye.after(2 * ROUND) == ["t.jsonl"]


@pytest.mark.parametrize("how", ["truncated", "replaced", "deleted"])
def test_a_file_that_is_another_now_is_offered(how: str, eye: Eye, root: Path) -> None:
    path = put(root / "-a" / "s.jsonl", "{}\n" * 10)
    eye.after(5)
    if how == "truncated":
        path.write_text("{}\n")
    elif how == "replaced":
        put(path.with_suffix(".new"), "[]\n" * 10).rename(path)
    else:
        path.unlink()
        assert eye.after(5) == []
        assert len(eye.watch) == 0
        put(path, "{}\n" * 10)
    assert eye.after(2 * ROUND) == ["s.jsonl"]


def test_a_folder_may_vanish_and_come_back(eye: Eye, root: Path) -> None:
    put(root / "-a" / "s.jsonl")
    eye.after(5)
    shutil.rmtree(root)
    assert eye.after(30) == []
    assert len(eye.watch) == 0
    put(root / "-a" / "s.jsonl")
    assert eye.after(2 * ROUND) == ["s.jsonl"]


@pytest.mark.parametrize("jump", [-10 * HOUR, 10 * HOUR])
def test_a_clock_that_jumps_hides_nothing(jump: float, root: Path) -> None:
    eye = Eye(root)
    path = put(root / "-a" / "s.jsonl")
    eye.after(5)
    real = eye.clocks.wall
    eye.watch._wall = lambda: real() + round(jump * 1e9)
    append(path)
    assert eye.after(5) == ["s.jsonl"]
    put(root / "-a" / "t.jsonl")
    assert eye.after(2 * ROUND) == ["t.jsonl"]
    assert eye.after(60) == []


def test_a_file_nobody_could_read_yet_is_offered_again_while_it_is_young(
    eye: Eye, root: Path
) -> None:
    path = put(root / "-a" / "x" / "tool-results" / "r.txt")
    assert eye.after(1) == ["r.txt"]
    item = FoundFile(CLAUDE, path)
    eye.watch.unread([item])
    assert eye.after(3 * ROUND).count("r.txt") >= 2
    assert eye.after(YOUNG + 60) and eye.after(60) == []


def test_what_an_agent_does_not_call_a_session_is_not_offered(tmp_path: Path) -> None:
    root = tmp_path / ".copilot" / "session-state"
    eye = Eye(root, "copilot")
    put(root / "s1" / "events.jsonl")
    assert eye.after(5) == ["events.jsonl"]
    put(root / "s1" / "package.json")
    put(root / "s1" / "files" / "events.jsonl")
    assert eye.after(10) == []
    put(root / "s2" / "events.jsonl")
    assert eye.after(2 * ROUND) == ["events.jsonl"]


def test_the_log_beside_a_database_counts_as_the_database(tmp_path: Path) -> None:
    root = tmp_path / "opencode"
    path = put(root / "opencode.db")
    eye = Eye(root, "opencode")
    assert eye.after(5) == ["opencode.db"]
    put(root / "opencode.db-wal", "x")
    assert eye.after(3) == ["opencode.db"]
    append(path.with_name("opencode.db-wal"))
    assert eye.after(3) == ["opencode.db"]


# -- a hook names a file -------------------------------------------------------------------------


def test_a_file_that_a_hook_named_is_looked_at_at_once(eye: Eye, root: Path) -> None:
    path = put(root / "-a" / "s.jsonl", age=40 * HOUR)
    eye.after(HOUR)
    eye.watch.expect(CLAUDE, path)
    append(path)
    assert eye.watch.due() == 0
    assert [item.path for item in eye.watch.look()] == [path]
    new = put(root / "-a" / "t.jsonl")
    eye.watch.expect(CLAUDE, new)
    assert [item.path for item in eye.watch.look()] == [new]


def test_a_ring_looks_at_what_was_just_written_before_it_is_due(eye: Eye, root: Path) -> None:
    path, silent = put(root / "-a" / "s.jsonl"), put(root / "-a" / "t.jsonl", age=60)
    eye.after(1)
    append(path)
    eye.watch.look()
    append(path)
    append(silent)
    assert eye.watch.look() == []
    before = eye.watch.looks
    assert [item.path for item in eye.watch.look(at_once=True)] == [path]
    assert eye.watch.looks == before + 1
    assert eye.after(ROUND) == [silent.name]


def test_a_hook_cannot_have_any_file_read(eye: Eye, root: Path, tmp_path: Path) -> None:
    secret = put(tmp_path / "secret.jsonl")
    root.mkdir(parents=True)
    eye.after(1)
    for path in (
        secret,
        root / ".." / ".." / "secret.jsonl",
        Path("secret.jsonl"),
        root,
        root / "-a" / "none.jsonl",
    ):
        eye.watch.expect(CLAUDE, path)
    assert eye.after(5) == []


# -- what it costs -------------------------------------------------------------------------------


def test_a_hundred_sessions_at_rest_cost_a_hundred_looks_a_round(eye: Eye, root: Path) -> None:
    for number in range(100):
        put(root / f"-{number % 10}" / f"{number}.jsonl", age=HOUR)
    eye.after(10)
    assert eye.looks(600) <= 600 / ROUND * (100 + 11 + 1)


def test_looks_have_a_limit_whatever_lies_there_and_all_is_seen_in_turn(
    eye: Eye, root: Path
) -> None:
    paths = [put(root / f"-{number % 700}" / f"{number}.jsonl", age=HOUR) for number in range(3000)]
    assert len(eye.after(1)) == 3000
    assert eye.looks(60) <= 31 * 2 * AT_REST
    append(paths[1234])
    assert eye.after(3000 / AT_REST * ROUND + ROUND) == ["1234.jsonl"]


def test_a_session_that_falls_silent_is_looked_at_less_and_less(eye: Eye, root: Path) -> None:
    put(root / "-a" / "s.jsonl")
    eye.after(1)
    folders = 2 / ROUND
    rates = [eye.looks(seconds) / seconds - folders for seconds in (14, 40, 500, 600)]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 5 and rates[-1] < 1


@pytest.mark.parametrize(("number", "gap"), [(1, STEADY[0]), (MANY, STEADY[1])])
def test_those_that_write_all_the_time_are_read_in_steps(
    eye: Eye, root: Path, number: int, gap: float
) -> None:
    paths = [put(root / "-a" / f"{n}.jsonl") for n in range(number)]
    eye.after(1)
    offered = 0
    for _ in range(200):  # ten seconds
        for path in paths:
            append(path)
        offered += len(eye.watch.look())
        eye.clocks.now += 0.05
    assert 0.8 * 10 / gap <= offered / number <= 10 / gap + 5


# -- the bell ------------------------------------------------------------------------------------


@pytest.fixture
def hook(tmp_path: Path) -> Installed:
    return Installed(tmp_path / "why for's")


def test_every_hook_rings_and_leaves_its_ingest_to_whoever_serves(hook: Installed) -> None:
    hook.stand_in()
    bell = Doorbell(hook.home)
    bell.hang()
    hook.run("claude", "PreToolUse")
    assert bell.wait(10)
    assert not hook.pending.exists()
    hook.run("claude", "Stop")
    hook.run("claude", "Stop")
    assert bell.wait(10) and not bell.wait(0)
    assert wake.is_asked(hook.home) and wake.answer(hook.home)
    assert not wake.is_asked(hook.home) and not hook.pending.exists()
    bell.close()
    assert hook.started() == []
    hook.run("claude", "Stop")
    await_that(lambda: len(hook.started()) == 1)
    hook.let_go()


def test_one_who_was_told_and_does_not_come_is_not_waited_for(hook: Installed) -> None:
    """Stopped in a terminal, or waiting for a lock: the next hook starts an ingest."""
    hook.stand_in()
    bell = Doorbell(hook.home)
    bell.hang()
    hook.run("claude", "Stop")
    when = hook.pending.stat().st_mtime - 6
    os.utime(hook.pending, (when, when))
    hook.run("claude", "Stop")
    await_that(lambda: len(hook.started()) == 1)
    assert not wake.is_asked(hook.home), "an ingest's own word is not taken away"
    bell.close()
    hook.let_go()


def test_one_who_was_killed_before_it_came_is_not_waited_for(hook: Installed) -> None:
    hook.stand_in()
    bell = Doorbell(hook.home)
    bell.hang()
    hook.run("claude", "Stop")
    for fd in bell._outer:
        os.close(fd)
    bell._outer = ()
    assert (hook.home / wake.FILE).exists() and wake.is_asked(hook.home)
    hook.run("claude", "Stop")
    await_that(lambda: len(hook.started()) == 1)
    bell.close()
    hook.let_go()


@pytest.mark.parametrize("what", ["file", "folder", "link", "pipe nobody reads", "full pipe"])
def test_whatever_lies_in_place_of_the_bell_hooks_do_their_work(what: str, hook: Installed) -> None:
    hook.stand_in()
    place = hook.home / wake.FILE
    bell = None
    if what == "file":
        place.write_bytes(b"")
    elif what == "folder":
        place.mkdir()
    elif what == "link":
        place.symlink_to("/nowhere/at all")
    elif what == "pipe nobody reads":
        os.mkfifo(place)
    else:
        bell = Doorbell(hook.home)
        bell.hang()
        writer = os.open(place, os.O_WRONLY | os.O_NONBLOCK)
        with pytest.raises(BlockingIOError):
            while True:
                os.write(writer, b"." * 4096)
        os.close(writer)
    done = hook.run("claude", "Stop")
    assert (done.returncode, done.stdout, done.stderr, len(hook.lines())) == (0, b"", b"", 1)
    if what == "file":  # it looks like somebody who serves; the next hook finds out
        when = hook.pending.stat().st_mtime - 6
        os.utime(hook.pending, (when, when))
        hook.run("claude", "Stop")
    await_that(lambda: len(hook.started()) == 1)
    if bell:
        bell.close()
    hook.let_go()


def test_the_bell_hangs_again_after_its_folder_was_made_anew(hook: Installed) -> None:
    bell = Doorbell(hook.home)
    for _ in range(2):
        bell.hang()
        hook.run("claude", "PreToolUse")
        assert bell.wait(10)
        (hook.home / wake.FILE).unlink()
    bell.close()


def open_files() -> list[str]:
    return sorted(
        str(path.readlink()) for path in Path("/proc/self/fd").iterdir() if path.is_symlink()
    )


def test_a_bell_that_was_taken_down_leaves_nothing_open(hook: Installed) -> None:
    before = open_files()
    bell = Doorbell(hook.home)
    bell.hang()
    bell.hang()
    bell.ring()
    assert not bell.wait(10), "a ring from within is no hook's"
    bell.close()
    assert open_files() == before
    assert not (hook.home / wake.FILE).exists()


def test_without_hooks_there_is_no_bell_and_waiting_still_ends(tmp_path: Path) -> None:
    bell = Doorbell(tmp_path / "nothing")
    bell.hang()
    assert not bell.wait(0.01)
    bell.close()


# -- processes -----------------------------------------------------------------------------------


def started(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")
def test_a_killed_process_is_gone_even_if_nobody_fetched_it() -> None:
    child = subprocess.Popen(["sleep", "60"])
    ident = (child.pid, started(child.pid))
    processes = Processes()
    assert processes.alive(ident, 0, 0) is True
    assert exists(child.pid, ident[1] + 1) is False, "another process by that number"
    child.kill()
    await_that(lambda: processes.alive(ident, 0, 0) is False)
    child.wait()
    assert processes.alive(ident, 0, 0) is False


def test_of_one_that_speaks_and_is_not_to_be_seen_nothing_is_said() -> None:
    """In a container with our files and processes of its own."""
    now, nobody = 1_000_000, (2**22 + 1, 77)
    assert Processes().alive(nobody, now - 10, now) is None
    assert Processes().alive(nobody, now - FRESH, now) is False
    processes = Processes()
    processes.alive(nobody, now - 10, now)
    assert processes.alive(nobody, now - 10, now + 100 * FRESH) is None, "it stays unknown"
