"""A session in three lines, from its last turns and its status, with no model: what, what
before, what was asked."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from whyfor.model.status import Status, Summary
from whyfor.model.text import one_line, plural
from whyfor.model.turns import Turn

TURNS = 5
NOTHING_YET = "nothing yet"
EVERY = 30_000  # ms
LINE_MAX = 300
PART_MAX = 90
_FILES = 3
_NOUNS = {
    "shell": "command",
    "edit": "edit",
    "read": "read",
    "search": "search",
    "subagent": "subagent",
}
_ENDS = (". ", "! ", "? ", ": ")
_SHORT = 12  # characters that say nothing alone: `Done.`, `Fixed:`


def due(last_made: int | None, completed: int | None, now: int) -> bool:
    """Whether it is time for a new one: a turn completed since the last, or that was half a
    minute ago."""
    if last_made is None or now - last_made >= EVERY:
        return True
    return completed is not None and completed > last_made


def renewed(known: Summary, status: Status) -> Summary:
    """What it does changes more often than what it did: that costs nothing to say."""
    return msgspec.structs.replace(known, current=_cut(_current(status), LINE_MAX))


def summarise(turns: Sequence[Turn], status: Status) -> Summary:
    """Return a session in three lines."""
    asked = [turn for turn in turns if turn.prompt is not None]
    past = [turn for turn in turns if _happened(turn)]
    running = status.phase in ("running", "waiting_approval")
    if running and past and past[-1] is turns[-1]:
        past.pop()  # it is not over
    return Summary(
        current=_cut(_current(status), LINE_MAX),
        recent=_joined([_outcome(turn) for turn in reversed(past[-TURNS:])]) or NOTHING_YET,
        prompt=_cut(asked[-1].prompt or "", LINE_MAX) if asked else "none",
    )


def _current(status: Status) -> str:
    match status.phase:
        case "waiting_approval":
            return f"asks to be allowed: {status.activity or 'something it does not tell'}"
        case "running":
            return status.activity or "running"
        case "waiting" if status.questions:
            return f"asks: {status.questions[0]}"
        case "waiting" if status.failed:
            return f"waits for you; its last turn failed: {status.failed}"
        case "waiting":
            return "waits for you" + (" after an interrupt" if status.interrupted else "")
        case _:
            return f"{status.phase}: {status.evidence}"


def _happened(turn: Turn) -> bool:
    return bool(turn.closing or turn.tools or turn.errors or turn.interrupted)


def _outcome(turn: Turn) -> str:
    """The agent's own words on it, else what it did."""
    said = "" if turn.interrupted else _sentence(turn.closing or "")
    return _cut(said or _did(turn), PART_MAX)


def _did(turn: Turn) -> str:
    parts = ["interrupted"] if turn.interrupted else []
    parts += [plural(number, _NOUNS[kind]) for kind, number in turn.kinds.items() if kind in _NOUNS]
    if turn.files:
        names = [path.replace("\\", "/").rpartition("/")[2] for path in turn.files[:_FILES]]
        more = " …" if len(turn.files) > _FILES else ""
        parts.append(f"wrote {', '.join(names)}{more}")
    if turn.errors:
        parts.append(f"error: {turn.errors[-1]}")
    return ", ".join(parts)


def _sentence(text: str) -> str:
    """Return the first sentence, without Markdown's marks before it."""
    plain = (one_line(line).lstrip("#*->•`_ ") for line in text.splitlines())
    line = next(filter(None, plain), "")
    stops = [line.find(end, _SHORT) for end in _ENDS]
    stop = min((at for at in stops if at > 0), default=len(line))
    return line[:stop].rstrip(".:")


def _joined(parts: list[str]) -> str:
    """As many as fit, the newest first."""
    found = ""
    for part in parts:
        longer = f"{found}; {part}" if found else part
        if len(longer) > LINE_MAX:
            break
        found = longer if part else found
    return found


def _cut(text: str, limit: int) -> str:
    line = one_line(text)
    return line if len(line) <= limit else line[: limit - 1] + "…"
