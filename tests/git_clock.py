"""The clock of this process, for the git processes that a test starts: see `--clock`."""

from __future__ import annotations

import os
import time


def git_environment() -> dict[str, str]:
    """Return this process's environment, with the time of its clock for commits, unless the test
    names another."""
    now = f"@{int(time.time())} +0000"
    return {"GIT_AUTHOR_DATE": now, "GIT_COMMITTER_DATE": now, **os.environ}
