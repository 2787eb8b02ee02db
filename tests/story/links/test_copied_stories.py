"""A commit made in a restored or forked copy of a session: every face counts what happened in the
copy, and nothing twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.service.restore.helpers import bring_back
from tests.story.links.workshop import Agent, Workshop, body
from whyfor.service.restore import RestoredSource


def _work(agent: Agent, name: str) -> str:
    agent.prompt(f"Add a {name}")
    agent.write(f"{name}.py", body(name))
    made = agent.commit(f"Add a {name}")
    agent.say(f"The {name} is there.")
    return made


def _restored(shop: Workshop, agent: Agent) -> Agent:
    """A copy of a session, and an agent that goes on in it."""
    made = bring_back(shop.repo.path, RestoredSource("claude", agent.session_id))
    copy = Agent("copy", shop.repo)
    copy.session_id = made.session_id
    copied = Path(made.path).read_text(encoding="utf-8").splitlines()
    copy.lines = [json.loads(line) for line in copied]
    Path(made.path).unlink()  # it is saved again where the others are
    return copy


def _forked(agent: Agent) -> Agent:
    fork = Agent("fork", agent.repo)
    fork.lines = [{**line, "sessionId": fork.session_id} for line in agent.lines]
    return fork


def _part(shop: Workshop, commit: str) -> dict[str, Any]:
    (part,) = shop.show(commit)["checkpoint"]["sessions"]
    found: dict[str, Any] = part
    return found


def test_copies_count_for_what_happens_in_them_on_every_face(plain: Workshop) -> None:
    agent = Agent("s1", plain.repo)
    first = _work(agent, "cart")
    plain.ingest(agent)
    before = plain.log()
    copy = _restored(plain, agent)
    plain.ingest(copy)
    assert plain.log() == before, "a copy that nobody opened changes nothing"
    assert plain.cli("stats", "--json").json["turns"] == 1

    second = _work(copy, "till")
    fork = _forked(agent)
    third = _work(fork, "shelf")
    plain.ingest(copy, fork)
    for commit, session in ((first, agent), (second, copy), (third, fork)):
        part = _part(plain, commit)
        assert part["session_id"] == session.session_id
        counts = [part[name] for name in ("prompts", "turns", "new_messages", "messages")]
        assert counts == [1, 1, 2, 2], commit
    stats = plain.cli("stats", "--json").json
    assert (stats["sessions"], stats["turns"]) == (1, 3)
    listed = {item["session_id"]: item for item in plain.cli("sessions", "--all", "--json").json}
    assert [listed[one.session_id]["prompts"] for one in (agent, copy, fork)] == [1, 1, 1]
    origin = agent.session_id[:8]
    assert f"restored from {origin}" in plain.cli("show", second).out
    assert f"from {origin}" in plain.cli("show", third).out
    assert f"from {origin}" not in plain.cli("show", first).out
    head = plain.cli("status", "--json").json["head"]
    assert head["checkpoint"]["sessions"][0]["new_messages"] == 2


def test_versions_of_a_rewritten_commit_share_its_story(plain: Workshop) -> None:
    """Rebased, then picked to another branch: the commit that the agent printed is gone."""
    repo = plain.repo
    agent = Agent("s1", repo)
    repo.git("checkout", "-q", "-b", "topic")
    _work(agent, "door")
    _work(agent, "lamp")
    plain.ingest(agent)
    repo.clock.tick(600)
    repo.git("checkout", "-q", "main")
    repo.commit("By hand", {"hand.py": body("hand")})
    repo.git("rebase", "-q", "main", "topic")
    rebased = repo.head
    repo.git("checkout", "-q", "-b", "release", "main")
    repo.git("cherry-pick", "-x", rebased)
    picked = repo.head
    repo.git("branch", "-D", "main")
    plain.ingest(agent)
    told, again = _part(plain, rebased), _part(plain, picked)
    assert (told["from"], told["to"]) == (again["from"], again["to"])
    assert told["prompts"] == again["prompts"] == 1
    assert (
        plain.show(picked)["checkpoint"]["group_root"]
        != plain.show(rebased)["checkpoint"]["group_root"]
    )
