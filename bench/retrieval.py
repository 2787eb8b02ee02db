"""Does a search find the session that is meant? Known sessions, and questions for each."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, quantiles

import msgspec

from ask import Answer
from ingesting import Place
from measure import clean_env, run
from report import Cell, Check, Report, Table

_HERE = Path(__file__).parent
_NOTE = """MRR and R@5: of the first right session among 20. CPU: of a search in a process that runs.
Baseline: FTS5 rows of 2,000 characters of what was said, the query's words OR-ed, bm25, sessions by their best row.
Commit subjects and questions (dev, dev2, hard) belong to the corpus. "Other words": questions as somebody asks them
who works on the project. "No word in common": the same, without the project's own words. "Invented": sessions and
questions of our own."""


class Question(msgspec.Struct):
    query: str
    gold_sessions: list[str]
    home: int = 0  # which of the corpus' homes; 0: the only one


@dataclass(frozen=True)
class QuestionSet:
    """Questions about the sessions of a place."""

    name: str
    place: Place
    questions: list[Question]


@dataclass(frozen=True)
class Score:
    """How well the questions of a set were answered."""

    mrr: float
    top5: float
    top10: float
    missed: int


def read_questions(path: Path) -> list[Question]:
    return [msgspec.json.decode(line, type=Question) for line in path.read_bytes().splitlines()]


def own_questions(name: str, home: int) -> list[Question]:
    """Our questions about the corpus' sessions: their ids, none of their text."""
    return [each for each in read_questions(_HERE / name) if each.home == home]


def score(found: Sequence[list[str]], questions: Sequence[Question]) -> Score:
    ranks = [
        _rank(ids, question.gold_sessions) for ids, question in zip(found, questions, strict=True)
    ]
    return Score(
        mean(1 / rank if rank else 0.0 for rank in ranks),
        _within(ranks, 5),
        _within(ranks, 10),
        ranks.count(None),
    )


def _rank(found: list[str], gold: list[str]) -> int | None:
    """Position of the first right session, from 1."""
    return next((at for at, session in enumerate(found, 1) if session in gold), None)


def _within(ranks: list[int | None], limit: int) -> float:
    return mean(1.0 if rank and rank <= limit else 0.0 for rank in ranks)


def answers(place: Place, questions: Sequence[Question]) -> list[Answer]:
    """What our search finds."""
    assert place.ours is not None
    output = run(
        [place.ours.python, str(_HERE / "ask.py"), _queries(place, questions)], place.ours.env
    ).output
    return msgspec.json.decode(output, type=list[Answer])


def baseline(place: Place, questions: Sequence[Question]) -> list[list[str]]:
    assert place.ours is not None
    script = str(_HERE / "plain_fts.py")
    database = str(place.ours.store / "whyfor.db")
    command = [sys.executable, script, database, _queries(place, questions)]
    output = run(command, clean_env(place.home, place.scratch)).output
    return msgspec.json.decode(output, type=list[list[str]])


def _queries(place: Place, questions: Sequence[Question]) -> str:
    path = place.scratch / "queries.txt"
    path.write_text("\n".join(question.query for question in questions))
    return str(path)


def retrieval(report: Report, sets: Sequence[QuestionSet], floors: dict[str, float]) -> None:
    """One table over all sets. Those of one name are one set; `floors` are least figures by the
    names of their checks."""
    rows: list[list[Cell]] = []
    checks: list[Check] = []
    for name in dict.fromkeys(each.name for each in sets):
        parts = [each for each in sets if each.name == name]
        questions = [question for part in parts for question in part.questions]
        given = [answer for part in parts for answer in answers(part.place, part.questions)]
        plain = [ids for part in parts for ids in baseline(part.place, part.questions)]
        ours = score([answer.sessions for answer in given], questions)
        theirs = score(plain, questions)
        costs = [answer.seconds * 1000 for answer in given]
        slow = quantiles(costs, n=20)[-1] if len(costs) > 1 else costs[0]
        rows.append([f"{name} ({len(questions)})", *_cells(ours), mean(costs), slow])
        rows.append(["  plain FTS5 over chunks", *_cells(theirs), None, None])
        checks += _checks(name, ours, theirs, floors)
    columns = ["", "MRR", "R@5", "R@10", "not found", "CPU ms", "p95"]
    report.add(Table("Retrieval", columns, rows, _NOTE), *checks)


def _cells(figures: Score) -> list[Cell]:
    return [figures.mrr, figures.top5, figures.top10, figures.missed]


def _checks(name: str, ours: Score, theirs: Score, floors: dict[str, float]) -> list[Check]:
    figures = {f"{name}: MRR": ours.mrr, f"{name}: R@5": ours.top5, f"{name}: R@10": ours.top10}
    found = [
        Check(f"{name}: MRR against plain FTS5", ours.mrr / theirs.mrr, 1.0, floor=True)
        if theirs.mrr
        else Check(f"{name}: MRR", ours.mrr, 0.0, "", floor=True)
    ]
    found += [
        Check(what, value, floors[what], "", floor=True)
        for what, value in figures.items()
        if what in floors
    ]
    return found
