"""Linking without hooks: how often it is right on made-up histories whose truth is known, and
what it costs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from histories import History
from ingesting import Place
from measure import Cost, clean_env, run
from people import PeopleTruth
from report import Cell, Check, Report, Table, ratio

_NOTE = """Pairs of commit and session on a made-up repository (histories.py); hooks were never installed.
Commits whose sessions are partly gone are left out of precision and recall; they have a row of their own."""
_GONE = "transcript gone"


class _Session(msgspec.Struct):
    session_id: str
    evidence: str
    role: str


class _Checkpoint(msgspec.Struct):
    sessions: list[_Session]


class _Commit(msgspec.Struct):
    commit: str
    checkpoint: _Checkpoint | None


@dataclass
class Score:
    """How many links are right, wrong and missing."""

    commits: int = 0
    right: int = 0
    wrong: int = 0
    missed: int = 0

    def count(self, want: set[str], got: set[str]) -> None:
        self.commits += 1
        self.right += len(want & got)
        self.wrong += len(got - want)
        self.missed += len(want - got)

    @property
    def precision(self) -> float | None:
        return ratio(self.right, self.right + self.wrong)

    @property
    def recall(self) -> float | None:
        return ratio(self.right, self.right + self.missed)

    def row(self, name: str) -> list[Cell]:
        return [
            name,
            self.commits,
            self.right,
            self.wrong,
            self.missed,
            self.precision,
            self.recall,
        ]


@dataclass
class Scores:
    total: Score = field(default_factory=Score)
    by_kind: dict[str, Score] = field(default_factory=dict)
    by_evidence: dict[str, Score] = field(default_factory=dict)
    foreign: int = 0


@dataclass(frozen=True)
class Linked:
    """One history: what linking all of it cost, and what was found."""

    name: str
    commits: int
    cost: Cost
    told: dict[str, list[_Session]]
    truth: History

    @property
    def per_thousand(self) -> float:
        return self.cost.cpu / self.commits * 1000


def link(place: Place, program: Path) -> Linked:
    """Reads the sessions, then judges every commit anew; only the latter is measured."""
    assert place.ours is not None
    place.ours.ingest()
    truth = msgspec.json.decode((place.scratch / "truth.json").read_bytes(), type=History)
    cost = _ask(place, program, "link")
    told: dict[str, list[_Session]] = {}
    for branch in truth.branches:
        told |= _told(place, program, branch)
    return Linked(place.name, len(truth.commits), cost, told, truth)


def _told(place: Place, program: Path, branch: str) -> dict[str, list[_Session]]:
    """By commit the sessions that it is linked to."""
    told: dict[str, list[_Session]] = {}
    said = _ask(place, program, "log", "--json", "--limit", "1000000", branch).output
    for commit in msgspec.json.decode(said, type=list[_Commit]):
        sessions = commit.checkpoint.sessions if commit.checkpoint else []
        told[commit.commit] = [session for session in sessions if session.role != "rewrote"]
    return told


def _ask(place: Place, program: Path, *arguments: str) -> Cost:
    assert place.ours is not None
    env = clean_env(place.home, place.scratch) | {"WHYFOR_HOME": str(place.ours.store)}
    inside = ["/bin/sh", "-c", 'cd "$0" && exec "$@"', str(place.scratch / "shop")]
    return run([*inside, str(program), *arguments], env)


def score(linked: Linked) -> Scores:
    scores = Scores()
    foreign = set(linked.truth.foreign)
    for truth in linked.truth.commits:
        evidence = {
            session.session_id: session.evidence for session in linked.told.get(truth.sha, [])
        }
        want, got = set(truth.sessions), set(evidence)
        scores.by_kind.setdefault(truth.kind if truth.complete else _GONE, Score()).count(want, got)
        scores.foreign += len(got & foreign)
        if not truth.complete:
            continue
        scores.total.count(want, got)
        for kind, sessions in _grouped(evidence).items():
            scores.by_evidence.setdefault(kind, Score()).count(want & sessions, sessions)
    return scores


def _grouped(evidence: dict[str, str]) -> dict[str, set[str]]:
    groups: dict[str, set[str]] = {}
    for session, kind in evidence.items():
        groups.setdefault(kind, set()).add(session)
    return groups


def linking(report: Report, places: Iterable[Place], program: Path) -> None:
    linked = [link(place, program) for place in places]
    scores = score(linked[-1])
    columns = ["", "commits", "right", "wrong", "missed", "precision", "recall"]
    rows = [
        scores.total.row("all"),
        *(s.row(f"by {kind}") for kind, s in sorted(scores.by_evidence.items())),
    ]
    rows += [found.row(kind) for kind, found in sorted(scores.by_kind.items())]
    bots = scores.by_kind.get("bot", Score())
    report.add(
        Table(f"Linking without hooks: {linked[-1].name}", columns, rows, _NOTE),
        Check("linking: precision", scores.total.precision, 0.96, "", floor=True),
        Check("linking: recall", scores.total.recall, 0.83, "", floor=True),
        Check("linking: commits of bots linked", bots.wrong, 0, ""),
        Check("linking: links to sessions of another project", scores.foreign, 0, ""),
    )
    report.add(
        _costs("Linking: cost", linked),
        Check("linking: CPU per 1,000 commits", linked[-1].per_thousand, 2.5, " s"),
        Check(
            f"linking: cost of a commit, {linked[-1].name} / {linked[0].name}",
            ratio(linked[-1].per_thousand, linked[0].per_thousand),
            1.5,
        ),
    )


def _costs(title: str, linked: Iterable[Linked]) -> Table:
    rows: list[list[Cell]] = [
        [one.name, one.commits, one.cost.cpu, one.cost.wall, one.per_thousand, one.cost.peak_mb]
        for one in linked
    ]
    return Table(title, ["", "commits", "CPU s", "wall s", "CPU s per 1,000", "peak MB"], rows)


def large_linking(report: Report, places: Iterable[Place], program: Path) -> None:
    """Commits of hundreds of lines in dozens of files, most of them people's."""
    linked = [link(place, program) for place in places]
    last = linked[-1]
    total = score(last).total
    report.add(
        _costs("Linking: cost of large commits", linked),
        Check("linking, large commits: precision", total.precision, 0.96, "", floor=True),
        Check("linking, large commits: recall", total.recall, 0.83, "", floor=True),
        Check("linking, large commits: CPU per 1,000 commits", last.per_thousand, 2.5, " s"),
        Check(
            f"linking, large commits: cost of a commit, {last.name} / {linked[0].name}",
            ratio(last.per_thousand, linked[0].per_thousand),
            1.5,
        ),
    )


def own_linking(report: Report, places: Iterable[Place], program: Path) -> None:
    """This repository's own history, with sessions behind a share of its commits."""
    linked = [link(place, program) for place in places]
    checks = []
    for one in linked:
        total = score(one).total
        checks += [
            Check(f"linking, {one.name}: precision", total.precision, 0.96, "", floor=True),
            Check(f"linking, {one.name}: recall", total.recall, 0.83, "", floor=True),
            Check(f"linking, {one.name}: CPU per 1,000 commits", one.per_thousand, 2.5, " s"),
        ]
    report.add(_costs("Linking: cost on this repository's own history", linked), *checks)


def people_linking(report: Report, places: dict[str, Place], program: Path) -> None:
    """Several people's clones of one repository: everybody has everybody's commits, and only
    sessions of their own."""
    table: list[list[Cell]] = []
    total, own = Score(), Score()
    for person, place in places.items():
        found, theirs = people_score(place, program, person)
        table.append(found.row(person))
        for one, of in ((total, found), (own, theirs)):
            one.right += of.right
            one.wrong += of.wrong
            one.missed += of.missed
    columns = ["", "commits", "right", "wrong", "missed", "precision", "recall"]
    note = "Pairs of commit and session (people.py); a colleague's commit is right without a link."
    report.add(
        Table("Linking without hooks: several people", columns, table, note),
        Check("linking, several people: precision", total.precision, 0.98, "", floor=True),
        Check("linking, several people: recall of own commits", own.recall, 0.95, "", floor=True),
    )


def people_score(place: Place, program: Path, person: str) -> tuple[Score, Score]:
    """Return how well one person's sessions are linked, on all commits and on their own."""
    assert place.ours is not None
    place.ours.ingest()
    truth = msgspec.json.decode(
        (place.scratch.parent / "truth.json").read_bytes(), type=list[PeopleTruth]
    )
    told = _told(place, program, "main")
    total, own = Score(), Score()
    for commit in truth:
        if commit.sha not in told:
            continue  # a topic that was never merged
        is_own = commit.author == person
        want = set(commit.sessions) if is_own else set()
        got = {session.session_id for session in told[commit.sha]}
        total.count(want, got)
        if is_own:
            own.count(want, got)
    return total, own
