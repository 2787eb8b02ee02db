"""Check whether a process still runs. It is identified by pid and start time, because a pid can be
reused."""

from __future__ import annotations

import os
from pathlib import Path

Ident = tuple[int, int]  # pid, and when it began as the system counts it; 0 where it does not say
FRESH = 5_000  # ms: a process that was active this recently was alive then


class Processes:
    """Remembers which processes were seen, to tell dead ones from unknown ones.

    A process that was active just now but was never seen is unknown: it may run in a container
    that shares our files and has its own process numbers.
    """

    def __init__(self) -> None:
        self._seen: dict[Ident, bool] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def alive(self, ident: Ident, heard_at: int, now: int) -> bool | None:
        found = exists(*ident)
        if found:
            self._seen[ident] = True
            return True
        if ident not in self._seen:
            self._seen[ident] = not -FRESH < now - heard_at < FRESH
        return found if self._seen[ident] else None

    def keep(self, idents: set[Ident]) -> None:
        """Forget all other processes."""
        self._seen = {ident: seen for ident, seen in self._seen.items() if ident in idents}


def exists(pid: int, start: int) -> bool | None:
    """Return whether the process runs; None if the system cannot tell."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:  # noqa: PTH123 - many of these, every second
            fields = file.read(4096).rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return False if Path("/proc/self/stat").exists() else _answers(pid)
    except OSError:
        return _answers(pid)
    if len(fields) < 20:
        return None
    return fields[0] not in (b"Z", b"X") and start in (0, int(fields[19]))


def _answers(pid: int) -> bool | None:
    if os.name == "nt":
        return None  # nothing asks without harm there
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return None
    return True
