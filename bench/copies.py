"""Write a home with many sessions of one agent, or of all: copies of the tests' samples, each with
ids of its own and with longer texts.

python copies.py HOME SESSIONS AGENT...    prints the megabytes written, as JSON
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.agents import samples
from tests.agents.samples import Content, Sample, Statement, sample

_WORDS = "the tide turns at noon and the boats come in with what the night has left of it ".split()
_APART = 1_000_000  # ms between two sessions: what is spent at once is taken for the same
_LONG = 9_000  # characters of each longer text
_INDEXED = {
    "message": ("session_id",),
    "part": ("session_id", "message_id"),
    "messages": ("session_id",),
}
_INSERTED = re.compile(r"INSERT INTO \w+ \(([^)]*)\)")


def prose(number: int) -> str:
    """Text that is not the same in two sessions."""
    step = len(_WORDS)
    count = _LONG // 4
    return " ".join(_WORDS[(at * (number % 7 + 1) + number) % step] for at in range(count))[:_LONG]


def copied(given: Sample, number: int) -> Sample:
    """The sample as another session."""
    changes = {text: f"{text} {prose(number + at)}" for at, text in enumerate(_texts())}
    changes |= {text: f"{text} ({number})" for text in (samples.PROMPT, samples.SECOND)}
    for spelling in {given.session_id, given.session_id.replace("-", "")}:
        changes[spelling] = f"{spelling[:-4]}{number:04d}"
    changes |= {one: f"{one}{number:04d}" for one in inner_ids(given) if one not in changes}
    files: dict[str, Content] = {}
    for name, content in given.files.items():
        path = _changed(name, {k: v for k, v in changes.items() if len(v) < 100})
        if path == name and name.endswith(".jsonl"):
            path = f"{name.removesuffix('.jsonl')}{number:04d}.jsonl"
        if isinstance(content, bytes):
            quoted = {json.dumps(k)[1:-1]: json.dumps(v)[1:-1] for k, v in changes.items()}
            files[path] = _changed(content.decode(), quoted).encode()
        else:
            files[name] = list(_statements(content, changes, number))
    return replace(given, files=files)


@cache
def _ids_of(agent: str) -> tuple[str, ...]:
    found: set[str] = set()
    for content in sample(agent).files.values():
        texts = [content.decode()] if isinstance(content, bytes) else _cells(content)
        for text in texts:
            for one in re.findall(r'(?i)id\\?"\s*:\s*\\?"([\w-]{4,})\\?"', text):
                if one.startswith("call") or any(letter.isdigit() for letter in one):
                    found.add(one)
    # the longest first: one may be a part of another
    return tuple(sorted(found, key=len, reverse=True))


def inner_ids(given: Sample) -> tuple[str, ...]:
    """The ids of records and calls. Sessions with the same ones are taken for copies."""
    whole = given.session_id
    return tuple(one for one in _ids_of(given.agent) if one not in whole and whole not in one)


def _cells(content: list[Statement]) -> list[str]:
    return [str(value) for _, values in content for value in values]


def _texts() -> tuple[str, ...]:
    return (samples.THOUGHT, samples.WORDS, samples.CLOSING, samples.ANSWER)


def _changed(text: str, changes: dict[str, str]) -> str:
    for before, after in changes.items():
        text = text.replace(before, after)
    return text


def _statements(
    content: list[Statement], changes: dict[str, str], number: int
) -> Iterator[Statement]:
    """The rows of another session: without the tables, and with ids of its own."""
    own = set(_identities(content))
    for sql, values in content:
        if sql.startswith("CREATE"):
            if number == 0:
                yield sql, values
            continue
        yield sql, tuple(_value(value, own, changes, number) for value in values)


def _indexes(content: list[Statement]) -> Iterator[Statement]:
    """By session, and of parts by message: the agents' own databases have these."""
    made = " ".join(sql for sql, _ in content if sql.startswith("CREATE TABLE"))
    for table, columns in _INDEXED.items():
        if f"CREATE TABLE {table} " in made:
            for column in columns:
                yield f"CREATE INDEX {table}_{column} ON {table} ({column})", ()


def _identities(content: list[Statement]) -> Iterator[Any]:
    for sql, values in content:
        found = _INSERTED.match(sql)
        names = re.findall(r"\w+", found[1]) if found else ["id"]
        if not sql.startswith("INSERT"):
            continue
        for name, value in zip(names, values, strict=False):
            if name in ("id", "message_id") and isinstance(value, str):
                yield value


def _value(value: Any, own: set[Any], changes: dict[str, str], number: int) -> Any:
    if isinstance(value, int) and value > samples.NOW:
        return value + number * _APART
    if not isinstance(value, str):
        return value
    if value in own and value not in changes:
        return f"{value}{number:04d}"
    if value[:1] in "[{":
        quoted = {json.dumps(k)[1:-1]: json.dumps(v)[1:-1] for k, v in changes.items()}
        later = re.sub(r"\b179\d{10}\b", lambda found: str(int(found[0]) + number * _APART), value)
        return _changed(later, quoted)
    return _changed(value, changes)


def write(home: Path, sessions: int, agents: list[str]) -> float:
    """Write the sessions of each agent; return how many megabytes they are."""
    for agent in agents:
        one = sample(agent)
        databases: dict[str, list[Statement]] = {}
        for number in range(sessions):
            copy = copied(one, number)
            plain = {name: c for name, c in copy.files.items() if isinstance(c, bytes)}
            replace(copy, files=plain).write(home)
            for name, content in copy.files.items():
                if isinstance(content, list):
                    databases.setdefault(name, []).extend(content)
        indexed = {name: [*found, *_indexes(found)] for name, found in databases.items()}
        replace(one, files=indexed).write(home)
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) / 1e6


if __name__ == "__main__":
    home, count, *names = sys.argv[1:]
    print(json.dumps(write(Path(home), int(count), names)))
