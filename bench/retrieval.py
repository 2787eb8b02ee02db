"""Known-item retrieval: a commit's subject must find the session that made it."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import mean

import msgspec

from ingesting import Place
from measure import CommandFailed, clean_env, run
from peers import Whyfor
from report import Cell, Check, Report, Table

_NOTE = """Sessions ranked by their first hit among 20 hits.
Baseline: one FTS5 row a session with every string of its records, the query's words OR-ed, bm25."""


class Question(msgspec.Struct):
    query: str
    gold_sessions: list[str]


def _questions(path: Path) -> list[Question]:
    return [msgspec.json.decode(line, type=Question) for line in path.read_bytes().splitlines()]


def _rank(found: list[str], gold: list[str]) -> int | None:
    """Position of the first right session, from 1."""
    return next((at for at, session in enumerate(found, 1) if session in gold), None)


def _scores(ranks: list[int | None]) -> tuple[float, float]:
    reciprocal = mean(1 / rank if rank else 0 for rank in ranks)
    return reciprocal, mean(1.0 if rank and rank <= 5 else 0.0 for rank in ranks)


def _ours(ours: Whyfor, questions: list[Question]) -> tuple[list[list[str]], int]:
    """What each query finds, and how many the program refused: those count as not found."""
    found: list[list[str]] = []
    refused = 0
    for question in questions:
        try:
            found.append(ours.found(question.query))
        except CommandFailed:
            found.append([])
            refused += 1
    return found, refused


def _baseline(place: Place, questions: list[Question]) -> list[list[str]]:
    queries = place.scratch / "queries.txt"
    queries.write_text("\n".join(question.query for question in questions))
    script = Path(__file__).with_name("baseline.py")
    cost = run(
        [sys.executable, str(script), str(place.home), str(queries)],
        clean_env(place.home, place.scratch),
    )
    return msgspec.json.decode(cost.output, type=list[list[str]])


def _row(
    name: str, found: list[list[str]], questions: list[Question], refused: int
) -> tuple[list[Cell], float]:
    ranks = [
        _rank(ids, question.gold_sessions) for ids, question in zip(found, questions, strict=True)
    ]
    reciprocal, top5 = _scores(ranks)
    return [name, reciprocal, top5, ranks.count(None), refused], reciprocal


def retrieval(report: Report, place: Place, path: Path) -> None:
    questions = _questions(path)
    rows: list[list[Cell]] = []
    score: float | None = None
    if place.ours:
        found, refused = _ours(place.ours, questions)
        row, score = _row("whyfor search", found, questions, refused)
        rows.append(row)
    rows.append(
        _row("plain FTS5 over whole sessions", _baseline(place, questions), questions, 0)[0]
    )
    title, columns = (
        f"Retrieval, {len(questions)} queries",
        ["", "MRR", "R@5", "not found", "refused"],
    )
    table = Table(title, columns, rows, _NOTE)
    report.add(table, Check("retrieval MRR", score, 0.92, "", floor=True))
