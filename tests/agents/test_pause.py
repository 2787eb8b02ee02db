"""Pause and resume with the real agents: their hooks, their files, and no byte of what was said
in between."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.pause.canary import assert_nowhere
from whyfor.story.links.resolve import PAUSED

from . import AGENTS, Reply, Say, ScriptedModel
from .test_stories import Desk, commit, poem, said, shell, work, write

PROGRAM = Path(sys.executable).with_name("whyfor")


@pytest.fixture
def desk(agent_home: Path, agent_repo: Path, scripted_model: ScriptedModel) -> Iterator[Desk]:
    desk = Desk(agent_home, agent_repo, scripted_model)
    desk.git("commit", "-q", "--allow-empty", "-m", "root")
    desk.whyfor("init")
    yield desk
    assert not (desk.kept / "hook" / "errors.log").exists(), (
        desk.kept / "hook" / "errors.log"
    ).read_text()


@pytest.mark.parametrize("name", AGENTS)
def test_a_session_paused_in_the_middle_and_resumed(name: str, desk: Desk) -> None:
    """Once by a pause of everything, once by one of the repository."""
    agent = desk.agent(name)
    first = work(
        agent,
        "Write of the quokka",
        write(desk.repo / "quokka.txt", poem("quokka")),
        commit("Add the quokka"),
        Say("Done."),
    )
    for bird, scope in (("canary", []), ("yellow canary", ["--repo"])):
        desk.whyfor("pause", *scope)
        spooled = {path: path.read_bytes() for path in (desk.kept / "spool").iterdir()}
        work(
            agent,
            f"Write of the {bird}",
            Reply(Say(f"The {bird} it is."), write(desk.repo / f"{bird}.txt", poem(bird))),
            commit(f"Add the {bird}"),
            Say(f"The {bird} is there."),
            resume=first,
        )
        assert {path: path.read_bytes() for path in (desk.kept / "spool").iterdir()} == spooled, (
            "hooks were silent"
        )
        assert desk.read("status")["paused"]
        desk.whyfor("ingest")
        assert_nowhere("canary", desk.kept)
        desk.whyfor("resume", *scope)
    work(
        agent,
        "Write of the numbat",
        write(desk.repo / "numbat.txt", poem("numbat")),
        commit("Add the numbat"),
        Say("The numbat is there."),
        resume=first,
    )
    for again in ("ingest", "rebuild", "ingest"):
        assert_nowhere("canary", desk.kept)
        log = desk.log()
        assert [told["checkpoint"] is not None for told in log.values()] == [
            False,
            True,
            False,
            False,
            True,
        ]
        assert log["Add the canary"]["reason"] == log["Add the yellow canary"]["reason"] == PAUSED
        numbat = said(desk.show(), "user.prompt", "assistant.message")
        assert numbat == ["Write of the numbat", "The numbat is there."]
        desk.whyfor(again)
    for path in desk.kept.glob("whyfor.db*"):
        path.unlink()
    desk.whyfor("ingest")
    assert_nowhere("canary", desk.kept)
    assert desk.read("status")["paused"] == []


@pytest.mark.parametrize("name", AGENTS)
def test_a_session_pauses_itself_from_inside(name: str, desk: Desk) -> None:
    agent = desk.agent(name)
    first = work(agent, "Say hello", Say("Hello."))
    work(
        agent,
        "Now something private",
        shell(f"{PROGRAM} pause --session"),
        Reply(Say("The canary it is."), write(desk.repo / "canary.txt", poem("canary"))),
        shell(f"{PROGRAM} resume --session"),
        Say("Back again."),
        resume=first,
    )
    desk.whyfor("ingest")
    assert_nowhere("canary", desk.kept)
    told = desk.read("show", first.session_id)
    texts = [
        event["text"]
        for event in told["events"]
        if event["kind"] in ("user.prompt", "assistant.message")
    ]
    assert texts == ["Say hello", "Hello.", "Now something private", "Back again."]
