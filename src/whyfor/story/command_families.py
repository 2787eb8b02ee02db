"""Commands that build, test or check: what they are called, whatever stands around them."""

from __future__ import annotations

import re
from typing import NamedTuple

COMMAND_MAX = 2000  # characters of a command line that are looked at
_SEPARATOR = re.compile(r"\s*(?:&&|\|\||;|\n)\s*")
_PIPE = re.compile(r"\s*\|(?!\|)\s*")
_REDIRECT = re.compile(r"\s*\d*>{1,2}(?:&\d|\s*\S+)")
_ASSIGN = re.compile(r"(?:[A-Za-z_]\w*=(?:'[^']*'|\"[^\"]*\"|\S*)\s+)+")
_WRAPPER = re.compile(
    r"(?:sudo|time|nice|env|command|exec|nohup|xvfb-run|stdbuf\s+\S+|timeout\s+(?:-\S+\s+)*\S+)\s+"
)
_RUNNER = re.compile(
    r"(?:(?:uv|poetry|pipenv|pdm|hatch|rye) run|npx|bunx|pnpm (?:exec|dlx)|yarn dlx"
    r"|bundle exec|python[\d.]* -m)\s+"
)
_PACKAGE = re.compile(
    r"(?P<tool>npm|pnpm|yarn|bun|deno)\s+(?:-\S+\s+)*(?:(?:run|task)\s+)?(?P<name>[\w:.-]+)"
)
_BUILDERS = (
    "make just task rake cargo go dotnet gradle ./gradlew mvn ./mvnw sbt mix bazel zig swift"
    " flutter dart tox nox ninja composer terraform helm xcodebuild"
).split()
_TASK = re.compile(
    rf"(?P<tool>{'|'.join(map(re.escape, _BUILDERS))})(?:\s+(?P<name>[A-Za-z][\w:./-]*))?(?=\s|$)"
)
_ALONE = frozenset({"make", "tox", "nox", "ninja"})  # that do their work without being told what
_CHECKERS = frozenset(
    (
        "pytest mypy ruff black isort flake8 pylint pyright tsc eslint prettier biome jest vitest"
        " mocha playwright cypress rspec rubocop phpunit phpstan golangci-lint shellcheck stylelint"
        " ctest bats detekt ktlint swiftlint"
    ).split()
)
_TOOLS = (
    _CHECKERS | {name.lstrip("./") for name in _BUILDERS} | set("npm pnpm yarn bun deno".split())
)
_WORD = re.compile(r"[\w-]+")
_CHECK_NAME = re.compile(
    r"test|build|lint|check|type|format|fmt|vet|clippy|compile|e2e|verify|ci$", re.I
)


_PREPARES = re.compile(r"(?:cd|export|source|\.|set|pushd|popd|true|:)(?:\s|$)|[A-Za-z_]\w*=\S*$")
# Options with which a check only says what it would do, or what it is.
_LOOKS = re.compile(
    r"\s--?(?:list-?tests|list|collect-only|co|version|help|dry-run|show-?config|print-config)\b"
)
_NARROWS = re.compile(r"--?(?:ignore|deselect|exclude|skip|filter|grep|lf|last-failed|t=|only)")


class CheckCommand(NamedTuple):
    """A command that builds, tests or checks."""

    family: str  # the same for all its variants: `pytest`, `npm test`, `make lint`
    text: str  # without what stands around it
    decides: bool  # the command line's exit code is its own, not that of a pipe or a later command
    folder: str = ""  # where the line goes before, if it does
    alone: bool = True  # nothing else stands before it that may have failed instead


def covers(passed: CheckCommand, failed: CheckCommand) -> bool:
    """Whether a command that passed did all that one of the same family did that failed: in the
    same folder, and on no other files."""
    elsewhere = passed.folder and failed.folder and passed.folder != failed.folder
    if passed.family != failed.family or elsewhere:
        return False
    return _targets(passed.text) <= _targets(failed.text)


def _targets(command: str) -> frozenset[str]:
    """The words of a command that say what it is run on, also options that leave something out."""
    words = command.split()
    return frozenset(each for each in words if not each.startswith("-") or _NARROWS.match(each))


def check_in(line: str) -> CheckCommand | None:
    """Return the last check in a command line; None if there is none."""
    if _TOOLS.isdisjoint(_WORD.findall(line, 0, COMMAND_MAX)):
        return None  # most command lines
    found: CheckCommand | None = None
    folder = ""
    alone = True
    for part in _SEPARATOR.split(line[:COMMAND_MAX].strip()):
        pipeline = _PIPE.split(part)
        family = family_of(pipeline[0])
        if family:
            decides = len(pipeline) == 1 or "pipefail" in line
            found = CheckCommand(family, _bare(pipeline[0]), decides, folder, alone)
        elif found and part:
            found = found._replace(decides=False)
        if part.startswith("cd "):
            folder = part[3:].strip("\"' ")
        elif part and not _PREPARES.match(part):
            alone = False
    return found


def family_of(command: str) -> str | None:
    """Return what kind of check a simple command is; None if it is none."""
    bare = _bare(command)
    if _LOOKS.search(bare.lower()):
        return None
    runner = _RUNNER.match(bare)
    if runner:
        bare = bare[runner.end() :]
    word = bare.split(" ", 1)[0].rpartition("/")[2]
    if word in _CHECKERS:
        return word
    package = _PACKAGE.match(bare)
    if package:
        name = package["name"]
        return f"{package['tool']} {name}" if _CHECK_NAME.search(name) else None
    return _task_family(bare)


def _task_family(bare: str) -> str | None:
    task = _TASK.match(bare)
    if task is None:
        return None
    if task["name"] is None:
        return task["tool"] if task["tool"] in _ALONE else None
    return f"{task['tool']} {task['name']}" if _CHECK_NAME.search(task["name"]) else None


def _bare(command: str) -> str:
    """Return a command without assignments, wrappers and redirections."""
    text = command.strip().lstrip("(")
    if ">" in text:
        text = _REDIRECT.sub("", text)
    while True:
        assigned = _ASSIGN.match(text)
        rest = text[assigned.end() :] if assigned else text
        wrapped = _WRAPPER.match(rest)
        rest = rest[wrapped.end() :] if wrapped else rest
        if rest == text:
            return " ".join(text.split())
        text = rest
