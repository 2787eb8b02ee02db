"""The laboratory for lines with the real agents running: a scripted model has them edit, people and
real formatters edit between their turns. The driver keeps an owner beside each line, and stops if
an agent left other text than it was told to write."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # tests hold the agents

from tests.agents import ALL_AGENTS, Agent, Call, Reply, Request, Run, Say, ScriptedModel
from tests.agents.install import installed, missing_tool
from tests.agents.process import run_clean
from whyfor.capture import spool
from whyfor.model.shell_edits import SHELL_EDITS

from formatters import Language
from lines_lab import BASE, MODIFIED, PERSON, File, Lab, Line, Owner

__all__ = ["ALL_AGENTS", "RunningLab", "make_running_lab", "missing_tool"]
_TRUST = {"codex": ["--dangerously-bypass-hook-trust"]}
# Agents whose shell commands are looked at after `init --shell-edits`.
_WATCHED = frozenset(("claude", "codex", "gemini"))
_RUN = 240.0  # seconds that one run of an agent may take
_GRACE = 60.0  # for what its hooks started
_WORD = re.compile(r"\b[a-z_]{4,}\b")
_SPARE = frozenset(" \t,;()'\"")  # what formatters put in and take away
_UNITS = 4  # functions of a file at the start
_UNJUDGED = Owner("unjudged")
_BASE, _PERSON, _MODIFIED = Owner(BASE), Owner(PERSON), Owner(MODIFIED)


@dataclass
class RunningSession:
    """A session of a real agent. Its id is known only after its first turn."""

    agent: Agent
    id: str
    run: Run | None = None
    steps: list[Any] = field(default_factory=list)


@dataclass
class RunningLab(Lab):
    """A repository on which real agents work."""

    model: ScriptedModel | None = None
    languages: dict[str, Language] = field(default_factory=dict)  # by path
    stock: dict[str, list[list[str]]] = field(default_factory=dict)  # functions, by suffix
    agents: dict[str, str] = field(default_factory=dict)  # of commits
    commands: int = 0  # of the shell that were looked at
    current: RunningSession | None = None

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def kept(self) -> Path:
        return self.folder / "whyfor"

    def commit(self, message: str, *paths: str) -> str:
        """At the time it is: agents write down the real one."""
        self.now = int(time.time() * 1000) - 60_000
        return super().commit(message, *paths)

    def new_function(self, language: Language) -> list[str]:
        known = self.stock.get(language.suffix)
        if not known:
            known = self.stock[language.suffix] = language.functions(self.rng)
        return known.pop()


def make_running_lab(
    folder: Path, program: Path, names: list[str], formats: dict[str, Language], commits: int
) -> RunningLab:
    """Have each agent make so many commits in one repository. One file per formatter."""
    lab = RunningLab(folder, "running agents", Random("running agents"))
    lab.repository.mkdir(parents=True)
    lab.home.mkdir()
    (lab.home / ".config" / "opencode").mkdir(parents=True)
    lab.git("init", "-q", "-b", "main")
    for name, language in formats.items():
        path = f"{name}_code{language.suffix}"
        lab.languages[path] = language
        lab.files[path] = _first(lab, language)
        _formatter(lab, path)
    lab.commit("First")
    _init(lab, program)
    with ScriptedModel() as model:
        lab.model = model
        for name in names:
            _begin(lab, name)
            for number in range(commits):
                _work(lab, name, number)
    return lab


def _init(lab: RunningLab, program: Path) -> None:
    env = {
        "PATH": f"{installed()}:/usr/bin:/bin",
        "HOME": str(lab.home),
        "WHYFOR_HOME": str(lab.kept),
        "LANG": "C.UTF-8",
    }
    done = run_clean([str(program), "init", "--shell-edits"], lab.repository, env, _RUN, _GRACE)
    if done.code:
        raise RuntimeError(f"init failed: {done.stderr}")


def _first(lab: RunningLab, language: Language) -> File:
    found = [Line(language.first, _BASE), Line("", _BASE)] if language.first else []
    for number in range(_UNITS):
        found += [Line("", _BASE)] * 2 * (number > 0)
        found += [Line(text, _BASE) for text in lab.new_function(language)]
    return found


def _begin(lab: RunningLab, name: str) -> None:
    assert lab.model is not None
    env = {"WHYFOR_HOME": str(lab.kept)}
    agent = ALL_AGENTS[name](lab.home, lab.repository, lab.model, env=env)
    lab.current = RunningSession(agent, f"{name}, not begun")
    lab.turn = 0


def _work(lab: RunningLab, name: str, number: int) -> None:
    for path in lab.languages:
        _people(lab, path)
    for _ in range(lab.rng.randint(1, 2)):
        _turn(lab)
    for path in lab.languages:
        if lab.rng.random() < 0.5:
            _people(lab, path)
    if number % 2:
        for path in lab.languages:
            _formatter(lab, path)
    sha = lab.commit(f"{name} {number}")
    lab.agents[sha] = name


# -- an agent's turn -----------------------------------------------------------------------------


def _turn(lab: RunningLab) -> None:
    session = lab.current
    assert session is not None
    assert lab.model is not None
    lab.turn += 1
    lab.save()
    session.steps = []
    owner = Owner("agent", session.id, lab.turn)
    lab.first[session.id, lab.turn] = lab.count
    for path in lab.rng.sample(sorted(lab.languages), min(2, len(lab.languages))):
        session.steps.append(Call("read", {"path": lab.repository / path}))
        act = lab.rng.choice((_insert, _insert, _change, _change, _create))
        act(lab, path, owner)
    if session.agent.name in _WATCHED:
        shell = lab.rng.choice((_sed, _generate))
        shell(lab, lab.rng.choice(sorted(lab.languages)), owner)
    lab.model.add(*session.steps, lambda _: _closing(lab))
    _run(lab, session)
    _compare(lab)


def _run(lab: RunningLab, session: RunningSession) -> None:
    prompt = f"Do step {lab.turn} of the plan"
    more = _TRUST.get(session.agent.name, [])
    options = {"timeout": _RUN, "grace": _GRACE}
    if session.run is None:
        done = session.run = session.agent.run(prompt, *more, **options)
    else:
        done = session.agent.resume(session.run.session_id, prompt, *more, **options)
    if done.code:
        raise RuntimeError(f"{session.agent.name} exited {done.code}: {done.stderr[-400:]}")
    if session.id == session.run.session_id:
        return
    real = session.run.session_id
    lab.first = {(real if s == session.id else s, turn): n for (s, turn), n in lab.first.items()}
    for line in (line for lines in lab.files.values() for line in lines):
        if line.owner.session == session.id:
            line.owner = Owner("agent", real, line.owner.turn)
    session.id = real


def _compare(lab: RunningLab) -> None:
    """Stop if the agents' work is not what the driver thinks it is."""
    for path, lines in lab.files.items():
        there = (lab.repository / path).read_text()
        if there != "".join(f"{line.text}\n" for line in lines):
            name = lab.current.agent.name if lab.current else ""
            told = f"{name} left another text in {path} than it was told"
            raise RuntimeError(told)


def _edit(lab: RunningLab, path: str, at: int, size: int, new: File) -> None:
    """Replace lines by a tool of the agent, which names enough lines to be unique."""
    lines = lab.files[path]
    first, last = at, at + size
    text = _told(lines)
    while text.count(_told(lines[first:last])) > 1 and last < len(lines):
        first, last = (first - 1, last) if first else (first, last + 1)
    shown = [*lines[first:at], *new, *lines[at + size : last]]
    assert lab.current is not None
    arguments = {
        "path": lab.repository / path,
        "old": _told(lines[first:last]),
        "new": _told(shown),
    }
    lab.current.steps.append(Call("edit", arguments))
    lines[at : at + size] = new


def _told(lines: File) -> str:
    return "".join(f"{line.text}\n" for line in lines)


def _starts(lab: RunningLab, path: str) -> list[int]:
    pattern = lab.languages[path].starts
    return [at for at, line in enumerate(lab.files[path]) if pattern.match(line.text)]


def _insert(lab: RunningLab, path: str, owner: Owner) -> None:
    """A function before another one."""
    at = lab.rng.choice(_starts(lab, path))
    head = lab.files[path][at]
    made = [Line(text, owner) for text in lab.new_function(lab.languages[path])]
    _edit(lab, path, at, 1, [*made, Line("", owner), Line("", owner), head])


def _change(lab: RunningLab, path: str, owner: Owner) -> None:
    """A line becomes another, with a comment above it."""
    lines = lab.files[path]
    at = _some_line(lab, path)
    changed = _renamed(lab, lines[at].text)
    indent = changed[: len(changed) - len(changed.lstrip())]
    mark = lab.languages[path].comment
    note = f"{indent}{mark} step {lab.rng.randint(10, 99999)}: keep the order of the parts"
    _edit(lab, path, at, 1, [Line(note, owner), Line(changed, owner)])


def _create(lab: RunningLab, path: str, owner: Owner) -> None:
    language = lab.languages[path]
    name = f"made_{len(lab.files)}{language.suffix}"
    made = [Line(text, owner) for text in lab.new_function(language)]
    if language.first:
        made = [Line(language.first, owner), Line("", owner), *made]
    lab.files[name] = made
    assert lab.current is not None
    arguments = {"path": lab.repository / name, "content": _told(made)}
    lab.current.steps.append(Call("write", arguments))


def _sed(lab: RunningLab, path: str, owner: Owner) -> None:
    at = _some_line(lab, path)
    line = lab.files[path][at]
    word = lab.rng.choice(_WORD.findall(line.text))
    new = f"{word}_{lab.rng.randint(1, 999)}"
    changed = line.text.replace(word, new)
    _shell(lab, f"sed -i '{at + 1}s/{word}/{new}/g' {path}")
    lab.files[path][at] = Line(changed, owner)


def _generate(lab: RunningLab, _path: str, owner: Owner) -> None:
    name = f"table_{len(lab.files)}.txt"
    first = lab.rng.randint(100, 999)
    script = f"[print('entry', n, 'of the table', n * n) for n in range({first}, {first + 6})]"
    _shell(lab, f'python3 -c "{script}" > {name}')
    numbers = range(first, first + 6)
    lab.files[name] = [Line(f"entry {n} of the table {n * n}", owner) for n in numbers]


def _shell(lab: RunningLab, command: str) -> None:
    """A command, after what came before it was looked at: a model takes longer than that."""
    assert lab.current is not None
    before = lab.commands
    lab.commands += 1
    arguments = {"command": command}

    def step(_request: Request) -> Reply:
        _await(lambda: any((lab.kept / "snapshots").glob("*/state")) and _seen(lab) >= before)
        return Reply(Call("shell", arguments))

    lab.current.steps.append(step)


def _closing(lab: RunningLab) -> Reply:
    _await(lambda: _seen(lab) >= lab.commands)
    return Reply(Say(f"Step {lab.turn} is done."))


def _seen(lab: RunningLab) -> int:
    data = b"".join(path.read_bytes() for path in spool.files(lab.kept))
    return data.count(b'"event":"%s"' % SHELL_EDITS.encode())


def _await(is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + _GRACE
    while not is_true():
        if time.monotonic() > end:
            raise RuntimeError("no snapshot was taken")
        time.sleep(0.05)


# -- people and formatters -----------------------------------------------------------------------


def _some_line(lab: RunningLab, path: str) -> int:
    pattern = lab.languages[path].starts
    found = []
    for at, line in enumerate(lab.files[path]):
        code = not line.text.lstrip().startswith((lab.languages[path].comment, "*", "/"))
        if code and _WORD.search(line.text) and not pattern.match(line.text):
            found.append(at)
    return lab.rng.choice([at for at in found if not lab.files[path][at].text.startswith("pack")])


def _renamed(lab: RunningLab, text: str) -> str:
    word = lab.rng.choice(list(_WORD.finditer(text)))
    return f"{text[: word.start()]}{word[0]}_{lab.rng.randint(1, 99)}{text[word.end() :]}"


def _people(lab: RunningLab, path: str) -> None:
    lab.rng.choice((_add, _copy, _touch, _move, _delete))(lab, path)


def _add(lab: RunningLab, path: str) -> None:
    at = _some_line(lab, path)
    text = lab.files[path][at].text
    indent = text[: len(text) - len(text.lstrip())]
    note = f"{indent}{lab.languages[path].comment} see page {lab.rng.randint(100, 99999)} of it"
    lab.files[path].insert(at, Line(note, _PERSON))


def _agents(lab: RunningLab, path: str) -> list[int]:
    lines = lab.files[path]
    found = [at for at, line in enumerate(lines) if line.owner.kind == "agent"]
    return [at for at in found if len(lines[at].text.strip()) > 12]


def _copy(lab: RunningLab, path: str) -> None:
    """A function of an agent's once more, at the end."""
    lines = lab.files[path]
    at = lab.rng.choice(_starts(lab, path))
    end = next((n for n in range(at + 1, len(lines)) if not lines[n].text), len(lines))
    lines += [Line("", _PERSON), Line("", _PERSON)]
    lines += [Line(line.text, _PERSON) for line in lines[at:end]]


def _touch(lab: RunningLab, path: str) -> None:
    own = [at for at in _agents(lab, path) if _WORD.search(lab.files[path][at].text)]
    for at in lab.rng.sample(own, min(2, len(own))):
        lab.files[path][at] = Line(_renamed(lab, lab.files[path][at].text), _MODIFIED)


def _move(lab: RunningLab, path: str) -> None:
    """The last function goes before another one."""
    lines = lab.files[path]
    starts = _starts(lab, path)
    if len(starts) > 2:
        block = lines[starts[-1] :]
        del lines[starts[-1] :]
        while not lines[-1].text:
            block.append(lines.pop())
        to = lab.rng.choice(starts[:-1])
        lines[to:to] = block


def _delete(lab: RunningLab, path: str) -> None:
    own = [at for at, line in enumerate(lab.files[path]) if "step" in line.text]
    if own:
        del lab.files[path][lab.rng.choice(own)]


def _formatter(lab: RunningLab, path: str) -> None:
    """The real one over the whole file; if it refuses the file, nothing happens."""
    before = lab.files[path]
    texts = lab.languages[path].format([line.text for line in before])
    if texts is not None:
        lab.files[path] = carry_through(before, texts)


def carry_through(before: File, texts: list[str]) -> File:
    """The owners of lines after a formatter: of changed lines by their letters, because it changes
    nothing but space, commas, quotes and brackets. A line of several owners is not judged."""
    found: File = []
    old = [line.text for line in before]
    for kind, first, last, start, end in SequenceMatcher(None, old, texts, False).get_opcodes():
        if kind == "equal":
            found += before[first:last]
        else:
            found += _by_letters(before[first:last], texts[start:end])
    return found


def _by_letters(before: File, texts: list[str]) -> File:
    old = [(char, line.owner) for line in before for char in line.text if char not in _SPARE]
    new = [(char, at) for at, text in enumerate(texts) for char in text if char not in _SPARE]
    letters = [char for char, _ in old], [char for char, _ in new]
    owners: list[set[Owner]] = [set() for _ in texts]
    for block in SequenceMatcher(None, *letters, False).get_matching_blocks():
        for n in range(block.size):
            owners[new[block.b + n][1]].add(old[block.a + n][1])
    sole = [one.pop() if len(one) == 1 else _UNJUDGED for one in owners]
    return [Line(text, owner) for text, owner in zip(texts, sole, strict=True)]
