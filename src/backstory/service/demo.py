"""demo: a throw-away home and repository with invented sessions of two agents, in their real formats."""

from __future__ import annotations

import difflib
import itertools
import json
import os
import subprocess
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from backstory.model.errors import StoreError

_AUTHOR = ["-c", "user.name=Robin", "-c", "user.email=robin@example.com", "-c", "commit.gpgsign=false"]
_PLAIN = """import urllib.request


def fetch(url: str) -> bytes:
    return urllib.request.urlopen(url, timeout=5).read()
"""
_RETRY = '''import time
import urllib.request


def fetch(url: str, attempts: int = 4) -> bytes:
    """Get a tide table; the harbour's server drops every tenth connection."""
    for attempt in range(attempts):
        try:
            return urllib.request.urlopen(url, timeout=5).read()
        except OSError:
            if attempt == attempts - 1:
                raise
            time.sleep(2**attempt)
    raise AssertionError
'''
_TEST = """def test_gives_up_after_three(server):
    server.drop_all()
    assert attempts_of(fetch, server.url) == 3
"""
_CLI = "def main() -> None:\n    print(next_tide())\n"
_HARBOUR_CLI = 'def main(harbour: str = "Husum") -> None:\n    print(next_tide(harbour))\n'
_README = """# tidewatch

Prints the next tide of a harbour.

## When the server does not answer

The harbour's server drops every tenth connection and restarts once a day, which takes up to five seconds.
A tide table is therefore asked for four times, after waits of one, two and four seconds.
A harbour that stays silent is named in the error.
"""
_QUESTION = "What should happen when a harbour stays silent after the last attempt?"


class Demo(msgspec.Struct, frozen=True):
    home: Path
    repository: Path
    backstory_home: Path


def build(folder: Path) -> Demo:
    """Everything below one folder: delete it, and it never was."""
    demo = Demo(folder / "home", folder / "home" / "code" / "tidewatch", folder / "backstory")
    demo.repository.mkdir(parents=True)
    now = datetime.now(UTC).replace(microsecond=0)
    _repository(demo.repository, now - timedelta(days=2))
    _retry_session(demo, now - timedelta(days=1, hours=2))
    _harbour_session(demo, now - timedelta(hours=5))
    _readme_session(demo, now - timedelta(minutes=40))
    _by_hand(demo.repository, now - timedelta(minutes=30))
    return demo


def _repository(folder: Path, at: datetime) -> None:
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "remote", "add", "origin", "git@example.com:harbour/tidewatch.git")
    _write(folder / "tidewatch" / "http.py", _PLAIN)
    _write(folder / "tidewatch" / "cli.py", _CLI)
    _write(folder / "tests" / "test_http.py", _TEST)
    _commit(folder, "Fetch tide tables", at)


def _retry_session(demo: Demo, at: datetime) -> None:
    """Claude Code: a bug, a thought, a subagent, a test that fails first, two commits of one request."""
    log = _Claude(demo, "5b1d0c3e-7f0a-4c7e-9d53-2a6f8e1b4c90", at)
    log.title("Retry dropped connections to the harbour server")
    log.prompt(
        "Fetching the tide table fails about once in ten runs with ConnectionResetError. Make it robust, please."
    )
    log.think("The server drops connections. A retry with exponential backoff fits; the last error must still surface.")
    log.call("Read", {"file_path": str(demo.repository / "tidewatch/http.py")}, _PLAIN)
    log.agent("Find other callers", "List every place that calls urllib directly.", "Only tidewatch/http.py does.")
    log.put("tidewatch/http.py", _RETRY)
    log.call("Bash", {"command": "python -m pytest -q"}, "1 failed: test_gives_up_after_three", failed=True)
    log.say("The test expects three attempts, `fetch` makes four. Which one is right?")
    log.prompt("Keep four, change the test. Then commit.")
    log.edit("tests/test_http.py", "server.url) == 3", "server.url) == 4")
    log.edit("tests/test_http.py", "after_three", "after_four")
    log.call("Bash", {"command": "python -m pytest -q"}, "7 passed")
    log.say(
        "`fetch` now tries **four times**, waiting 1, 2 and 4 seconds; only `OSError` is retried.\n\n"
        "I considered a retry library and left it out: one function is enough here."
    )
    log.commit("Retry dropped connections with exponential backoff")
    log.ask(_QUESTION, "Silence", ("Name the harbour", "Return the last table", "Exit quietly"))
    log.edit(
        "tidewatch/http.py", "                raise\n", '                raise ConnectionError(f"{url} is silent")\n'
    )
    log.commit("Say which harbour stays silent")
    log.say(
        "A harbour that stays silent is now **named in the error**:\n\n"
        '```python\nraise ConnectionError(f"{url} is silent")\n```\n\nBoth changes are committed.'
    )
    log.save()


def _harbour_session(demo: Demo, at: datetime) -> None:
    """Codex: a flag, with a patch."""
    log = _Codex(demo, "019d6f23-82bc-7f93-9613-15d6790268e1", at)
    log.prompt("Let people choose the harbour on the command line. Husum stays the default.")
    log.reason("cli.py calls next_tide without arguments; give main a parameter and pass it on.")
    log.call("exec_command", {"cmd": "sed -n 1,40p tidewatch/cli.py"}, _CLI)
    log.put("tidewatch/cli.py", _HARBOUR_CLI)
    log.commit("Choose the harbour on the command line")
    log.say("`tidewatch Tönning` works now; without an argument it is still Husum.")
    log.save()


def _readme_session(demo: Demo, at: datetime) -> None:
    """Claude Code: a question, then lines that it leaves for a person to commit."""
    log = _Claude(demo, "c2f8a1d4-0b6e-4f39-8a57-91e3d7c05b26", at)
    log.title("Why four attempts")
    log.prompt("Why does fetch try four times and not three?")
    log.call(
        "Bash",
        {"command": "git log --oneline -3"},
        "Choose the harbour\nSay which harbour stays silent\nRetry dropped connections",
    )
    log.say(
        "With three attempts the longest wait is 2 s; the server's restarts take up to 5 s, so the fourth is needed."
    )
    log.prompt("Put that into the readme. I will commit it myself.")
    log.put("README.md", _README)
    log.say("The readme says it now, under “When the server does not answer”. Nothing is committed.")
    log.save()


def _by_hand(folder: Path, at: datetime) -> None:
    """Two commits of a person: one of the agent's lines, one that no agent has to do with."""
    _commit(folder, "Explain the retries in the readme", at)
    _write(folder / ".python-version", "3.13\n")
    _commit(folder, "Pin the Python version", at + timedelta(minutes=12))


class _Log:
    """A transcript in the making: a clock that moves on, ids that count."""

    def __init__(self, demo: Demo, session: str, at: datetime) -> None:
        self.demo = demo
        self.session = session
        self.at = at
        self.lines: list[dict[str, Any]] = []
        self.number = itertools.count(1)

    def tick(self, seconds: int = 7) -> str:
        self.at += timedelta(seconds=seconds)
        return self.at.isoformat().replace("+00:00", ".000Z")

    def ident(self) -> str:
        return str(uuid.uuid5(uuid.UUID(self.session), str(next(self.number))))

    def made(self, subject: str, seconds: int) -> tuple[str, str]:
        """A commit in so many seconds, while the call runs; its short name, and what git says."""
        sha = _commit(self.demo.repository, subject, self.at + timedelta(seconds=seconds))
        return sha, f"[main {sha}] {subject}\n {_git(self.demo.repository, 'show', '--shortstat', '--format=')}"

    def write(self, path: Path) -> None:
        _write(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in self.lines))


class _Claude(_Log):
    parent: str | None = None

    def _line(self, kind: str, message: dict[str, Any], **extra: Any) -> None:
        uid = self.ident()
        cwd = str(self.demo.repository)
        line = {"parentUuid": self.parent, "isSidechain": False, "type": kind, "message": message, "uuid": uid}
        line |= {"timestamp": self.tick(), "cwd": cwd, "sessionId": self.session, "version": "2.1.197"}
        self.lines.append({**line, "gitBranch": "main", **extra})
        self.parent = uid

    def _assistant(self, block: dict[str, Any], output: int) -> None:
        usage = {"input_tokens": 9, "cache_creation_input_tokens": 850, "cache_read_input_tokens": 14_200}
        message = {"id": f"msg_{self.ident()[:8]}", "role": "assistant", "model": "claude-demo-1", "content": [block]}
        self._line("assistant", {**message, "usage": {**usage, "output_tokens": output}}, requestId=self.ident()[:8])

    def title(self, text: str) -> None:
        self.lines.append({"type": "ai-title", "aiTitle": text, "sessionId": self.session})

    def prompt(self, text: str) -> None:
        self._line("user", {"role": "user", "content": text}, promptSource="typed", origin={"kind": "human"})

    def think(self, text: str) -> None:
        self._assistant({"type": "thinking", "thinking": text, "signature": "demo"}, 120)

    def say(self, text: str) -> None:
        self._assistant({"type": "text", "text": text}, 210)

    def call(self, name: str, given: dict[str, Any], result: str, *, failed: bool = False, **outcome: Any) -> str:
        ident = f"toolu_{self.ident()[:12]}"
        self._assistant({"type": "tool_use", "id": ident, "name": name, "input": given}, 90)
        block = {"type": "tool_result", "tool_use_id": ident, "content": result, "is_error": failed}
        self._line("user", {"role": "user", "content": [block]}, toolUseResult=outcome or {"stdout": result})
        return ident

    def put(self, name: str, content: str) -> None:
        path = self.demo.repository / name
        old = path.read_text(encoding="utf-8") if path.exists() else None
        _write(path, content)
        outcome = {"type": "create" if old is None else "update", "content": content, **_outcome(path, old, content)}
        self.call("Write", {"file_path": str(path), "content": content}, "The file has been updated.", **outcome)

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.demo.repository / name
        before = path.read_text(encoding="utf-8")
        after = before.replace(old, new)
        _write(path, after)
        given = {"file_path": str(path), "old_string": old, "new_string": new}
        outcome = {"oldString": old, "newString": new, "replaceAll": False, **_outcome(path, before, after)}
        self.call("Edit", given, "The file has been updated.", **outcome)

    def commit(self, subject: str) -> None:
        sha, printed = self.made(subject, 10)
        operation = {"commit": {"sha": sha, "kind": "committed"}}
        ran: dict[str, Any] = {"stdout": printed, "stderr": "", "interrupted": False, "gitOperation": operation}
        self.call("Bash", {"command": f"git commit -am '{subject}'"}, printed, **ran)

    def ask(self, question: str, header: str, labels: tuple[str, ...]) -> None:
        """A question of the agent's own; the first label is chosen."""
        options = [{"label": label, "description": ""} for label in labels]
        questions = [{"question": question, "header": header, "options": options, "multiSelect": False}]
        said = f'User has answered your questions: "{question}"="{labels[0]}".'
        answers = {question: labels[0]}
        self.call("AskUserQuestion", {"questions": questions}, said, questions=questions, answers=answers)

    def agent(self, description: str, task: str, answer: str) -> None:
        """A subagent: its own file beside the session's, tied to the call by its id."""
        agent_id = self.ident()[:8]
        given = {"description": description, "prompt": task, "subagent_type": "Explore"}
        started = self.at
        call = self.call("Task", given, answer, agentId=agent_id, status="completed")
        child = _Claude(self.demo, self.session, started)
        child.number = itertools.count(1000)
        child.prompt(task)
        child.call("Grep", {"pattern": "urllib"}, "tidewatch/http.py")
        child.say(answer)
        child.lines = [{**line, "isSidechain": True, "agentId": agent_id} for line in child.lines]
        folder = self._folder() / self.session / "subagents"
        child.write(folder / f"agent-{agent_id}.jsonl")
        meta = {"agentType": "Explore", "description": description, "toolUseId": call}
        _write(folder / f"agent-{agent_id}.meta.json", json.dumps(meta))

    def _folder(self) -> Path:
        encoded = "".join(c if c.isascii() and c.isalnum() else "-" for c in str(self.demo.repository))
        return self.demo.home / ".claude" / "projects" / encoded[:200]

    def save(self) -> None:
        self.write(self._folder() / f"{self.session}.jsonl")


class _Codex(_Log):
    def __init__(self, demo: Demo, session: str, at: datetime) -> None:
        super().__init__(demo, session, at)
        self.started = at
        self.total = {"input_tokens": 0, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_output_tokens": 0}
        git = {"branch": "main", "repository_url": "git@example.com:harbour/tidewatch.git"}
        meta = {"id": session, "timestamp": self.tick(), "cwd": str(demo.repository), "originator": "codex_cli_rs"}
        self._line("session_meta", {**meta, "cli_version": "0.144.0", "source": "cli", "git": git})
        turn = {"turn_id": self.ident(), "cwd": str(demo.repository), "model": "gpt-demo-1"}
        self._line("turn_context", turn)

    def _line(self, kind: str, payload: dict[str, Any]) -> None:
        self.lines.append({"timestamp": self.tick(3), "type": kind, "payload": payload})

    def _item(self, **payload: Any) -> None:
        self._line("response_item", payload)

    def _spend(self, output: int, reasoning: int = 0) -> None:
        last = {"input_tokens": 8200, "cached_input_tokens": 7600, "output_tokens": output}
        last["reasoning_output_tokens"] = reasoning
        self.total = {name: self.total[name] + last[name] for name in self.total}
        info = {"total_token_usage": self.total, "last_token_usage": last, "model_context_window": 258_400}
        self._line("event_msg", {"type": "token_count", "info": info})

    def prompt(self, text: str) -> None:
        self._item(type="message", role="user", content=[{"type": "input_text", "text": text}])
        self._line("event_msg", {"type": "user_message", "message": text})

    def reason(self, text: str) -> None:
        self._item(type="reasoning", summary=[{"type": "summary_text", "text": text}], encrypted_content="demo")

    def say(self, text: str) -> None:
        self._item(type="message", role="assistant", content=[{"type": "output_text", "text": text}])
        self._spend(160)

    def call(self, name: str, given: dict[str, Any], result: str) -> None:
        ident = f"call_{self.ident()[:12]}"
        self._item(type="function_call", name=name, arguments=json.dumps(given), call_id=ident)
        self._item(type="function_call_output", call_id=ident, output=result)
        self._spend(70, 32)

    def put(self, name: str, content: str) -> None:
        path = self.demo.repository / name
        old = path.read_text(encoding="utf-8")
        _write(path, content)
        hunks = "".join("".join(f"{line}\n" for line in hunk["lines"]) for hunk in _hunks(old, content))
        ident = f"call_{self.ident()[:12]}"
        text = f"*** Begin Patch\n*** Update File: {name}\n@@\n{hunks}*** End Patch"
        self._item(type="custom_tool_call", name="apply_patch", input=text, call_id=ident, status="completed")
        changes = {str(path): {"type": "update", "unified_diff": f"@@ -1,2 +1,2 @@\n{hunks}"}}
        done = {"type": "patch_apply_end", "call_id": ident, "success": True, "changes": changes}
        self._line("event_msg", done)
        self._item(type="custom_tool_call_output", call_id=ident, output=f"Success. Updated {name}")
        self._spend(110, 40)

    def commit(self, subject: str) -> None:
        _, printed = self.made(subject, 4)
        self.call("exec_command", {"cmd": f"git commit -am '{subject}'"}, printed)

    def save(self) -> None:
        folder = self.demo.home / ".codex" / "sessions" / f"{self.started:%Y/%m/%d}"
        self.write(folder / f"rollout-{self.started:%Y-%m-%dT%H-%M-%S}-{self.session}.jsonl")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _outcome(path: Path, old: str | None, new: str) -> dict[str, Any]:
    """What Claude Code keeps of an edit; of a new file it keeps no patch."""
    patch = [] if old is None else _hunks(old, new)
    return {"filePath": str(path), "originalFile": old, "structuredPatch": patch, "userModified": False}


def _hunks(old: str, new: str) -> list[dict[str, Any]]:
    before, after = old.splitlines(), new.splitlines()
    found = []
    for group in difflib.SequenceMatcher(None, before, after, autojunk=False).get_grouped_opcodes(3):
        lines: list[str] = []
        for step, first, last, new_first, new_last in group:
            if step == "equal":
                lines += [f" {line}" for line in before[first:last]]
            else:
                lines += [f"-{line}" for line in before[first:last]]
                lines += [f"+{line}" for line in after[new_first:new_last]]
        (_, a, _, c, _), (_, _, b, _, d) = group[0], group[-1]
        sizes = {"oldStart": a + 1, "oldLines": b - a, "newStart": c + 1, "newLines": d - c}
        found.append({**sizes, "lines": lines})
    return found


def _commit(folder: Path, subject: str, at: datetime) -> str:
    _git(folder, "add", "--all")
    when = at.isoformat()
    _git(folder, "commit", "-q", "-m", subject, GIT_AUTHOR_DATE=when, GIT_COMMITTER_DATE=when)
    return _git(folder, "rev-parse", "--short", "HEAD")


def _git(folder: Path, *arguments: str, **variables: str) -> str:
    command = ["git", "-C", str(folder), *_AUTHOR, *arguments]
    env = {**os.environ, **variables}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL, env=env)
    except FileNotFoundError:
        raise StoreError("git is not installed; the demo makes a repository", "Install git, then try again.") from None
    except subprocess.CalledProcessError as error:
        raise StoreError(
            f"git failed: {error.stderr.strip()}", "Try again with --keep and look at the folder."
        ) from None
    return done.stdout.strip()
