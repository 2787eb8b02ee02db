"""JSON of a review: what a change is about to undo."""

from __future__ import annotations

import msgspec

from whyfor.model.review import ChangeReview, ReviewFinding, ReviewLine
from whyfor.model.times import to_iso
from whyfor.model.wire.lines import WireWho, wire_who


class WireDecision(msgspec.Struct, frozen=True):
    kind: str  # request | answer | correction | rule | decision | gotcha | bugfix
    text: str
    question: str | None
    note: str | None  # the id of the note that says it


class WireReviewLine(msgspec.Struct, frozen=True):
    sign: str  # + or -
    line: int
    text: str


class WireFinding(msgspec.Struct, frozen=True):
    kind: str  # undoes | returns | failed | rule
    path: str
    lines: list[WireReviewLine]
    because: str
    decision: WireDecision
    who: WireWho
    asked: str | None
    commit: str | None
    summary: str | None
    authored_at: str | None


class WireTouched(msgspec.Struct, frozen=True):
    path: str
    lines: int
    who: WireWho
    asked: str | None


class WireReview(msgspec.Struct, frozen=True):
    what: str
    files: int
    removed: int
    added: int
    findings: list[WireFinding]
    touched: list[WireTouched]
    left_out: list[str]


def wire_review(found: ChangeReview) -> WireReview:
    touched = []
    for turn in found.touched:
        asked = turn.who.asked.text if turn.who.asked else None
        touched.append(WireTouched(turn.path, turn.lines, wire_who(turn.who), asked))
    return WireReview(
        what=found.what,
        files=found.files,
        removed=found.removed,
        added=found.added,
        findings=[wire_finding(finding) for finding in found.findings],
        touched=touched,
        left_out=found.left_out,
    )


def wire_finding(found: ReviewFinding) -> WireFinding:
    decision = found.decision
    return WireFinding(
        kind=found.kind,
        path=found.path,
        lines=[_line(line) for line in found.lines],
        because=found.because,
        decision=WireDecision(decision.kind, decision.text, decision.question, decision.note),
        who=wire_who(found.who),
        asked=found.who.asked.text if found.who.asked else None,
        commit=found.commit,
        summary=found.summary or None,
        authored_at=to_iso(found.time * 1000) if found.time else None,
    )


def _line(line: ReviewLine) -> WireReviewLine:
    return WireReviewLine(line.sign, line.number, line.text)
