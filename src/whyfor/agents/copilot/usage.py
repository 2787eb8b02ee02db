"""Count the tokens of Copilot CLI: output per response, everything else from the totals of a
run."""

from __future__ import annotations

from collections.abc import Mapping

from whyfor.agents.base import as_dict, get_dict, get_int, get_list, get_str
from whyfor.agents.copilot.record_place import CopilotPlace
from whyfor.model.events import Usage
from whyfor.model.findings import Record
from whyfor.model.ids import fold

_TOTALS = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens")


class RunUsage:
    """What a run used. Its state is kept between two reads of the log."""

    def __init__(self, state: Record) -> None:
        self.state = state

    def response(self, data: Record, ident: str, at: CopilotPlace) -> None:
        """Add the output of a response, the only figure recorded with it; the chunks of one
        response repeat it."""
        output = get_int(data, "outputTokens")
        call = get_str(data, "apiCallId") or ident
        model = get_str(data, "model") or self.state.get("model")
        if output is None:
            return
        at.bucket.usage.append(Usage(fold("copilot", call), at.when, model, output=output))
        last = get_list(self.state, "response") or ["", 0]
        before = last[1] if last[0] == call else 0
        self.state["response"] = [call, max(output, before)]
        seen = self.state.setdefault("seen", {})
        seen[model or ""] = seen.get(model or "", 0) + max(0, output - before)

    def shutdown(self, metrics: Record, at: CopilotPlace) -> None:
        """Add what the run used besides the output already counted, one row per model.

        A resumed session starts counting again (seen up to 1.0.67) or continues. It continues if
        the figures include both those of the last shutdown and the output since; then the new row
        replaces the earlier one.
        """
        used = {model: _usage(metric) for model, metric in metrics.items()}
        last = get_dict(self.state, "shutdown")
        seen = get_dict(self.state, "seen")
        goes_on = bool(last) and _covers(used, get_dict(last, "used"), sum(seen.values()))
        if goes_on:
            seen = {m: seen.get(m, 0) + last["seen"].get(m, 0) for m in {*seen, *last["seen"]}}
        run = last["run"] if goes_on else at.ident
        self.state["shutdown"] = {"used": used, "seen": seen, "run": run}
        self.state["seen"] = {}
        for model, rest in _rests(used, seen).items():
            total, key = used[model], fold("copilot", at.bucket.session_id, model, run)
            at.bucket.usage.append(
                Usage(
                    key,
                    at.when,
                    model,
                    input=_input(as_dict(metrics[model]), total),
                    cache_read=total["cacheReadTokens"],
                    cache_write=total["cacheWriteTokens"],
                    output=rest,
                    reasoning=total["reasoningTokens"],
                    lump=True,
                )
            )


def _usage(metric: object) -> dict[str, int | None]:
    usage = get_dict(as_dict(metric), "usage")
    return {name: get_int(usage, name) for name in _TOTALS}


def _input(metric: Record, total: Mapping[str, int | None]) -> int | None:
    """Return the input without the cached part, which the total includes."""
    details = get_dict(get_dict(metric, "tokenDetails"), "input")
    net = get_int(details, "tokenCount")
    given = total["inputTokens"]
    cached = (total["cacheReadTokens"] or 0) + (total["cacheWriteTokens"] or 0)
    if net is not None or given is None:
        return net
    return given if given < cached else given - cached


def _covers(now: Mapping[str, Record], before: Record, said: int) -> bool:
    """Return whether no figure is lower than before and the output includes what was said since."""
    for model, total in before.items():
        known = now.get(model) or {}
        if any((known.get(name) or 0) < (count or 0) for name, count in total.items()):
            return False
    return _output(now) >= _output(before) + said


def _output(used: Mapping[str, Record]) -> int:
    return sum(total.get("outputTokens") or 0 for total in used.values())


def _rests(used: Mapping[str, Record], seen: Mapping[str, int]) -> dict[str, int | None]:
    """Return the output that no message showed, by model. Output of a model without a total is
    subtracted from the others."""
    stray = sum(count for model, count in seen.items() if model not in used)
    rests: dict[str, int | None] = {}
    for model, total in used.items():
        output = total["outputTokens"]
        rest = None if output is None else max(0, output - seen.get(model, 0))
        taken = min(rest or 0, stray)
        stray -= taken
        rests[model] = None if rest is None else rest - taken
    return rests
