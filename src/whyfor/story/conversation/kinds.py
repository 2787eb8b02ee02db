"""The kinds of things that stand on a session's page, and what they are made with."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from whyfor.model.checkpoints import Checkpoint, Part
from whyfor.model.events import StoredEvent
from whyfor.model.sessions import Session
from whyfor.story.conversation.diffs import DiffRow

FAILED_LINES = 12
OUTPUT_LINES = 60
OUTPUT_CHARS = 6000
DIFF_ROWS = 120
GIVEN_CHARS = 4000
RESULT_CHARS = 2500  # of a subagent's answer


class Limits(msgspec.Struct, frozen=True):
    """How much of one call is shown."""

    failed_lines: int = FAILED_LINES
    lines: int = OUTPUT_LINES
    chars: int = OUTPUT_CHARS
    rows: int = DIFF_ROWS
    given: int = GIVEN_CHARS
    result: int = RESULT_CHARS


LIMITS = Limits()
WHOLE = Limits(20_000, 20_000, 1 << 20, 20_000, 1 << 18, 1 << 18)


class Picture(msgspec.Struct, frozen=True):
    seq: int
    index: int
    name: str
    size: int | None
    shown: bool  # it can be: its bytes are kept


class Item(msgspec.Struct):
    """`last` is the newest event it tells of: it is told anew when that changes."""

    kind: ClassVar[str] = ""
    seq: int
    last: int
    at: int | None


class Prompt(Item):
    kind: ClassVar[str] = "prompt"
    text: str
    pictures: list[Picture]
    by_agent: bool = False  # the task of a subagent
    queued: bool = False  # typed while the agent worked
    more: int = 0  # characters


class MessageItem(Item):
    kind: ClassVar[str] = "words"
    text: str
    more: int = 0


class Thought(Item):
    kind: ClassVar[str] = "thought"
    text: str
    took: int | None
    more: int = 0


class ShownEdit(msgspec.Struct):
    """A change as far as it is shown."""

    path: str
    what: str
    old_path: str | None
    added: int
    removed: int
    rows: list[DiffRow]
    more: int


class ToolCallItem(Item):
    kind: ClassVar[str] = "call"
    family: str
    verb: str
    icon: str
    argument: str
    path: str  # by which its words can be coloured
    given: str
    edits: list[ShownEdit]
    output: str
    more: int  # lines
    pictures: list[Picture]
    meta: list[str]
    took: int | None  # if it is worth telling
    failed: bool = False
    denied: bool = False
    open: bool = False  # no result came
    by_user: bool = False
    unfolded: bool = False


class Run(Item):
    kind: ClassVar[str] = "run"
    items: list[Item]
    number: int
    text: str
    took: int | None


class SubagentItem(Item):
    kind: ClassVar[str] = "sub"
    title: str
    role: str
    task: str
    result: str
    calls: list[ToolCallItem]
    more: int
    session: Session | None
    took: int | None
    failed: bool = False
    open: bool = False
    cut: bool = False


class AnsweredQuestion(msgspec.Struct):
    question: str
    chosen: str
    others: list[str]


class Question(Item):
    kind: ClassVar[str] = "question"
    asked: list[AnsweredQuestion]
    took: int | None
    open: bool


class Decision(Item):
    kind: ClassVar[str] = "decision"
    approved: bool
    what: str
    after: int | None
    by_rule: bool


class Compaction(Item):
    kind: ClassVar[str] = "compaction"
    before: int | None
    after: int | None
    by_person: bool
    summary: str


class ErrorItem(Item):
    kind: ClassVar[str] = "trouble"
    text: str
    number: int = 1


class NoticeItem(Item):
    kind: ClassVar[str] = "notice"
    text: str
    by_user: bool
    more: str = ""


class CommitItem(Item):
    """A commit: the range of events it stems from ends here."""

    kind: ClassVar[str] = "mark"
    checkpoint: Checkpoint
    part: Part
    child: bool


class PageContext(msgspec.Struct):
    """What the events of a page need from elsewhere."""

    session: Session
    results: dict[str, StoredEvent] = {}  # by the call's id
    lines: dict[int, int] = {}  # of results that were cut: all their lines
    sizes: dict[int, int] = {}  # bytes of each event's text
    requests: dict[str, StoredEvent] = {}
    known: set[str] = set()  # calls of the whole conversation
    children: dict[str, Session] = {}  # by the call's id
    # of a child: its first calls, its last words
    inside: dict[int, tuple[list[ToolCallItem], str]] = {}
    limits: Limits = LIMITS
    before: int | None = None  # when the event before the first was
