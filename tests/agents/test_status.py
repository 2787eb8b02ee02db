"""Status, from what the real agents tell: their hooks, their transcripts, Claude Code's list of
its processes."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable
from itertools import groupby
from pathlib import Path

import msgspec
import pytest

from whyfor import config
from whyfor.model.errors import NotFound
from whyfor.model.signals import Signal
from whyfor.model.status import Status
from whyfor.service.ingest import ingest
from whyfor.store.open import reading_local
from whyfor.store.sqlite.connection import fetch
from whyfor.story.status.inputs import StatusInput, of_event, of_process, of_signal
from whyfor.story.status.judge import fold_inputs, judge_status, process
from whyfor.story.status.state import NEW, apply

from . import AGENTS, Call, Reply, Request, Say
from .script import Answer
from .terminal import Terminal
from .test_stories import PATIENCE, Desk, bare, desk, shell, work

__all__ = ["bare", "desk"]  # fixtures


class Watcher:
    """Reads what is kept of the newest session, as a server would, and judges it."""

    def __init__(self, desk: Desk, agent: str) -> None:
        self.desk = desk
        self.agent = agent
        self.settings = config.load({**desk.env, "WHYFOR_HOME": str(desk.kept)})

    def signs(self) -> list[StatusInput]:
        """In the order they came to be, the transcript's after the hooks' of the same moment."""
        with reading_local(self.settings) as library:
            rows = fetch(
                library.db,
                "SELECT at, agent, event, cwd, session_id, data FROM signals WHERE "
                "session_agent=? ORDER BY id",
                (self.agent,),
            )
            if not rows:
                return []  # the first hook is still on its way
            ident = rows[-1][4]
            hooks = [
                of_signal(Signal(at, agent, event, cwd, data=msgspec.json.decode(data)))
                for at, agent, event, cwd, session, data in rows
                if session == ident
            ]
            try:
                events = list(
                    library.conversation.events(library.sessions.find(ident, self.agent).id)
                )
            except NotFound:
                events = []  # Claude Code writes no file before the first prompt
        return [sign for sign in hooks if sign] + [of_event(event) for event in events]

    def registry(self) -> list[StatusInput]:
        found = []
        for path in (self.desk.home / ".claude" / "sessions").glob("*.json"):
            entry = json.loads(path.read_text() or "{}")
            if entry.get("status"):
                found.append(
                    of_process(
                        entry["status"], entry.get("waitingFor", ""), entry["statusUpdatedAt"]
                    )
                )
        return found

    def look(self, *, registry: bool) -> Status:
        ingest(self.settings)
        state = fold_inputs([*self.signs(), *(self.registry() if registry else [])])
        pid = process(state)
        return judge_status(state, int(time.time() * 1000), alive=_alive(*pid) if pid else None)

    def see(self, wanted: Callable[[Status], object], *, registry: bool = False) -> Status:
        deadline = time.monotonic() + PATIENCE
        while not wanted(found := self.look(registry=registry)):
            assert time.monotonic() < deadline, found
        return found

    def phases(self, shortest: int = 0) -> list[str]:
        """All it went through for so many ms, by what is known in the end; without its process."""
        state, found = NEW, []
        for sign in sorted(self.signs(), key=lambda sign: (sign.at, sign.order)):
            state = apply(state, sign)
            found.append((sign.at, judge_status(state, sign.at).phase))
        begun = [next(same) for _, same in groupby(found, key=lambda told: told[1])]
        ends = [at for at, _ in begun[1:]] + [begun[-1][0] + shortest]
        lasting = [
            phase for (at, phase), end in zip(begun, ends, strict=True) if end - at >= shortest
        ]
        return [phase for phase, _ in groupby(lasting)]


def _alive(pid: int, start: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return int(stat.rpartition(")")[2].split()[19]) == start


class Gate:
    """A step of the model's that waits until the test has seen enough."""

    def __init__(self) -> None:
        self.opened = threading.Event()

    def __call__(self, request: Request) -> Answer:
        assert self.opened.wait(PATIENCE)
        return Reply(Say("That is done."))


def in_terminal(desk: Desk, *arguments: str) -> Terminal:
    known = {
        "hasCompletedOnboarding": True,
        "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
        "projects": {str(desk.repo): {"hasTrustDialogAccepted": True}},
    }
    env = desk.agent("claude").env
    (desk.home / ".claude.json").write_text(json.dumps(known))
    return Terminal(["claude", *arguments], desk.repo, env, PATIENCE)


def test_what_a_person_sees_and_does_in_claude_is_told_right(desk: Desk) -> None:
    watcher, gate = Watcher(desk, "claude"), Gate()
    desk.model.add(
        shell("touch quokka.txt"), gate, shell("touch numbat.txt"), shell("touch wombat; sleep 60")
    )
    with in_terminal(desk) as terminal:
        terminal.see("for shortcuts")
        assert watcher.see(lambda now: now.phase == "idle").evidence.startswith("SessionStart")

        terminal.enter("Touch the quokka")
        terminal.see("Do you want to")
        asked = watcher.see(lambda now: now.approval and now.approval.action)
        assert asked.approval is not None
        assert (asked.phase, asked.confidence) == ("waiting_approval", "high")
        assert (asked.approval.tool, asked.approval.action) == ("Bash", "touch quokka.txt")
        assert (asked.approval.certain, asked.activity) == (True, "Bash: touch quokka.txt")
        again = watcher.look(registry=True).approval
        assert again is not None
        # the transcript may tell which call it is only now
        assert msgspec.structs.replace(again, call=asked.approval.call) == asked.approval

        terminal.press("1")
        running = watcher.see(lambda now: now.phase == "running")
        assert (running.activity, running.approval) == ("thinking", None)
        assert asked.since and running.since and running.since > asked.since
        gate.opened.set()
        terminal.see("That is done.")
        waiting = watcher.see(lambda now: now.phase == "waiting")
        assert (waiting.evidence, waiting.confidence, waiting.interrupted) == (
            "Stop hook",
            "high",
            False,
        )

        terminal.enter("Touch the numbat")
        terminal.see("Do you want to")
        watcher.see(lambda now: now.approval and now.approval.action == "touch numbat.txt")
        terminal.press("3")
        denied = watcher.see(lambda now: now.phase == "waiting")
        assert (denied.interrupted, denied.approval) == (True, None)
        assert denied.since and waiting.since and denied.since > waiting.since

        terminal.enter("Touch the wombat")
        terminal.see("Do you want to")
        watcher.see(lambda now: now.phase == "waiting_approval")
        terminal.press("1")
        _wait_for(desk.repo / "wombat")
        at_work = watcher.see(lambda now: now.phase == "running", registry=True)
        assert (at_work.evidence, at_work.activity) == (
            "process: busy",
            "Bash: touch wombat; sleep 60",
        )
        assert watcher.look(registry=False).phase == "waiting_approval", (
            "no hook and no record tells of a yes"
        )
        terminal.press("\x1b")
        broken = watcher.see(lambda now: now.phase == "waiting")
        assert broken.interrupted

        terminal.enter("/exit")
        assert terminal.leave() == 0
    gone = watcher.see(lambda now: now.phase == "exited")
    assert gone.evidence == "SessionEnd hook (prompt_input_exit)"
    turn = ["running", "waiting_approval"]
    seen = watcher.phases(shortest=20)
    answered = ["idle", *turn, "running", "waiting"]
    assert seen[: len(answered)] == answered
    assert _without_breath(seen[len(answered) :]) == [*turn, "waiting", *turn, "waiting", "exited"]


def _without_breath(phases: list[str]) -> list[str]:
    """A no is written as the tool's answer first, then as the end of the turn: between the two
    the agent is at work, for as long as a busy machine takes."""
    breath = ["waiting_approval", "running", "waiting"]
    return [
        phase for at, phase in enumerate(phases) if at == 0 or phases[at - 1 : at + 2] != breath
    ]


def _wait_for(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not come"
        time.sleep(0.01)


def test_a_question_waits_for_its_answer_and_a_killed_process_has_exited(desk: Desk) -> None:
    watcher = Watcher(desk, "claude")
    options = [
        {"label": "Numbat", "description": "stripes"},
        {"label": "Wombat", "description": "round"},
    ]
    question = {
        "question": "Which one is next?",
        "header": "Next",
        "multiSelect": False,
        "options": options,
    }
    command = "touch begun; while [ ! -e enough ]; do sleep 0.1; done"
    desk.model.add(Call("AskUserQuestion", {"questions": [question]}), shell(command))
    with in_terminal(desk, "--allowedTools", "Bash") as terminal:
        terminal.see("for shortcuts")
        terminal.enter("Write of an animal")
        terminal.see("Wombat")
        asking = watcher.see(lambda now: now.questions)
        assert (asking.phase, asking.questions, asking.approval) == (
            "waiting",
            ["Which one is next?"],
            None,
        )
        assert watcher.look(registry=True).questions == asking.questions
        terminal.press("2")
        _wait_for(desk.repo / "begun")
        busy = watcher.see(lambda now: now.activity == f"Bash: {command}")
        assert (busy.phase, busy.questions) == ("running", [])
        pid = process(fold_inputs(watcher.signs()))
        assert pid and _alive(*pid)
        os.kill(pid[0], signal.SIGKILL)
        terminal.leave()
        gone = watcher.look(registry=True)
        assert (gone.phase, gone.confidence, gone.activity) == ("exited", "high", None)
        assert "goodbye" in gone.evidence
        (desk.repo / "enough").touch()
    assert watcher.phases(shortest=20)[-1] == "running", "nothing was written about its end"


def test_a_subagent_at_work_is_told(desk: Desk) -> None:
    task = {
        "description": "Look around",
        "prompt": "Look around",
        "subagent_type": "general-purpose",
    }
    work(
        desk.agent("claude"),
        "Let others look",
        Call("Agent", task),
        shell("ls"),
        Say("Empty."),
        Say("It is empty."),
    )
    watcher, known, seen = Watcher(desk, "claude"), NEW, []
    for sign in sorted(watcher.signs(), key=lambda sign: (sign.at, sign.order)):
        known = apply(known, sign)
        now = judge_status(known, sign.at)
        seen.append((now.phase, now.subagent, now.activity))
    assert ("running", True, "Agent: Look around") in seen
    assert seen[-1] == ("exited", False, None)
    assert watcher.phases() == ["idle", "running", "waiting", "exited"]


@pytest.mark.parametrize("name", AGENTS)
def test_a_run_without_a_terminal_works_waits_and_exits(name: str, desk: Desk) -> None:
    work(desk.agent(name), "List them", shell("ls"), Say("There is nothing."))
    watcher = Watcher(desk, name)
    assert watcher.look(registry=False).phase == "exited"
    assert watcher.phases() == ["idle", "running", "waiting", "exited"]
