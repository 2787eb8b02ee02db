"""Alerts: how many a monitor would have sent of real sessions, and how many of them were right.

attention_labels.jsonl says of each alert of level `act` whether somebody who read the session found
it true, twice: its id is a hash of session, cause and turn, and says nothing of them. An alert
without a label counts as wrong until it is read: `whyfor attention --replay --json` shows it.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from whyfor import config
from whyfor.model.query import SessionFilter
from whyfor.service.attention import replay_attention

from ingesting import Place
from report import Cell, Check, Report, Table

_LABELS = Path(__file__).parent / "attention_labels.jsonl"


def alerts_of_corpus(report: Report, places: list[Place]) -> None:
    """Replay all sessions of these homes, and compare what would have been told with the labels."""
    labels = [json.loads(line) for line in _LABELS.read_text().splitlines()]
    known = {one["id"]: one["first"] and one["second"] for one in labels}
    sessions = 0
    told: Counter[tuple[str, str]] = Counter()
    right: Counter[str] = Counter()
    unread: list[str] = []
    for place in places:
        assert place.ours is not None
        found = replay_attention(config.load(place.ours.env), SessionFilter())
        sessions += found.sessions
        for one in found.firings:
            firing = one.firing
            told[firing.found.cause, firing.level] += 1
            if firing.level == "act":
                right[firing.found.cause] += bool(known.get(firing.id))
                unread += [] if firing.id in known else [firing.id]
    rows: list[list[Cell]] = []
    for (cause, level), count in sorted(told.items(), key=lambda item: (item[0][1], -item[1])):
        true = right[cause] if level == "act" else None
        rows.append([cause, level, count, 100 * count / sessions, true])
    act = sum(count for (_, level), count in told.items() if level == "act")
    note = f"{sessions} sessions. Read twice by one person; not read yet: {len(unread)}."
    columns = ["cause", "level", "told", "per 100 sessions", "judged true"]
    report.add(
        Table("What the monitor would have told", columns, rows, note),
        Check(
            "alerts of level act judged true",
            sum(right.values()) / max(act, 1),
            0.9,
            "",
            floor=True,
        ),
        Check("alerts of level act per 100 sessions", 100 * act / sessions, 5, ""),
    )
