"""Errors of an ingest: with a hint for people, and in the hooks' error log."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from whyfor.capture.recover import first_line
from whyfor.config import Settings
from whyfor.model.errors import StoreError
from whyfor.model.paths import to_text

LOG_BYTES = 256 << 10


def log_error(settings: Settings, error: Exception) -> None:
    log = settings.home / "hook" / "errors.log"
    with suppress(OSError):
        big = log.exists() and log.stat().st_size > LOG_BYTES
        with log.open("w" if big else "a", encoding="utf-8") as file:
            file.write(
                f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} {type(error).__name__}: "
                f"{first_line(error)}\n"
            )


@contextmanager
def writable(settings: Settings) -> Iterator[None]:
    """Raise the system's errors about our own directory as errors with a hint."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and not type(error).__module__.startswith("obstore"):
            raise
        if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
            raise  # it is not about our home
        raise StoreError(
            f"cannot write to {to_text(settings.home)}: {first_line(error)}",
            "Nothing was lost. Free some space or check permissions, then: whyfor ingest",
        ) from error
