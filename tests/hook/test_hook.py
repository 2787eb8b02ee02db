"""A hook exits 0 and says nothing, whatever is broken; what it was told is in the spool, once
and whole."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.hook import PYTHON, SECONDS, Installed, alive, await_that
from whyfor.hook import announce

CLAUDE = (
    "SessionStart UserPromptSubmit PostToolUse PermissionRequest Notification Stop StopFailure "
    "SubagentStop PreCompact "
    "SessionEnd"
).split()
EVENTS = [
    *(("claude", event) for event in CLAUDE),
    *(("codex", event) for event in ("SessionStart", "PostToolUse", "Stop")),
    *(
        ("gemini", event)
        for event in ("SessionStart", "BeforeAgent", "AfterAgent", "AfterTool", "SessionEnd")
    ),
    *(("copilot", event) for event in ("sessionStart", "postToolUse", "agentStop", "sessionEnd")),
    *(
        ("git", event)
        for event in ("post-commit", "post-checkout", "post-rewrite", "post-merge", "pre-push")
    ),
]
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def payload(size: int = 200, **fields: str) -> bytes:
    known = {"session_id": "s-1", "transcript_path": "/code/t.jsonl", **fields}
    return json.dumps({**known, "filler": "x" * size}).encode()


# -- never in the way ----------------------------------------------------------------------------


def _nothing(hook: Installed) -> None: ...


def _no_files(hook: Installed) -> None:
    shutil.rmtree(hook.home)


def _half_uninstalled(hook: Installed) -> None:
    (hook.folder / "announce.py").unlink()


def _damaged(hook: Installed) -> None:
    (hook.folder / "announce.py").write_bytes(b"def main(:\x00")


def _no_interpreter(hook: Installed) -> None:
    hook.python = "/code/no/such/python"


def _spool_is_a_file(hook: Installed) -> None:
    hook.spool.touch()


def _spool_is_a_dangling_link(hook: Installed) -> None:
    hook.spool.symlink_to("/proc/no/such/place")


def _launch_missing(hook: Installed) -> None:
    (hook.folder / "launch").unlink()


def _launch_points_nowhere(hook: Installed) -> None:
    hook.launch("/code/no/such/program", "ingest")


def _launch_is_empty(hook: Installed) -> None:
    (hook.folder / "launch").write_bytes(b"")


def _pending_is_a_folder(hook: Installed) -> None:
    hook.pending.mkdir()


BROKEN = [
    _nothing,
    _no_files,
    _half_uninstalled,
    _damaged,
    _no_interpreter,
    _spool_is_a_file,
    _spool_is_a_dangling_link,
    _launch_missing,
    _launch_points_nowhere,
    _launch_is_empty,
    _pending_is_a_folder,
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda made: made.__name__.strip("_"))
def test_a_hook_exits_0_and_says_nothing_whatever_is_broken(
    broken: object, hook: Installed
) -> None:
    hook.launch("/bin/true")
    assert callable(broken)
    broken(hook)
    for agent, event in EVENTS:
        done = hook.run(agent, event, payload=payload())
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), event


@pytest.mark.parametrize(
    "around",
    [
        "{} <&-",
        "{} </",
        "{} >&-",
        "{} 2>&-",
        "{} <&- >&- 2>&-",
        "{} >/dev/full",
        "ulimit -f 0; {}",
        "{} </dev/null",
        "env -i {}",
    ],
)
def test_a_hook_exits_0_and_says_nothing_whatever_it_is_given(around: str, hook: Installed) -> None:
    hook.launch("/bin/true")
    for agent, event in EVENTS:
        done = hook.run(agent, event, payload=payload(), around=around)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), event


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"\x00\xff" * 5000,
        b"not JSON\nat all\n",
        b'{"session_id":',
        payload(5_000_000),
        b"[1]",
        b"\n" * 1000,
    ],
    ids=["empty", "binary", "not-json", "torn", "5MB", "no-object", "newlines"],
)
def test_any_payload_is_kept_on_one_line(given: bytes, hook: Installed) -> None:
    for agent, event in (("claude", "Stop"), ("codex", "PostToolUse"), ("git", "post-rewrite")):
        done = hook.run(agent, event, payload=given)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b""), event
    assert [line.payload for line in hook.lines()] == [given.replace(b"\n", b" ")] * 3


def test_a_folder_that_is_gone_is_no_obstacle(hook: Installed, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = hook.run("claude", "Stop", payload=payload(), cwd=gone, around="rmdir ../gone; {}")
    assert (done.returncode, done.stdout) == (0, b"")  # the shell itself may complain
    assert hook.lines()[0].header["cwd"] == ""


def test_a_full_disk_tears_one_line_and_no_other(hook: Installed) -> None:
    hook.run("claude", "Stop", payload=payload(name="before"))
    done = hook.run(
        "claude", "Stop", payload=payload(50_000, name="torn"), around="ulimit -f 8; {}"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    hook.run("claude", "Stop", payload=payload(name="after"))
    lines = hook.lines()
    assert [json.loads(lines[n].payload)["name"] for n in (0, -1)] == ["before", "after"]
    assert len(lines) == 3
    assert lines[1].payload in payload(50_000, name="torn")


def test_nothing_is_imported_that_a_bare_interpreter_does_not_hold(hook: Installed) -> None:
    def imported(*command: str) -> set[str]:
        done = subprocess.run(
            [PYTHON, "-I", "-S", "-X", "importtime", *command],
            input=payload(),
            capture_output=True,
            check=True,
        )
        return {line.rpartition(b"|")[2].strip().decode() for line in done.stderr.splitlines()}

    hook.launch("/bin/true")
    path = str(hook.folder / "hook.py")
    bare = imported("-c", "pass")
    for event in ("PostToolUse", "SessionStart"):
        assert imported(path, "--agent", "claude", event) - bare == {"announce"}
    assert imported(path, "--agent", "claude", "Stop") - bare == {"announce", "launcher"}


# -- what is in the spool ------------------------------------------------------------------------


def test_an_envelope_says_who_when_and_where(hook: Installed, tmp_path: Path) -> None:
    folder = tmp_path / 'with "quotes", \\ and é'
    folder.mkdir()
    env = {
        "CLAUDE_CODE_SESSION_ID": "s-1",
        "CLAUDECODE": "1",
        "SECRET": "no",
        "AI_AGENT": 'a "b"\n\x01',
    }
    hook.run("claude", "Stop", payload=b'{"a":\n1}', env=env, cwd=folder)
    (line,) = hook.lines()
    header = line.header
    assert (header["v"], header["agent"], header["event"], header["cwd"]) == (
        1,
        "claude",
        "Stop",
        str(folder),
    )
    assert header["env"] == {name: value for name, value in env.items() if name != "SECRET"}
    assert line.payload == b'{"a": 1}'
    assert header["pid"] != header["ppid"] > 0
    assert abs(header["at"] - (hook.spool.stat().st_mtime_ns // 1_000_000)) < SECONDS * 1000


def test_a_folder_whose_name_is_no_text_is_written_by_its_bytes(
    hook: Installed, tmp_path: Path
) -> None:
    folder = os.fsencode(tmp_path) + b"/\xff\xfe"
    os.mkdir(folder)  # noqa: PTH102 - bytes
    hook.run("claude", "Stop", cwd=Path(os.fsdecode(folder)))
    assert hook.lines()[0].header["cwd"] == f"{tmp_path}/\ufffdff\ufffdfe"


@LINUX
def test_an_envelope_names_the_processes_above(hook: Installed) -> None:
    hook.run("claude", "Stop")
    chain = hook.lines()[0].header["chain"]
    own = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    assert [os.getpid(), int(own[19])] in [item[:2] for item in chain]
    assert [name for _, _, name in chain][:2] == ["sh", "sh"]
    assert chain[0][0] == hook.lines()[0].header["ppid"]


def test_what_the_shell_saw_of_the_processes_above_is_taken_over(hook: Installed) -> None:
    words = ["--sha", "a" * 40, "--chain", " 12:345:git 7:8:tmux: server x:1:y 9:9: ", "--rebasing"]
    hook.run("git", "post-commit", *words)
    header = hook.lines()[0].header
    assert header["chain"] == [[12, 345, "git"], [7, 8, "tmux:"], [9, 9, ""]]
    assert (header["sha"], header["rebasing"], header["args"]) == ("a" * 40, True, [])


def test_what_git_tells_its_hooks_is_kept_but_for_a_remotes_address(hook: Installed) -> None:
    hook.run("git", "post-checkout", "a" * 40, "b" * 40, "1", "--chain", "")
    hook.run("git", "pre-push", "origin", "https://user:password@host/x.git", "--chain", "")
    url = "https://user:password@host/x.git"
    hook.run("git", "pre-push", url, url, "--chain", "")
    assert [line.header["args"] for line in hook.lines()] == [
        *(["a" * 40, "b" * 40, "1"], ["origin"], ["https://host/x.git"]),
    ]
    assert b"password" not in next(hook.spool.iterdir()).read_bytes()


def test_private_text_never_reaches_the_disk(hook: Installed) -> None:
    long = "x" * 65_530  # the tag lies across the pieces it is read in
    for text in (
        "a <private>hidden</private> b",
        long + "<private>hidden</private>",
        "c \\u003cPrivate\\u003ehidden",
    ):
        hook.run("claude", "UserPromptSubmit", payload=b'{"prompt":"' + text.encode() + b'","k":1}')
    assert b"hidden" not in next(hook.spool.iterdir()).read_bytes()
    assert all(json.loads(line.payload)["k"] == 1 for line in hook.lines())


def test_files_are_the_owners_alone(hook: Installed) -> None:
    hook.stand_in()
    hook.run("claude", "Stop", around="umask 0; {}")
    hook.let_go()
    assert hook.spool.stat().st_mode & 0o777 == 0o700
    assert next(hook.spool.iterdir()).stat().st_mode & 0o777 == 0o600
    assert (hook.folder / "__pycache__").stat().st_mode & 0o777 == 0o700


# -- sessions and commits ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "event", "given", "own", "exported"),
    [
        ("claude", "SessionStart", '{"session_id": "a-1_B"}', "", "claude:a-1_B"),
        ("claude", "SessionStart", '{"session_id":"new"}', "old", "claude:new"),
        ("claude", "SessionStart", "{}", "from-env", "claude:from-env"),
        ("claude", "SessionStart", '{"session_id":"a\';rm -rf x"}', "", None),
        ("claude", "SessionStart", '{"prompt":"\\"session_id\\":\\"fake\\""}', "", None),
        ("claude", "SessionStart", "{}", "", None),
        ("claude", "Stop", '{"session_id":"a"}', "", None),
        ("codex", "SessionStart", '{"session_id":"a"}', "", None),
    ],
)
def test_a_session_of_claude_is_told_to_the_commands_it_runs(  # noqa: PLR0913 - one row of the table above
    agent: str,
    event: str,
    given: str,
    own: str,
    exported: str | None,
    hook: Installed,
    tmp_path: Path,
) -> None:
    file = tmp_path / "env.sh"
    file.write_text("export OTHER=1")
    env = {"CLAUDE_ENV_FILE": str(file), **({"CLAUDE_CODE_SESSION_ID": own} if own else {})}
    hook.run(agent, event, payload=given.encode(), env=env)
    told = subprocess.run(
        ["/bin/sh", "-c", f". {file}; echo $OTHER $WHYFOR_SESSION claude:$CLAUDE_SESSION_ID"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == (["1", exported, exported] if exported else ["1", "claude:"])


def git(folder: Path, *words: str) -> str:
    name = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    done = subprocess.run(
        ["git", *name, *words], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_commit_is_found_in_gits_own_files(hook: Installed, tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    main.mkdir()
    expected = []

    def look(folder: Path, **env: str) -> None:
        hook.run("git", "post-commit", cwd=folder, env=env)
        expected.append(git(folder, "rev-parse", "--verify", "HEAD"))

    git(main, "init", "-q", "-b", "feature/x")
    git(main, "commit", "-q", "--allow-empty", "-m", "one")
    look(main)
    git(main, "worktree", "add", "-q", "-b", "other", str(tree))
    git(tree, "commit", "-q", "--allow-empty", "-m", "two")
    look(tree)
    look(tree, GIT_DIR=git(tree, "rev-parse", "--absolute-git-dir"))
    git(main, "pack-refs", "--all")
    look(main)
    look(tree)
    git(main, "checkout", "-q", "--detach")
    look(main)
    assert [line.header["sha"] for line in hook.lines()] == expected
    assert len(set(expected)) == 2


def test_where_there_is_no_commit_none_is_named(hook: Installed, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    hook.run("git", "post-commit", cwd=tmp_path)
    hook.run("git", "post-commit", cwd=Path("/"))
    assert [line.header["sha"] for line in hook.lines()] == ["", ""]


def _response(event: str, command: str, response: object) -> bytes:
    return json.dumps(
        {"hook_event_name": event, "tool_input": {"command": command}, "tool_response": response}
    ).encode()


@pytest.mark.parametrize(
    ("agent", "event", "response", "sha"),
    [
        (
            "claude",
            "PostToolUse",
            {"gitOperation": {"commit": {"sha": "126e95e", "kind": "committed"}}},
            "126e95e",
        ),
        (
            "claude",
            "PostToolUse",
            {"stdout": "x[0] [main 126e95e] a [b] c\n 1 file changed"},
            "126e95e",
        ),
        ("codex", "PostToolUse", "[main (root-commit) 0123abc] first", "0123abc"),
        ("gemini", "AfterTool", {"llmContent": "Output: [detached HEAD 0123abcd] x"}, "0123abcd"),
    ],
)
def test_an_agent_is_asked_once_per_commit(
    agent: str, event: str, response: object, sha: str, hook: Installed
) -> None:
    given = _response(event, "git commit -m x", response)
    first = hook.run(agent, "--annotate", event, payload=given)
    answer = json.loads(first.stdout)["hookSpecificOutput"]
    assert answer["hookEventName"] == event
    assert f"whyfor note {sha} --title" in answer["additionalContext"]
    again = hook.run(agent, "--annotate", event, payload=given)
    assert (again.returncode, again.stdout) == (0, b"")


@pytest.mark.parametrize(
    ("command", "response"),
    [
        ("git commit -m x", "nothing to commit"),
        ("git commit -m x", "error: [main] not a sha [main xyz1234] [a b"),
        ("cat notes", "[main 126e95e] somebody else's"),
        ("git status", {"stdout": "[main 126e95e] x"}),
    ],
)
def test_without_a_commit_nothing_is_asked(command: str, response: object, hook: Installed) -> None:
    done = hook.run(
        "claude", "--annotate", "PostToolUse", payload=_response("PostToolUse", command, response)
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_without_the_wish_for_it_nothing_is_asked(hook: Installed) -> None:
    done = hook.run(
        "claude", "PostToolUse", payload=_response("PostToolUse", "git commit", "[main 126e95e] x")
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_where_nobody_listens_nothing_is_asked(hook: Installed) -> None:
    given = _response("PostToolUse", "git commit", "[main 126e95e] x")
    done = hook.run("claude", "--annotate", "PostToolUse", payload=given, around="{} >&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert [line.payload for line in hook.lines()] == [given]


def test_where_asking_cannot_be_remembered_nothing_is_asked(hook: Installed) -> None:
    (hook.folder / "asked").touch()
    given = _response("PostToolUse", "git commit", "[main 126e95e] x")
    done = hook.run("claude", "--annotate", "PostToolUse", payload=given)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


# -- the ingest that is started ------------------------------------------------------------------


def test_only_events_that_end_something_start_an_ingest(hook: Installed) -> None:
    waking = []
    for agent, event in EVENTS:
        hook.stand_in(then=f'rm -f "{hook.pending}"; exit 0')
        hook.log.unlink(missing_ok=True)
        hook.run(agent, event)
        if hook.pending.exists() or hook.started():
            waking.append(event)
            await_that(lambda: bool(hook.started()) and not alive(hook.started()[0]))
            hook.pending.unlink(missing_ok=True)
    expected = (
        "Stop StopFailure PreCompact SessionEnd AfterAgent agentStop sessionEnd post-commit "
        "post-rewrite post-merge"
    )
    assert sorted(set(waking)) == sorted(expected.split())


def test_a_probe_starts_nothing(hook: Installed) -> None:
    hook.stand_in()
    hook.run("git", "post-commit", env={"WHYFOR_PROBE": "n-1"})
    assert hook.lines()[0].header["env"]["WHYFOR_PROBE"] == "n-1"
    assert not hook.pending.exists()


@LINUX
def test_what_is_started_stands_on_its_own(hook: Installed, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    facts = "readlink /proc/$$/cwd /proc/$$/fd/0 /proc/$$/fd/1 /proc/$$/fd/2; ls /proc/$$/fd; env"
    hook.stand_in(then=f"({facts}) > {seen}.new; mv {seen}.new {seen}")
    reads, writes = os.pipe()
    env = {
        "GIT_DIR": "/code/x",
        "GIT_INDEX_FILE": "i",
        "WHYFOR_HOME": "/code/elsewhere",
        "KEPT": "1",
    }
    done = subprocess.run(
        ["/bin/sh", "-c", hook.command("claude", "Stop")],
        input=b"{}",
        env=env,
        pass_fds=[writes],
        check=True,
    )
    assert done.returncode == 0
    os.close(writes)
    assert os.read(reads, 1) == b"", "a pipe of the agent's was kept open"
    os.close(reads)
    await_that(seen.exists)
    (pid,) = hook.started()
    assert os.getsid(pid) == pid
    assert hook.pending.read_bytes() == b"%d" % pid
    folder, *rest = seen.read_text().splitlines()
    assert folder == "/"
    assert rest[:3] == ["/dev/null"] * 3
    assert set(rest[3:]) >= {f"WHYFOR_HOME={hook.home}", "KEPT=1"}
    assert not [line for line in rest if line.startswith("GIT_")]
    # 10: the shell reads its script there
    assert {int(line) for line in rest[3:] if line.isdigit()} <= {0, 1, 2, 10}
    hook.let_go()


@pytest.mark.parametrize(
    ("content", "age", "taken"),
    [
        ("dead", 0, True),
        ("own", 0, False),
        ("own", 700, True),
        ("", 0, False),
        ("", 10, True),
        ("nonsense", 10, True),
    ],
)
def test_an_ingest_that_never_came_is_not_waited_for(
    content: str, age: int, taken: bool, hook: Installed
) -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", "echo $$"], capture_output=True, text=True, check=True
    ).stdout.strip()
    hook.stand_in()
    hook.pending.write_text({"dead": ended, "own": str(os.getpid())}.get(content, content))
    when = hook.pending.stat().st_mtime - age
    os.utime(hook.pending, (when, when))
    hook.run("claude", "Stop")
    if taken:
        await_that(lambda: len(hook.started()) == 1)
        assert int(hook.pending.read_text()) == hook.started()[0]
    else:
        assert hook.started() == []
    hook.let_go()


def test_after_an_ingest_has_begun_the_next_event_starts_another(hook: Installed) -> None:
    hook.stand_in()
    hook.run("claude", "Stop")
    await_that(lambda: len(hook.started()) == 1)
    hook.run("claude", "Stop")
    hook.pending.unlink()
    hook.run("claude", "Stop")
    await_that(lambda: len(hook.started()) == 2)
    hook.let_go()


# -- many at once, and killed --------------------------------------------------------------------


def test_eighty_hooks_at_once_lose_nothing_and_start_one_ingest(hook: Installed) -> None:
    hook.stand_in()
    sizes = [1_000, 10_000, 100_000, 500_000, 2_000_000]
    given = [payload(sizes[n % len(sizes)], name=f"n-{n}") for n in range(80)]
    command = ["/bin/sh", "-c", hook.command("claude", "Stop")]
    codes: list[int] = []

    def one(text: bytes) -> None:
        """Told at once, as agents do: a hook does not wait for ever."""
        codes.append(subprocess.run(command, input=text, stdout=subprocess.PIPE).returncode)

    threads = [threading.Thread(target=one, args=(text,)) for text in given]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert codes == [0] * 80
    assert sorted(line.payload for line in hook.lines()) == sorted(given)
    await_that(lambda: bool(hook.started()))
    hook.let_go()
    assert len(hook.started()) == 1


def test_two_hooks_that_both_find_no_spool_both_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = os.mkdir

    def late(path: bytes, mode: int) -> None:
        made(path, mode)
        raise FileExistsError

    monkeypatch.setattr("posix.mkdir", late)
    announce.append(os.fsencode(tmp_path), [b"\n", b"{}", b"\n"])
    assert [path.read_bytes() for path in (tmp_path / "spool").iterdir()] == [b"\n{}\n"]


def test_a_hook_killed_at_any_moment_spoils_no_other(hook: Installed) -> None:
    hook.stand_in(then=f'rm -f "{hook.pending}"; exit 0')
    dice = random.Random(3)
    finished = []
    for number in range(30):
        text = payload(300_000, name=f"n-{number}")
        one = subprocess.Popen(
            [PYTHON, "-I", "-S", str(hook.folder / "hook.py"), "--agent", "claude", "Stop"],
            stdin=subprocess.PIPE,
        )
        killer = threading.Timer(dice.uniform(0, 0.02), one.send_signal, [signal.SIGKILL])
        killer.start()
        one.communicate(text)
        killer.cancel()
        if one.returncode == 0:
            finished.append(text)
    hook.run("claude", "Stop", payload=payload(name="last"))
    written = next(hook.spool.iterdir()).read_bytes().split(b"\n")
    payloads = [line.partition(b"\t")[2] for line in written]
    assert [payloads.count(text) for text in (*finished, payload(name="last"))] == [1] * (
        len(finished) + 1
    )
    # one torn by the kill ends where the next begins
    assert max(line.count(b'{"v":1') for line in written) == 1
    await_that(lambda: not any(map(alive, hook.started())))
