"""Agents that are run to record samples, by `record.py`: too big to install for every test run."""

from __future__ import annotations

import json
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar

from .agent import Agent, OpenCode

MODEL = "mock-model"


class Chat(Agent):
    """An agent that talks to a model of one's own by OpenAI's chat completions."""

    @property
    def api(self) -> str:
        return f"{self.model.url}/{self.name}/v1"

    def _own_env(self) -> dict[str, str]:
        return {}

    def _settings(self, name: str, content: str | dict[str, Any]) -> None:
        """Write a file of settings below the home."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else json.dumps(content, indent=2)
        path.write_text(text)


class DatabaseChat(Chat):
    """Its sessions are rows of one database; the newest is the one that ran."""

    newest: ClassVar[str]

    def _session_id(self, transcript: Path) -> str:
        (database,) = [path for path in self.home.glob(self.sessions) if path.suffix == ".db"]
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
            return str(db.execute(self.newest).fetchone()[0])


class Qwen(Chat):
    name = "qwen"
    sessions = ".qwen/projects/*/chats/*.jsonl"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["--resume", session_id] if session_id else []
        return ["qwen", "--yolo", "--auth-type", "openai", *resume, *args, "-p", prompt]

    def _own_env(self) -> dict[str, str]:
        return {"OPENAI_API_KEY": "dummy", "OPENAI_BASE_URL": self.api, "OPENAI_MODEL": MODEL}

    def _prepare_home(self) -> None:
        super()._prepare_home()
        quiet = {"privacy": {"usageStatisticsEnabled": False}, "memory": {"enableAuto": False}}
        self._settings(".qwen/settings.json", quiet)

    def _session_id(self, transcript: Path) -> str:
        return transcript.stem


class Pi(Chat):
    name = "pi"
    sessions = ".pi/agent/sessions/*/*.jsonl"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["--session", session_id] if session_id else []
        return ["pi", "-p", "--provider", "mock", "--model", MODEL, *resume, *args, prompt]

    def _prepare_home(self) -> None:
        super()._prepare_home()
        cost = {"input": 0.3, "output": 1.2, "cacheRead": 0.05, "cacheWrite": 0}
        known = {"id": MODEL, "contextWindow": 128000, "maxTokens": 8000, "cost": cost}
        provider = {"baseUrl": self.api, "apiKey": "dummy", "api": "openai-completions"}
        models = {"providers": {"mock": {**provider, "models": [{**known, "reasoning": True}]}}}
        self._settings(".pi/agent/models.json", models)

    def _own_env(self) -> dict[str, str]:
        return {"PI_OFFLINE": "1"}

    def _session_id(self, transcript: Path) -> str:
        return transcript.stem.rpartition("_")[2]


class Kilo(OpenCode):
    name = "kilo"
    sessions = ".local/share/kilo/kilo.db*"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["--session", session_id] if session_id else []
        return ["kilo", "run", "-m", f"mock/{MODEL}", "--auto", *resume, *args, prompt]

    def _own_env(self) -> dict[str, str]:
        return {"KILO_DISABLE_MODELS_FETCH": "1", "KILO_DISABLE_AUTOUPDATE": "1"}

    def _prepare_home(self) -> None:
        Agent._prepare_home(self)
        options = {"baseURL": f"{self.model.url}/kilo/v1", "apiKey": "dummy"}
        models = {MODEL: {"limit": {"context": 128000, "output": 8000}, "reasoning": True}}
        mock = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
        path = self.home / ".config" / "kilo" / "kilo.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"provider": {"mock": mock}, "permission": {"*": "allow"}}))

    @property
    def _database(self) -> Path:
        return self.home / ".local/share/kilo/kilo.db"


class Droid(Chat):
    name = "droid"
    sessions = ".factory/sessions/*/*.jsonl"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["-s", session_id] if session_id else []
        free_hand = "--skip-permissions-unsafe"
        return ["droid", "exec", free_hand, "-m", "custom:Mock-0", *resume, *args, prompt]

    def _own_env(self) -> dict[str, str]:
        return {"FACTORY_API_KEY": "fk-dummy", "FACTORY_API_BASE_URL": self.model.url}

    def _prepare_home(self) -> None:
        super()._prepare_home()
        mock = {"model": MODEL, "displayName": "Mock", "baseUrl": self.api, "apiKey": "dummy"}
        kind = {"provider": "generic-chat-completion-api", "maxOutputTokens": 8000}
        self._settings(".factory/settings.json", {"customModels": [{**mock, **kind}]})

    def _session_id(self, transcript: Path) -> str:
        return transcript.stem


class Cline(Chat):
    name = "cline"
    sessions = ".cline/data/sessions/*/*.messages.json"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        assert session_id is None, "it resumes in a terminal only"
        return ["cline", "-P", "openai-compatible", "-m", MODEL, *args, prompt]

    def sign_in(self) -> list[str]:
        told = ["-p", "openai-compatible", "-k", "dummy", "-m", MODEL, "-b", self.api]
        return ["cline", "auth", *told]

    def _session_id(self, transcript: Path) -> str:
        return transcript.parent.name


class Grok(Chat):
    name = "grok"
    sessions = ".grok/sessions/*/*/updates.jsonl"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["-r", session_id] if session_id else []
        return ["grok", "-p", prompt, "--always-approve", "-m", "mock", *resume, *args]

    def _own_env(self) -> dict[str, str]:
        return {
            "XAI_API_KEY": "dummy",
            "GROK_XAI_API_BASE_URL": self.api,
            "GROK_MODELS_LIST_URL": f"{self.api}/models",
        }

    def _prepare_home(self) -> None:
        super()._prepare_home()
        lines = [
            "[models]",
            'default = "mock"',
            "[model.mock]",
            f'model = "{MODEL}"',
            f'base_url = "{self.api}"',
            'api_key = "dummy"',
            'api_backend = "chat_completions"',
            "context_window = 128000",
        ]
        self._settings(".grok/config.toml", "\n".join(lines))

    def _session_id(self, transcript: Path) -> str:
        return transcript.parent.name


class Kimi(Chat):
    name = "kimi"
    sessions = ".kimi-code/sessions/*/*/agents/main/wire.jsonl"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["-S", session_id] if session_id else []
        return ["kimi", *resume, *args, "-p", prompt]

    def _own_env(self) -> dict[str, str]:
        return {"KIMI_CODE_NO_AUTO_UPDATE": "1"}

    def _prepare_home(self) -> None:
        super()._prepare_home()
        lines = [
            'default_model = "mock"',
            "[models.mock]",
            'provider = "mockp"',
            f'model = "{MODEL}"',
            "max_context_size = 128000",
            "[providers.mockp]",
            'type = "openai"',
            f'base_url = "{self.api}"',
            'api_key = "dummy"',
        ]
        self._settings(".kimi-code/config.toml", "\n".join(lines))

    def _session_id(self, transcript: Path) -> str:
        return transcript.parents[2].name


class Goose(DatabaseChat):
    name = "goose"
    sessions = ".local/share/goose/sessions/sessions.db*"
    newest = "SELECT id FROM sessions ORDER BY updated_at DESC"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["-r"] if session_id else []
        return ["goose", "run", "--with-builtin", "developer", *resume, "-n", "quay", "-t", prompt]

    def _own_env(self) -> dict[str, str]:
        return {
            "GOOSE_PROVIDER": "openai",
            "OPENAI_HOST": f"{self.model.url}/goose",
            "OPENAI_API_KEY": "dummy",
            "GOOSE_MODEL": MODEL,
            "GOOSE_MODE": "auto",
            "GOOSE_DISABLE_KEYRING": "1",
        }


class Vibe(Chat):
    name = "vibe"
    sessions = ".vibe/logs/session/unified/*/CURRENT"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["--resume", session_id] if session_id else []
        return ["vibe", "--trust", "--auto-approve", *resume, *args, "-p", prompt]

    def _own_env(self) -> dict[str, str]:
        return {"MOCKKEY": "dummy"}

    def _prepare_home(self) -> None:
        super()._prepare_home()
        lines = [
            'active_model = "mock"',
            "enable_telemetry = false",
            "[[providers]]",
            'name = "mockp"',
            f'api_base = "{self.api}"',
            'api_key_env_var = "MOCKKEY"',
            'backend = "generic"',
            "[[models]]",
            f'name = "{MODEL}"',
            'provider = "mockp"',
            'alias = "mock"',
        ]
        self._settings(".vibe/config.toml", "\n".join(lines))

    def _session_id(self, transcript: Path) -> str:
        return transcript.parent.name


class OpenHands(Chat):
    name = "openhands"
    sessions = ".openhands/conversations/*/base_state.json"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["--resume", session_id] if session_id else []
        return [
            "openhands",
            "--headless",
            "--override-with-envs",
            "--always-approve",
            *resume,
            *args,
            "-t",
            prompt,
        ]

    def _own_env(self) -> dict[str, str]:
        return {
            "LLM_MODEL": f"openai/{MODEL}",
            "LLM_BASE_URL": self.api,
            "LLM_API_KEY": "dummy",
            "OPENHANDS_SUPPRESS_BANNER": "1",
        }

    def _session_id(self, transcript: Path) -> str:
        return str(uuid.UUID(transcript.parent.name))


class Continue(Chat):
    name = "continue"
    sessions = ".continue/sessions/*-*.json"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["--resume"] if session_id else []
        config = str(self.home / ".continue" / "config.yaml")
        return ["cn", "-p", "--auto", "--config", config, *resume, *args, prompt]

    def _own_env(self) -> dict[str, str]:
        return {"CONTINUE_TELEMETRY_ENABLED": "0"}

    def _prepare_home(self) -> None:
        super()._prepare_home()
        lines = [
            "name: mock",
            "version: 0.0.1",
            "schema: v1",
            "models:",
            "  - name: mock",
            "    provider: openai",
            f"    model: {MODEL}",
            f"    apiBase: {self.api}",
            "    apiKey: dummy",
            "    roles: [chat]",
            "    capabilities: [tool_use]",
        ]
        self._settings(".continue/config.yaml", "\n".join(lines))

    def _session_id(self, transcript: Path) -> str:
        return transcript.stem


class Hermes(DatabaseChat):
    name = "hermes"
    sessions = ".hermes/state.db*"
    newest = "SELECT id FROM sessions ORDER BY started_at DESC"

    def argv(self, prompt: str, *args: str, session_id: str | None = None) -> list[str]:
        resume = ["--resume", session_id] if session_id else []
        return ["hermes", "chat", "-Q", "--yolo", *resume, *args, "-q", prompt]

    def _prepare_home(self) -> None:
        super()._prepare_home()
        lines = [
            "model:",
            f"  default: {MODEL}",
            "  provider: custom",
            f"  base_url: {self.api}",
            "  api_key: dummy",
        ]
        self._settings(".hermes/config.yaml", "\n".join(lines))


MORE: dict[str, type[Agent]] = {
    "qwen": Qwen,
    "pi": Pi,
    "kilo": Kilo,
    "droid": Droid,
    "cline": Cline,
    "grok": Grok,
    "kimi": Kimi,
    "goose": Goose,
    "vibe": Vibe,
    "openhands": OpenHands,
    "continue": Continue,
    "hermes": Hermes,
}
