"""One repository, several people: each has a clone, a home with sessions of their own, and everybody
else's commits by pulling.

All that makes such links hard is in it: the same boilerplate in the same file by two people, work
of a session that was thrown away before a colleague wrote the like, topics that were never merged,
and colleagues' commits far larger than what a session wrote. The lines are real: Python's own
library. The same arguments give the same commits and the same transcripts.
"""

from __future__ import annotations

import argparse
import subprocess
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import msgspec

from sessions import Claude, Session

PEOPLE = ("ada", "bob", "cem")
_START = 1_767_600_000_000
_MINUTE = 60_000
_MODULES = 120  # of the library that lines are taken from
_FILES = 60
_BOILERPLATE = 5  # blocks that belong to each file: whoever works in it writes one of them


class PeopleTruth(msgspec.Struct):
    """One commit: whose it is, and which sessions' work is in it."""

    sha: str
    author: str
    kind: str
    sessions: list[str]


@dataclass
class Planned:
    mark: int
    author: str
    kind: str
    at: int
    message: str
    parent: int
    files: dict[str, list[str]]
    sessions: list[str]
    ref: str = "main"


@dataclass
class Team:
    """The hub's main branch, and what each person's sessions do beside it."""

    rng: Random
    folder: Path
    library: list[list[str]]
    clock: int = _START
    head: int = 0
    tree: dict[str, list[str]] = field(default_factory=dict)
    planned: list[Planned] = field(default_factory=list)
    open: dict[str, Session] = field(default_factory=dict)
    saved: dict[str, list[Session]] = field(default_factory=dict)
    blocks: dict[str, list[list[str]]] = field(default_factory=dict)

    def later(self, low: float, high: float) -> int:
        self.clock += round(self.rng.uniform(low, high) * _MINUTE)
        return self.clock

    def root(self, person: str) -> str:
        return str(self.folder / person / "shop")

    # -- lines ------------------------------------------------------------------------------------

    def some_lines(self, count: int) -> list[str]:
        module = self.rng.choice(self.library)
        at = self.rng.randrange(max(1, len(module) - count))
        return module[at : at + count]

    def change(self, path: str) -> tuple[int, list[str], list[str]]:
        """Where, what goes, what comes: some lines of its own, often with the file's boilerplate."""
        before = self.tree[path]
        at = self.rng.randrange(len(before) + 1)
        old = before[at : at + self.rng.choice((0, 0, 1, 3, 8))]
        new = self.some_lines(self.rng.choice((2, 4, 8, 15, 30, 60)))
        if self.rng.random() < 0.45:
            new = [*self.rng.choice(self.blocks[path]), *new]
        return at, old, new

    def apply(self, path: str, at: int, old: list[str], new: list[str]) -> None:
        before = self.tree[path]
        self.tree[path] = before[:at] + new + before[at + len(old) :]

    def paths(self) -> list[str]:
        return self.rng.sample(sorted(self.tree), self.rng.choice((1, 1, 2, 3, 5)))

    # -- sessions and commits ---------------------------------------------------------------------

    def session(self, person: str) -> Session:
        found = self.open.get(person)
        if found is None or self.rng.random() < 0.25:
            found = Claude(self.rng, self.root(person))
            self.open[person] = found
            self.saved.setdefault(person, []).append(found)
        found.prompt(self.later(0.2, 2), f"Please see to number {self.rng.randrange(10**6)}.")
        return found

    def commit(self, person: str, kind: str, paths: list[str], sessions: list[str]) -> Planned:
        made = Planned(
            mark=len(self.planned) + 1,
            author=person,
            kind=kind,
            at=self.later(0.3, 3),
            message=f"{self.rng.choice(('Add', 'Fix', 'Change'))} {self.rng.getrandbits(40):x}",
            parent=self.head,
            files={path: list(self.tree[path]) for path in paths},
            sessions=sessions,
        )
        self.planned.append(made)
        self.head = made.mark
        return made

    def work(self, person: str, paths: list[str]) -> Session:
        session = self.session(person)
        for path in paths:
            at, old, new = self.change(path)
            self.apply(path, at, old, new)
            session.edit(self.later(0.2, 2), path, at, old, new)
        return session


# -- what happens ---------------------------------------------------------------------------------


def agent_commits(team: Team, person: str) -> None:
    paths = team.paths()
    session = team.work(person, paths)
    made = team.commit(person, "agent commits", paths, [session.id])
    session.run(
        team.clock + 400,
        f'git commit -am "{made.message}"',
        f"[main {{mark{made.mark}}}] {made.message}\n {len(paths)} files changed",
    )


def person_commits(team: Team, person: str) -> None:
    paths = team.paths()
    session = team.work(person, paths)
    team.later(1, 90)
    if team.rng.random() < 0.4:
        team.apply(paths[0], *team.change(paths[0]))  # by hand
    team.commit(person, "person commits agent's work", paths, [session.id])


def by_hand(team: Team, person: str) -> None:
    paths = team.paths()
    for path in paths:
        team.apply(path, *team.change(path))
    team.commit(person, "by hand", paths, [])


def thrown_away(team: Team, person: str) -> None:
    """A session tries something that nobody keeps; colleagues go on in the same files."""
    paths = team.paths()
    before = {path: team.tree[path] for path in paths}
    team.work(person, paths)
    team.tree.update(before)
    colleague = team.rng.choice([name for name in PEOPLE if name != person])
    team.later(5, 600)
    for path in paths:
        team.apply(path, *team.change(path))
    team.commit(colleague, "after a colleague's attempt", paths, [])


def never_merged(team: Team, person: str) -> None:
    """A topic that stays in the person's clone, while a colleague does the like on main."""
    paths = team.paths()
    before = {path: team.tree[path] for path in paths}
    session = team.work(person, paths)
    head = team.head
    made = team.commit(person, "topic", paths, [session.id])
    made.ref = f"topic-{made.mark}"
    team.head = head
    team.tree.update(before)
    by_hand(team, team.rng.choice([name for name in PEOPLE if name != person]))


_HAPPENS: dict[Callable[[Team, str], None], int] = {
    agent_commits: 30,
    person_commits: 25,
    by_hand: 25,
    thrown_away: 12,
    never_merged: 4,
}


def imagine(folder: Path, commits: int, seed: int) -> Team:
    rng = Random(f"{seed}:people")
    modules = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:_MODULES]
    library = [module.read_text(encoding="utf-8").splitlines() for module in modules]
    team = Team(rng, folder, [lines for lines in library if len(lines) > 200])
    for number in range(_FILES):
        path = f"src/{rng.choice(('core', 'api', 'web'))}/part_{number}.py"
        team.tree[path] = team.some_lines(rng.choice((60, 150, 400)))
        team.blocks[path] = [team.some_lines(rng.choice((3, 4, 6))) for _ in range(_BOILERPLATE)]
    team.commit("ada", "by hand", list(team.tree), [])
    while len(team.planned) < commits:
        rng.choices(list(_HAPPENS), list(_HAPPENS.values()))[0](team, rng.choice(PEOPLE))
        if rng.random() < 0.1:
            team.later(300, 900)
    return team


# -- written down ---------------------------------------------------------------------------------


def _git(folder: Path, *arguments: str, given: bytes | None = None) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, input=given, capture_output=True, check=True).stdout.decode()


def _stream(team: Team) -> bytes:
    out: list[bytes] = []
    for commit in team.planned:
        who = f"{commit.author.title()} <{commit.author}@example.org> {commit.at // 1000} +0000\n"
        out.append(f"commit refs/marks/{commit.mark}\nmark :{commit.mark}\n".encode())
        out.append(f"author {who}committer {who}".encode())
        message = commit.message.encode()
        out.append(b"data %d\n%s\n" % (len(message), message))
        if commit.parent:
            out.append(f"from :{commit.parent}\n".encode())
        for path, lines in commit.files.items():
            data = "".join(f"{line}\n" for line in lines).encode()
            out.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data))
    return b"".join(out)


def write(team: Team, *, named: bool) -> None:
    """The hub, each person's clone and home, and truth.json. With `named`, git knows who each
    person is, as on their own machine; else the clone is a stranger's."""
    hub = team.folder / "hub.git"
    hub.mkdir(parents=True)
    _git(hub, "init", "-q", "--bare", "-b", "main")
    _git(hub, "fast-import", "--quiet", "--export-marks=marks", given=_stream(team))
    shas = dict(line[1:].split() for line in (hub / "marks").read_text().splitlines())
    topics = [commit for commit in team.planned if commit.ref != "main"]
    updates = [f"update refs/heads/main {shas[str(team.head)]}\n"]
    updates += [f"update refs/heads/{one.ref} {shas[str(one.mark)]}\n" for one in topics]
    updates += [f"delete refs/marks/{commit.mark}\n" for commit in team.planned]
    _git(hub, "update-ref", "--stdin", given="".join(updates).encode())
    marks = {f"{{mark{mark}}}": sha[:7] for mark, sha in shas.items()}
    for person in PEOPLE:
        root = Path(team.root(person))
        root.parent.mkdir(parents=True, exist_ok=True)
        _git(root.parent, "clone", "-q", str(hub), "shop")
        _git(root, "remote", "set-url", "origin", "https://example.org/made-up/shop.git")
        for one in topics:
            if one.author != person:
                _git(root, "update-ref", "-d", f"refs/remotes/origin/{one.ref}")
        if named:
            _git(root, "config", "user.name", person.title())
            _git(root, "config", "user.email", f"{person}@example.org")
        for session in team.saved.get(person, []):
            text = msgspec.json.encode(session.records).decode()
            own = {mark: sha for mark, sha in marks.items() if mark in text}
            session.save(team.folder / person / "home", own)
    truth = [PeopleTruth(shas[str(c.mark)], c.author, c.kind, c.sessions) for c in team.planned]
    (team.folder / "truth.json").write_bytes(msgspec.json.encode(truth))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--commits", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--named", action="store_true")
    chosen = parser.parse_args()
    team = imagine(chosen.folder.resolve(), chosen.commits, chosen.seed)
    write(team, named=chosen.named)


if __name__ == "__main__":
    main()
