"""Approvals of a session: what it asked to be allowed, what came of it and when."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from whyfor.model.turns import ApprovalRequest
from whyfor.story.status.inputs import StatusInput, tool_family

_ENDS = ("prompt", "done", "failed", "interrupted", "ready", "started", "exited")
_LATE = 10_000  # ms: a hook on a busy machine may be told of after the person has answered


class _Open(msgspec.Struct):
    sign: StatusInput
    asked: ApprovalRequest


class _Done(msgspec.Struct, frozen=True):
    """A call and its result."""

    call: StatusInput
    result: StatusInput


def approvals(signs: Iterable[StatusInput], refused: Iterable[str] = ()) -> list[ApprovalRequest]:
    """From all signs of a session, in any order; `refused`: calls whose answer is a person's no."""
    account = _Account(set(refused))
    for sign in sorted(signs, key=lambda sign: (sign.at, sign.order)):
        account.take(sign)
    return account.found


class _Account:
    """Reads the signs of a session in order, and keeps its requests."""

    def __init__(self, denied: set[str]) -> None:
        self.found: list[ApprovalRequest] = []
        self._denied = denied
        self._calls: dict[str, StatusInput] = {}
        self._done: list[_Done] = []
        self._waiting: list[_Open] = []

    def take(self, sign: StatusInput) -> None:
        if sign.kind == "call":
            self._calls.setdefault(sign.call, sign)
        elif sign.kind == "asked":
            self._ask(sign)
        elif sign.kind in ("result", "answered"):
            self._answer(sign)
        elif sign.kind in _ENDS and not sign.child:
            _settle(self._waiting, sign.at)
            self._calls = {ident: call for ident, call in self._calls.items() if call.child}
        elif sign.kind == "child.stopped":
            _settle([item for item in self._waiting if item.sign.child == sign.child], sign.at)
        self._waiting = [item for item in self._waiting if item.asked.decision is None]

    def _ask(self, sign: StatusInput) -> None:
        if _joined(self._waiting, sign):
            return
        opened = _Open(sign, _asked(sign, self._calls))
        late = _late(opened, self._calls, self._done, self.found)
        self._waiting.append(opened)
        self.found.append(opened.asked)
        if late is not None:
            _answer([opened], late.result, self._denied)

    def _answer(self, sign: StatusInput) -> None:
        heard = _answer(self._waiting, sign, self._denied)
        if not heard and sign.kind == "answered":
            self.found += _unheard(sign, self._calls, self.found)
        call = self._calls.pop(sign.call, None) if sign.kind == "result" else None
        if call is not None:
            self._done.append(_Done(call, sign))


def _joined(waiting: list[_Open], sign: StatusInput) -> bool:
    """Hook and transcript may both tell of one request; the transcript tells more."""
    call = sign.about or sign.call
    for item in waiting:
        asked = item.asked
        if (
            item.sign.source != sign.source
            and item.sign.child == sign.child
            and asked.call in (None, call)
        ):
            if sign.source == "transcript":
                item.sign, asked.call = sign, call
                asked.tool, asked.action = (
                    asked.tool or sign.tool or None,
                    sign.text or asked.action,
                )
            return True
    return False


def _asked(sign: StatusInput, calls: dict[str, StatusInput]) -> ApprovalRequest:
    tool = tool_family(sign.tool)
    fits = (
        c
        for c in calls.values()
        if c.child == sign.child and (not tool or tool_family(c.tool) == tool)
    )
    named = sign.about or sign.call
    # what it names; else the first of them
    likely = sorted(fits, key=lambda call: call.text != sign.text)
    call = calls.get(named) if named else next(iter(likely), None)
    return ApprovalRequest(
        at=sign.at,
        tool=(call.tool if call else sign.tool) or None,
        action=sign.text or sign.path or (call and (call.text or call.path)) or None,
        call=call.call if call else named or None,
        subagent=sign.child or None,
    )


def _late(
    opened: _Open,
    calls: dict[str, StatusInput],
    done: list[_Done],
    found: list[ApprovalRequest],
) -> _Done | None:
    """Return the call a request was about that came after its result; the request is then about
    that call. None if a call that still runs does the same, or no such call has just ended."""
    sign, asked = opened.sign, opened.asked
    open_call = calls.get(asked.call or "")
    named = sign.about or sign.call
    if named or not sign.text or (open_call and open_call.text == sign.text):
        return None
    known = {request.call for request in found}
    for each in reversed(done):
        if each.result.at < sign.at - _LATE:
            return None
        same = (each.call.child, each.call.text) == (sign.child, sign.text)
        tools = {tool_family(each.call.tool), tool_family(sign.tool)}
        if same and len(tools) == 1 and each.call.call not in known:
            asked.call, asked.at = each.call.call, min(asked.at, each.result.at)
            return each
    return None


def _unheard(
    sign: StatusInput, calls: dict[str, StatusInput], found: list[ApprovalRequest]
) -> list[ApprovalRequest]:
    """Where no hook told of a request, its answer does."""
    call = calls.get(sign.call)
    if call is None or any(asked.call == sign.call for asked in found):
        return []
    action = call.text or call.path or None
    return [
        ApprovalRequest(
            call.at, call.tool or None, action, call.call, None, sign.at, _decision(sign, set())
        )
    ]


def _decision(sign: StatusInput, denied: set[str]) -> str:
    no = sign.call in denied or (sign.kind == "answered" and sign.text == "denied")
    return "denied" if no else "allowed"


def _answer(waiting: list[_Open], sign: StatusInput, denied: set[str]) -> bool:
    for item in waiting:
        asked = item.asked
        if item.sign.child != sign.child:
            continue
        if not asked.call or not sign.call or sign.call in (asked.call, item.sign.call):
            asked.resolved_at, asked.decision = sign.at, _decision(sign, denied)
            asked.call = asked.call or sign.call or None  # so that its result is no other request's
            return True
    return False


def _settle(waiting: list[_Open], at: int) -> None:
    for item in waiting:
        item.asked.resolved_at, item.asked.decision = at, "superseded"
