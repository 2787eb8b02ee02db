"""Which Claude Code sessions are running: it keeps one file per process."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from whyfor.agents.base import RegisteredProcess, as_dict, get_int, get_str
from whyfor.agents.claude.places import projects_folder


class Registry:
    """The process files; each is read again only when it changed."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        self._folder = _folder(home, env)
        self._seen: dict[str, tuple[int, int]] = {}
        self.known: dict[str, RegisteredProcess] = {}  # by session

    def look(self) -> list[RegisteredProcess]:
        """What changed since the last look."""
        seen: dict[str, tuple[int, int]] = {}
        found: list[RegisteredProcess] = []
        try:
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if not entry.name.endswith(".json"):
                        continue
                    try:
                        now = entry.stat()
                    except OSError:
                        continue
                    stamp = (now.st_mtime_ns, now.st_size)
                    if self._seen.get(entry.name) != stamp:
                        if (told := _registered(Path(entry.path))) is None:
                            continue  # it is being written: look again
                        found.append(told)
                    seen[entry.name] = stamp
        except OSError:
            pass  # no such folder: no version of it that keeps one has run here
        self._seen = seen
        self.known = {
            session: told for session, told in self.known.items() if f"{told.pid}.json" in seen
        }
        self.known.update({told.session_id: told for told in found})
        return found

    def running(self) -> Iterator[RegisteredProcess]:
        """Those whose process is alive."""
        for path in sorted(self._folder.glob("*.json")):
            told = _registered(path)
            if told is not None and _alive(told.pid):
                yield told


def _folder(home: Path, env: Mapping[str, str]) -> Path:
    return projects_folder(home, env).parent / "sessions"


def _registered(path: Path) -> RegisteredProcess | None:
    try:
        if not path.is_file():
            return None  # opening a pipe would block
        told = as_dict(msgspec.json.decode(path.read_bytes()))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    pid, start = get_int(told, "pid"), get_str(told, "procStart")
    if pid is None or pid <= 0:
        return None
    return RegisteredProcess(
        session_id=get_str(told, "sessionId"),
        cwd=get_str(told, "cwd"),
        pid=pid,
        start=int(start) if start.isascii() and start.isdigit() and len(start) < 16 else 0,
        status=get_str(told, "status"),
        waiting_for=get_str(told, "waitingFor"),
        at=get_int(told, "statusUpdatedAt")
        or get_int(told, "updatedAt")
        or get_int(told, "startedAt")
        or 0,
        interactive=get_str(told, "kind") == "interactive",
    )


def _alive(pid: int) -> bool:
    if os.name == "nt":
        return True  # nothing asks without harm there; the file is removed when the process ends
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True
