"""What an export holds, before it is Markdown or HTML: chapters for commits, lines for what was
said."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Set
from datetime import UTC, datetime

import msgspec

from whyfor.git.place import GitPlace
from whyfor.model.checkpoints import Checkpoint, Part
from whyfor.model.conversation import TranscriptCall, TranscriptEntry
from whyfor.model.events import StoredEvent
from whyfor.model.reports import Conversation
from whyfor.model.sessions import Session
from whyfor.model.stories import MERGE, CommitStory, FullStory, StoryLine
from whyfor.model.text import label, one_line, plain, plural, tokens_text
from whyfor.service.agents import agent_title
from whyfor.store.open import OpenStore
from whyfor.story.commit_stories import reverted_story, story_lines
from whyfor.story.conversation.transcript import TranscriptFilter, transcript
from whyfor.story.whole_text import WholeTexts

_LONG = 200  # lines of a diff or a result; the rest is counted
_ARGUMENT = 200  # characters
_KINDS = {
    "prompt": "request",
    "said": "said",
    "thinking": "thinking",
    "question": "question",
    "reply": "answer",
}
_ROLES = {"request": "request", "question": "question", "answer": "answer", "closing words": "said"}


class DocumentCall(msgspec.Struct, frozen=True):
    """One tool call, as far as it is told."""

    name: str
    argument: str
    diff: str
    result: str
    outcome: str  # denied, failed, or empty

    @property
    def given(self) -> str:
        """The argument as far as there is room for it; cut only here, where no secret is in it
        any more."""
        return self.argument[:_ARGUMENT]


class DocumentLine(msgspec.Struct, frozen=True):
    """One thing that was said or done."""

    role: str  # request | answer, by a person; question | said | thinking | calls, by the agent
    agent: str
    session_id: str
    seq: int
    at: int | None
    text: str
    calls: list[DocumentCall] = []
    left: bool = False  # the conversation was taken back to before it


class Chapter(msgspec.Struct, frozen=True):
    """One commit."""

    story: FullStory
    lines: list[DocumentLine]
    same_as: str | None = None  # the commit whose chapter has the request


class Document(msgspec.Struct, frozen=True):
    title: str
    facts: list[str]
    chapters: list[Chapter] = []
    lines: list[DocumentLine] = []  # of a session


class Narrator:
    """Tells many commits; what they share is read once."""

    def __init__(
        self, library: OpenStore, cwd: GitPlace, *, thinking: bool = False, tools: bool = False
    ) -> None:
        self.library, self.cwd = library, cwd
        self.thinking, self.tools = thinking, tools
        self.texts = WholeTexts(library)
        self.sessions: dict[str, Session] = {}
        self.prompts: dict[int, list[StoredEvent]] = {}
        self.groups: dict[str, list[Checkpoint]] = {}

    def story(self, told: CommitStory) -> FullStory:
        parts = told.checkpoint.parts if told.checkpoint else []
        sessions = {part.name: self._session(part) for part in parts}
        said: list[StoryLine] = []
        spans: list[tuple[int, int, int]] = []
        for part in parts:
            for first, last in part.ranges:
                said += story_lines(part, self._events(part, first, last), first)
                spans.append((sessions[part.name].id, first, last))
        group = self._group(told.checkpoint) if told.checkpoint else []
        return FullStory(
            told,
            said,
            sessions,
            self.library.checkpoints.spent(spans),
            group,
            reverted_story(self.library, self.cwd, told),
        )

    def lines(self, story: FullStory) -> list[DocumentLine]:
        """What was said; what was thought and done in between if it is asked for."""
        said = said_lines(story)
        if not (self.thinking or self.tools) or story.told.checkpoint is None:
            return said
        found: list[DocumentLine] = []
        for part in story.told.checkpoint.parts:
            session = self._session(part)
            events: list[StoredEvent] = []
            for first, last in part.ranges:
                stored = self.library.conversation.events(session.id, first, last)
                events += self.texts.fill(session.id, stored) if self.tools else stored
            own = [
                line
                for line in said
                if (line.agent, line.session_id) == (part.agent, part.session_id)
            ]
            everything = _lines(events, session, self.thinking, self.tools)
            extra = [line for line in everything if line.role == "thinking" or line.calls]
            found += sorted([*own, *extra], key=lambda line: line.seq)
        return found

    def _session(self, part: Part) -> Session:
        if part.name not in self.sessions:
            self.sessions[part.name] = self.library.sessions.find(part.session_id, part.agent)
        return self.sessions[part.name]

    def _group(self, checkpoint: Checkpoint) -> list[Checkpoint]:
        root = checkpoint.group_root
        if root not in self.groups:
            self.groups[root] = list(self.library.checkpoints.of_group(root).values())
        return self.groups[root]

    def _events(self, part: Part, first: int, last: int) -> Iterator[StoredEvent]:
        """Those of the range, after the prompt it stems from."""
        session = self._session(part).id
        if part.prompts == 0 and (before := self._before(session, first)):
            yield before
        yield from self.library.conversation.events(session, first, last)

    def _before(self, session: int, seq: int) -> StoredEvent | None:
        if session not in self.prompts:
            events = self.library.conversation.events(session)
            self.prompts[session] = [
                e for e in events if e.kind == "user.prompt" and e.actor == "user" and e.text
            ]
        prompts = self.prompts[session]
        at = bisect_left(prompts, seq, key=lambda event: event.seq)
        return prompts[at - 1] if at else None


def of_commits(narrator: Narrator, title: str, reference: str, told: list[CommitStory]) -> Document:
    """Oldest first, commits of one request together; a request is told once."""
    chapters: list[Chapter] = []
    first: dict[tuple[str, str, int], str] = {}
    for item in group_stories(told):
        story = narrator.story(item)
        lines = narrator.lines(story)
        known = next(
            (
                first[place(line)]
                for line in lines
                if line.role == "request" and place(line) in first
            ),
            None,
        )
        chapters.append(Chapter(story, [line for line in lines if place(line) not in first], known))
        for line in lines:
            first.setdefault(place(line), item.commit.sha)
    return Document(title, _counted(reference, chapters), chapters)


def group_stories(told: list[CommitStory]) -> list[CommitStory]:
    groups: dict[str, list[CommitStory]] = {}
    for item in told:
        root = (
            item.checkpoint.group_root
            if item.checkpoint and item.checkpoint.parts
            else item.commit.sha
        )
        groups.setdefault(root, []).append(item)
    return [item for group in groups.values() for item in group]


def place(line: DocumentLine) -> tuple[str, str, int]:
    return line.agent, line.session_id, line.seq


def _counted(reference: str, chapters: list[Chapter]) -> list[str]:
    parts = [part for chapter in chapters for part in _parts(chapter)]
    agents = dict.fromkeys(part.agent for part in parts)
    return [
        reference,
        plural(len(chapters), "commit"),
        f"{sum(1 for chapter in chapters if _parts(chapter))} with a story",
        plural(len({part.name for part in parts}), "session"),
        ", ".join(map(agent_title, agents)),
    ]


def _parts(chapter: Chapter) -> list[Part]:
    checkpoint = chapter.story.told.checkpoint
    return checkpoint.parts if checkpoint else []


def of_session(found: Conversation, *, thinking: bool, tools: bool) -> Document:
    session = found.session
    facts = [
        f"{agent_title(session.agent)} {session.session_id}",
        session.project or "",
        session.branch or "",
        utc_text(session.started_at),
        plural(session.prompts, "prompt"),
        plural(session.tool_calls, "tool call"),
        plural(len(found.children), "subagent") if found.children else "",
        tokens_text(session.tokens),
        ", ".join(session.models),
    ]
    lines = _lines(found.events, session, thinking, tools, found.abandoned)
    return Document(one_line(session.title) or "A session", facts, lines=lines)


# -- lines ---------------------------------------------------------------------------------------


def said_lines(story: FullStory) -> list[DocumentLine]:
    return [
        DocumentLine(
            _ROLES[said.role], said.agent, said.session_id, said.seq, said.created_at, said.text
        )
        for said in story.said
    ]


def _lines(
    events: list[StoredEvent],
    session: Session,
    thinking: bool,
    tools: bool,
    abandoned: Set[int] = frozenset(),
) -> list[DocumentLine]:
    """A whole conversation; calls that follow each other are one line, in full or counted."""
    kinds = frozenset(_KINDS) if thinking else frozenset(_KINDS) - {"thinking"}
    found = transcript(events, session, TranscriptFilter(kinds, details=tools), abandoned)
    return [_line(entry, session, tools) for entry in found]


def _line(entry: TranscriptEntry, session: Session, tools: bool) -> DocumentLine:
    return DocumentLine(
        _KINDS.get(entry.kind, entry.kind),
        session.agent,
        session.session_id,
        entry.seq,
        entry.at,
        _names(entry.calls) if entry.calls else entry.text,
        [_call(call) for call in entry.calls] if tools else [],
        entry.left,
    )


def _names(calls: list[TranscriptCall]) -> str:
    names = Counter(call.name for call in calls)
    return ", ".join(f"{name} ×{number}" if number > 1 else name for name, number in names.items())


def _call(call: TranscriptCall) -> DocumentCall:
    return DocumentCall(
        call.name,
        label(call.argument),
        _shortened(call.diff),
        _shortened(plain(call.result).split("\n")) if call.result else "",
        call.outcome,
    )


def _shortened(lines: list[str]) -> str:
    more = [f"… {len(lines) - _LONG:,} more lines"] if len(lines) > _LONG else []
    return "\n".join([*lines[:_LONG], *more])


# -- facts ---------------------------------------------------------------------------------------


def utc_text(millis: int | None) -> str:
    return (
        datetime.fromtimestamp(millis / 1000, UTC).strftime("%Y-%m-%d %H:%M UTC") if millis else ""
    )


def changed(checkpoint: Checkpoint) -> str:
    files = checkpoint.files
    added, removed = sum(file.added for file in files), sum(file.removed for file in files)
    return f"+{added} −{removed} in {plural(len(files), 'file')}"


def agents(checkpoint: Checkpoint) -> str:
    return ", ".join(dict.fromkeys(agent_title(part.agent) for part in checkpoint.parts))


def about(told: CommitStory) -> list[str]:
    """Who made a commit and when; if it has a story also with whom, and how we know."""
    commit, checkpoint = told.commit, told.checkpoint
    facts = [commit.author, utc_text(commit.committed_at)]
    if checkpoint is None or not checkpoint.parts:
        return facts
    gone = f"superseded by {checkpoint.superseded_by[:8]}" if checkpoint.superseded_by else ""
    sureness = sure(checkpoint.evidence, checkpoint.confidence)
    sources = ", ".join(sha[:8] for sha in checkpoint.squashed_from)
    squashed = f"squashed from {sources}" if sources else ""
    return [agents(checkpoint), *facts, changed(checkpoint), sureness, gone, squashed]


def missing_reason(told: CommitStory) -> str:
    """Why there is no story."""
    return (
        "a merge; it starts no conversation and ends none"
        if told.reason == MERGE
        else told.reason or ""
    )


def sure(evidence: str | None, confidence: str | None) -> str:
    return f"{evidence}, {confidence} confidence" if evidence else ""
