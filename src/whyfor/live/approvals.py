"""Answers from the browser: what waits for one, and how it reaches the agent.

Claude Code asks us over HTTP and waits while its dialog is shown; Codex is asked for what waits
when the person answers. Every answer is written to the spool before it is given.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from whyfor.agents import AGENTS
from whyfor.agents.edits import asked_edits, is_edit
from whyfor.agents.facts import ApprovalFormat
from whyfor.capture.spool import append_answer
from whyfor.config import Settings
from whyfor.live.answer_address import ANSWER_SECONDS
from whyfor.live.hub import Hub
from whyfor.model.approvals import action_digest
from whyfor.model.errors import BadInput, StoreError
from whyfor.model.status import LiveStatus
from whyfor.model.times import wall_clock

_VALID = ANSWER_SECONDS * 1000
_LOOK = 0.5  # seconds between two looks at whether somebody answered in the terminal
_SETTLED = 2_000  # ms after which the status says what a session waits for
WORDS = {"allow": "allow", "deny": "deny"}


class WaitingAnswer(msgspec.Struct):
    """A request that can be answered in the browser, once."""

    id: str
    agent: str
    session_id: str
    action: str
    cwd: str
    asked_at: int
    tool: str = ""
    change: str = ""  # what an edit takes away and puts in
    held: bool = False  # the agent waits for our answer on a connection
    answered: str = ""
    wake: Callable[[], None] | None = None

    @property
    def digest(self) -> str:
        """A name of the action, by which the answer is joined to the request on record."""
        return action_digest(self.action)

    @property
    def shown(self) -> str:
        """A name of all that the person was shown."""
        return action_digest(f"{self.action}\0{self.change}")


class AnswerDesk:
    """What waits for an answer. Used from several threads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.Lock()
        self._waiting: dict[str, WaitingAnswer] = {}

    # -- what waits ------------------------------------------------------------------------------

    def waiting(self, standing: LiveStatus) -> WaitingAnswer | None:
        """Return what a session asks for, if it can be answered from here."""
        asked = standing.status.approval
        name = (standing.session.agent, standing.session.session_id)
        with self._lock:
            self._drop_old()
            open_now = [each for each in self._waiting.values() if not each.answered]
            held = [each for each in open_now if (each.agent, each.session_id) == name]
            if held:
                return held[-1]
            if asked is None or not asked.action or asked.cut or not asked.certain:
                return None
            if AGENTS[name[0]].answers(self.settings.user_home, self.settings.env) is None:
                return None
            cwd = standing.session.cwd or ""
            found = WaitingAnswer(
                _new_id(), *name, asked.action, cwd, asked.asked_at, asked.tool or ""
            )
            if self._was_answered(found):
                return None
            self._waiting[found.id] = found
            return found

    def held(self) -> list[WaitingAnswer]:
        """Return the requests for which an agent waits on a connection."""
        with self._lock:
            return [each for each in self._waiting.values() if each.held and not each.answered]

    def find(self, ident: str) -> WaitingAnswer | None:
        with self._lock:
            self._drop_old()
            return self._waiting.get(ident)

    def _was_answered(self, found: WaitingAnswer) -> bool:
        return any(
            each.answered and (each.session_id, each.asked_at) == (found.session_id, found.asked_at)
            for each in self._waiting.values()
        )

    def _drop_old(self) -> None:
        oldest = wall_clock() - _VALID
        gone = [each.id for each in self._waiting.values() if each.asked_at < oldest]
        for ident in gone:
            del self._waiting[ident]

    # -- answering -------------------------------------------------------------------------------

    def answer(self, ident: str, digest: str, word: str) -> WaitingAnswer:
        """Give an answer. Raises BadInput if the request is not there any more, was answered, or is
        not the one that was shown."""
        if word not in WORDS:
            raise BadInput("an answer is allow or deny", "Load the page again.")
        with self._lock:
            self._drop_old()
            found = self._waiting.get(ident)
            if found is None or found.answered:
                raise BadInput("this request was answered already", "Nothing was sent.")
            if not secrets.compare_digest(found.shown, digest):
                raise BadInput("this is not the command that was shown", "Load the page again.")
            found.answered = word
        self._write_down(found, word)
        if found.held and found.wake is not None:
            found.wake()
            return found
        reach = AGENTS[found.agent].answers(self.settings.user_home, self.settings.env)
        if reach is None or not reach(found.session_id, found.action, word == "allow"):
            raise BadInput(
                "the agent does not wait for this any more",
                "Look at its terminal; nothing was sent.",
            )
        return found

    def _write_down(self, found: WaitingAnswer, word: str) -> None:
        answer = {"by": "browser", "answer": word, "digest": found.digest}
        try:
            append_answer(self.settings.home, found.agent, found.session_id, answer)
        except OSError as error:
            found.answered = ""
            raise StoreError(
                f"the answer could not be written down: {error.strerror}", "Nothing was sent."
            ) from None

    # -- Claude Code, over HTTP ------------------------------------------------------------------

    async def hold(self, agent: str, body: bytes, is_settled: Settled) -> bytes:
        """Wait for an answer to a request and return it as the agent reads it; an empty object if
        there is none, or nobody sits there."""
        form = AGENTS[agent].facts.approvals if agent in AGENTS else None
        found = self._asked(agent, _payload(body), form)
        if form is None or found is None:
            return b"{}"
        woken = asyncio.Event()
        loop = asyncio.get_running_loop()
        found.wake = lambda: _call_soon(loop, woken.set)
        with self._lock:
            self._waiting[found.id] = found
        try:
            await self._await_answer(found, woken, is_settled)
        finally:
            with self._lock:
                found.held = False
                if not found.answered:
                    self._waiting.pop(found.id, None)
        return _reply(form, found.answered)

    async def _await_answer(
        self, found: WaitingAnswer, woken: asyncio.Event, is_settled: Settled
    ) -> None:
        end = time.monotonic() + ANSWER_SECONDS - 5
        while time.monotonic() < end and not woken.is_set():
            try:
                await asyncio.wait_for(woken.wait(), _LOOK)
            except TimeoutError:
                if is_settled(found):
                    return

    def _asked(
        self, agent: str, payload: dict[str, Any], form: ApprovalFormat | None
    ) -> WaitingAnswer | None:
        session = payload.get("session_id")
        given = payload.get(form.given) if form else None
        if form is None or not isinstance(session, str) or not isinstance(given, dict):
            return None
        if form.waits_unattended and not self._is_interactive(agent, session):
            return None  # nobody sees a dialog there: it must not wait for us
        action = given.get("command") or given.get("file_path")
        cwd = payload.get("cwd")
        if not isinstance(action, str) or not isinstance(cwd, str) or len(action) > 8000:
            return None
        return WaitingAnswer(
            _new_id(),
            agent,
            session,
            action,
            cwd,
            wall_clock(),
            tool=str(payload.get(form.tool, "")),
            change=_change(given),
            held=True,
        )

    def _is_interactive(self, agent: str, session_id: str) -> bool:
        listed = AGENTS[agent].processes(self.settings.user_home, self.settings.env)
        return any(
            process.session_id == session_id and process.interactive
            for process in (listed.running() if listed else ())
        )


Settled = Callable[[WaitingAnswer], bool]
"""Whether a request was answered elsewhere."""


def settled_by(hub: Hub) -> Settled:
    """Return what tells from the sessions' status that a request was answered in the terminal, or
    that the server ends."""

    def is_settled(found: WaitingAnswer) -> bool:
        if hub.closed:
            return True
        for each in hub.standings:
            if (each.session.agent, each.session.session_id) == (found.agent, found.session_id):
                went_on = (each.status.heard_at or 0) > found.asked_at
                known = wall_clock() > found.asked_at + _SETTLED  # the status may lag behind
                return each.status.approval is None and went_on and known
        return False

    return is_settled


def _change(given: dict[str, Any]) -> str:
    """Return what an edit would change, each line after its sign; empty if it is no edit."""
    diff = given.get("diff")
    if isinstance(diff, str):
        return diff
    if not is_edit(given, ""):
        return ""
    lines: list[str] = []
    for edit in asked_edits(given):
        new = edit.new if edit.whole is None else edit.whole
        lines += [f"-{line}" for line in edit.old.split("\n") if edit.old]
        lines += [f"+{line}" for line in new.split("\n")]
    return "\n".join(lines)


def _payload(body: bytes) -> dict[str, Any]:
    try:
        told = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return told if isinstance(told, dict) else {}


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    loop.call_soon_threadsafe(call)


def _reply(form: ApprovalFormat, word: str) -> bytes:
    if not word:
        return b"{}"
    decision = {"behavior": word}
    if word == "deny":
        decision["message"] = "The person you work for denied this on the page of Whyfor."
    told = {"hookSpecificOutput": {"hookEventName": form.event, "decision": decision}}
    return msgspec.json.encode(told if form.wrapped else decision)


def _new_id() -> str:
    return secrets.token_urlsafe(18)
