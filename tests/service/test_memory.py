"""whyfor memory: made at ingest, again by rebuild, gone with what is forgotten."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.service.init.tools import git
from tests.transcripts import Transcript
from whyfor import config
from whyfor.service.memory_page import note_view

Cli = Callable[..., Result]
SECRET = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
FOUND = "The basket is slow because every price is read from the disk twice."


@pytest.fixture
def session(home: Path, cli: Cli) -> Transcript:
    """A session with a finding, a rule and a fix that was checked."""
    made = Transcript("may")
    made.prompt("Make the checkout faster. Never touch the prices table.")
    made.call("Bash", {"command": "make test"}, "3 failed", failed=True)
    made.call(
        "Edit",
        {"file_path": "/code/shop/basket.py", "old_string": "slow()", "new_string": "quick()"},
    )
    made.call("Bash", {"command": "make test"}, "all passed")
    made.say(FOUND)
    made.save(home)
    assert cli("ingest").code == 0
    return made


def listed(cli: Cli, *options: str) -> list[dict[str, object]]:
    shown = cli("memory", "--json", *options)
    assert shown.code == 0, shown.err
    found: list[dict[str, object]] = json.loads(shown.out)
    return found


def test_an_ingest_remembers_what_was_found_fixed_and_told(session: Transcript, cli: Cli) -> None:
    by_type = {note["type"]: note for note in listed(cli)}
    assert set(by_type) == {"discovery", "bugfix", "rule", "command"}
    assert by_type["discovery"]["narrative"] == FOUND
    assert by_type["bugfix"]["state"] == "verified"
    assert by_type["bugfix"]["files_written"] == ["/code/shop/basket.py"]
    assert by_type["rule"]["title"] == "Never touch the prices table."
    assert {note["session_id"] for note in by_type.values()} == {session.session_id}
    assert [note["type"] for note in listed(cli, "--type", "rule")] == ["rule"]
    assert len(listed(cli, "--file", "basket.py")) == len(by_type) - 1  # a command is of no file
    assert listed(cli, "--file", "other.py") == []


def test_a_rebuild_remembers_the_same(session: Transcript, cli: Cli) -> None:
    before = listed(cli)
    assert cli("rebuild").code == 0
    assert listed(cli) == before


def test_a_session_that_grows_is_remembered_anew(session: Transcript, home: Path, cli: Cli) -> None:
    session.prompt("Always run the linter before you commit.")
    session.save(home)
    assert cli("ingest").code == 0
    assert [note["title"] for note in listed(cli, "--type", "rule")] == [
        "Always run the linter before you commit.",
        "Never touch the prices table.",
    ]


def test_forgetting_a_session_forgets_its_notes(session: Transcript, cli: Cli) -> None:
    assert cli("forget", session.session_id, "--yes").code == 0
    assert listed(cli) == []
    home = config.load().home
    assert not [
        path for path in home.rglob("*") if path.is_file() and b"twice" in path.read_bytes()
    ]


def test_a_note_is_shown_with_its_words_and_its_session(session: Transcript, cli: Cli) -> None:
    (note,) = listed(cli, "--type", "discovery")
    shown = cli("memory", "show", str(note["id"])[:6])
    assert shown.code == 0
    assert f"“{FOUND}”" in " ".join(shown.out.split())
    assert f"whyfor show claude:{session.session_id}" in shown.out
    detail = json.loads(cli("memory", "show", str(note["id"]), "--json").out)
    assert detail["note"] == note
    assert detail["session_summary"]["request"][0]["text"] == "Make the checkout faster."


def test_a_note_says_which_sessions_were_told_it(session: Transcript, home: Path, cli: Cli) -> None:
    (note,) = listed(cli, "--type", "discovery")
    assert json.loads(cli("memory", "show", str(note["id"]), "--json").out)["told"] == []
    assert "Told to" not in cli("memory", "show", str(note["id"])).out
    later = Transcript("later", day="2026-05-02")
    later.prompt("Go on with the basket")
    later.save(home)
    told = {"part": "start", "block": "b", "tokens": 90, "sources": [note["id"]], "files": []}
    line = {"v": 1, "at": 1_777_716_000_000, "agent": "claude", "event": "SessionStart"}
    payload = {"session_id": later.session_id, "transcript_path": str(later.path(home))}
    spool = config.load().home / "spool"
    spool.mkdir(exist_ok=True)
    header = json.dumps({**line, "cwd": "/code/shop", "memory": told})
    (spool / "2026-05-02.spool").write_text(f"\n{header}\t{json.dumps(payload)}\n")
    assert cli("ingest").code == 0
    shown = cli("memory", "show", str(note["id"])).out
    assert "Told to 1 session" in shown
    assert f"claude:{later.session_id}" in shown
    (heard,) = json.loads(cli("memory", "show", str(note["id"]), "--json").out)["told"]
    assert (heard["session_id"], heard["title"]) == (later.session_id, "Go on with the basket")
    view = note_view(config.load(), str(note["id"]))
    assert [one.session_id for one in view.told] == [later.session_id]


def test_the_list_fits_a_narrow_terminal_and_cuts_no_title(
    session: Transcript, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = cli("memory")
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "…" not in shown.out


def test_what_does_not_exist_is_said(session: Transcript, cli: Cli) -> None:
    for arguments, message in {
        ("memory", "--type", "idea"): "no such type: idea",
        ("memory", "--state", "true"): "no such state: true",
        ("memory", "show", "zzz"): "no note is called 'zzz'",
    }.items():
        said = cli(*arguments)
        assert said.code != 0
        assert message in said.err


def test_a_preview_tells_what_the_next_session_would_be_told(
    home: Path, cli: Cli, repo: Path
) -> None:
    made = Transcript("may", cwd=str(repo))
    made.prompt("Make the checkout faster. Use pnpm, not npm.")
    made.call("Read", {"file_path": f"{repo}/basket.py"}, "x")
    made.call("Read", {"file_path": f"{repo}/gone.py"}, "x")
    made.call("Bash", {"command": "make test"}, "canary from a tool")
    made.say(f"{FOUND} Payments fail because the gateway rejects the key {SECRET} at once.")
    made.save(home)
    (repo / "basket.py").write_text("slow()\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "Begin")
    assert cli("ingest").code == 0
    shown = cli("memory", "preview")
    assert shown.code == 0, shown.err
    for told in (
        "Use pnpm, not npm.",
        "make test",
        FOUND,
        "basket.py",
        "Make the checkout faster.",
    ):
        assert told in shown.out
    assert "gone.py" not in shown.out  # git does not track it
    assert "canary" not in shown.out
    assert SECRET not in shown.out
    assert "rejects the key [REDACTED" in shown.out
    assert "tokens. Why each line is in it" in shown.err
    block = json.loads(cli("memory", "preview", "--json", "--tokens", "200").out)
    assert block["tokens"] <= block["budget"] == 200
    assert block["text"] in cli("memory", "preview", "--tokens", "200").out


def test_a_preview_where_nothing_was_recorded_says_so(
    cli: Cli, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("ingest")
    said = cli("memory", "preview")
    assert said.code != 0
    assert "no session is known in" in said.err
    monkeypatch.chdir(repo.parent)
    assert "is not in a git repository" in cli("memory", "preview").err


def test_an_agent_gets_notes_without_secrets(
    home: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Transcript("may")
    made.prompt("Why do payments fail?")
    made.say(f"Payments fail because the gateway rejects the key {SECRET} at once.")
    made.save(home)
    assert cli("ingest").code == 0
    (note,) = listed(cli)
    assert SECRET in str(note["narrative"])  # it is the person's own
    monkeypatch.setenv("CLAUDECODE", "1")
    for arguments in (("memory", "--json"), ("memory",), ("memory", "show", str(note["id"]))):
        shown = cli(*arguments)
        assert shown.code == 0
        assert SECRET not in shown.out
        assert "REDACTED" in shown.out


def test_a_preview_says_why_each_line_is_in_it(home: Path, cli: Cli, repo: Path) -> None:
    made = Transcript("may", cwd=str(repo))
    made.prompt("Make the checkout faster. Use pnpm, not npm.")
    made.say(FOUND)
    made.save(home)
    git(repo, "commit", "-qm", "Begin", "--allow-empty")
    assert cli("ingest").code == 0
    block = json.loads(cli("memory", "preview", "--json").out)
    shown = cli("memory", "preview")
    assert block["text"] in shown.out
    assert block["lines"]
    for line in block["lines"]:
        named = line["text"].partition("[")[2].partition("]")[0]
        assert named and f"[{named}]" in shown.out
        assert f"  {line['section']}: {named}: {line['why']}" in shown.err
