"""The hook tells a new session what was written down for it, once, and is silent about anything
else."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.hook import Installed
from whyfor.hook.block_name import block_key, block_name, checkout

START, THREADS = "<whyfor-memory>all</whyfor-memory>", "<whyfor-memory>open</whyfor-memory>"


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.com")
    git(folder, "commit", "-q", "--allow-empty", "-m", "root")
    return folder


def place(hook: Installed, folder: Path, branch: str = "main", start: str = START) -> Path:
    key = block_key(str(folder / ".git").encode(), branch.encode())
    path = hook.folder / "memory" / block_name(key).decode()
    path.parent.mkdir(exist_ok=True)
    lines = ['{"part":"start"}', json.dumps(start), '{"part":"threads"}', json.dumps(THREADS), ""]
    path.write_bytes(key + b"\n" + "\n".join(lines).encode())
    return path


def say(hook: Installed, folder: Path, source: str = "startup", **more: object) -> bytes:
    agent = str(more.pop("agent", "claude"))
    event = "sessionStart" if agent == "copilot" else "SessionStart"
    given = {"session_id": "s-1", "source": source, **more}
    words = ["--remember", event]
    done = hook.run(agent, *words, payload=json.dumps(given).encode(), cwd=folder)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def told(printed: bytes) -> str:
    output = json.loads(printed)["hookSpecificOutput"]
    assert output.keys() == {"hookEventName", "additionalContext"}
    assert output["hookEventName"] == "SessionStart"
    return str(output["additionalContext"])


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini"])
def test_a_session_is_told_once(hook: Installed, checkout_folder: Path, agent: str) -> None:
    place(hook, checkout_folder)
    assert told(say(hook, checkout_folder, agent=agent)) == START
    assert say(hook, checkout_folder, agent=agent) == b""
    assert told(say(hook, checkout_folder, "clear", agent=agent, session_id="s-2")) == START
    headers = [line.header for line in hook.lines()]
    assert [header.get("memory") for header in headers] == [
        {"part": "start"},
        None,
        {"part": "start"},
    ]


def test_copilot_gets_it_in_its_own_form(hook: Installed, checkout_folder: Path) -> None:
    place(hook, checkout_folder)
    printed = say(hook, checkout_folder, "new", agent="copilot", sessionId="s-1")
    assert json.loads(printed) == {"additionalContext": START}


@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "copilot", "opencode"])
def test_a_session_that_goes_on_is_told_nothing(
    hook: Installed, checkout_folder: Path, agent: str
) -> None:
    place(hook, checkout_folder)
    sources = ("resume", "fork", "", "anything")
    for source in sources:
        assert say(hook, checkout_folder, source, agent=agent) == b""
    assert [line.header.get("memory") for line in hook.lines()] == [None] * len(sources)


@pytest.mark.parametrize("agent", ["claude", "codex"])  # the others announce no compaction
def test_after_a_compaction_what_is_open_is_told_again(
    hook: Installed, checkout_folder: Path, agent: str
) -> None:
    place(hook, checkout_folder)
    assert told(say(hook, checkout_folder, agent=agent)) == START
    assert told(say(hook, checkout_folder, "compact", agent=agent)) == THREADS
    assert say(hook, checkout_folder, agent=agent) == b""  # its start is told once
    assert say(hook, checkout_folder, "resume", agent=agent) == b""
    assert told(say(hook, checkout_folder, "compact", agent=agent)) == THREADS


def test_it_is_silent_unless_it_was_asked_to_speak(hook: Installed, checkout_folder: Path) -> None:
    place(hook, checkout_folder)
    given = json.dumps({"session_id": "s-1", "source": "startup"}).encode()
    done = hook.run("claude", "SessionStart", payload=given, cwd=checkout_folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    env = {"WHYFOR_PROBE": "1"}
    words = ("--remember", "SessionStart")
    assert not hook.run("claude", *words, payload=given, env=env, cwd=checkout_folder).stdout


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"{",
        b'{"source":"startup"}',
        b'{"source":"startup","session_id":"../../x"}',
        b'{"source":"startup","session_id":"s-1","agent_id":"a"}',
        b'{"source":"startup","session_id":"<private>s</private>"}',
    ],
)
def test_what_it_does_not_understand_is_answered_with_nothing(
    hook: Installed, checkout_folder: Path, given: bytes
) -> None:
    place(hook, checkout_folder)
    done = hook.run("claude", "--remember", "SessionStart", payload=given, cwd=checkout_folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert len(hook.lines()) == 1  # it was written down all the same


def test_damage_is_answered_with_nothing(hook: Installed, checkout_folder: Path) -> None:
    path = place(hook, checkout_folder)
    whole = path.read_bytes()
    for content in (b"", b"\n", whole[:40], b"other" + whole, whole.split(b"\n")[0]):
        path.write_bytes(content)
        assert say(hook, checkout_folder) == b""
    path.unlink()
    path.mkdir()
    assert say(hook, checkout_folder) == b""
    (hook.folder / "memory_block.py").write_text("def broken(:")
    assert say(hook, checkout_folder) == b""
    path.rmdir()
    assert say(hook, checkout_folder) == b""


def test_what_cannot_be_recorded_is_not_told(hook: Installed, checkout_folder: Path) -> None:
    place(hook, checkout_folder)
    hook.spool.touch()
    assert say(hook, checkout_folder) == b""


def test_each_branch_has_its_own_and_others_that_of_the_repository(
    hook: Installed, checkout_folder: Path, tmp_path: Path
) -> None:
    place(hook, checkout_folder, "main", "of main")
    place(hook, checkout_folder, "", "of all")
    below = checkout_folder / "src" / "deep"
    below.mkdir(parents=True)
    assert told(say(hook, below)) == "of main"
    git(checkout_folder, "switch", "-q", "-c", "topic")
    assert told(say(hook, below, session_id="s-2")) == "of all"
    git(checkout_folder, "switch", "-q", "--detach")
    assert told(say(hook, checkout_folder, session_id="s-3")) == "of all"
    tree = tmp_path / "elsewhere" / "tree"
    git(checkout_folder, "worktree", "add", "-q", str(tree), "main")
    assert told(say(hook, tree, session_id="s-4")) == "of main"
    assert say(hook, tmp_path, session_id="s-5") == b""


def test_where_a_checkout_is_equals_what_git_says(checkout_folder: Path, tmp_path: Path) -> None:
    def content(path: bytes) -> bytes:
        try:
            return Path(path.decode()).read_bytes()
        except OSError:
            return b""

    git(checkout_folder, "worktree", "add", "-q", "-b", "a/b", str(tmp_path / "tree"))
    git(checkout_folder, "config", "protocol.file.allow", "always")
    for folder, branch in ((checkout_folder, "main"), (tmp_path / "tree", "a/b")):
        asked = ["git", "rev-parse", "--path-format=absolute", "--git-common-dir"]
        common = subprocess.run(asked, cwd=folder, check=True, capture_output=True).stdout.strip()
        assert checkout(str(folder).encode(), content) == (common, branch.encode())
    assert checkout(b"/", content) is None
