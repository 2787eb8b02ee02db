"""The rules that the tests and the benchmark judge commands by: a person's who trusts a lot."""

from __future__ import annotations

import os

from whyfor.story.rules.decide import CommandRequest, DecisionRule
from whyfor.story.rules.hook_request import folder_names

TOP = "/p/shop"
_ALLOWED = (
    "git status",
    "git log",
    "git diff",
    "git show",
    "git ls-files",
    "git branch",
    "git tag",
    "git remote",
    "git grep",
    "git blame",
    "git rev-parse",
    "git add",
    "git commit",
    "ls",
    "cat",
    "head",
    "tail",
    "wc",
    "grep",
    "rg",
    "find",
    "sort",
    "uniq",
    "cut",
    "sed",
    "jq",
    "echo",
    "diff",
    "date",
    "file",
    "tree",
    "cd",
    "pwd",
    "which",
    "npm test",
    "npm run lint",
    "make test",
    "pytest",
    "python3 -m pytest",
    "cargo test",
    "go test",
    "ruff check",
    "./checks",
)
_MAY = {"./checks": ["--fast", "-t *"]}


def sample_rules() -> list[DecisionRule]:
    return [
        DecisionRule(f"r{number}", "*", [], words.split(), _MAY.get(words, []), "allow", "")
        for number, words in enumerate(_ALLOWED, 1)
    ]


def sample_request(command: str, top: str = TOP) -> CommandRequest:
    """Return a request as a hook makes it; only of a folder that is there, files are looked at."""
    made = CommandRequest(command, "claude", "github.com/acme/shop", top, top, "2026-11-18")
    if top != TOP:
        made.real_path, made.exists = os.path.realpath, os.path.lexists
        made.names = folder_names
    return made
