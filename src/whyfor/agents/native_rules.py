"""Rules in agents' own settings, which allow commands without any hook. Each function returns the
file with a rule added, unchanged if it is there already."""

from __future__ import annotations

import json
import shlex
from typing import Any

from whyfor.agents.settings_file import (
    Unmergeable,
    decoded_text,
    parse_agent_settings,
    written_settings,
)


def add_to_list(content: bytes, keys: tuple[str, ...], entry: str) -> bytes:
    """Add an entry to the list that stands below these keys. Raises Unmergeable."""
    data = parse_agent_settings(content)
    found: Any = data
    for key in keys[:-1]:
        found = _object(found.setdefault(key, {}), key)
    entries = found.setdefault(keys[-1], [])
    if not isinstance(entries, list):
        raise Unmergeable(f"{keys[-1]} is not a list")
    if entry in entries:
        return content
    entries.append(entry)
    return written_settings(data, content)


def add_to_table(content: bytes, keys: tuple[str, ...], name: str, value: str) -> bytes:
    """Set a name in the object that stands below these keys, behind all others, because the last
    that fits counts. Where one word stands for all, it is kept as `*`. Raises Unmergeable."""
    data = parse_agent_settings(content)
    found: Any = data
    for key in keys:
        before = found.get(key, {})
        found[key] = {"*": before} if isinstance(before, str) else before
        found = _object(found[key], key)
    if found.get(name) == value:
        return content
    found.pop(name, None)
    found[name] = value
    return written_settings(data, content)


def append_block(content: bytes, block: str) -> bytes:
    """Append some lines to a text file. Raises Unmergeable."""
    text = decoded_text(content)
    if block.strip() in text:
        return content
    gap = "\n" if text.strip() else ""
    return f"{text.rstrip()}\n{gap}{block.strip()}\n".lstrip().encode()


def quoted_words(run: list[str]) -> str:
    return shlex.join(run)


def quoted_text(text: str) -> str:
    """Return a string as JSON and TOML write it."""
    return json.dumps(text)


def _object(value: Any, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unmergeable(f"{key} is not an object")
    return value
