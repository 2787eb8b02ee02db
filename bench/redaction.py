"""Redaction: what of planted secrets it finds, and what harmless text it touches."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from statistics import mean
from typing import NamedTuple, TypeVar

import msgspec

from benign import HELD_OUT, TEMPLATES, benign
from carriers import CARRIERS
from detectors import REFUSED
from measure import clean_env, run
from mentioned import mentioned
from planted import DEV, SPLITS, Case, Row, cases, held_out, records, rows
from raw import transcripts
from report import Cell, Check, Report, Table, show
from scanners import Scanner, find_peers, ours
from strings import leaves, texts
from untouched import Found, Untouched
from whole_transcripts import WholeTranscripts

_MASK = re.compile(r"\[REDACTED:[^\]]*\]")
_PIECE = 6  # characters
_HARD = 0.95
_HELD_OUT = "all held out"
_EACH = 20  # lines of each harmless template
_LINES = 4000  # of real transcripts, for the peers
_ENOUGH = 2_000_000  # bytes of a session to draw them from
_RECALL_NOTE = """Found: the secret no longer stands in the text, in any of the forms its carrier gave it.
Gone: no six characters of it are left either. Exact: it went to the last letter, and nothing else did.
Rules and carriers drawn by lot are held out: misses are listed for the others only, so nobody tunes on them."""


T = TypeVar("T")


@dataclass(frozen=True)
class Flagged:
    """A harmless line, and the rules that struck it."""

    kind: str
    line: str
    rules: list[str]

    def is_a(self, kind: str) -> bool:
        return kind in ("all", self.kind) or (kind == _HELD_OUT and self.kind in HELD_OUT)


@dataclass(frozen=True)
class Outcome:
    """One case before and after redaction."""

    case: Case
    text: str
    left: str
    rules: list[str]

    @property
    def refused(self) -> bool:
        return self.rules == [REFUSED]

    @property
    def found(self) -> bool:
        return not any(form in self.left for form in self.case.carried.forms)

    @property
    def gone(self) -> bool:
        return self.found and not any(
            _remains(form, self.text, self.left) for form in self.case.carried.forms
        )

    @property
    def exact(self) -> bool:
        carried, left = self.case.carried, _MASK.sub("\0", self.left)
        wholes = [carried.forms, (carried.whole,)] if carried.whole else [carried.forms]
        return any(left == _without(forms, self.text) for forms in wholes)


def _without(forms: Iterable[str], text: str) -> str:
    for form in forms:
        text = text.replace(form, "\0")
    return text


def _remains(form: str, text: str, left: str) -> bool:
    """Whether a piece is left that did not stand elsewhere too."""
    left, elsewhere = _MASK.sub("\0", left), text.replace(form, "\0")
    pieces = {form[at : at + _PIECE] for at in range(len(form) - _PIECE + 1)}
    return any(left.count(piece) > elsewhere.count(piece) for piece in pieces)


class Shares(NamedTuple):
    """How many cases, and the shares of them."""

    cases: int = 0
    found: float | None = None
    gone: float | None = None
    exact: float | None = None


class Recall:
    """The outcomes of one detector."""

    def __init__(self, name: str, outcomes: list[Outcome]) -> None:
        self.name = name
        self.outcomes = outcomes

    def of(self, which: Callable[[Case], bool] = lambda _case: True) -> Shares:
        those = [outcome for outcome in self.outcomes if which(outcome.case)]
        if not those:
            return Shares()
        found, gone, exact = (
            mean(getattr(one, what) for one in those) for what in ("found", "gone", "exact")
        )
        return Shares(len(those), found, gone, exact)


def _recalled(scanner: Scanner, planted: Sequence[Case]) -> Recall:
    texts = [case.carried.text for case in planted]
    scan = zip(planted, texts, scanner.scan(texts).redacted, strict=True)
    return Recall(
        scanner.name, [Outcome(case, text, left, rules) for case, text, (left, rules) in scan]
    )


def _recalled_in_records(scanner: Scanner, planted: Sequence[Case]) -> Recall:
    lines = [line.decode() for line in records(planted)]
    scan = zip(planted, lines, scanner.scan(lines).redacted, strict=True)
    outcomes = [
        Outcome(case, _strings(line), _strings(left), rules) for case, line, (left, rules) in scan
    ]
    return Recall(scanner.name, outcomes)


def _strings(record: str) -> str:
    """What a reader of the record sees; the record itself where it no longer parses."""
    try:
        return "\n".join(text for _, text in leaves(msgspec.json.decode(record)))
    except msgspec.DecodeError:
        return record


def _sample(items: Sequence[T], every: int) -> Sequence[T]:
    return items if every == 1 else Random("sample").sample(items, len(items) // every)


def _row(name: str, recalls: Sequence[Recall], which: Callable[[Case], bool]) -> list[Cell]:
    shares = recalls[0].of(which)
    cells: list[Cell] = [name, *shares]
    for one in recalls[1:]:
        theirs = one.of(which)
        cells += [theirs.found, theirs.gone]
    return cells


def _rows(
    recalls: Sequence[Recall], of: Callable[[Case], str], names: Iterable[str]
) -> list[list[Cell]]:
    return [_row(name, recalls, lambda case, name=name: of(case) == name) for name in names]  # type: ignore[misc]


def _starred(table: list[list[Cell]], names: set[str]) -> list[list[Cell]]:
    return [[f"{name} *" if name in names else name, *cells] for name, *cells in table]


def recall(
    report: Report, scanners: Sequence[Scanner], planted: Sequence[Case], every: int
) -> list[Outcome]:
    recalls = [
        _recalled(scanner, _sample(planted, every if at else 1))
        for at, scanner in enumerate(scanners)
    ]
    peers = [f"{one.name} {what}" for one in recalls[1:] for what in ("found", "gone")]
    columns = ["", "cases", "ours found", "gone", "exact", *peers]
    table = [
        _row("all", recalls, lambda _case: True),
        *_rows(recalls, lambda case: case.split, SPLITS),
    ]
    table.append(_row("all held out", recalls, lambda case: case.held_out))
    inside = [
        _recalled_in_records(one, _sample(planted, every if at else 1))
        for at, one in enumerate(scanners)
    ]
    table.append(_row("all, in records of Claude Code and Codex", inside, lambda _case: True))
    table.append(_row("all held out, in records", inside, lambda case: case.held_out))
    note = _RECALL_NOTE + (f"\nThe peers had a sample: one case in {every}." if every > 1 else "")
    held = recalls[0].of(lambda case: case.held_out)
    report.add(
        Table("Redaction: planted secrets found", columns, table, note),
        Check("redaction: recall", recalls[0].of().found, 0.92, "", floor=True),
        Check("redaction: recall, held-out rules and carriers", held.found, 0.92, "", floor=True),
        Check(
            "redaction: recall in records, held-out",
            inside[0].of(lambda case: case.held_out).found,
            0.92,
            "",
            floor=True,
        ),
        Check("redaction: records refused", sum(one.refused for one in inside[0].outcomes), 0, ""),
        Check(
            "redaction: secrets wholly gone, held-out rules and carriers",
            held.gone,
            0.92,
            "",
            floor=True,
        ),
    )
    carriers = _starred(_rows(recalls, lambda case: case.carrier, CARRIERS), held_out(CARRIERS))
    report.add(Table("Redaction: by carrier", columns, carriers, "*: held out."))
    names = sorted({case.rule for case in planted})
    rules = _starred(_rows(recalls, lambda case: case.rule, names), held_out(names))
    hard = [row for row in rules if isinstance(row[2], float) and row[2] < _HARD]
    title = f"Redaction: kinds of secret found in less than {_HARD:.0%} of the carriers"
    report.add(Table(title, columns, hard, "*: held out."))
    return [*recalls[0].outcomes, *(one for one in inside[0].outcomes if one.refused)]


def labelled(
    report: Report, scanners: Sequence[Scanner], examples: Sequence[Row], every: int
) -> None:
    """The examples as their authors wrote them. A near miss of one rule can be a secret of
    another."""
    secrets = [row for row in examples if row.label == "tp"]
    near = [row for row in examples if row.label == "fp"]
    table: list[list[Cell]] = []
    for at, scanner in enumerate(scanners):
        those = _sample(secrets, every if at else 1)
        left = scanner.scan([row.text for row in those]).redacted
        touched = scanner.scan([row.text for row in near]).redacted
        found = mean(row.secret not in text for row, (text, _) in zip(those, left, strict=True))
        table.append(
            [scanner.name, len(those), found, len(near), sum(bool(rules) for _, rules in touched)]
        )
    note = "As their authors wrote them; near misses of one rule can be secrets of another."
    report.add(
        Table(
            "Redaction: labelled examples",
            ["", "secrets", "found", "near misses", "touched"],
            table,
            note,
        )
    )


def harmless(report: Report, scanners: Sequence[Scanner], each: int, every: int) -> list[Flagged]:
    """Of ours, the lines that were touched."""
    lines = benign(each)
    scans = [
        _flags(scanner, _sample(lines, every if at else 1)) for at, scanner in enumerate(scanners)
    ]
    columns = ["", "lines", *(f"{scanner.name} %" for scanner in scanners)]
    table: list[list[Cell]] = []
    for kind in ["all", _HELD_OUT, *TEMPLATES]:
        shares = [_share(flags, kind) for flags in scans]
        table.append([kind, sum(one.is_a(kind) for one in scans[0]), *shares])
    note = "Made up by benign.py, every template equally often."
    note += f"\nThe peers had a sample: one line in {every}." if every > 1 else ""
    report.add(
        Table("Redaction: harmless lines flagged", columns, table, note),
        Check("redaction: harmless lines flagged", _share(scans[0], "all"), 0.5, " %"),
        Check(
            "redaction: harmless lines flagged, held-out kinds",
            _share(scans[0], _HELD_OUT),
            0.5,
            " %",
        ),
    )
    return [flag for flag in scans[0] if flag.rules and flag.kind not in HELD_OUT]


def _flags(scanner: Scanner, lines: Sequence[tuple[str, str]]) -> list[Flagged]:
    redacted = scanner.scan([line for _, line in lines]).redacted
    return [
        Flagged(kind, line, rules) for (kind, line), (_, rules) in zip(lines, redacted, strict=True)
    ]


def _share(flags: Sequence[Flagged], kind: str) -> float | None:
    those = [bool(flag.rules) for flag in flags if flag.is_a(kind)]
    return mean(those) * 100 if those else None


def real(report: Report, scanners: Sequence[Scanner], home: Path, sample: int) -> list[Found]:
    """A home whose secrets were replaced before we got it: ours on all of it, everybody on some
    lines of it."""
    command = [sys.executable, str(Path(__file__).with_name("untouched.py")), str(home)]
    told = msgspec.json.decode(run(command, clean_env(home, home)).output, type=Untouched)
    lines = _sample_lines(home, sample)
    table: list[list[Cell]] = [
        [
            "ours, whole records",
            told.lines,
            len(told.flagged),
            len(told.flagged) / told.lines * 1000,
        ]
    ]
    for scanner in scanners:
        flagged = sum(bool(rules) for _, rules in scanner.scan(lines).redacted)
        table.append(
            [f"{scanner.name}, single lines", len(lines), flagged, flagged / len(lines) * 1000]
        )
    note = (
        f"{told.files} sessions, {told.size / 1e6:.0f} MB, whose authors had replaced most secrets."
    )
    report.add(
        Table(
            "Redaction: lines of real transcripts flagged",
            ["", "lines", "flagged", "per 1,000"],
            table,
            note,
        ),
        Check(
            "redaction: lines of real transcripts flagged",
            len(told.flagged) / told.lines * 100,
            0.5,
            " %",
        ),
        Check(
            "redaction: ids, names and signatures changed in real transcripts",
            told.structure,
            0,
            "",
        ),
        Check("redaction: real records broken", told.broken, 0, ""),
    )
    return told.flagged


def whole(report: Report, homes: Sequence[Path]) -> None:
    """Whole transcripts of real homes, with secrets planted among their records."""
    table: list[list[Cell]] = []
    totals = WholeTranscripts()
    places = 0
    for home in homes:
        command = [sys.executable, str(Path(__file__).with_name("whole_transcripts.py")), str(home)]
        told = msgspec.json.decode(
            run(command, clean_env(home, home)).output, type=WholeTranscripts
        )
        false = sum(told.false.values())
        table.append(
            [
                home.parent.name,
                told.files,
                told.size / 1e6,
                told.true,
                false,
                false / told.size * 1e7,
                told.planted,
                told.found / max(1, told.planted),
            ]
        )
        totals.size += told.size
        totals.planted += told.planted
        totals.found += told.found
        places += false
    columns = ["", "files", "MB", "known places", "false places", "per 10 MB", "planted", "found"]
    note = "Known: secrets that these transcripts hold. Planted: one record in 200, templates of mentions.py."
    report.add(
        Table("Redaction: whole transcripts", columns, table, note),
        Check("redaction: false places per 10 MB", places / totals.size * 1e7, 1, ""),
        Check(
            "redaction: secrets planted in transcripts found",
            totals.found / max(1, totals.planted),
            0.95,
            "",
            floor=True,
        ),
    )


def _sample_lines(home: Path, count: int) -> list[str]:
    """Of every session as many; lines of its strings, not the strings of its structure."""
    rng, lines = Random("real lines"), list[str]()
    paths = [path for path in transcripts(home) if path.suffix == ".jsonl"]
    for path in paths:
        long = (text for strings in texts(path, _ENOUGH) for text in strings if "\n" in text)
        those = [line for text in long for line in text.split("\n") if line.strip()]
        lines += rng.sample(those, min(len(those), count // len(paths)))
    return lines


def _listed(outcomes: Iterable[Outcome], which: Callable[[Outcome], bool]) -> str:
    """Of the part that may be tuned on."""
    those = (one for one in outcomes if one.case.split == DEV and which(one))
    return "".join(
        f"{one.case.rule}\t{one.case.carrier}\t{one.text!r}\t{_state(one)}\n" for one in those
    )


def _state(one: Outcome) -> str:
    if one.refused:
        return REFUSED
    return repr(one.left) if one.left != one.text else "untouched"


def quality(
    report: Report, scanners: Sequence[Scanner], corpus: Path, every: int
) -> tuple[list[Outcome], list[Flagged]]:
    """What is found and what is spared; the peers on one case in `every`."""
    examples = rows(corpus / "secrets-dev.jsonl.gz")
    outcomes = recall(report, scanners, cases(examples), every)
    labelled(report, scanners, examples, every)
    mentioned(report, scanners[0])
    return outcomes, harmless(report, scanners, _EACH, every)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the peers on a twelfth of the cases")
    parser.add_argument("--no-peers", action="store_true", help="ours alone")
    parser.add_argument("--corpus", type=Path, default=Path(__file__).parents[2] / "shared/corpus")
    parser.add_argument(
        "--home", type=Path, help="a folder dev-home.tar.xz was unpacked in: real transcripts too"
    )
    parser.add_argument(
        "--misses", type=Path, help="write what was missed here, of the part that may be tuned on"
    )
    parser.add_argument(
        "--inexact", type=Path, help="write here where too much or a letter too few was taken"
    )
    parser.add_argument(
        "--flagged", type=Path, help="write the harmless lines that were flagged here"
    )
    return parser.parse_args()


def main() -> None:
    chosen = options()
    report = Report()
    scanners = [ours(), *([] if chosen.no_peers else find_peers())]
    outcomes, flagged = quality(report, scanners, chosen.corpus, 12 if chosen.quick else 1)
    lines = [f"{' '.join(one.rules)}\t{one.kind}\t{one.line}" for one in flagged]
    if chosen.home:
        whole(report, [chosen.home])
        lines += [
            f"{one.rule}\t{one.where}\t{one.context!r}"
            for one in real(report, scanners, chosen.home, _LINES)
        ]
    if chosen.misses:
        chosen.misses.write_text(_listed(outcomes, lambda one: not one.gone))
    if chosen.inexact:
        chosen.inexact.write_text(_listed(outcomes, lambda one: one.gone and not one.exact))
    if chosen.flagged:
        chosen.flagged.write_text("\n".join(lines) + "\n")
    show(report.targets())


if __name__ == "__main__":
    main()
