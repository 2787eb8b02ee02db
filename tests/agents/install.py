"""The agents from npm, at the versions pinned in package.json, installed once per checkout."""

from __future__ import annotations

import functools
import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path

from tests.locks import locked

PACKAGE = Path(__file__).with_name("package.json")
# Other versions than the pinned ones: "@anthropic-ai/claude-code=2.1.326 opencode-ai=1.19.0"
OTHERS = "AGENT_VERSIONS"
CACHE = Path(__file__).parents[2] / ".cache" / "agents"


def missing_tool() -> str | None:
    """The first program without which no agent can be installed or run."""
    return next((tool for tool in ("node", "npm", "git") if shutil.which(tool) is None), None)


@functools.cache
def installed(cache: Path = CACHE) -> Path:
    """The folder that holds the programs; the first caller installs, others wait for it."""
    target = cache / hashlib.sha256(wanted()).hexdigest()[:16]
    cache.mkdir(parents=True, exist_ok=True)
    with locked(target.with_suffix(".lock")):
        if not target.exists():
            _install(target)
    return target / "node_modules" / ".bin"


def pinned(package: str) -> str:
    """Return the version of a package that is installed."""
    return str(json.loads(wanted())["dependencies"][package])


def wanted() -> bytes:
    """What npm is told to install."""
    pinned = PACKAGE.read_bytes()
    others = dict(each.rsplit("=", 1) for each in os.environ.get(OTHERS, "").split())
    if not others:
        return pinned
    package = json.loads(pinned)
    return json.dumps({**package, "dependencies": {**package["dependencies"], **others}}).encode()


def _install(target: Path) -> None:
    # Built beside its final place and renamed, so that the folder's existence means it is whole.
    partial = target.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    (partial / "package.json").write_bytes(wanted())
    # npm keeps its cache and logs here too: tests write nothing to the real home.
    quiet = ["--no-package-lock", "--no-audit", "--no-fund"]
    _check(["npm", "install", "--ignore-scripts", "--cache=npm-cache", *quiet], partial)
    # Two of them have a script that puts their native binary in the place of a stub; no other
    # script has to run.
    _check(["node", "node_modules/@anthropic-ai/claude-code/install.cjs"], partial)
    _check(["node", "postinstall.mjs"], partial / "node_modules" / "opencode-ai")
    shutil.rmtree(partial / "npm-cache")
    partial.rename(target)


def _check(argv: list[str], cwd: Path) -> None:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(argv)} failed with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
