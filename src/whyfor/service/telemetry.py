"""telemetry: who may send it, where, and what is kept of it."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from whyfor.capture.telemetry.files import FOLDER, read_telemetry_files
from whyfor.capture.telemetry.otlp import BODY_MAX
from whyfor.capture.telemetry.receive import Received, TelemetryBody, receive_telemetry
from whyfor.config import Settings
from whyfor.live.serve_lock import PORT

__all__ = [
    "BODY_MAX",
    "TelemetryBody",
    "drop_telemetry_key",
    "keep_telemetry",
    "make_telemetry_folder",
    "read_telemetry_key",
    "read_written_telemetry",
    "telemetry_address",
    "telemetry_key",
]


def keep_telemetry(settings: Settings, body: TelemetryBody) -> Received:
    """Write down what a request tells; it is on disk when this returns."""
    return receive_telemetry(settings.home, body)


def read_written_telemetry(settings: Settings, now: int) -> int:
    """Keep what agents wrote to files of their own, if their telemetry is wanted; return how many
    requests it tells of."""
    if not read_telemetry_key(settings):
        return 0
    return read_telemetry_files(settings.home, settings.env, now)


def telemetry_address() -> str:
    """Return where agents send their telemetry."""
    return f"http://127.0.0.1:{PORT}"


def telemetry_key(settings: Settings) -> str:
    """Return what an agent must show; made once."""
    known = read_telemetry_key(settings)
    if known:
        return known
    path = _key_file(settings)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = secrets.token_urlsafe(32)
    fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(fd, "w") as file:
        file.write(made)
    return made


def read_telemetry_key(settings: Settings) -> str:
    """Return the key; empty if no agent was told to send anything."""
    try:
        return _key_file(settings).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def make_telemetry_folder(settings: Settings) -> None:
    """Make the directory to which agents write that send nothing."""
    (settings.home / FOLDER).mkdir(mode=0o700, parents=True, exist_ok=True)


def drop_telemetry_key(settings: Settings) -> None:
    with suppress(OSError):
        _key_file(settings).unlink()


def _key_file(settings: Settings) -> Path:
    return settings.home / "hook" / "telemetry.key"
