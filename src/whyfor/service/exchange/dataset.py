"""export --dataset: turns as JSON lines, with what came of them, and a datasheet that counts what
is in it and what was removed."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from whyfor import __version__
from whyfor.agents import RECORDED
from whyfor.agents.base import flatten
from whyfor.agents.tools import command_of, tool_kind, was_denied
from whyfor.config import Settings
from whyfor.files import replacing
from whyfor.model.checkpoints import NOT_THEN
from whyfor.model.errors import NotFound
from whyfor.model.events import StoredEvent
from whyfor.model.printed import printed
from whyfor.model.query import SessionFilter
from whyfor.model.reports import Conversation
from whyfor.model.times import to_iso
from whyfor.model.turns import Turn
from whyfor.privacy.redacted_text import redacted
from whyfor.store.open import OpenStore, reading
from whyfor.story.command_families import check_in
from whyfor.story.session_lookup import load_conversation, parse_filters

TEXT_MAX = 20_000  # characters of a prompt or an answer
STEP_MAX = 4_000  # of what a tool was given, and of its result
_CUT = "\n[cut]"


class DatasetLabels(msgspec.Struct, frozen=True):
    """What came of a turn. None means that it is not known."""

    commit_made: bool | None  # None: no commit of its project is known here
    tests_passed: bool | None  # the last check of the turn, if its own exit code is known
    rejected: bool  # a call was denied, the turn was interrupted, or the person went back before it


class DatasetStep(msgspec.Struct, frozen=True):
    """One call of a tool."""

    tool: str
    kind: str
    input: str
    outcome: str  # ok | failed | denied | unknown
    exit_code: int | None
    result: str


class DatasetTurn(msgspec.Struct, frozen=True):
    """One line: what was asked, what was done, what was answered."""

    agent: str
    session: str  # a hash: the same for the turns of one session
    project: str | None
    turn: int
    at: str | None
    models: list[str]
    prompt: str
    steps: list[DatasetStep]
    answer: str
    labels: DatasetLabels


class Datasheet(msgspec.Struct):
    """What is in a dataset, and what is not."""

    made_by: str
    made_at: str | None
    since: str | None
    until: str | None
    sessions: int = 0
    turns: int = 0
    steps: int = 0
    commit_made: int = 0
    commit_unknown: int = 0
    tests_passed: int = 0
    tests_failed: int = 0
    tests_unknown: int = 0
    rejected: int = 0
    by_agent: dict[str, int] = {}
    by_project: dict[str, int] = {}
    secrets_removed: dict[str, int] = {}
    texts_cut: int = 0
    turns_without_prompt: int = 0
    recordings_left_out: int = 0
    subagents: str = "left out; their results stand in their callers' turns"
    thinking: str = "left out"
    text_max: int = TEXT_MAX
    step_max: int = STEP_MAX


def export_dataset(
    settings: Settings, output: Path, where: SessionFilter, now: int
) -> tuple[Datasheet, Path]:
    """Write turns to a file, and the datasheet beside it; return it and its path. Nothing is
    written if redaction fails. Raises NotFound if no session fits."""
    sheet = Datasheet(f"whyfor {__version__}", to_iso(now), where.since, where.until)
    with reading(settings) as library:
        sessions = library.sessions.matching(
            parse_filters(library, where), limit=None, subagents=False
        )
    if not sessions:
        raise NotFound("no session fits", "Give another --since, or --project.")
    counts: dict[str, Counter[str]] = {"agent": Counter(), "project": Counter()}
    secrets: Counter[str] = Counter()
    with replacing(output) as file:
        for session in sessions:
            if session.agent in RECORDED:
                sheet.recordings_left_out += 1
                continue
            found = load_conversation(settings, session.name, whole=False)
            with reading(settings) as library:
                rows = list(_turns(library, found, sheet))
            clean, secret = redacted(settings, rows, rendered=False, session=session.session_id)
            secrets.update(secret.counts)
            sheet.sessions += bool(clean)
            _write(file, clean, sheet, counts)
    sheet.by_agent = dict(counts["agent"].most_common())
    sheet.by_project = dict(counts["project"].most_common())
    sheet.secrets_removed = dict(sorted(secrets.items()))
    beside = output.with_name(f"{output.name}.datasheet.json")
    with replacing(beside) as file:
        file.write(msgspec.json.format(msgspec.json.encode(sheet), indent=2) + b"\n")
    return sheet, beside


def _write(
    file: BinaryIO, rows: list[DatasetTurn], sheet: Datasheet, counts: dict[str, Counter[str]]
) -> None:
    for row in rows:
        file.write(msgspec.json.encode(row) + b"\n")
        labels = row.labels
        sheet.turns += 1
        sheet.steps += len(row.steps)
        sheet.commit_made += labels.commit_made is True
        sheet.commit_unknown += labels.commit_made is None
        sheet.tests_passed += labels.tests_passed is True
        sheet.tests_failed += labels.tests_passed is False
        sheet.tests_unknown += labels.tests_passed is None
        sheet.rejected += labels.rejected
        counts["agent"][row.agent] += 1
        counts["project"][row.project or "none"] += 1


def _turns(library: OpenStore, found: Conversation, sheet: Datasheet) -> Iterator[DatasetTurn]:
    session = found.session
    by_turn: dict[int, list[StoredEvent]] = {}
    for event in found.events:
        if event.seq >= session.own_from:
            by_turn.setdefault(event.turn, []).append(event)
    committed = _committed(library, found)
    unlinked = False if _knows_commits(library, found) else None
    for turn in found.turns:
        events = by_turn.get(turn.turn, [])
        if not events:
            continue
        if not turn.prompt:
            sheet.turns_without_prompt += 1
            continue
        steps = [_step(call, result, sheet) for call, result in _calls(events)]
        yield DatasetTurn(
            agent=session.agent,
            session=hashlib.sha256(session.name.encode("utf-8", "replace")).hexdigest()[:16],
            project=session.project,
            turn=turn.turn,
            at=to_iso(turn.started_at),
            models=session.models,
            prompt=_cut(turn.prompt, TEXT_MAX, sheet),
            steps=steps,
            answer=_cut(turn.closing or "", TEXT_MAX, sheet),
            labels=DatasetLabels(
                commit_made=_commits(events)
                or any(_touches(turn, one) for one in committed)
                or unlinked,
                tests_passed=_tests_passed(events),
                rejected=turn.interrupted
                or turn.turn in found.abandoned
                or any(step.outcome == "denied" for step in steps),
            ),
        )


def _committed(library: OpenStore, found: Conversation) -> list[tuple[int, int]]:
    """Return the events that became part of commits."""
    ranges: list[tuple[int, int]] = []
    for checkpoint in library.checkpoints.of_sessions([found.session.id]).values():
        for part in checkpoint.parts:
            if part.name == found.session.name:
                ranges += part.ranges
    return ranges


def _knows_commits(library: OpenStore, found: Conversation) -> bool:
    """Whether commits of the session's project were looked at: else nobody knows of none."""
    project = found.session.project
    if project is None:
        return False
    filters = parse_filters(library, SessionFilter(identity=project))
    return library.stats.commits(filters, NOT_THEN)[1] > 0


def _commits(events: list[StoredEvent]) -> bool:
    """Whether a command of the turn made a commit, as git printed."""
    return any(
        result is not None
        and "commit" in command_of(call.get("input"))
        and not result.get("failed")
        and bool(printed(result.text))
        for call, result in _calls(events)
    )


def _touches(turn: Turn, events: tuple[int, int]) -> bool:
    return turn.first_seq <= events[1] and events[0] <= turn.last_seq


def _calls(events: list[StoredEvent]) -> Iterator[tuple[StoredEvent, StoredEvent | None]]:
    results = {e.get("id"): e for e in events if e.kind == "tool.result"}
    for event in events:
        if event.kind == "tool.call":
            yield event, results.get(event.get("id"))


def _step(call: StoredEvent, result: StoredEvent | None, sheet: Datasheet) -> DatasetStep:
    given: Any = call.get("input")
    code = result.get("exit_code") if result else None
    return DatasetStep(
        tool=call.name or "unknown",
        kind=tool_kind(call.name or "", "", given) or "other",
        input=_cut(command_of(given) or flatten(given), STEP_MAX, sheet),
        outcome=_outcome(result),
        exit_code=code if isinstance(code, int) else None,
        result=_cut(result.text if result else "", STEP_MAX, sheet),
    )


def _outcome(result: StoredEvent | None) -> str:
    if result is None:
        return "unknown"
    if was_denied(result.data, result.text):
        return "denied"
    return "failed" if result.get("failed") else "ok"


def _tests_passed(events: list[StoredEvent]) -> bool | None:
    """Return whether the last check of a turn passed; None if there was none, or a pipe or
    another command hides how it ended."""
    last: bool | None = None
    for call, result in _calls(events):
        check = check_in(command_of(call.get("input")))
        if check is None or result is None or was_denied(result.data, result.text):
            continue
        last = not result.get("failed") if check.decides else None
    return last


def _cut(text: str, most: int, sheet: Datasheet) -> str:
    if len(text) <= most:
        return text
    sheet.texts_cut += 1
    return text[:most] + _CUT
