"""The benchmark: ours against agentsview and against the raw limit, in one run on the same
bytes."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from agents import agents
from attention import alerts_of_corpus
from commits import commits
from hooks import hooks
from ingesting import Place, first_ingest, growth, huge_file, ingest
from invented import write_invented
from lines import lines
from linking import large_linking, linking, own_linking, people_linking
from live import live
from locomo import conversations, write_conversation
from mcp_server import mcp_server
from measure import CommandFailed
from memory import hostile, memory, write_hostile
from pages import pages
from peers import Agentsview, Whyfor, find_agentsview, find_whyfor
from people import PEOPLE
from redaction import quality, real, whole
from report import Report, console, show, write
from retrieval import QuestionSet, own_questions, read_questions, retrieval
from review_lab import review
from scanners import find_peers, ours
from searching import index_size, search, startup
from showing import showing
from supervise import supervise
from throughput import appending, session, speed, together, whole_sessions

_HERE = Path(__file__).parent
_CORPUS = _HERE.parents[1] / "shared/corpus"
PARTS = (
    *("ingest", "huge", "corpus", "search", "hooks", "commits", "linking", "pages", "live"),
    *("redaction", "memory", "lines", "team", "supervise", "agents"),
)
_OWN_SHARES = (5, 30)  # percent of this repository's commits that sessions wrote
_HOSTILE_MB = (75, 300)  # a third of each is one line
# by the archive of their sessions
_QUESTIONS = {
    "dev-home.tar.xz": {"commit subjects, dev": "retrieval-dev.jsonl"},
    "dev-home-2.tar.xz": {
        "commit subjects, dev2": "retrieval-dev2.jsonl",
        "questions, hard": "retrieval-hard-dev.jsonl",
    },
}
_OWN_QUESTIONS = {
    "questions, other words": "questions.jsonl",
    "questions, no word in common": "strangers.jsonl",
}
FLOORS = {
    "commit subjects, dev: MRR": 0.955,
    "questions, hard: MRR": 0.58,
    "questions, hard: R@5": 0.68,
    "questions, other words: MRR": 0.58,
    "questions, other words: R@5": 0.68,
    "commit subjects, dev, by meaning: MRR": 0.955,
    "questions, hard, by meaning: MRR": 0.70,
    "questions, hard, by meaning: R@5": 0.82,
    "questions, other words, by meaning: MRR": 0.70,
    "questions, other words, by meaning: R@5": 0.82,
    "invented: MRR": 0.8,
    "LoCoMo: R@10": 0.93,
}

_MCP_ROUNDS = 5


class Bench:
    """One run: a scratch folder, the programs found, and what has been reported so far."""

    def __init__(self, scratch: Path, whyfor: Path | None) -> None:
        self.report = Report()
        self.scratch = scratch
        self.whyfor = whyfor
        self._agentsview = find_agentsview()
        if not whyfor:
            self.report.skip(
                "whyfor is not installed beside this interpreter: only the others are measured"
            )
        if not self._agentsview:
            self.report.skip("agentsview could not be installed: no comparison with it")

    def place(self, name: str) -> Place:
        scratch = self.scratch / name.replace(" ", "-")
        home = scratch / "home"
        home.mkdir(parents=True)
        ours = Whyfor(self.whyfor, home, scratch) if self.whyfor else None
        theirs = Agentsview(self._agentsview, home, scratch) if self._agentsview else None
        return Place(name, home, scratch, ours, theirs)

    def warm_up(self) -> None:
        """On an empty home: compiled modules and a cached binary are not part of a first ingest."""
        first_ingest(self.place("warm-up"))

    def generated(self, name: str, sessions: int, megabytes: float, *more: str) -> Place:
        """Made by a child: this process must stay small for the memory it measures to be right."""
        place = self.place(name)
        size = ["--sessions", str(sessions), "--megabytes", str(megabytes)]
        subprocess.run(
            [sys.executable, _HERE / "generate.py", place.home, *size, *more], check=True
        )
        return place

    def history(self, name: str, commits: int, *more: str) -> Place:
        """A repository and the sessions behind it."""
        place = self.place(name)
        command = [
            sys.executable,
            str(_HERE / "histories.py"),
            str(place.scratch),
            "--commits",
            str(commits),
            *more,
        ]
        subprocess.run(command, check=True)
        return place

    def own_history(self, percent: int) -> Place:
        """This repository, and sessions behind so many of a hundred commits."""
        place = self.place(f"own repository, {percent} %")
        command = [sys.executable, str(_HERE / "own_history.py"), str(_HERE.parent)]
        share = ["--share", str(percent / 100)]
        subprocess.run([*command, str(place.scratch), *share], check=True)
        return place

    def people(self, commits: int) -> dict[str, Place]:
        """One repository, and each person's clone and home."""
        folder = self.scratch / "people"
        command = [sys.executable, str(_HERE / "people.py"), str(folder), "--named"]
        subprocess.run([*command, "--commits", str(commits)], check=True)
        found: dict[str, Place] = {}
        for person in PEOPLE:
            scratch = folder / person
            home = scratch / "home"
            ours = Whyfor(self.whyfor, home, scratch) if self.whyfor else None
            found[person] = Place(person, home, scratch, ours, None)
        return found

    def busy(self, name: str, sessions: int, commits: int) -> Place:
        """A home with many sessions, and a repository with the stories of some more; ingested."""
        place = self.history(name, commits)
        size = ["--sessions", str(sessions), "--megabytes", str(sessions * 0.05)]
        subprocess.run([sys.executable, _HERE / "generate.py", place.home, *size], check=True)
        if place.ours:
            place.ours.ingest()
        return place

    def unpacked(self, archive: Path, name: str = "corpus") -> Place:
        place = self.place(name)
        with tarfile.open(archive) as tar:
            # from 3.11.4 on
            options: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            tar.extractall(place.home, **options)
        return place


@dataclass(frozen=True)
class Effort:
    """How much to measure. Growth is measured on parts of the whole: 1x is it divided by the
    largest scale."""

    sessions: int = 1000
    scales: tuple[int, ...] = (1, 4, 16)
    huge_mb: int = 134
    both_ways: bool = True  # agentsview's plain sync as well as its full one
    sessions_per_agent: int = 100
    search_all: bool = True  # search at every scale, not only the largest
    hook_rounds: int = 60
    mutations: int = 10_000  # of allowed commands that are run in shells
    repositories: tuple[tuple[int, int], ...] = (
        (1000, 10),
        (1000, 100),
        (1000, 500),
        (50_000, 10),
        (50_000, 500),
    )
    commit_rounds: int = 40
    story_rounds: int = 20
    linked_commits: int = 4000
    large_commits: int = 1600
    people_commits: int = 1200
    lab_commits: int = 40  # of each mix of people and formatters
    live_sessions: tuple[int, ...] = (10, 50, 100)
    live_seconds: float = 30
    sync_rounds: int = 10  # and a hundred times as many kills
    team_copies: int = 32  # of the corpus, in projects of their own: about a million events
    shown_beside: tuple[int, ...] = (1, 10, 50)  # sessions that write while another is looked at
    shown_seconds: float = 15
    paged: tuple[int, ...] = (1000, 16_000)  # sessions of the homes whose pages are asked for
    redacted_mb: tuple[float, ...] = (4.4, 17.5, 70)
    redacted_every: int = 4  # the peers get one case in so many
    redacted_lines: int = 4000  # of real transcripts that the peers get
    redacted_seconds: float = 20  # after which a peer is stopped


FULL = Effort()
QUICK = Effort(
    sessions=100,
    sessions_per_agent=40,
    scales=(1, 4),
    huge_mb=33,
    both_ways=False,
    search_all=False,
    hook_rounds=20,
    repositories=((1000, 10), (1000, 100)),
    commit_rounds=15,
    story_rounds=5,
    linked_commits=1000,
    large_commits=800,
    people_commits=400,
    lab_commits=16,
    live_sessions=(10, 100),
    live_seconds=10,
    sync_rounds=1,
    team_copies=8,
    shown_beside=(1, 10),
    shown_seconds=8,
    paged=(100, 1000),
    redacted_mb=(4.4, 17.5),
    redacted_every=12,
    redacted_lines=1000,
    redacted_seconds=5,
)


def on_generated_homes(bench: Bench, effort: Effort) -> None:
    places: list[Place] = []
    for scale in effort.scales:
        part = effort.sessions * scale // effort.scales[-1]
        places.append(bench.generated(f"generated {scale}x", part, part * 0.4))
    firsts = [first_ingest(place) for place in places[:-1]]
    firsts.append(ingest(bench.report, places[-1], effort.both_ways))
    growth(bench.report, places, firsts)
    startup(bench.report, places[0])


def on_huge_file(bench: Bench, effort: Effort) -> None:
    huge_file(
        bench.report, bench.generated("one huge session", 1, effort.huge_mb, "--agent", "claude")
    )


def on_team(bench: Bench, effort: Effort, corpus: Path) -> None:
    """On the corpus; the parts of the tests are needed only here."""
    from team import team
    from team_sync import team_sync

    team_sync(bench.report, effort.sync_rounds)
    archive = corpus / "dev-home.tar.xz"
    if not archive.exists():
        bench.report.skip("no corpus: the team server is not measured")
        return
    place = bench.unpacked(archive, "team")
    team(bench.report, place, corpus / "retrieval-dev.jsonl", effort.team_copies)


def on_corpus(bench: Bench, effort: Effort, corpus: Path) -> None:
    archive = corpus / "dev-home.tar.xz"
    if not archive.exists():
        bench.report.skip("the corpus is not there (--corpus DIR): no real transcripts")
        return
    ingest(bench.report, bench.unpacked(archive), effort.both_ways)


def on_search(bench: Bench, effort: Effort, corpus: Path, locomo: Path | None) -> None:
    """Speed and size on generated homes, then what is found."""
    places: list[Place] = []
    for scale in effort.scales:
        part = effort.sessions * scale // effort.scales[-1]
        places.append(bench.generated(f"searched {scale}x", part, part * 0.4))
        first_ingest(places[-1])
    search(bench.report, places if effort.search_all else places[-1:])
    index_size(bench.report, places)
    if bench.whyfor:
        sets = [*_invented(bench), *_of_corpus(bench, corpus), *_of_locomo(bench, locomo)]
        retrieval(bench.report, sets, FLOORS)


def _invented(bench: Bench) -> list[QuestionSet]:
    place = bench.place("invented")
    questions = write_invented(place.home)
    _read(place)
    return [QuestionSet("invented", place, questions)]


def _of_corpus(bench: Bench, corpus: Path) -> list[QuestionSet]:
    sets: list[QuestionSet] = []
    for home, (archive, files) in enumerate(_QUESTIONS.items(), 1):
        if not (corpus / archive).exists():
            bench.report.skip(f"{archive} is not there (--corpus DIR): no questions about it")
            continue
        place = bench.unpacked(corpus / archive, f"asked {home}")
        _read(place)
        sets += [
            QuestionSet(name, place, read_questions(corpus / file)) for name, file in files.items()
        ]
        sets += [
            QuestionSet(name, place, own_questions(file, home))
            for name, file in _OWN_QUESTIONS.items()
        ]
    return sets


def _of_locomo(bench: Bench, path: Path | None) -> list[QuestionSet]:
    """One set, over a home for each conversation."""
    if path is None or not path.exists():
        bench.report.skip("LoCoMo is not there (--locomo FILE): no questions about its talks")
        return []
    sets: list[QuestionSet] = []
    for number, item in enumerate(conversations(path)):
        place = bench.place(f"talk {number}")
        questions = write_conversation(place.home, number, item)
        _read(place)
        sets.append(QuestionSet("LoCoMo", place, questions))
    return sets


def _read(place: Place) -> None:
    if place.ours:
        place.ours.ingest()


def on_commits(bench: Bench, effort: Effort) -> None:
    if bench.whyfor:
        rounds, stories = effort.commit_rounds, effort.story_rounds
        commits(bench.report, bench.scratch, bench.whyfor, effort.repositories, rounds, stories)


def on_histories(bench: Bench, effort: Effort) -> None:
    if bench.whyfor:
        sizes = {
            f"history {scale}x": effort.linked_commits * scale // effort.scales[-1]
            for scale in effort.scales
        }
        linking(
            bench.report, [bench.history(name, size) for name, size in sizes.items()], bench.whyfor
        )
        large = []
        for scale in (1, 4):
            size = effort.large_commits * scale // 4
            large.append(bench.history(f"large commits {scale}x", size, "--large"))
        large_linking(bench.report, large, bench.whyfor)
        people_linking(bench.report, bench.people(effort.people_commits), bench.whyfor)
        own = [bench.own_history(percent) for percent in _OWN_SHARES] if _has_history() else []
        own_linking(bench.report, own, bench.whyfor)


def _has_history() -> bool:
    """Whether this is a clone, and not an archive."""
    return (_HERE.parent / ".git").exists()


def on_pages(bench: Bench, effort: Effort) -> None:
    if bench.whyfor:
        places = [bench.busy(f"{sessions:,} sessions", sessions, 1000) for sessions in effort.paged]
        pages(bench.report, places, bench.whyfor)


def on_live(bench: Bench, effort: Effort) -> None:
    live(bench.report, bench.scratch, effort.live_sessions, effort.live_seconds)
    if bench.whyfor:
        places = {beside: bench.place(f"shown beside {beside}") for beside in effort.shown_beside}
        showing(bench.report, places, bench.whyfor, effort.shown_seconds)


def on_redaction(bench: Bench, effort: Effort, corpus: Path) -> None:
    """Cost first: what is judged afterwards makes this process larger."""
    if not bench.whyfor:
        return
    peers = find_peers()
    if not peers:
        bench.report.skip(
            "detect-secrets and CredSweeper could not be installed: redaction is not compared with "
            "them"
        )
    scanners = [ours(), *peers]
    homes = {
        f"{mb:g} MB": bench.generated(f"redaction {mb:g}", 1, mb, "--agent", "claude")
        for mb in effort.redacted_mb
    }
    sessions = [session(name, place.home) for name, place in homes.items()]
    home = bench.scratch / "corpus" / "home"
    real_ones = together(home, bench.scratch) if home.exists() else None
    whole_sessions(bench.report, bench.whyfor, sessions, real_ones, bench.scratch)
    appending(bench.report, bench.whyfor, sessions, bench.scratch)
    speed(bench.report, scanners, sessions[0], effort.redacted_seconds)
    if not (corpus / "secrets-dev.jsonl.gz").exists():
        bench.report.skip("the corpus is not there (--corpus DIR): no secrets to find")
        return
    quality(bench.report, scanners, corpus, effort.redacted_every)
    if home.exists():
        real(bench.report, scanners, home, effort.redacted_lines)
    archives = sorted(corpus.glob("dev-home*.tar.xz"))
    real_homes = [bench.unpacked(one, one.name.split(".")[0]).home for one in archives]
    if real_homes:
        whole(bench.report, real_homes)


def on_memory(bench: Bench, corpus: Path) -> None:
    archives = sorted(corpus.glob("dev-home*.tar.xz"))
    if not archives:
        bench.report.skip("the corpus is not there (--corpus DIR): nothing to remember")
    names = [(one, f"remembered {one.name.partition('.')[0]}") for one in archives]
    places = [bench.unpacked(one, name) for one, name in names]
    memory(bench.report, places)
    stores = [place.ours.store for place in places if place.ours]
    mcp_server(bench.report, stores[0] if stores else None, _MCP_ROUNDS)
    grown = [(size, bench.place(f"hostile {size} MB")) for size in _HOSTILE_MB]
    for size, place in grown:
        write_hostile(place, size)
    hostile(bench.report, [place for _, place in grown])


def on_lines(bench: Bench, effort: Effort) -> None:
    if bench.whyfor:
        review(bench.report, bench.scratch, bench.whyfor)
        lines(bench.report, bench.scratch, bench.whyfor, effort.lab_commits)


def on_supervise(bench: Bench, effort: Effort, corpus: Path) -> None:
    supervise(bench.report, bench.scratch, effort.hook_rounds, effort.mutations)
    places = []
    for number, archive in enumerate(("dev-home.tar.xz", "dev-home-2.tar.xz"), 1):
        if (corpus / archive).exists():
            place = bench.unpacked(corpus / archive, f"told {number}")
            _read(place)
            places.append(place)
    if places:
        alerts_of_corpus(bench.report, places)
    else:
        bench.report.skip("the corpus is not there (--corpus DIR): no alerts are judged")


def run(
    bench: Bench, effort: Effort, corpus: Path, locomo: Path | None, only: str | None = None
) -> None:
    """All parts, or one of them; one that fails is reported and does not stop the others."""
    parts: dict[str, Callable[[], None]] = {
        "ingest": lambda: on_generated_homes(bench, effort),
        "huge": lambda: on_huge_file(bench, effort),
        "corpus": lambda: on_corpus(bench, effort, corpus),
        "search": lambda: on_search(bench, effort, corpus, locomo),
        "hooks": lambda: hooks(bench.report, bench.scratch, effort.hook_rounds),
        "commits": lambda: on_commits(bench, effort),
        "linking": lambda: on_histories(bench, effort),
        "pages": lambda: on_pages(bench, effort),
        "live": lambda: on_live(bench, effort),
        "redaction": lambda: on_redaction(bench, effort, corpus),
        "memory": lambda: on_memory(bench, corpus),
        "lines": lambda: on_lines(bench, effort),
        "team": lambda: on_team(bench, effort, corpus),
        "supervise": lambda: on_supervise(bench, effort, corpus),
        "agents": lambda: agents(
            bench.report, bench.scratch, bench.whyfor, effort.sessions_per_agent
        ),
    }
    for part in [parts[only]] if only else parts.values():
        try:
            part()
        except CommandFailed as error:
            bench.report.skip(str(error))


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="100 sessions instead of 1,000")
    parser.add_argument(
        "--only", choices=PARTS, help="this part alone; with --write the others stay as they are"
    )
    parser.add_argument("--corpus", type=Path, default=_CORPUS, help="folder with dev-home.tar.xz")
    parser.add_argument("--locomo", type=Path, help="LoCoMo's locomo10.json")
    parser.add_argument("--whyfor", type=Path, default=find_whyfor(), help="the program to measure")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--write", type=Path, help="write the tables here as Markdown")
    return parser.parse_args()


def main() -> None:
    chosen = options()
    with tempfile.TemporaryDirectory(prefix="whyfor-bench-") as scratch:
        bench = Bench(Path(scratch), chosen.whyfor)
        bench.warm_up()
        run(bench, QUICK if chosen.quick else FULL, chosen.corpus, chosen.locomo, chosen.only)
    report = bench.report
    show(report.targets())
    for what in report.skipped:
        console.print(f"[bold red]SKIPPED[/]: {what}")
    if chosen.json:
        write(
            chosen.json,
            msgspec.json.format(msgspec.json.encode(report.as_json()), indent=1).decode(),
        )
    command = (
        "make bench"
        + (f" ONLY={chosen.only}" if chosen.only else "")
        + (" (--quick)" if chosen.quick else "")
    )
    if chosen.write and chosen.only and chosen.write.exists():
        write(chosen.write, report.within(chosen.write.read_text(), command, chosen.only))
    elif chosen.write:
        write(chosen.write, report.as_markdown(command))


if __name__ == "__main__":
    main()
