"""Events: records in normalised form."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from whyfor.model.flat import flatten

KINDS = (
    "session.started",
    "session.exited",
    "turn.started",
    "turn.completed",
    "user.prompt",
    "assistant.message",
    "assistant.thinking",
    "tool.call",
    "tool.result",
    "approval.requested",
    "approval.resolved",
    "question.asked",
    "status.changed",
    "compaction",
    "subagent.started",
    "subagent.stopped",
    "error",
    "heartbeat",
)


SEQ_BITS = 24  # of an event's number: a session has fewer events than that can count
SEQ_MASK = (1 << SEQ_BITS) - 1


# Of a longer result of a tool, the database has these characters of its beginning and its end;
# the rest is read from its record when somebody asks for it.
RESULT_HEAD, RESULT_TAIL = 1500, 500
_LEFT_OUT = "\n⋯\n"


def shorten_result(text: str) -> str:
    """Return the beginning and the end of a long result."""
    return f"{text[:RESULT_HEAD]}{_LEFT_OUT}{text[-RESULT_TAIL:]}"


def result_ends(text: str) -> tuple[str, str]:
    """Return the beginning and the end apart, of what `shorten_result` returned."""
    return text[:RESULT_HEAD], text[RESULT_HEAD + len(_LEFT_OUT) :]


def call_text(data: dict[str, Any]) -> str:
    """Return the words that a call was given; empty if its data does not say."""
    given = data.get("input")
    return flatten(given) if given else ""


class LongText(msgspec.Struct, frozen=True, gc=False):
    """Where the whole of a text is that was shortened, and how much it is."""

    source: int  # the number of the source that has its record
    generation: int
    at: int  # the byte that the record begins at
    size: int  # bytes
    lines: int


class Event(msgspec.Struct, gc=False):
    """One normalised record, before the store assigns session, seq and turn."""

    kind: str
    key: int
    created_at: int | None
    actor: str  # user | assistant | tool | system | subagent
    text: str = ""
    name: str | None = None  # of the tool
    data: dict[str, Any] | None = None
    whole: LongText | None = None  # set if the text was shortened


class Usage(msgspec.Struct, gc=False):
    """Tokens of one model response. None means unknown, never zero; input excludes cached
    tokens. What follows `reasoning` only matters to its price."""

    key: int
    created_at: int | None
    model: str | None = None
    input: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cache_hour: int | None = None  # of those written to the cache, kept for an hour
    billed: int | None = None  # output with reasoning, if `output` is without
    lump: bool = False  # of several responses together
    terms: str | None = None  # not the usual ones: batch, fast, priority
    reported: float | None = None  # what the agent says it cost, in dollars


class Response(msgspec.Struct, frozen=True, gc=False):
    """One answer of a model: when, in which turn, how large its prompt was, what it cost."""

    at: int  # ms, 0: unknown
    turn: int
    model: str | None
    prompt: int | None  # tokens, with what came from the cache; None: unknown, or of several
    nano: int | None  # billionths of a dollar; None: unknown, or counted in another session


class Touch(msgspec.Struct, gc=False):
    """A file that the session read or wrote, with the event that did it."""

    key: int
    path: str
    action: str  # read | write


class StoredEvent(msgspec.Struct, gc=False):
    """An event with its session, seq and turn."""

    seq: int
    turn: int
    kind: str
    source: str
    confidence: str
    created_at: int | None
    observed_at: int
    actor: str
    text: str
    name: str | None
    data: dict[str, Any] | None
    whole_size: int = 0  # bytes of the whole text, if this one was shortened

    def get(self, name: str) -> Any:
        """Return one value of the data; None if it is not there."""
        return self.data.get(name) if self.data else None


class EventRef(msgspec.Struct, frozen=True, order=True):
    """The place of an event: the number of its session, and its seq."""

    session: int
    seq: int

    @property
    def number(self) -> int:
        """Return both as one number, as the stream's cursors carry them; it sorts the same way."""
        return (self.session << SEQ_BITS) + self.seq

    @classmethod
    def of(cls, number: int) -> EventRef:
        """Return the place from that number."""
        return cls(number >> SEQ_BITS, number & SEQ_MASK)


class EventHead(msgspec.Struct, gc=False):
    """One event without its text. The size of a long text is known without reading it."""

    seq: int
    turn: int
    kind: str
    at: int | None
    size: int
    failure: str | None  # how the text of a failed result begins
    undone: int | None  # turns that were taken back with it
    rewound: str | None


class EventMoment(NamedTuple):
    """One event as an outline needs it: place, kind, actor, time."""

    seq: int
    turn: int
    kind: str
    actor: str
    created_at: int | None


class CallRef(msgspec.Struct, gc=False):
    """An event that belongs to a call: the call itself, its result, an approval request, a
    question, a subagent."""

    seq: int
    kind: str
    ident: str
    size: int


class SpokenWord(msgspec.Struct, frozen=True):
    """One message: by a person (prompt, answer) or an agent (question, its last words of a
    turn)."""

    role: str  # request | answer | question | closing words
    seq: int
    turn: int
    at: int | None
    text: str
    cut: bool = False  # there is more of it

    @property
    def by(self) -> str:
        return "person" if self.role in ("request", "answer") else "agent"


class EventPlace(msgspec.Struct, frozen=True):
    """The place of an event in its session, and its text."""

    seq: int
    text: str
