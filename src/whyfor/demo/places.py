"""The directories of the demo, all below one folder, and helpers that fill them."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from whyfor.git.run import NO_GIT, run_git
from whyfor.model.errors import StoreError

_PERSON = {"NAME": "Robin", "EMAIL": "robin@example.com"}
_VARIABLES = {
    **{f"GIT_AUTHOR_{name}": value for name, value in _PERSON.items()},
    **{f"GIT_COMMITTER_{name}": value for name, value in _PERSON.items()},
    # none of the user's own settings: no signature, no template
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


class Demo(msgspec.Struct, frozen=True):
    home: Path
    repository: Path
    whyfor_home: Path
    name: str = "harbour/tidewatch"

    @property
    def remote(self) -> str:
        return f"git@example.com:{self.name}.git"

    def beside(self, name: str) -> Demo:
        """Return another repository of the same person."""
        return msgspec.structs.replace(
            self, name=name, repository=self.home / "code" / name.partition("/")[2]
        )


def begin(demo: Demo) -> None:
    """Create an empty repository."""
    demo.repository.mkdir(parents=True)
    git(None, "init", "-q", "-b", "main", "--template=", str(demo.repository))
    git(demo.repository, "remote", "add", "origin", demo.remote)


def announce(demo: Demo, agent: str, event: str, at: datetime, payload: dict[str, Any]) -> None:
    """Append a line to the spool, as a hook does."""
    folder = demo.whyfor_home / "spool"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    header = {
        "v": 1,
        "at": round(at.timestamp() * 1000),
        "agent": agent,
        "event": event,
        "cwd": payload["cwd"],
    }
    with (folder / f"{at:%Y-%m-%d}.spool").open("a", encoding="utf-8") as file:
        file.write(f"\n{json.dumps(header)}\t{json.dumps(payload)}\n")


def write_file(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def commit(folder: Path, subject: str, at: datetime) -> str:
    git(folder, "add", "--all")
    when = at.isoformat()
    git(folder, "commit", "-q", "-m", subject, GIT_AUTHOR_DATE=when, GIT_COMMITTER_DATE=when)
    return git(folder, "rev-parse", "--short", "HEAD")


def git(folder: Path | None, *arguments: str, **variables: str) -> str:
    """Run git in the demo's repository, or in none to create one; return its output, raise if it
    fails."""
    done = run_git(folder, *arguments, index=True, variables={**_VARIABLES, **variables})
    if done is NO_GIT:
        raise StoreError(
            "git is not installed; the demo makes a repository", "Install git, then try again."
        )
    if not done.ok:
        raise StoreError(
            f"git failed: {done.complaint}", "Try again with --keep and look at the folder."
        )
    return done.text.strip()
