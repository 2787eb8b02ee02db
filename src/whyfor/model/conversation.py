"""The view of a conversation that pages, terminal and exports show."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from whyfor.model.checkpoints import Checkpoint, Part
from whyfor.model.memory import Injection
from whyfor.model.sessions import Person, Session, Tokens


class DiffRow(msgspec.Struct, gc=False):
    """One line of a diff. The sign `…` is a jump to another place in the file."""

    sign: str  # "+", "-", " " or "…"
    text: str
    old: int | None = None
    new: int | None = None
    marks: list[tuple[int, int]] = []  # where the text differs from the line it replaces


class FileDiff(msgspec.Struct):
    """What happened to one file."""

    path: str
    what: str = "edited"  # edited | written | deleted | moved
    rows: list[DiffRow] = []
    old_path: str | None = None

    @property
    def added(self) -> int:
        return sum(row.sign == "+" for row in self.rows)

    @property
    def removed(self) -> int:
        return sum(row.sign == "-" for row in self.rows)


class TurnRange(msgspec.Struct):
    number: int  # 0: before anything was asked
    first: int
    last: int
    prompt: int | None = None  # its event
    started_at: int | None = None
    ended_at: int | None = None
    tools: int = 0
    failures: int = 0
    subagents: int = 0
    questions: int = 0
    errors: int = 0
    compacted: bool = False
    left: bool = False  # abandoned: the conversation went back to before it

    @property
    def took(self) -> int | None:
        if self.started_at is None or self.ended_at is None:
            return None
        return max(0, self.ended_at - self.started_at)


class Picture(msgspec.Struct, frozen=True):
    seq: int
    index: int
    name: str
    size: int | None
    shown: bool  # whether it can be shown: its bytes are stored


class Item(msgspec.Struct):
    """One thing on a page. `last` is the newest event it covers; when that changes, the item is
    sent again."""

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
    """The part of a change that is shown."""

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
    path: str  # from which the language for highlighting is known
    given: str
    edits: list[ShownEdit]
    output: str
    more: int  # lines
    pictures: list[Picture]
    meta: list[str]
    took: int | None  # None if it was short
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
    """A commit, at the end of the range of events it stems from."""

    kind: ClassVar[str] = "mark"
    checkpoint: Checkpoint
    part: Part
    child: bool


class OutlineEntry(msgspec.Struct):
    """A turn in the outline."""

    turn: TurnRange
    text: str
    tokens: Tokens
    marks: list[CommitItem]


class Section(msgspec.Struct):
    """A turn, or the part of it that is on this page."""

    turn: TurnRange
    items: list[Item]
    tokens: Tokens
    continued: bool


class PageRange(msgspec.Struct):
    """A page of the conversation."""

    first: int
    last: int
    sections: list[Section]


class SkippedPages(msgspec.Struct):
    """Pages that are not shown: the first events of the first and the last of them, and their
    turns."""

    first: int
    last: int
    turns: list[int]


class ChangedPath(msgspec.Struct, frozen=True):
    path: str
    added: int | None
    removed: int | None


class View(msgspec.Struct):
    session: Session
    version: str | None
    parent: Session | None
    resume: str | None
    outline: list[OutlineEntry]
    outline_left: int  # turns that are not in it
    turns: int
    parts: list[PageRange | SkippedPages]
    marks: list[CommitItem]
    files: list[ChangedPath]
    files_left: int
    tokens: Tokens
    last: int  # the newest event
    children: int
    unlinked: list[str] = []  # commits a person took it off
    told: list[Injection] = []  # of earlier sessions, by Whyfor
    who: Person | None = None  # of a team

    @property
    def ends(self) -> bool:
        """Return whether the end of the conversation is shown."""
        return bool(self.parts) and isinstance(self.parts[-1], PageRange)

    @property
    def begun(self) -> set[int]:
        """Return the turns that begin on this page; the outline links to them directly."""
        pages = [part for part in self.parts if isinstance(part, PageRange)]
        sections = [section for page in pages for section in page.sections]
        return {section.turn.number for section in sections if not section.continued}


class Fragment(msgspec.Struct):
    """One more page."""

    session: Session
    stretch: PageRange
    outline: list[OutlineEntry]
    turns: int
    last: int


class TranscriptCall(msgspec.Struct, frozen=True):
    """One tool call with its full result."""

    name: str
    argument: str = ""  # the most informative argument
    diff: list[str] = []
    result: str | None = None  # None if none was recorded
    outcome: str = ""  # denied | failed
    exit_code: int | None = None


class TranscriptEntry(msgspec.Struct):
    """One thing said or done, or several calls in a row."""

    # prompt, by a person | task, by the agent that started it | said | thinking | question |
    # reply | calls | error | compaction | interrupted | command | rewound
    kind: str
    seq: int
    turn: int
    at: int | None
    text: str
    left: bool = False  # abandoned: the conversation went back to before it
    reply: str = ""  # to a question
    calls: list[TranscriptCall] = []
