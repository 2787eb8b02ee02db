"""The file of a recording while it is written: asciicast v3, whole lines, bounded. Whatever fails
here ends the recording and nothing else."""

from __future__ import annotations

import codecs
import os
import time
from pathlib import Path

import msgspec

from whyfor.capture.recordings import lock_recording
from whyfor.model.casts import EXIT, IDLE, INPUT, MARKER, OUTPUT, PAUSED, RESIZE

SIZE_MAX = 512 << 20  # bytes of one recording
_HELD = 64 << 10  # bytes that wait for the next write
_encode = msgspec.json.Encoder().encode


class RecordingHeader(msgspec.Struct, frozen=True):
    """What is known when a recording begins."""

    session: str
    command: str
    cwd: str
    columns: int
    rows: int
    version: str  # of Whyfor
    with_input: bool = False
    terminal: str = ""

    def line(self, now: float) -> bytes:
        body = {
            "version": 3,
            "term": {"cols": self.columns, "rows": self.rows, "type": self.terminal},
            "timestamp": int(now),
            "command": self.command,
            "whyfor": {
                "session": self.session,
                "cwd": self.cwd,
                "version": self.version,
                "input": self.with_input,
            },
        }
        return _encode(body) + b"\n"


class RecordingFile:
    """Appends events. After an error it writes nothing more, and `failed` says why."""

    def __init__(self, path: Path, header: RecordingHeader) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._fd = os.open(path, flags, 0o600)
        lock_recording(self._fd)
        self.failed = ""
        self._size = 0
        self._last = time.monotonic()
        self._decoders = {
            code: codecs.getincrementaldecoder("utf-8")("replace") for code in (OUTPUT, INPUT)
        }
        self._held = [header.line(time.time())]
        self._held_size = 0
        self._quiet = True  # an idle marker stands after the last output
        self.flush()

    def output(self, data: bytes) -> None:
        self._quiet = False
        self._add(OUTPUT, self._decoders[OUTPUT].decode(data))

    def input(self, data: bytes) -> None:
        self._add(INPUT, self._decoders[INPUT].decode(data))

    def resize(self, columns: int, rows: int) -> None:
        self._add(RESIZE, f"{columns}x{rows}")

    def idle(self) -> None:
        """Mark that the program rests, once, and write what waits."""
        if not self._quiet:
            self._quiet = True
            self._add(MARKER, IDLE)
        self.flush()

    def paused(self) -> None:
        self._add(MARKER, PAUSED)

    def end(self, code: int) -> None:
        """Write how the program ended, and close the file."""
        self._add(EXIT, str(code))
        self.flush()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _add(self, code: str, text: str) -> None:
        if self.failed or not text:
            return
        now = time.monotonic()
        line = _encode((round(now - self._last, 6), code, text)) + b"\n"
        self._last = now
        self._held.append(line)
        self._held_size += len(line)
        if self._held_size >= _HELD:
            self.flush()

    def flush(self) -> None:
        """Write what waits; on any error the recording ends here."""
        if self.failed or not self._held:
            return
        data = b"".join(self._held)
        self._held.clear()
        self._held_size = 0
        try:
            self._write(data)
        except OSError as error:
            self.failed = error.strerror or str(error)
            return
        self._size += len(data)
        if self._size > SIZE_MAX:
            self.failed = f"it has more than {SIZE_MAX >> 20} MB"

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]
