"""The conversation behind a commit is forgotten: the commit says why it has no story, its
neighbours keep theirs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.service.forget.traces import CANARY, traces
from tests.story.links.conftest import hooked, plain, repo, shop
from tests.story.links.workshop import Agent, Repo, Workshop, body, linked
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.store.tombstones import SESSION, STORY

__all__ = ["hooked", "plain", "repo", "shop"]


def worked(repo: Repo) -> tuple[Agent, list[str]]:
    """Three commits of one session; the one in the middle is not for anybody."""
    agent = Agent("worker", repo)
    made = []
    for name in ("apples", CANARY, "plums"):
        agent.prompt(f"please add {name} to the shop as soon as you can")
        agent.think(f"they want {name}, rather than something else, so be it")
        agent.write(f"{name[:2]}.py", body(name[:2]) + f"# {name}\n")
        made.append(agent.commit(f"Add {name[:2]}"))
        agent.say(f"{name} is in the shop now")
        agent.lines.append(
            {
                "type": "last-prompt",
                "lastPrompt": f"please add {name} to the shop as soon as you can",
            }
        )
    return agent, made


def test_the_conversation_goes_and_its_neighbours_stay(
    shop: Workshop, repo: Repo, settings: Settings
) -> None:
    agent, made = worked(repo)
    shop.ingest(agent)
    before = shop.log()
    assert shop.cli("note", made[1], "--intent", f"about {CANARY}").code == 0
    done = shop.cli("forget", made[1], "--yes", "--json")
    assert done.code == 0, done
    assert done.json["commits"] == [made[1]]
    assert traces(settings.home) == []
    after = shop.log()
    assert (after[made[1]]["checkpoint"], after[made[1]]["reason"]) == (None, STORY)
    for sha in (made[0], made[2]):
        assert linked(after[sha]) == linked(before[sha])
        assert after[sha]["checkpoint"]["annotation"] == before[sha]["checkpoint"]["annotation"]
        texts = [line["text"] for line in shop.show(sha)["conversation"]]
        assert any("apples" in text or "plums" in text for text in texts)
    assert shop.cli("show", made[1]).code == 0
    shop.ingest(agent)
    assert shop.cli("link").code == 0
    assert shop.log()[made[1]]["checkpoint"] is None
    assert traces(settings.home) == []
    told = shop.log()
    rebuild(settings)
    ingest(settings)
    assert shop.log() == told
    assert traces(settings.home) == []


def test_what_is_left_of_the_session_goes_on(
    plain: Workshop, repo: Repo, settings: Settings
) -> None:
    agent, made = worked(repo)
    plain.ingest(agent)
    assert plain.cli("forget", made[1], "--yes").code == 0
    agent.prompt("and now pears, please, the green ones")
    agent.write("pears.py", body("pears"))
    made.append(agent.commit("Add pears"))
    plain.ingest(agent)
    assert linked(plain.log()[made[3]]) != {}
    assert traces(settings.home) == []
    restored = plain.cli("restore", made[2], "--json", "--yes")
    assert restored.code == 0, restored
    text = Path(restored.json["path"]).read_text()
    assert "apples" in text
    assert CANARY not in text
    lines = [json.loads(line) for line in text.splitlines()]
    known = {line.get("uuid") for line in lines}
    assert [
        line for line in lines if line.get("parentUuid") and line["parentUuid"] not in known
    ] == []


def test_a_forgotten_session_takes_its_stories_with_it(
    shop: Workshop, repo: Repo, settings: Settings
) -> None:
    agent, made = worked(repo)
    other = Agent("other", repo)
    other.prompt("please add cherries to the shop, red ones")
    other.write("cherries.py", body("cherries"))
    made.append(other.commit("Add cherries"))
    shop.ingest(agent, other)
    planned = shop.cli("forget", agent.session_id, "--dry-run", "--json").json
    before = shop.log()
    assert shop.cli("forget", agent.session_id, "--yes").code == 0
    assert sorted(planned["commits"]) == sorted(made[:3])
    assert traces(settings.home) == []
    after = _of(shop.log(), made)
    for sha in made[:3]:
        assert (after[sha]["checkpoint"], after[sha]["reason"]) == (None, SESSION)
    assert after[made[3]] == before[made[3]]
    shop.ingest(agent)
    shop.cli("link")
    assert _of(shop.log(), made) == after
    for _ in range(2):
        rebuild(settings)
        ingest(settings)
        assert _of(shop.log(), made) == after
        assert traces(settings.home) == []


def test_subagents_that_worked_for_the_commit_go_with_it(
    plain: Workshop, repo: Repo, settings: Settings
) -> None:
    agent, made = worked(repo)
    for number, about in ((9, CANARY), (1, "apples")):
        child = Transcript(f"child {number}")
        child.session_id = agent.session_id
        child.prompt(f"look after {about}")
        child.say(f"looked after {about}")
        for line in child.lines:
            line.update(
                agentId=f"abc{number}", isSidechain=True, timestamp=agent.lines[number]["timestamp"]
            )
        folder = agent.path(plain.home).parent / agent.session_id / "subagents"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"agent-abc{number}.jsonl").write_text(child.text())
    plain.ingest(agent)
    done = plain.cli("forget", made[1], "--yes", "--json").json
    assert [one["session_id"].partition("@")[0] for one in done["sessions"]] == ["agent-abc9"]
    assert traces(settings.home) == []
    left = {
        one["session_id"].partition("@")[0] for one in plain.cli("sessions", "--all", "--json").json
    }
    assert left == {agent.session_id, "agent-abc1"}
    plain.ingest()
    rebuild(settings)
    plain.ingest()
    assert traces(settings.home) == []


def test_a_text_goes_from_stories_notes_and_what_they_repeat_of_git(
    plain: Workshop, repo: Repo, settings: Settings
) -> None:
    agent = Agent("worker", repo)
    agent.prompt(f"please add {CANARY} to the shop. And be quick about it.")
    agent.write(f"{CANARY}.py", body("x"))
    sha = agent.commit(f"Add {CANARY}")
    agent.say("I considered a list, rather than a table, and left it out")
    plain.ingest(agent)
    assert plain.cli("note", sha, "--title", f"All about {CANARY}").code == 0
    before = plain.log()[sha]
    done = plain.cli("forget", "--match", CANARY, "--yes", "--json").json
    assert traces(settings.home) == []
    assert done["notes"] == 1
    assert f"commit {sha[:10]} itself, in git" in done["elsewhere"]
    after = plain.log()[sha]
    assert linked(after) == linked(before)
    assert (
        after["checkpoint"]["annotation"]["alternatives"]
        == before["checkpoint"]["annotation"]["alternatives"]
    )
    assert CANARY not in json.dumps(after["checkpoint"])
    rebuild(settings)
    assert traces(settings.home) == []
    assert plain.log()[sha] == after


@pytest.mark.parametrize("form", ["session", "match"])
def test_what_hooks_wrote_goes_too(
    form: str, hooked: Workshop, repo: Repo, settings: Settings, home: Path
) -> None:
    agent, _ = worked(repo)
    other = Agent("other", repo)
    hook = settings.home / "hook"
    payload = {"transcript_path": "/x", "hook_event_name": "UserPromptSubmit"}

    def announce(session: str, prompt: str) -> None:
        said = json.dumps({**payload, "session_id": session, "prompt": prompt})
        command = [
            "python3",
            "-I",
            "-S",
            str(hook / "hook.py"),
            "--agent",
            "claude",
            "UserPromptSubmit",
        ]
        subprocess.run(command, input=said.encode(), check=True, env={**os.environ}, timeout=60)

    announce(agent.session_id, f"read before: {CANARY}")
    announce(other.session_id, "somebody else about cherries")
    hooked.ingest(agent)
    announce(other.session_id, "somebody else about quinces")
    announce(agent.session_id, f"not read yet: {CANARY}")
    (hook / "errors.log").write_text(f"2026 ValueError: {CANARY}\n")
    (settings.home / "whyfor.db.damaged-1").write_text(CANARY)
    assert traces(settings.home)
    asked = ["--match", CANARY] if form == "match" else [agent.session_id]
    assert hooked.cli("forget", *asked, "--yes").code == 0
    assert traces(settings.home) == []
    announce(agent.session_id, "after it was forgotten, about medlars")
    hooked.ingest()
    spooled = b"".join(path.read_bytes() for path in settings.home.glob("spool/*"))
    assert b"cherries" in spooled
    assert b"quinces" in spooled
    assert (b"medlars" in spooled) == (form == "match")
    signals = [row for row in _signals(settings) if row[0] == "UserPromptSubmit"]
    assert [row[1] for row in signals].count(other.session_id) == 2
    assert [row[1] for row in signals].count(agent.session_id) == (1 if form == "match" else 0)
    everything = _signals(settings)
    hooked.ingest()
    rebuild(settings)
    hooked.ingest()
    assert _signals(settings) == everything
    assert traces(settings.home) == []


def _of(told: dict[str, dict[str, Any]], commits: list[str]) -> dict[str, dict[str, Any]]:
    """Of the first commit it is said that no session was active before it, once the first one is
    forgotten."""
    return {sha: told[sha] for sha in commits}


def _signals(settings: Settings) -> list[tuple[Any, ...]]:
    db = apsw.Connection(str(settings.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(db.execute("SELECT event, session_id, sha FROM signals ORDER BY at"))
    finally:
        db.close()
