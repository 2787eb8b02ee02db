"""What happened in a session, gone through once: turns, files, checks and how they ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import msgspec

from whyfor.agents.edits import path_in, written_paths
from whyfor.agents.todos import open_todos
from whyfor.agents.tools import command_of, is_in_background, tool_kind
from whyfor.model.events import StoredEvent, call_text
from whyfor.model.memory import (
    PRINTED_MAX,
    CommandCount,
    Observation,
    ObservationType,
    Quote,
    cut_title,
)
from whyfor.story.command_families import CheckCommand, check_in, covers
from whyfor.story.failures import kind_of

FILES_MAX = 20
_FAMILIES_MAX = 200  # of commands in one session
_WORD = re.compile(r"[a-z]+")
_BETWEEN_MAX = 100  # files between a failure and what mended it
_NOT_RUN = (None, "denied", "blocked", "edit")  # kinds of failure
_TIDY = ("lint", "format", "fmt", "ruff", "black", "isort", "eslint", "prettier", "biome")


class RunningCheck(msgspec.Struct):
    """A check that was begun."""

    command: CheckCommand
    seq: int


class FailedCheck(msgspec.Struct):
    """The last failure of a family of checks."""

    check: RunningCheck
    result: int  # the event
    head: str
    written: int  # how many files had been written by then
    turn: int
    last: bool = True  # no later run may have passed


class SessionTurn(msgspec.Struct):
    """One turn: what was asked, said, read and written."""

    number: int
    at: int | None = None
    prompt: StoredEvent | None = None
    messages: list[StoredEvent] = []
    read: list[str] = []
    written: list[str] = []
    questions: list[StoredEvent] = []
    interrupted: bool = False  # and nothing was done or said after that
    last_step: int = 0  # the last event that took the work on; 0: none did


class SessionWalk:
    """Goes through a session's events once."""

    def __init__(self, session: str, agent: str) -> None:
        self.session = session
        self.agent = agent
        self.turns: dict[int, SessionTurn] = {}
        self.notes: list[Observation] = []
        self.running: dict[str, RunningCheck] = {}
        self.failures: dict[str, FailedCheck] = {}
        self.commands: dict[str, CommandCount] = {}
        self.written: list[str] = []  # files, in order
        self.pending: dict[str, list[str]] = {}  # files a call writes, until its result
        self.answered: set[str] = set()  # calls that have a result
        self.todos: list[Quote] = []  # open ones of the last list
        self.since_todos = 0  # calls after it

    def add(self, event: StoredEvent) -> None:
        turn = self.turns.get(event.turn)
        if turn is None:
            turn = self.turns[event.turn] = SessionTurn(event.turn, event.created_at, messages=[])
            turn.read, turn.written, turn.questions = [], [], []
        act = _ACTS.get(event.kind)
        if act:
            act(self, turn, event)

    def prompt(self, turn: SessionTurn, event: StoredEvent) -> None:
        if event.actor != "user":
            return
        if turn.prompt is None:
            turn.prompt = event
        else:
            turn.last_step = event.seq  # said while the agent worked

    def message(self, turn: SessionTurn, event: StoredEvent) -> None:
        if event.text:
            turn.messages.append(event)
            turn.interrupted = False

    def question(self, turn: SessionTurn, event: StoredEvent) -> None:
        turn.questions.append(event)

    def end(self, turn: SessionTurn, event: StoredEvent) -> None:
        turn.interrupted = turn.interrupted or bool((event.data or {}).get("interrupted"))

    def call(self, turn: SessionTurn, event: StoredEvent) -> None:
        turn.last_step = event.seq
        turn.interrupted = False
        self.since_todos += 1
        data = event.data or {}
        given = data.get("input")
        ident = _ident(data) or str(event.seq)
        kind = tool_kind(event.name or "", self.agent, given)
        if kind in ("shell", "typed"):
            if not is_in_background(given, ""):
                self._start_check(ident, command_of(given) or _words(event), event.seq)
        elif kind == "read":
            path = path_in(given)
            if path:
                turn.read.append(path)
        elif kind in ("todo", "plan"):
            self._list(given, event.seq)
        else:
            self.pending[ident] = written_paths(given, _words(event))

    def _list(self, given: object, seq: int) -> None:
        items = open_todos(given)
        if items is not None:
            self.todos = [Quote(seq, 0, 0, item) for item in items]
            self.since_todos = 0

    def _start_check(self, ident: str, command: str, seq: int) -> None:
        found = check_in(command)
        if found:
            self.running[ident] = RunningCheck(found, seq)

    def result(self, turn: SessionTurn, event: StoredEvent) -> None:
        data = event.data or {}
        ident = _ident(data)
        self.answered.add(ident)
        turn.last_step = event.seq
        failed = bool(data.get("failed"))
        written = self.pending.pop(ident, [])
        if not failed:
            turn.written.extend(written)
            self.written.extend(written)
        check = self.running.pop(ident, None)
        if check and _has_ended(event, failed):
            self._count(check.command, event, failed)
            self._judge(check, turn, event, failed)

    def _count(self, check: CheckCommand, event: StoredEvent, failed: bool) -> None:
        known = self.commands.get(check.family)
        if known is None:
            if len(self.commands) >= _FAMILIES_MAX:
                return
            known = CommandCount(check.family, check.text, runs=0, ok=0, failed=0, last_ok=None)
        passed = check.decides and not failed
        self.commands[check.family] = CommandCount(
            check.family,
            known.command if known.ok and not passed else check.text,
            runs=known.runs + 1,
            ok=known.ok + passed,
            failed=known.failed + (check.decides and check.alone and failed),
            last_ok=event.created_at if passed else known.last_ok,
            ok_seq=event.seq if passed else known.ok_seq,
        )

    def _judge(
        self, check: RunningCheck, turn: SessionTurn, event: StoredEvent, failed: bool
    ) -> None:
        """Note a check that fails; or that passes, after a change, where it failed before."""
        command = check.command
        before = self.failures.get(command.family)
        if command.decides and failed:
            if command.alone and (before or len(self.failures) < _FAMILIES_MAX):
                self.failures[command.family] = FailedCheck(
                    check, event.seq, event.text[:PRINTED_MAX], len(self.written), turn.number
                )
            return
        if before is None:
            return
        before.last = False
        if not command.decides or not covers(command, before.check.command):
            return
        del self.failures[command.family]
        between = self.written[before.written : before.written + _BETWEEN_MAX]
        if between:  # if nothing changed in between, it may just be flaky
            self.notes.append(self._fix(before, check, turn, event, between))

    def _fix(
        self,
        before: FailedCheck,
        check: RunningCheck,
        turn: SessionTurn,
        event: StoredEvent,
        between: Sequence[str],
    ) -> Observation:
        files = tuple(dict.fromkeys(between))[:FILES_MAX]
        family = check.command.family
        tidy = any(word in _TIDY for word in _WORD.findall(check.command.text))
        kind: ObservationType = "change" if tidy else "bugfix"
        return Observation(
            key=self.key(before.check.seq, "fixed"),
            type=kind,
            state="verified",
            title=cut_title(f"{family} failed, and passes after a change in {_names(files)}"),
            turn=turn.number,
            at=event.created_at,
            facts=(
                f"`{before.check.command.text}` failed",
                f"changed: {', '.join(files)}",
                f"`{check.command.text}` passed",
            ),
            files_written=files,
            anchors=files,
            concepts=(family,),
            evidence=(
                Quote(before.result, 0, len(before.head), before.head),
                Quote(check.seq, 0, 0, check.command.text),
            ),
        )

    def key(self, seq: int, rule: str) -> str:
        """The key of a note that rests on an event."""
        from hashlib import sha256  # here: OpenSSL takes longer to load than most runs take

        text = f"{self.session}\n{seq}\n{rule}"
        return sha256(text.encode()).hexdigest()[:16]


_ACTS: dict[str, Callable[[SessionWalk, SessionTurn, StoredEvent], None]] = {
    "user.prompt": SessionWalk.prompt,
    "assistant.message": SessionWalk.message,
    "question.asked": SessionWalk.question,
    "turn.completed": SessionWalk.end,
    "tool.call": SessionWalk.call,
    "tool.result": SessionWalk.result,
}


def _ident(data: dict[str, object]) -> str:
    ident = data.get("id")
    return ident if isinstance(ident, str) else ""


def _words(call: StoredEvent) -> str:
    """The words that a call was given."""
    return call.text or call_text(call.data or {})


def _has_ended(event: StoredEvent, failed: bool) -> bool:
    """Whether a command ran to its end: it was not denied, nor stopped by another's failure, nor
    left in the background."""
    if failed:
        return kind_of(event.kind, event.text[:PRINTED_MAX], ran=False) not in _NOT_RUN
    return not is_in_background(None, event.text)


def _names(files: Sequence[str]) -> str:
    names = [path.replace("\\", "/").rpartition("/")[2] for path in files[:3]]
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return ", ".join(names) + more
