"""Count tokens once per response, however often a rollout repeats them."""

from __future__ import annotations

from whyfor.agents.base import (
    get_dict,
    get_int,
    get_list,
    get_str,
)
from whyfor.agents.codex.record_place import RolloutPlace
from whyfor.model.events import Usage
from whyfor.model.findings import Record
from whyfor.model.ids import fold

_TOKENS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)


class TokenCounter:
    """Counts each response by itself, and what only the thread's running total tells of.

    A record that tells one response may be missing: then the total has grown by more than the
    next record says, and the difference is counted, too. A thread that continues another one
    has the other's total in its first: of that, only the response itself is its own.
    """

    def __init__(self, state: Record) -> None:
        self.state = state

    def record(self, payload: Record, at: RolloutPlace) -> None:
        """Newer versions write one per response; the `token_count` that follows says the same."""
        totals, usage = get_dict(payload, "thread_token_usage"), get_dict(payload, "usage")
        total = _figures(totals)
        counted = any(total) and total == self.state.get("total")
        self.state["records"] = True
        if not counted:
            owner = self._owner(payload)
            ident = get_str(payload, "response_id")
            key = fold("codex", ident) if ident else fold("codex", owner, *total)
            self._count_missing(owner, totals, usage, at)
            self._count(key, usage, at)

    def event(self, event: Record, at: RolloutPlace) -> None:
        """Repeated without a new response, too: a changed total counts. Copies in a fork get the
        same key."""
        if self.state.get("records"):
            return
        info = get_dict(event, "info") or event
        totals = get_dict(info, "total_token_usage") or info
        total, before = _figures(totals), get_list(self.state, "total")
        if total == before or not any(total):
            return
        owner = self._owner({})
        last = get_dict(info, "last_token_usage")
        if last:
            self._count_missing(owner, totals, last, at)
        else:  # the oldest have the running total only
            last = _named(totals, _difference(total, before or [0] * len(total)))
            self.state["total"] = total
        self._count(fold("codex", owner, *total), last, at)

    def _count_missing(self, owner: str, totals: Record, last: Record, at: RolloutPlace) -> None:
        """Count what the total has grown by beside this response, and remember the total."""
        total, before = _figures(totals), get_list(self.state, "total")
        if any(total):
            self.state["total"] = total
        if not before and self.state.get("continues"):
            return
        missing = _difference(total, before or [0] * len(total), _figures(last))
        # less than the response itself: the total was reset
        if any(missing) and min(missing) >= 0:
            key = fold("codex", "missing", owner, *total)
            self._count(key, _named(totals, missing), at, lump=True)

    def _owner(self, payload: Record) -> str:
        turn = payload.get("turn_id") or self.state.get("turn")
        return str(turn or self.state.get("root") or "")

    def _count(self, key: int, usage: Record, at: RolloutPlace, *, lump: bool = False) -> None:
        prompt, cached, written, output, reasoning = [get_int(usage, name) for name in _TOKENS]
        if prompt is not None:
            prompt = max(0, prompt - (cached or 0) - (written or 0))
        model = self.state.get("model")
        at.bucket.usage.append(
            Usage(key, at.when, model, prompt, cached, written, output, reasoning, lump=lump)
        )


def _difference(total: list[int], *parts: list[int]) -> list[int]:
    """What is left of each figure."""
    return [figure - sum(others) for figure, *others in zip(total, *parts, strict=True)]


def _named(known: Record, figures: list[int]) -> Record:
    """Figures by their names; one that the record does not state stays unknown."""
    return {name: figure for name, figure in zip(_TOKENS, figures, strict=True) if name in known}


def _figures(usage: Record) -> list[int]:
    return [get_int(usage, name) or 0 for name in _TOKENS]
