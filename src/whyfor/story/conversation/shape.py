"""The turns and pages of a conversation, computed from its events without their text."""

from __future__ import annotations

from bisect import bisect_right

from whyfor.agents.tools import was_denied
from whyfor.model.conversation import TurnRange
from whyfor.model.events import EventHead, StoredEvent
from whyfor.store.protocol import ConversationStore
from whyfor.story.rewinds import abandoned

PAGE_WEIGHT = 40_000  # characters that are shown, about
PAGE_EVENTS = 110
_NEARLY = PAGE_WEIGHT * 0.6
_BACK = 4  # events before a prompt, itself included, among which the one it follows is looked for
_WORK = (
    "user.prompt",
    "assistant.message",
    "assistant.thinking",
    "tool.call",
    "tool.result",
    "turn.completed",
)
# How much of an event is put on a page, at most: words are shown whole, the rest is folded and cut.
_SHOWN = {"tool.call": 2500, "tool.result": 2500, "assistant.thinking": 2000}
_COSTLY = {"assistant.message": 2, "subagent.started": 3}  # times: Markdown takes its time


class Outline:
    """The turns and pages. Pages begin at the same events however long the conversation becomes."""

    def __init__(self, store: ConversationStore, session: int) -> None:
        self.beats = store.heads(session)
        self.seqs = [beat.seq for beat in self.beats]
        self.turns = _turns(self.beats)
        self.starts = _pages(self.beats)  # the first event of each page
        for number in _left(self.beats, store, session):
            self.turns[number].left = True

    @property
    def last(self) -> int:
        return self.seqs[-1] if self.seqs else 0

    def page_of(self, seq: int) -> int:
        return max(0, bisect_right(self.starts, seq) - 1)

    def span(self, page: int) -> tuple[int, int]:
        """Return the first and last event of a page."""
        end = self.starts[page + 1] - 1 if page + 1 < len(self.starts) else self.last
        return self.starts[page], end

    def within(self, first: int, last: int) -> list[EventHead]:
        return self.beats[bisect_right(self.seqs, first - 1) : bisect_right(self.seqs, last)]

    def turns_of(self, first: int, last: int) -> list[int]:
        """Return the numbers of the turns in a range of events."""
        return sorted({beat.turn for beat in self.within(first, last) if beat.turn})


def _turns(beats: list[EventHead]) -> dict[int, TurnRange]:
    found: dict[int, TurnRange] = {}
    for beat in beats:
        turn = found.get(beat.turn)
        if turn is None:
            turn = found[beat.turn] = TurnRange(beat.turn, beat.seq, beat.seq)
        turn.last = beat.seq
        if (at := beat.at) is not None and beat.kind in _WORK:
            if turn.started_at is None or at < turn.started_at:
                turn.started_at = at
            if turn.ended_at is None or at > turn.ended_at:
                turn.ended_at = at
        _count(turn, beat)
    return dict(sorted(found.items()))


def _count(turn: TurnRange, beat: EventHead) -> None:
    match beat.kind:
        case "tool.call":
            turn.tools += 1
        case "tool.result":
            if beat.failure is not None:
                turn.failures += not was_denied({"failed": True}, beat.failure)
        case "user.prompt":
            turn.prompt = turn.prompt or beat.seq
        case "subagent.started":
            turn.subagents += 1
        case "question.asked":
            turn.questions += 1
        case "error":
            turn.errors += 1
        case "compaction":
            turn.compacted = True


def _left(beats: list[EventHead], store: ConversationStore, session: int) -> set[int]:
    """Return the abandoned turns. Usually there are none: each prompt follows the message right
    before it."""
    taken_back = any(beat.undone is not None or beat.rewound is not None for beat in beats)
    if not taken_back and _straight(beats, store, session):
        return set()
    places = {seq: (uuid, parent) for seq, uuid, parent in store.tree(session)}
    names = store.ids(session, "user.prompt")
    stubs = []
    for beat in beats:
        uuid, parent = places.get(beat.seq, (None, None))
        data: dict[str, object] = {"id": names.get(beat.seq), "rolled_back_turns": beat.undone}
        if uuid is not None:
            data |= {"uuid": uuid, "parent": parent}
        if beat.rewound is not None:
            data["rewound_to"] = beat.rewound
        stubs.append(
            StoredEvent(beat.seq, beat.turn, beat.kind, "", "", beat.at, 0, "", "", None, data)
        )
    return abandoned(stubs)


def _straight(beats: list[EventHead], store: ConversationStore, session: int) -> bool:
    prompts = {beat.seq for beat in beats if beat.kind == "user.prompt"}
    near = {seq - back for seq in prompts for back in range(_BACK)}
    last: str | None = None
    for seq, uuid, parent in store.tree(session, near):
        if seq in prompts and uuid is not None and last is not None and parent != last:
            return False
        last = uuid or last
    return True


def _pages(beats: list[EventHead]) -> list[int]:
    """Return the first event of each page. A page ends before a prompt if possible, and never
    between a call and its result."""
    starts: list[int] = []
    weight = number = 0
    for beat in beats:
        if weight > _NEARLY or number > PAGE_EVENTS * 0.6 or not starts:
            full = (weight > PAGE_WEIGHT or number > PAGE_EVENTS) and beat.kind != "tool.result"
            if full or beat.kind == "user.prompt" or not starts:
                starts.append(beat.seq)
                weight = number = 0
        shown = _SHOWN.get(beat.kind)
        size = beat.size if shown is None or beat.size < shown else shown
        weight += size * _COSTLY.get(beat.kind, 1)
        number += 1
    return starts
