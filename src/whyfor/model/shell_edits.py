"""What a shell command changed in files, as it was seen by comparing the work tree before and
after it."""

from __future__ import annotations

import msgspec

SHELL_EDITS = "ShellEdits"  # the event of such an announcement


class ShellFileDiff(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happened to one file."""

    path: str  # below the work tree
    diff: str = ""  # hunks of a unified diff; empty for a new file
    # All of the file after it, where it is new, or where others may have written to it between
    # the version that the diff begins with and the command.
    whole: str | None = None
    gone: bool = False


class ShellEdits(msgspec.Struct, omit_defaults=True):
    """One command."""

    session_id: str
    call: str  # the agent's own id of it; empty if its hook has none
    command: str  # the beginning of it
    top: str  # the work tree
    began: int  # ms
    ended: int
    files: list[ShellFileDiff] = []
    left_out: dict[str, str] = {}  # files that are not told of, and why
    skipped: str = ""  # why nothing is known of what it changed
