"""Memory: what notes cost and take, whether verified ones are right, and how much of what sessions
look for they would have been told."""

from __future__ import annotations

import statistics
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import apsw
import msgspec

from ingesting import Place
from peers import Whyfor
from remembered import TOKENS, Rediscovered, Remembered
from report import Cell, Check, Report, Table

_HERE = Path(__file__).parent
_LABELS = _HERE / "verified.jsonl"
_SECONDS = 900
_NOTES = ("observation", "memories", "session_commands", "note_statements", "sqlite_autoindex_obs")
_NOTE = f"""Files: of the first 20 a session reads, less those its prompt names; commands: those that build, test or check.
Both: the share named in a block of at most {TOKENS:,} tokens made from earlier sessions of the project, mean over sessions.
Ceiling: the share of those files that any earlier session touched. Titles: the newest titles and the last summary."""


_JUDGED = """Judged twice by one reader, by the calls and results they cite: all there are (bench/verified.jsonl). The two readings agree.
56 of 57 were right at first: one was a command that only lists tests, which is no check any more. Before, with one command note for each session,
96 of a sample of 100 were. No commit is among them: these homes have no repositories."""


_DEPTH = 200
# a word of every kind that is looked for
_CUES = (
    "It turns out we decided to use pnpm, not npm, because the root cause silently fails; always"
    " remaining next steps, once you revert, careful, maybe otherwise. "
)
_HOSTILE = """A third of it is one line; in the rest every sentence has a cue of every kind, and calls have arguments nested 200 deep."""


class _Label(msgspec.Struct):
    """A verified note that was judged; `key` says which, and no more."""

    key: str
    right: bool


@dataclass(frozen=True)
class _Home:
    found: Remembered
    first: float  # CPU seconds of the first ingest
    database: Path


def memory(report: Report, places: Sequence[Place]) -> None:
    """One row for each home; the targets are judged on all of them together."""
    found = {place.name: _measured(place.ours) for place in places if place.ours}
    if not found:
        return
    _cost(report, found)
    _judged(report, [home.found.verified for home in found.values()])
    _told(report, {name: home.found.rediscovered for name, home in found.items()})


# -- hostile ---------------------------------------------------------------------------------------


def write_hostile(place: Place, megabytes: int) -> None:
    """Write one session: a third of it one line, the rest messages in which each sentence has a cue
    of every kind, and calls with deep arguments."""
    path = (
        place.home
        / ".claude/projects/-hostile"
        / f"{'0' * 8}-0000-4000-8000-{megabytes:012d}.jsonl"
    )
    path.parent.mkdir(parents=True)
    third = megabytes * 1_000_000 // 3
    nested = '{"input":[' * _DEPTH + '{"command":"make test"}' + "]}" * _DEPTH
    call = f'{{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{nested}}}'
    number = 0
    with path.open("w", encoding="utf-8") as file:
        before, after = _line(number, path.stem, '{"type":"text","text":"%s"}').split("%s")
        file.write(before)
        for _ in range(third // len(_CUES)):
            file.write(_CUES)
        file.write(after)
        while file.tell() < 3 * third:
            number += 1
            said = f'{{"type":"text","text":"{_CUES * 20}"}}'
            file.write(_line(number, path.stem, said) + _line(-number, path.stem, call % number))


def _line(number: int, session: str, block: str) -> str:
    """Return one line of an agent's transcript with a block of JSON in it."""
    head = {
        "parentUuid": None,
        "type": "assistant",
        "uuid": f"hostile-{number}",
        "timestamp": "2026-07-02T00:00:00.000Z",
        "cwd": "/home/dev/src/hostile",
        "sessionId": session,
        "version": "2.1.197",
    }
    message = f'"message":{{"role":"assistant","id":"m{number}","content":[{block}]}}'
    return f"{msgspec.json.encode(head).decode()[:-1]},{message}}}\n"


def hostile(report: Report, places: Sequence[Place]) -> None:
    """What notes of a hostile transcript cost; the places are of rising size."""
    rows: list[list[Cell]] = []
    per: list[float] = []
    for place in places:
        if not place.ours:
            return
        home = _measured(place.ours)
        per.append(home.found.whole / place.megabytes)
        rows.append([place.name, place.megabytes, home.first, home.found.whole * 1000])
    columns = ["", "MB", "first ingest CPU s", "notes CPU ms"]
    report.add(
        Table("Notes of a hostile transcript", columns, rows, _HOSTILE),
        Check(
            "notes of a hostile transcript, CPU per MB / at a quarter of it", per[-1] / per[0], 1.5
        ),
    )


def _measured(ours: Whyfor) -> _Home:
    first = ours.ingest().cpu
    done = subprocess.run(
        [ours.python, str(_HERE / "remembered.py")],
        env=dict(ours.env),
        capture_output=True,
        check=True,
        timeout=_SECONDS,
    )
    found = msgspec.json.decode(done.stdout, type=Remembered)
    return _Home(found, first, ours.store / "whyfor.db")


# -- cost ----------------------------------------------------------------------------------------


def _cost(report: Report, found: dict[str, _Home]) -> None:
    rows: list[list[Cell]] = []
    middles: list[float] = []
    shares: list[float] = []
    grown: list[float] = []
    for name, home in found.items():
        each, first = home.found, home.first
        middles.append(statistics.median(each.derived) * 1000)
        shares.append(each.whole / max(first - each.whole, 0.001))
        notes, rest = _sizes(home.database)
        grown.append(notes / rest)
        worst = max(each.derived) * 1000
        rows.append([name, len(each.derived), middles[-1], worst, first, shares[-1], grown[-1]])
    columns = ["", "sessions", "CPU ms p50", "worst", "first ingest CPU s", "added", "database"]
    report.add(
        Table("Notes: what they cost", columns, rows, "added, database: as a share of the rest"),
        Check("notes of a session, CPU p50", max(middles), 15, " ms"),
        Check("notes and cards / the rest of a first ingest, CPU", max(shares), 0.15, ""),
        Check("notes / the rest of the database", max(grown), 0.08, ""),
    )


def _sizes(database: Path) -> tuple[float, float]:
    """The bytes of notes, and of everything else."""
    db = apsw.Connection(str(database), apsw.SQLITE_OPEN_READONLY)
    sizes = dict(db.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
    notes = sum(size for name, size in sizes.items() if str(name).startswith(_NOTES))
    return float(notes), float(sum(sizes.values()) - notes)


# -- verified ------------------------------------------------------------------------------------


def _judged(report: Report, verified: Iterable[list[str]]) -> None:
    keys = {key for each in verified for key in each}
    lines = _LABELS.read_bytes().splitlines() if _LABELS.exists() else []
    labels = [msgspec.json.decode(line, type=_Label) for line in lines if line]
    here = [label.right for label in labels if label.key in keys]
    right = sum(here) / len(here) if here else None
    rows: list[list[Cell]] = [["verified notes", len(keys), len(here), sum(here), right]]
    columns = ["", "notes", "judged", "right", "share"]
    report.add(
        Table("Notes: whether verified ones are right", columns, rows, _JUDGED),
        Check("verified notes that are right", right, 0.9, "", floor=True),
    )


# -- told ----------------------------------------------------------------------------------------


def _told(report: Report, found: dict[str, list[Rediscovered]]) -> None:
    everything = [each for listed in found.values() for each in listed]
    rows = [_row(name, listed) for name, listed in [*found.items(), ("together", everything)]]
    columns = ["", "sessions", "files", "commands", "files, titles", "commands, titles"]
    columns += ["files, ceiling", "tokens"]
    files = _mean(each.files for each in everything)
    commands = _mean(each.commands for each in everything)
    titles = _mean(each.files_of_titles for each in everything) or 0.0
    report.add(
        Table("Notes: what a session would have been told", columns, rows, _NOTE),
        Check("files named at session start", files, 0.6, "", floor=True),
        Check("commands named at session start", commands, 0.6, "", floor=True),
        Check("files named / by newest titles", (files or 0) / max(titles, 0.001), 3, floor=True),
    )


def _row(name: str, listed: list[Rediscovered]) -> list[Cell]:
    return [
        name,
        len(listed),
        _mean(each.files for each in listed),
        _mean(each.commands for each in listed),
        _mean(each.files_of_titles for each in listed),
        _mean(each.commands_of_titles for each in listed),
        _mean(each.ceiling for each in listed),
        statistics.mean(each.tokens for each in listed) if listed else None,
    ]


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known else None
