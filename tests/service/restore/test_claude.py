"""Claude Code's sessions, restored: the same lines under a new id, or several sessions as one
chain."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.service.restore.helpers import (
    as_subagent,
    assert_one_chain,
    assert_sound,
    blocks,
    bring_back,
    lines,
    parallel,
    seqs,
    talked,
    texts,
    tree,
)
from tests.transcripts import Transcript
from whyfor.service.restore import RestoredSource

Cli = Callable[..., Result]
MOVED = ("sessionId", "cwd", "forkedFrom")


def test_a_restored_session_is_the_same_lines_under_a_new_id(
    home: Path, cwd: Path, cli: Cli
) -> None:
    t = talked()
    path = t.save(home)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    cli("ingest")
    made = cli("restore", "--session", t.session_id, "--json").json

    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    folder = "".join(c if c.isalnum() else "-" for c in os.path.realpath(cwd))
    assert made["path"] == str(
        home / ".claude" / "projects" / folder / f"{made['session_id']}.jsonl"
    )
    assert (made["agent"], made["cwd"]) == ("claude", str(cwd))
    assert made["command"] == f"claude --resume {made['session_id']}"
    last = seqs("claude", t.session_id, "assistant.message")[-1]
    assert made["sessions"] == [{"agent": "claude", "session_id": t.session_id, "up_to": last}]
    *kept, title = lines(made["path"])
    assert [{k: v for k, v in line.items() if k not in MOVED} for line in kept] == [
        {k: v for k, v in line.items() if k not in MOVED} for line in t.lines
    ]
    assert {line["forkedFrom"]["sessionId"] for line in kept} == {t.session_id}
    assert {line["cwd"] for line in kept} == {str(cwd)}
    assert title == {
        "type": "custom-title",
        "customTitle": "Restored: Plant a fern (s1)",
        "sessionId": made["session_id"],
        "restoredFrom": f"claude:{t.session_id}",
    }
    assert_sound([*kept, title], made["session_id"])
    assert Path(made["path"]).stat().st_mode & 0o777 == 0o600
    assert Path(made["path"]).parent.stat().st_mode & 0o777 == 0o700


def test_nothing_after_the_cut_is_in_it(home: Path, cwd: Path, cli: Cli) -> None:
    t = talked()
    t.lines.append(
        {
            "type": "last-prompt",
            "lastPrompt": "Now the cactus",
            "leafUuid": "x",
            "sessionId": t.session_id,
        }
    )
    t.lines.insert(3, {"type": "ai-title", "aiTitle": "Ferns and cacti", "sessionId": t.session_id})
    t.save(home)
    cli("ingest")
    (commit,) = seqs("claude", t.session_id, "tool.result")
    made = bring_back(cwd, RestoredSource("claude", t.session_id, commit))

    found = lines(made.path)
    assert_sound(found, made.session_id)
    assert [record["type"] for record in found] == [
        "user",
        "assistant",
        "assistant",
        "assistant",
        "user",
        "custom-title",
    ]
    assert blocks(found[-2], "tool_result")[0]["content"] == "[main 126e95e] fern"


def test_results_of_parallel_calls_are_kept_and_a_call_without_one_is_not(
    home: Path, cwd: Path, cli: Cli
) -> None:
    t = Transcript("s1")
    t.prompt("Three at once")
    parallel(t, ("toolu_a", "committed"), ("toolu_b", "late"), ("toolu_c", None))
    t.say("Never seen.")
    t.save(home)
    cli("ingest")
    first = seqs("claude", t.session_id, "tool.result")[0]
    made = bring_back(cwd, RestoredSource("claude", t.session_id, first))

    found = lines(made.path)
    assert_sound(found, made.session_id)
    assert [b["id"] for r in found for b in blocks(r, "tool_use")] == ["toolu_a", "toolu_b"]
    assert [b["content"] for r in found for b in blocks(r, "tool_result")] == ["committed", "late"]
    assert "Never seen." not in Path(made.path).read_text()


def test_a_call_the_model_did_not_wait_for_stays(home: Path, cwd: Path, cli: Cli) -> None:
    t = Transcript("s1")
    t.prompt("Two at once")
    parallel(t, ("toolu_a", "done"), ("toolu_b", None))
    t.call("Bash", {"command": "ls"}, "all there")
    t.save(home)
    cli("ingest")

    found = lines(bring_back(cwd, RestoredSource("claude", t.session_id)).path)
    assert [b["id"] for r in found for b in blocks(r, "tool_use")][:2] == ["toolu_a", "toolu_b"]


def test_lines_hang_together_though_some_are_lost_or_of_no_message(
    home: Path, cwd: Path, cli: Cli
) -> None:
    t = Transcript("s1")
    t.prompt("Ask")
    t.add("progress", {}, data={"type": "hook_progress"})
    t.say("After the progress line.")
    t.add(
        "user",
        {"role": "user", "content": "Its parent is lost"},
        parentUuid="11111111-1111-4111-8111-111111111111",
    )
    t.lines.append(dict(t.lines[0]))
    t.save(home)
    cli("ingest")
    made = bring_back(cwd, RestoredSource("claude", t.session_id))

    found = [record for record in tree(lines(made.path)) if record["type"] != "progress"]
    assert_sound([*found, lines(made.path)[-1]], made.session_id)
    assert_one_chain(found)


def test_a_child_written_before_its_parent_stays_its_child(home: Path, cwd: Path, cli: Cli) -> None:
    a, b = talked("a"), talked("b", "2026-05-02")
    a.lines[1:3] = reversed(a.lines[1:3])
    for t in (a, b):
        t.save(home)
    cli("ingest")
    alone = lines(bring_back(cwd, RestoredSource("claude", a.session_id)).path)
    assert [r["parentUuid"] for r in tree(alone)] == [line["parentUuid"] for line in a.lines]
    both = lines(
        bring_back(
            cwd, RestoredSource("claude", a.session_id), RestoredSource("claude", b.session_id)
        ).path
    )
    assert {line["uuid"] for line in a.lines} <= {record["uuid"] for record in tree(both)}


def test_a_damaged_line_is_left_out(home: Path, cwd: Path, cli: Cli) -> None:
    t = talked()
    t.path(home).parent.mkdir(parents=True)
    t.path(home).write_text('{"broken": \n' + t.text())
    cli("ingest")
    made = bring_back(cwd, RestoredSource("claude", t.session_id))
    assert_sound(lines(made.path), made.session_id)
    assert len(tree(lines(made.path))) == len(t.lines)


def test_several_sessions_are_one_chain_by_time(home: Path, cwd: Path, cli: Cli) -> None:
    a, b = talked("a", "2026-05-01"), talked("b", "2026-05-02")
    later = Transcript("a", day="2026-05-03")
    later._parent, later._count = a.lines[-1]["uuid"], a._count
    later.prompt("And the rose")
    later.say("Cut.")
    a.lines += later.lines
    for t in (a, b):
        t.save(home)
    cli("ingest")
    tokens = cli("stats", "--json").json["tokens"]
    made = bring_back(
        cwd, RestoredSource("claude", b.session_id), RestoredSource("claude", a.session_id)
    )

    found = lines(made.path)
    assert_sound(found, made.session_id)
    assert_one_chain(found)
    said = [
        r["message"]["content"]
        for r in tree(found)
        if r["type"] == "user" and isinstance(r["message"]["content"], str)
    ]
    assert [text.split(" (")[0][:40] for text in said] == [
        "Plant a fern",
        "Now the cactus",
        f"[Whyfor: from here on session {b.session_id}"[:40],
        "Plant a fern",
        "Now the cactus",
        f"[Whyfor: from here on session {a.session_id}"[:40],
        "And the rose",
    ]
    assert "Claude Code, 2026-05-02" in said[2] and '"Plant a fern (b)"]' in said[2]
    cli("ingest")
    assert cli("stats", "--json").json["tokens"] == tokens
    assert len([t for k, t in texts("claude", made.session_id) if k == "user.prompt"]) == 5


@pytest.mark.parametrize("seed", range(8))
def test_however_sessions_interleave_calls_keep_their_results(
    home: Path, cwd: Path, cli: Cli, seed: int
) -> None:
    chance = random.Random(seed)
    made_of = [Transcript(f"s{number}") for number in range(3)]
    for _ in range(12):
        t = chance.choice(made_of)
        for other in made_of:  # one clock for all of them
            other._seconds = t._seconds
        t.prompt(f"Ask {chance.random()}")
        for call in range(chance.randrange(3)):
            names = [
                f"toolu_{t.session_id[:4]}_{len(t.lines)}_{call}_{n}"
                for n in range(chance.randint(1, 3))
            ]
            parallel(t, *((name, f"result of {name}") for name in names))
        t.say("Done.")
    for t in made_of:
        t.save(home)
    cli("ingest")
    with_lines = [t for t in made_of if t.lines]
    made = bring_back(cwd, *(RestoredSource("claude", t.session_id) for t in with_lines))

    found = tree(lines(made.path))
    assert_one_chain(found)
    assert_sound(lines(made.path), made.session_id)
    original = [line for t in made_of for line in t.lines]
    assert {r["uuid"] for r in found} >= {line["uuid"] for line in original}
    prompts = [
        r["timestamp"]
        for r in found
        if isinstance(r["message"]["content"], str) and r["type"] == "user"
    ]
    assert prompts == sorted(prompts)
    whose = ""
    waiting: set[str] = set()
    for record in found:
        owner = record.get("forkedFrom", {}).get("sessionId", "")
        assert owner in ("", whose) or not waiting, "nobody speaks between a call and its result"
        whose = owner
        waiting |= {block["id"] for block in blocks(record, "tool_use")}
        waiting -= {block["tool_use_id"] for block in blocks(record, "tool_result")}
    assert not waiting


def test_what_forks_share_is_said_once(home: Path, cwd: Path, cli: Cli) -> None:
    a = talked("a")
    fork = Transcript("fork")
    fork.lines = [{**line, "sessionId": fork.session_id} for line in a.lines[:6]]
    fork._parent, fork.day = a.lines[5]["uuid"], "2026-05-02"
    fork.prompt("Another way")
    for t in (a, fork):
        t.save(home)
    cli("ingest")
    made = bring_back(
        cwd, RestoredSource("claude", a.session_id), RestoredSource("claude", fork.session_id)
    )

    found = tree(lines(made.path))
    assert_one_chain(found)
    assert [r["uuid"] for r in found if "forkedFrom" in r] == [
        line["uuid"] for line in (*a.lines, fork.lines[-1])
    ]
    assert {r["forkedFrom"]["sessionId"] for r in found[:-2]} == {a.session_id}


def test_only_the_branch_that_was_gone_on_with_is_merged(home: Path, cwd: Path, cli: Cli) -> None:
    a, b = talked("a"), talked("b", "2026-05-02")
    a.add("user", {"role": "user", "content": "Rather a rose"}, parentUuid=a.lines[5]["uuid"])
    a.say("A rose.")
    for t in (a, b):
        t.save(home)
    cli("ingest")

    text = Path(
        bring_back(
            cwd, RestoredSource("claude", a.session_id), RestoredSource("claude", b.session_id)
        ).path
    ).read_text()
    assert "Rather a rose" in text
    assert text.count("Now the cactus") == 1, "the one of b"
    alone = Path(bring_back(cwd, RestoredSource("claude", a.session_id)).path).read_text()
    assert "Now the cactus" in alone, "a session by itself keeps its other branches"


def test_large_results_and_subagents_come_along_if_they_are_named(
    home: Path, cwd: Path, cli: Cli
) -> None:
    t = Transcript("s1")
    folder = t.path(home).with_suffix("")
    (folder / "tool-results").mkdir(parents=True)
    (folder / "subagents").mkdir()
    for name in ("toolu_big", "toolu_after"):
        (folder / "tool-results" / f"{name}.txt").write_text(f"all of {name}")
    t.prompt("Show me")
    t.block({"type": "tool_use", "id": "toolu_big", "name": "Bash", "input": {"command": "cat"}})
    told = f"<persisted-output>\nSaved to: {folder}/tool-results/toolu_big.txt"
    t.add(
        "user",
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "toolu_big", "content": told}],
        },
    )
    t.block({"type": "tool_use", "id": "toolu_sub", "name": "Agent", "input": {"prompt": "look"}})
    answer = {"type": "tool_result", "tool_use_id": "toolu_sub", "content": "looked"}
    t.add("user", {"role": "user", "content": [answer]}, toolUseResult={"agentId": "a1b2c3d"})
    t.prompt("More")
    t.call("Bash", {"command": "cat"}, "toolu_after")
    t.save(home)
    child = Transcript("child")
    child.prompt("look")
    child.say("looked")
    (folder / "subagents" / "agent-a1b2c3d.jsonl").write_text(
        as_subagent(child, "a1b2c3d", t.session_id)
    )
    (folder / "subagents" / "agent-a1b2c3d.meta.json").write_text(
        '{"agentType":"Explore","toolUseId":"toolu_sub"}'
    )
    (folder / "subagents" / "agent-fffffff.jsonl").write_text(
        child.text().replace("a1b2c3d", "fffffff")
    )
    cli("ingest")
    cut = seqs("claude", t.session_id, "user.prompt")[1] - 1
    made = bring_back(cwd, RestoredSource("claude", t.session_id, cut))

    new = Path(made.path).with_suffix("")
    beside = sorted(str(path.relative_to(new)) for path in new.rglob("*") if path.is_file())
    assert beside == [
        "subagents/agent-a1b2c3d.jsonl",
        "subagents/agent-a1b2c3d.meta.json",
        "tool-results/toolu_big.txt",
    ]
    assert (new / "tool-results" / "toolu_big.txt").read_text() == "all of toolu_big"
    assert {line["sessionId"] for line in lines(new / "subagents" / "agent-a1b2c3d.jsonl")} == {
        made.session_id
    }
    (saved,) = [
        b["content"]
        for r in lines(made.path)
        for b in blocks(r, "tool_result")
        if b["tool_use_id"] == "toolu_big"
    ]
    assert saved.endswith(str(new / "tool-results" / "toolu_big.txt"))


def test_the_work_of_a_subagent_is_resumed_by_the_session_that_called_it(
    home: Path, cwd: Path, cli: Cli
) -> None:
    t = talked()
    t.save(home)
    child = Transcript("child")
    child.prompt("look")
    child.say("looked")
    child.lines = [
        {**line, "sessionId": t.session_id, "isSidechain": True, "agentId": "a1b2c3d"}
        for line in child.lines
    ]
    folder = t.path(home).with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a1b2c3d.jsonl").write_text(as_subagent(child, "a1b2c3d", t.session_id))
    cli("ingest")
    name = f"agent-a1b2c3d@{t.session_id}"
    made = bring_back(
        cwd, RestoredSource("claude", name, seqs("claude", name, "assistant.message")[0])
    )

    assert [one["session_id"] for one in made.sessions] == [t.session_id]
    assert "Plant a fern (s1)" in Path(made.path).read_text()
    assert "The fern stands." not in Path(made.path).read_text(), "that was later"
