"""A laboratory for lines: sessions, people and formatters edit a repository, and the driver keeps
beside the text who owns each line of it.

The truth is an array beside the text, never in it. The code is real: functions of Python's own
library. The same seed gives the same edits.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random

from sessions import Claude, Codex, Gemini, Session

START = 1_767_600_000_000
_SECOND = 1000
_MODULES = 120
_READS = 6  # that come before a turn's edits
_READ_LINES = 120
_WORD = re.compile(r"\b[a-z_]{4,}\b")
_KEYWORDS = frozenset("None True False self return yield import from raise while except".split())
BASE, PERSON, MODIFIED = "base", "person", "modified"
MIXES = (
    "agent only",
    "people add lines",
    "people copy lines",
    "people touch agents' lines",
    "spacing",
    "wrapping",
    "ruff format",
    "all, with moves",
)


@dataclass(frozen=True)
class Owner:
    """Whose a line is: a turn of a session, a person's, or was there before."""

    kind: str  # agent | base | person | modified
    session: str = ""
    turn: int = 0


@dataclass
class Line:
    text: str
    owner: Owner


File = list[Line]
_BASE, _PERSON, _MODIFIED = Owner(BASE), Owner(PERSON), Owner(MODIFIED)


@dataclass
class Lab:
    """One repository, its sessions, and what is true of each commit."""

    folder: Path
    mix: str
    rng: Random
    now: int = START
    files: dict[str, File] = field(default_factory=dict)
    truth: dict[str, dict[str, list[Owner]]] = field(default_factory=dict)  # by commit and path
    texts: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    sessions: list[Session] = field(default_factory=list)
    library: list[list[str]] = field(default_factory=list)
    turn: int = 0
    count: int = 0  # commits so far
    first: dict[tuple[str, int], int] = field(default_factory=dict)  # the commit after each turn

    @property
    def repository(self) -> Path:
        return self.folder / "repo"

    @cached_property
    def sources(self) -> list[str]:
        """Texts of Python's library."""
        folder = Path(sysconfig.get_paths()["stdlib"])
        modules = sorted(folder.glob("*.py"))
        return [module.read_text(encoding="utf-8", errors="replace") for module in modules]

    def next_function(self) -> list[str]:
        """A function that nobody has used yet, as long as there are any."""
        if not self.library:
            self.library = library_functions(self.rng)
        return self.library.pop()

    # -- git -------------------------------------------------------------------------------------

    def git(self, *arguments: str) -> str:
        when = f"{self.now // 1000} +0000"
        env = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_DATE": when,
            "GIT_COMMITTER_DATE": when,
            "GIT_EDITOR": "true",
            **{f"GIT_{role}_NAME": "Ada" for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_EMAIL": "ada@example.org" for role in ("AUTHOR", "COMMITTER")},
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.repository,
            env=env,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout.strip()

    def save(self) -> None:
        for path, lines in self.files.items():
            (self.repository / path).write_text("".join(f"{line.text}\n" for line in lines))

    def commit(self, message: str, *paths: str) -> str:
        """Commit what is in the work tree, and write down whose its lines are."""
        self.now += 60 * _SECOND
        self.save()
        self.git("add", "-A", *(["--", *paths] if paths else []))
        self.git("commit", "-q", "--allow-empty", "-m", message)
        sha = self.git("rev-parse", "HEAD")
        self.record(sha, self.count)
        self.count += 1
        return sha

    def record(self, sha: str, base: int) -> None:
        """Write down whose the lines are in a commit that comes after so many: what stood there
        before it is nobody's of this commit."""
        self.truth[sha] = {
            path: [self._seen_from(line.owner, base) for line in lines]
            for path, lines in self.files.items()
        }
        self.texts[sha] = {
            path: [line.text for line in lines] for path, lines in self.files.items()
        }

    def _seen_from(self, owner: Owner, base: int) -> Owner:
        before = self.first.get((owner.session, owner.turn), base) < base
        return _BASE if before else owner


# -- code ----------------------------------------------------------------------------------------


def library_functions(rng: Random) -> list[list[str]]:
    """Functions of the standard library, each as its lines, without an indentation."""
    folder = Path(sysconfig.get_paths()["stdlib"])
    modules = sorted(folder.glob("*.py"))
    rng.shuffle(modules)
    found: list[list[str]] = []
    for module in modules[:_MODULES]:
        text = module.read_text(encoding="utf-8", errors="replace")
        for node in ast.parse(text).body:
            if isinstance(node, ast.FunctionDef) and node.end_lineno:
                lines = text.split("\n")[node.lineno - 1 : node.end_lineno]
                if 4 <= len(lines) <= 30 and not node.decorator_list and _is_plain(lines):
                    found.append([line.rstrip() for line in lines])
    rng.shuffle(found)
    return found


def _is_plain(lines: Sequence[str]) -> bool:
    return not any("\t" in line or '"""' in line or "'''" in line for line in lines)


# -- who does what -------------------------------------------------------------------------------


def make_lab(folder: Path, mix: str, commits: int, seed: int) -> Lab:
    """Build a repository in which so many commits were made, and save the sessions' files."""
    lab = Lab(folder, mix, Random(f"{mix} {seed}"))
    lab.repository.mkdir(parents=True)
    lab.git("init", "-q", "-b", "main")
    for number in range(3):
        lab.files[f"module_{number}.py"] = _units(lab, 5, _BASE)
    lab.commit("First")
    for number in range(commits):
        if number % 8 == 0:
            _begin_session(lab)
        _work(lab)
        lab.commit(f"Change {number}")
    for session in lab.sessions:
        session.save(folder / "home", {})
    return lab


def agent_work(lab: Lab, lines: int, commits: int) -> int:
    """Sessions work on one long file; return how many commits they made."""
    while len(lab.files.get("big.py", ())) < lines:
        known = lab.files.get("big.py", [])
        lab.files["big.py"] = [*known, *_units(lab, 1, _BASE), Line("", _BASE), Line("", _BASE)]
    lab.commit("First")
    for number in range(commits):
        if number % 8 == 0:
            _begin_session(lab)
        _look_around(lab)
        _agent_turn(lab)
        lab.commit(f"Change {number}")
    return commits


def _look_around(lab: Lab) -> None:
    """What sessions do before they edit: they read, and run things."""
    for _ in range(_READS):
        lab.now += 2 * _SECOND
        text = "\n".join(lab.rng.choice(lab.sources).splitlines()[:_READ_LINES])
        lab.sessions[-1].run(lab.now, f"cat notes_{lab.rng.randint(1, 999)}.txt", text)


def library_file(lab: Lab, functions: int) -> list[str]:
    """The lines of a file that nobody here wrote."""
    return [line.text for line in _units(lab, functions, _PERSON)]


def _begin_session(lab: Lab) -> None:
    kinds: tuple[type[Session], ...] = (Claude, Codex, Gemini)
    lab.sessions.append(kinds[len(lab.sessions) % 3](lab.rng, str(lab.repository)))
    lab.turn = 0
    lab.now += 3600 * _SECOND


def _units(lab: Lab, count: int, owner: Owner) -> File:
    found: File = []
    for _ in range(count):
        found += [Line(text, owner) for text in lab.next_function()]
        found += [Line("", owner), Line("", owner)]
    return found[:-2]


def _work(lab: Lab) -> None:
    for _ in range(lab.rng.randint(1, 3)):
        _agent_turn(lab)
        for path in lab.files:
            if lab.rng.random() < 0.5:
                _people(lab, path)
    if lab.mix == "ruff format":
        _ruff(lab)


def _agent_turn(lab: Lab) -> None:
    session = lab.sessions[-1]
    lab.turn += 1
    lab.first[session.id, lab.turn] = lab.count
    lab.now += 30 * _SECOND
    session.prompt(lab.now, f"Please do step {lab.turn} of the plan for {session.id[:6]}")
    for _ in range(lab.rng.randint(1, 3)):
        lab.now += 5 * _SECOND
        _agent_edit(lab, session)


def _agent_edit(lab: Lab, session: Session) -> None:
    path = lab.rng.choice(list(lab.files))
    lines = lab.files[path]
    owner = Owner("agent", session.id, lab.turn)
    if lab.rng.random() < 0.12:
        name = f"module_{len(lab.files)}.py"
        made = _units(lab, 1, owner)
        lab.files[name] = made
        session.create(lab.now, name, [line.text for line in made])
        return
    starts = [at for at, line in enumerate(lines) if line.text.startswith("def ")]
    at = lab.rng.choice(starts)
    if lab.rng.random() < 0.45:
        new = [*_units(lab, 1, owner), Line("", owner), Line("", owner)]
        _replace(lab, path, at, 1, [*new, lines[at]])
        return
    _edit_inside(lab, path, at, owner)


def _edit_inside(lab: Lab, path: str, at: int, owner: Owner) -> None:
    """Change a line or two of a function, and put one in."""
    lines = lab.files[path]
    end = next((n for n in range(at + 1, len(lines)) if lines[n].text.startswith("def ")), None)
    inner = range(at + 1, min(len(lines) if end is None else end - 2, at + 12))
    telling = [n for n in inner if _WORD.search(lines[n].text)]
    if not telling:
        return
    line = lab.rng.choice(telling)
    size = lab.rng.randint(1, 2) if line + 1 in inner else 1
    old = lines[line : line + size]
    new = [Line(_renamed(lab.rng, one.text, "agent"), owner) for one in old]
    for one, before in zip(new, old, strict=True):
        if one.text == before.text:
            one.owner = before.owner
    if lab.rng.random() < 0.5:
        indent = old[0].text[: len(old[0].text) - len(old[0].text.lstrip())]
        number = lab.rng.randint(10, 99999)
        new.insert(0, Line(f"{indent}# step {number}: keep the order of the parts", owner))
    _replace(lab, path, line, size, new)


def _replace(lab: Lab, path: str, at: int, size: int, new: File) -> None:
    """An edit by the session: what it is told, and what the file is then."""
    lines = lab.files[path]
    old = lines[at : at + size]
    texts = [line.text for line in lines]
    told = [line.text for line in old]
    first = at
    # an edit by its text names enough lines to be unique
    while at > 0 and _count(texts, told) > 1:
        at -= 1
        old, new = [lines[at], *old], [lines[at], *new]
        told = [line.text for line in old]
    if _count(texts, told) > 1:
        return
    lab.sessions[-1].edit(lab.now, path, at, told, [line.text for line in new])
    lines[at : first + size] = new


def _count(texts: Sequence[str], wanted: Sequence[str]) -> int:
    return "\n".join(["", *texts, ""]).count("\n".join(["", *wanted, ""]))


def _renamed(rng: Random, text: str, by: str) -> str:
    words = [m for m in _WORD.finditer(text) if m[0] not in _KEYWORDS]
    if not words or text.lstrip().startswith(("def ", "#")):
        return f"{text}  # {by} {rng.randint(1, 99)}"
    word = rng.choice(words)
    return f"{text[: word.start()]}{word[0]}_{rng.randint(1, 99)}{text[word.end() :]}"


# -- people and formatters -----------------------------------------------------------------------


def _people(lab: Lab, path: str) -> None:
    acts: dict[str, tuple[Callable[[Lab, str], None], ...]] = {
        "people add lines": (_add,),
        "people copy lines": (_copy,),
        "people touch agents' lines": (_touch,),
        "spacing": (_space,),
        "wrapping": (_wrap,),
        "all, with moves": (_add, _copy, _touch, _space, _wrap, _move, _delete),
    }
    own = acts.get(lab.mix)
    if own:
        lab.now += 10 * _SECOND
        lab.rng.choice(own)(lab, path)


def _add(lab: Lab, path: str) -> None:
    lines = lab.files[path]
    at = lab.rng.randrange(len(lines))
    indent = lines[at].text[: len(lines[at].text) - len(lines[at].text.lstrip())]
    count = lab.rng.randint(1, 3)
    numbers = [lab.rng.randint(100, 99999) for _ in range(count)]
    new = [Line(f"{indent}# see the note on page {number}", _PERSON) for number in numbers]
    lines[at:at] = new


def _agents(lines: File) -> list[int]:
    found = []
    for at, line in enumerate(lines):
        if line.owner.kind == "agent" and len(line.text.strip()) > 12:
            found.append(at)
    return found


def _copy(lab: Lab, path: str) -> None:
    lines = lab.files[path]
    own = _agents(lines)
    if own:
        at = lab.rng.choice(own)
        count = lab.rng.randint(1, 3)
        copied = [Line(line.text, _PERSON) for line in lines[at : at + count]]
        to = lab.rng.choice((at + count, lab.rng.randrange(len(lines))))
        lines[to:to] = copied


def _touch(lab: Lab, path: str) -> None:
    lines = lab.files[path]
    for at in lab.rng.sample(_agents(lines), min(2, len(_agents(lines)))):
        text = _renamed(lab.rng, lines[at].text, "person")
        lines[at] = Line(text, _MODIFIED)


def _space(lab: Lab, path: str) -> None:
    """A formatter that sets the spaces anew: between words, and before the first one."""
    lines = lab.files[path]
    start = lab.rng.randrange(len(lines))
    for line in lines[start : start + 40]:
        text = re.sub(r" ?([=+,]) ?", r" \1 ", line.text.strip())
        indent = len(line.text) - len(line.text.lstrip())
        line.text = (" " * (indent + 2 * (indent > 0)) + text).rstrip()


def _wrap(lab: Lab, path: str) -> None:
    """A formatter that breaks a long line at its commas, or joins two."""
    lines = lab.files[path]
    long = [at for at, line in enumerate(lines) if line.text.count(", ") >= 2]
    for at in sorted(lab.rng.sample(long, min(3, len(long))), reverse=True):
        line = lines[at]
        indent = line.text[: len(line.text) - len(line.text.lstrip())]
        first, *rest = line.text.split(", ")
        pieces = [f"{first},", *(f"{indent}        {piece}," for piece in rest[:-1])]
        pieces.append(f"{indent}        {rest[-1]}")
        lines[at : at + 1] = [Line(piece, line.owner) for piece in pieces]


def _move(lab: Lab, path: str) -> None:
    lines = lab.files[path]
    if len(lines) > 30:
        at = lab.rng.randrange(len(lines) - 12)
        block = lines[at : at + lab.rng.randint(4, 9)]
        del lines[at : at + len(block)]
        to = lab.rng.randrange(len(lines))
        lines[to:to] = block


def _delete(lab: Lab, path: str) -> None:
    lines = lab.files[path]
    if len(lines) > 40:
        at = lab.rng.randrange(len(lines) - 5)
        del lines[at : at + lab.rng.randint(1, 3)]


def _ruff(lab: Lab) -> None:
    """The real formatter over every file. Of a function that is one owner's, all lines stay so;
    where owners mix and the formatter changes it, its lines are not judged."""
    for path, lines in lab.files.items():
        units = _split_units(lines)
        done = [_formatted([line.text for line in unit]) for unit in units]
        if any(one is None for one in done):
            continue
        found: File = []
        for unit, texts in zip(units, done, strict=True):
            found += _carried(unit, texts or [])
            found += [Line("", unit[-1].owner), Line("", unit[-1].owner)]
        lab.files[path] = found[:-2]


def _carried(unit: File, texts: list[str]) -> File:
    if [line.text for line in unit] == texts:
        return unit
    owners = {line.owner for line in unit if line.text}
    owner = owners.pop() if len(owners) == 1 else Owner("unjudged")
    return [Line(text, owner) for text in texts]


def _split_units(lines: File) -> list[File]:
    units: list[File] = []
    for line in lines:
        if line.text.startswith("def ") or not units:
            units.append([])
        units[-1].append(line)
    for unit in units:
        while unit and not unit[-1].text:
            unit.pop()
    return [unit for unit in units if unit]


def _formatted(texts: list[str]) -> list[str] | None:
    ruff = Path(__file__).parents[1] / ".venv/bin/ruff"
    done = subprocess.run(
        [str(ruff), "format", "--isolated", "-"],
        input="\n".join(texts) + "\n",
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.stdout.rstrip("\n").split("\n") if done.returncode == 0 else None
