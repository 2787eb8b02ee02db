"""Read a conversation from the store page by page, however long it is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from whyfor.model.checkpoints import Checkpoint, Part
from whyfor.model.conversation import (
    ChangedPath,
    CommitItem,
    Compaction,
    Item,
    OutlineEntry,
    PageRange,
    Section,
    SkippedPages,
    ToolCallItem,
    TurnRange,
)
from whyfor.model.events import CallRef, EventHead, StoredEvent
from whyfor.model.paths import path_within
from whyfor.model.sessions import Session, Tokens
from whyfor.store.open import OpenStore, local_store
from whyfor.story.conversation.call_items import call_item
from whyfor.story.conversation.items import items
from whyfor.story.conversation.kinds import LIMITS, Limits, PageContext
from whyfor.story.conversation.shape import Outline
from whyfor.story.links.activity import SessionActivity
from whyfor.story.links.line_keys import WIDTH
from whyfor.story.tokens import tokens_by_turn
from whyfor.story.tokens import total as sum_of
from whyfor.story.whole_text import whole_events

WORDS_MAX = 60_000  # characters of one prompt or answer on a page
RESULT_MAX = 16_000
WHOLE_MAX = 1 << 20
OUTLINE = 400  # turns
_OPENING = 160
_TASK = 400
_INSIDE = 5  # calls of a subagent that are shown where it was called
_ACTS_MAX = 2 << 20
_FILES = 40
_NEAR = 300  # events around a page among which what belongs to its calls is looked for first


class ConversationReader:
    """One session; its outline is read once."""

    def __init__(self, library: OpenStore, session: Session, limits: Limits = LIMITS) -> None:
        self.library = library
        self.session = session
        self.limits = limits
        self.store = library.conversation
        self.shape = Outline(self.store, session.id)
        self.children = [
            child
            for child in library.sessions.children([session.session_id])
            if child.agent == session.agent
        ]
        self.spent = self._spent()
        self.marks = self._marks()

    # -- the whole -------------------------------------------------------------------------------

    def outline(self, at: int | None) -> tuple[list[OutlineEntry], int]:
        """Return all turns, or those around an event, and how many are left out."""
        asked = [turn for turn in self.shape.turns.values() if turn.prompt is not None]
        start = 0
        if len(asked) > OUTLINE and at is not None:
            here = sum(turn.first <= at for turn in asked)
            start = max(0, min(here - OUTLINE // 2, len(asked) - OUTLINE))
        chosen = asked[start : start + OUTLINE]
        texts = self.store.openings(
            self.session.id, (turn.prompt for turn in chosen if turn.prompt), _OPENING
        )
        ends: dict[int, list[CommitItem]] = {}
        for mark in self.marks:
            ends.setdefault(self._turn_at(mark.seq), []).append(mark)
        listed = [
            OutlineEntry(
                turn, texts.get(turn.prompt or 0, ""), self._tokens(turn), ends.get(turn.number, [])
            )
            for turn in chosen
        ]
        return listed, len(asked) - len(chosen)

    @property
    def tokens(self) -> Tokens:
        return sum_of([self.session.tokens, *(child.tokens for child in self.children)])

    def files(self) -> tuple[list[ChangedPath], int]:
        """Return the files that the session wrote, with line counts where linking has them, and how
        many are left out."""
        local = local_store(self.library)
        kept = local.links.activity(self.session.id, _ACTS_MAX) if local else None
        counts: dict[str, tuple[int, int]] = {}
        written = msgspec.msgpack.decode(kept[1], type=SessionActivity).written if kept else []
        for act in written:
            added, removed = counts.get(act.path, (0, 0))
            counts[act.path] = (
                added + len(act.added) // WIDTH,
                removed + len(act.removed) // WIDTH,
            )
        paths = self.session.files_modified
        found = [
            ChangedPath(path_within(path, self.session.cwd), *counts.get(path, (None, None)))
            for path in paths[:_FILES]
        ]
        return found, len(paths) - len(found)

    # -- pages -----------------------------------------------------------------------------------

    def parts(self, page: int) -> list[PageRange | SkippedPages]:
        """Return a page, the last page, and the skipped pages around them."""
        number = len(self.shape.starts)
        if not number:
            return []
        found: list[PageRange | SkippedPages] = []
        if page > 0:
            found.append(self._gap(0, page - 1))
        found.append(self.stretch(page))
        if page + 1 < number - 1:
            found.append(self._gap(page + 1, number - 2))
        if page + 1 < number:
            found.append(self.stretch(number - 1))
        return found

    def _gap(self, first: int, last: int) -> SkippedPages:
        begin, end = self.shape.span(first)[0], self.shape.span(last)[1]
        return SkippedPages(begin, self.shape.starts[last], self.shape.turns_of(begin, end))

    def stretch(self, page: int) -> PageRange:
        if not self.shape.starts:
            return PageRange(0, 0, [])
        first, last = self.shape.span(page)
        beats = self.shape.within(first, last)
        sections: list[Section] = []
        for number, own in _by_turn(beats):
            turn = self.shape.turns[number]
            found = self._marked(self.items(own), own)
            continued = turn.first < first
            if found or (turn.prompt is not None and not continued):
                sections.append(Section(turn, found, self._tokens(turn), continued))
        return PageRange(first, last, sections)

    def items(self, beats: Sequence[EventHead], text_max: int = WORDS_MAX) -> list[Item]:
        events, around = self._gathered(beats, text_max)
        return items(events, around)

    def one(self, seq: int) -> list[Item]:
        """Return the item of one event."""
        beats = self.shape.within(seq, seq)
        beats += (
            [tied for tie in self._about(seq) for tied in self.shape.within(tie.seq, tie.seq)]
            if beats
            else []
        )
        return (
            [item for item in self.items(beats, text_max=WHOLE_MAX) if item.seq == seq]
            if beats
            else []
        )

    def called(self, seq: int) -> int:
        """Return the call that an event is about; the event itself if there is none."""
        return min((tie.seq for tie in self._about(seq) if tie.kind == "tool.call"), default=seq)

    def _about(self, seq: int) -> list[CallRef]:
        ties = self.store.call_refs(self.session.id, max(0, seq - _NEAR), seq + _NEAR)
        idents = {tie.ident for tie in ties if tie.seq == seq}
        return [
            tie
            for tie in ties
            if tie.ident in idents and tie.seq != seq and tie.kind != "tool.result"
        ]

    def _gathered(
        self, beats: Sequence[EventHead], text_max: int
    ) -> tuple[list[StoredEvent], PageContext]:
        """Return the events, and what their items need besides: results, requests, subagents."""
        first, last = beats[0].seq, beats[-1].seq
        tied = _tied(self._ties(first, last), first, last)
        results = [*tied.orphans(beats), *(tie.seq for tie in tied.answers.values())]
        result_max = text_max if text_max > WORDS_MAX else RESULT_MAX
        words = [beat.seq for beat in beats if beat.kind != "tool.result"]
        loaded = self._load([*words, *tied.requests.values()], text_max)
        loaded |= self._load(results, result_max)
        # a subagent's answer is words, not output
        told = set(loaded) if text_max > WORDS_MAX else tied.answers_of_subagents()
        whole = [event for seq, event in loaded.items() if seq in told and event.whole_size]
        filled = whole_events(self.library, self.session.id, whole)
        loaded |= {event.seq: event for event in filled}
        sizes = {beat.seq: beat.size for beat in beats}
        sizes |= {tie.seq: tie.size for tie in tied.answers.values()}
        cut = [seq for seq in results if loaded[seq].whole_size or sizes[seq] > result_max]
        before = self.shape.within(0, first - 1)[-1:]
        around = PageContext(
            self.session,
            results={ident: loaded[tie.seq] for ident, tie in tied.answers.items()},
            lines=self.store.line_counts(self.session.id, cut),
            sizes=sizes,
            requests={ident: loaded[seq] for ident, seq in tied.requests.items()},
            known=tied.known,
            limits=self.limits,
            before=before[0].at if before else None,
        )
        events = [loaded[beat.seq] for beat in beats if beat.seq in loaded]
        self._subagents(events, around)
        return events, around

    def _load(self, seqs: Sequence[int], text_max: int) -> dict[int, StoredEvent]:
        events = self.store.events_at(self.session.id, seqs, text_max)
        return {event.seq: event for event in events}

    def _ties(self, first: int, last: int) -> list[CallRef]:
        """Return the references of a range and its surroundings; results of its calls are searched
        to the end."""
        ties = self.store.call_refs(self.session.id, max(0, first - _NEAR), last + _NEAR)
        answered = {tie.ident for tie in ties if tie.kind == "tool.result"}
        waiting = [
            tie.ident
            for tie in ties
            if tie.kind == "tool.call" and first <= tie.seq <= last and tie.ident not in answered
        ]
        if waiting and last + _NEAR < self.shape.last:
            ties += self.store.result_refs(self.session.id, last + _NEAR + 1, waiting)
        return ties

    def _marked(self, found: list[Item], beats: Sequence[EventHead]) -> list[Item]:
        """Insert the commits whose range ends among these events."""
        low, high = beats[0].seq, beats[-1].seq
        for mark in self.marks:
            if low <= mark.seq <= high:
                later = (
                    at
                    for at, item in enumerate(found)
                    if not isinstance(item, CommitItem) and item.seq > mark.seq
                )
                at = next(later, len(found))
                while at and isinstance(found[at - 1], Compaction):
                    at -= 1
                found.insert(at, mark)
        return found

    # -- commits, tokens -------------------------------------------------------------------------

    def _marks(self) -> list[CommitItem]:
        found = self.library.checkpoints.of_sessions([self.session.id])
        name = f"{self.session.agent}:{self.session.session_id}"
        ids = {checkpoint.id for checkpoint in found.values()}
        marks = []
        for checkpoint in found.values():
            part = next((part for part in checkpoint.parts if part.name == name), None)
            if part is not None:
                marks.append(self._mark(checkpoint, part, ids))
        return sorted(marks, key=lambda mark: (mark.seq, mark.checkpoint.committed_at))

    def _mark(self, checkpoint: Checkpoint, part: Part, ids: set[str]) -> CommitItem:
        child = checkpoint.group_root != checkpoint.id and checkpoint.group_root in ids
        seq = min(part.last, self.shape.last)
        return CommitItem(seq, seq, checkpoint.committed_at, checkpoint, part, child)

    def _turn_at(self, seq: int) -> int:
        found = self.shape.within(0, seq)
        return found[-1].turn if found else 0

    def _spent(self) -> dict[int, Tokens]:
        begun = ((turn.started_at, turn.number) for turn in self.shape.turns.values())
        return tokens_by_turn(self.store.tokens_by_turn(self.session.id), begun, self.children)

    def _tokens(self, turn: TurnRange) -> Tokens:
        return self.spent.get(turn.number, Tokens())

    # -- subagents -------------------------------------------------------------------------------

    def _subagents(self, events: Iterable[StoredEvent], around: PageContext) -> None:
        """Find the session behind each call of a subagent: by the id that either side names, else
        by the task."""
        started = [event for event in events if event.kind == "subagent.started"]
        if not started or not self.children:
            return
        by_id = {child.session_id: child for child in self.children}
        tasks = {
            text: child
            for child, (text, _) in self.store.tasks((c.id for c in self.children), _TASK).items()
        }
        numbers = {child.id: child for child in self.children}
        for event in started:
            ident = str(event.get("id") or "")
            child = self._named_child(event, around.results.get(ident), by_id)
            task = event.get("prompt")
            if child is None and isinstance(task, str) and task[:_TASK] in tasks:
                child = numbers[tasks[task[:_TASK]]]
            if child is not None and ident:
                around.children[ident] = child
                around.inside[child.id] = self._inside(child)

    def _named_child(
        self, event: StoredEvent, result: StoredEvent | None, by_id: dict[str, Session]
    ) -> Session | None:
        """Return the session that the call or its result names; None if neither does."""
        data = event.data or {}
        names = [data.get("subagent"), data.get("session")]
        if result:
            names.append(result.get("subagent"))
        names.append(str(data.get("id") or ""))
        for name in names:
            child = self._named(by_id, name)
            if child is not None:
                return child
        return None

    def _named(self, by_id: dict[str, Session], name: object) -> Session | None:
        if not isinstance(name, str) or not name:
            return None
        return by_id.get(name) or by_id.get(
            f"agent-{name.removeprefix('agent-')}@{self.session.session_id}"
        )

    def _inside(self, child: Session) -> tuple[list[ToolCallItem], str]:
        """Return a subagent's first calls and last words."""
        called = self.store.first_of_kinds(child.id, ("tool.call",), _INSIDE)
        reach = self.store.first_of_kinds(child.id, ("tool.call", "tool.result"), 4 * _INSIDE)
        closing = self.store.last_of_kind(child.id, "assistant.message")
        wanted = [*called, *reach, *([closing] if closing else [])]
        loaded = self.store.events_at(child.id, wanted, RESULT_MAX)
        results = {str(e.get("id")): e for e in reversed(loaded) if e.kind == "tool.result"}
        around = PageContext(child, limits=self.limits)
        found = [
            call_item(event, results.get(str(event.get("id"))), around)
            for event in loaded
            if event.kind == "tool.call" and event.seq in called
        ]
        for call in found:
            call.unfolded = False
        return found, next((event.text for event in loaded if event.seq == closing), "")


class _TiedCalls(msgspec.Struct, frozen=True):
    """Results and requests of the calls in a range, by the calls' ids."""

    answers: dict[str, CallRef]
    requests: dict[str, int]  # events
    known: set[str]  # calls of the range and of what is around it
    results: set[int]  # events that are the result of one of these
    subagents: set[str]  # calls that started one

    def answers_of_subagents(self) -> set[int]:
        return {tie.seq for ident, tie in self.answers.items() if ident in self.subagents}

    def orphans(self, beats: Iterable[EventHead]) -> list[int]:
        """Return the results without a call."""
        found = [beat.seq for beat in beats if beat.kind == "tool.result"]
        return [seq for seq in found if seq not in self.results]


def _tied(ties: Sequence[CallRef], first: int, last: int) -> _TiedCalls:
    known = {tie.ident for tie in ties if tie.kind == "tool.call"}
    own = {tie.ident for tie in ties if first <= tie.seq <= last}
    results = [tie for tie in ties if tie.kind == "tool.result" and tie.ident in known]
    answers: dict[str, CallRef] = {}
    for tie in results:
        # a program may answer twice: first that it still runs, then the result
        before = answers.get(tie.ident)
        if tie.ident in own and (before is None or tie.size > before.size):
            answers[tie.ident] = tie
    requests: dict[str, int] = {}
    for tie in ties:
        if tie.kind == "approval.requested" and tie.ident in own:
            requests.setdefault(tie.ident, tie.seq)
    subagents = {tie.ident for tie in ties if tie.kind == "subagent.started"}
    return _TiedCalls(answers, requests, known, {tie.seq for tie in results}, subagents)


def _by_turn(beats: Sequence[EventHead]) -> list[tuple[int, list[EventHead]]]:
    """Group the events by turn, in order. An event of an earlier turn stays with the current group;
    it is shown with its call."""
    found: list[tuple[int, list[EventHead]]] = []
    for beat in beats:
        if found and (beat.turn == found[-1][0] or beat.turn < found[-1][0]):
            found[-1][1].append(beat)
        else:
            found.append((beat.turn, [beat]))
    return found
