"""Commands an agent runs and what they print."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from projects import Workspace, unified_diff
from prose import WORDS, Prose


def _size(rng: Random) -> int:
    """Lines of output: mostly a handful, sometimes hundreds."""
    return max(1, min(600, int(rng.lognormvariate(2.1, 1.45))))


def _hex(rng: Random, digits: int) -> str:
    return f"{rng.getrandbits(4 * digits):0{digits}x}"


def _tests(rng: Random, files: Workspace, prose: Prose) -> tuple[str, str]:
    path = files.path()
    names = files.project.functions
    lines = [
        f"{'FAILED' if rng.random() < 0.05 else '✓'} {path}::test_{rng.choice(names)} [{at:3d}%]"
        for at in range(_size(rng))
    ]
    return f"pytest -v {path}", "\n".join(
        [*lines, f"===== {len(lines)} passed in {rng.random() * 60:.2f}s ====="]
    )


def _listing(rng: Random, files: Workspace, prose: Prose) -> tuple[str, str]:
    names = [*files.files, *(f"{word}.json" for word in prose.words(_size(rng)))]
    rows = [
        f"-rw-r--r--  1 dev dev {rng.randint(90, 99999):6d} Mar {rng.randint(1, 28):2d} {name}"
        for name in names
    ]
    return "ls -la", "\n".join(rows[: _size(rng)])


def _log(rng: Random, files: Workspace, prose: Prose) -> tuple[str, str]:
    rows = [f"{_hex(rng, 7)} {prose.title()}" for _ in range(_size(rng))]
    return f"git log --oneline -{len(rows)}", "\n".join(rows)


def _grep(rng: Random, files: Workspace, prose: Prose) -> tuple[str, str]:
    path = files.path()
    lines = files.files[path]
    rows = [
        f"{path}:{at + 1}:{lines[at]}"
        for at in sorted(rng.choices(range(len(lines)), k=_size(rng)))
    ]
    return f"grep -rn {rng.choice(files.project.variables)} {path.split('/')[0]}", "\n".join(rows)


def _diff(rng: Random, files: Workspace, prose: Prose) -> tuple[str, str]:
    change = files.edit()
    return (
        f"git diff {change.path}",
        f"--- a/{change.path}\n+++ b/{change.path}\n{unified_diff(change)}",
    )


def _build(rng: Random, files: Workspace, prose: Prose) -> tuple[str, str]:
    rows = [
        f"[{rng.randint(0, 59):02d}.{rng.randint(0, 999):03d}] "
        f"{rng.choice(['info', 'warn', 'debug'])} "
        f"{rng.choice(files.project.functions)}: {' '.join(prose.words(8))} ({rng.randint(1, 999)} "
        "ms)"
        for _ in range(_size(rng))
    ]
    return f"make {WORDS[rng.randint(80, 400)]}", "\n".join(rows)


def _quiet(rng: Random, files: Workspace, prose: Prose) -> tuple[str, str]:
    return f"git add {files.path()} && git commit -qm '{prose.title()}'", ""


_Kind = Callable[[Random, Workspace, Prose], tuple[str, str]]
_KINDS: list[_Kind] = [_tests, _listing, _log, _grep, _grep, _diff, _build, _build, _quiet]


def run(rng: Random, files: Workspace, prose: Prose) -> tuple[str, str]:
    """A command line and its output."""
    return rng.choice(_KINDS)(rng, files, prose)
