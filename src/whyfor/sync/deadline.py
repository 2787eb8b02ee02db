"""Asking others while somebody waits: what takes too long is not waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from whyfor.sync.client import RemoteDown, RemoteFault

PATIENCE = 1.0  # seconds that somebody at a terminal waits for a server
T = TypeVar("T")


class _Asked(Generic[T]):
    """One question, asked beside the program. A name that nobody resolves cannot be interrupted:
    its thread ends with the program."""

    def __init__(self, job: Callable[[], T]) -> None:
        self.found: list[T] = []
        self.failed: list[Exception] = []
        self._job = job
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.found.append(self._job())
        except Exception as error:  # noqa: BLE001 - raised again where it is waited for
            self.failed.append(error)

    def answer(self, until: float) -> T:
        """Return the answer. Raises what the job raised, RemoteDown if it comes too late."""
        self._thread.join(max(0.0, until - time.monotonic()))
        if self.failed:
            raise self.failed[0]
        if not self.found:
            raise RemoteDown(f"it did not answer within {PATIENCE:g} s")
        return self.found[0]


def ask_all(jobs: Iterable[Callable[[], T]], seconds: float = PATIENCE) -> list[T | RemoteFault]:
    """Return the answers to questions that are asked at once, in their order; for one that failed
    or takes too long, why."""
    until = time.monotonic() + seconds
    asked = [_Asked(job) for job in jobs]
    answers: list[T | RemoteFault] = []
    for each in asked:
        try:
            answers.append(each.answer(until))
        except RemoteFault as fault:
            answers.append(fault)
    return answers
