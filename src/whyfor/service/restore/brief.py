"""The beginning of a session that is restored in brief: what earlier turns asked, did, decided and
left open, in place of the turns themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.facts import MARKER
from whyfor.model.events import StoredEvent
from whyfor.model.memory import MemoryFilter, Quote, SessionSummary, StoredObservation
from whyfor.model.query import Filters
from whyfor.model.sessions import Session
from whyfor.model.text import clean, plural
from whyfor.recall.block import token_estimate
from whyfor.store.open import OpenStore

_PART_MAX = 12  # lines of one kind, for each session
_LINE_MAX = 400
_NOTES = 500  # that are looked through for those of a session
_FILES = 40
_NOTE_TYPES = {"decision": "Decided", "rule": "Told", "correction": "Corrected", "gotcha": "Beware"}
_SPOKEN = ("user.prompt", "assistant.message", "tool.call", "tool.result", "compaction")


class BriefSize(msgspec.Struct, frozen=True):
    """About how many tokens a conversation has, whole and in brief."""

    turns: int  # word for word
    of_turns: int
    tokens_before: int
    tokens_after: int


def brief_text(library: OpenStore, parts: Iterable[tuple[Session, int]], note: str) -> str:
    """Return what earlier turns of these sessions came to, each up to its event."""
    lines = [f"{MARKER}an earlier conversation in brief; {note}]"]
    for session, last in parts:
        lines += _session_lines(library, session, last)
    return "\n".join(lines)


def _session_lines(library: OpenStore, session: Session, last: int) -> Iterator[str]:
    title = " ".join(clean(session.title or "without a title").split())[:120]
    yield f"{AGENTS[session.agent].title}, {_day(session.started_at)}: {title}"
    summary = library.memory.summary(session.id) or SessionSummary()
    yield from _quoted("Asked", summary.request, last)
    yield from _quoted("Done", summary.completed, last)
    yield from _quoted("Learned", summary.learned, last)
    for note in _notes(library, session, last):
        yield f"{_NOTE_TYPES[note.observation.type]}: {_line(_words(note))}"
    yield from _quoted("Still open", summary.next_steps, last)
    commits = library.checkpoints.of_sessions([session.id]).values()
    for commit in sorted(commits, key=lambda each: each.committed_at)[-_PART_MAX:]:
        if any(part.name == session.name and part.last <= last for part in commit.parts):
            yield f"Committed: {commit.commit[:10]} {_line(commit.subject)}"
    files = session.files_modified
    if files:
        yield f"Files written: {', '.join(files[:_FILES])}"
    yield f"All of it: whyfor show {session.name}"


def _quoted(label: str, quotes: Iterable[Quote], last: int) -> Iterator[str]:
    """Yield the last of these that were said up to an event."""
    said = [quote for quote in quotes if quote.seq <= last]
    for quote in said[-_PART_MAX:]:
        yield f"{label}: {_line(quote.text)}"


def _notes(library: OpenStore, session: Session, last: int) -> list[StoredObservation]:
    """Return decisions, rules and corrections of a session, oldest first, as they hold now."""
    wanted = MemoryFilter(
        Filters(agent=session.agent, since=session.started_at, until=session.ended_at),
        tuple(_NOTE_TYPES),
        ("verified", "stated", "hypothesis"),
    )
    found = []
    for note in library.memory.observations(wanted, _NOTES):
        own = session.session_id in (note.session_id, note.parent_session_id)
        early = all(quote.seq <= last for quote in note.observation.evidence)
        if own and early and not note.superseded_by:
            found.append(note)
    return list(reversed(found[: 2 * _PART_MAX]))


def _words(note: StoredObservation) -> str:
    return note.observation.narrative or note.observation.title


def _line(text: str) -> str:
    line = " ".join(clean(text).split())
    return line if len(line) <= _LINE_MAX else line[: _LINE_MAX - 1].rstrip() + "…"


def _day(at: int | None) -> str:
    if at is None:
        return "unknown date"
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d")


def turns_note(kept: int, turns: int) -> str:
    return f"the last {plural(kept, 'turn')} of {turns} follow word for word"


# -- sizes -----------------------------------------------------------------------------------------


def spoken_tokens(library: OpenStore, parts: Iterable[tuple[Session, int]], since: int = 0) -> int:
    """Return about how many tokens the conversation has, from a time on; what a compaction replaced
    does not count."""
    total = 0
    for session, last in parts:
        size = 0
        for event in library.conversation.events(session.id, 0, last):
            if event.kind == "compaction" and event.text:
                size = 0
            if event.kind in _SPOKEN and (event.created_at or 0) >= since:
                size += _size(event)
        total += size
    return total


def _size(event: StoredEvent) -> int:
    if event.whole_size:
        return event.whole_size // 4
    given = event.get("input") if event.kind == "tool.call" else None
    return token_estimate(msgspec.json.encode(given).decode() if given else event.text)
