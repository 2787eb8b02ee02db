"""Tokens: counted once per response, however often a rollout repeats its figures."""

from __future__ import annotations

from whyfor.agents.base import as_dict, as_int, as_list, as_str
from whyfor.agents.codex.here import RecordPlace
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
    def __init__(self, state: Record) -> None:
        self.state = state

    def record(self, payload: Record, at: RecordPlace) -> None:
        """Newer versions write one per response; the `token_count` that follows says the same."""
        total = _figures(as_dict(payload.get("thread_token_usage")))
        counted = any(total) and total == self.state.get("total")
        self.state["records"], self.state["total"] = True, total
        if not counted:
            ident = as_str(payload.get("response_id"))
            key = fold("codex", ident) if ident else fold("codex", self._owner(payload), *total)
            self._count(key, as_dict(payload.get("usage")), at)

    def event(self, event: Record, at: RecordPlace) -> None:
        """Repeated without a new response, too: a changed total counts. Copies in a fork get the
        same key."""
        if self.state.get("records"):
            return
        info = as_dict(event.get("info")) or event
        totals = as_dict(info.get("total_token_usage")) or info
        total, before = _figures(totals), as_list(self.state.get("total"))
        if total == before or not any(total):
            return
        self.state["total"] = total
        last = as_dict(info.get("last_token_usage"))
        if not last:  # the oldest have the running total only
            steps = zip(_TOKENS, total, before or [0] * len(total), strict=True)
            last = {name: now - then for name, now, then in steps if name in totals}
        self._count(fold("codex", self._owner({}), *total), last, at)

    def _owner(self, payload: Record) -> str:
        turn = payload.get("turn_id") or self.state.get("turn")
        return str(turn or self.state.get("root") or "")

    def _count(self, key: int, usage: Record, at: RecordPlace) -> None:
        prompt, cached, written, output, reasoning = [as_int(usage.get(name)) for name in _TOKENS]
        if prompt is not None:
            prompt = max(0, prompt - (cached or 0) - (written or 0))
        model = self.state.get("model")
        at.bucket.usage.append(
            Usage(key, at.when, model, prompt, cached, written, output, reasoning)
        )


def _figures(usage: Record) -> list[int]:
    return [as_int(usage.get(name)) or 0 for name in _TOKENS]
