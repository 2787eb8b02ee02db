"""Create a temporary home and repository with invented sessions of two agents, in their real
formats."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from whyfor.demo.claude import ClaudeDemo
from whyfor.demo.codex import CodexDemo
from whyfor.demo.past import past
from whyfor.demo.places import Demo, begin, commit, write_file
from whyfor.demo.present import present

__all__ = ["Demo", "build", "fill"]

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
# The demo's models are invented, and so are their prices. One has none.
_PRICES = """[[model]]
match = "claude-demo-*"
input = 3.0
output = 15.0
cache_read = 0.3
cache_write = 3.75
cache_write_1h = 6.0

[[model]]
match = "gpt-demo-*"
input = 1.75
output = 14.0
cache_read = 0.175
"""
_QUESTION = "What should happen when a harbour stays silent after the last attempt?"


def build(folder: Path, now: datetime | None = None) -> Demo:
    """Create the demo below one folder; deleting the folder removes everything."""
    demo = Demo(folder / "home", folder / "home" / "code" / "tidewatch", folder / "whyfor")
    now = (now or datetime.now(UTC)).replace(microsecond=0)
    begin(demo)
    write_file(demo.whyfor_home / "prices.toml", _PRICES)
    _first_commit(demo.repository, now - timedelta(days=2))
    _retry_session(demo, now - timedelta(days=1, hours=2))
    _harbour_session(demo, now - timedelta(hours=5))
    _readme_session(demo, now - timedelta(minutes=40))
    _by_hand(demo.repository, now - timedelta(minutes=30))
    return demo


def fill(demo: Demo, now: datetime | None = None) -> None:
    """Add what the pages need: a year of history, more projects, and open sessions."""
    now = (now or datetime.now(UTC)).replace(microsecond=0)
    charts, notes = demo.beside("harbour/charts"), demo.beside("robin/notes")
    for one in (charts, notes):
        begin(one)
        write_file(one.repository / "README.md", f"# {one.repository.name}\n")
        commit(one.repository, "Begin", now - timedelta(days=300))
    past((charts, notes, demo), now)
    present(demo, charts, notes, now)


def _first_commit(folder: Path, at: datetime) -> None:
    write_file(folder / "tidewatch" / "http.py", _PLAIN)
    write_file(folder / "tidewatch" / "cli.py", _CLI)
    write_file(folder / "tests" / "test_http.py", _TEST)
    commit(folder, "Fetch tide tables", at)


def _retry_session(demo: Demo, at: datetime) -> None:
    """Claude Code: a bug, a thought, a subagent, a test that first fails, two commits for one
    request."""
    log = ClaudeDemo(demo, "5b1d0c3e-7f0a-4c7e-9d53-2a6f8e1b4c90", at)
    log.title("Retry dropped connections to the harbour server")
    log.prompt(
        "Fetching the tide table fails about once in ten runs with ConnectionResetError. Make it "
        "robust, please."
    )
    log.think(
        "The server drops connections. A retry with exponential backoff fits; the last error must "
        "still surface."
    )
    log.call("Read", {"file_path": str(demo.repository / "tidewatch/http.py")}, _PLAIN)
    log.delegate(
        "Find other callers",
        "List every place that calls urllib directly.",
        "Only tidewatch/http.py does.",
    )
    log.put("tidewatch/http.py", _RETRY)
    log.call(
        "Bash",
        {"command": "python -m pytest -q"},
        "Exit code 1\n1 failed: test_gives_up_after_three",
        failed=True,
    )
    log.say("The test expects three attempts, `fetch` makes four. Which one is right?")
    log.prompt("Keep four, change the test. Then commit.")
    log.edit("tests/test_http.py", "server.url) == 3", "server.url) == 4")
    log.edit("tests/test_http.py", "after_three", "after_four")
    log.call("Bash", {"command": "python -m pytest -q"}, "7 passed")
    log.say(
        "`fetch` now tries **four times**, waiting 1, 2 and 4 seconds; only `OSError` is "
        "retried.\n\n"
        "I considered a retry library and left it out: one function is enough here."
    )
    log.commit("Retry dropped connections with exponential backoff")
    log.ask(_QUESTION, "Silence", ("Name the harbour", "Return the last table", "Exit quietly"))
    log.edit(
        "tidewatch/http.py",
        "                raise\n",
        '                raise ConnectionError(f"{url} is silent")\n',
    )
    log.commit("Say which harbour stays silent")
    log.say(
        "A harbour that stays silent is now **named in the error**:\n\n"
        '```python\nraise ConnectionError(f"{url} is silent")\n```\n\nBoth changes are committed.'
    )
    log.save()


def _harbour_session(demo: Demo, at: datetime) -> None:
    """Codex: a new flag, written as a patch."""
    log = CodexDemo(demo, "019d6f23-82bc-7f93-9613-15d6790268e1", at)
    log.prompt("Let people choose the harbour on the command line. Husum stays the default.")
    log.reason("cli.py calls next_tide without arguments; give main a parameter and pass it on.")
    log.call("exec_command", {"cmd": "sed -n 1,40p tidewatch/cli.py"}, _CLI)
    log.put("tidewatch/cli.py", _HARBOUR_CLI)
    log.commit("Choose the harbour on the command line")
    log.say("`tidewatch Tönning` works now; without an argument it is still Husum.")
    log.save()


def _readme_session(demo: Demo, at: datetime) -> None:
    """Claude Code: a question, then lines that a person commits."""
    log = ClaudeDemo(demo, "c2f8a1d4-0b6e-4f39-8a57-91e3d7c05b26", at)
    log.title("Why four attempts")
    log.prompt("Why does fetch try four times and not three?")
    log.call(
        "Bash",
        {"command": "git log --oneline -3"},
        "Choose the harbour\nSay which harbour stays silent\nRetry dropped connections",
    )
    log.say(
        "With three attempts the longest wait is 2 s; the server's restarts take up to 5 s, so the "
        "fourth is needed."
    )
    log.prompt("Put that into the readme. I will commit it myself.")
    log.put("README.md", _README)
    log.say(
        "The readme says it now, under “When the server does not answer”. Nothing is committed."
    )
    log.save()


def _by_hand(folder: Path, at: datetime) -> None:
    """Two commits by a person: one with the agent's lines, one without any agent."""
    commit(folder, "Explain the retries in the readme", at)
    write_file(folder / ".python-version", "3.13\n")
    commit(folder, "Pin the Python version", at + timedelta(minutes=12))
