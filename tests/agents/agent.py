"""The real agents, headless: how each is pointed at the model, started and resumed, and where it
writes."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from .install import installed
from .model import ScriptedModel
from .process import run_clean

TIMEOUT = 120.0  # seconds: a hung agent is seen all the same, a slow machine is forgiven
# Time a hook's detached work gets to end by itself after the agent did; nothing waits when nothing
# is left.
GRACE = 5.0


@dataclass(frozen=True)
class Run:
    """One finished run of an agent."""

    code: int
    stdout: str
    stderr: str
    # session files the run created or changed, the main one first, subagents' after it
    files: tuple[Path, ...]
    session_id: str
    # command lines of processes that outlived the agent and had to be killed
    killed: tuple[str, ...]

    @property
    def transcript(self) -> Path:
        assert self.files, f"no session file was written\n{self.stdout}\n{self.stderr}"
        return self.files[0]

    @property
    def records(self) -> list[dict[str, Any]]:
        # Split on newlines only: JSON strings may hold other line separators.
        return [json.loads(line) for line in self.transcript.read_text().split("\n") if line]


class Agent(ABC):
    """An agent with a home of its own, working in `cwd`, talking to `model`."""

    name: ClassVar[str]
    # where session files lie under the home
    sessions: ClassVar[str]

    def __init__(
        self,
        home: Path,
        cwd: Path,
        model: ScriptedModel,
        *,
        env: Mapping[str, str] | None = None,
        path: Sequence[Path] = (),
    ) -> None:
        self.home = home
        self.cwd = cwd
        self.model = model
        self.extra_env = dict(env or {})
        self.extra_path = tuple(path)
        self.temp = home / "tmp"
        self._prepare_home()

    def run(self, prompt: str, *args: str, timeout: float = TIMEOUT, grace: float = GRACE) -> Run:
        """Start a new session with a prompt and wait for its end."""
        return self._run(self.argv(prompt, *args), timeout, grace)

    def resume(
        self,
        session_id: str,
        prompt: str,
        *args: str,
        timeout: float = TIMEOUT,
        grace: float = GRACE,
    ) -> Run:
        """Take up an earlier session with another prompt."""
        return self._run(self.argv(prompt, *args, session_id=session_id), timeout, grace)

    @abstractmethod
    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        """The command line of a headless run, new or resumed."""

    @property
    def env(self) -> dict[str, str]:
        """The whole environment of the agent; nothing of the caller's is inherited."""
        return {
            "PATH": self._search_path(),
            "HOME": str(self.home),
            "TMPDIR": str(self.temp),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            **self._no_way_out(),
            **self._own_env(),
            **self.extra_env,
        }

    def _prepare_home(self) -> None:
        self.temp.mkdir(parents=True, exist_ok=True)

    @abstractmethod
    def _own_env(self) -> dict[str, str]: ...

    @abstractmethod
    def _session_id(self, transcript: Path) -> str: ...

    def _search_path(self) -> str:
        tools = [Path(found).parent for tool in ("node", "git") if (found := shutil.which(tool))]
        folders = [*self.extra_path, installed(), *tools]
        return os.pathsep.join(
            dict.fromkeys([*map(str, folders), "/usr/local/bin", "/usr/bin", "/bin"])
        )

    def _no_way_out(self) -> dict[str, str]:
        # What is not for loopback goes to the model as a proxy, which refuses it and remembers the
        # host.
        proxies = dict.fromkeys(
            ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), self.model.url
        )
        return {**proxies, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}

    def _run(self, argv: list[str], timeout: float, grace: float) -> Run:
        before = self._session_files()
        done = run_clean(argv, self.cwd, self.env, timeout, grace)
        files = [path for path, state in self._session_files().items() if before.get(path) != state]
        files.sort(key=lambda path: (len(path.parts), path.name))
        session_id = self._session_id(files[0]) if files else ""
        return Run(done.code, done.stdout, done.stderr, tuple(files), session_id, done.killed)

    def _session_files(self) -> dict[Path, tuple[int, int]]:
        paths = self.home.glob(self.sessions)
        return {path: (stat.st_size, stat.st_mtime_ns) for path in paths for stat in [path.stat()]}


class Claude(Agent):
    name = "claude"
    sessions = ".claude/projects/**/*.jsonl"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["--resume", session_id] if session_id else []
        # Permissions cannot be skipped when run as root, so the tools are allowed by name.
        return [
            "claude",
            "-p",
            prompt,
            *resume,
            *args,
            "--allowedTools",
            "Agent Bash Edit Read Write",
        ]

    def _own_env(self) -> dict[str, str]:
        return {
            "ANTHROPIC_BASE_URL": self.model.url,
            "ANTHROPIC_API_KEY": "dummy",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_TMPDIR": str(self.temp),
        }

    def _session_id(self, transcript: Path) -> str:
        return transcript.stem


class Codex(Agent):
    name = "codex"
    sessions = ".codex/sessions/**/rollout-*.jsonl"
    # the oldest model this version knows: newer ones get their tools through a code interpreter
    model_name = "gpt-5.5"
    # For its settings: a person said no to the newer model that its terminal would offer first.
    keeps_model = f'[notice.model_migrations]\n"{model_name}" = "gpt-6-sol"\n'

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["resume", session_id] if session_id else []
        settings = [flag for setting in self._settings() for flag in ("-c", setting)]
        free_hand = "--dangerously-bypass-approvals-and-sandbox"
        return ["codex", "exec", free_hand, *settings, *args, *resume, prompt]

    def _settings(self) -> list[str]:
        provider = (
            f'{{name="mock",base_url="{self.model.url}/v1",wire_api="responses",env_key="MOCKKEY"}}'
        )
        # The last three keep it off the network: usage events, the plugin catalogue, news of
        # releases.
        return [
            f"model={self.model_name}",
            "model_provider=mock",
            f"model_providers.mock={provider}",
            "analytics.enabled=false",
            "features.plugins=false",
            "check_for_update_on_startup=false",
        ]

    def _own_env(self) -> dict[str, str]:
        return {"MOCKKEY": "dummy"}

    def _session_id(self, transcript: Path) -> str:
        return transcript.stem[-36:]


class Gemini(Agent):
    name = "gemini"
    sessions = ".gemini/tmp/*/chats/**/*.jsonl"
    # naming a model spares a router call that is retried for a minute
    model_name = "gemini-2.5-flash"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["--resume", session_id] if session_id else []
        return ["gemini", "-m", self.model_name, "--yolo", *resume, *args, "-p", prompt]

    def _own_env(self) -> dict[str, str]:
        return {
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": self.model.url,
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        }

    def _prepare_home(self) -> None:
        super()._prepare_home()
        # No variable chooses the key or stops the statistics, and system-wide settings are refused
        # below a world-writable folder; so the user's settings do, beside what a test has put
        # there. At its start it deletes sessions in which it finds nothing to go on with, while
        # one may be just being written: not in a test.
        path = self.home / ".gemini" / "settings.json"
        path.parent.mkdir(exist_ok=True)
        settings = json.loads(path.read_text()) if path.exists() else {}
        settings.setdefault("security", {})["auth"] = {"selectedType": "gemini-api-key"}
        settings.setdefault("privacy", {})["usageStatisticsEnabled"] = False
        settings.setdefault("general", {})["sessionRetention"] = {"enabled": False}
        path.write_text(json.dumps(settings, indent=2))

    def _session_id(self, transcript: Path) -> str:
        with transcript.open() as lines:
            return str(json.loads(next(lines))["sessionId"])


class Copilot(Agent):
    """Without an account: it talks to a provider of the user's own."""

    name = "copilot"
    sessions = ".copilot/session-state/*/events.jsonl"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = [f"--resume={session_id}"] if session_id else []
        return ["copilot", "-p", prompt, "--allow-all-tools", *resume, *args]

    def _own_env(self) -> dict[str, str]:
        return {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{self.model.url}/copilot",
            "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "claude-sonnet-4",
        }

    def _session_id(self, transcript: Path) -> str:
        return transcript.parent.name


class OpenCode(Agent):
    """Its sessions are rows of one database; the newest is the one that ran."""

    name = "opencode"
    sessions = ".local/share/opencode/opencode.db*"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["--session", session_id] if session_id else []
        return ["opencode", "run", *resume, *args, prompt]

    def _own_env(self) -> dict[str, str]:
        return {
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
            "NPM_CONFIG_REGISTRY": "http://127.0.0.1:9/",  # nobody is there
            "BUN_CONFIG_REGISTRY": "http://127.0.0.1:9/",
        }

    def _prepare_home(self) -> None:
        super()._prepare_home()
        # The provider's address stands beside what a test, or our `init`, has put there.
        path = self.home / ".config" / "opencode" / "opencode.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        settings = json.loads(path.read_text()) if path.exists() else {}
        settings["model"] = "anthropic/claude-sonnet-4-5"
        options = {"baseURL": f"{self.model.url}/opencode/v1", "apiKey": "dummy"}
        settings["provider"] = {"anthropic": {"options": options}}
        path.write_text(json.dumps(settings, indent=2))

    @property
    def _database(self) -> Path:
        return self.home / ".local/share/opencode/opencode.db"

    def _session_id(self, transcript: Path) -> str:
        with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True)) as db:
            sql = "SELECT id FROM session WHERE parent_id IS NULL ORDER BY time_updated DESC"
            return str(db.execute(sql).fetchone()[0])


AGENTS: dict[str, type[Agent]] = {"claude": Claude, "codex": Codex, "gemini": Gemini}
# Slower, and with fewer ways to run: only where a behaviour of theirs is tested.
ALL_AGENTS: dict[str, type[Agent]] = {**AGENTS, "copilot": Copilot, "opencode": OpenCode}
