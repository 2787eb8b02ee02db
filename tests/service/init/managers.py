"""Real hook managers, at pinned versions, installed once per checkout."""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

from tests.locks import locked

NPM = {"husky": "9.1.7", "husky8": "npm:husky@8.0.3", "lefthook": "2.2.2"}
PIP = ["pre-commit==4.7.0"]
CACHE = Path(__file__).parents[3] / ".cache" / "managers"


@functools.cache
def installed() -> Path:
    """The folder with node_modules and venv; the first caller installs, others wait for it."""
    target = CACHE / hashlib.sha256(json.dumps([NPM, PIP]).encode()).hexdigest()[:16]
    CACHE.mkdir(parents=True, exist_ok=True)
    with locked(target.with_suffix(".lock")):
        if not (target / "done").exists():
            shutil.rmtree(target, ignore_errors=True)
            _install(target)
    return target


def _install(target: Path) -> None:
    target.mkdir()
    (target / "package.json").write_text(json.dumps({"private": True, "dependencies": NPM}))
    quiet = [
        "--no-package-lock",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--cache=npm-cache",
    ]
    _check(["npm", "install", *quiet], target)
    # in its place from the start: its scripts name the path
    _check([sys.executable, "-m", "venv", "venv"], target)
    _check(
        ["venv/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PIP],
        target,
    )
    (target / "done").touch()


def _check(argv: list[str], cwd: Path) -> None:
    done = subprocess.run(argv, cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(
            f"{' '.join(argv)} failed with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
