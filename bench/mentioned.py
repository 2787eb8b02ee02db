"""Secrets in plain words: how many mentions of each kind are found, and how many harmless twins
are touched."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

from mentions import MentionCase, mention_cases
from report import Cell, Check, Report, Table
from scanners import Scanner

_NOTE = """Dev: templates the rules were written with. Held out: written before the rules, measured, never listed.
Flagged: the same templates with a placeholder, a reference to a variable or a word in the secret's place."""
_Judged = tuple[MentionCase, bool]  # and whether something was taken out


def mentioned(report: Report, scanner: Scanner) -> None:
    """Judge every template as a text of its own."""
    cases = mention_cases()
    redacted = scanner.scan([case.text for case in cases]).redacted
    judged: list[_Judged] = []
    for case, (left, rules) in zip(cases, redacted, strict=True):
        judged.append((case, case.secret not in left if case.secret else bool(rules)))
    families = sorted({case.family for case in cases})
    strengths = list(dict.fromkeys(case.strength for case in cases if case.secret))
    table = [_row("all", judged)]
    table += [_row(name, [one for one in judged if one[0].family == name]) for name in families]
    table += [_row(name, [one for one in judged if one[0].strength == name]) for name in strengths]
    columns = ["", "dev found", "held out found", "dev flagged %", "held out flagged %"]
    report.add(
        Table("Redaction: secrets in plain words", columns, table, _NOTE),
        Check("redaction: mentions found, held out", _number(table[0][2]), 0.95, "", floor=True),
        Check(
            "redaction: mentions in prose found, held out",
            _number(next(row for row in table if row[0] == "prose")[2]),
            0.85,
            "",
            floor=True,
        ),
        Check("redaction: harmless mentions flagged, held out", _number(table[0][4]), 2, " %"),
    )


def _row(name: str, judged: Sequence[_Judged]) -> list[Cell]:
    cells: list[Cell] = [name]
    for secret, scale in ((True, 1), (False, 100)):
        for held_out in (False, True):
            hits = [
                hit
                for case, hit in judged
                if case.held_out == held_out and bool(case.secret) == secret
            ]
            cells.append(mean(hits) * scale if hits else None)
    return cells


def _number(cell: Cell) -> float | None:
    return cell if isinstance(cell, float) else None
