"""JSON of lines: who wrote them, and why they are there."""

from __future__ import annotations

import msgspec

from whyfor.model.blame import NOT_COMMITTED, BlameRow, FileBlame, LineWho
from whyfor.model.line_counts import FileCounts, RangeCounts
from whyfor.model.times import to_iso
from whyfor.model.why import EarlierLine, GoneText, LineReason


class WireWho(msgspec.Struct, frozen=True, rename={"person": "from"}):
    """Who wrote a line."""

    kind: str  # agent | modified | person | unknown
    agent: str | None
    model: str | None
    session: str | None
    turn: int | None
    call: str | None
    evidence: str | None
    confidence: str | None
    person: str | None  # who shared it; null: it is kept here, or nobody is known


class WireBlameLine(msgspec.Struct, frozen=True):
    line: int
    text: str
    commit: str | None  # null: not committed yet
    path: str  # of the file in that commit
    original_line: int
    author: str
    authored_at: str | None
    summary: str
    who: WireWho
    asked: str | None


class WireBlame(msgspec.Struct, frozen=True):
    path: str
    commit: str | None  # null: the work tree
    lines: list[WireBlameLine]
    counts: dict[str, int]  # lines by kind
    notes: list[str]


def wire_who(who: LineWho) -> WireWho:
    return WireWho(
        kind=who.kind,
        agent=who.agent or None,
        model=who.model,
        session=who.session_id or None,
        turn=who.turn,
        call=who.writer.call if who.writer else None,
        evidence=who.evidence or None,
        confidence=who.confidence,
        person=who.person or None,
    )


def wire_blame(found: FileBlame) -> WireBlame:
    counts: dict[str, int] = {}
    for row in found.rows:
        counts[row.who.kind] = counts.get(row.who.kind, 0) + 1
    lines = [wire_blame_line(row) for row in found.rows]
    return WireBlame(found.path, found.commit, lines, counts, found.notes)


def wire_blame_line(row: BlameRow) -> WireBlameLine:
    committed = row.commit != NOT_COMMITTED
    return WireBlameLine(
        line=row.line,
        text=row.text,
        commit=row.commit if committed else None,
        path=row.path,
        original_line=row.old,
        author=row.author,
        authored_at=to_iso(row.time * 1000) if committed else None,
        summary=row.summary,
        who=wire_who(row.who),
        asked=row.who.asked.text if row.who.asked else None,
    )


# -- why -----------------------------------------------------------------------------------------


class WireIntent(msgspec.Struct, frozen=True):
    title: str
    intent: str
    alternatives: list[str]


class WireEarlierLine(msgspec.Struct, frozen=True):
    commit: str
    authored_at: str | None
    summary: str
    text: str
    who: WireWho
    asked: str | None


class WireSessionHint(msgspec.Struct, frozen=True):
    agent: str
    session: str
    why: str


class WireReason(msgspec.Struct, frozen=True):
    path: str
    line: int
    last: int
    text: list[str]
    commit: str | None
    summary: str
    author: str
    authored_at: str | None
    who: WireWho
    asked: str | None
    question: str | None
    closing: str | None
    tool: str | None
    annotation: WireIntent | None
    history: list[WireEarlierLine]
    nearby: list[WireSessionHint]
    resume: str | None


class WireGone(msgspec.Struct, frozen=True):
    path: str
    text: str
    commit: str
    authored_at: str | None
    summary: str
    who: WireWho
    asked: str | None
    question: str | None
    closing: str | None
    resume: str | None


def wire_reason(found: LineReason) -> WireReason:
    first, last = found.rows[0], found.rows[-1]
    committed = first.commit != NOT_COMMITTED
    note = found.annotation
    return WireReason(
        path=found.path,
        line=first.line,
        last=last.line,
        text=[row.text for row in found.rows],
        commit=first.commit if committed else None,
        summary=first.summary if committed else "",
        author=first.author,
        authored_at=to_iso(first.time * 1000) if committed else None,
        who=wire_who(found.who),
        asked=_asked(found.who),
        question=found.question,
        closing=found.closing,
        tool=found.tool,
        annotation=WireIntent(note.title, note.intent, note.alternatives) if note else None,
        history=[_earlier(line) for line in found.history],
        nearby=[WireSessionHint(n.agent, n.session_id, n.why) for n in found.nearby],
        resume=found.resume,
    )


def wire_gone(found: GoneText) -> WireGone:
    return WireGone(
        path=found.path,
        text=found.text,
        commit=found.commit,
        authored_at=to_iso(found.time * 1000),
        summary=found.summary,
        who=wire_who(found.who),
        asked=_asked(found.who),
        question=found.question,
        closing=found.closing,
        resume=found.resume,
    )


def _earlier(line: EarlierLine) -> WireEarlierLine:
    at = to_iso(line.time * 1000)
    who = wire_who(line.who)
    return WireEarlierLine(line.commit, at, line.summary, line.text, who, _asked(line.who))


def _asked(who: LineWho) -> str | None:
    return who.asked.text if who.asked else None


# -- lines ---------------------------------------------------------------------------------------


class WireFileCounts(msgspec.Struct, frozen=True):
    path: str
    added: int | None  # null: a binary file
    removed: int | None
    agent: int
    agents: dict[str, int]
    modified: int
    person: int
    unknown: int


class WireRangeCounts(msgspec.Struct, frozen=True):
    old: str | None
    new: str
    total: WireFileCounts
    files: list[WireFileCounts]


def wire_range_counts(found: RangeCounts) -> WireRangeCounts:
    files = [_file_counts(file) for file in found.files]
    return WireRangeCounts(found.old, found.new, _file_counts(found.total), files)


def _file_counts(file: FileCounts) -> WireFileCounts:
    return WireFileCounts(
        path=file.path,
        added=file.added,
        removed=file.removed,
        agent=file.agent,
        agents=file.agents,
        modified=file.modified,
        person=file.person,
        unknown=file.unknown,
    )
