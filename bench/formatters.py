"""Real formatters, and real code of three languages for them: black and ruff for Python, prettier
for JavaScript, gofmt for Go. What is not there yet is fetched once per checkout, from PyPI, npm and
Debian."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from lines_lab import library_functions

_ROOT = Path(__file__).parents[1]
_CACHE = _ROOT / ".cache" / "formatters"
_SHORTEST, _LONGEST = 4, 30  # lines of a function
_FILES = 300
_GO = "golang-1.19"


@dataclass(frozen=True)
class Language:
    """A language, its formatter, and functions that people wrote in it."""

    suffix: str
    comment: str
    first: str  # the first words of a file
    starts: re.Pattern[str]  # the first line of a function
    functions: Callable[[Random], list[list[str]]]
    command: tuple[str, ...]  # of the formatter, which reads a file and prints it

    def format(self, texts: list[str]) -> list[str] | None:
        """Return the lines as the formatter prints them; None if it refuses them."""
        text = "".join(f"{line}\n" for line in texts)
        done = subprocess.run(
            self.command, input=text, capture_output=True, text=True, check=False, timeout=60
        )
        return done.stdout.rstrip("\n").split("\n") if done.returncode == 0 else None


def languages() -> tuple[dict[str, Language], list[str]]:
    """Return the languages by formatter, and why others are missing."""
    found: dict[str, Language] = {}
    missing: list[str] = []
    for name, make in _MAKERS.items():
        try:
            found[name] = make()
        except (OSError, subprocess.SubprocessError) as error:
            missing.append(f"{name} cannot be had here: {type(error).__name__}")
    return found, missing


def _python(*command: str) -> Language:
    starts = re.compile(r"def ")
    return Language(".py", "#", "", starts, library_functions, command)


def _ruff() -> Language:
    return _python(str(_ROOT / ".venv/bin/ruff"), "format", "--isolated", "-")


def _black() -> Language:
    target = _fetched(
        "black",
        [sys.executable, "-m", "pip", "install", "--quiet", "--target", "{}", "black"],
    )
    start = f"import sys; sys.path.insert(0, {str(target)!r}); import black; black.main()"
    return _python(sys.executable, "-c", start, "--quiet", "-")


def _prettier() -> Language:
    target = _fetched(
        "prettier",
        ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", "{}", "prettier"],
    )
    program = target / "node_modules/.bin/prettier"
    command = (str(program), "--no-config", "--stdin-filepath", "code.js")
    starts = re.compile(r"(async )?function \w|const \w+ = (async )?(function|\()")
    return Language(".js", "//", "", starts, _npm_functions, command)


def _gofmt() -> Language:
    folder = _CACHE / "go"
    if not folder.exists():
        _fetch_go(folder)
    command = (str(folder / f"usr/lib/go-{_GO[7:]}/bin/gofmt"),)
    starts = re.compile(r"func ")
    return Language(".go", "//", "package lab", starts, _go_functions, command)


def _fetch_go(folder: Path) -> None:
    """Unpack Debian's packages here; nothing is installed."""
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    names = [f"{_GO}-go", f"{_GO}-src"]
    quiet = {"capture_output": True, "check": True, "timeout": 300}
    subprocess.run(["apt-get", "download", *names], cwd=part, **quiet)  # type: ignore[call-overload]
    for package in part.glob("*.deb"):
        command = ["dpkg-deb", "-x", str(package), str(part)]
        subprocess.run(command, **quiet)  # type: ignore[call-overload]
        package.unlink()
    part.rename(folder)


def _fetched(name: str, command: list[str]) -> Path:
    """The folder into which a package was installed; the command names it as {}."""
    folder = _CACHE / name
    if not folder.exists():
        part = folder.with_suffix(".part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        filled = [word.format(part) for word in command]
        subprocess.run(filled, check=True, capture_output=True, timeout=300)
        part.rename(folder)
    return folder


_MAKERS: dict[str, Callable[[], Language]] = {
    "ruff": _ruff,
    "black": _black,
    "prettier": _prettier,
    "gofmt": _gofmt,
}


# -- code ----------------------------------------------------------------------------------------


def _npm_functions(rng: Random) -> list[list[str]]:
    starts = re.compile(r"(async )?function \w|const \w+ = (async )?(function|\()")
    return _braced(rng, sorted(_npm_folder().rglob("*.js")), starts)


def _go_functions(rng: Random) -> list[list[str]]:
    folder = _CACHE / "go/usr/share" / f"go-{_GO[7:]}" / "src/strings"
    near = ("strings", "bytes", "net/url", "path", "strconv", "sort", "text", "net/http")
    files = [path for name in near for path in (folder.parent / name).rglob("*.go")]
    plain = [path for path in files if not path.name.endswith("_test.go")]
    return _braced(rng, sorted(plain), re.compile(r"func "))


@cache
def _npm_folder() -> Path:
    done = subprocess.run(
        ["npm", "root", "--global"], capture_output=True, text=True, check=True, timeout=60
    )
    return Path(done.stdout.strip()) / "npm"


def _braced(rng: Random, files: list[Path], starts: re.Pattern[str]) -> list[list[str]]:
    """Functions of files, from their first line to the brace that stands alone."""
    rng.shuffle(files)
    found: list[list[str]] = []
    for file in files[:_FILES]:
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
        for at, line in enumerate(lines):
            if starts.match(line) and line.endswith("{"):
                rest = range(at + 1, min(at + _LONGEST, len(lines)))
                end = next((n for n in rest if lines[n].startswith("}")), 0)
                if end - at >= _SHORTEST and "`" not in "".join(lines[at:end]):
                    found.append([text.rstrip() for text in lines[at : end + 1]])
    rng.shuffle(found)
    return found
