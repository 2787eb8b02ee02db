"""Tells a session at its start what an ingest has written down for it beforehand.

Read only where `init --memory` asked for it.
"""

import posix
import sys

import announce  # type: ignore[import-not-found]
from block_name import block_key, block_name, checkout  # type: ignore[import-not-found]

START, THREADS = 1, 3  # lines of a block's file: what is told at a start, and after a compaction
PARTS = {b"startup": START, b"clear": START, b"new": START, b"compact": THREADS}
LONGEST_ID = 200


def answer(folder: bytes, given: dict[bytes, bytes], payload: bytes) -> bytes:
    """Return what to print, and note in `given` what that is; empty if there is nothing to tell,
    or the session was told."""
    part = PARTS.get(announce.field(payload, b"source"))
    ident = asked_session(payload)
    if part is None or sys.stdout is None or not ident:
        return b""
    lines = block(folder)
    if len(lines) < part + 2 or not lines[part + 1]:
        return b""
    if part == START and not is_first(folder, given[b"agent"] + b"-" + ident, lines[part]):
        return b""
    given[b"memory"] = lines[part]
    return shaped(given, lines[part + 1])


def block(folder: bytes) -> list[bytes]:
    """Return the lines of the block for the branch around us, else for its repository; empty if
    there is none."""
    found = checkout(announce.cwd(), announce.content)
    if found is None:
        return []
    for branch in dict.fromkeys((found[1], b"")):
        key = block_key(found[0], branch)
        lines: list[bytes] = announce.content(folder + b"/memory/" + block_name(key)).split(b"\n")
        if lines[0] == key:
            return lines
    return []


def asked_session(payload: bytes) -> bytes:
    """Return the id of the session that a payload is of; empty if it has none, or is a subagent's:
    its task was given by the session."""
    ident: bytes = announce.field(payload, b"session_id") or announce.field(payload, b"sessionId")
    return ident if is_name(ident) and not announce.field(payload, b"agent_id") else b""


def is_first(folder: bytes, name: bytes, facts: bytes) -> bool:
    """Return whether this session was told nothing at its start yet; from now on it was this."""
    told = folder + b"/told"
    announce.make_folder(told)
    try:
        fd = posix.open(told + b"/" + name, posix.O_WRONLY | posix.O_CREAT | posix.O_EXCL, 0o600)
    except FileExistsError:
        return False
    posix.write(fd, facts + b"\n")
    return True


def is_name(ident: bytes) -> bool:
    return ident.replace(b"-", b"").replace(b"_", b"").isalnum() and len(ident) <= LONGEST_ID


def shaped(given: dict[bytes, bytes], text: bytes) -> bytes:
    """Return a text, which is JSON, in the form the agent reads; some refuse a field they do not
    know."""
    if given[b"agent"] == b"copilot":
        return b'{"additionalContext":%s}' % text
    return b'{"hookSpecificOutput":{"hookEventName":%s,"additionalContext":%s}}' % (
        announce.quoted(given[b"event"]),
        text,
    )
