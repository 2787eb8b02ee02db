"""Status: what a session does now, judged from its state, the time and whether its process is
alive.

`exited > waiting_approval > running > waiting > idle > unknown`: the first that holds. Silence
alone is never `waiting`; that needs somebody who said that the prompt is free, and lasts until
something happens; if only a transcript said so, and no process is known that could still be
there, for half an hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from whyfor.model.paths import path_within
from whyfor.model.status import Status
from whyfor.model.text import one_line
from whyfor.story.status.inputs import StatusInput, of_event, of_process, of_signal
from whyfor.story.status.pending import PendingRequests
from whyfor.story.status.state import GRACE, NEW, Child, LastHeard, OpenToolCall, State, apply

__all__ = [
    "NEW",
    "PHASES",
    "State",
    "StatusInput",
    "apply",
    "fold_inputs",
    "judge_status",
    "of_event",
    "of_process",
    "of_signal",
    "process",
]

PHASES = ("exited", "waiting_approval", "running", "waiting", "idle", "unknown")
QUIET = 30_000  # ms an open turn may be silent before it takes more than that to call it running
IDLE = 120_000
COMPACTING = 180_000  # a compaction that has nothing to do never says that it is over
LONG = 30 * 60_000  # what nobody has confirmed for so long is no longer sure
SHOWN = 120  # characters of one line


def fold_inputs(signs: Iterable[StatusInput | None], state: State = NEW) -> State:
    for sign in signs:
        state = apply(state, sign) if sign else state
    return state


def process(state: State) -> tuple[int, int] | None:
    """Pid and start of the agent's process, to ask whether it is alive."""
    _, pid, start = state.pid
    return (pid, start) if pid else None


def judge_status(state: State, now: int, alive: bool | None = None) -> Status:
    """`alive`: whether the process is; None if nobody can tell."""
    view = _View(state, now, alive)
    phase, evidence, confidence, since = view.judged()
    ended = state.closed if state.closed.at and not view.open else None
    return Status(
        phase=phase,
        evidence=evidence,
        confidence=confidence,
        since=since or None,
        heard_at=state.heard.at or None,
        activity=view.activity() if phase in ("running", "waiting_approval") else None,
        approval=view.waits.approval if phase == "waiting_approval" else None,
        questions=view.waits.questions if phase == "waiting" else [],
        subagent=phase != "exited" and view.subagent(),
        interrupted=ended is not None and ended.kind == "interrupted",
        activity_at=view.activity_at() if phase == "running" else None,
        failed=view.failure(ended) if ended is not None and ended.kind == "failed" else None,
    )


class _View:
    """A state at one moment."""

    def __init__(self, state: State, now: int, alive: bool | None) -> None:
        self.state = state
        self.now = now
        self.alive = alive
        self.silence = max(0, now - state.heard.at)
        self.started = self._started()
        # nothing before it is open
        self.barrier = max(state.closed, state.ready, self.started, state.exited)
        self.open = self._open()
        self.calls = self._calls()
        self.waits = PendingRequests(state, self.calls)

    def judged(self) -> tuple[str, str, str, int]:
        state = self.state
        if state.exited.at and not any(
            _after(mark, state.exited, tie=False) for mark in (state.started, state.prompt)
        ):
            why = f" ({state.exited.text})" if state.exited.text else ""
            return "exited", state.exited.word + why, _said_by(state.exited), state.exited.at
        if self.alive is False:
            return "exited", "the process is gone and did not say goodbye", "high", state.heard.at
        if self.waits.approval is not None:
            asked = self.waits.asked
            return "waiting_approval", asked.word, self._aged(_said_by(asked)), asked.at
        if self.waits.question_at:
            return (
                "waiting",
                "the agent asked a question",
                self._aged("high"),
                self.waits.question_at,
            )
        if self._compacting():
            return (
                "running",
                state.compacting.word,
                "high",
                self._since() if self.open else state.compacting.at,
            )
        if self.open:
            return self._running()
        return self._resting()

    # -- turns ------------------------------------------------------------------------------------

    def _started(self) -> LastHeard:
        """Codex says that a session starts when its first turn has begun."""
        late = self.state.started.at - self.state.prompt.at
        return LastHeard() if self.state.prompt.at and 0 <= late <= GRACE else self.state.started

    def _open(self) -> bool:
        state, barrier = self.state, self.barrier
        return (
            _after(state.prompt, barrier, tie=barrier.kind != "exited")
            or (state.worked.at > barrier.at + GRACE)
            or (state.worked.at == barrier.at > 0 and _after(state.worked, barrier, tie=False))
            or state.busy.at > barrier.at
        )

    def _running(self) -> tuple[str, str, str, int]:
        state, since = self.state, self._since()
        last = max(state.prompt, state.worked, state.busy)
        if self.silence <= QUIET:
            return "running", last.word, _said_by(last), since
        if self.calls:
            if self.alive:
                return "running", "a tool is at work and the process is alive", "high", since
            if self.silence <= LONG:
                return "running", "a tool has not answered yet", "low", since
        elif self.alive and (
            state.hooked or state.worked.kind != "spoke" or state.busy > state.worked
        ):
            return "running", "the turn is open and the process is alive", "medium", since
        elif not state.hooked and state.worked.kind == "spoke" and state.worked >= state.prompt:
            if state.single:
                return "exited", "it spoke last, and was run for one turn", "low", state.heard.at
            if self.silence >= IDLE:
                return "idle", "it spoke last, and is silent since", "low", state.heard.at
            return "unknown", "it spoke last; whether it is done nobody said", "low", state.heard.at
        return "unknown", "the turn is open, but nothing is heard of it", "low", state.heard.at

    def _since(self) -> int:
        state = self.state
        since = max(state.prompt.at, self.barrier.at, self.waits.released())
        # nobody said when the work began
        if state.prompt.at < self.barrier.at or not state.prompt.at:
            return max(since, state.compacting.at) or state.first
        return since

    def _resting(self) -> tuple[str, str, str, int]:
        state, barrier = self.state, self.barrier
        begun = max(self.started, state.exited)
        if state.closed > begun:
            return self._waiting(self._freed())
        if state.ready > begun and (
            state.ready.source == "hook" or max(state.prompt, state.worked) > begun
        ):
            return self._waiting(state.ready)
        if barrier.at:
            known = begun if begun.at else barrier
            return "idle", f"{known.word}; nothing was asked yet", _said_by(known), known.at
        if state.heard.at and self.silence >= IDLE:
            return "idle", "nothing is open and nothing is heard", "low", state.heard.at
        return "unknown", state.heard.word or "nothing was heard", "low", state.heard.at

    def _waiting(self, free: LastHeard) -> tuple[str, str, str, int]:
        since = max(free.at, self.state.compacted.at, self.waits.released())
        if self.state.single and not self.alive:
            return "exited", f"{free.word}; it was run for one turn", _said_by(free), since
        if self.alive is None and not self.state.hooked and self.silence > LONG:
            return "idle", f"{free.word}; whether it is still open nobody can tell", "low", since
        return "waiting", free.word, self._aged(_said_by(free)), since

    def _freed(self) -> LastHeard:
        """Who said that the turn is over: the hook is surer than the record that follows it."""
        state = self.state
        if _after(state.stopped, max(state.prompt, state.failed, state.interrupted), tie=False):
            return state.stopped
        return state.closed if _after(state.closed, state.prompt, tie=False) else state.ready

    def failure(self, ended: LastHeard) -> str:
        """In the words of the turn's own error: a hook has one word for it, often `unknown`."""
        error = self.state.erred
        told = error.text if _after(error, self.state.prompt, tie=True) else ""
        return told or ended.text or "unknown"

    def _compacting(self) -> bool:
        state = self.state
        over = max(self.barrier, state.compacted, state.prompt, state.worked)
        return (
            _after(state.compacting, over, tie=True)
            and self.now - state.compacting.at <= COMPACTING
        )

    def _calls(self, child: str = "") -> list[OpenToolCall]:
        """Unanswered ones of the open turn, oldest first."""
        start = self.barrier.at if not child else self._child_barrier(child)
        found = [
            c
            for c in self.state.calls.values()
            if c.child == child and c.at > start and not c.done_at
        ]
        return sorted(found, key=lambda call: (call.at, call.order))

    # -- what it does -----------------------------------------------------------------------------

    def activity(self) -> str | None:
        if told := self.waits.approval:
            return _line(told.tool or "", told.path or "", told.action or "") or None
        if self._compacting():
            return "compacting"
        if self.calls:
            return self._call_line(self.calls[-1])
        state = self.state
        if state.erred > max(state.worked, state.prompt):
            return _shortened(f"error: {state.erred.text}")
        return (
            "writing"
            if state.worked.kind == "spoke" and state.worked > state.prompt
            else "thinking"
        )

    def activity_at(self) -> int | None:
        calls = self._calls()
        return None if self._compacting() or not calls else calls[-1].at

    def _call_line(self, call: OpenToolCall) -> str:
        path = path_within(call.path, self.state.place.text)
        return _line(call.tool, path, call.task or call.text)

    def subagent(self) -> bool:
        return any(call.spawns for call in self.calls) or any(self._children())

    def _children(self) -> Iterator[bool]:
        for name, child in self.state.children.items():
            quiet = self.now - child.active
            told = self.state.hooked and self.alive is not False and quiet <= LONG
            yield child.active > self._child_barrier(name) and (
                quiet <= QUIET or told or bool(self._calls(name))
            )

    def _child_barrier(self, name: str) -> int:
        state = self.state
        own = state.children.get(name, Child()).stopped
        return max(own, state.started.at, state.exited.at, state.interrupted.at)

    def _aged(self, confidence: str) -> str:
        if self.alive or self.silence <= LONG:
            return confidence
        return {"high": "medium", "medium": "low"}.get(confidence, "low")


def _after(one: LastHeard, other: LastHeard, *, tie: bool) -> bool:
    """Records have an order; of two other signs of one moment `tie` says which counts."""
    if not one.at or one.at != other.at:
        return one.at > other.at
    return one.order > other.order if one.order and other.order else tie


def _said_by(mark: LastHeard) -> str:
    return (
        "high"
        if mark.source in ("hook", "process")
        else "medium"
        if mark.source == "transcript"
        else "low"
    )


def _line(tool: str, path: str, text: str) -> str:
    if path:
        return _shortened(f"{tool} {path}")
    return _shortened(f"{tool}: {text}" if tool and text else tool or text)


def _shortened(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
