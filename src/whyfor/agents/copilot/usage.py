"""Count the tokens of Copilot CLI: per call where it records them (seen from 1.0.102 on), else
output per response and everything else from the totals of a run."""

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

    def call(self, usage: Record, at: CopilotPlace) -> None:
        """Add what one call of the model used."""
        used = {name: get_int(usage, name) for name in _TOTALS}
        model = get_str(usage, "model") or self.state.get("model")
        key = fold("copilot", get_str(usage, "apiCallId") or at.ident)
        at.bucket.usage.append(_row(key, at, model, used, _net(used)))
        told = self.state.setdefault("told", {}).setdefault(model or "", {})
        for name, count in used.items():
            told[name] = told.get(name, 0) + (count or 0)

    def shutdown(self, metrics: Record, at: CopilotPlace) -> None:
        """Add what the run used besides what is already counted, one row per model.

        A resumed session starts counting again (seen up to 1.0.67) or continues. It continues if
        the figures include both those of the last shutdown and the output since; then the new row
        replaces the earlier one.
        """
        used = {model: _usage(metric) for model, metric in metrics.items()}
        last = get_dict(self.state, "shutdown")
        seen, told = get_dict(self.state, "seen"), get_dict(self.state, "told")
        said = max(sum(seen.values()), _output(told))
        goes_on = bool(last) and _covers(used, get_dict(last, "used"), said)
        if goes_on:
            seen = _added(seen, last["seen"])
            before = get_dict(last, "told")
            told = {m: _added(told.get(m, {}), before.get(m, {})) for m in {*told, *before}}
        run = last["run"] if goes_on else at.ident
        self.state["shutdown"] = {"used": used, "seen": seen, "told": told, "run": run}
        self.state["seen"], self.state["told"] = {}, {}
        for model, rest in _rests(used, seen).items():
            total, known = used[model], get_dict(told, model)
            if known:
                total = _without(total, known)
                if not any(total.values()):
                    continue
                net = _net(total)
            else:
                total, net = {**total, "outputTokens": rest}, _input(as_dict(metrics[model]), total)
            key = fold("copilot", at.bucket.session_id, model, run)
            row = _row(key, at, model, total, net)
            row.lump = True
            at.bucket.usage.append(row)


def _row(
    key: int, at: CopilotPlace, model: str | None, used: Mapping[str, int | None], net: int | None
) -> Usage:
    return Usage(
        key,
        at.when,
        model,
        input=net,
        cache_read=used["cacheReadTokens"],
        cache_write=used["cacheWriteTokens"],
        output=used["outputTokens"],
        reasoning=used["reasoningTokens"],
    )


def _added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {*one, *other}}


def _without(total: Mapping[str, int | None], known: Mapping[str, int]) -> dict[str, int | None]:
    return {
        name: None if count is None else max(0, count - known.get(name, 0))
        for name, count in total.items()
    }


def _usage(metric: object) -> dict[str, int | None]:
    usage = get_dict(as_dict(metric), "usage")
    return {name: get_int(usage, name) for name in _TOTALS}


def _input(metric: Record, total: Mapping[str, int | None]) -> int | None:
    """Return the input without the cached part, which the total includes."""
    details = get_dict(get_dict(metric, "tokenDetails"), "input")
    net = get_int(details, "tokenCount")
    return _net(total) if net is None else net


def _net(total: Mapping[str, int | None]) -> int | None:
    given = total["inputTokens"]
    cached = (total["cacheReadTokens"] or 0) + (total["cacheWriteTokens"] or 0)
    if given is None:
        return None
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
