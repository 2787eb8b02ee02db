"""A made-up repository and the sessions behind it, with the truth about which commit came from
which session.

The same arguments give the same commits and the same transcripts. All that makes linking hard is
in it: people who commit an agent's work, sessions side by side, hand edits, amends, rebases,
squashes, cherry-picks, reverts, bots, forks, transcripts that are gone, files written as a
whole, and sessions of another project that wrote the same lines.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import msgspec

from projects import Project, code_lines, project
from sessions import Claude, Codex, Gemini, Session

_START = 1_767_600_000_000  # a Monday
_MINUTE = 60_000
_FILES = ("src", "src/core", "src/api", "src/store", "tests", "web/components")
_PEOPLE = ("Ada <ada@example.org>", "Bob <bob@example.org>")
_MANIFEST = "package.json"  # a bot's own file
_BOT = "dependabot[bot] <49699333+dependabot[bot]@users.noreply.github.com>"


class Truth(msgspec.Struct):
    """One commit: how it came about, whose work is in it, and whether all of those sessions are
    kept."""

    sha: str
    kind: str
    sessions: list[str]
    complete: bool


class History(msgspec.Struct):
    commits: list[Truth]
    foreign: list[str]  # sessions of another project
    branches: list[str]


@dataclass
class Work:
    """A session at work; a session whose transcript is lost did its work all the same."""

    session: Session
    kept: bool
    left: int  # pieces of work until it ends


@dataclass
class Planned:
    """A commit to be written: files to their new lines, None for one that goes."""

    mark: int
    kind: str
    files: dict[str, list[str] | None]
    parents: list[int]
    author: str
    authored: int
    committed: int
    message: str
    workers: list[Work]


@dataclass(frozen=True)
class Size:
    """How much changes at once, each from the least to the most, and how often what happens."""

    files: tuple[int, int] = (1, 4)  # of an agent's piece of work
    by_hand: tuple[int, int] = (1, 1)  # files of a person's
    lines: tuple[int, int] = (1, 14)  # that an edit adds
    replaced: tuple[int, int] = (0, 6)  # lines that it takes away
    created: tuple[int, int] = (8, 60)  # of a new file
    more: int = 0  # files at the beginning, beside those of the project
    alone: int = 14  # how often a person works alone, of about a hundred times


# As in repositories of teams: most commits are people's, and hold hundreds of lines.
LARGE = Size(
    files=(5, 20),
    by_hand=(10, 30),
    lines=(3, 40),
    replaced=(0, 40),
    created=(40, 160),
    more=800,
    alone=240,
)


@dataclass
class World:
    """The work tree, what is committed of it, and who changed what since."""

    rng: Random
    root: str
    commits: int
    base: Project
    size: Size
    clock: int = _START
    tree: dict[str, list[str]] = field(default_factory=dict)
    head: int = 0
    planned: list[Planned] = field(default_factory=list)
    refs: dict[str, int] = field(default_factory=dict)
    works: list[Work] = field(default_factory=list)
    active: list[Work] = field(default_factory=list)
    pending: dict[str, list[Work]] = field(default_factory=dict)
    created: list[Planned] = field(default_factory=list)  # commits of new files only: easy to pick

    # -- time and sessions -----------------------------------------------------------------------

    def later(self, low: float, high: float) -> int:
        self.clock += round(self.rng.uniform(low, high) * _MINUTE)
        return self.clock

    def work(self, not_this: Work | None = None) -> Work:
        """A session that is open, or a new one."""
        self.active = [work for work in self.active if work.left > 0]
        open_ones = [work for work in self.active if work is not not_this]
        if len(open_ones) < 3 and (not open_ones or self.rng.random() < 0.4):
            kind = self.rng.choices((Claude, Codex, Gemini), (75, 18, 7))[0]
            work = Work(kind(self.rng, self.root), self.rng.random() > 0.08, self.rng.randint(2, 9))
            work.session.prompt(self.later(0.1, 1), f"Please {self.words(6)}.")
            self.works.append(work)
            self.active.append(work)
            return work
        work = self.rng.choice(open_ones)
        work.left -= 1
        if self.rng.random() < 0.6:
            work.session.prompt(self.later(0.1, 1), f"Now {self.words(5)}.")
        return work

    def words(self, count: int) -> str:
        return " ".join(
            self.rng.choice(self.base.variables).replace("_", " ") for _ in range(count)
        )

    # -- changing files --------------------------------------------------------------------------

    def lines(self, path: str, count: int) -> list[str]:
        return code_lines(self.rng, self.base, path.rsplit(".", 1)[-1], count)

    def clean(self) -> list[str]:
        return [path for path in self.tree if not self.pending.get(path) and path != _MANIFEST]

    def edit(self, work: Work | None, path: str) -> None:
        """Replaces a few lines; without a session it is done by hand."""
        before = self.tree[path]
        at = self.rng.randrange(len(before) + 1)
        old = before[at : at + self.rng.randint(*self.size.replaced)]
        new = self.lines(path, self.rng.randint(*self.size.lines))
        self.tree[path] = before[:at] + new + before[at + len(old) :]
        if work is not None:
            now = self.later(0.1, 2)
            if isinstance(work.session, Claude) and self.rng.random() < 0.05:
                work.session.create(now, path, self.tree[path])  # the whole file again
            else:
                work.session.edit(now, path, at, old, new)
            self._changed(work, path)

    def create(self, work: Work | None) -> str:
        name = f"{self.rng.choice(self.base.functions)}_{self.rng.randint(1, 9999)}"
        path = f"{self.rng.choice(_FILES)}/{name}.{self.rng.choice(('py', 'ts', 'go'))}"
        self.tree[path] = self.lines(path, self.rng.randint(*self.size.created))
        if work is not None:
            work.session.create(self.later(0.2, 3), path, self.tree[path])
            self._changed(work, path)
        return path

    def _changed(self, work: Work, path: str) -> None:
        whose = self.pending.setdefault(path, [])
        if work not in whose:
            whose.append(work)

    def do(self, work: Work) -> list[str]:
        """One piece of work: some edits, some new files."""
        paths = []
        for _ in range(self.rng.randint(*self.size.files)):
            if self.rng.random() < 0.25:
                paths.append(self.create(work))
            else:
                path = self.rng.choice(
                    [
                        *self.clean(),
                        *(p for p, who in self.pending.items() if who == [work] and p in self.tree),
                    ]
                )
                self.edit(work, path)
                paths.append(path)
        return list(dict.fromkeys(paths))

    # -- committing ------------------------------------------------------------------------------

    def commit(  # noqa: PLR0913 - one commit, and all that it is made of
        self,
        kind: str,
        paths: Iterable[str],
        *,
        by: Work | None = None,
        message: str | None = None,
        parents: list[int] | None = None,
        author: str | None = None,
        ref: str | None = "main",
    ) -> Planned:
        """Commits these files as they are; it holds the work of all who changed them since."""
        paths = list(paths)
        workers = list({id(w): w for path in paths for w in self.pending.pop(path, [])}.values())
        if by is not None and by not in workers:
            workers.append(by)
        made = Planned(
            mark=len(self.planned) + 1,
            kind=kind,
            files={path: list(self.tree[path]) if path in self.tree else None for path in paths},
            parents=([self.head] if self.head else []) if parents is None else parents,
            author=author or self.rng.choice(_PEOPLE),
            authored=self.clock,
            committed=self.clock,
            message=message
            or f"{self.rng.choice(('Add', 'Fix', 'Change', 'Move'))} {self.words(4)}",
            workers=workers,
        )
        self.planned.append(made)
        if ref is not None:
            self.refs[ref] = made.mark
        if ref == "main":
            self.head = made.mark
        return made

    def by_agent(
        self, kind: str, work: Work, paths: list[str], *, quiet: bool = False, **more: object
    ) -> Planned:
        self.later(0.1, 1)
        made = self.commit(kind, paths, by=work, **more)  # type: ignore[arg-type]
        subject = made.message.split("\n")[0]
        form = self.rng.random()
        if quiet and form < 0.5:
            command = f'git add -A && git commit -q -m "{subject}"'
        elif quiet:
            command = "git commit -q -F /tmp/message.txt"
        elif form < 0.5:
            command = (
                f"git add -A && git commit -m \"$(cat <<'EOF'\n{subject}\n\nCo-Authored-By: An "
                'Agent\nEOF\n)"'
            )
        else:
            command = f'git commit -am "{subject}"'
        output = "" if quiet else f"[main {_mark(made)}] {subject}\n {len(paths)} files changed"
        work.session.run(self.clock + 400, command, output, seconds=self.rng.uniform(0.6, 4))
        return made

    def again(
        self, original: Planned, kind: str, parents: list[int], *, message: str | None = None
    ) -> Planned:
        """The same change once more, elsewhere: author and author date stay."""
        made = Planned(
            mark=len(self.planned) + 1,
            kind=kind,
            files=dict(original.files),
            parents=parents,
            author=original.author,
            authored=original.authored,
            committed=self.clock,
            message=message or original.message,
            workers=original.workers,
        )
        self.planned.append(made)
        return made


def _mark(commit: Planned) -> str:
    return f"{{mark{commit.mark}}}"


# -- what happens --------------------------------------------------------------------------------


def agent_commits(world: World) -> None:
    work = world.work()
    known = set(world.tree)
    paths = world.do(work)
    made = world.by_agent("agent commits", work, paths)
    if known.isdisjoint(paths):
        world.created.append(made)


def agent_commits_quietly(world: World) -> None:
    work = world.work()
    world.by_agent("agent commits quietly", work, world.do(work), quiet=True)


def person_commits(world: World) -> None:
    paths = world.do(world.work())
    world.later(0.5, 120)
    world.commit("person commits agent's work", paths)


def person_edits_and_commits(world: World) -> None:
    paths = world.do(world.work())
    world.later(1, 60)
    world.edit(None, world.rng.choice(paths))
    world.commit("agent's work, edited by hand", paths)


def two_sessions(world: World) -> None:
    one = world.work()
    first = world.do(one)
    second = world.do(world.work(not_this=one))
    world.later(1, 60)
    world.commit("two sessions in one commit", dict.fromkeys([*first, *second]))


def split(world: World) -> None:
    work = world.work()
    paths = list(dict.fromkeys([*world.do(work), *world.do(work)]))
    world.later(1, 30)
    half = max(1, len(paths) // 2)
    world.commit("split in two", paths[:half])
    if paths[half:]:
        world.later(0.5, 5)
        world.commit("split in two", paths[half:])


def person_alone(world: World) -> None:
    """While sessions are open, in files they have touched before; sometimes another project has
    the same lines."""
    world.later(1, 90)
    clean = world.clean()
    count = min(world.rng.randint(*world.size.by_hand), len(clean))
    paths = world.rng.sample(clean, count) if count > 1 else [world.rng.choice(clean)]
    path = paths[0]
    for one in paths:
        world.edit(None, one)
    if world.rng.random() < 0.3:
        other = Claude(world.rng, "/code/other")
        other.prompt(world.clock - 60_000, "The same here.")
        other.create(world.clock - 30_000, path, world.tree[path])
        world.works.append(Work(other, True, 0))
    world.commit("person alone", paths)


def lines_change_places(world: World) -> None:
    """By hand, in a file that agents wrote: nothing in it is new."""
    world.later(1, 90)
    path = world.rng.choice(world.clean())
    lines = world.tree[path]
    if len(lines) > 6:
        at = world.rng.randrange(len(lines) - 4)
        moved, rest = lines[at : at + 4], lines[:at] + lines[at + 4 :]
        target = world.rng.randrange(len(rest))
        world.tree[path] = rest[:target] + moved + rest[target:]
    world.edit(None, path)
    world.commit("lines moved by hand", [path])


def bot(world: World) -> None:
    world.later(1, 60)
    world.tree[_MANIFEST] = [f'  "version": "1.0.{len(world.planned)}",']
    world.commit("bot", [_MANIFEST], author=_BOT, message="Bump left-pad")


def amended(world: World) -> None:
    """An agent's commit that a person amends at once: the hash it printed is gone."""
    work = world.work()
    paths = world.do(work)
    first = world.by_agent("(amended away)", work, paths, ref=None)
    world.later(1, 30)
    made = world.again(first, "amended", list(first.parents))
    if world.rng.random() < 0.6:
        path = world.rng.choice(paths)
        world.edit(None, path)
        made.files[path] = list(world.tree[path])
    world.head = world.refs["main"] = made.mark


def on_a_branch(world: World) -> None:
    """Two or three commits, then rebased, squashed or merged; a person goes on in the meantime."""
    work, base = world.work(), world.head
    parents, done = [base], list[Planned]()
    for _ in range(world.rng.randint(2, 3)):
        made = world.by_agent("(on a branch)", work, world.do(work), parents=parents, ref=None)
        parents = [made.mark]
        done.append(made)
    touched = {path for made in done for path in made.files}
    if other := [path for path in world.clean() if path not in touched]:
        world.later(1, 30)
        path = world.rng.choice(other)
        world.edit(None, path)
        world.commit("person alone", [path], parents=[base])
    world.later(1, 30)
    land = world.rng.choice((_rebased, _squashed, _merged))
    land(world, done)


def _rebased(world: World, done: list[Planned]) -> None:
    for made in done:
        world.head = world.again(made, "rebased", [world.head]).mark
    world.refs["main"] = world.head


def _squashed(world: World, done: list[Planned]) -> None:
    body = "\n\n".join(f"* {made.message}" for made in done)
    files = {path: lines for made in done for path, lines in made.files.items()}
    first = world.again(
        done[0],
        "squashed",
        [world.head],
        message=f"{world.words(4)} (#{len(world.planned)})\n\n{body}",
    )
    first.files, first.authored = files, world.clock
    first.workers = list({id(w): w for made in done for w in made.workers}.values())
    world.head = world.refs["main"] = first.mark


def _merged(world: World, done: list[Planned]) -> None:
    for made in done:
        made.kind = "agent commits"
    files = {path: lines for made in done for path, lines in made.files.items()}
    merge = world.commit("merge", [], parents=[world.head, done[-1].mark], message="Merge a branch")
    merge.files = files


def picked(world: World) -> None:
    """A commit of new files, on the release branch too."""
    if world.created:
        world.later(1, 30)
        original = world.rng.choice(world.created[-10:])
        world.refs["release"] = world.again(original, "picked", [world.refs["release"]]).mark


def reverted(world: World) -> None:
    last = world.planned[-1]
    if (
        last.mark == world.head
        and last.kind == "person commits agent's work"
        and len(last.parents) == 1
    ):
        before = _tree_at(world, last.parents[0])
        world.later(1, 30)
        for path in last.files:
            if path in before:
                world.tree[path] = before[path]
            else:
                del world.tree[path]
        world.commit("reverted by a person", last.files, message=f'Revert "{last.message}"')


def _tree_at(world: World, mark: int) -> dict[str, list[str]]:
    chain: list[Planned] = []
    while mark:
        commit = world.planned[mark - 1]
        chain.append(commit)
        mark = commit.parents[0] if commit.parents else 0
    tree: dict[str, list[str]] = {}
    for commit in reversed(chain):
        for path, lines in commit.files.items():
            if lines is None:
                tree.pop(path, None)
            else:
                tree[path] = lines
    return tree


def removed_or_renamed(world: World) -> None:
    work = world.work()
    path = world.rng.choice(world.clean())
    if world.rng.random() < 0.5:
        work.session.run(world.later(0.1, 1), f"rm {path}", "")
        del world.tree[path]
        touched = [path]
    else:
        new = path.replace(".", f"_{world.rng.randint(1, 999)}.")
        work.session.run(world.later(0.1, 1), f"git mv {path} {new}", "")
        world.tree[new] = world.tree.pop(path)
        touched = [path, new]
    for name in touched:
        world._changed(work, name)
    world.later(1, 30)
    world.commit("removed or renamed by an agent", touched)


_HAPPENS: dict[Callable[[World], None], int] = {
    agent_commits: 28,
    agent_commits_quietly: 8,
    person_commits: 18,
    person_edits_and_commits: 8,
    two_sessions: 5,
    split: 4,
    person_alone: Size.alone,
    lines_change_places: 4,
    bot: 4,
    amended: 4,
    on_a_branch: 6,
    picked: 2,
    reverted: 3,
    removed_or_renamed: 3,
}


def imagine(root: str, commits: int, seed: int, size: Size) -> World:
    rng = Random(f"{seed}:history")
    world = World(rng, root, commits, project(seed, 0), size)
    happens = _HAPPENS | {person_alone: size.alone}
    names = [path for path in world.base.files if path.endswith((".py", ".ts", ".go"))]
    world.tree = {path: world.base.files[path][:400] for path in names} | {
        _MANIFEST: ['  "version": "1.0.0",']
    }
    for _ in range(size.more):
        world.create(None)
    world.refs["release"] = world.commit("person alone", list(world.tree), message="Begin").mark
    while len(world.planned) < commits:
        rng.choices(list(happens), list(happens.values()))[0](world)
        if rng.random() < 0.12:
            world.later(300, 900)  # the night
    for work in world.works:
        if (
            isinstance(work.session, Claude)
            and len(work.session.records) > 4
            and rng.random() < 0.06
        ):
            work.session.forks.append(
                f"{rng.getrandbits(32):08x}-0000-4000-8000-{rng.getrandbits(48):012x}"
            )
    return world


# -- written down --------------------------------------------------------------------------------


def _stream(world: World) -> bytes:
    """For git fast-import: every commit on a ref of its own name, so that all of them are
    written."""
    out: list[bytes] = []
    for commit in world.planned:
        message = commit.message.encode()
        out.append(f"commit refs/marks/{commit.mark}\nmark :{commit.mark}\n".encode())
        out.append(f"author {commit.author} {commit.authored // 1000} +0000\n".encode())
        out.append(f"committer {commit.author} {commit.committed // 1000} +0000\n".encode())
        out.append(b"data %d\n%s\n" % (len(message), message))
        for word, parent in zip(("from", "merge"), commit.parents, strict=False):
            out.append(f"{word} :{parent}\n".encode())
        for path, lines in commit.files.items():
            if lines is None:
                out.append(f"D {path}\n".encode())
            else:
                data = "".join(f"{line}\n" for line in lines).encode()
                out.append(b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data))
    return b"".join(out)


def write(world: World, folder: Path) -> None:
    """The repository below `folder`, the home with the transcripts, and truth.json."""
    repository = Path(world.root)
    repository.mkdir(parents=True)

    def git(*arguments: str, given: bytes | None = None) -> str:
        command = ["git", "-C", str(repository), *arguments]
        return subprocess.run(command, input=given, capture_output=True, check=True).stdout.decode()

    git("init", "-q", "-b", "main")
    git("remote", "add", "origin", "https://example.org/made-up/shop.git")
    git("fast-import", "--quiet", "--export-marks=.git/marks", given=_stream(world))
    shas = dict(line[1:].split() for line in (repository / ".git/marks").read_text().splitlines())
    updates = [f"update refs/heads/{name} {shas[str(mark)]}\n" for name, mark in world.refs.items()]
    updates += [f"delete refs/marks/{commit.mark}\n" for commit in world.planned]
    git("update-ref", "--stdin", given="".join(updates).encode())
    abbreviated = {f"{{mark{mark}}}": sha[:7] for mark, sha in shas.items()}
    for work in world.works:
        if work.kept:
            own = _marks_in(work.session, abbreviated)
            work.session.save(folder / "home", own)
    truth = [
        Truth(
            sha=shas[str(commit.mark)],
            kind=commit.kind,
            sessions=[work.session.id for work in commit.workers if work.kept],
            complete=all(work.kept for work in commit.workers),
        )
        for commit in world.planned
        if not commit.kind.startswith("(")
    ]
    foreign = [work.session.id for work in world.works if work.session.cwd != world.root]
    (folder / "truth.json").write_bytes(
        msgspec.json.encode(History(truth, foreign, list(world.refs)))
    )


def _marks_in(session: Session, abbreviated: dict[str, str]) -> dict[str, str]:
    text = msgspec.json.encode(session.records).decode()
    return {mark: sha for mark, sha in abbreviated.items() if mark in text}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--commits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--large", action="store_true", help="commits of hundreds of lines")
    chosen = parser.parse_args()
    root = str((chosen.folder / "shop").resolve())
    size = LARGE if chosen.large else Size()
    write(imagine(root, chosen.commits, chosen.seed, size), chosen.folder)


if __name__ == "__main__":
    main()
