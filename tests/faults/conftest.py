"""Faults at system calls need strace."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.conftest import missing_part


@pytest.fixture(scope="session")
def strace() -> None:
    works = (
        shutil.which("strace")
        and subprocess.run(["strace", "-o", os.devnull, "true"], check=False).returncode == 0
    )
    if not works:
        told = (
            "NO STRACE: faults at system calls are not tested. Install it (apt install strace) and "
            "allow ptrace."
        )
        missing_part(told)
