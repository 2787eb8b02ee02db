"""Telemetry that agents write to files of their own: what is new is kept like what is sent."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from whyfor.agents import decode
from whyfor.agents.telemetry import TelemetryFile
from whyfor.agents.telemetry_settings import FILES
from whyfor.capture.spool import append_requests
from whyfor.files import replace
from whyfor.model.telemetry import TelemetryRequest
from whyfor.model.times import DAY

FOLDER = "telemetry"  # below our directory: where agents are told to write
_STATE = "read.json"
_MOST = 16 << 20  # bytes that are read at once; the rest the next time
_LINE_MAX = 1 << 20


class FilePosition(msgspec.Struct, frozen=True):
    """How far a file was read."""

    inode: int
    offset: int


def telemetry_file(home: Path, file: TelemetryFile) -> Path:
    """Return where an agent is told to write its telemetry."""
    return home / FOLDER / f"{file.agent}.jsonl"


def read_telemetry_files(home: Path, env: Mapping[str, str], now: int) -> int:
    """Keep what agents' files tell since they were read last; return how many requests. What was
    read whole and is old is deleted if it is in our directory. Raises OSError if something cannot
    be written."""
    known = _load(home)
    positions = dict(known)
    kept = 0
    for file in FILES:
        ours = telemetry_file(home, file)
        named = env.get(file.variable)
        for path in dict.fromkeys([ours, *([Path(named)] if named else [])]):
            kept += _read(home, file, path, positions)
            if path == ours:
                _drop_old(path, positions, now)
    if positions != known:
        replace(home / FOLDER / _STATE, msgspec.json.encode(positions))
    return kept


def _read(home: Path, file: TelemetryFile, path: Path, positions: dict[str, FilePosition]) -> int:
    try:
        with path.open("rb") as content:
            about = os.fstat(content.fileno())
            before = positions.get(str(path))
            same = before is not None and before.inode == about.st_ino
            begin = before.offset if before and same and before.offset <= about.st_size else 0
            content.seek(begin)
            data = content.read(_MOST)
    except OSError:  # it is not there, or it is not ours to read
        return 0
    end = data.rfind(b"\n") + 1
    if not end:
        return 0
    told = list(_requests(file, data[:end]))
    (home / FOLDER).mkdir(mode=0o700, exist_ok=True)
    append_requests(home, told)
    positions[str(path)] = FilePosition(about.st_ino, begin + end)
    return len(told)


def _requests(file: TelemetryFile, data: bytes) -> Iterator[TelemetryRequest]:
    for line in data.splitlines():
        found = decode.decode_line(line, 0) if len(line) <= _LINE_MAX else None
        for record in found if isinstance(found, list) else ():
            request = file.read(record)
            if request is not None:
                yield request


def _drop_old(path: Path, positions: dict[str, FilePosition], now: int) -> None:
    with suppress(OSError):
        about = path.stat()
        place = positions.get(str(path))
        if place and place.offset == about.st_size and now - about.st_mtime * 1000 > DAY:
            path.unlink()
            del positions[str(path)]


def _load(home: Path) -> dict[str, FilePosition]:
    try:
        content = (home / FOLDER / _STATE).read_bytes()
        return msgspec.json.decode(content, type=dict[str, FilePosition])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
