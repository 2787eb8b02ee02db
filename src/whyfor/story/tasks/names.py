"""The names of tasks in branches, prompts, links and commit messages.

A number after a word is mostly no task: UTF-8, SHA-256, a list's `#1`. A bare `KEY-123` counts only
if a person configured the key, or if it stands in a branch or alone in a trailer.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

import msgspec

_KEY = re.compile(r"(?<![A-Za-z0-9])([A-Za-z][A-Za-z0-9]{1,9})-(\d{1,6})(?![A-Za-z0-9])")
# What looks like a key in upper case and is a standard, an algorithm or a model.
_NO_KEYS = frozenset(
    "UTF SHA ISO RFC HTTP TLS SSL UTC GMT CVE CWE PEP ES ECMA MD AES RSA EC GPT ADR PR MR "
    "WIP IPV X86 ARM AMD COVID FIX BUG FEAT RC".split()
)
_LINK = re.compile(
    r"https?://[\w.-]+(?::\d+)?/(?:"
    r"(?:[\w./-]+/)?(?:browse|issue)/(?P<key>[A-Z][A-Z0-9]{1,9}-\d{1,6})"
    r"|(?P<repository>[\w.-]+(?:/[\w.-]+)+?)/(?:-/)?(?:issues|work_items)/(?P<number>\d{1,9})"
    r")(?![\w-])"
)
_BRANCH_NUMBER = re.compile(
    r"(?:^|/)(?:issues?|gh|bug|ticket|task)[-_/#](\d{1,6})(?=$|[-_/])", re.I
)
_BRANCH_START = re.compile(r"(?:^|/)(\d{1,6})-(?=[a-z])", re.I)  # as forges name branches of issues
_TRAILER = re.compile(
    r"\b(?:fix(?:e[sd])?|close[sd]?|resolve[sd]?)\b:?[ \t]+"
    r"(?P<what>https?://\S+|(?:[\w.-]+/[\w.-]+)?#\d{1,9}|[A-Za-z][A-Za-z0-9]*-[A-Za-z0-9.]+)"
    r"(?P<alone>[ \t]*$)?",
    re.I | re.M,
)


class TaskNames(msgspec.Struct, frozen=True):
    """What counts as a task's name in a project."""

    keys: tuple[str, ...] = ()  # configured: of KEY-123 the part before the hyphen
    known: frozenset[str] = frozenset()  # tasks that a tracker of the project has
    project: str = ""  # identity, which ends in owner/name if it has a remote


def branch_tasks(branch: str | None, names: TaskNames) -> list[str]:
    """Return the tasks that a branch is named after."""
    if not branch:
        return []
    found = [key for key in _words_of(branch) if key in names.known]
    for match in _KEY.finditer(branch):
        word, number = match[1], match[2]
        configured = _configured(word, names.keys)
        if configured:
            found.append(f"{configured}-{number}")
        elif word.isupper() and word not in _NO_KEYS:
            found.append(match[0])
    if not found:
        numbered = _BRANCH_NUMBER.search(branch) or _BRANCH_START.search(branch)
        found = [f"#{int(numbered[1])}"] if numbered else []
    return list(dict.fromkeys(found))


def _words_of(branch: str) -> Iterator[str]:
    """Yield the parts of a branch that may be a tracker's id: of each piece every beginning that
    ends before a hyphen."""
    for piece in branch.split("/"):
        parts = piece.split("-")
        for first in range(len(parts)):
            for last in range(first + 2, len(parts) + 1):
                yield "-".join(parts[first:last])


def linked_tasks(text: str, names: TaskNames) -> list[str]:
    """Return the tasks whose whole addresses stand in a text."""
    return list(dict.fromkeys(_link_name(match, names) for match in _LINK.finditer(text)))


def keyed_tasks(text: str, names: TaskNames) -> list[str]:
    """Return the tasks of configured keys that stand in a text, outside of addresses."""
    if not names.keys:
        return []
    bare = _LINK.sub(" ", text)
    found = [match[0] for match in _KEY.finditer(bare) if match[1] in names.keys]
    return list(dict.fromkeys(found))


def trailer_tasks(message: str, names: TaskNames) -> list[str]:
    """Return the tasks that a commit message says it fixes, closes or resolves."""
    found = (_trailer_name(match, names) for match in _TRAILER.finditer(message))
    return list(dict.fromkeys(name for name in found if name))


def _trailer_name(match: re.Match[str], names: TaskNames) -> str:
    what = match["what"]
    if what.startswith("http"):
        link = _LINK.match(what)
        return _link_name(link, names) if link else ""
    if "#" in what:
        return _own_number(what, names)
    what = what.rstrip(".")
    if what in names.known:
        return what
    key = _KEY.fullmatch(what)
    if key is None:
        return ""
    configured = _configured(key[1], names.keys)
    if configured:
        return f"{configured}-{key[2]}"
    alone = match["alone"] is not None and key[1].isupper() and key[1] not in _NO_KEYS
    return what if alone else ""


def _link_name(match: re.Match[str], names: TaskNames) -> str:
    if match["key"]:
        return match["key"]
    return _own_number(f"{match['repository']}#{match['number']}", names)


def _own_number(name: str, names: TaskNames) -> str:
    """Return an issue's number alone if it is one of the project itself."""
    repository, _, number = name.partition("#")
    own = not repository or f"/{names.project}".lower().endswith(f"/{repository}".lower())
    return f"#{number}" if own else name


def _configured(word: str, keys: Collection[str]) -> str:
    """Return a key as it was configured, whatever the case of the word; empty if it was not."""
    return next((key for key in keys if key.lower() == word.lower()), "")
