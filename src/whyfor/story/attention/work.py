"""Work: what matters of a session's events to whoever supervises it, kept as they come.

A session has one, and each of its subagents. Nothing here knows the time: detectors do.
"""

from __future__ import annotations

from typing import Any

import msgspec

from whyfor.agents.edits import asked_edits, first_text, written_paths
from whyfor.agents.tools import command_of, ends_with_turn, is_in_background, tool_kind
from whyfor.model.events import StoredEvent
from whyfor.model.text import one_line
from whyfor.model.windows import context_window
from whyfor.story.attention.texts import (
    Trouble,
    api_trouble,
    conflict_in,
    error_digest,
    failure_kind,
    git_words,
    no_network,
    says_nothing,
    settles_conflict,
    text_digest,
)
from whyfor.story.command_families import CheckCommand, check_in

WALL = 3  # times in a row
_PENDING = 60  # calls without a result that are kept
_KEPT = 200  # of each count in a turn
_WRITES = 400  # files
_ANSWERS = ("assistant.message", "tool.call", "assistant.thinking")
# Asked again and again by their nature, or by a person's answer.
_POLLS = frozenset("todo mode tools question plan subagent".split())
_POLL_NAMES = ("output", "wait", "poll", "stdin", "status", "sleep")
_SHOWN = 120
_MOVES = frozenset("commit merge rebase cherry-pick reset revert switch".split())


class Call(msgspec.Struct, frozen=True):
    """A tool call."""

    id: str
    seq: int
    at: int
    name: str
    kind: str
    command: str  # of a shell
    same: bytes  # equal for the same tool with the same arguments
    writes: tuple[str, ...] = ()
    edits: tuple[tuple[bytes, bytes], ...] = ()  # what goes, what comes
    polls: bool = False
    check: CheckCommand | None = None

    @property
    def shown(self) -> str:
        """What it does, in one line."""
        words = one_line(self.command) or ", ".join(self.writes) or self.name
        return words if len(words) <= _SHOWN else words[: _SHOWN - 1] + "…"


class Row(msgspec.Struct, frozen=True):
    """Things of one kind, one after the other."""

    count: int
    first: Call
    at: int  # of the last of them
    seq: int
    text: str = ""
    refused: bool = False


class Passed(msgspec.Struct, frozen=True):
    """A check that passed after the last edit of its turn."""

    family: str
    at: int
    seq: int


class OpenQuestion(msgspec.Struct, frozen=True):
    at: int
    seq: int
    text: str


class PromptSize(msgspec.Struct, frozen=True):
    """The size of the last request to the model."""

    size: int
    window: int
    model: str
    at: int


class Work(msgspec.Struct):
    """Of a session or of one of its subagents."""

    agent: str
    child: str = ""
    turn: int = 0
    open: bool = False  # a turn is at work
    turn_at: int = 0
    over_at: int = 0  # when the turn ended, if it did so by itself
    last_kind: str = ""
    last_at: int = 0
    last_seq: int = 0
    closing: str = ""
    calls: dict[str, Call] = {}  # without a result
    failing: Row | None = None  # failed calls in a row
    wall: Row | None = None  # the same call, refused or failed in a row
    walled: set[bytes] = set()  # calls of the turn that were refused or failed WALL times in a row
    refused: Row | None = None  # calls in a row that nobody allowed
    repeats: dict[tuple[bytes, bytes], Row] = {}  # by command and error, in a turn
    spins: dict[tuple[bytes, bytes], Row] = {}  # by call and result, since the last edit
    swaps: dict[tuple[str, bytes, bytes], int] = {}  # edits of a turn: file, what goes, what comes
    undone: dict[str, Row] = {}  # by file: an edit was taken back
    trouble: Trouble | None = None
    retries: int = 0  # of one request
    retry_at: int = 0
    network: Row | None = None
    conflict: Row | None = None
    questions: dict[str, OpenQuestion] = {}
    edited_at: int = 0  # the last edit of the turn
    passed: Passed | None = None
    committed: bool = False  # since the last edit
    moved_at: int = 0  # when it changed its branch
    compactions: int = 0
    prompt: PromptSize | None = None
    spent: float | None = None  # dollars of the turn
    wrote: dict[str, int] = {}  # by file: when it was written last
    exited: bool = False
    headless: bool = False  # nobody sits before it


def new_work(agent: str, child: str = "") -> Work:
    """Return work of which nothing is known."""
    work = Work(agent, child)
    work.walled = set()
    for name in ("calls", "repeats", "spins", "swaps", "undone", "questions", "wrote"):
        setattr(work, name, {})
    return work


def moment(event: StoredEvent) -> int:
    """Return when an event happened, by the agent's clock unless that is ahead of ours."""
    if event.created_at is None:
        return event.observed_at
    return min(event.created_at, event.observed_at)


def observe(work: Work, event: StoredEvent) -> None:
    """Add an event to the work it belongs to."""
    at = moment(event)
    act = _ACTS.get(event.kind)
    if act is not None:
        act(work, event, at)
    if event.kind in _HEARD:
        work.last_kind, work.last_at, work.last_seq = event.kind, at, event.seq
    if event.kind in _ANSWERS and event.actor != "user":
        work.trouble, work.retries = None, 0


def observe_prompt(work: Work, model: str | None, size: int | None, at: int) -> None:
    """Add how large the last request was, if the model's window is known and it fits."""
    window = context_window(model)
    if window is None or size is None or size > window:
        work.prompt = None
        return
    work.prompt = PromptSize(size, window, model or "", at)


# -- what events do ------------------------------------------------------------------------------


def _prompted(work: Work, event: StoredEvent, at: int) -> None:
    """A real prompt begins anew; one that is queued belongs to the turn at work."""
    if event.actor != "user":
        work.open = work.open or bool(work.child)
        return
    work.turn, work.open, work.turn_at, work.over_at = event.turn, True, at, 0
    work.failing = work.wall = work.refused = work.network = None
    for counted in (work.repeats, work.spins, work.swaps, work.undone, work.walled):
        counted.clear()
    work.retries = 0  # trouble lasts until the model answers
    if not (event.data or {}).get("queued"):
        work.questions.clear()
        work.calls.clear()
    work.edited_at, work.passed, work.committed = 0, None, False
    work.closing, work.spent, work.exited = "", None, False


def _started(work: Work, event: StoredEvent, _at: int) -> None:
    work.open, work.over_at = True, 0
    work.turn = max(work.turn, event.turn)


def _ended(work: Work, event: StoredEvent, at: int) -> None:
    data = event.data or {}
    stopped = data.get("interrupted") or data.get("failed")
    work.open = False
    work.over_at = 0 if stopped else at
    work.calls.clear()
    work.questions.clear()
    if data.get("interrupted"):
        work.failing = work.wall = work.refused = None


def _opened(work: Work, event: StoredEvent, _at: int) -> None:
    work.headless = work.headless or ends_with_turn(event.data or {}, work.agent)


def _exited(work: Work, _event: StoredEvent, _at: int) -> None:
    work.open, work.exited = False, True
    work.calls.clear()
    work.questions.clear()


def _spoke(work: Work, event: StoredEvent, _at: int) -> None:
    if event.text.strip():
        work.closing = one_line(event.text[:600])


def _asked(work: Work, event: StoredEvent, at: int) -> None:
    ident = first_text(event.data, "id") or f"seq {event.seq}"
    work.questions[ident] = OpenQuestion(at, event.seq, one_line(event.text[:400]))


def _called(work: Work, event: StoredEvent, at: int) -> None:
    if event.actor == "user":
        return
    work.open = True
    call = _call(event, at, work.agent)
    work.calls[call.id] = call
    if len(work.calls) > _PENDING:
        del work.calls[next(iter(work.calls))]


def _call(event: StoredEvent, at: int, agent: str) -> Call:
    data = event.data or {}
    given: Any = data.get("input")
    name = event.name or "unknown"
    kind = tool_kind(name, agent, given)
    command = command_of(given) if kind in ("shell", "typed") else ""
    text = event.text or str(given)
    writes = tuple(written_paths(given, event.text)) if kind not in ("shell", "typed") else ()
    edits: list[tuple[bytes, bytes]] = []
    if writes and isinstance(given, dict):
        for each in asked_edits(given):
            if each.old and each.new and each.whole is None:
                edits.append((text_digest(each.old), text_digest(each.new)))
    polls = kind in _POLLS or any(word in name.lower() for word in _POLL_NAMES)
    return Call(
        id=first_text(data, "id") or f"seq {event.seq}",
        seq=event.seq,
        at=at,
        name=name,
        kind=kind,
        command=command,
        same=text_digest(f"{name}\0{command or text}"),
        writes=writes,
        edits=tuple(edits),
        polls=polls or "sleep " in command,
        check=check_in(command) if command and not is_in_background(given, "") else None,
    )


def _returned(work: Work, event: StoredEvent, at: int) -> None:
    ident = first_text(event.data, "id")
    work.questions.pop(ident, None)
    call = work.calls.pop(ident, None)
    if call is None or event.actor == "user":
        return
    failed = failure_kind(event, work.agent)
    _count_failing(work, call, event, at, failed)
    _count_same(work, call, event, at, failed)
    if failed is None or says_nothing(event.text):
        _count_spins(work, call, event, at)
    if call.kind in ("shell", "typed", "web", "fetch"):
        _look_around(work, call, event, at, failed)
    if failed is None:
        _succeeded(work, call, event, at)


def _count_failing(work: Work, call: Call, event: StoredEvent, at: int, failed: str | None) -> None:
    """A person's no ends a row: somebody is there. Echoes and searches without a find are
    nothing."""
    if failed == "echo" or (failed == "failed" and says_nothing(event.text)):
        return
    if failed in (None, "no"):
        work.failing = None
        return
    work.failing = _next(work.failing, call, event, at)


def _count_same(work: Work, call: Call, event: StoredEvent, at: int, failed: str | None) -> None:
    if failed == "echo":
        return
    if failed in (None, "no"):
        work.wall = work.refused = None
        return
    refused = failed == "blocked"
    same = work.wall if work.wall and work.wall.first.same == call.same else None
    work.wall = _next(same, call, event, at, refused=refused)
    if work.wall.count >= WALL:
        work.walled.add(call.same)
    work.refused = _next(work.refused, call, event, at, refused=True) if refused else None
    if failed == "failed" and not says_nothing(event.text):
        key = (call.same, error_digest(event.text))
        _bounded(work.repeats)[key] = _next(work.repeats.get(key), call, event, at)


def _count_spins(work: Work, call: Call, event: StoredEvent, at: int) -> None:
    """The same call with the same result, and nothing edited between."""
    if call.writes:
        work.spins.clear()
        return
    if call.polls:
        return
    key = (call.same, error_digest(event.text))
    _bounded(work.spins)[key] = _next(work.spins.get(key), call, event, at)


def _look_around(work: Work, call: Call, event: StoredEvent, at: int, failed: str | None) -> None:
    """What a command says of the network and of git."""
    line = no_network(call.command, event.text) if failed == "failed" else ""
    if line:
        work.network = _next(work.network, call, event, at, text=line)
    elif work.network and failed is None and call.kind == work.network.first.kind:
        same = call.command.split(" ", 1)[0] == work.network.first.command.split(" ", 1)[0]
        work.network = None if same else work.network
    files = conflict_in(call.command, event.text)
    if files is not None:
        words = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
        work.conflict = _next(None, call, event, at, text=words)
    elif failed is None and settles_conflict(call.command):
        work.conflict = None


def _succeeded(work: Work, call: Call, event: StoredEvent, at: int) -> None:
    for path in call.writes:
        work.wrote[path] = at
        if len(work.wrote) > _WRITES:
            del work.wrote[next(iter(work.wrote))]
    if call.writes:
        work.edited_at, work.passed, work.committed = at, None, False
        _count_undone(work, call, event, at)
    check = call.check
    if check is not None and work.edited_at:
        ended = check.decides and not is_in_background(None, event.text)
        work.passed = Passed(check.family, at, event.seq) if ended else None
    if "git" in call.command:
        words = git_words(call.command)
        work.committed = work.committed or "commit" in words
        work.moved_at = work.moved_at if _MOVES.isdisjoint(words) else at


def _count_undone(work: Work, call: Call, event: StoredEvent, at: int) -> None:
    path = call.writes[0]
    for gone, come in call.edits:
        if work.swaps.pop((path, come, gone), None) is not None:
            work.undone[path] = _next(work.undone.get(path), call, event, at)
        elif len(work.swaps) < _KEPT:
            work.swaps[path, gone, come] = event.seq


def _erred(work: Work, event: StoredEvent, at: int) -> None:
    """One that says which attempt it was is tried again; any other is the last word."""
    attempt = (event.data or {}).get("attempt")
    if isinstance(attempt, int):
        work.retries, work.retry_at = attempt, at
        return
    work.trouble = api_trouble(event, at)


def _compacted(work: Work, _event: StoredEvent, _at: int) -> None:
    work.compactions += 1
    work.prompt = None


def _next(
    row: Row | None,
    call: Call,
    event: StoredEvent,
    at: int,
    *,
    text: str = "",
    refused: bool = False,
) -> Row:
    words = text or _reason(event.text)
    if row is None:
        return Row(1, call, at, event.seq, words, refused)
    return Row(row.count + 1, row.first, at, event.seq, words, row.refused and refused)


def _reason(text: str) -> str:
    """The line of a result that says most: the last that is not empty, of a short one the first."""
    lines = [line for line in text[:4000].splitlines() if line.strip()]
    if not lines:
        return ""
    return one_line(lines[0] if len(lines) < 4 else lines[-1])[:160]


def _bounded(rows: dict[tuple[bytes, bytes], Row]) -> dict[tuple[bytes, bytes], Row]:
    if len(rows) > _KEPT:
        del rows[next(iter(rows))]
    return rows


_HEARD = frozenset(
    (
        "user.prompt assistant.message assistant.thinking tool.call tool.result turn.started"
        " turn.completed compaction error session.exited"
    ).split()
)
_ACTS = {
    "session.started": _opened,
    "user.prompt": _prompted,
    "turn.started": _started,
    "turn.completed": _ended,
    "session.exited": _exited,
    "assistant.message": _spoke,
    "question.asked": _asked,
    "tool.call": _called,
    "tool.result": _returned,
    "error": _erred,
    "compaction": _compacted,
}
