"""Sessions, turns, notes and commits in words, as much of each as an agent asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from whyfor.git.place import name_place
from whyfor.model.agent_answers import Detail, MemoryText, MemoryTexts
from whyfor.model.errors import BadInput, NotFound
from whyfor.model.events import StoredEvent
from whyfor.model.memory import MemoryFilter, Quote, SessionSummary, StoredObservation
from whyfor.model.query import Filters
from whyfor.model.sessions import Session
from whyfor.model.stories import FullStory
from whyfor.model.text import clean, one_line
from whyfor.recall.note_standing import judge_everywhere
from whyfor.service.mcp.lines import commit_id, note_id, session_ids, standing
from whyfor.service.mcp.references import (
    NoteRef,
    Referenced,
    SessionRef,
    resolve_reference,
)
from whyfor.store.open import OpenStore
from whyfor.story.commit_stories import full_story, stories_of
from whyfor.story.repositories import Repository
from whyfor.story.whole_text import whole_events

MOST_IDS = 20
_PAGE = 9_000  # characters: more than that is cut by some agents
_LINE = 1_000  # characters of a line; a longer one goes on in the next
_SAID = {"brief": 200, "normal": 500, "full": 1_000_000}  # characters of what was said
_FILES = 30
_TURNS = 60
_NOTES = 200  # that are looked through for those of a session
_OUTPUT = 1_500  # characters of what a tool printed


class GetRequest(msgspec.Struct, frozen=True):
    ids: list[str]
    detail: Detail
    folder: Path
    here: Repository | None = None  # that the folder is in


def get_texts(store: OpenStore, wanted: GetRequest) -> MemoryTexts:
    """Return each of the ids in words; one that means nothing is told as such, unless none means
    anything: then its error is raised."""
    if not 0 < len(wanted.ids) <= MOST_IDS:
        raise BadInput(f"{len(wanted.ids)} ids", f"Give 1 to {MOST_IDS} ids from recall.")
    teller = _Teller(store, wanted)
    items = []
    wrong: NotFound | None = None
    for given in dict.fromkeys(wanted.ids):
        try:
            items.append(teller.text(given))
        except NotFound as error:
            wrong = error
            items.append(MemoryText(given, "unknown", [f"{error.message}. {error.hint}"]))
    if wrong is not None and all(item.kind == "unknown" for item in items):
        raise wrong
    return MemoryTexts(items)


def paged(texts: MemoryTexts, after: int) -> MemoryTexts:
    """Return one page of these, from a line on; a cursor says where the next begins."""
    number, size = 0, 0
    items: list[MemoryText] = []
    for item in texts.items:
        lines: list[str] = []
        for line in _split(item.blocks):
            number += 1
            if number <= after:
                continue
            size += len(line) + 1
            if size > _PAGE and (lines or items):
                shown = [*items, *_nonempty(item, lines)]
                hint = "There is more: call get again with the same ids and this cursor."
                return MemoryTexts(shown, str(number - 1), hint)
            lines.append(line)
        items += _nonempty(item, lines)
    if not items:
        raise BadInput("nothing is left after this cursor", "Call get without a cursor.")
    return MemoryTexts(items)


def _nonempty(item: MemoryText, lines: list[str]) -> list[MemoryText]:
    return [MemoryText(item.id, item.kind, lines)] if lines else []


def _split(blocks: Iterable[str]) -> Iterator[str]:
    for block in blocks:
        for line in block.split("\n"):
            yield line[:_LINE]
            for start in range(_LINE, len(line), _LINE):
                yield line[start : start + _LINE]


class _Teller:
    """Tells what ids mean, in one detail."""

    def __init__(self, store: OpenStore, wanted: GetRequest) -> None:
        self.store = store
        self.place = name_place(wanted.folder)
        self.here = wanted.here
        self.detail = wanted.detail
        self.room = _SAID[wanted.detail]

    def text(self, given: str) -> MemoryText:
        found: Referenced = resolve_reference(self.store, given, self.place)
        if isinstance(found, NoteRef):
            key = note_id(found.note.observation.key)
            return MemoryText(key, "note", list(self._note(found.note)))
        if isinstance(found, SessionRef):
            ident = session_ids(self.store, [found.session])[found.session.name]
            if found.turn is not None:
                told = list(self._turns(found.session, found.turn))
                return MemoryText(f"{ident}/{found.turn}", "turn", told)
            return MemoryText(ident, "session", list(self._session(found.session)))
        told_commit = stories_of(self.store, self.place, [found.sha])[0]
        story = full_story(self.store, self.place, told_commit)
        return MemoryText(commit_id(found.sha), "commit", list(self._commit(story)))

    # -- a session -------------------------------------------------------------------------------

    def _session(self, session: Session) -> Iterator[str]:
        where = session.project or session.cwd or "an unknown folder"
        branch = f", branch {session.branch}" if session.branch else ""
        yield f"{session.title or 'without a title'}: {_day(session.started_at)}, {where}{branch}"
        summary = self.store.memory.summary(session.id) or SessionSummary()
        yield from self._quoted("asked", summary.request)
        yield from self._quoted("outcome", summary.completed)
        yield from self._quoted("open", summary.next_steps)
        yield from self._linked(session)
        if self.detail == "brief":
            return
        yield from self._quoted("learned", summary.learned)
        for stored in self._notes_of(session):
            note = stored.observation
            yield f"{note_id(note.key)} ({note.type}, {note.state}): {self._cut(note.title)}"
        files = session.files_modified
        if files:
            more = f" and {len(files) - _FILES} more" if len(files) > _FILES else ""
            yield f"files written: {', '.join(files[:_FILES])}{more}"
        if self.detail == "full":
            yield from self._turns(session, None)
        else:
            yield from self._prompts(session)

    def _quoted(self, label: str, quotes: Iterable[Quote]) -> Iterator[str]:
        for quote in quotes:
            yield f"{label}: {self._cut(quote.text)}"

    def _linked(self, session: Session) -> Iterator[str]:
        found = self.store.checkpoints.of_sessions([session.id]).values()
        for checkpoint in sorted(found, key=lambda each: each.committed_at):
            if not checkpoint.superseded_by:
                yield f"{commit_id(checkpoint.commit)}: {self._cut(checkpoint.subject)}"

    def _notes_of(self, session: Session) -> Iterator[StoredObservation]:
        """Yield the notes of a session and of its subagents, newest first."""
        within = Filters(agent=session.agent, since=session.started_at, until=session.ended_at)
        for note in self.store.memory.observations(MemoryFilter(within), _NOTES):
            if session.session_id in (note.session_id, note.parent_session_id):
                yield note

    def _prompts(self, session: Session) -> Iterator[str]:
        """Yield what was asked in each turn, the last turns if there are many."""
        last = self.store.conversation.last_seq(session.id)
        words = self.store.conversation.words(session.id, session.own_from, last)
        asked = [word for word in words if word.role == "request"]
        for word in asked[-_TURNS:]:
            yield f"turn {word.turn}: {self._cut(word.text)}"

    def _turns(self, session: Session, only: int | None) -> Iterator[str]:
        """Yield what was said and done, word for word; of a tool's output a little, every line
        marked as output."""
        events = self.store.conversation.events(session.id, session.own_from)
        turn = None
        for event in whole_events(self.store, session.id, events):
            if only is not None and event.turn != only:
                continue
            told = _told(event)
            if not told:
                continue
            if event.turn != turn:
                turn = event.turn
                yield f"-- turn {turn}, {_day(event.created_at)}"
            yield told
        if only is not None and turn is None:
            raise NotFound(f"there is no turn {only}", "List the turns: get the session.")

    # -- a note ----------------------------------------------------------------------------------

    def _note(self, stored: StoredObservation) -> Iterator[str]:
        note = stored.observation
        yield f"{note.title} ({note.type}, by {note.by}, {_day(note.at)})"
        (judged,) = judge_everywhere(self.store, [stored], self.here)
        yield f"state: {', '.join(standing(judged))}"
        if note.narrative and note.narrative != note.title:
            yield f"said: {self._cut(note.narrative)}"
        if stored.session_id:  # what a person wrote comes from none
            session = self.store.sessions.find(stored.session_id, stored.agent)
            ident = session_ids(self.store, [session])[session.name]
            yield f"from: {ident}/{note.turn}, branch {stored.branch or 'unknown'}"
        if self.detail == "brief":
            return
        for fact in note.facts:
            yield f"recorded: {self._cut(fact)}"
        yield from self._quoted("quote", note.evidence)
        for label, paths in (("written", note.files_written), ("read", note.files_read)):
            if paths:
                yield f"files {label}: {', '.join(paths[:_FILES])}"

    # -- a commit --------------------------------------------------------------------------------

    def _commit(self, story: FullStory) -> Iterator[str]:
        told = story.told
        commit = told.commit
        yield f"{commit.subject} ({_day(commit.committed_at)}, {commit.author})"
        note = told.annotation
        if note:
            yield f"why: {self._cut(note.intent)}" if note.intent else f"tag: {note.tag}"
            for other in note.alternatives:
                yield f"not chosen: {self._cut(other)}"
        if told.checkpoint is None or not told.checkpoint.parts:
            yield f"no session is linked to it: {told.reason_text}"
            return
        ids = session_ids(self.store, story.sessions.values())
        for part in told.checkpoint.parts:
            yield f"from: {ids[part.name]} ({part.evidence}, {part.confidence} confidence)"
        if self.detail == "brief":
            return
        yield f"files: {', '.join(file.path for file in told.checkpoint.files[:_FILES])}"
        for line in story.said:
            yield f"{line.role} (turn {line.turn}): {self._cut(line.text)}"

    def _cut(self, text: str) -> str:
        line = clean(text).strip() if self.detail == "full" else one_line(text)
        return line if len(line) <= self.room else line[: self.room - 1].rstrip() + "…"


def _told(event: StoredEvent) -> str:
    """Return an event in words; empty if there is nothing to tell."""
    text = event.text.strip()
    if event.kind == "user.prompt" and text:
        return f"user: {text}"
    if event.kind == "assistant.message" and text:
        return f"agent: {text}"
    if event.kind == "question.asked" and text:
        return f"agent asks: {text}"
    if event.kind == "error" and text:
        return f"error: {text}"
    if event.kind == "tool.call":
        return f"tool {event.name or 'unknown'}: {_output(text)}"
    if event.kind == "tool.result":
        failed = " (failed)" if event.get("failed") else ""
        shown = "\n".join(f"| {line}" for line in _output(text).split("\n"))
        return f"output{failed}:\n{shown}" if text else f"no output{failed}"
    return ""


def _output(text: str) -> str:
    if len(text) <= _OUTPUT:
        return text
    return f"{text[:_OUTPUT]}\n[{len(text) - _OUTPUT} more characters]"


def _day(at: int | None) -> str:
    if at is None:
        return "unknown date"
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d %H:%M")
