"""A machine on which Whyfor is run, traced, killed and refused."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import NamedTuple

from whyfor import config

CALLS = (
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "ftruncate",
    "rename",
    "openat",
    "unlink",
    "mkdir",
)
SECONDS = 60  # until a process that should have ended is given up
# The program with a commit after every few lines, as a large file or thousands of files make it
# commit, and with merges as a file that is read while it grows makes them.
SMALL = {"tail.CHUNK": 1500, "ingest.BATCH_BYTES": 3000, "ingest.BATCH_FILES": 2, "compact.FAN": 2}
IN_SMALL_STEPS = "; ".join(
    [
        "import sys",
        "from whyfor.capture import compact, ingest, tail",
        *(f"{name} = {value}" for name, value in SMALL.items()),
        "from whyfor.__main__ import main",
        "sys.exit(main(sys.argv[1:]))",
    ]
)


class Done(NamedTuple):
    code: int
    out: str
    err: str


class Machine:
    """A user's home and Whyfor's, and the program run in a clean environment."""

    def __init__(self, folder: Path, *, small: bool = False) -> None:
        self.small = small
        self.home = folder / "home"
        self.own = folder / "own"
        self.log = folder / "strace.log"
        self.home.mkdir(parents=True)
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "WHYFOR_HOME": str(self.own),
            "LANG": "C.UTF-8",
        }
        self.settings = config.load(self.env)

    def command(self, *arguments: str) -> list[str]:
        return [
            sys.executable,
            *(("-c", IN_SMALL_STEPS) if self.small else ("-m", "whyfor")),
            *arguments,
        ]

    def run(self, *arguments: str, prefix: tuple[str, ...] = ()) -> Done:
        done = subprocess.run(
            [*prefix, *self.command(*arguments)],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(*arguments),
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def traced(
        self,
        *options: str,
        calls: tuple[str, ...] = CALLS,
        command: tuple[str, ...] = ("ingest",),
    ) -> Done:
        """Run a command under strace; an injected SIGKILL ends strace the same way."""
        strace = ["strace", "-f", "-y", "-o", str(self.log), "-e", f"trace={','.join(calls)}"]
        if not any("signal=" in option for option in options):
            strace.append("--seccomp-bpf")  # much quicker, but drops the signals it should inject
        return self.run(*command, prefix=(*strace, *options))

    def paths(self, *more: Path) -> list[str]:
        """Options that let a fault strike only files of ours, never the terminal."""
        database = self.settings.database
        ours = [
            self.settings.journal,
            *(database.with_name(database.name + end) for end in ("", "-wal", "-journal")),
        ]
        return [part for path in (*ours, *more) for part in ("-P", str(path))]


class Kept:
    """A machine that can be had again as it was kept, as often as it is asked for."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._copy = machine.own.with_name("kept")
        self.keep()

    def keep(self) -> None:
        """Take what is stored now for what it will be again."""
        self.machine.own.mkdir(exist_ok=True)
        shutil.copytree(self.machine.own, self._copy, dirs_exist_ok=True)

    def again(self) -> Machine:
        shutil.rmtree(self.machine.own)
        shutil.copytree(self._copy, self.machine.own)
        return self.machine


def strikes(machine: Machine, *command: str) -> dict[str, list[int]]:
    """Run a command without a fault; return the ordinals, per thread as strace counts, of the
    calls that concern our home."""
    assert machine.traced(command=command or ("ingest",)).code == 0
    seen: Counter[tuple[str, str]] = Counter()
    ordinals: dict[str, set[int]] = defaultdict(set)
    for line in machine.log.read_text(errors="replace").splitlines():
        if called := re.match(r"(\d+) +(\w+)\(", line):
            seen[called[1], called[2]] += 1
            if str(machine.own) in line:
                ordinals[called[2]].add(seen[called[1], called[2]])
    return {call: sorted(numbers) for call, numbers in ordinals.items()}


def spread(numbers: list[int], most: int) -> list[int]:
    """The first, the last and others evenly between."""
    if len(numbers) <= most:
        return numbers
    return [numbers[at * (len(numbers) - 1) // (most - 1)] for at in range(most)]
