"""The harness itself, proved with each of the real agents."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from . import (
    AGENTS,
    Agent,
    Call,
    Codex,
    Fail,
    Reply,
    Request,
    Run,
    Say,
    ScriptedModel,
    Think,
    Usage,
)
from .process import run_clean
from .script import Json

FIRST = Usage(input=11, cache_read=22, cache_write=33, output=44, reasoning=55)
LAST = Usage(input=7, cache_read=600, cache_write=5, output=4, reasoning=3)

# Where formats.md says each agent keeps a session.
PLACES = {
    "claude": r"\.claude/projects/[-A-Za-z0-9]+/{id}\.jsonl",
    "codex": r"\.codex/sessions/\d{{4}}/\d\d/\d\d/rollout-[-T0-9]{{19}}-{id}\.jsonl",
    "gemini": r"\.gemini/tmp/repo/chats/session-[-T0-9]{{16}}-{id8}\.jsonl",
}


@pytest.fixture(params=AGENTS)
def agent(
    request: pytest.FixtureRequest,
    agent_home: Path,
    agent_repo: Path,
    scripted_model: ScriptedModel,
) -> Agent:
    return AGENTS[request.param](agent_home, agent_repo, scripted_model)


def test_a_run_works_in_the_repository_keeps_its_session_and_is_resumed(agent: Agent) -> None:
    first = worked_once(agent)

    assert (agent.cwd / "made.txt").read_text() == "made\n"
    assert "All is well." in first.stdout
    place = PLACES[agent.name].format(id=first.session_id, id8=first.session_id[:8])
    assert re.fullmatch(place, str(first.transcript.relative_to(agent.home)))
    kept = first.transcript.read_text()
    assert all(
        text in kept for text in ("Make the file", "ponder the file", "On it.", "All is well.")
    )

    usage, expected = KEPT_USAGE[agent.name], EXPECTED_USAGE[agent.name]
    assert usage(first.records) == [expected(FIRST), expected(LAST)], "the scripted tokens"

    agent.model.add(Say("Still well."))
    second = agent.resume(first.session_id, "Is it still?")

    assert second.code == 0
    assert "Still well." in second.stdout
    assert (second.session_id, second.transcript) == (first.session_id, first.transcript)
    sent = agent.model.main_requests[-1]
    assert "Make the file" in sent.said("user")
    assert "echo made > made.txt" in sent.said("assistant")
    assert sent.history[-2:] == (("assistant", "All is well."), ("user", "Is it still?"))


def test_tools_are_the_agents_own_and_neither_the_callers_environment_nor_a_process_is_left_to_it(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "1")
    agent.extra_env["GIVEN_BY_THE_TEST"] = "1"
    path = agent.cwd / "poem.txt"
    agent.model.add(
        Call("write", {"path": path, "content": "roses\nare red\n"}),
        Call("edit", {"path": path, "old": "are red", "new": "are blue"}),
        Call("read", {"path": path}),
        Call("shell", {"command": "env > env.txt"}),
        Call("shell", {"command": "setsid sleep 600 > /dev/null 2>&1 & echo $! > pid.txt"}),
    )
    run = agent.run("Write a poem", grace=0)

    assert run.code == 0
    assert path.read_text() == "roses\nare blue\n"
    assert "are blue" in agent.model.main_requests[3].history[-1].text
    assert "done" in run.stdout, "a script that ran out ends the turn"

    env = dict(
        line.split("=", 1)
        for line in (agent.cwd / "env.txt").read_text().splitlines()
        if "=" in line
    )
    assert "SECRET_OF_THE_CALLER" not in env
    assert env["GIVEN_BY_THE_TEST"] == "1"
    assert (env["HOME"], env["TMPDIR"]) == (str(agent.home), str(agent.home / "tmp"))

    assert not is_running((agent.cwd / "pid.txt").read_text())


def test_an_agent_told_of_an_error_fails(agent: Agent) -> None:
    agent.model.add(Fail(400, "no such luck"))
    run = agent.run("Try")

    assert run.code != 0
    assert "no such luck" in run.stdout + run.stderr


def test_a_step_may_be_a_function_of_the_request(
    agent_home: Path, agent_repo: Path, scripted_model: ScriptedModel
) -> None:
    def echo(request: Request) -> Reply:
        return Reply(Say(f"You said: {request.history[-1].text}"))

    scripted_model.add(echo)
    run = Codex(agent_home, agent_repo, scripted_model).run("Hello there")

    assert run.stdout == "You said: Hello there\n"


def test_asides_do_not_take_a_step_of_the_script(scripted_model: ScriptedModel) -> None:
    scripted_model.add(Say("for the main loop"))
    tools = [{"name": f"tool{number}"} for number in range(20)]

    title = post(scripted_model, "/v1/messages", {"messages": []})
    count = post(scripted_model, "/v1/messages/count_tokens", {"messages": [], "tools": tools})
    main = post(scripted_model, "/v1/messages", {"messages": [], "tools": tools})

    assert title["content"][0]["text"] == "ok"
    assert count == {"input_tokens": 1}
    assert main["content"][0]["text"] == "for the main loop"
    assert [request.main for request in scripted_model.requests] == [False, False, True]


def test_what_outlives_a_program_is_given_its_grace_and_then_killed(tmp_path: Path) -> None:
    leave_two = "(sleep 0.3; echo late > late.txt) & setsid sleep 600 & echo $! > pid.txt"
    done = run_clean(
        ["sh", "-c", leave_two], tmp_path, {"PATH": "/usr/bin:/bin"}, timeout=60, grace=2
    )

    assert (tmp_path / "late.txt").exists()
    assert done.killed == ("sleep 600",)
    assert not is_running((tmp_path / "pid.txt").read_text())


def test_a_program_that_hangs_is_stopped_with_its_children(tmp_path: Path) -> None:
    hang = "setsid sleep 600 & echo $! > pid.txt; echo so far; sleep 600"
    with pytest.raises(AssertionError, match="so far"):
        run_clean(["sh", "-c", hang], tmp_path, {"PATH": "/usr/bin:/bin"}, timeout=2, grace=0)

    assert not is_running((tmp_path / "pid.txt").read_text())


def worked_once(agent: Agent) -> Run:
    """A run that thinks, speaks, writes a file through a shell command, and closes."""
    work = Call("shell", {"command": "echo made > made.txt"})
    agent.model.add(
        Reply(Think("**Plan** ponder the file"), Say("On it."), work, usage=FIRST),
        Reply(Say("All is well."), usage=LAST),
    )
    run = agent.run("Make the file")
    assert run.code == 0
    assert run.killed == ()
    assert agent.model.outside == []
    return run


def claude_usage(records: list[Json]) -> list[Json]:
    # One line per block, each with the usage of the whole response.
    messages = [record["message"] for record in records if record["type"] == "assistant"]
    usages = {message["id"]: message["usage"] for message in messages}
    return [{key: usage[key] for key in claude_expects(FIRST)} for usage in usages.values()]


def codex_usage(records: list[Json]) -> list[Json]:
    return [
        record["payload"]["usage"] for record in records if record["type"] == "token_usage_record"
    ]


def gemini_usage(records: list[Json]) -> list[Json]:
    # A message is written again when its tool calls are done.
    return list(
        {record["id"]: record["tokens"] for record in records if "tokens" in record}.values()
    )


def claude_expects(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation_input_tokens": usage.cache_write,
        "output_tokens": usage.output + usage.reasoning,
    }


def codex_expects(usage: Usage) -> Json:
    return {
        "input_tokens": usage.input + usage.cache_read + usage.cache_write,
        "cached_input_tokens": usage.cache_read,
        "cache_write_input_tokens": usage.cache_write,
        "output_tokens": usage.output + usage.reasoning,
        "reasoning_output_tokens": usage.reasoning,
        "total_tokens": usage.total,
    }


def gemini_expects(usage: Usage) -> Json:
    return {
        "input": usage.input + usage.cache_read + usage.cache_write,
        "cached": usage.cache_read,
        "output": usage.output,
        "thoughts": usage.reasoning,
        "tool": 0,
        "total": usage.total,
    }


KEPT_USAGE: dict[str, Callable[[list[Json]], list[Json]]] = {
    "claude": claude_usage,
    "codex": codex_usage,
    "gemini": gemini_usage,
}
EXPECTED_USAGE: dict[str, Callable[[Usage], Json]] = {
    "claude": claude_expects,
    "codex": codex_expects,
    "gemini": gemini_expects,
}


def is_running(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid.strip()}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def post(model: ScriptedModel, path: str, body: Json) -> Json:
    connection = http.client.HTTPConnection(urlsplit(model.url).netloc)
    try:
        connection.request("POST", path, json.dumps(body))
        answer: Json = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return answer
