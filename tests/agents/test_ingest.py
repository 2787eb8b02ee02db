"""What the real agents leave on disk, ingested: every number is the scripted one."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Result

from . import (
    ALL_AGENTS,
    Agent,
    Call,
    Claude,
    Fail,
    Gemini,
    Reply,
    Run,
    Say,
    ScriptedModel,
    Think,
    Usage,
)
from .script import Json

Cli = Callable[..., Result]

USAGES = (
    Usage(input=11, cache_read=22, cache_write=33, output=44, reasoning=55),
    Usage(input=7, cache_read=600, cache_write=5, output=4, reasoning=3),
    Usage(input=1, cache_read=1300, cache_write=2, output=8, reasoning=0),
    Usage(input=13, cache_read=0, cache_write=17, output=19, reasoning=23),
)
LATER = Usage(input=3, cache_read=900, cache_write=9, output=27, reasoning=81)
PROMPT = "Write a poem about a quokka"
DATABASES = ("opencode",)  # their rows are kept one by one; no file is compared
TOOLS = {
    "claude": ["Bash", "Write", "Edit"],
    "codex": ["exec_command", "apply_patch", "apply_patch"],
    "gemini": ["run_shell_command", "write_file", "replace"],
    "copilot": ["bash", "create", "edit"],
    "opencode": ["bash", "write", "edit"],
}


@pytest.fixture(params=ALL_AGENTS)
def agent(
    request: pytest.FixtureRequest,
    agent_home: Path,
    agent_repo: Path,
    scripted_model: ScriptedModel,
) -> Agent:
    git(agent_repo, "commit", "-q", "--allow-empty", "-m", "root")
    return ALL_AGENTS[request.param](agent_home, agent_repo, scripted_model)


@pytest.fixture
def claude(agent_home: Path, agent_repo: Path, scripted_model: ScriptedModel) -> Claude:
    return Claude(agent_home, agent_repo, scripted_model)


def git(repo: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=repo, capture_output=True, text=True, check=True
    ).stdout.strip()


def worked(agent: Agent) -> Run:
    """A run that thinks, speaks, runs a command, writes a file, edits it and closes."""
    poem = agent.cwd / "poem.txt"
    agent.model.add(
        Reply(
            Think("**Plan** ponder the marsupial"),
            Say("On it."),
            Call("shell", {"command": "echo hello"}),
            usage=USAGES[0],
        ),
        Reply(Call("write", {"path": poem, "content": "roses\nare red\n"}), usage=USAGES[1]),
        Reply(Call("edit", {"path": poem, "old": "are red", "new": "are blue"}), usage=USAGES[2]),
        Reply(Say("The poem is written."), usage=USAGES[3]),
    )
    run = agent.run(PROMPT)
    assert (run.code, poem.read_text()) == (0, "roses\nare blue\n")
    return run


def tokens(agent: Agent, *usages: Usage) -> Json:
    """What a session should have cost: input without cache, reasoning where the agent tells it."""
    total = {
        name: sum(getattr(usage, name) for usage in usages) for name in Usage.__dataclass_fields__
    }
    match agent.name:
        case "claude" | "copilot":  # do not tell reasoning apart from output
            return {**total, "output": total["output"] + total["reasoning"], "reasoning": None}
        case "codex":  # its output includes the reasoning
            return {**total, "output": total["output"] + total["reasoning"]}
        case "opencode":  # takes reasoning from what the API does not say: none
            return {**total, "output": total["output"] + total["reasoning"], "reasoning": 0}
        case _:  # Gemini has no word for cache writes
            return {**total, "input": total["input"] + total["cache_write"], "cache_write": None}


def title(agent: Agent) -> str:
    """OpenCode asks its model for one, and is answered as all asides are."""
    return "ok" if agent.name == "opencode" else PROMPT


def ingest(cli: Cli) -> Json:
    """Read everything new, and nothing in it may be damaged or unknown."""
    report: Json = cli("ingest", "--json").json
    unknown = {
        health["agent"]: health["unknown_types"]
        for health in cli("doctor", "--json").json["agents"]
    }
    assert not any(unknown.values()), unknown
    assert (report["unparsed"], report["unknown_types"], report["unreadable"]) == (0, 0, [])
    return report


def only_session(cli: Cli) -> Json:
    (session,) = cli("sessions", "--all", "--json").json
    found: Json = session
    return found


def events(cli: Cli, session_id: str, *kinds: str) -> list[Json]:
    shown: list[Json] = cli("show", session_id, "--json").json["events"]
    return [event for event in shown if not kinds or event["kind"] in kinds]


def texts(cli: Cli, session_id: str, kind: str) -> list[str]:
    return [event["text"] for event in events(cli, session_id, kind)]


def written(agent: Agent) -> int:
    """Records in all session files: Gemini, resumed in another minute, begins a second one."""
    return sum(path.read_bytes().count(b"\n") for path in agent.home.glob(agent.sessions))


def test_a_fresh_session_is_ingested_exactly(agent: Agent, cli: Cli) -> None:
    run = worked(agent)
    report = ingest(cli)

    assert (report["sessions"], report["subagents"]) == (1, 0)
    assert report["records"] == report["new_records"] > 0
    if agent.name not in DATABASES:
        assert report["records"] == written(agent)
    session = only_session(cli)
    asked = agent.model.main_requests[0]
    expected = {
        "agent": agent.name,
        "session_id": run.session_id,
        "cwd": str(agent.cwd),
        "project": f"git:{git(agent.cwd, 'rev-parse', 'HEAD')}",
        "branch": None if agent.name in ("gemini", "opencode") else "main",
        "title": title(agent),
        "prompts": 1,
        "messages": 3,
        "tool_calls": 3,
        "tokens": tokens(agent, *USAGES),
        "models": [asked.body.get("model") or "gemini-2.5-flash"],
        "files_modified": [str(agent.cwd / "poem.txt")],
        "parent_session_id": None,
        "unparsed": 0,
    }
    assert {name: session[name] for name in expected} == expected
    assert texts(cli, run.session_id, "user.prompt") == [PROMPT]
    assert texts(cli, run.session_id, "assistant.message") == ["On it.", "The poem is written."]
    (thought,) = texts(cli, run.session_id, "assistant.thinking")
    assert "ponder the marsupial" in thought
    assert [event["name"] for event in events(cli, run.session_id, "tool.call")] == TOOLS[
        agent.name
    ]
    results = events(cli, run.session_id, "tool.result")
    assert "hello" in results[0]["text"]
    assert [bool((event["data"] or {}).get("failed")) for event in results] == [False] * 3
    if agent.name not in DATABASES:
        assert cli("show", run.session_id, "--raw").out == run.transcript.read_bytes().decode()
    words = (
        "quokka poem",
        "marsupial",
        f"tool:{TOOLS[agent.name][1]}",
        "file:poem.txt",
        '"poem is written"',
    )
    hits = [cli("search", asked, "--json").json for asked in words]
    assert [[(hit["session_id"], hit["turn"]) for hit in found] for found in hits] == [
        [(run.session_id, 1)]
    ] * len(words)
    assert cli("search", "quokka", "--in", "prompts", "--json").json[0]["kind"] == "user.prompt"


def test_a_resumed_session_goes_on_where_it_was(agent: Agent, cli: Cli) -> None:
    git(agent.cwd, "remote", "add", "origin", "git@example.com:Ada/Poems.git")
    first = worked(agent)
    ingest(cli)
    before, told = written(agent), events(cli, first.session_id)
    agent.model.add(Reply(Say("A numbat, then."), usage=LATER))
    second = agent.resume(first.session_id, "And about a numbat?")
    report = ingest(cli)

    assert second.code == 0
    assert report["new_records"] > 0
    if agent.name not in DATABASES:
        assert report["new_records"] == written(agent) - before
    session = only_session(cli)
    assert (session["session_id"], session["project"]) == (
        first.session_id,
        "example.com/ada/poems",
    )
    assert (session["prompts"], session["messages"], session["tool_calls"]) == (2, 5, 3)
    assert session["tokens"] == tokens(agent, *USAGES, LATER)
    assert session["title"] == title(agent)
    now = events(cli, first.session_id)
    assert [e["seq"] for e in now] == list(range(1, len(now) + 1))
    assert now[: len(told)] == told, "what was there stays as it was"
    new = [e for e in now[len(told) :] if e["kind"] in ("user.prompt", "assistant.message")]
    assert [(e["turn"], e["text"]) for e in new] == [
        (2, "And about a numbat?"),
        (2, "A numbat, then."),
    ]
    if agent.name not in DATABASES:
        assert cli("show", first.session_id, "--raw").out == first.transcript.read_bytes().decode()
    assert ingest(cli)["new_records"] == 0


def test_a_session_of_geminis_resumed_in_another_minute_stays_one(
    agent_home: Path, agent_repo: Path, scripted_model: ScriptedModel, cli: Cli
) -> None:
    gemini = Gemini(agent_home, agent_repo, scripted_model)
    scripted_model.add(
        Reply(Say("A quokka."), usage=USAGES[0]), Reply(Say("A numbat."), usage=USAGES[1])
    )
    first = gemini.run("Name an animal")
    # Its name has the minute it was begun in: this one began long ago.
    earlier = first.transcript.with_name(
        re.sub(r"session-\d{4}", "session-2000", first.transcript.name)
    )
    first.transcript.rename(earlier)
    ingest(cli)
    second = gemini.resume(first.session_id, "And another")
    ingest(cli)

    assert len(second.files) == 2
    session = only_session(cli)
    assert (session["session_id"], session["prompts"], session["messages"]) == (
        first.session_id,
        2,
        4,
    )
    assert session["tokens"] == tokens(gemini, *USAGES[:2])
    assert cli("show", first.session_id, "--raw").out == earlier.read_bytes().decode()


def test_a_failing_command_is_a_failure_of_its_turn(agent: Agent, cli: Cli) -> None:
    agent.model.add(Call("shell", {"command": "echo oh dear; exit 3"}), Say("It failed."))
    run = agent.run("Try it")
    ingest(cli)

    (answer,) = events(cli, run.session_id, "tool.result")
    assert answer["data"]["failed"] is True
    assert "oh dear" in answer["text"]
    (turn,) = [
        turn
        for turn in cli("show", run.session_id, "--turns", "--json").json["turns"]
        if turn["prompt"]
    ]
    assert (turn["failures"], turn["closing"]) == (1, "It failed.")


def test_an_edit_that_failed_modified_nothing(agent: Agent, cli: Cli) -> None:
    path = agent.cwd / "absent.txt"
    agent.model.add(
        Call("edit", {"path": path, "old": "roses", "new": "tulips"}), Say("It failed.")
    )
    run = agent.run("Edit it")
    ingest(cli)

    (answer,) = events(cli, run.session_id, "tool.result")
    assert answer["data"]["failed"] is True
    assert only_session(cli)["files_modified"] == []


def test_an_error_of_the_model_leaves_a_prompt_without_an_answer(agent: Agent, cli: Cli) -> None:
    agent.model.add(Fail(400, "no such luck"))
    run = agent.run("Try it")
    ingest(cli)

    session = only_session(cli)
    assert (session["session_id"], session["prompts"], session["messages"]) == (
        run.session_id,
        1,
        1,
    )
    assert session["tokens"] == dict.fromkeys(Usage.__dataclass_fields__)
    assert session["models"] == []
    errors = texts(cli, run.session_id, "error")
    if agent.name == "gemini":
        assert "no such luck" not in run.transcript.read_text(), (
            "it prints the error and does not keep it"
        )
    else:
        assert ["no such luck" in error for error in errors] == [True]


def test_a_subagent_of_claudes_is_a_session_of_its_own(claude: Claude, cli: Cli) -> None:
    task: dict[str, Any] = {"description": "look for it", "prompt": "Look for the wombat"}
    claude.model.add(
        Reply(
            Say("Asking."),
            Call("Agent", {**task, "subagent_type": "general-purpose"}),
            usage=USAGES[0],
        ),
        Reply(
            Call("write", {"path": claude.cwd / "wombat.txt", "content": "here\n"}), usage=USAGES[1]
        ),
        Reply(Say("Wombat seen."), usage=USAGES[2]),
        Reply(Say("It was seen."), usage=USAGES[3]),
    )
    run = claude.run("Where is the wombat?")
    report = ingest(cli)

    assert (report["sessions"], report["subagents"]) == (1, 1)
    main, child = cli("sessions", "--all", "--json").json
    assert (main["session_id"], child["parent_session_id"]) == (run.session_id, run.session_id)
    assert child["session_id"] == f"{run.files[1].stem}@{run.session_id}"
    assert (child["subagent"], child["title"]) == ("general-purpose", "look for it")
    assert (main["prompts"], child["prompts"]) == (1, 0)
    assert main["tokens"] == tokens(claude, USAGES[0], USAGES[3])
    assert child["tokens"] == tokens(claude, USAGES[1], USAGES[2])
    assert cli("stats", "--json").json["tokens"] == tokens(claude, *USAGES)
    assert (main["files_modified"], child["files_modified"]) == (
        [],
        [str(claude.cwd / "wombat.txt")],
    )
    shown = cli("show", run.session_id, "--json").json
    assert shown["subagents"] == [child["session_id"]]
    told = [e["kind"] for e in shown["events"] if e["kind"].startswith("subagent.")]
    assert told == ["subagent.started", "subagent.stopped"]
    assert texts(cli, child["session_id"], "user.prompt") == ["Look for the wombat"]
    assert texts(cli, child["session_id"], "assistant.message") == ["Wombat seen."]
    assert cli("show", child["session_id"], "--raw").out == run.files[1].read_bytes().decode()


def test_parallel_calls_of_claudes_are_one_response_and_no_branches(
    claude: Claude, cli: Cli
) -> None:
    (claude.cwd / "notes.txt").write_text("a wallaby\n")
    at_once = [
        Call("shell", {"command": "echo one"}),
        Call("read", {"path": claude.cwd / "notes.txt"}),
        Call("shell", {"command": "exit 1"}),
    ]
    claude.model.add(Reply(*at_once, usage=USAGES[0]), Reply(Say("All three."), usage=USAGES[1]))
    run = claude.run("Do three things at once")
    claude.model.add(Say("Welcome."))
    claude.resume(run.session_id, "Thanks")
    ingest(cli)

    session = only_session(cli)
    assert (session["prompts"], session["tool_calls"], session["files_modified"]) == (2, 3, [])
    assert session["tokens"] == tokens(claude, USAGES[0], USAGES[1], Usage())
    shown = cli("show", run.session_id, "--json").json
    assert shown["abandoned_turns"] == []
    answered = {
        e["data"]["id"]: bool(e["data"].get("failed"))
        for e in shown["events"]
        if e["kind"] == "tool.result"
    }
    called = [e["data"]["id"] for e in shown["events"] if e["kind"] == "tool.call"]
    assert [answered[ident] for ident in called] == [False, False, True]
    uuids = {e["data"].get("uuid") for e in shown["events"] if e["data"]}
    parents = [e["data"]["parent"] for e in shown["events"] if (e["data"] or {}).get("parent")]
    assert set(parents) <= uuids, "every parent is an event that is told"


def test_a_fork_of_claudes_repeats_no_tokens(claude: Claude, cli: Cli) -> None:
    claude.model.add(
        Reply(Say("First answer."), usage=USAGES[0]), Reply(Say("Second answer."), usage=USAGES[1])
    )
    first = claude.run("A first question")
    second = claude.resume(first.session_id, "A second question", "--fork-session")
    ingest(cli)

    assert first.session_id != second.session_id
    found = {session["session_id"]: session for session in cli("sessions", "--json").json}
    assert found[first.session_id]["tokens"] == tokens(claude, USAGES[0])
    assert found[second.session_id]["tokens"] == tokens(claude, USAGES[1])
    assert found[second.session_id]["prompts"] == 1, "the other is of the session it began with"
    assert cli("stats", "--json").json["tokens"] == tokens(claude, *USAGES[:2])


def test_the_price_is_what_claude_code_says_it_is(claude: Claude, cli: Cli) -> None:
    claude.model.add(
        Reply(Call("shell", {"command": "echo hello"}), usage=USAGES[0]),
        Reply(
            Say("Done."), usage=Usage(input=4_000, cache_read=90_000, cache_write=7_000, output=900)
        ),
    )
    run = claude.run(PROMPT, "--output-format", "json")
    told = json.loads(run.stdout)["total_cost_usd"]
    cli("ingest")
    (session,) = cli("sessions", "--json").json
    assert told > 0
    assert session["cost"]["unpriced"] == 0
    assert session["cost"]["usd"] == pytest.approx(told, rel=0.001)
