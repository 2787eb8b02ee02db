"""What hooks announced becomes signals, each once, tied to the session it happened in; and
survives like all else."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.capture.snapshot import assert_equal, derived
from tests.hook import Installed, await_that
from tests.transcripts import Transcript
from whyfor.capture import faults
from whyfor.config import Settings
from whyfor.model.signals import Process
from whyfor.service import ingest as ingesting
from whyfor.service.ingest import ingest, ingest_for_hooks
from whyfor.service.rebuild import rebuild

DAY = "2026-05-01"
AGENT = Process(100, 5000, "claude")
SHELL = Process(101, 5001, "bash")
GIT = Process(102, 5002, "git")
SHA = "a" * 40


class Spool:
    """Writes envelopes the way hooks do, at times of one's choosing."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.at = 1_000

    def add(
        self,
        agent: str,
        event: str,
        payload: bytes | dict[str, Any] = b"",
        day: str = DAY,
        **header: Any,
    ) -> None:
        self.at += 1_000
        known = {
            "v": 1,
            "at": self.at,
            "pid": 1,
            "ppid": 1,
            "agent": agent,
            "event": event,
            "cwd": "/code/shop",
        }
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.write(
            b"\n"
            + json.dumps({**known, "env": {}, "chain": [], **header}).encode()
            + b"\t"
            + body
            + b"\n",
            day,
        )

    def agent(
        self, session: str, *chain: Process, agent: str = "claude", event: str = "UserPromptSubmit"
    ) -> None:
        payload = {
            "session_id": session,
            "transcript_path": "/code/t.jsonl",
            "prompt": "words nobody needs twice",
        }
        self.add(agent, event, payload, chain=_listed(chain))

    def commit(self, *chain: Process, sha: str = SHA, **env: str) -> None:
        self.add("git", "post-commit", sha=sha, env=env, chain=_listed(chain))

    def write(self, data: bytes, day: str = DAY) -> None:
        folder = self.home / "spool"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{day}.spool").open("ab") as file:
            file.write(data)


def _listed(chain: tuple[Process, ...]) -> list[list[Any]]:
    return [[process.pid, process.start, process.name] for process in chain]


@pytest.fixture
def spool(settings: Settings) -> Spool:
    return Spool(settings.home)


def rows(settings: Settings, columns: str = "*") -> list[tuple[Any, ...]]:
    db = apsw.Connection(str(settings.database), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return list(db.execute(f"SELECT {columns} FROM signals ORDER BY id"))
    finally:
        db.close()


# -- whose commit it is --------------------------------------------------------------------------

CODEX = Process(200, 6000, "codex")
INNER = (GIT, SHELL, CODEX, SHELL, AGENT)


@pytest.mark.parametrize(
    ("chain", "env", "routed"),
    [
        ((), {}, (None, None, None)),
        ((), {"WHYFOR_SESSION": "claude:s-1"}, ("claude", "s-1", "env")),
        (
            (),
            {"WHYFOR_SESSION": "claude:s-1", "CLAUDE_CODE_SESSION_ID": "s-2"},
            ("claude", "s-1", "env"),
        ),
        ((), {"CLAUDE_CODE_SESSION_ID": "s-2"}, ("claude", "s-2", "env")),
        ((), {"CODEX_THREAD_ID": "c-9"}, ("codex", "c-9", "env")),
        ((), {"GEMINI_SESSION_ID": "g-9"}, ("gemini", "g-9", "env")),
        ((), {"WHYFOR_SESSION": "nonsense"}, (None, None, None)),
        ((GIT, SHELL, AGENT), {}, ("claude", "s-1", "ancestry")),
        ((GIT, SHELL, AGENT), {"WHYFOR_SESSION": "claude:s-7"}, ("claude", "s-7", "env")),
        (
            (GIT, SHELL, AGENT),
            {"WHYFOR_SESSION": "claude:s-7", "CLAUDE_CODE_SESSION_ID": "s-1"},
            ("claude", "s-1", "env"),
        ),
        (INNER, {}, ("codex", "c-1", "ancestry")),
        (INNER, {"WHYFOR_SESSION": "claude:s-1"}, ("codex", "c-1", "ancestry")),
        (
            INNER,
            {"WHYFOR_SESSION": "claude:s-1", "CODEX_THREAD_ID": "c-1"},
            ("codex", "c-1", "env"),
        ),
        ((GIT, Process(100, 5999, "claude")), {}, (None, None, None)),
        ((GIT, Process(100, 0, "claude")), {}, (None, None, None)),
        ((GIT, SHELL), {}, (None, None, None)),
    ],
    ids=[
        "nothing known",
        "told by us",
        "told by us before told by the agent",
        "claude's variable",
        "codex's variable",
        "gemini's variable",
        "not a session",
        "ancestry",
        "same agent: the environment is exact",
        "an outer session's export, the inner one's variable",
        "an agent within an agent",
        "… with the outer one's environment",
        "… with both environments",
        "the pid was used again",
        "a system that does not tell when a process began",
        "a shell beside the agent",
    ],
)
def test_a_commit_is_routed_by_the_surest_sign(
    chain: tuple[Process, ...],
    env: dict[str, str],
    routed: tuple[str | None, ...],
    settings: Settings,
    spool: Spool,
) -> None:
    spool.agent("s-1", SHELL, AGENT, Process(1, 7, "init"))
    spool.agent("c-1", SHELL, CODEX, SHELL, AGENT, agent="codex")
    spool.commit(*chain, **env)
    ingest(settings)
    assert rows(settings, "session_agent, session_id, how")[-1] == routed


def test_a_process_with_several_sessions_is_in_the_latest_before_the_commit(
    settings: Settings, spool: Spool
) -> None:
    chain = (GIT, SHELL, AGENT)
    spool.agent("first", SHELL, AGENT)
    spool.commit(*chain, sha="1" * 40)
    spool.agent("first", SHELL, AGENT, event="SessionEnd")
    spool.agent("second", SHELL, AGENT, event="SessionStart")
    spool.commit(*chain, sha="2" * 40)
    ingest(settings)
    spool.agent("third", SHELL, AGENT, event="SessionStart")
    spool.add("git", "post-commit", day="2026-05-02", sha="3" * 40, chain=[[100, 5000, "x"]])
    spool.add(
        "git", "post-commit", day="2026-05-02", sha="4" * 40, chain=[[100, 5000, "x"]], at=2_500
    )
    ingest(settings)
    found = {sha[0]: session for sha, session in rows(settings, "sha, session_id") if sha}
    assert found == {"1": "first", "2": "second", "3": "third", "4": "first"}


def test_an_agents_payload_says_which_session_it_is(settings: Settings, spool: Spool) -> None:
    spool.agent("s-1")
    spool.add("copilot", "agentStop", {"sessionId": "p-1"})
    spool.add("claude", "Stop", b'{"session_id":"torn', env={"CLAUDE_CODE_SESSION_ID": "s-2"})
    spool.add("claude", "Stop", {"session_id": "not-claudes", "cwd": "/code/shop"})
    spool.add("codex", "Stop", b"")
    ingest(settings)
    assert rows(settings, "session_agent, session_id, how") == [
        ("claude", "s-1", "payload"),
        ("copilot", "p-1", "payload"),
        ("claude", "s-2", "env"),
        (None, None, None),
        (None, None, None),
    ]


# -- what a signal holds -------------------------------------------------------------------------


def test_a_signal_holds_small_facts_and_no_words(settings: Settings, spool: Spool) -> None:
    payload = {
        "session_id": "s",
        "transcript_path": "/t",
        "prompt": "long",
        "tool_name": "Bash",
        "reason": "clear",
    }
    spool.add(
        "claude",
        "Stop",
        {**payload, "tool_use_id": "x" * 9000, "error": {"a": 1}},
        chain=[[9, 8, "-zsh"], [7, 6, "node"]],
    )
    ingest(settings)
    ((data,),) = rows(settings, "data")
    assert json.loads(data) == {
        "transcript_path": "/t",
        "tool_name": "Bash",
        "reason": "clear",
        "tool_use_id": "x" * 500,
        "process": [7, 6],
    }


_LONG = "x" * 8000


@pytest.mark.parametrize(
    "event, payload, kept",
    [
        (
            "PermissionRequest",
            {"tool_name": "Bash", "tool_input": {"command": "rm a"}},
            {"text": "rm a"},
        ),
        (
            "PermissionRequest",
            {"tool_name": "Bash", "tool_input": {"command": _LONG + "y"}},
            {"text": _LONG, "cut": True},
        ),
        (
            "PermissionRequest",
            {"tool_name": "Edit", "tool_input": {"new_string": "many words"}},
            None,
        ),
        ("PostToolUse", {"tool_name": "Bash", "tool_input": {"command": "rm a"}}, None),
        (
            "exec",
            {"command": "rm a", "rootCommand": "rm"},
            {"tool": "run_shell_command", "text": "rm a"},
        ),
        (
            "edit",
            {"filePath": "/code/a.py", "newContent": "words"},
            {"tool": "replace", "path": "/code/a.py"},
        ),
        ("mcp", {"serverName": "forge", "toolName": "merge"}, {"tool": "mcp__forge__merge"}),
        (
            "info",
            {"prompt": "read example.com", "urls": []},
            {"tool": "web_fetch", "text": "read example.com"},
        ),
        ("exec", {"command": ["rm"]}, {"tool": "run_shell_command"}),
        ("unheard of", {}, None),
    ],
)
def test_what_is_asked_of_a_person_is_kept_where_no_transcript_tells(
    event: str,
    payload: dict[str, Any],
    kept: dict[str, Any] | None,
    settings: Settings,
    spool: Spool,
) -> None:
    known = {"session_id": "s", "transcript_path": "/t"}
    if event[0].islower():  # Gemini's kinds of requests
        details = {"type": event, "title": "Confirm", **payload}
        event, payload = "Notification", {"notification_type": "ToolPermission", "details": details}
    spool.add("gemini", event, {**known, "hook_event_name": event, **payload})
    ingest(settings)
    ((data,),) = rows(settings, "data")
    assert json.loads(data).get("asked") == kept


def test_what_git_told_is_understood(settings: Settings, spool: Spool) -> None:
    old, new, third = "1" * 40, "2" * 40, "3" * 40
    spool.add(
        "git", "post-rewrite", f"{old} {new} {new} {third} ".encode(), args=["rebase"], sha=third
    )
    spool.add("git", "post-checkout", args=[old, new, "1"], sha=new)
    pushed = f"refs/heads/x {new} refs/heads/y {old} (delete) {'0' * 40} refs/heads/z {old} half "
    spool.add("git", "pre-push", pushed.encode(), args=["origin"], sha="", chain=[])
    spool.add(
        "git", "post-commit", sha=new, rebasing=True, env={"GIT_REFLOG_ACTION": "rebase (pick)"}
    )
    spool.add("git", "post-commit", sha="not a sha", env={"GIT_WORK_TREE": "../other"})
    ingest(settings)
    found = [
        (sha, repository, json.loads(data))
        for sha, repository, data in rows(settings, "sha, repository, data")
    ]
    assert found == [
        (third, "/code/shop", {"pairs": [[old, new], [new, third]], "cause": "rebase"}),
        (new, "/code/shop", {"moved": [old, new, "1"]}),
        (
            *(None, "/code/shop"),
            {
                "remote": "origin",
                "refs": [
                    ["refs/heads/x", new, "refs/heads/y"],
                    ["(delete)", "0" * 40, "refs/heads/z"],
                ],
            },
        ),
        (new, "/code/shop", {"rebasing": True, "action": "rebase (pick)"}),
        (None, "/code/other", {}),
    ]


def test_a_commit_makes_its_repository_known(
    settings: Settings, spool: Spool, tmp_path: Path
) -> None:
    folder = tmp_path / "shop"
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    spool.add("git", "post-commit", sha=SHA, cwd=str(folder))
    ingest(settings)
    snapshot = derived(settings)
    assert [place[0] for place in snapshot["places"]] == [str(folder)]
    rebuild(settings)
    assert_equal(derived(settings), snapshot)


@pytest.mark.parametrize(
    ("payload", "env"),
    [(b'{"probe":"n-1"}', {}), (b"", {"WHYFOR_PROBE": "n-1", "CLAUDE_CODE_SESSION_ID": "s"})],
)
def test_a_probe_is_kept_and_counts_for_nothing_else(
    payload: bytes, env: dict[str, str], settings: Settings, spool: Spool
) -> None:
    spool.add("git", "post-commit", payload, env=env, sha=SHA)
    ingest(settings)
    ((event, session, sha, repository, data),) = rows(
        settings, "event, session_id, sha, repository, data"
    )
    assert (event, session, sha, repository) == ("probe", None, None, None)
    assert json.loads(data) == {"probe": "n-1", "event": "post-commit"}


# -- kept like all else --------------------------------------------------------------------------


def fill(spool: Spool) -> None:
    spool.agent("s-1", SHELL, AGENT)
    spool.commit(GIT, SHELL, AGENT)
    spool.write(b'\n{"v":1,"at":5,"agent":"cla')
    spool.commit(GIT, sha="b" * 40, WHYFOR_SESSION="claude:s-9")
    spool.add("claude", "Stop", b"\xff not JSON", v=1)
    spool.add("claude", "Stop", v=2)


def test_a_broken_line_is_counted_and_spoils_no_other(settings: Settings, spool: Spool) -> None:
    fill(spool)
    report = ingest(settings)
    assert len(rows(settings)) == 4
    assert (report.unparsed, report.records, report.bytes, report.sessions, report.files) == (
        2,
        0,
        0,
        0,
        0,
    )
    snapshot = derived(settings)
    assert sorted(reason for *_, reason in snapshot["unparsed"]) == [
        "envelope of a newer version",
        "not an envelope",
    ]


def test_a_line_without_an_end_waits_for_it(settings: Settings, spool: Spool) -> None:
    spool.agent("s-1")
    spool.write(
        b'\n{"v":1,"at":5,"agent":"claude","event":"Stop","cwd":"","env":{},"chain":[]}\t{"torn'
    )
    assert ingest(settings).unparsed == 0
    assert len(rows(settings)) == 1
    spool.agent("s-2")
    ingest(settings)
    assert [ident for (ident,) in rows(settings, "session_id")] == ["s-1", None, "s-2"]


def test_reading_again_adds_nothing_and_a_rebuild_gives_the_same(
    settings: Settings, spool: Spool, home: Path
) -> None:
    talk = Transcript("s1")
    talk.prompt("hello")
    talk.save(home)
    fill(spool)
    ingest(settings)
    spool.commit(GIT, SHELL, AGENT, sha="c" * 40)
    spool.write(b'\n{"torn')
    ingest(settings)
    before, snapshot = rows(settings), derived(settings, observed=True, segments=True)
    ingest(settings)
    assert rows(settings) == before
    rebuild(settings)
    assert rows(settings) == before
    assert_equal(derived(settings, observed=True, segments=True), snapshot)
    ingest(settings)
    assert rows(settings) == before


def test_a_lost_database_comes_back_with_its_signals(settings: Settings, spool: Spool) -> None:
    fill(spool)
    ingest(settings)
    before = rows(settings)
    settings.database.unlink()
    ingest(settings)
    assert rows(settings) == before


def test_a_file_is_deleted_when_it_is_old_and_stored(settings: Settings, spool: Spool) -> None:
    fill(spool)
    spool.add("claude", "Stop", day="2026-05-02")
    old, young = sorted((settings.home / "spool").iterdir())
    long_ago = time.time() - 3 * 86_400
    os.utime(old, (long_ago, long_ago))
    ingest(settings)
    assert old.exists(), "stored in this very run: kept until the next has seen that it is"
    before = rows(settings)
    report = ingest(settings)
    assert not old.exists()
    assert young.exists()
    assert report.unreadable == []
    assert rows(settings) == before
    rebuild(settings)
    assert rows(settings) == before


def test_a_spool_that_was_deleted_and_began_anew_is_read_from_its_start(
    settings: Settings, spool: Spool
) -> None:
    fill(spool)
    ingest(settings)
    (settings.home / "spool" / f"{DAY}.spool").unlink()
    spool.agent("after")
    ingest(settings)
    before = rows(settings)
    assert [row[6] for row in before][-1] == "after"
    assert len(before) == 5
    snapshot = derived(settings)
    rebuild(settings)
    assert rows(settings) == before
    assert_equal(derived(settings), snapshot)


def test_a_spool_that_cannot_be_read_stops_nothing_else(
    settings: Settings, spool: Spool, home: Path
) -> None:
    talk = Transcript("s1")
    talk.prompt("hello")
    talk.save(home)
    (settings.home / "spool" / f"{DAY}.spool").mkdir(parents=True)
    report = ingest(settings)
    assert report.sessions == 1
    assert [item.reason for item in report.unreadable] == ["Is a directory"]


def test_with_paths_only_those_are_read(settings: Settings, spool: Spool, home: Path) -> None:
    talk = Transcript("s1")
    talk.prompt("hello")
    path = talk.save(home)
    fill(spool)
    ingest(settings, [path])
    assert rows(settings) == []


# -- the ingest that hooks start -----------------------------------------------------------------


def test_pending_is_gone_before_the_spool_is_read(
    settings: Settings, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pending = settings.home / "hook" / "pending"
    pending.parent.mkdir(parents=True)
    pending.write_text("1")
    monkeypatch.setattr(ingesting, "LAG", 0)
    seen = []

    def listed(home: Path) -> list[Path]:
        seen.append(pending.exists())
        return sorted((home / "spool").iterdir())

    monkeypatch.setattr("whyfor.capture.spool.files", listed)
    fill(spool)
    ingest_for_hooks(settings)
    assert seen == [False]
    assert len(rows(settings)) == 4


def test_an_error_goes_to_a_file_that_stays_small(
    settings: Settings, spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingesting, "LAG", 0)
    log = settings.home / "hook" / "errors.log"
    log.parent.mkdir(parents=True)
    settings.database.mkdir()
    ingest_for_hooks(settings)
    ingest_for_hooks(settings)
    assert len(log.read_text().splitlines()) == 2
    log.write_bytes(b"x" * (faults.LOG_BYTES + 1))
    ingest_for_hooks(settings)
    assert len(log.read_text().splitlines()) == 1
    assert "x" * 10 not in log.read_text()


def in_background(settings: Settings) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-I", "-m", "whyfor", "ingest", "--background"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.parametrize("broken", [False, True])
def test_in_the_background_nothing_is_said(broken: bool, settings: Settings, spool: Spool) -> None:
    fill(spool)
    if broken:
        (settings.home / "config.toml").write_text("= nonsense")
    one = in_background(settings)
    out, _ = one.communicate(timeout=60)
    assert (one.returncode, out) == (0, b"")
    assert settings.database.exists() is not broken


def test_a_background_ingest_killed_at_any_moment_loses_and_doubles_nothing(
    settings: Settings, spool: Spool
) -> None:
    dice = random.Random(5)
    for number in range(12):
        spool.commit(GIT, SHELL, AGENT, sha=f"{number:040x}")
        one = in_background(settings)
        try:
            one.communicate(timeout=dice.uniform(0.2, 1.0))
        except subprocess.TimeoutExpired:
            one.kill()
            one.communicate()
    ingest(settings)
    assert [sha for (sha,) in rows(settings, "sha")] == [f"{number:040x}" for number in range(12)]
    before = rows(settings)
    rebuild(settings)
    assert rows(settings) == before


def test_from_the_hook_to_the_store(settings: Settings) -> None:
    hook = Installed(settings.home)
    hook.launch(sys.executable, "-I", "-m", "whyfor", "ingest", "--background")
    payload = json.dumps({"session_id": "s-1", "transcript_path": "/t"}).encode()
    env = {"HOME": os.environ["HOME"], "WHYFOR_HOME": "/code/elsewhere"}
    hook.run("claude", "UserPromptSubmit", payload=payload, env=env)
    hook.run("git", "post-commit", "--sha", SHA, payload=b"", env=env)
    await_that(
        lambda: (
            settings.database.exists() and not hook.pending.exists() and len(_tried(settings)) == 2
        )
    )
    if sys.platform == "linux":  # both ran below this process, which so passes for the agent's
        assert _tried(settings) == [("claude", "s-1", "payload"), ("claude", "s-1", "ancestry")]


def _tried(settings: Settings) -> list[tuple[Any, ...]]:
    try:
        return rows(settings, "session_agent, session_id, how")
    except apsw.Error:
        return []
