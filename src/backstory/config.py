"""Settings and folders: environment first, then config.toml in Backstory's home, then defaults."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from backstory.model.errors import BadInput


class Settings(msgspec.Struct, frozen=True):
    """Where Backstory lives and what it may read."""

    home: Path
    """Backstory's own folder: $BACKSTORY_HOME, else the platform's data folder."""
    user_home: Path
    """The home the agents write to."""
    env: Mapping[str, str]
    """The environment agents would see: their overrides are honoured."""
    roots: dict[str, list[Path]] = {}
    """Further folders per agent, from [roots] in config.toml."""
    checkout_line: bool = True
    """Whether git says, after a checkout, that the commit has a story; from config.toml."""

    @property
    def database(self) -> Path:
        return self.home / "backstory.db"

    @property
    def segments(self) -> Path:
        return self.home / "segments"

    @property
    def journal(self) -> Path:
        return self.home / "journal.jsonl"


class _File(msgspec.Struct, frozen=True):
    """config.toml: what is not named here is left alone."""

    roots: dict[str, list[str]] = {}
    checkout_line: bool = True


def load(env: Mapping[str, str] | None = None) -> Settings:
    env = os.environ if env is None else env
    user_home = Path(env.get("HOME") or env.get("USERPROFILE") or Path.home())
    home = _own_home(env)
    file = _file(home / "config.toml")
    roots = {agent: [_expand(item, user_home) for item in items] for agent, items in file.roots.items()}
    return Settings(home=home, user_home=user_home, env=env, roots=roots, checkout_line=file.checkout_line)


def _own_home(env: Mapping[str, str]) -> Path:
    if override := env.get("BACKSTORY_HOME"):
        return Path(override).expanduser().absolute()
    from platformdirs import user_data_path  # only here: most callers set BACKSTORY_HOME or call once

    return user_data_path("backstory", appauthor=False)


def _file(path: Path) -> _File:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return _File()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror}", "Make it readable, or move it away.") from None
    import tomllib  # here: most people have no config.toml

    try:
        return msgspec.convert(tomllib.loads(text), _File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(
            f"{path} is not right: {error}", 'Write e.g. [roots] then claude = ["~/code/.claude"].'
        ) from None


def _expand(item: str, user_home: Path) -> Path:
    return user_home / item[2:] if item.startswith("~/") else Path(item)
