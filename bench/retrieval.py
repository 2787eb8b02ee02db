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
from measure import CommandFailed, clean_env, run
from report import Cell, Check, Report, Table

_HERE = Path(__file__).parent
_NOTE = """MRR and R@5: of the first right session among 20. CPU: of a search in a process that runs.
Baseline: FTS5 rows of 2,000 characters of what was said, the query's words OR-ed, bm25, sessions by their best row.
Commit subjects and questions (dev, dev2, hard) belong to the corpus. "Other words": questions as somebody asks them
who works on the project. "No word in common": the same, without the project's own words. "Invented": sessions and
questions of our own. And by meaning: the same search after `whyfor memory index`; its weights were chosen on dev2 and hard."""


class _Made(msgspec.Struct):
    sessions: int
    vectors: int
    seconds: float


class _Indexed(msgspec.Struct):
    """What `whyfor memory index` says."""

    made: _Made


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
    by_words = _asked(sets)
    by_meaning = _asked(sets) if _indexed(report, sets) else {}
    rows: list[list[Cell]] = []
    checks: list[Check] = []
    for name, given in by_words.items():
        parts = [each for each in sets if each.name == name]
        questions = [question for part in parts for question in part.questions]
        plain = [ids for part in parts for ids in baseline(part.place, part.questions)]
        ours = score([answer.sessions for answer in given], questions)
        theirs = score(plain, questions)
        rows.append([f"{name} ({len(questions)})", *_cells(ours), *_costs(given)])
        checks += _checks(name, ours, theirs, floors)
        if name in by_meaning:
            meant = score([answer.sessions for answer in by_meaning[name]], questions)
            rows.append(["  and by meaning", *_cells(meant), *_costs(by_meaning[name])])
            checks += _floor_checks(f"{name}, by meaning", meant, floors)
        rows.append(["  plain FTS5 over chunks", *_cells(theirs), None, None])
    columns = ["", "MRR", "R@5", "R@10", "not found", "CPU ms", "p95"]
    report.add(Table("Retrieval", columns, rows, _NOTE), *checks)


def _asked(sets: Sequence[QuestionSet]) -> dict[str, list[Answer]]:
    """What our search finds, by the names of the sets."""
    found: dict[str, list[Answer]] = {}
    for each in sets:
        found.setdefault(each.name, []).extend(answers(each.place, each.questions))
    return found


def _indexed(report: Report, sets: Sequence[QuestionSet]) -> bool:
    """Make the index by meaning of every place, and report what it cost; False if it cannot be
    made here."""
    rows: list[list[Cell]] = []
    for place in {id(each.place): each.place for each in sets}.values():
        assert place.ours is not None
        try:
            cost = place.ours.index()
        except CommandFailed as error:
            report.skip(f"no index by meaning: {error}")
            return False
        told = msgspec.json.decode(cost.output, type=_Indexed)
        speed = told.made.vectors / told.made.seconds if told.made.seconds else None
        rows.append(
            [place.name, told.made.sessions, told.made.vectors, cost.cpu, speed, cost.peak_mb]
        )
    columns = ["", "sessions", "turns", "CPU s", "turns per CPU s", "peak MB"]
    worst = min(
        float(row[4]) for row in rows if isinstance(row[4], float) and int(str(row[2])) > 99
    )
    report.add(
        Table("Index by meaning", columns, rows, "CPU s: with the model, which is made first."),
        Check("index by meaning: turns per CPU s", worst, 30, "", floor=True),
    )
    return True


def _costs(given: Sequence[Answer]) -> list[Cell]:
    costs = [answer.seconds * 1000 for answer in given]
    return [mean(costs), quantiles(costs, n=20)[-1] if len(costs) > 1 else costs[0]]


def _cells(figures: Score) -> list[Cell]:
    return [figures.mrr, figures.top5, figures.top10, figures.missed]


def _checks(name: str, ours: Score, theirs: Score, floors: dict[str, float]) -> list[Check]:
    found = [
        Check(f"{name}: MRR against plain FTS5", ours.mrr / theirs.mrr, 1.0, floor=True)
        if theirs.mrr
        else Check(f"{name}: MRR", ours.mrr, 0.0, "", floor=True)
    ]
    return found + _floor_checks(name, ours, floors)


def _floor_checks(name: str, ours: Score, floors: dict[str, float]) -> list[Check]:
    figures = {f"{name}: MRR": ours.mrr, f"{name}: R@5": ours.top5, f"{name}: R@10": ours.top10}
    return [
        Check(what, value, floors[what], "", floor=True)
        for what, value in figures.items()
        if what in floors
    ]
