"""whyfor restore: what is chosen, what is refused, and that a refusal leaves nothing behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.agents.samples import sample
from tests.conftest import Result
from tests.service.restore.helpers import as_subagent, bring_back, lines, seqs, talked, texts
from tests.service.restore.test_codex import planted
from tests.transcripts import Transcript
from whyfor import config
from whyfor.model.checkpoints import Checkpoint, Part
from whyfor.model.times import to_iso
from whyfor.service import restore as restoring
from whyfor.service.restore import RestoredSource, wanted
from whyfor.story import commit_stories as stories

Cli = Callable[..., Result]


def part(agent: str, session_id: str, first: int, last: int) -> Part:
    return Part(agent, session_id, "output", "high", "made", last, first, last, 3, 3)


def commits(monkeypatch: pytest.MonkeyPatch, *parts: Part) -> None:
    """A story for every commit asked for."""
    found = Checkpoint(
        "126e95e0" * 5,
        "git:x",
        "Ferns",
        "Ada",
        "a@b.c",
        0,
        0,
        [],
        False,
        None,
        [],
        list(parts),
        None,
        None,
        "",
        None,
        None,
    )
    monkeypatch.setattr(stories, "require_checkpoint", lambda *_: found)


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


def test_a_commit_gives_its_sessions_up_to_it(
    home: Path, cwd: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = talked("a"), talked("b", "2026-05-02")
    for t in (a, b):
        t.save(home)
    cli("ingest")
    last = seqs("claude", a.session_id, "tool.result")[0]
    commits(monkeypatch, part("claude", a.session_id, 1, last), part("claude", b.session_id, 1, 3))

    both = cli("restore", "--json").json
    assert [(one["session_id"], one["up_to"]) for one in both["sessions"]] == [
        (a.session_id, last),
        (b.session_id, 3),
    ]
    assert lines(both["path"])[-1]["customTitle"] == "Restored 126e95e0: Ferns"
    one = cli("restore", "126e95e0", "--session", a.session_id[:8], "--json").json
    assert [session["session_id"] for session in one["sessions"]] == [a.session_id]
    assert "It is wet." not in Path(one["path"]).read_text()
    other = talked("c")
    other.save(home)
    cli("ingest")
    refused = cli("restore", "126e95e0", "--session", other.session_id, "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (2, "not_found")


def test_the_agent_that_said_most_takes_the_others_words_in(
    home: Path, cwd: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    t, r = talked(), planted(1, day="2026-05-02")
    t.save(home)
    r.save(home)
    cli("ingest")
    commits(monkeypatch, part("claude", t.session_id, 1, 3), part("codex", r.id, 1, 10))
    made = cli("restore", "--json").json

    assert made["agent"] == "codex"
    assert (
        made["warnings"][0]
        == "most of it was said in Codex; what was said in Claude Code is told as text"
    )
    text = Path(made["path"]).read_text()
    assert "Plant a fern (s1)" in text and "Plant a fern (1)" in text
    assert text.count(f"from here on session {t.session_id}") == 2, (
        "once for the model, once for the screen"
    )
    assert f"from here on session {r.id}, Codex" in text
    chosen = cli("restore", "--agent", "claude", "--json").json
    assert chosen["agent"] == "claude"
    assert not [warning for warning in chosen["warnings"] if "most of it" in warning]


def test_an_agent_that_cannot_resume_is_refused_but_its_sessions_are_not(
    home: Path, cwd: Path, cli: Cli
) -> None:
    folder = home / ".copilot" / "session-state" / "11111111-1111-4111-8111-111111111111"
    folder.mkdir(parents=True)
    said = [
        ("session.start", {"sessionId": folder.name, "context": {"cwd": "/code/shop"}}),
        ("user.message", {"content": "Plant a fern"}),
        ("assistant.message", {"content": "Digging.", "messageId": "m1"}),
    ]
    (folder / "events.jsonl").write_text(
        "".join(
            json.dumps(
                {
                    "type": kind,
                    "data": data,
                    "id": f"e{n}",
                    "timestamp": f"2026-05-01T10:00:0{n}.000Z",
                }
            )
            + "\n"
            for n, (kind, data) in enumerate(said)
        )
    )
    goose = sample("goose")
    goose.write(home)
    cli("ingest")
    for arguments in (
        ["--session", goose.session_id],
        ["--session", folder.name, "--agent", "goose"],
    ):
        refused = cli("restore", *arguments, "--json")
        assert (refused.code, refused.json["error"]["kind"]) == (2, "bad_input")
        assert "Goose cannot be resumed from a file" in refused.json["error"]["message"]
    unknown = cli("restore", "--session", folder.name, "--agent", "emacs", "--json").json["error"]
    assert "no such agent: emacs" in unknown["message"]

    made = cli("restore", "--session", folder.name, "--agent", "gemini", "--json").json
    head, marker, prompt, answer, end = lines(made["path"])
    assert "forkedFrom" not in head
    assert end["restoredFrom"] == f"copilot:{folder.name}"
    assert "Copilot CLI" in marker["content"][0]["text"]
    assert (prompt["content"], answer["content"]) == ([{"text": "Plant a fern"}], "Digging.")


def test_a_converted_session_says_in_words_what_tools_did(home: Path, cwd: Path, cli: Cli) -> None:
    t = talked()
    t.call("Bash", {"command": "yes"}, "y" * 9000, failed=True)
    t.save(home)
    cli("ingest")
    made = bring_back(cwd, RestoredSource("claude", t.session_id), agent="gemini")

    _, *rest, _ = lines(made.path)
    said = [m["content"] if m["type"] == "gemini" else m["content"][0]["text"] for m in rest]
    assert said[1:4] == [
        "Plant a fern (s1)",
        'Digging.\n\n[Tool call: Bash]\n{"command":"git commit -m fern"}',
        "[Whyfor: tool result]\n[main 126e95e] fern",
    ]
    assert said[-1].startswith("[Whyfor: tool result (failed)]\nyyy") and said[-1].endswith(
        "[1000 more characters]"
    )
    assert "Ferns like shade." not in Path(made.path).read_text(), (
        "thinking stays with who thought it"
    )
    assert {m["model"] for m in rest if m["type"] == "gemini"} == {"claude-test-1"}
    cli("ingest")
    assert len(texts("gemini", made.session_id, "user.prompt")) == 2


def test_a_subagent_whose_caller_is_gone_speaks_for_itself(home: Path, cwd: Path, cli: Cli) -> None:
    child = Transcript("child")
    child.prompt("Look for it")
    child.say("Found it.")
    folder = home / ".claude" / "projects" / "-code-shop" / "gone" / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-a1b2c3d.jsonl").write_text(as_subagent(child, "a1b2c3d", "gone"))
    cli("ingest")
    made = bring_back(cwd, RestoredSource("claude", "agent-a1b2c3d@gone"))
    assert [r["message"]["content"] for r in lines(made.path)[1:3]] == [
        "Look for it",
        [{"type": "text", "text": "Found it."}],
    ]


# -- somebody is at work -------------------------------------------------------------------------


def test_a_session_at_work_in_the_folder_asks_for_yes(home: Path, cwd: Path, cli: Cli) -> None:
    t = talked()
    t.save(home)
    cli("ingest")
    assert cli("restore", "--session", t.session_id).code == 0, "that was long ago"
    registry = home / ".claude" / "sessions"
    registry.mkdir()
    registered = {"pid": os.getpid(), "sessionId": "5e551011", "cwd": str(cwd)}
    (registry / "1.json").write_text(json.dumps(registered))
    before = listing(home)

    refused = cli("restore", "--session", t.session_id)
    assert refused.code == 2
    assert "1 session open here: claude 5e551011" in refused.err
    assert "--yes" in refused.err
    assert listing(home) == before
    assert cli("restore", "--session", t.session_id, "--yes").code == 0


@pytest.mark.parametrize(("answer", "code"), [(b"n\n", 1), (b"y\n", 0)])
def test_at_a_terminal_it_asks(home: Path, cwd: Path, cli: Cli, answer: bytes, code: int) -> None:
    t = talked()
    t.save(home)
    cli("ingest")
    registry = home / ".claude" / "sessions"
    registry.mkdir()
    (registry / "1.json").write_text(
        json.dumps({"pid": os.getpid(), "sessionId": "5e551011", "cwd": str(cwd)})
    )
    before = set(listing(home))
    ours, theirs = os.openpty()
    os.write(ours, answer)
    argv = [sys.executable, "-m", "whyfor", "restore", "--session", t.session_id]
    done = subprocess.run(
        argv, stdin=theirs, capture_output=True, text=True, timeout=60, check=False
    )
    os.close(ours)
    os.close(theirs)

    assert done.returncode == code, done.stderr
    assert "open here: claude 5e551011. Restore beside it? [y/N]" in done.stdout + done.stderr
    assert (set(listing(home)) == before) == (code == 1)


def test_what_a_dead_process_left_or_another_folder_holds_does_not_count(
    home: Path, cwd: Path, cli: Cli
) -> None:
    t = talked()
    t.save(home)
    cli("ingest")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    registry = home / ".claude" / "sessions"
    registry.mkdir()
    (registry / "1.json").write_text(
        json.dumps({"pid": dead.pid, "sessionId": "a", "cwd": str(cwd)})
    )
    (registry / "2.json").write_text(
        json.dumps({"pid": os.getpid(), "sessionId": "b", "cwd": "/code/other"})
    )
    (registry / "3.json").write_text("not JSON")
    assert restoring.open_sessions(config.load(), cwd) == []


def test_a_session_that_wrote_a_moment_ago_counts(home: Path, cwd: Path, cli: Cli) -> None:
    t = Transcript("s1", cwd=str(cwd))
    t.prompt("Hello")
    path = t.save(home)
    cli("ingest")
    assert restoring.open_sessions(config.load(), cwd) == []
    with path.open("a") as file:
        file.write(t.text())
    assert [one.session_id for one in restoring.open_sessions(config.load(), cwd)] == [
        t.session_id
    ], "not read yet"

    now = Transcript("s2", cwd=str(cwd))
    now.prompt("Hello")
    now.lines[0]["timestamp"] = to_iso(time.time_ns() // 1_000_000)
    now.save(home)
    cli("ingest")
    assert [one.session_id for one in restoring.open_sessions(config.load(), cwd)] == [
        now.session_id
    ]


def test_a_session_just_restored_is_not_at_work(home: Path, cwd: Path, cli: Cli) -> None:
    t, r = talked(), planted(1)
    t.save(home)
    r.save(home)
    cli("ingest")
    for agent in ("claude", "codex", "gemini"):
        bring_back(cwd, RestoredSource("claude", t.session_id), agent=agent)
        bring_back(cwd, RestoredSource("codex", r.id), agent=agent)
    cli("ingest")
    assert restoring.open_sessions(config.load(), cwd) == []


# -- what goes wrong -----------------------------------------------------------------------------


def test_a_place_that_cannot_be_written_to_leaves_nothing(home: Path, cwd: Path, cli: Cli) -> None:
    t = talked()
    t.save(home)
    cli("ingest")
    (home / ".codex").mkdir()
    (home / ".codex" / "sessions").write_text("a file where a folder should be")
    (home / ".gemini" / "projects.json").mkdir(parents=True)
    before = listing(home)
    for agent in ("codex", "gemini"):
        refused = cli("restore", "--session", t.session_id, "--agent", agent, "--json")
        assert (refused.code, refused.json["error"]["kind"]) == (2, "store")
        assert listing(home) == before


def test_a_session_whose_records_are_lost_says_so(home: Path, cwd: Path, cli: Cli) -> None:
    t = talked()
    t.save(home)
    cli("ingest")
    for path in config.load().segments.rglob("*.zst"):
        path.unlink()
    before = listing(home)
    refused = cli("restore", "--session", t.session_id, "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (2, "store")
    assert "missing" in refused.json["error"]["message"]
    assert listing(home) == before


def test_a_session_that_says_nothing_cannot_be_resumed(home: Path, cwd: Path, cli: Cli) -> None:
    t = Transcript("s1")
    t.lines = [{"type": "summary", "summary": "An old title", "leafUuid": "x"}]
    t.save(home)
    cli("ingest")
    refused = cli("restore", "--session", t.session_id, "--json")
    assert (refused.code, refused.json["error"]["kind"]) == (2, "not_found")
    assert "nothing to resume" in refused.json["error"]["message"]


def test_an_agent_that_is_not_installed_is_written_for_and_said(
    home: Path, cwd: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    t = talked()
    t.save(home)
    cli("ingest")
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    told = cli("restore", "--session", t.session_id)
    assert "Claude Code is not installed here" in told.out
    assert "claude --resume" in told.out
    (tools / "claude").write_text("#!/bin/sh\n")
    (tools / "claude").chmod(0o755)
    assert wanted(config.load(), None, t.session_id, None, cwd).warnings == []
