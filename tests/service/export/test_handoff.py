"""A session handed over: what was asked, done, decided, left open, and how to go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.transcripts import Transcript

Cli = Callable[..., Result]
_SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def session(home: Path, tmp_path: Path, cli: Cli) -> str:
    made = Transcript("worker", cwd=str(tmp_path))
    made.prompt("Make the ferry wait for @everyone ```")
    made.call("Write", {"file_path": str(tmp_path / "ferry.py"), "content": "wait()\n"}, "written")
    made.call("Bash", {"command": "pytest -q"}, "1 failed", failed=True)
    made.call("Bash", {"command": f"TOKEN={_SECRET} pytest -q"}, "1 passed")
    made.call("Bash", {"command": "pytest -q"}, "1 passed")
    made.call("Bash", {"command": "make lint"}, "1 error", failed=True)
    made.call("Bash", {"command": "git diff | head -5"}, "-a")
    made.call("Bash", {"command": "git commit -qm Wait"}, "[ferry 1a2b3c4] Wait for it")
    todos = [{"content": "Paint the pier", "status": "pending"}, {"content": "x", "status": "done"}]
    made.call("TodoWrite", {"todos": todos}, "written")
    made.say("The ferry waits. Next: tell the harbour office.")
    for number in range(14):
        made.prompt(f"And crossing {number}?")
        made.say(f"Crossing {number} is fine.")
    made.save(home)
    cli("ingest")
    return made.session_id


def test_a_handoff_tells_what_was_asked_and_how_commands_ended(session: str, cli: Cli) -> None:
    done = cli("handoff", session)
    assert done.code == 0, done.err
    text = done.out
    assert "# Hand-over: " in text
    assert "> Make the ferry wait" in text
    assert "… 3 more …" in text
    assert "Crossing 13 is fine." in text
    assert "`pytest -q`: no failure recorded" in text
    assert "- `ferry.py`\n" in text, "as it is named in the session's folder"
    assert "git diff" not in text and "- and 1 that only looked" in text
    assert "- `1a2b3c4` Wait for it" in text
    assert "- This failed when it was run last: make lint\n" in text
    assert "run last: pytest" not in text, "it passed since"
    assert "- On the agent's list: Paint the pier" in text
    assert "- Claude Code" in text and "; 15 turns\n" in text
    assert f"`whyfor show claude:{session}`" in text
    assert f"claude --resume {session}" in text
    assert "@everyone" not in text  # nobody is mentioned where it is pasted


def test_secrets_stay_here_and_json_has_the_same(session: str, cli: Cli, tmp_path: Path) -> None:
    assert _SECRET not in cli("handoff", session).out
    told = cli("handoff", session, "--json").json
    assert _SECRET not in str(told)
    assert told["untold"] == 3
    assert told["asked"][0].startswith("Make the ferry wait")
    assert {one["command"]: one["failed"] for one in told["commands"]}["pytest -q"] is False
    target = tmp_path / "HANDOFF.md"
    assert cli("handoff", session, "--output", str(target)).code == 0
    assert target.read_text().startswith("# Hand-over: ")
    assert cli("handoff", "nothing").code == 2
