"""Read and write agents' settings in JSON, so that nothing else in the file changes."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Any


class Unmergeable(ValueError):
    """The file contains something that rewriting would change, so it is not touched."""


def parse_agent_settings(content: bytes, empty: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the settings in a file; `empty` if it has none. Raises Unmergeable."""
    text = decoded_text(content)
    if not text.strip():
        return dict(empty or {})
    try:
        data = json.loads(
            text,
            object_pairs_hook=_once,
            parse_float=_float,
            parse_int=_int,
            parse_constant=lambda _: _int(""),
        )
    except RecursionError:
        raise Unmergeable("it is nested too deep") from None
    except json.JSONDecodeError as error:
        raise Unmergeable(f"it is not valid JSON (line {error.lineno}: {error.msg})") from None
    if not isinstance(data, dict):
        raise Unmergeable("it is not an object")
    return data


def decoded_text(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Unmergeable("it is not valid UTF-8") from None


def _float(digits: str) -> float:
    if repr(float(digits)) != digits:
        raise Unmergeable(f"the number {digits} would be written differently")
    return float(digits)


def _int(digits: str) -> int:
    if len(digits) > 1000 or not digits or str(int(digits)) != digits:
        raise Unmergeable(f"the number {digits[:20]} would be written differently")
    return int(digits)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise Unmergeable("it has the same key twice")
    return made


def written_settings(data: dict[str, Any], like: bytes) -> bytes:
    """Return the value as JSON, indented like the text it replaces."""
    former = like.decode("utf-8-sig")
    indent = re.search(r"^\s*\{[ \t]*\r?\n([ \t]+)\"", former)
    try:
        made = json.dumps(data, indent=indent[1] if indent else 2, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise Unmergeable("it has half a character, which cannot be written") from None
    if b"\r\n" in like:
        made = made.replace(b"\n", b"\r\n")
    end = former[len(former.rstrip()) :].encode() if former.strip() else b"\n"
    return like[: 3 * like.startswith(BOM_UTF8)] + made + end
