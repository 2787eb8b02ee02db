"""Settings and directories: environment variables, then config.toml in Whyfor's directory, then
defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from whyfor.model.errors import BadInput
from whyfor.model.paths import to_text

MODEL_FOLDER = "model"  # below Whyfor's directory: where the command of [memory.model] runs
Days = Annotated[int, msgspec.Meta(ge=1)]


class Exclude(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Projects and agents that are never recorded, from [exclude] in config.toml."""

    projects: list[str] = []  # paths, with ~ and *, or projects' identities
    agents: list[str] = []


class Retention(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many days each kind of data is kept, from [retention] in config.toml; None means
    forever."""

    sessions: Days | None = None
    subagents: Days | None = None
    signals: Days | None = None  # what hooks announced

    @property
    def limits(self) -> dict[str, int]:
        return {
            name: days
            for name in self.__struct_fields__
            if (days := getattr(self, name)) is not None
        }


class MemorySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What next sessions are told, from [memory] in config.toml."""

    tokens: Annotated[int, msgspec.Meta(ge=200, le=2250)] = 1_500  # about
    # How many notes a prompt is told of at most; none are told unless `init --memory-prompts` is in
    # effect.
    prompt_notes: Annotated[int, msgspec.Meta(ge=0, le=3)] = 3
    # Which model is asked about sessions that ended. Checked where it is used: a wrong one must not
    # stop capture.
    model: dict[str, Any] = {}


class TaskSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How tasks of other trackers are named, from [tasks] in config.toml."""

    # Of KEY-123 the part before the hyphen; such names then count in prompts and messages too.
    keys: list[Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9]{1,9}$")]] = []


class CostSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What work may cost, from [cost] in config.toml."""

    day_budget: Annotated[float, msgspec.Meta(gt=0)] | None = None  # dollars at list price


class Settings(msgspec.Struct, frozen=True):
    """Where Whyfor's data is and what Whyfor may read."""

    home: Path
    """Whyfor's own directory: $WHYFOR_HOME, else the platform's data directory."""
    user_home: Path
    """The home directory that agents write to."""
    env: Mapping[str, str]
    """The environment that agents see; their variables for directories are respected."""
    roots: dict[str, list[Path]] = {}
    """More directories to read per agent, from [roots] in config.toml."""
    checkout_line: bool = True
    """Whether to print a line after `git checkout` when the commit has a story; from
    config.toml."""
    exclude: Exclude = Exclude()
    """Projects and agents that are never recorded; from config.toml."""
    retention: Retention = Retention()
    """How many days each kind of data is kept before it is deleted; from config.toml."""
    memory: MemorySettings = MemorySettings()
    """What next sessions are told; from config.toml."""
    tasks: TaskSettings = TaskSettings()
    """How tasks of other trackers are named; from config.toml."""
    cost: CostSettings = CostSettings()
    """What a day may cost; from config.toml."""
    semantic: dict[str, Any] = {}
    """Which model makes vectors of texts; from config.toml. Checked where it is used: a wrong one
    must not stop capture."""
    redact: dict[str, Any] = {}
    """Redaction settings from config.toml. They are checked where they are used: an invalid rule
    must stop exports, not capture."""
    notify: dict[str, Any] = {}
    """Notification settings from config.toml, also checked where they are used."""
    lend: Any = None
    """What lends the store of a team's project, see store/open.py; None: it is in `home`."""

    @property
    def database(self) -> Path:
        return self.home / "whyfor.db"

    @property
    def segments(self) -> Path:
        return self.home / "segments"

    @property
    def journal(self) -> Path:
        return self.home / "journal.jsonl"

    @property
    def imports(self) -> Path:
        """Where files from elsewhere are while they are read."""
        return self.home / "imports"

    @property
    def remotes(self) -> Path:
        """What was decided about sharing; no file if nothing is shared."""
        return self.home / "remotes.json"

    @property
    def shares_anything(self) -> bool:
        """Whether others may have stories of projects; cheap, for those who ask with every run."""
        return self.lend is None and self.remotes.exists()


class ConfigFile(msgspec.Struct, frozen=True):
    """The content of config.toml; unknown keys are ignored."""

    roots: dict[str, list[str]] = {}
    checkout_line: bool = True
    exclude: Exclude = Exclude()
    retention: Retention = Retention()
    memory: MemorySettings = MemorySettings()
    tasks: TaskSettings = TaskSettings()
    cost: CostSettings = CostSettings()
    semantic: dict[str, Any] = {}
    redact: dict[str, Any] = {}
    notify: dict[str, Any] = {}


def load(env: Mapping[str, str] | None = None) -> Settings:
    env = os.environ if env is None else env
    user_home = Path(env.get("HOME") or env.get("USERPROFILE") or Path.home())
    home = own_home(env)
    file = _file(home / "config.toml")
    roots = {
        agent: [_expand(item, user_home) for item in items] for agent, items in file.roots.items()
    }
    return Settings(
        home=home,
        user_home=user_home,
        env=env,
        roots=roots,
        checkout_line=file.checkout_line,
        retention=file.retention,
        memory=file.memory,
        tasks=file.tasks,
        cost=file.cost,
        semantic=file.semantic,
        redact=file.redact,
        notify=file.notify,
        exclude=_exclude(file, home, user_home),
    )


def _exclude(file: ConfigFile, home: Path, user_home: Path) -> Exclude:
    projects = [_at_home(item, user_home) for item in file.exclude.projects]
    if file.memory.model.get("command"):
        # An agent that is asked about a session runs there, and writes a session of its own.
        projects.append(to_text(home / MODEL_FOLDER))
    return Exclude(projects, file.exclude.agents)


def own_home(env: Mapping[str, str]) -> Path:
    if override := env.get("WHYFOR_HOME"):
        return Path(override).expanduser().absolute()
    from platformdirs import user_data_path  # only here: most callers set WHYFOR_HOME or call once

    return user_data_path("whyfor", appauthor=False)


def _file(path: Path) -> ConfigFile:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ConfigFile()
    except OSError as error:
        raise BadInput(
            f"cannot read {path}: {error.strerror}", "Make it readable, or move it away."
        ) from None
    import tomllib  # here: most people have no config.toml

    try:
        return msgspec.convert(tomllib.loads(text), ConfigFile)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(
            f"{path} is not right: {error}", 'Write e.g. [roots] then claude = ["~/code/.claude"].'
        ) from None


def _expand(item: str, user_home: Path) -> Path:
    return user_home / item[2:] if item.startswith("~/") else Path(item)


def _at_home(item: str, user_home: Path) -> str:
    """Expand `~` like above, in a text that may be a pattern or not a path at all."""
    return f"{to_text(user_home)}{item[1:]}" if item == "~" or item.startswith("~/") else item
