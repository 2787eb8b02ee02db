"""Every token and every message of a session is in one commit, or in none yet."""

from __future__ import annotations

import json
from typing import Any

from tests.story.links.workshop import Agent, Workshop, body

FIELDS = ("input", "cache_read", "cache_write", "output")


def spent(tokens: dict[str, Any] | None) -> list[int]:
    return [(tokens or {}).get(name) or 0 for name in FIELDS]


def total(*parts: list[int]) -> list[int]:
    return [sum(column) for column in zip(*parts, strict=True)]


def of_session(shop: Workshop, agent: Agent) -> list[int]:
    (found,) = (
        s for s in shop.cli("sessions", "--json").json if s["session_id"] == agent.session_id
    )
    return spent(found["tokens"])


def a_day(shop: Workshop) -> tuple[Agent, list[str]]:
    """Three commits by the agent, one by a person, and something nobody has committed."""
    agent = Agent("s1", shop.repo)
    made = []
    agent.prompt("Add a cart and a till")
    for name in ("cart", "till"):
        agent.think(f"About the {name}")
        agent.write(f"{name}.py", body(name))
        made.append(agent.commit(f"Add a {name}"))
    agent.say("Both are there.")
    agent.prompt("A door, but let me commit it")
    agent.write("door.py", body("door"))
    agent.say("Here it is.")
    made.append(shop.repo.commit("A door"))
    agent.prompt("And a bell")
    agent.write("bell.py", body("bell"))
    made.append(agent.commit("Add a bell"))
    agent.say("It rings.")
    return agent, made


def test_tokens_of_all_commits_are_those_of_the_session(shop: Workshop) -> None:
    agent, made = a_day(shop)
    shop.ingest(agent)
    own = [spent(shop.show(sha)["tokens"]) for sha in made]
    assert total(*own) == of_session(shop, agent)
    assert all(tokens[-1] for tokens in own)
    answers = sum(line["type"] == "assistant" for line in agent.lines)
    assert total(*own)[-1] == 10 * answers


def test_what_is_in_no_commit_is_the_rest(shop: Workshop) -> None:
    agent, made = a_day(shop)
    shop.ingest(agent)
    committed = total(*(spent(shop.show(sha)["tokens"]) for sha in made))
    agent.prompt("Now something that is never committed")
    for _ in range(3):
        agent.say("Thinking about it.")
    shop.ingest(agent)
    assert total(*(spent(shop.show(sha)["tokens"]) for sha in made)) == committed
    assert total(committed, [9, 300, 60, 30]) == of_session(shop, agent)


def test_a_streamed_answer_counts_once(shop: Workshop) -> None:
    agent, made = a_day(shop)
    twice = [line for line in agent.lines if line["type"] == "assistant"][2]
    agent.lines.insert(
        agent.lines.index(twice) + 1, {**twice, "uuid": agent._id(), "parentUuid": twice["uuid"]}
    )
    shop.ingest(agent)
    own = [spent(shop.show(sha)["tokens"]) for sha in made]
    assert total(*own) == of_session(shop, agent)
    assert total(*own)[-1] == 10 * (sum(line["type"] == "assistant" for line in agent.lines) - 1)


def test_no_message_is_in_two_commits(shop: Workshop) -> None:
    agent, made = a_day(shop)
    shop.ingest(agent)
    lines = [(line["seq"], line["text"]) for sha in made for line in shop.show(sha)["conversation"]]
    assert len(lines) == len(set(lines))
    prompts = [text for _, text in lines if text.startswith(("Add a cart", "A door", "And a bell"))]
    assert prompts == ["Add a cart and a till", "A door, but let me commit it", "And a bell"]
    parts = [shop.show(sha)["checkpoint"]["sessions"][0] for sha in made]
    assert sum(part["new_messages"] for part in parts) == parts[-1]["messages"]
    assert sum(part["prompts"] for part in parts) == 3


def test_a_rewritten_commit_counts_once(shop: Workshop) -> None:
    agent, made = a_day(shop)
    shop.ingest(agent)
    before = total(*(spent(shop.show(sha)["tokens"]) for sha in made))
    shop.repo.git("commit", "-q", "--amend", "-m", "Add a louder bell")
    shop.ingest(agent)
    now = [*made[:-1], shop.repo.head]
    assert (
        total(*(spent(shop.show(sha)["tokens"]) for sha in now))
        == before
        == of_session(shop, agent)
    )
    between = shop.cli("diff", f"{made[0]}~1", "HEAD", "--json").json
    assert spent(between["tokens"]) == before


def test_a_subagents_tokens_and_work_count_once_for_who_called_it(shop: Workshop) -> None:
    agent = Agent("s1", shop.repo)
    agent.prompt("Let somebody add a cart")
    helper = Agent("helper", shop.repo)

    def do() -> tuple[str, dict[str, Any]]:
        helper.prompt("Add a cart")
        helper.write("cart.py", body("cart"))
        helper.say("Added.")
        return "Added.", {
            "status": "completed",
            "agentId": "a1b2c3",
            "content": [{"type": "text", "text": "Added."}],
        }

    agent._called(
        "Agent", {"description": "cart", "prompt": "Add a cart", "subagent_type": "general"}, do
    )
    agent.say("It is there.")
    made = shop.repo.commit("A cart")
    agent.prompt("And a till")
    agent.write("till.py", body("till"))
    second = agent.commit("Add a till")
    folder = agent.path(shop.home).with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    told = {"sessionId": agent.session_id, "isSidechain": True, "agentId": "a1b2c3"}
    lines = [{**line, **told} for line in helper.lines]
    (folder / "agent-a1b2c3.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    shop.ingest(agent)
    story = shop.show(made)
    assert [part["session_id"] for part in story["checkpoint"]["sessions"]] == [agent.session_id]
    assert story["checkpoint"]["sessions"][0]["lines"] == 6
    answers = sum(line["type"] == "assistant" for line in (*agent.lines, *helper.lines))
    assert total(spent(story["tokens"]), spent(shop.show(second)["tokens"]))[-1] == 10 * answers


def test_lines_are_those_git_counts(shop: Workshop) -> None:
    agent, made = a_day(shop)
    shop.ingest(agent)
    for sha in made:
        listed = shop.repo.git("show", "--numstat", "--format=", sha).split("\n")
        wanted = [(int(a), int(r), path) for a, r, path in (line.split("\t") for line in listed)]
        told = shop.show(sha)
        assert [(f["added"], f["removed"], f["path"]) for f in told["files"]] == wanted
        for part in told["checkpoint"]["sessions"]:
            assert part["share"] is None or 0 < part["share"] <= 1
            assert (part["lines"] or 0) <= sum(a + r for a, r, _ in wanted)
