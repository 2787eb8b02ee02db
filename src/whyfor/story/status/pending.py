"""What a session waits for from a person: a request to be allowed something, a question to be
answered."""

from __future__ import annotations

from whyfor.model.status import PendingApproval
from whyfor.story.status.inputs import tool_family
from whyfor.story.status.state import GRACE, Child, LastHeard, OpenRequest, OpenToolCall, State

SLACK = 2_000  # ms: a call's record may be dated a moment after the request to run it


class PendingRequests:
    """Of a state, with the unanswered calls of its open turn."""

    def __init__(self, state: State, calls: list[OpenToolCall]) -> None:
        self.state = state
        self.calls = calls
        self.approval, self.asked = self._approval()
        self.questions, self.question_at = self._questions()

    def _approval(self) -> tuple[PendingApproval | None, LastHeard]:
        """The newest request that nothing has answered, and who told of it."""
        pending = [
            ask for ask in self.state.asks.values() if ask.kind != "question" and self._pending(ask)
        ]
        if pending:
            ask = max(
                pending,
                key=lambda ask: (bool(ask.text or ask.path or self._meant(ask)), ask.at, ask.order),
            )
            since = min(ask.at for ask in pending)
            return self._described(ask, self._meant(ask)), LastHeard(
                since, kind=ask.kind, word=ask.word, source=ask.source
            )
        notice = self.state.noticed
        if not notice.at or self._questioned() or max(self._notice_answers()) >= notice.at:
            return None, notice
        ask = OpenRequest(at=notice.at, word=notice.word, source=notice.source)
        return self._described(ask, self.calls), notice

    def _questioned(self) -> bool:
        """What a notice is about, if it is no request."""
        asks = any(
            ask.kind == "question" and self._pending(ask) for ask in self.state.asks.values()
        )
        return asks or any(call.asks for call in self.calls)

    def _pending(self, ask: OpenRequest) -> bool:
        return bool(ask.at) and max(self._answers(ask)) <= ask.at

    def _answers(self, ask: OpenRequest) -> list[int]:
        """When a request may have been answered or become pointless; what is not later than it
        means nothing."""
        state = self.state
        child = state.children.get(ask.child, Child())
        times = [ask.done_at, self._settled(), child.stopped if ask.child else state.closed.at]
        if ask.call:
            return [*times, state.calls.get(ask.call, OpenToolCall()).done_at]
        meant = self._meant(ask)
        if meant and (not ask.text or meant[0].text == ask.text):
            return [*times, meant[0].done_at, state.asks.get(meant[0].id, OpenRequest()).done_at]
        return [*times, child.result if ask.child else state.result.at]

    def _notice_answers(self) -> list[int]:
        state = self.state
        results = [child.result for child in state.children.values()]
        return [
            self._settled(),
            state.closed.at,
            state.result.at,
            *results,
            *(a.done_at for a in state.asks.values()),
        ]

    def _settled(self) -> int:
        """The last moment at which nothing was asked of the person, for all we know."""
        state = self.state
        marks = (
            state.prompt,
            state.busy,
            state.started,
            state.exited,
            state.interrupted,
            state.ready,
        )
        return max(mark.at for mark in marks)

    def _meant(self, ask: OpenRequest) -> list[OpenToolCall]:
        """Calls a request may be about, the likeliest first: they wait for their turn in the
        order they were made."""
        if ask.call:
            found = self.state.calls.get(ask.call)
            return [found] if found and found.at else []
        tool = tool_family(ask.tool)
        found_all = [
            call
            for call in self.state.calls.values()
            if call.child == ask.child
            and 0 < call.at <= ask.at + SLACK
            and (not call.done_at or call.done_at > ask.at)
            and (not tool or tool_family(call.tool) == tool)
            and call.at > self._before(ask)
        ]
        exactly = [call for call in found_all if ask.text and call.text == ask.text]
        return sorted(exactly or found_all, key=lambda call: (call.at, call.order))

    def _before(self, ask: OpenRequest) -> int:
        """Calls that an end of their turn left open are of no request after it."""
        state = self.state
        ends = (
            (state.started, state.exited)
            if ask.child
            else (state.closed, state.ready, state.started, state.exited)
        )
        return max((mark.at for mark in ends if mark.at <= ask.at), default=0)

    def _described(self, ask: OpenRequest, meant: list[OpenToolCall]) -> PendingApproval:
        call = meant[0] if meant else OpenToolCall()
        tool = call.tool or ask.tool
        action = ask.text or ask.path or call.text or call.task or call.path
        return PendingApproval(
            kind=ask.kind,
            asked_at=ask.at,
            tool=tool or None,
            action=action or None,
            path=ask.path or call.path or None,
            subagent=ask.child or None,
            cut=ask.cut or call.cut,
            certain=len(meant) == 1 or bool(ask.text or ask.path),
            call=call.id or ask.call or None,
        )

    def _questions(self) -> tuple[list[str], int]:
        calls = [call for call in self.calls if call.question and not self._went_on(call)]
        asks = [
            ask for ask in self.state.asks.values() if ask.kind == "question" and self._pending(ask)
        ]
        since = min((*(call.at for call in calls), *(ask.at for ask in asks)), default=0)
        return [line for call in calls for line in call.question.splitlines() if line], since

    def _went_on(self, call: OpenToolCall) -> bool:
        """Some questions have no answer of their own; that the agent works again is one."""
        return self._settled() > call.at or (
            not call.tool and self.state.worked.at > call.at + GRACE
        )

    def released(self) -> int:
        """When it last went on after it had to wait for a person."""
        state = self.state
        waits = [(ask.at, self._answers(ask)) for ask in state.asks.values() if ask.at]
        waits += [
            (c.at, [c.done_at, state.closed.at, self._settled()])
            for c in state.calls.values()
            if c.asks
        ]
        waits.append((state.noticed.at, self._notice_answers()))
        return max(
            min((at for at in answers if at > asked), default=asked) for asked, answers in waits
        )
