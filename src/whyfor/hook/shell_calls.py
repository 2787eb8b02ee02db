"""Starts a snapshot of the work tree around a shell command that may write, where `init
--shell-edits` asked for it; nobody waits for it.

Read only at events of shell commands and at prompts.
"""

import posix

import announce  # type: ignore[import-not-found]
import launcher  # type: ignore[import-not-found]
from shell_words import may_write  # type: ignore[import-not-found]

LONGEST = 16 << 10  # bytes of a command; its end is not looked at


def start(folder: bytes, given: dict[bytes, bytes], payload: bytes, began: int) -> None:
    """Start the process that takes the snapshot this event asks for. `began`: when the hook was
    started, in ns."""
    phase = given[b"snapshot"]
    words = announce.content(folder + b"/snapshot").splitlines()
    session = announce.field(payload, b"session_id")
    if not words or not session or b"dropped" in given:
        return
    command = text(payload, b"command")[:LONGEST] if phase != b"prompt" else b""
    if phase != b"prompt" and not may_write(command):
        return
    call = announce.field(payload, b"tool_call_id") or announce.field(payload, b"tool_use_id")
    where = text(payload, b"cwd") or announce.cwd()
    posix.closerange(3, 1024)  # an agent may wait for the end of a pipe that it left open here
    told = [b"%d" % began, phase, given[b"agent"], session, call, command, where]
    launcher.spawn([*words, *told], announce.above(folder))


def text(payload: bytes, name: bytes) -> bytes:
    """Return a string as it stands in JSON, without its quotes; empty if there is none."""
    rest = payload.partition(b'"%s"' % name)[2].lstrip(b" :\t")
    if rest[:1] != b'"':
        return b""
    end = announce.string_end(rest)
    found: bytes = rest[1:end] if end > 0 else b""
    return found
