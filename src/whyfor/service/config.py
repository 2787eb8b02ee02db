"""config: show the settings, and change one in config.toml while the rest of the file stays as it
is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any

import msgspec

from whyfor.agents import AGENTS
from whyfor.capture.block_folder import drop_blocks
from whyfor.config import (
    ConfigFile,
    CostSettings,
    Exclude,
    MemorySettings,
    Retention,
    Settings,
    TaskSettings,
)
from whyfor.files import make_folders, replace
from whyfor.live.notify import NotifySettings
from whyfor.model.errors import BadInput, NotFound
from whyfor.privacy.own_rules import RedactSettings, rules_for
from whyfor.recall.embeddings.settings import SemanticSettings

_TABLES: dict[str, type[msgspec.Struct]] = {
    "cost": CostSettings,
    "exclude": Exclude,
    "redact": RedactSettings,
    "notify": NotifySettings,
    "retention": Retention,
    "memory": MemorySettings,
    "tasks": TaskSettings,
    "semantic": SemanticSettings,
}
_HEADER = re.compile(r"^\s*\[")


class Setting(msgspec.Struct, frozen=True):
    """A setting as it is in effect."""

    name: str
    value: Any
    default: Any
    given: bool  # it is in config.toml


class _Kind(msgspec.Struct, frozen=True):
    type: Any
    default: Any

    @property
    def is_list(self) -> bool:
        return isinstance(self.default, list | tuple)


def _kinds() -> dict[str, _Kind]:
    """Return all settings by name: `table.key`, or a key at the top of the file."""
    found = {"checkout_line": _Kind(bool, ConfigFile().checkout_line)}
    found |= {f"roots.{agent}": _Kind(list[str], []) for agent in AGENTS}
    for table, struct in _TABLES.items():
        empty = struct()
        for field in msgspec.structs.fields(struct):
            found[f"{table}.{field.name}"] = _Kind(field.type, getattr(empty, field.encode_name))
    return found


def config_path(settings: Settings) -> str:
    return str(settings.home / "config.toml")


def list_settings(settings: Settings) -> list[Setting]:
    given = tomllib.loads(_text(settings))
    found = []
    for name, kind in _kinds().items():
        value = _value(given, name)
        shown = kind.default if value is None else value
        found.append(Setting(name, shown, kind.default, value is not None))
    return found


def find_setting(settings: Settings, name: str) -> Setting:
    _kind(name)
    return next(each for each in list_settings(settings) if each.name == name)


def change_setting(settings: Settings, name: str, values: Sequence[str] | None) -> Setting:
    """Write a setting to config.toml, or remove it with None. Raise BadInput if the value does not
    fit, and change nothing then."""
    kind = _kind(name)
    value = None if values is None else _converted(name, kind, values)
    before = _text(settings)
    wanted = _with_value(tomllib.loads(before), name, value)
    after = _edited(before, name, None if value is None else _literal(value))
    if _parsed(after) != wanted:
        raise BadInput(
            f"{name} is written in a way that only you can change",
            f"Edit it: {config_path(settings)}",
        )
    _check(settings, wanted)
    path = settings.home / "config.toml"
    make_folders(path.parent)
    replace(path, after.encode())
    if name.startswith(("redact.", "memory.")):
        drop_blocks(settings)
    return find_setting(settings, name)


# -- values --------------------------------------------------------------------------------------


def _kind(name: str) -> _Kind:
    kinds = _kinds()
    if name not in kinds:
        raise NotFound(f"no setting is called {name!r}", "See which there are: whyfor config")
    return kinds[name]


def _value(given: dict[str, Any], name: str) -> Any:
    table, _, key = name.rpartition(".")
    place = given.get(table, {}) if table else given
    return place.get(key) if isinstance(place, dict) else None


def _converted(name: str, kind: _Kind, values: Sequence[str]) -> Any:
    """Return what people typed as the setting's type."""
    if name == "redact.rule":
        raise BadInput("a rule has several fields", "Write it into config.toml: docs/redact.md")
    if not kind.is_list and len(values) != 1:
        raise BadInput(f"{name} has one value", f"Give one: whyfor config set {name} VALUE")
    try:
        given: Any = list(values) if kind.is_list else values[0]
        return msgspec.to_builtins(msgspec.convert(given, kind.type, strict=False))
    except msgspec.ValidationError as error:
        raise BadInput(f"{name}: {error}", "See: docs/settings.md") from None


def _check(settings: Settings, given: dict[str, Any]) -> None:
    """Raise BadInput if a file with these settings could not be used."""
    try:
        file = msgspec.convert(given, ConfigFile)
        msgspec.convert(file.notify, NotifySettings)
    except msgspec.ValidationError as error:
        raise BadInput(
            f"config.toml would not be right: {error}", "See: docs/settings.md"
        ) from None
    rules_for(msgspec.structs.replace(settings, redact=file.redact))


def _with_value(given: dict[str, Any], name: str, value: Any) -> dict[str, Any]:
    table, _, key = name.rpartition(".")
    wanted = dict(given)
    place = dict(wanted.get(table, {})) if table else wanted
    if value is None:
        place.pop(key, None)
    else:
        place[key] = value
    if table and (place or table in wanted):
        wanted[table] = place
    return wanted


def _literal(value: Any) -> str:
    """Return a value as TOML; its strings are written as in JSON."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(_literal(each) for each in value)}]"
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\x7f", "\\u007f")


# -- the file ------------------------------------------------------------------------------------


def _text(settings: Settings) -> str:
    try:
        return (settings.home / "config.toml").read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None


def _edited(text: str, name: str, literal: str | None) -> str:
    """Return the file's text with one value written, replaced or removed. It is checked afterwards:
    TOML has more ways to write things than are known here."""
    table, _, key = name.rpartition(".")
    lines = text.splitlines()
    first, last = _region(lines, table)
    wanted = [] if literal is None else [f"{key} = {literal}"]
    at = _line_of(lines, key, first, last)
    if at is not None:
        end = _end_of(lines, at, last)
        if wanted and end == at + 1:
            wanted[0] += _comment(lines[at])
        lines[at:end] = wanted
    elif wanted:
        if table and first == 0:
            lines += [*([""] if lines else []), f"[{table}]", *wanted]
        else:
            while last > first and not lines[last - 1].strip():
                last -= 1
            lines[last:last] = wanted
    return "".join(f"{line}\n" for line in lines)


def _region(lines: list[str], table: str) -> tuple[int, int]:
    """Return where a table's lines begin and end; (0, 0) if it is not there. The lines before the
    first header belong to none."""
    headers = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    if not table:
        return 0, headers[0] if headers else len(lines)
    own = re.compile(rf"^\s*\[\s*{table}\s*\]\s*(#.*)?$")
    for number in headers:
        if own.match(lines[number]):
            later = [at for at in headers if at > number]
            return number + 1, later[0] if later else len(lines)
    return 0, 0


def _line_of(lines: list[str], key: str, first: int, last: int) -> int | None:
    own = re.compile(rf"^\s*{key}\s*=")
    return next((at for at in range(first, last) if own.match(lines[at])), None)


def _end_of(lines: list[str], at: int, last: int) -> int:
    """Return where a value ends, which may have several lines."""
    for end in range(at + 1, last + 1):
        if _parsed("\n".join(lines[at:end])) is not None:
            return end
    return at + 1


def _comment(line: str) -> str:
    """Return the comment after a value, with the space before it."""
    whole = _parsed(line)
    for found in re.finditer(r"\s*#", line):
        if _parsed(line[: found.start()]) == whole:
            return line[found.start() :]
    return ""
