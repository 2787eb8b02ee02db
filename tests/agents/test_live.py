"""The real Claude Code, seen live: what a person sees in its terminal is what the hub says."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents import Say, ScriptedModel
from tests.agents.test_status import in_terminal
from tests.agents.test_stories import Desk, shell, work
from tests.live import Live
from whyfor import config
from whyfor.model.status import Status


@pytest.fixture
def desk(agent_home: Path, agent_repo: Path, scripted_model: ScriptedModel) -> Iterator[Desk]:
    desk = Desk(agent_home, agent_repo, scripted_model)
    desk.git("commit", "-q", "--allow-empty", "-m", "root")
    desk.whyfor("init")
    yield desk
    assert not (desk.kept / "hook" / "errors.log").exists(), (
        desk.kept / "hook" / "errors.log"
    ).read_text()


@pytest.fixture
def live(desk: Desk) -> Iterator[Live]:
    with Live(config.load({**desk.env, "WHYFOR_HOME": str(desk.kept)})) as live:
        live.until((desk.kept / "hook" / "bell").exists)
        yield live


def now(live: Live) -> Status | None:
    standings = live.hub.standings
    return standings[0].status if standings else None


def phase(live: Live) -> str | None:
    found = now(live)
    return found.phase if found else None


def action(live: Live) -> str | None:
    found = now(live)
    return found.approval.action if found and found.approval else None


def test_a_session_in_a_terminal_from_its_start_to_its_end(desk: Desk, live: Live) -> None:
    desk.model.add(shell("touch quokka.txt"), Say("The quokka is there."))
    with in_terminal(desk) as terminal:
        terminal.see("for shortcuts")
        terminal.enter("Touch the quokka")
        terminal.see("Do you want to")
        live.until(lambda: action(live) == "touch quokka.txt")
        assert phase(live) == "waiting_approval"
        terminal.press("1")
        terminal.see("The quokka is there.")
        live.until(lambda: phase(live) == "waiting")
        live.until(lambda: live.texts("assistant.message") == ["The quokka is there."])
        terminal.enter("/exit")
        assert terminal.leave() == 0
        live.until(lambda: phase(live) == "exited")
    assert terminal.killed == (), "no ingest was started beside the one that watches"
    (standing,) = live.hub.standings
    told = live.phases(standing.session.session_id)
    assert [told.index(name) for name in ("waiting_approval", "waiting", "exited")] == sorted(
        told.index(name) for name in ("waiting_approval", "waiting", "exited")
    )
    assert "running" in told[: told.index("waiting_approval")]
    seqs = [event["seq"] for event in live.events(standing.session.session_id)]
    assert seqs == list(range(1, len(seqs) + 1))


def test_a_killed_one_has_exited_within_a_moment(desk: Desk, live: Live) -> None:
    desk.model.add(shell("touch begun; while [ ! -e enough ]; do sleep 0.1; done"))
    with in_terminal(desk, "--allowedTools", "Bash") as terminal:
        terminal.see("for shortcuts")
        terminal.enter("Wait for enough")
        live.until((desk.repo / "begun").exists)
        live.until(lambda: phase(live) == "running" and bool(live.texts("user.prompt")))
        os.kill(terminal._process.pid, signal.SIGKILL)
        live.until(lambda: phase(live) == "exited", 5)
        terminal.leave()
        (desk.repo / "enough").touch()


def test_a_commit_has_its_story_by_the_one_that_watches(desk: Desk, live: Live) -> None:
    command = "echo hop > quokka.txt && git add -A && git commit -m 'Add the quokka'"
    work(desk.agent("claude"), "Write of the quokka", shell(command), Say("The quokka is written."))
    sha = desk.git("rev-parse", "HEAD")
    stories = desk.kept / "hook" / "stories"
    live.until(lambda: stories.exists() and stories.read_text().startswith(sha))
    live.until(lambda: desk.show()["conversation"][-1]["text"] == "The quokka is written.")
    assert desk.show()["checkpoint"]["evidence"] == "hook"
    live.until(
        lambda: (
            [(told["commit"], told["evidence"]) for told in live.commits()][-1:] == [(sha, "hook")]
        )
    )
    live.until(lambda: phase(live) == "exited")


# One line of JSON for each notification.
_WRITE_DOWN = """
import json, os, sys
names = ("STATUS", "PROJECT", "TITLE", "TEXT")
with open(sys.argv[1], "a") as file:
    file.write(json.dumps([os.environ["WHYFOR_NOTIFY_" + name] for name in names]) + "\\n")
"""


def test_a_notification_says_what_is_asked_and_what_was_said(desk: Desk) -> None:
    """The hooks come before the record: each notification still has its title and its words."""
    told = desk.kept.parent / "told.jsonl"
    command = json.dumps([sys.executable, "-c", _WRITE_DOWN, str(told)])
    desk.kept.mkdir(exist_ok=True)
    (desk.kept / "config.toml").write_text(f"[notify]\ncommand = {command}\n")
    desk.model.add(shell("sleep 3; touch quokka.txt"), Say("The quokka is there."))
    settings = config.load({**desk.env, "WHYFOR_HOME": str(desk.kept)})
    with Live(settings, notify=True) as live:
        live.until((desk.kept / "hook" / "bell").exists)
        with in_terminal(desk) as terminal:
            terminal.see("for shortcuts")
            terminal.enter("Touch the quokka")
            terminal.see("Do you want to")
            live.until(lambda: told.exists() and "waiting_approval" in told.read_text())
            terminal.press("1")
            terminal.see("The quokka is there.")
            live.until(lambda: told.read_text().count("\n") == 2)
            terminal.enter("/exit")
            assert terminal.leave() == 0
    assert live.complaints == []
    asked, waits = (json.loads(line) for line in told.read_text().splitlines())
    assert asked[:3] == ["waiting_approval", desk.repo.name, "Touch the quokka"]
    assert "sleep 3; touch quokka.txt" in asked[3]
    assert waits[:3] == ["waiting", desk.repo.name, "Touch the quokka"]
    assert waits[3] == "The quokka is there"
