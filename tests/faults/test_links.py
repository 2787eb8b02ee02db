"""kill -9 of hooks, of the ingest they start and of git itself, at random moments: nothing lost,
nothing twice."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.story.links.conftest import repo
from tests.story.links.workshop import SECONDS, Agent, Cli, Now, Repo, Workshop, body
from whyfor.config import Settings

__all__ = ["repo"]
RUNS = 200
SEED = 20
KINDS = {"hook": 140, "git": 36, "ingest": 24}  # what is killed, how often
WITHIN = {"hook": 0.04, "git": 0.06, "ingest": 0.6}  # seconds: about as long as each of them takes


class Machine:
    """A repository with everything installed, and an agent that works in it."""

    def __init__(self, home: Path, repo: Repo, settings: Settings) -> None:
        self.home, self.repo, self.settings = home, repo, settings
        self.chance = random.Random(SEED)
        self.agent = Agent("s1", repo)
        self.agent.prompt("Work until you are told to stop")
        (home / ".claude").mkdir()
        done = subprocess.run(
            [sys.executable, "-m", "whyfor", "init", "--json"],
            cwd=repo.path,
            capture_output=True,
            timeout=SECONDS,
        )
        assert done.returncode == 0, done.stderr
        self.commands = _commands(home / ".claude" / "settings.json")
        self.told: list[str] = []  # by hooks that were let through
        self.tried: list[str] = []
        self.killed = 0  # ingests, while they ran
        self.outcomes: list[tuple[int, bytes]] = []  # of git, where nobody interfered

    # -- what happens ----------------------------------------------------------------------------

    def hook(self, event: str, *, kill: bool) -> None:
        """An event of the agent, as its settings tell it to run our hook."""
        name = f"p{len(self.tried)}"
        self.tried.append(name)
        about = {
            "session_id": self.agent.session_id,
            "transcript_path": str(self.agent.path(self.home)),
        }
        payload = json.dumps(
            {**about, "hook_event_name": event, "prompt_id": name, "prompt": "x" * 3000}
        )
        code = self._run(
            ["/bin/sh", "-c", self.commands[event]], payload, "hook" if kill else None
        )[0]
        if not kill:
            assert code == 0
            self.told.append(name)

    def commit(self, *, kill: bool) -> None:
        """Until it is there: who is killed tries again."""
        name = f"file{len(self.agent.lines)}"
        self.agent.write(f"{name}.py", body(name))
        self.agent.save(self.home)
        command = f"git add -A && git commit -q -m 'Add {name}'"

        def do() -> tuple[str, dict[str, Any]]:
            before = self.repo.head
            if kill:
                self._run(["/bin/sh", "-c", command], "", "git")
                for lock in (self.repo.path / ".git").rglob("*.lock"):
                    lock.unlink()
            if self.repo.head == before:
                self.outcomes.append(self._run(["/bin/sh", "-c", command]))
            return "", {"stdout": "", "stderr": ""}

        self.agent._called("Bash", {"command": command}, do)

    def ingest(self) -> None:
        """Started by a hook, then killed."""
        self.hook("Stop", kill=False)
        pending = self.settings.home / "hook" / "pending"
        end = time.monotonic() + self.chance.uniform(0, WITHIN["ingest"])
        pid = int(_text(pending) or 0)
        time.sleep(max(0.0, end - time.monotonic()))
        if pid and str(self.settings.home) in _environment(pid):
            os.kill(pid, signal.SIGKILL)
            self.killed += 1

    def _run(
        self, command: list[str], given: str = "", kill: str | None = None
    ) -> tuple[int, bytes]:
        env = {**self.repo.env, "CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": self.agent.session_id}
        with subprocess.Popen(
            command,
            cwd=self.repo.path,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            if kill is None:
                out = process.communicate(given.encode(), SECONDS)[0]
                return process.returncode, out
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.write(given.encode())
                process.stdin.close()
            time.sleep(self.chance.uniform(0, WITHIN[kill]))
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return process.wait(SECONDS), b""

    # -- what is left ----------------------------------------------------------------------------

    def running(self) -> list[int]:
        """Processes of ours, in whatever session they are."""
        ours = str(self.settings.home)
        names = os.listdir("/proc")  # noqa: PTH208 - names only
        found = [int(name) for name in names if name.isdigit() and int(name) != os.getpid()]
        return [
            pid for pid in found if ours in _environment(pid) + _text(Path(f"/proc/{pid}/cmdline"))
        ]

    def only(self) -> int:
        """The one ingest that hooks have started, when they themselves are gone."""
        pending, end = self.settings.home / "hook" / "pending", time.monotonic() + SECONDS
        while not (left := self.running()) or [_text(pending)] != [str(pid) for pid in left]:
            assert time.monotonic() < end, left
            time.sleep(0.02)
        return left[0]

    def spooled(self) -> list[tuple[dict[str, Any], bytes]]:
        """Envelopes that were written completely."""
        data = b"".join(
            path.read_bytes() for path in sorted(self.settings.home.glob("spool/*.spool"))
        )
        parts = [line.partition(b"\t") for line in re.findall(rb"([^\n]+)\n", data)]
        return [(json.loads(header), payload) for header, _, payload in parts]

    def signals(self) -> list[tuple[str, str | None, str | None]]:
        db = apsw.Connection(str(self.settings.database), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            rows = db.execute("SELECT event, sha, json_extract(data, '$.prompt_id') FROM signals")
            return [(str(event), sha and str(sha), name and str(name)) for event, sha, name in rows]
        finally:
            db.close()


def _commands(settings: Path) -> dict[str, str]:
    """By event, what `init` wrote into the agent's settings."""
    hooks = json.loads(settings.read_text())["hooks"]
    return {event: entries[0]["hooks"][0]["command"] for event, entries in hooks.items()}


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""


def _environment(pid: int) -> str:
    return _text(Path(f"/proc/{pid}/environ"))


@pytest.fixture
def machine(home: Path, repo: Repo, settings: Settings) -> Machine:
    repo.clock = Now()
    repo.env.pop("WHYFOR_DEBUG")
    return Machine(home, repo, settings)


def test_killed_at_any_moment_nothing_is_lost_and_nothing_is_twice(
    machine: Machine, repo: Repo, home: Path, cli: Cli, tmp_path: Path
) -> None:
    kinds = [kind for kind, often in KINDS.items() for _ in range(often)]
    assert len(kinds) == RUNS
    machine.chance.shuffle(kinds)
    for kind in kinds:
        if kind == "hook":
            machine.hook(machine.chance.choice(["UserPromptSubmit", "Notification"]), kill=True)
        elif kind == "git":
            machine.commit(kill=True)
        else:
            machine.ingest()
    machine.hook("UserPromptSubmit", kill=False)
    machine.commit(kill=False)

    end = time.monotonic() + SECONDS
    while (left := machine.running()) and time.monotonic() < end:
        time.sleep(0.02)
    assert left == []

    assert machine.killed > KINDS["ingest"] // 3

    # Git is as if we were not there.
    assert {code for code, _ in machine.outcomes} == {0}
    assert {out for _, out in machine.outcomes} == {b""}
    assert repo.git("status", "--porcelain") == ""
    repo.git("fsck", "--strict")
    other = Repo.made(tmp_path / "other", Now())
    for path in repo.path.glob("*.py"):
        other.write(path.name, path.read_text())
    other.commit("All of it")
    assert repo.sha("HEAD^{tree}") == other.sha("HEAD^{tree}")

    # What was announced is stored, once.
    shop = Workshop(home, repo, cli, hooked=False)
    shop.ingest(machine.agent)
    spooled = machine.spooled()
    names = [
        m[1].decode()
        for _, payload in spooled
        if (m := re.search(rb'"prompt_id": "(p\d+)"', payload))
    ]
    signals = machine.signals()
    assert Counter(name for _, _, name in signals if name) == Counter(names)
    assert set(machine.told) <= set(names) <= set(machine.tried)
    assert len(names) == len(set(names))
    of_git = Counter(
        (header["event"], header["sha"]) for header, _ in spooled if header["agent"] == "git"
    )
    assert Counter((event, sha) for event, sha, _ in signals if sha) == of_git

    # Every commit has its story, and no event of the session is in two of them.
    links = shop.links()
    made = [sha for sha, told in shop.log().items() if told["subject"].startswith("Add file")]
    assert len(made) == KINDS["git"] + 1
    assert [sha for sha in made if machine.agent.session_id not in links[sha]] == []
    told = shop.log()
    parts = sorted(
        (part["from"], part["to"], sha)
        for sha in made
        for part in told[sha]["checkpoint"]["sessions"]
    )
    assert [pair for pair in pairwise(parts) if pair[0][1] >= pair[1][0]] == []

    # And all of it can be made again.
    before = shop.log()
    assert cli("rebuild", "--json").code == 0
    assert shop.log() == before
    assert Counter(machine.signals()) == Counter(signals)


def test_a_person_who_commits_waits_for_nobody(machine: Machine, repo: Repo) -> None:
    """Not even for an ingest that is stuck."""
    launch = machine.settings.home / "hook" / "launch"
    launch.write_text("/bin/sleep\n600\n")
    for number in range(5):
        # waits for hooks, not for it
        repo.commit(f"Mine {number}", {f"mine{number}.py": body(f"mine{number}")})
    os.kill(machine.only(), signal.SIGKILL)  # however many hooks, one is started


def test_an_ingest_that_died_and_was_never_buried_holds_up_nobody(machine: Machine) -> None:
    """Where process 1 buries nobody, as in many containers."""
    (machine.settings.home / "hook" / "launch").write_text("/bin/sleep\n600\n")
    pending = machine.settings.home / "hook" / "pending"
    dead = subprocess.Popen(["true"])
    end = time.monotonic() + SECONDS
    while ") Z" not in _text(Path(f"/proc/{dead.pid}/stat")) and time.monotonic() < end:
        time.sleep(0.01)
    pending.write_text(str(dead.pid))
    machine.hook("Stop", kill=False)
    assert dead.wait() == 0
    os.kill(machine.only(), signal.SIGKILL)
