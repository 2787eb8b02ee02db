"""Made-up projects whose source files sessions read and edit."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from random import Random

from prose import WORDS

PROJECTS = 40
_FILES = 24
_FOLDERS = [
    "src",
    "src/core",
    "src/api",
    "src/store",
    "tests",
    "tests/unit",
    "scripts",
    "web/components",
]

# {v} a variable, {f} a function, {T} a type, {w} a word, {n} a number; a language's first line
# starts a block
_LANGUAGES = {
    "py": [
        "def {f}({v}: {T}, {w}: int = {n}) -> {T}:",
        "    {v} = {f}({v}, {n})",
        "    if {v} is None:",
        "        return {T}({v}, {n})",
        "    for {v} in {f}({v}):",
        "        {v}.append({v}.{w})",
        '    log.info("{w} %s after %d", {v}, {n})',
        "    # {w} {w} {w} {w} {w}",
        '    raise {T}Error(f"{w} {{{v}}} {w}")',
        '    assert {v}["{w}"] == {n}',
        '    return {f}({v}, "{w}")',
        "",
        "",
    ],
    "ts": [
        "export async function {f}({v}: {T}): Promise<{T}> {{",
        "  const {v} = await {f}({v}, {n});",
        "  if (!{v}.{w}) {{",
        '    return new {T}("{w}-{w}");',
        "  }}",
        '  import {{ {T} }} from "./{w}";',
        "    {v}.push({v}.{w});",
        "  // {w} {w} {w} {w}",
        '  expect({f}("{w}")).toEqual({n});',
        "  }});",
        "",
    ],
    "go": [
        "func (s *{T}) {f}({v} {T}) error {{",
        "\tif err != nil {{",
        "\t\treturn err",
        "\t}}",
        "\t{v}, err := s.{f}({v}, {n})",
        '\t\treturn fmt.Errorf("{w} {w}: %w", err)',
        "\tfor _, {v} := range s.{w} {{",
        '\tt.Fatalf("{w} = %q, want %d", {v}, {n})',
        "}}",
        "",
    ],
    "js": [
        '  "{w}": {{',
        '    "{w}": "{v}",',
        '    "{f}": {n},',
        '    "{w}": ["{w}", "{w}"],',
        "  }},",
    ],
}


@dataclass(frozen=True)
class Project:
    """A repository: its folder, its vocabulary of identifiers, and its files as first seen."""

    cwd: str
    variables: list[str]
    functions: list[str]
    types: list[str]
    files: dict[str, list[str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        return self.variables + self.functions + self.types + list(self.files)


@dataclass(frozen=True)
class Change:
    """One edit: the lines of a file before, and what replaces a few of them."""

    path: str
    before: list[str]
    at: int
    old: list[str]
    new: list[str]


def _noun(rng: Random) -> str:
    return WORDS[rng.randint(80, 900)]


def _snake(rng: Random) -> str:
    return "_".join(_noun(rng) for _ in range(rng.choice([1, 1, 2])))


def _camel(rng: Random) -> str:
    return "".join(_noun(rng).capitalize() for _ in range(2))


def code_lines(rng: Random, project: Project, language: str, count: int) -> list[str]:
    """Lines that look like the body of a file of that language."""
    head, *templates = _LANGUAGES[language]
    pick = rng.choice
    lines: list[str] = []
    for number in range(count):
        template = head if number % 12 == 0 else pick(templates)
        lines.append(
            template.format(
                v=pick(project.variables),
                f=pick(project.functions),
                T=pick(project.types),
                w=WORDS[int(rng.paretovariate(0.7)) % 4000 + 60],
                n=rng.randint(0, 999),
            )
        )
    return lines


def _line_count(rng: Random) -> int:
    """Heavy-tailed: half the files under 300 lines, one in ten above 1,100."""
    return min(3000, max(20, int(rng.lognormvariate(5.7, 1.05))))


@cache
def project(seed: int, index: int) -> Project:
    rng = Random(f"{seed}:project:{index}")
    made = Project(
        cwd=f"/home/dev/src/{_noun(rng)}-{_noun(rng)}",
        variables=[_snake(rng) for _ in range(120)],
        functions=[_snake(rng) for _ in range(160)],
        types=[_camel(rng) for _ in range(60)],
    )
    for _ in range(_FILES):
        language = rng.choice(list(_LANGUAGES))
        path = f"{rng.choice(_FOLDERS)}/{_snake(rng)}.{language}"
        made.files[path] = code_lines(rng, made, language, _line_count(rng))
    return made


class Workspace:
    """The project's files as one session changes them."""

    def __init__(self, rng: Random, base: Project) -> None:
        self._rng = rng
        self.project = base
        self.files = dict(base.files)

    def path(self) -> str:
        return self._rng.choice(list(self.files))

    def absolute(self, path: str) -> str:
        return f"{self.project.cwd}/{path}"

    def slice(self, path: str) -> tuple[int, list[str]]:
        """A whole file or a window of it, as agents read them."""
        lines = self.files[path]
        if len(lines) < 200 or self._rng.random() < 0.25:
            return 1, lines
        start = self._rng.randint(1, len(lines) - 60)
        return start, lines[start - 1 : start + self._rng.randint(30, 200)]

    def edit(self) -> Change:
        path = self.path()
        before = self.files[path]
        at = self._rng.randrange(len(before))
        old = before[at : at + self._rng.randint(1, 14)]
        new = code_lines(self._rng, self.project, path[-2:], len(old) + self._rng.randint(0, 12))
        self.files[path] = before[:at] + new + before[at + len(old) :]
        return Change(path, before, at, old, new)

    def create(self) -> tuple[str, list[str]]:
        path = (
            f"{self._rng.choice(_FOLDERS)}/{_snake(self._rng)}.{self._rng.choice(list(_LANGUAGES))}"
        )
        lines = code_lines(self._rng, self.project, path[-2:], min(400, _line_count(self._rng)))
        self.files[path] = lines
        return path, lines


def hunk(change: Change) -> tuple[int, list[str], int]:
    """The first line's number, the diff's lines, and how many of those are unchanged context."""
    lead = change.before[max(0, change.at - 3) : change.at]
    tail = change.before[change.at + len(change.old) :][:3]
    marked = [" " + line for line in lead] + ["-" + line for line in change.old]
    marked += ["+" + line for line in change.new] + [" " + line for line in tail]
    return change.at - len(lead) + 1, marked, len(lead) + len(tail)


def unified_diff(change: Change) -> str:
    start, marked, context = hunk(change)
    head = f"@@ -{start},{len(change.old) + context} +{start},{len(change.new) + context} @@"
    return "\n".join([head, *marked, ""])
