"""What a shell command does to files, as far as its text says: here-documents, echoes, removals,
renames."""

from __future__ import annotations

import os.path
import re
import shlex
from collections.abc import Iterator

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
    if not _WORTH.search(command):
        return []
    text, bodies = _without_bodies(command)
    try:
        words = _words(text)
    except ValueError:  # a quote that is never closed
        return []
    return list(_Shell(cwd, bodies).run(words))


def _without_bodies(command: str) -> tuple[str, list[list[str]]]:
    """Here-documents taken out, each replaced by a mark."""
    kept: list[str] = []
    bodies: list[list[str]] = []
    waiting: list[tuple[str, bool]] = []
    body: list[str] = []
    for line in command.split("\n"):
        if waiting:
            end, tabs = waiting[0]
            if (line.lstrip("\t") if tabs else line).rstrip("\r") == end:
                bodies.append(body)
                body = []
                waiting.pop(0)
            else:
                body.append(line.lstrip("\t") if tabs else line)
            continue
        found = list(_HERE.finditer(line))
        waiting = [(match[4], bool(match[1])) for match in found]
        for number, match in reversed(list(enumerate(found, len(bodies)))):
            line = f"{line[: match.start()]} {_MARK}{number} {line[match.end() :]}"
        kept.append(line)
    bodies += [body] * len(waiting)
    return "\n".join(kept), bodies


def _words(text: str) -> list[str]:
    plain = _COMMENT.sub("", text.replace("\\\n", " "))
    lexer = shlex.shlex(plain, posix=True, punctuation_chars=";&|<>()\n")
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    return list(lexer)


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
        given, out, append, plain = self.piped, "", False, list[str]()
        rest = iter(words)
        for word in rest:
            if word.startswith(_MARK):
                given = self.bodies[int(word.removeprefix(_MARK))]
            elif word and not word.strip("<>&|"):
                target = next(rest, "")
                if plain and plain[-1].isdigit():
                    plain.pop()  # the 2 of 2>
                if ">" in word and "&" not in word:
                    out, append = target, word == ">>"
            else:
                plain.append(word)
        while plain and (plain[0] in _BEFORE or _ASSIGNMENT.match(plain[0])):
            plain.pop(0)
        self.piped = None
        if plain:
            yield from self._command(plain[0].rsplit("/", 1)[-1], plain[1:], given, out, append)

    def _command(
        self, name: str, words: list[str], given: list[str] | None, out: str, append: bool
    ) -> Iterator[Effect]:
        flags = [word for word in words if word.startswith("-")]
        names = [word for word in words if not word.startswith("-")]
        if name == "git" and words[:1] in (["rm"], ["mv"]):
            name, names = words[0], names[1:]
        if name == "cd" and names:
            self.cwd = self._path(names[0])
        elif name == "cat" and given is not None:
            self.piped = given
            yield from self._written(out, given, append)
        elif name == "tee" and given is not None:
            for path in names:
                yield from self._written(path, given, "-a" in flags)
        elif name in ("echo", "printf") and out:
            said = " ".join(word for word in words if word not in ("-e", "-n", "-en", "-ne"))
            yield from self._written(out, said.replace("\\n", "\n").split("\n"), append)
        elif name == "rm" and "--cached" not in flags:
            yield from (Effect("gone", self._path(path)) for path in names if not _glob(path))
        elif name == "mv" and len(names) > 1:
            yield from self._moved(names[:-1], names[-1])
        elif name == "sed" and any(flag.startswith(("-i", "--in-place")) for flag in flags):
            yield from (
                Effect("touched", self._path(path)) for path in names[1:] if not _glob(path)
            )
        elif _SCRIPTS.match(name):
            yield from self._script(given, words)

    def _written(self, path: str, lines: list[str], append: bool) -> Iterator[Effect]:
        if path and path != "/dev/null" and not _glob(path):
            yield Effect("added" if append else "wrote", self._path(path), lines)

    def _moved(self, sources: list[str], target: str) -> Iterator[Effect]:
        for source in sources:
            if not _glob(source) and not _glob(target):
                old = self._path(source)
                inside = f"{self._path(target)}/{source.rstrip('/').rsplit('/', 1)[-1]}"
                if len(sources) == 1 and not target.endswith(("/", ".")):
                    yield Effect("moved", self._path(target), old=old)
                yield Effect("moved", inside, old=old)  # the target may be a folder

    def _script(self, given: list[str] | None, words: list[str]) -> Iterator[Effect]:
        """A script that names a file and holds the text it puts there."""
        inline = next(
            (words[at + 1] for at, word in enumerate(words[:-1]) if word in ("-c", "-e")), None
        )
        lines = inline.split("\n") if inline is not None else given
        if lines:
            lines = [*lines, *(part for line in lines for part in _QUOTES.split(line)[1:])]
            named = dict.fromkeys(match[2] for match in _NAMED.finditer("\n".join(lines)))
            yield from (Effect("script", self._path(path), lines) for path in named)

    def _path(self, path: str) -> str:
        return absolute(path, self.cwd)


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
