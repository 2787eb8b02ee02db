"""What every synthetic session file shares: a clock, ids, a workspace and a byte count."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import msgspec

from projects import Project, Workspace
from prose import Prose

Record = dict[str, object]

_encode = msgspec.json.Encoder().encode


class Transcript:
    """One session being written; subclasses add the records of an agent until a target size is
    reached."""

    def __init__(self, rng: Random, project: Project, start: datetime, planted: list[str]) -> None:
        self.rng = rng
        self.files = Workspace(rng, project)
        self.prose = Prose(rng, project.names)
        self.clock = start
        self.size = 0
        self.lines: list[bytes] = []
        self.id = self.uuid()
        self._planted = planted

    def uuid(self) -> str:
        digits = f"{self.rng.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"

    def token(self, prefix: str, length: int) -> str:
        return prefix + f"{self.rng.getrandbits(4 * length):0{length}x}"

    def opaque(self, size: int) -> str:
        """Base64 data: signatures, encrypted reasoning, images."""
        return b64encode(self.rng.randbytes(size * 3 // 4)).decode()

    def tick(self, seconds: float = 4.0) -> str:
        """Moves the clock on and returns the new time as agents write it."""
        self.clock += timedelta(seconds=self.rng.expovariate(1 / seconds))
        return self.clock.isoformat(timespec="milliseconds")[:23] + "Z"

    def prompt(self) -> str:
        """What the user types; the first one carries the words planted in this session."""
        planted, self._planted = self._planted, []
        return " ".join([self.prose.text(self.heavy(160, 1.1)), *planted])

    def heavy(self, median: float, sigma: float) -> int:
        """A heavy-tailed size, as lengths of messages and outputs are."""
        return int(self.rng.lognormvariate(0, sigma) * median) + 1

    def steps(self, median: int, target: int) -> Iterator[int]:
        """The agent's steps in one turn, cut short where the session reaches its size."""
        for number in range(self.heavy(median, 0.8)):
            yield number
            if self.size >= target:
                return

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def add(self, record: Record) -> None:
        line = _encode(record) + b"\n"
        self.size += len(line)
        self.lines.append(line)

    def save(self, path: Path, content: list[bytes] | None = None) -> None:
        """Writes the file with the mtime of its last record: some readers order or skip by it."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            file.writelines(self.lines if content is None else content)
        os.utime(path, (self.clock.timestamp(), self.clock.timestamp()))
