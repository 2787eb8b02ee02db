"""Redaction of values in memory: every string of a structure, with its name as evidence."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any, TypeVar, cast

import msgspec

from whyfor.privacy.assignments import is_name_key, is_value_key
from whyfor.privacy.engine import Engine
from whyfor.privacy.findings import Finding, join_findings
from whyfor.privacy.name_finder import GENERIC
from whyfor.privacy.records import past_escape
from whyfor.privacy.redactor import FOLLOWED, Redactor
from whyfor.privacy.split_strings import SPLIT
from whyfor.privacy.spread import BEGINS, SpreadKey
from whyfor.privacy.spread import RULE as KEY_RULE
from whyfor.privacy.structure import PROTECTED, SEALED

T = TypeVar("T")


class StructureRedactor(Redactor):
    """Redacts strings, lists, dictionaries and structs; a private key may go on from string to
    string."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self._key = SpreadKey()

    def text(self, value: str, name: str = "") -> str:
        """One string; its name is evidence too."""
        if not value:
            return value
        raw = value.encode("utf-8", "surrogatepass")
        self._follow_key(raw)
        if name and _TELLING.search(name):
            clean = self.until_nothing_is_found(raw, lambda data: self._find_named(data, name))
        else:
            clean = self.plain(raw)
        return value if clean is raw else clean.decode("utf-8", "surrogatepass")

    def _find_named(self, data: bytes, name: str) -> list[Finding]:
        """As if it stood in a record, behind its name; nothing else in the name's sight is
        learnt of that."""
        prefix = f'"{name}": "'.encode("utf-8", "surrogatepass")
        quoted = data.replace(b"\\", b"\\\\").replace(b'"', b'\\"')
        wrapped = b'%b%b"' % (prefix, quoted)
        found = []
        for item in self.allowed_to_change(wrapped, self.engine.find(wrapped)):
            low, high = max(item.start, len(prefix)), min(item.end, len(wrapped) - 1)
            if low < high:
                start, end = (
                    len(_unquoted(wrapped[len(prefix) : past_escape(wrapped, at)]))
                    for at in (low, high)
                )
                found.append(Finding(start, end, item.rule))
        found = join_findings([*found, *self.allowed_to_change(data, self.engine.find(data))])
        for item in found:
            self.know(data[item.start : item.end], item.rule)
        return self.with_copies(data, found)

    def _follow_key(self, data: bytes) -> None:
        """Learn the lines of a private key that earlier strings of the structure began."""
        # a key or a kind is no line of a file
        if len(data) >= FOLLOWED and (self._key.open or BEGINS in data):
            for start, end in self._key.lines(data, 0, len(data)):
                self.know(data[start:end], KEY_RULE)

    def _learn_split(self, texts: list[str]) -> None:
        """Learn the parts of a secret that begins in one of these strings and ends in the next."""
        for one, other in pairwise(texts):
            if one and other:
                record = msgspec.json.encode([one[-SPLIT:], other[:SPLIT]])
                for item in self.engine.find_split(record):
                    self.know(record[item.start : item.end], item.rule)

    def _identity(self, value: str, name: str) -> str:
        """An id stays what it is, unless somebody put a secret there that has a form of its own."""
        if name in SEALED:
            return value
        raw = value.encode("utf-8", "surrogatepass")
        clean = self.until_nothing_is_found(raw, self._find_formed)
        return value if clean is raw else clean.decode("utf-8", "surrogatepass")

    def _find_formed(self, data: bytes) -> list[Finding]:
        found = [item for item in self.engine.find(data) if item.rule not in GENERIC]
        for item in found:
            self.know(data[item.start : item.end], item.rule)
        return found

    def anything(self, value: T, name: str = "") -> T:
        """Every string in a structure, keys included; ids, hashes and signatures stay."""
        result: Any = value
        if isinstance(value, str):
            result = (
                self._identity(value, name.lower())
                if name.lower() in PROTECTED
                else self.text(value, name)
            )
        elif isinstance(value, dict):
            result = self._object(value, name)
        elif isinstance(value, list | tuple | set | frozenset):
            kind: Any = type(value)
            if isinstance(value, list | tuple) and len(value) > 1:
                self._learn_split([_text_of(item) for item in value])
            items = [self.anything(item, name) for item in value]
            result = kind(*items) if hasattr(value, "_fields") else kind(items)
        elif isinstance(value, msgspec.Struct):
            changed = {f: self.anything(getattr(value, f), f) for f in value.__struct_fields__}
            result = type(value)(**changed)
        return cast(T, result)

    def _object(self, value: dict[Any, Any], name: str) -> dict[Any, Any]:
        said = _said_name(value)
        made = {}
        for key, item in value.items():
            own = key if isinstance(key, str) else name
            named = said and is_value_key(own) and not _TELLING.search(own)
            made[self.anything(key)] = self.anything(item, said if named else own)
        return made


_TELLING = re.compile(r"(?i)pass|pwd|secret|token|key|auth|cred")


def _said_name(value: dict[Any, Any]) -> str:
    """The name that an object gives its value, where that promises a secret: {"name": "API_KEY",
    "value": …}."""
    keys = [key for key in value if isinstance(key, str)]
    if not any(map(is_value_key, keys)):
        return ""
    names = (value[key] for key in keys if is_name_key(key))
    return next(
        (
            name
            for name in names
            if isinstance(name, str) and len(name) < 100 and _TELLING.search(name)
        ),
        "",
    )


def _text_of(item: object) -> str:
    """The words of a block of a message; nothing of anything else."""
    if isinstance(item, dict):
        item = item.get("text")
    elif isinstance(item, msgspec.Struct):
        item = getattr(item, "text", None)
    return item if isinstance(item, str) else ""


def _unquoted(text: bytes) -> bytes:
    return re.sub(rb"\\([\\\"])", rb"\1", text)
