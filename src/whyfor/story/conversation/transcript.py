"""A whole conversation in order, calls with their results; for the terminal and for exports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import Any

import msgspec

from whyfor.model.conversation import TranscriptCall, TranscriptEntry
from whyfor.model.events import StoredEvent
from whyfor.model.paths import is_whole_path, path_within, shorten_paths
from whyfor.model.sessions import Session
from whyfor.model.text import count, label
from whyfor.story.conversation.calls import call_outcome, diff, main_argument, question_calls

_Results = dict[Any, StoredEvent]
_Told = tuple[str, str] | None  # kind and text; None: nothing to show


class TranscriptFilter(msgspec.Struct, frozen=True):
    """Which entries are wanted. Calls count as one row if nothing wanted is between them."""

    kinds: frozenset[str]
    details: bool = True  # of calls: what they were given, what they changed, what came back


def transcript(
    events: Iterable[StoredEvent],
    session: Session,
    wanted: TranscriptFilter,
    abandoned: Set[int] = frozenset(),
) -> Iterator[TranscriptEntry]:
    """Yield the entries of a conversation; calls in a row are one entry."""
    events = list(events)
    results = {_ident(event): event for event in events if event.kind == "tool.result"}
    questions = question_calls(events)
    run: list[StoredEvent] = []

    def entry(event: StoredEvent, kind: str, text: str = "") -> TranscriptEntry:
        return TranscriptEntry(
            kind, event.seq, event.turn, event.created_at, text, event.turn in abandoned
        )

    def closed() -> Iterator[TranscriptEntry]:
        if run:
            made = entry(run[0], "calls")
            made.calls = [_call(call, results, session, wanted.details) for call in run]
            run.clear()
            yield made

    for event in events:
        if event.kind == "tool.call":
            if _ident(event) not in questions:  # the question itself is an event
                run.append(event)
            continue
        tell = _TELL.get(event.kind)
        told = tell(event) if tell else None
        if told is None or told[0] not in wanted.kinds:
            continue
        yield from closed()
        made = entry(event, *told)
        if made.kind == "question":
            made.reply = _reply(results.get(_ident(event)) or event)
        yield made
    yield from closed()


def _ident(event: StoredEvent) -> Any:
    return event.get("id")


# -- one event -----------------------------------------------------------------------------------


def _prompt(event: StoredEvent) -> _Told:
    kind = "prompt" if event.actor == "user" else "task"
    return kind, event.text or "(image)"


def _said(event: StoredEvent) -> _Told:
    return ("said", event.text) if event.text.strip() else None


def _thinking(event: StoredEvent) -> _Told:
    return ("thinking", event.text) if event.text.strip() else None


def _question(event: StoredEvent) -> _Told:
    return "question", event.text


def _answer(event: StoredEvent) -> _Told:
    data = event.data or {}
    answers = data.get("answers")
    return ("reply", _reply(event)) if answers and isinstance(answers, dict) else None


def _reply(event: StoredEvent) -> str:
    """Return what a person chose, for all questions of a result."""
    answers = event.get("answers")
    return "; ".join(map(str, answers.values())) if isinstance(answers, dict) else ""


def _error(event: StoredEvent) -> _Told:
    return "error", event.text


def _compaction(event: StoredEvent) -> _Told:
    data = event.data or {}
    if data.get("summary"):
        return None
    before, after = data.get("preTokens"), data.get("postTokens")
    if before:
        return "compaction", f"{count(before)} → {count(after)} tokens"
    return "compaction", label(str(data.get("trigger") or "summary"))


def _completed(event: StoredEvent) -> _Told:
    data = event.data or {}
    return ("interrupted", "") if data.get("interrupted") else None


def _changed(event: StoredEvent) -> _Told:
    data = event.data or {}
    if data.get("command"):
        return "command", event.text
    if data.get("rolled_back_turns") or data.get("rewound_to"):
        return "rewound", ""
    return None


_TELL: dict[str, Callable[[StoredEvent], _Told]] = {
    "user.prompt": _prompt,
    "assistant.message": _said,
    "assistant.thinking": _thinking,
    "question.asked": _question,
    "tool.result": _answer,
    "error": _error,
    "compaction": _compaction,
    "turn.completed": _completed,
    "status.changed": _changed,
}


# -- one call ------------------------------------------------------------------------------------


def _call(call: StoredEvent, results: _Results, session: Session, details: bool) -> TranscriptCall:
    name = label(call.name) or "?"
    if not details:
        return TranscriptCall(name)
    result = results.get(_ident(call))
    given = main_argument(call)
    return TranscriptCall(
        name,
        argument=(path_within if is_whole_path(given) else shorten_paths)(given, session.cwd),
        diff=diff(call, result),
        result=result.text if result is not None else None,
        outcome=call_outcome(result),
        exit_code=result.get("exit_code") if result is not None else None,
    )
