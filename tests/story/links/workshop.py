"""A real repository, and agents whose transcripts tell truly what they did in it, on one clock."""

from __future__ import annotations

import atexit
import difflib
import functools
import json
import os
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import chdir
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.conftest import Result
from tests.transcripts import Transcript

START = datetime(2035, 5, 1, 10, tzinfo=UTC).timestamp()  # ahead of the clock that hooks go by
SECONDS = 60  # until a command is given up
Cli = Callable[..., Result]


class Clock:
    """Whole seconds, as git counts them; it goes on with everything that is done."""

    def __init__(self, now: float = START) -> None:
        self.now = int(now)

    def tick(self, seconds: int = 1) -> int:
        self.now += seconds
        return self.now

    def iso(self) -> str:
        return datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


class Now(Clock):
    """The real one."""

    def tick(self, seconds: int = 1) -> int:
        return int(time.time())

    def iso(self) -> str:
        return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def body(name: str, count: int = 6) -> str:
    """Lines that nobody else writes by chance."""
    return "".join(f"{name}_value_{n} = compute({n}, '{name}')\n" for n in range(count))


class Repo:
    """A folder of a repository; every command runs at the clock's time, and the clock goes on."""

    def __init__(self, path: Path, clock: Clock, *, author: str = "Ada") -> None:
        self.path = path
        self.clock = clock
        self.env = {
            **os.environ,
            "GIT_AUTHOR_NAME": author,
            "GIT_AUTHOR_EMAIL": f"{author.lower()}@example.org",
            "GIT_COMMITTER_NAME": author,
            "GIT_COMMITTER_EMAIL": f"{author.lower()}@example.org",
            "GIT_EDITOR": "true",
            "GIT_SEQUENCE_EDITOR": "true",
        }

    @classmethod
    def made(cls, path: Path, clock: Clock, *options: str, first: bool = True) -> Repo:
        """Make a repository, with a first commit by a person unless `first` is false."""
        if first and not options and _is_untouched(clock):
            template, clock.now = _template()
            shutil.copytree(template, path)
            # the index knows the files by their times and numbers, which are others now
            subprocess.run(["git", "update-index", "-q", "--refresh"], cwd=path, check=True)
            return cls(path, clock)
        path.mkdir(parents=True)
        repo = cls(path, clock)
        repo.git("init", "-q", "-b", "main", *options)
        if first:
            repo.commit("First", {"README.md": "A shop.\n"})
        return repo

    def at(self, path: Path) -> Repo:
        """Another work tree or clone, on the same clock."""
        return Repo(path, self.clock)

    def shell(self, command: str, env: Mapping[str, str] = {}, *, check: bool = True) -> str:
        """What it prints, when it and every hook it started are through."""
        when = f"{self.clock.tick()} +0000"
        full = {**self.env, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, **env}
        held, ours = os.pipe()
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command],
                cwd=self.path,
                env=full,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(ours,),  # whatever it starts inherits this end
                check=False,
                timeout=SECONDS,
            )
        finally:
            os.close(ours)
        os.read(held, 1)  # until nobody holds the other end any more
        os.close(held)
        out = done.stdout.decode("utf-8", "replace")
        assert done.returncode == 0 or not check, f"{command}: {out}"
        return out

    def git(self, *arguments: str, env: Mapping[str, str] = {}, check: bool = True) -> str:
        return self.shell(shlex.join(["git", *arguments]), env, check=check).strip()

    def write(self, path: str, content: str) -> None:
        at = self.path / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_text(content, encoding="utf-8")

    def read(self, path: str) -> str:
        at = self.path / path
        return at.read_text(encoding="utf-8") if at.exists() else ""

    def commit(self, message: str, files: Mapping[str, str] = {}, *options: str) -> str:
        """By a person: everything that has changed."""
        for path, content in files.items():
            self.write(path, content)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message, *options)
        return self.head

    @property
    def head(self) -> str:
        return self.sha("HEAD")

    def sha(self, revision: str) -> str:
        return subprocess.run(
            ["git", "rev-parse", "--verify", revision],
            cwd=self.path,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()


def _is_untouched(clock: Clock) -> bool:
    """Whether a repository made now is the one that every other test makes first."""
    name = os.environ.get("GIT_CONFIG_GLOBAL")  # outside of a test nobody sets it
    configured = name is None or Path(name).exists()
    return type(clock) is Clock and clock.now == START and not configured


@functools.cache
def _template() -> tuple[Path, int]:
    """A repository with its first commit, to be copied, and what its clock says then."""
    folder = Path(tempfile.mkdtemp(prefix="whyfor-template-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    clock = Clock()
    repo = Repo(folder, clock)
    repo.git("init", "-q", "-b", "main")
    repo.commit("First", {"README.md": "A shop.\n"})
    return folder, clock.now


class Agent(Transcript):
    """A Claude Code session in a repository: what it says it did, it does."""

    def __init__(self, name: str, repo: Repo, *, cwd: str | None = None) -> None:
        super().__init__(name, cwd=cwd or str(repo.path))
        self.repo = repo
        self.clock = repo.clock

    def _time(self) -> str:
        self.clock.tick()
        return self.clock.iso()

    def _called(
        self, tool: str, given: dict[str, Any], do: Callable[[], tuple[str, dict[str, Any]]]
    ) -> str:
        ident = f"toolu_{self._id()[:13]}"
        self.block({"type": "tool_use", "id": ident, "name": tool, "input": given})
        said, outcome = do()
        answer = {"type": "tool_result", "tool_use_id": ident, "content": said}
        self.add("user", {"role": "user", "content": [answer]}, toolUseResult=outcome)
        return said

    def write(self, path: str, content: str, *, repo: Repo | None = None) -> None:
        """A file written whole; its patch says what was new in it."""
        where = repo or self.repo
        before = where.read(path)

        def do() -> tuple[str, dict[str, Any]]:
            where.write(path, content)
            outcome = {
                "type": "update" if before else "create",
                "filePath": str(where.path / path),
                "content": content,
            }
            return "The file has been written.", {
                **outcome,
                "structuredPatch": _patch(before, content),
            }

        self._called("Write", {"file_path": str(where.path / path), "content": content}, do)

    def edit(self, path: str, old: str, new: str) -> None:
        before = self.repo.read(path)
        assert old in before
        after = before.replace(old, new, 1)

        def do() -> tuple[str, dict[str, Any]]:
            self.repo.write(path, after)
            outcome = {"filePath": str(self.repo.path / path), "oldString": old, "newString": new}
            return "The file has been updated.", {
                **outcome,
                "structuredPatch": _patch(before, after),
            }

        given = {"file_path": str(self.repo.path / path), "old_string": old, "new_string": new}
        self._called("Edit", given, do)

    def run(self, command: str, *, repo: Repo | None = None, check: bool = True) -> str:
        """In its shell, which knows whose session it is."""
        where = repo or self.repo

        def do() -> tuple[str, dict[str, Any]]:
            env = {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": self.session_id}
            out = where.shell(command, env, check=check)
            return out, {"stdout": out, "stderr": "", "interrupted": False}

        return self._called("Bash", {"command": command}, do)

    def commit(self, message: str, *, repo: Repo | None = None) -> str:
        self.run(f"git add -A && git commit -m '{message}'", repo=repo)
        return (repo or self.repo).head

    def ask(self, question: str, answer: str) -> None:
        """AskUserQuestion, answered."""
        given = {
            "questions": [{"question": question, "header": "Which", "options": [{"label": answer}]}]
        }
        said = f'User has answered your questions: "{question}"="{answer}".'
        self._called(
            "AskUserQuestion", given, lambda: (said, {**given, "answers": {question: answer}})
        )

    def path(self, home: Path) -> Path:
        return home / ".claude" / "projects" / "-code-shop" / f"{self.session_id}.jsonl"


def _patch(before: str, after: str) -> list[dict[str, Any]]:
    """As the agent keeps it: hunks with their lines, each after its sign."""
    hunks: list[dict[str, Any]] = []
    for line in list(
        difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=3)
    )[2:]:
        if line.startswith("@@"):
            hunks.append({"oldStart": 1, "oldLines": 0, "newStart": 1, "newLines": 0, "lines": []})
        else:
            hunks[-1]["lines"].append(line)
    return hunks


class Workshop:
    """Whyfor beside a repository: what it says after everything was read."""

    def __init__(self, home: Path, repo: Repo, cli: Cli, *, hooked: bool) -> None:
        self.home = home
        self.repo = repo
        self.cli = cli
        self.hooked = hooked
        if hooked:
            self.install(repo)

    def install(self, repo: Repo) -> None:
        """`whyfor init` for real; nobody reads the spool but the test."""
        with chdir(repo.path):
            done = self.cli("init")
        assert done.code == 0, done.err
        (Path(os.environ["WHYFOR_HOME"]) / "hook" / "launch").write_text("")

    def ingest(self, *agents: Agent) -> None:
        for agent in agents:
            agent.save(self.home)
        done = self.cli("ingest", "--json")
        assert done.code == 0, done.err

    def log(self, *arguments: str) -> dict[str, dict[str, Any]]:
        """By commit, newest first."""
        done = self.cli("log", "--limit", "0", "--json", *arguments)
        assert done.code == 0, done.err
        return {told["commit"]: told for told in done.json}

    def show(self, commit: str) -> dict[str, Any]:
        done = self.cli("show", commit, "--json")
        assert done.code == 0, done.err
        found: dict[str, Any] = done.json
        return found

    def links(self, *arguments: str) -> dict[str, dict[str, str]]:
        """By commit, each linked session and its evidence."""
        return {sha: linked(told) for sha, told in self.log(*arguments).items()}


def linked(told: dict[str, Any]) -> dict[str, str]:
    parts = told["checkpoint"]["sessions"] if told["checkpoint"] else []
    return {part["session_id"]: part["evidence"] for part in parts}


def part_of(told: dict[str, Any], agent: Agent) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = (
        part for part in told["checkpoint"]["sessions"] if part["session_id"] == agent.session_id
    )
    return found


def spooled(home: Path) -> list[dict[str, Any]]:
    """Headers of all envelopes so far."""
    lines = [
        line
        for path in sorted(home.glob("spool/*.spool"))
        for line in path.read_bytes().split(b"\n")
        if line
    ]
    return [json.loads(line.partition(b"\t")[0]) for line in lines]
