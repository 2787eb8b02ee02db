"""Changes harmless commands at random, decides, and runs what was allowed in real shells in a
throw-away directory: nothing in it may change."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tests.story.rules.sample_rules import sample_request, sample_rules
from whyfor.story.rules.bash_parser import bash_parser
from whyfor.story.rules.decide import ALLOW, judge_command

SHELLS = ("bash", "dash", "zsh", "zsh+")
PROGRAMS = ("bash", "dash", "zsh")
# The last has the globs that some people turn on.
_STARTED = {"zsh": ["zsh", "-f"], "zsh+": ["zsh", "-f", "-o", "extendedglob"]}
USEFUL = Path(__file__).with_name("useful.txt")
_REAL = "make git ls cat head tail wc grep find sort uniq cut sed date diff pwd which touch jq file tree"
# One takes only the words that a rule names; of the other, every target but one changes something.
_NPM = """#!/bin/sh
for word; do
    case $word in test|run|lint|-s|--silent|--if-present|-q|--quiet) ;; *) touch PWN ;; esac
done
"""
_MAKEFILE = "test:\n\t@:\n.DEFAULT:\n\t@touch PWN\n"
_STUBS = "npm make pytest python3 cargo go ruff rg jq file tree"
# These change something because a person allowed just that.
_CHANGES = ("git add", "git commit")
_PAYLOAD = "touch PWN"
_PIECES = (
    *(f"$({_PAYLOAD})", f"`{_PAYLOAD}`", f"; {_PAYLOAD}", f"&& {_PAYLOAD}", f"| {_PAYLOAD}"),
    *(f"\n{_PAYLOAD}", f"& {_PAYLOAD}", f"|| {_PAYLOAD}", f"<({_PAYLOAD})", f"({_PAYLOAD})"),
    *("> PWN", ">> PWN", "2> PWN", ">| PWN", "&> PWN", "> /dev/null", "2>&1", "2>/dev/null"),
    *(">& 2", "1>&2", "> /dev/null PWN", "2>&1 PWN", "< a.txt", "<<< x", "<< E"),
    *("--output=PWN", "--output PWN", "-o PWN", "-oPWN", "--out=PWN", "-exec touch PWN ;"),
    *("-delete", "-fprint PWN", "--pre=touch", "-i", "-i.bak", "--in-place", "-w PWN", "-f PWN"),
    *("w PWN", "1w PWN", "'1w PWN'", "e touch PWN", "-c 'touch PWN'", "-e 'touch PWN'", "--"),
    *("-p", "-x", "--eval=x", "SHELL=touch", "X=1", "-C ..", "..", "../x", "~", "$HOME", "$x"),
    *("*", "-*", "./*", "src/*", "?", "[a-z]*", "{a,b}", "{touch,PWN}", "!", "!!", "!touch", "#"),
    *('"', "'", "\\", "''", '""', "$'x'", '$"x"', "\t", "\r", "\x0b", "\u00a0", "\u2028", "\x00"),
    *("=touch", "a=~", "+(x)", "@(x)", "^a^b", "%1", "HEAD@{1}", "@", "@x", ",", ":", "::", "-"),
    *("cd bare &&", "cd bare;", "cd nested &&", "bare", "nested", "-C bare", "--git-dir=bare"),
    *(
        "-j deploy",
        "-j 4*",
        "--jobs x",
        "1*",
        "v*",
        "s*",
        "a*",
        "link*",
        "link*/PWN",
        "l*/*",
        "^a.txt",
    ),
    *("-f 1*", "--sort v*", "--format x*", "-n 1*", "-k a*", "+1", "+x", "**", "-s 1* a.txt PWN"),
    *(
        "()",
        "(( 1 ))",
        "((",
        "))",
        "{ touch PWN; }",
        "() { touch PWN; }",
        "<&3",
        ">&-",
        "<->",
        "*(.)",
    ),
    *(
        "-am",
        "-v",
        "-x",
        "-u",
        "-R",
        "-L",
        "-H",
        "-S",
        "-C",
        "-M",
        "-l",
        "-T",
        "-P",
        "-W",
        "-I",
        "-D",
    ),
    *(
        '"a\\|b"',
        '"\\$(touch PWN)"',
        '"\\\\"',
        '"\\',
        "\\(",
        "\\)",
        "\\;",
        "\\ ",
        "---",
        "--- -o PWN",
    ),
    *("-C src", "-C bare", "-C nested", "-C link", "-C s*", "-C .", '--include="*.py"', '"*"a*'),
    *("--sort", "--format", "--color", "--files", "--regexp", "--list", "--all", "--color=a*"),
    *("touch", "PWN", "xargs touch PWN", "eval touch PWN", "sh -c 'touch PWN'", "cd -", "cd"),
)
_JOINS = (" && ", " || ", " | ", "; ", ";", "|", "&&", " & ", "\n", " |& ", ";;", " ! ")


class Mutator:
    """Makes lines out of harmless ones; the same seed makes the same lines."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        lines = USEFUL.read_text().splitlines()
        self.lines = [line for line in lines if not any(word in line for word in _CHANGES)]

    def __iter__(self) -> Iterator[str]:
        while True:
            line = self.random.choice(self.lines)
            for _ in range(self.random.choice((1, 1, 2, 3))):
                line = self.random.choice(_MUTATIONS)(self, line)
            yield line

    def insert_piece(self, line: str) -> str:
        """Put a hostile piece between two words, or into one."""
        piece = self.random.choice(_PIECES)
        if self.random.random() < 0.6:
            words = line.split(" ")
            words.insert(self.random.randint(0, len(words)), piece)
            return " ".join(words)
        place = self.random.randint(0, len(line))
        return line[:place] + piece + line[place:]

    def join(self, line: str) -> str:
        return line + self.random.choice(_JOINS) + self.random.choice(self.lines)

    def quote(self, line: str) -> str:
        """Quote a part of the line, from anywhere to anywhere."""
        start, end = sorted(self.random.randint(0, len(line)) for _ in range(2))
        mark = self.random.choice("'\"")
        return line[:start] + mark + line[start:end] + mark + line[end:]

    def drop(self, line: str) -> str:
        place = self.random.randint(0, len(line))
        return line[:place] + line[place + self.random.randint(1, 3) :]

    def swap(self, line: str) -> str:
        words = line.split(" ")
        self.random.shuffle(words)
        return " ".join(words)

    def borrow(self, line: str) -> str:
        """Put a word of another line between two words."""
        words = line.split(" ")
        word = self.random.choice(self.random.choice(self.lines).split(" "))
        words.insert(self.random.randint(0, len(words)), word)
        return " ".join(words)

    def bracket(self, line: str) -> str:
        return self.random.choice(("({})", "( {} )", "! {}", "{} ", " {}", "{{ {}; }}")).format(
            line
        )


_MUTATIONS = (
    Mutator.insert_piece,
    Mutator.insert_piece,
    Mutator.join,
    Mutator.quote,
    Mutator.drop,
    Mutator.swap,
    Mutator.borrow,
    Mutator.bracket,
)


class Playground:
    """A project of a few files, some with names like options, and programs that harm nothing."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.home = folder / "home"
        self.programs = folder / "programs"
        for made in (self.project / "src", self.project / "tests", self.home, self.programs):
            made.mkdir(parents=True)
        self._put_programs()
        self._put_files()
        self.before = self.state()

    def _put_programs(self) -> None:
        for name in _STUBS.split():
            stub = self.programs / name
            stub.write_text("#!/bin/sh\n:\n")
            stub.chmod(0o755)
        (self.programs / "npm").write_text(_NPM)
        for name in (*_REAL.split(), *PROGRAMS, "sh"):
            found = shutil.which(name)
            if found:
                (self.programs / name).unlink(missing_ok=True)
                (self.programs / name).symlink_to(found)

    def _put_files(self) -> None:
        names = "src/app.py tests/test_app.py README.md a.txt b.txt a.csv build.log package.json"
        odd = (
            "-rf",
            "--output=PWN",
            "-exec",
            "-i",
            "-delete",
            "touch PWN",
            "-oPWN",
            "$(touch PWN)",
        )
        for name in (*names.split(), *odd, *(f"src/{name}" for name in odd)):
            (self.project / name).write_text('{"name": "shop", "scripts": {}}\n')
        (self.project / "Makefile").write_text(_MAKEFILE)
        for name in ("1", "1x", "4", "4x", "v1", "v2", "x1", "x2"):
            (self.project / name).write_text("1\n")
        (self.project / "link").symlink_to(self.home)
        (self.project / "checks").write_text("#!/bin/sh\n:\n")
        (self.project / "checks").chmod(0o755)
        self._put_traps()
        env = {**self.env, "GIT_AUTHOR_DATE": "@0 +0000", "GIT_COMMITTER_DATE": "@0 +0000"}
        who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        for words in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-qm", "First")):
            subprocess.run(["git", *words], cwd=self.project, env=env, check=True)

    def _put_traps(self) -> None:
        """Put repositories into the project whose settings run something with every git command."""
        trap = self.project / "trap.sh"
        trap.write_text(f"#!/bin/sh\ntouch {self.project}/PWN\n")
        trap.chmod(0o755)
        for name, bare in (("bare", ["--bare"]), ("nested", [])):
            folder = self.project / name
            subprocess.run(["git", "init", "-q", *bare, str(folder)], env=self.env, check=True)
            for key in ("core.fsmonitor", "core.pager", "diff.external"):
                subprocess.run(
                    ["git", "config", "--local", key, str(trap)],
                    cwd=folder,
                    env=self.env,
                    check=True,
                )
        for key, value in (("core.bare", "false"), ("core.worktree", str(self.project))):
            words = ["git", "config", "-f", str(self.project / "bare" / "config"), key, value]
            subprocess.run(words, env=self.env, check=True)
        (self.project / ".gitignore").write_text("nested\n")

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": str(self.programs),
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "LC_ALL": "C",
        }

    def run(self, line: str, shell: str) -> None:
        """Run a line as an agent would, and wait for its end."""
        quiet = subprocess.DEVNULL
        words = [*_STARTED.get(shell, [shell]), "-c", line]
        subprocess.run(
            words,
            cwd=self.project,
            env=self.env,
            stdin=quiet,
            stdout=quiet,
            stderr=quiet,
            timeout=30,
        )

    def is_changed(self) -> bool:
        return self.state() != self.before

    def state(self) -> dict[str, tuple[int, int]]:
        """Return size and time of every file; git's index is renewed by looking."""
        found: dict[str, tuple[int, int]] = {}
        pending = [self.project, self.home]
        while pending:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(Path(entry.path))
                        found[entry.path] = (0, 0)
                    elif entry.name != "index":
                        facts = entry.stat(follow_symlinks=False)
                        found[entry.path] = (facts.st_size, facts.st_mtime_ns)
        return found


def allowed_mutations(playground: Playground, seed: int) -> Iterator[tuple[str, int]]:
    """Yield lines that the rules allow, each once, and how many were made until then."""
    parser, rules = bash_parser(), sample_rules()
    seen: set[str] = set()
    for made, line in enumerate(Mutator(seed), 1):
        if line in seen:
            continue
        seen.add(line)
        if (
            judge_command(sample_request(line, str(playground.project)), rules, parser).answer
            == ALLOW
        ):
            yield line, made


def find_escapes(
    playground: Playground, seed: int, count: int, shells: tuple[str, ...] = SHELLS
) -> tuple[list[str], int]:
    """Run so many allowed lines; return those that changed something, and how many were made."""
    escapes: list[str] = []
    lines = islice(allowed_mutations(playground, seed), count)
    total = 0
    for line, made in lines:
        total = made
        for shell in shells:
            playground.run(line, shell)
            if playground.is_changed():
                escapes.append(f"{shell}: {line!r}")
                playground.before = playground.state()
    return escapes, total
