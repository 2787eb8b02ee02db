"""Answers a request by the person's rules, or says nothing.

Read only where `init --rules` asked for it. The rules lie beside this file as an ingest prepared
them, with the place of the package that judges; without either, the person is asked as ever.
"""

import marshal
import posix
import sys
import time

import announce  # type: ignore[import-not-found]
from rule_form import FORM, PREPARED  # type: ignore[import-not-found]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

OTHERS = 0o022  # bits of a mode: others may write
begun = time.monotonic()


def answer(folder: bytes, given: dict[bytes, bytes], payload: bytes) -> bytes:
    """Return what to print, and note in `given` what the rules said; empty if nothing is to be
    said."""
    if b"dropped" in given or sys.stdout is None:
        return b""  # what was asked is not known as it was asked
    kept = prepared(folder)
    if kept is None:
        return b""
    sys.path.append(kept["package"])
    judge = __import__("whyfor.story.rules.hook_request", fromlist=["answer_request"])
    found = judge.answer_request(given[b"agent"].decode(), payload, kept)
    if found is None:
        return b""
    took = int((time.monotonic() - begun) * 1000)
    printed = found.printed if not kept["dry"] and took <= kept["limit"][found.agent] else b""
    if not printed:
        found.facts["dry"] = True
    found.facts["ms"] = took
    given[b"answer"] = judge.encode_reply(found.facts)
    told: bytes = printed
    return told


def prepared(folder: bytes) -> "dict[str, Any] | None":
    """Return the prepared rules; None if there are none, the file of rules has changed since, or
    others could have written one of them."""
    path = folder + b"/" + PREPARED.encode()
    raw = announce.content(path)
    if not raw or not is_safe(path):
        return None
    kept: dict[str, Any]
    form, kept = marshal.loads(raw)
    if form != FORM or not is_safe(kept["file"]):
        return None
    found = posix.lstat(kept["file"])
    return kept if kept["stamp"] == (found.st_ino, found.st_size, found.st_mtime_ns) else None


def is_safe(path: bytes) -> bool:
    """Return whether a file is a plain one of ours that nobody else can write."""
    try:
        found = posix.lstat(path)
    except OSError:
        return False
    plain = found.st_mode & 0o170000 == 0o100000
    return plain and found.st_uid == posix.geteuid() and not found.st_mode & OTHERS
