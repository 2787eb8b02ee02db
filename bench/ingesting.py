"""Ingest: first, no-op, one line appended; how it grows; how much memory one huge file takes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from measure import Cost, best, folder_mb, middle
from peers import Agentsview, Raw, Whyfor
from raw import transcripts
from report import Cell, Check, Report, Table, ratio

Pair = tuple[Cost | None, Cost | None]  # ours, agentsview's

_COLUMNS = ["", "CPU s", "wall s", "peak MB", "sessions", "CPU against ours"]


@dataclass(frozen=True)
class Place:
    """A home, its size, and each program's store for it."""

    name: str
    home: Path
    scratch: Path
    ours: Whyfor | None
    theirs: Agentsview | None

    @property
    def megabytes(self) -> float:
        return sum(path.stat().st_size for path in transcripts(self.home)) / 1e6

    @property
    def files(self) -> int:
        return sum(1 for _ in transcripts(self.home))


@dataclass(frozen=True)
class First:
    """The first ingest of a place by everyone; agentsview's is the better of its two ways."""

    raw: Cost
    ours: Cost | None
    plain: Cost | None
    full: Cost | None

    @property
    def theirs(self) -> Cost | None:
        return best(self.plain, self.full) if self.plain and self.full else self.full


def append_line(place: Place, number: int) -> None:
    """One more prompt at the end of a Claude session of middling size."""
    files = place.home.glob(".claude/projects/*/*.jsonl")
    by_size = sorted(files, key=lambda path: (path.stat().st_size, path.name))
    path = by_size[len(by_size) // 2]
    line = {
        "parentUuid": None,
        "isSidechain": False,
        "type": "user",
        "message": {"role": "user", "content": f"one more line {number}"},
        "uuid": f"00000000-0000-4000-8000-{number:012d}",
        "timestamp": f"2026-07-02T00:00:{number:02d}.000Z",
        "userType": "external",
        "cwd": "/home/dev/src/appended",
        "sessionId": path.stem,
        "version": "2.1.197",
        "gitBranch": "main",
    }
    with path.open("ab+") as file:
        # a transcript may lack its last newline; without one the new record would be glued to the
        # old
        file.seek(-1, 2)
        glue = b"" if file.read(1) == b"\n" else b"\n"
        file.write(glue + msgspec.json.encode(line) + b"\n")


def first_ingest(place: Place, both_ways: bool = False) -> First:
    raw = Raw().decode(place.home, place.scratch)
    ours = place.ours.ingest() if place.ours else None
    if not place.theirs:
        return First(raw, ours, None, None)
    full = place.theirs.sync(full=True)
    if not both_ways:
        return First(raw, ours, None, full)
    other = Agentsview(place.theirs.program, place.home, place.scratch / "plain")
    return First(raw, ours, other.sync(), full)


def ingest(report: Report, place: Place, both_ways: bool = True) -> First:
    """The table of one home: everyone's first, no-op and appended ingest."""
    first = first_ingest(place, both_ways)
    (ours_again, theirs_again), (ours_line, theirs_line) = _again(place), _appended(place)
    rows = [
        _row("first: whyfor ingest", first.ours, first.ours),
        _row("first: agentsview sync", first.plain, first.ours),
        _row("first: agentsview sync --full", first.full, first.ours),
        _row("first: raw decode", first.raw, first.ours),
        _row("no-op: whyfor ingest", ours_again, ours_again),
        _row("no-op: agentsview sync", theirs_again, ours_again),
        _row("one line: whyfor ingest", ours_line, ours_line),
        _row("one line: agentsview sync", theirs_line, ours_line),
    ]
    title = f"Ingest of {place.name}: {place.files:,} files, {place.megabytes:,.0f} MB"
    note = "No-op and one line: median of 3. " + _store_sizes(place)
    report.add(Table(title, _COLUMNS, rows, note), *_checks(place, first, ours_again, theirs_again))
    return first


def _again(place: Place) -> Pair:
    ours = middle([place.ours.ingest() for _ in range(3)]) if place.ours else None
    return ours, middle([place.theirs.sync() for _ in range(3)]) if place.theirs else None


def _appended(place: Place) -> Pair:
    ours: list[Cost] = []
    theirs: list[Cost] = []
    for number in range(3):
        append_line(place, number)
        ours += [place.ours.ingest()] if place.ours else []
        theirs += [place.theirs.sync()] if place.theirs else []
    return middle(ours) if ours else None, middle(theirs) if theirs else None


def _checks(place: Place, first: First, ours: Cost | None, theirs: Cost | None) -> list[Check]:
    cpu, peak = _cpu(first.ours), first.ours.peak_mb if first.ours else None
    kind = place.name.split()[0]  # without the scale: a reason for a miss holds for every size
    return [
        Check(f"{kind}: first ingest CPU / agentsview's best", ratio(cpu, _cpu(first.theirs)), 0.5),
        Check(f"{kind}: first ingest CPU / raw decode", ratio(cpu, first.raw.cpu), 6),
        Check(f"{kind}: no-op ingest CPU / agentsview's", ratio(_cpu(ours), _cpu(theirs)), 0.5),
        Check(f"{kind}: peak memory of the first ingest", peak, 250, " MB"),
    ]


def _cpu(cost: Cost | None) -> float | None:
    return cost.cpu if cost else None


def _row(name: str, cost: Cost | None, ours: Cost | None) -> list[Cell]:
    if not cost:
        return [name, None, None, None, None, None]
    against = ratio(cost.cpu, _cpu(ours))
    return [name, cost.cpu, cost.wall, cost.peak_mb, _sessions(cost), against and f"{against:.2f}×"]


def _sessions(cost: Cost) -> int | None:
    """How many sessions the program says it took in: a fast ingest of nothing would otherwise
    look good."""
    if cost.output.lstrip().startswith(b"{"):
        return int(msgspec.json.decode(cost.output)["sessions"])
    said = re.search(rb"Sync complete: (\d+) sessions", cost.output)
    return int(said[1]) if said else None


def _store_sizes(place: Place) -> str:
    peers = [peer for peer in (place.ours, place.theirs) if peer]
    sizes = ", ".join(f"{peer.store.name} {folder_mb(peer.store):,.0f} MB" for peer in peers)
    return f"Sessions: what each program says it read in that run. Stores afterwards: {sizes}."


def growth(report: Report, places: list[Place], firsts: list[First]) -> None:
    """CPU of the first ingest by size; a column of equal figures is linear growth."""
    columns = [
        "",
        "files",
        "MB",
        "ours s",
        "ours ms/MB",
        "agentsview ms/MB",
        "raw ms/MB",
        "ours peak MB",
    ]
    rows: list[list[Cell]] = []
    for place, first in zip(places, firsts, strict=True):
        size = place.megabytes
        costs = _cpu(first.ours), _cpu(first.theirs), first.raw.cpu
        per = [ratio(cpu, size / 1000) for cpu in costs]
        peak = first.ours.peak_mb if first.ours else None
        rows.append([place.name, place.files, size, _cpu(first.ours), *per, peak])
    report.add(Table("Growth of the first ingest", columns, rows))


def huge_file(report: Report, place: Place) -> None:
    """One session in one file: memory must not follow its size."""
    first = first_ingest(place)
    rows = [
        _row("whyfor ingest", first.ours, first.ours),
        _row("agentsview sync --full", first.full, first.ours),
        _row("raw decode", first.raw, first.ours),
    ]
    peak = first.ours.peak_mb if first.ours else None
    check = Check(f"{place.name}: peak memory", peak, 250, " MB")
    report.add(Table(f"{place.name}: {place.megabytes:,.0f} MB", _COLUMNS, rows), check)
