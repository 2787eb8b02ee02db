"""Private turns: a prompt that is entirely private hides every record up to the next prompt, the
subagents it started, and titles or summaries made from it later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from whyfor.agents.base import as_dict, as_str
from whyfor.capture.filters.record import ReadRecord, Verdict
from whyfor.model.findings import Bucket
from whyfor.model.gaps import FILLER
from whyfor.model.ids import fold
from whyfor.model.sources import Source
from whyfor.model.titles import TITLE_AGENT

_NOT_SPLIT = (0, 0)  # one object: msgspec leaves out a default by its identity
_MOST = 5000  # ids of a source that are remembered


class PrivateTurnState(msgspec.Struct, omit_defaults=True):
    """What must be remembered of a source's private turns to hide everything that belongs to them.
    It contains none of their text."""

    open: bool = False  # the turn has not ended
    whole: bool = False  # the source is a subagent's that began in one
    turns: list[tuple[int | None, int | None]] = []  # from, to
    ids: list[int] = []  # of calls and messages in them
    # a message that has tags open, and how many: its next record may close them
    split: tuple[int, int] = _NOT_SPLIT
    cut: bool = False  # a line too long for one piece had tags in it: the rest of it is dropped

    def began(self, at: int | None) -> None:
        self.open = True
        self.turns = [*self.turns, (at, None)]

    def ended(self, at: int | None) -> None:
        self.open = False
        if self.turns and self.turns[-1][1] is None:
            self.turns = [*self.turns[:-1], (self.turns[-1][0], at)]

    def keep_split(self, message: int, depth: int) -> None:
        """Remember how many private tags a message has left open."""
        self.split = (message, depth) if depth else _NOT_SPLIT

    def holds(self, at: int | None) -> bool:
        """Return whether a private turn was going on at a time."""
        if at is None:
            return self.open
        return any(
            (since or 0) <= at and (until is None or at < until) for since, until in self.turns
        )


class PrivateFilter:
    """Examines the records of one source, in order."""

    def __init__(
        self, source: Source, state: PrivateTurnState, around: list[PrivateTurnState]
    ) -> None:
        self.state = state
        self.around = around  # of the session that the source is a part of
        self.at: int | None = None  # when the record was written, or one before it
        self.begun = source.position > 0
        self._is_sidecar = bool(source.sidecar)
        self._known = {ident for one in (state, *around) for ident in one.ids}

    @property
    def is_doubtful(self) -> bool:
        """Return whether a line that cannot be parsed may belong to a private turn."""
        before = bool(self.around) and not self.begun
        return bool(self.state.turns) or self.state.whole or before

    # -- ids -------------------------------------------------------------------------------------

    def knows(self, name: str) -> bool:
        return fold(name) in self._known

    def learn(self, names: Iterable[str]) -> None:
        new = [ident for ident in dict.fromkeys(map(fold, names)) if ident not in self._known]
        self._known.update(new)
        self.state.ids = [*self.state.ids, *new][-_MOST:]

    # -- a record --------------------------------------------------------------------------------

    def note(self, read: ReadRecord) -> None:
        """Take over a record's time; a record without one was written with the record before it."""
        for stamp in read.stamps:
            self.at = stamp.at or self.at
        times = (event.created_at for event in read.sink.main.events if event.created_at)
        self.at = next(times, self.at)

    def judge_hidden(self, read: ReadRecord) -> Verdict | None:
        """Drop what belongs to something hidden: a subagent's whole source, and results of calls of
        a private turn, however late. None if it is neither."""
        if not self.begun:
            self.begun = True
            inside = any(one.whole or one.holds(self.at) for one in self.around)
            self.state.whole = inside and not self._is_sidecar
        told = [*read.names, as_str(read.sink.main.facts.get("tool_use_id"))]
        if self.state.whole or any(self.knows(name) for name in told if name):
            return self._drop(read)
        return None

    def judge_turn(self, read: ReadRecord) -> Verdict:
        """Decide by the turn that a record begins or belongs to."""
        state = self.state
        place = read.agent.under(read.records[0]) if read.records else None
        if place is not None:
            return self._judge_row(*place, read)
        if read.prompts:
            state.ended(self.at)
            if _is_private_prompt(read):
                state.began(self.at)
            return Verdict.KEEP
        if state.open:
            if any(map(read.agent.begins, read.records)):
                return Verdict.HOLLOW
            return self._drop(read)
        return self._judge_derived(read)

    def _judge_derived(self, read: ReadRecord) -> Verdict:
        if self.state.turns and _is_derived(read.sink.main):
            return Verdict.HOLLOW
        return Verdict.KEEP

    def _drop(self, read: ReadRecord) -> Verdict:
        names = [stamp.name for stamp in read.stamps]
        self.learn(name for name in [*names, *read.names] if name)
        return Verdict.DROP

    # -- rows, which come in the order of their messages, not of time --------------------------

    def look_ahead(self, read: ReadRecord) -> None:
        """Find the private prompts and their answers before any row is examined."""
        self.note(read)
        own, above = read.agent.under(read.records[0]) or ("", "")
        state = self.state
        if _is_private_prompt(read):
            if not self.knows(f"asked {above}"):
                self.learn([f"asked {above}"])
                state.began(self.at)
        elif read.prompts and state.open and (self.at or 0) > (state.turns[-1][0] or 0):
            state.ended(self.at)
        if own and self.knows(f"asked {above}"):
            self.learn([f"answer {own}"])

    def _judge_row(self, own: str, above: str, read: ReadRecord) -> Verdict:
        if self.knows(f"answer {own}") or self.knows(f"answer {above}"):
            self.learn(read.names)
            return Verdict.DROP
        if self.knows(f"asked {own}"):
            return Verdict.HOLLOW
        if self.knows(f"asked {above}") and not read.marked:
            return Verdict.HOLLOW
        return self._judge_derived(read)


def _is_private_prompt(read: ReadRecord) -> bool:
    """Return whether a prompt consists only of private text and blanks."""
    if not read.prompts or not read.marked:
        return False
    return all(_is_empty(event.text, event.data) for event in read.prompts)


def _is_empty(text: str, data: Any) -> bool:
    words = text.replace(FILLER.decode(), "").strip()
    return not words and not as_dict(data).get("images")


def _is_derived(bucket: Bucket) -> bool:
    """Return whether a record is a title or a summary that the agent made from the conversation."""
    if bucket.leaf_titles or any(event.kind == "compaction" for event in bucket.events):
        return True
    return bucket.facts.get("title_rank", -1) <= TITLE_AGENT and bool(bucket.facts.get("title"))
