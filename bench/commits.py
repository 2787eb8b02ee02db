"""What `git commit` costs with our hooks, how soon its story can be read, and what it costs to
read it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import median, quantiles

import msgspec
from whyfor.locks import ingest_lock
from whyfor.store.sqlite.connection import connect, fetch

from measure import CommandFailed, Cost, Env, clean_env, middle, run, typical
from report import Cell, Check, Report, Table, ratio
from sessions import Claude

_FILES = 200  # in the work tree
# ms between two commits of the made-up history: the last month holds 720, whatever its length
_HOUR = 3_600_000
_RECENT = 1000  # commits that change code
_FILLER = 25  # commands of a session besides its edit, of about 3 KB each
_RUNS = 5  # of each reading command
_PATIENCE = 30.0  # seconds for a story
_PAUSE = 0.02  # seconds: what a hook still does in the background is not the next commit's
_READERS = ("log", "show HEAD", "status")
PLAIN, PERSON, AGENT = "plain", "person", "agent"  # who commits

Times = dict[str, list[float]]


@dataclass(frozen=True)
class Scene:
    """A repository after `whyfor init`, the same one without, and a home whose sessions worked
    in it."""

    commits: int
    sessions: int
    repository: Path
    twin: Path
    store: Path
    env: Env
    program: str

    @property
    def name(self) -> str:
        return f"{self.commits:,} commits, {self.sessions} sessions"

    def whyfor(self, *arguments: str) -> Cost:
        return run([self.program, *arguments], self.env, self.repository)


@dataclass(frozen=True)
class Measured:
    scene: Scene
    init: Cost
    coalesced: Times  # wall seconds of a commit while an ingest is on its way already
    alone: Times  # and of one that starts an ingest
    delays: list[float]  # from the commit's return to its story
    ingest: Cost  # the one that a commit starts
    reading: dict[str, Cost]


def commits(
    report: Report,
    scratch: Path,
    program: Path,
    sizes: Sequence[tuple[int, int]],
    rounds: int,
    stories: int,
) -> None:
    """`sizes`: commits and sessions of each scene."""
    found = []
    histories: dict[int, Path] = {}
    for number, sessions in sizes:
        if number not in histories:
            histories[number] = _history(scratch / f"history-{number}", number)
        scene, init = _scene(
            scratch / f"commits-{number}-{sessions}", histories[number], number, sessions, program
        )
        found.append(_measured(scene, init, rounds, stories))
    _report_commits(report, found, rounds)
    _report_delays(report, found)
    _report_reading(report, found)


# -- a repository and what agents wrote while it grew --------------------------------------------


def _git_env(home: Path) -> Env:
    config = home / "gitconfig"
    config.write_text(
        "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n"
    )
    return {"GIT_CONFIG_GLOBAL": str(config), "GIT_CONFIG_NOSYSTEM": "1"}


def _path(number: int) -> str:
    return f"src/module_{number % _FILES}.py"


def _content(number: int) -> list[str]:
    """What a commit of the history leaves in its file."""
    return [
        f"    step_{number}_{line} = combine(input_{line}, weight_{number % 97})"
        for line in range(20)
    ]


def _history(folder: Path, number: int) -> Path:
    """A repository with that many commits, packed; one an hour, the last an hour ago."""
    repository = folder / "repository"
    folder.mkdir()
    env = clean_env(folder, folder) | _git_env(folder)
    subprocess.run(["git", "init", "-q", repository], env=env, check=True)
    marks = f"--export-marks={folder / 'marks'}"
    with subprocess.Popen(
        ["git", "-C", repository, "fast-import", "--quiet", marks], env=env, stdin=subprocess.PIPE
    ) as git:
        assert git.stdin is not None
        for part in _stream(number):
            git.stdin.write(part)
    if git.returncode:
        raise CommandFailed(f"git fast-import exited {git.returncode}")
    for words in (
        ["reset", "-q", "--hard", "main"],
        ["remote", "add", "origin", "https://example.com/ada/shop.git"],
    ):
        subprocess.run(["git", "-C", repository, *words], env=env, check=True)
    return repository


def _stream(number: int) -> Iterator[bytes]:
    """Commits from before any session only add to a list of changes: that is quickly made, and
    nobody looks at them."""
    now = time.time_ns() // 1_000_000
    for at in range(number):
        recent = at >= number - _RECENT
        path, text = (_path(at), "\n".join(_content(at))) if recent else ("CHANGES", f"step {at}")
        when = (now - (number - at) * _HOUR) // 1000
        head = (
            f"commit refs/heads/main\nmark :{at + 1}\ncommitter Ada <ada@example.com> {when} "
            "+0000\ndata 12\n"
        )
        yield f"{head}Step {at:07}\nM 100644 inline {path}\ndata {len(text)}\n{text}\n".encode()


def _marks(folder: Path) -> dict[int, str]:
    lines = (line.split() for line in (folder / "marks").read_text().splitlines())
    return {int(mark[1:]) - 1: sha for mark, sha in lines}


def _scene(
    folder: Path, history: Path, number: int, sessions: int, program: Path
) -> tuple[Scene, Cost]:
    home = folder / "home"
    repository, twin, store = folder / "repository", folder / "twin", folder / "store"
    for copy in (repository, twin):
        shutil.copytree(history, copy, symlinks=True)
    (home / ".claude").mkdir(parents=True)
    shas = _marks(history.parent)
    for index in range(sessions):
        _worked(Random(index), repository, number - 1 - index, shas).save(home, {})
    env = clean_env(home, folder) | _git_env(home) | {"WHYFOR_HOME": str(store)}
    for copy in (repository, twin):  # fresh copies have other inodes than the index says
        subprocess.run(
            ["git", "-C", copy, "status", "--short"], env=env, check=True, capture_output=True
        )
    scene = Scene(number, sessions, repository, twin, store, env, str(program))
    return scene, scene.whyfor("init")


def _worked(rng: Random, repository: Path, number: int, shas: dict[int, str]) -> Claude:
    """The session that wrote one commit of the history, and did some more."""
    session = Claude(rng, str(repository))
    end = time.time_ns() // 1_000_000 - (len(shas) - number) * _HOUR
    session.prompt(
        end - 1_800_000, f"Please write step {number}, and combine its inputs by weight."
    )
    for at in range(_FILLER):
        listing = "\n".join(
            f"{_path(rng.randrange(_FILES))}:{line}: combine(" for line in range(100)
        )
        session.run(end - 1_700_000 + at * 60_000, f"grep -rn combine src | head -{at}", listing)
    session.create(end - 60_000, _path(number), _content(number))
    session.run(
        end, f"git commit -qam 'Step {number}'", f"[main {shas[number][:7]}] Step {number:07}"
    )
    return session


# -- measuring -----------------------------------------------------------------------------------


def _measured(scene: Scene, init: Cost, rounds: int, stories: int) -> Measured:
    session = Claude(Random(scene.name), str(scene.repository))
    coalesced = _coalesced(scene, session, rounds)
    alone, delays = _awaited(scene, session, stories)
    ingest = middle([_ingest(scene, session) for _ in range(_RUNS)])
    last = msgspec.json.decode(scene.whyfor("log", "--limit", "1", "--json").output)
    if [c["checkpoint"] and c["checkpoint"]["evidence"] for c in last] != ["hook"]:
        raise CommandFailed(f"{scene.name}: the last commit has no story that its hook told of")
    reading = {name: typical(_RUNS, partial(scene.whyfor, *name.split())) for name in _READERS}
    return Measured(scene, init, coalesced, alone, delays, ingest, reading)


def _coalesced(scene: Scene, session: Claude, rounds: int) -> Times:
    """In turn, so that a busy moment of the machine strikes all alike."""
    times: Times = {PLAIN: [], PERSON: [], AGENT: []}
    with _claimed(scene.store):
        for number in range(rounds + 1):
            for kind, taken in times.items():
                wall = _commit(scene, kind, session)
                time.sleep(_PAUSE)
                if number:  # the first warms the caches
                    taken.append(wall)
    return times


def _awaited(scene: Scene, session: Claude, rounds: int) -> tuple[Times, list[float]]:
    """Commits that each start an ingest, on a machine that is quiet until then."""
    times: Times = {PLAIN: [], AGENT: []}
    delays = []
    for number in range(rounds + 1):
        walls = {kind: _commit(scene, kind, session) for kind in times}
        returned = time.perf_counter()
        _await_story(scene)
        if number:
            delays.append(time.perf_counter() - returned)
            for kind, wall in walls.items():
                times[kind].append(wall)
        _await_quiet(scene.store)
    return times, delays


def _commit(scene: Scene, kind: str, session: Claude) -> float:
    """Wall seconds of a commit of one file, staged before."""
    folder = scene.twin if kind == PLAIN else scene.repository
    env = scene.env
    at = time.time_ns()
    lines = [f"    result_{at}_{line} = combine({line})" for line in range(20)]
    path = f"work/part_{at // 1000 % 10}.py"
    if kind == AGENT:
        env = env | {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": session.id}
        session.prompt(at // 1_000_000 - 2000, "And the next part.")
        session.create(at // 1_000_000, path, lines)
        session.save(Path(env["HOME"]), {})
    (folder / "work").mkdir(exist_ok=True)
    (folder / path).write_text("".join(f"{line}\n" for line in lines))
    subprocess.run(["git", "add", path], cwd=folder, env=env, check=True)
    command = ["git", "commit", "-q", "-m", f"Part {at}"]
    started = time.perf_counter()
    subprocess.run(command, cwd=folder, env=env, stdin=subprocess.DEVNULL, check=True)
    return time.perf_counter() - started


def _ingest(scene: Scene, session: Claude) -> Cost:
    """What a commit would start in the background, here awaited."""
    with _claimed(scene.store):
        _commit(scene, AGENT, session)
        time.sleep(_PAUSE)
        return scene.whyfor("ingest", "--background")


@contextmanager
def _claimed(store: Path) -> Iterator[None]:
    """As if an ingest were on its way already: hooks start no other."""
    pending = store / "hook" / "pending"
    pending.write_text(str(os.getpid()))
    try:
        yield
    finally:
        pending.unlink(missing_ok=True)


def _await_story(scene: Scene) -> None:
    head = run(["git", "rev-parse", "HEAD"], scene.env, scene.repository).output.decode().strip()
    deadline = time.monotonic() + _PATIENCE
    with closing(connect(scene.store / "whyfor.db", readonly=True)) as db:
        while not fetch(
            db, "SELECT 1 FROM checkpoints WHERE sha=? AND evidence IS NOT NULL", (head,)
        ):
            if time.monotonic() > deadline:
                raise CommandFailed(f"{scene.name}: no story after {_PATIENCE:.0f} s")
            time.sleep(0.005)


def _await_quiet(store: Path) -> None:
    with ingest_lock(store, _PATIENCE):
        time.sleep(_PAUSE)


# -- reporting -----------------------------------------------------------------------------------


def _p95(taken: list[float]) -> float:
    return quantiles(taken, n=20, method="inclusive")[-1]


def _against_plain(times: Times, kind: str) -> float:
    return median(times[kind]) / median(times[PLAIN])


def _report_commits(report: Report, found: list[Measured], rounds: int) -> None:
    columns = "|plain p50 ms|p95|person p50|p95|× plain|agent p50|p95|× plain|× plain, first".split(
        "|"
    )
    rows: list[list[Cell]] = []
    for m in found:
        row: list[Cell] = [m.scene.name]
        for kind, taken in m.coalesced.items():
            row += [median(taken) * 1e3, _p95(taken) * 1e3]
            row += [] if kind == PLAIN else [_against_plain(m.coalesced, kind)]
        rows.append([*row, _against_plain(m.alone, AGENT)])
    note = (
        f"Wall time of a commit of one staged file, {rounds} of each in turn, while an ingest is "
        "on its way already.\n"
        "Plain: the same repository without hooks. Person: with hooks. Agent: inside Claude Code; "
        "inside Codex, which "
        "kills what its commands leave running, git also waits for our hook, one Python "
        "interpreter.\n"
        "First: an agent's commit that starts the ingest, against plain ones made in the same "
        "quiet moments."
    )
    fewest = found[0]
    most = max(
        (m for m in found if m.scene.commits == fewest.scene.commits),
        key=lambda m: m.scene.sessions,
    )
    grown = ratio(_against_plain(most.coalesced, PERSON), _against_plain(fewest.coalesced, PERSON))
    report.add(
        Table("git commit with and without hooks", columns, rows, note),
        Check(
            "git commit with hooks / plain",
            max(_against_plain(m.coalesced, PERSON) for m in found),
            1.5,
        ),
        Check(
            "git commit with hooks in an agent / plain",
            max(_against_plain(m.coalesced, AGENT) for m in found),
            1.5,
        ),
        Check(
            f"git commit with hooks at {most.scene.sessions} sessions / at {fewest.scene.sessions}",
            grown,
            1.2,
        ),
    )


def _report_delays(report: Report, found: list[Measured]) -> None:
    rows: list[list[Cell]] = [
        [
            m.scene.name,
            median(m.delays),
            _p95(m.delays),
            m.ingest.cpu * 1e3,
            m.ingest.wall * 1e3,
            m.init.wall,
        ]
        for m in found
    ]
    note = (
        f"Until the database has the commit's checkpoint, {len(found[0].delays)} commits. 0.3 s of "
        "it are waited on "
        "purpose, for the last lines of the agent's transcript.\n"
        f"Ingest: what a commit starts in the background, median of {_RUNS}. Init reads and links "
        "everything."
    )
    columns = ["", "p50 s", "p95 s", "ingest CPU ms", "ingest wall ms", "whyfor init s"]
    check = Check("from commit to story, p95", max(_p95(m.delays) for m in found), 2, unit=" s")
    report.add(Table("From commit to story", columns, rows, note), check)


def _report_reading(report: Report, found: list[Measured]) -> None:
    rows: list[list[Cell]] = []
    for m in found:
        rows.append([m.scene.name])
        for cost in m.reading.values():
            rows[-1] += [cost.cpu * 1e3, cost.wall * 1e3]
    columns = ["", *(column for name in _READERS for column in (f"{name} CPU ms", "wall ms"))]
    small, large = found[0], found[-1]
    growth = max(large.reading[name].cpu / small.reading[name].cpu for name in _READERS)
    note = f"Whole commands, median of {_RUNS}; log shows 50 commits."
    check = Check(
        f"CPU of log, show, status at {large.scene.name} / at {small.scene.name}, the worst",
        growth,
        1.5,
    )
    report.add(Table("Reading stories", columns, rows, note), check)
