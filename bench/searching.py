"""Search latency for four kinds of query, the size of the index, and the time any command needs
to start."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import apsw

from ingesting import Place
from measure import Cost, clean_env, run, typical
from peers import Daemon, Hits
from prose import COMMON, PHRASE, PREFIX, RARE
from report import Cell, Check, Report, Table, ratio

_TIMES = 5
_STARTS = 9

# kind: our query, agentsview's substring, agentsview's FTS query
_QUERIES = {
    "rare word": (RARE, RARE, RARE),
    "common word": (COMMON, COMMON, COMMON),
    "phrase": (f'"{PHRASE}"', PHRASE, f'"{PHRASE}"'),
    "prefix": (f"{PREFIX}*", PREFIX, f"{PREFIX}*"),
}
# what a table's name begins with, by what it is for
_INDEX = {
    "words": ("words_",),
    "passages": ("passages_",),
    "cards": ("cards_",),
    "notes": ("observation", "memories", "session_commands", "sqlite_autoindex_observation"),
}
_FIGURES = ["CPU ms", "wall ms", "hits"]
_COLUMNS = ["", *(f"{who} {figure}" for who in ("ours", "substring", "FTS") for figure in _FIGURES)]
_NOTE = """Whole commands, median of 5, at most 20 hits each; children, one-shot and automated sessions too.
Ours: whyfor search --json over prompts, answers, thinking and tools.
Substring: agentsview session search, its only way over the same content.
FTS: the same with --fts, which covers messages only and takes the * of a prefix literally.
agentsview 0.46.1 refuses to search without a daemon: CPU is client plus daemon, the daemon running."""


@dataclass(frozen=True)
class Results:
    """One kind of query by everyone; `start` is the CPU until agentsview's daemon listened."""

    ours: Hits | None
    substring: Hits | None = None
    fts: Hits | None = None
    start: float = 0.0

    def cells(self) -> list[Cell]:
        cells: list[Cell] = []
        for hits in (self.ours, self.substring, self.fts):
            cells += (
                [hits.cost.cpu * 1000, hits.cost.wall * 1000, hits.count] if hits else [None] * 3
            )
        return cells


def _search(place: Place, kind: str, daemon: Daemon | None) -> Results:
    query, substring, fts = _QUERIES[kind]
    ours = place.ours.timed_search(query, _TIMES) if place.ours else None
    if not place.theirs or not daemon:
        return Results(ours)
    plain = place.theirs.timed_search(substring, _TIMES, daemon, fts=False)
    return Results(
        ours, plain, place.theirs.timed_search(fts, _TIMES, daemon, fts=True), daemon.start_cpu
    )


def _search_all(place: Place) -> dict[str, Results]:
    with place.theirs.daemon() if place.theirs else nullcontext() as daemon:
        return {kind: _search(place, kind, daemon) for kind in _QUERIES}


def search(report: Report, places: list[Place]) -> None:
    """One table over all sizes; the target is judged on the largest."""
    found = {place.name.split()[-1]: _search_all(place) for place in places}
    rows: list[list[Cell]] = [
        [f"{kind}, {size}", *results[kind].cells()]
        for kind in _QUERIES
        for size, results in found.items()
    ]
    *_, largest = found.values()
    start = largest["common word"].start * 1000
    note = f"{_NOTE}\nUntil it listened the daemon took {start:.0f} ms of CPU on the largest home."
    table = Table("Search", _COLUMNS, rows, note)
    report.add(table, *_checks(largest["common word"]), _planted(largest["rare word"].ours))


def _planted(rare: Hits | None) -> Check:
    """A search that is fast because it misses things must not pass."""
    found = rare.sessions if rare else None
    return Check("sessions found of the three with the rare word", found, 3, "", floor=True)


def _checks(common: Results) -> list[Check]:
    by_all = (common.ours, common.substring, common.fts)
    ours, substring, fts = (hits.cost.cpu if hits else None for hits in by_all)
    cold = substring + common.start if substring else None
    search = "common-word search CPU / agentsview's"
    return [
        Check(f"{search}, no daemon running before", ratio(ours, cold), 0.1),
        Check(f"{search}, daemon running", ratio(ours, substring), 0.1),
        Check(f"{search} --fts (messages only), daemon running", ratio(ours, fts), 0.1),
    ]


def index_size(report: Report, places: list[Place]) -> None:
    """What the index takes of the database, by size of the home."""
    rows: list[list[Cell]] = []
    grown: float | None = None
    for place in places:
        if place.ours is None:
            continue
        sizes = _table_sizes(place.ours.store / "whyfor.db")
        whole = sum(sizes.values())
        parts = [_megabytes(sizes, names) for names in _INDEX.values()]
        grown = (parts[2] + parts[3]) / (whole - parts[2] - parts[3])
        per = [part / place.megabytes * 1000 for part in parts]
        rows.append([place.name, place.megabytes, whole, *parts, *per])
    columns = ["", "transcripts MB", "database MB", *(f"{name} MB" for name in _INDEX)]
    columns += [f"{name} KB/MB" for name in _INDEX]
    note = "KB/MB: of the index for each MB of transcripts; equal figures are linear growth."
    check = Check("cards and notes / the rest of the database", grown, 0.08, "")
    report.add(Table("Index size", columns, rows, note), check)


def _table_sizes(database: Path) -> dict[str, float]:
    db = apsw.Connection(str(database), apsw.SQLITE_OPEN_READONLY)
    rows = db.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name")
    return {str(name): float(size) / 1e6 for name, size in rows}


def _megabytes(sizes: dict[str, float], names: tuple[str, ...]) -> float:
    return sum(size for name, size in sizes.items() if name.startswith(names))


def startup(report: Report, place: Place) -> None:
    """Start-up against an interpreter that does nothing."""
    env = clean_env(place.home, place.scratch)
    bare = typical(_STARTS, lambda: run([sys.executable, "-I", "-S", "-c", "pass"], env))
    plain = typical(_STARTS, lambda: run([sys.executable, "-c", "pass"], env))
    costs: dict[str, Cost] = {"python -I -S -c pass": bare, "python -c pass": plain}
    ours = place.ours
    if ours:
        costs["whyfor --version"] = typical(_STARTS, ours.version)
        costs["whyfor search (rare word)"] = typical(_STARTS, lambda: ours.search(RARE))
    rows: list[list[Cell]] = [
        [name, cost.cpu * 1000, cost.wall * 1000, cost.cpu / bare.cpu, cost.cpu / plain.cpu]
        for name, cost in costs.items()
    ]
    version = costs.get("whyfor --version")
    columns = ["", "CPU ms", "wall ms", "× bare (-I -S)", "× python -c pass"]
    slower = version.cpu / bare.cpu if version else None
    check = Check("--version CPU / bare interpreter (-I -S)", slower, 4)
    report.add(Table(f"Start-up, median of {_STARTS}", columns, rows), check)
