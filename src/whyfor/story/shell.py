"""What a shell command does to files, as far as its text says: here-documents, echoes, removals,
renames."""

from __future__ import annotations

import os.path
import re
import shlex
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import ClassVar

import msgspec

# Most commands do none of this, and taking one apart costs more than looking.
_WORTH = re.compile(
    r"<<|(?:^|[\s;&|(])(?:rm|mv|tee)\s|\b(?:echo|printf)\b[^\n]*>|\bsed\s[^\n]*-i|\bpython[\d.]*\s+-c|\bnode\s+-e"
)
_HERE = re.compile(r"(?<!<)<<(-?)[ \t]*(\\?)(['\"]?)([A-Za-z_]\w*)\3(?!<)")
_COMMENT = re.compile(r"^\s*#.*$", re.M)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_NAMED = re.compile(r"""(['"])((?:[\w@.~-]+/)*[\w@.-]+\.\w{1,10})\1""")
_QUOTES = re.compile(r"\"{3}\\?|'{3}\\?|`")
_BEFORE = frozenset("sudo command exec nohup time env then do else {".split())
_SCRIPTS = re.compile(r"(?:python[\d.]*|node|perl|ruby|deno|bun|uv|poetry)$")
_MARK = "\x00here"


class Effect(msgspec.Struct, frozen=True):
    kind: str  # wrote (the whole file) | added | script | gone | moved | touched
    path: str
    lines: list[str] = []
    old: str | None = None  # where a moved file was


def effects(command: str, cwd: str) -> list[Effect]:
    """Return what a command run in `cwd` does to files; nothing if its quotes do not match."""
    if not _WORTH.search(command):
        return []
    text, bodies = _without_bodies(command)
    try:
        words = _words(text)
    except ValueError:  # a quote that is never closed
        return []
    return list(_Shell(cwd, bodies).run(words))


class SimpleCommand(msgspec.Struct, frozen=True):
    """One program that a command runs, with its arguments."""

    name: str
    words: tuple[str, ...]
    hidden: bool  # a later program decides how the whole command ends


def simple_commands(command: str) -> list[SimpleCommand]:
    """Return the programs that a command runs, in order; none if its quotes do not match."""
    text, bodies = _without_bodies(command)
    try:
        words = _words(text)
    except ValueError:  # a quote that is never closed
        return []
    shell = _Shell("", bodies)
    found: list[tuple[_Command, str]] = []
    simple: list[str] = []
    for word in [*words, ""]:
        if word.strip(";&|()\n"):
            simple.append(word)
        elif simple:
            found.append((shell._parse(simple), word))
            simple = []
    last = len(found) - 1
    return [
        SimpleCommand(one.name, tuple(one.words), number < last and end != "&&")
        for number, (one, end) in enumerate(found)
    ]


def _without_bodies(command: str) -> tuple[str, list[list[str]]]:
    """Return the command with a mark for each here-document, and their lines."""
    kept: list[str] = []
    bodies: list[list[str]] = []
    lines = iter(command.split("\n"))
    for line in lines:
        found = list(_HERE.finditer(line))
        first = len(bodies)
        for match in found:
            bodies.append(_body(lines, end=match[4], tabs=bool(match[1])))
        for number, match in reversed(list(enumerate(found, first))):
            line = f"{line[: match.start()]} {_MARK}{number} {line[match.end() :]}"
        kept.append(line)
    return "\n".join(kept), bodies


def _body(lines: Iterator[str], *, end: str, tabs: bool) -> list[str]:
    """Read a here-document up to its last line; with `tabs`, those a line begins with are not
    part of it."""
    body: list[str] = []
    for line in lines:
        if tabs:
            line = line.lstrip("\t")
        if line.rstrip("\r") == end:
            break
        body.append(line)
    return body


def _words(text: str) -> list[str]:
    plain = _COMMENT.sub("", text.replace("\\\n", " "))
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=";&|<>()\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


class _Command(msgspec.Struct):
    """One simple command: its name, its words, and what its redirections say."""

    name: str
    words: list[str]
    given: list[str] | None  # lines on its standard input
    out: str  # the file its output goes to
    append: bool

    @property
    def flags(self) -> list[str]:
        return [word for word in self.words if word.startswith("-")]

    @property
    def names(self) -> list[str]:
        return [word for word in self.words if not word.startswith("-")]


class _Shell:
    """Runs through the words of a command, one simple command after the other."""

    def __init__(self, cwd: str, bodies: list[list[str]]) -> None:
        self.cwd = cwd
        self.bodies = bodies
        self.piped: list[str] | None = None  # what the command before writes into this one

    def run(self, words: list[str]) -> Iterator[Effect]:
        simple: list[str] = []
        for word in [*words, ";"]:
            if word and not word.strip(";&|()\n"):
                yield from self._simple(simple)
                self.piped = self.piped if word == "|" else None
                simple = []
            else:
                simple.append(word)

    def _simple(self, words: list[str]) -> Iterator[Effect]:
        command = self._parse(words)
        self.piped = None
        run = self._COMMANDS.get(command.name)
        if run is not None:
            yield from run(self, command)
        elif _SCRIPTS.match(command.name):
            yield from self._script(command)

    def _parse(self, words: list[str]) -> _Command:
        """Tell a command's own words from its redirections and what stands before it."""
        command = _Command("", [], self.piped, "", False)
        plain = self._redirect(command, words)
        while plain and (plain[0] in _BEFORE or _ASSIGNMENT.match(plain[0])):
            plain.pop(0)
        if plain:
            command.name = plain[0].rsplit("/", 1)[-1]
            command.words = plain[1:]
        if command.name == "git" and command.words[:1] in (["rm"], ["mv"]):
            command.name = command.words.pop(0)
        return command

    def _redirect(self, command: _Command, words: list[str]) -> list[str]:
        """Take redirections and here-documents out of the words; return the others."""
        plain: list[str] = []
        rest = iter(words)
        for word in rest:
            if word.startswith(_MARK):
                command.given = self.bodies[int(word.removeprefix(_MARK))]
            elif word and not word.strip("<>&|"):
                target = next(rest, "")
                if plain and plain[-1].isdigit():
                    plain.pop()  # the 2 of 2>
                if ">" in word and "&" not in word:
                    command.out, command.append = target, word == ">>"
            else:
                plain.append(word)
        return plain

    def _cd(self, command: _Command) -> Iterator[Effect]:
        if command.names:
            self.cwd = self._path(command.names[0])
        yield from ()

    def _cat(self, command: _Command) -> Iterator[Effect]:
        if command.given is not None:
            self.piped = command.given
            yield from self._written(command.out, command.given, command.append)

    def _tee(self, command: _Command) -> Iterator[Effect]:
        if command.given is None:
            return
        for path in command.names:
            yield from self._written(path, command.given, "-a" in command.flags)

    def _echo(self, command: _Command) -> Iterator[Effect]:
        if command.out:
            words = [word for word in command.words if word not in ("-e", "-n", "-en", "-ne")]
            lines = " ".join(words).replace("\\n", "\n").split("\n")
            yield from self._written(command.out, lines, command.append)

    def _rm(self, command: _Command) -> Iterator[Effect]:
        if "--cached" in command.flags:
            return
        for path in command.names:
            if not _glob(path):
                yield Effect("gone", self._path(path))

    def _mv(self, command: _Command) -> Iterator[Effect]:
        if len(command.names) > 1:
            yield from self._moved(command.names[:-1], command.names[-1])

    def _sed(self, command: _Command) -> Iterator[Effect]:
        if not any(flag.startswith(("-i", "--in-place")) for flag in command.flags):
            return
        for path in command.names[1:]:
            if not _glob(path):
                yield Effect("touched", self._path(path))

    def _written(self, path: str, lines: list[str], append: bool) -> Iterator[Effect]:
        if path and path != "/dev/null" and not _glob(path):
            yield Effect("added" if append else "wrote", self._path(path), lines)

    def _moved(self, sources: list[str], target: str) -> Iterator[Effect]:
        for source in sources:
            if _glob(source) or _glob(target):
                continue
            old = self._path(source)
            if len(sources) == 1 and not target.endswith(("/", ".")):
                yield Effect("moved", self._path(target), old=old)
            # the target may be a folder
            inside = f"{self._path(target)}/{source.rstrip('/').rsplit('/', 1)[-1]}"
            yield Effect("moved", inside, old=old)

    def _script(self, command: _Command) -> Iterator[Effect]:
        """Yield the files that a script names; it may hold the text it puts there."""
        lines = command.given
        for option, text in pairwise(command.words):
            if option in ("-c", "-e"):
                lines = text.split("\n")
                break
        if not lines:
            return
        quoted: list[str] = []
        for line in lines:
            quoted += _QUOTES.split(line)[1:]
        lines = [*lines, *quoted]
        for path in dict.fromkeys(match[2] for match in _NAMED.finditer("\n".join(lines))):
            yield Effect("script", self._path(path), lines)

    def _path(self, path: str) -> str:
        return absolute(path, self.cwd)

    _COMMANDS: ClassVar[dict[str, Callable[[_Shell, _Command], Iterator[Effect]]]] = {
        "cd": _cd,
        "cat": _cat,
        "tee": _tee,
        "echo": _echo,
        "printf": _echo,
        "rm": _rm,
        "mv": _mv,
        "sed": _sed,
    }


def absolute(path: str, cwd: str) -> str:
    """With slashes, from the root where the folder is known; `~` and drives count as roots."""
    if not path:
        return ""
    path, cwd = path.replace("\\", "/").removeprefix("file://"), cwd.replace("\\", "/")
    if path.startswith(("/", "~")) or path[1:3] == ":/" or not cwd:
        return _tidy(path)
    return _tidy(f"{cwd}/{path}")


def _tidy(path: str) -> str:
    return os.path.normpath(path).replace("\\", "/")


def _glob(path: str) -> bool:
    return any(mark in path for mark in "*?$`{[")
