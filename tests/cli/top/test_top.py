"""`whyfor top --once` and `--json`: the same without a screen."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.service.ingest import ingest

Cli = Callable[..., Result]


def test_once_is_a_table(settings: Settings, kept: Transcript, cli: Cli) -> None:
    ingest(settings)
    found = cli("top", "--once")
    assert found.code == 0 and found.err == ""
    head, row = found.out.splitlines()[2:4]
    assert head.split() == ["status", "agent", "project", "branch", "title", "doing", "age"]
    assert "Claude Code" in row and "shop" in row and "main" in row and "Count the quokkas" in row
    assert cli("top").out.splitlines()[2] == head, "where there is no terminal"


def test_json_is_one_document(settings: Settings, kept: Transcript, cli: Cli) -> None:
    assert cli("top", "--json").json == {"sessions": []}
    ingest(settings)
    (session,) = cli("top", "--json").json["sessions"]
    assert session["session_id"] == kept.session_id and session["project"] == "/code/shop"
    assert session["phase"] in ("running", "waiting", "idle", "unknown") and session["evidence"]
    assert {"approval", "questions", "since", "summary", "pid"} <= set(session)


def test_hostile_words_are_words(
    settings: Settings, home: Path, cli: Cli, kept: Transcript
) -> None:
    kept.lines[0]["message"]["content"] = (
        "\x1b]0;owned\x07\x1b[2J[red]quokka[/red] \u202egnp" + "x" * 5000
    )
    kept.save(home)
    ingest(settings)
    found = cli("top", "--once").out
    assert "[red]quokka[/red] gnp" in found
    assert (
        "\x1b" not in found
        and "\u202e" not in found
        and len(max(found.splitlines(), key=len)) <= 200
    )


def test_an_empty_home_says_what_to_do(settings: Settings, cli: Cli) -> None:
    found = cli("top", "--once")
    assert (found.code, found.out) == (0, "") and "whyfor init" in found.err
    assert not settings.home.exists()


def test_only_the_screen_pays_for_textual(settings: Settings, kept: Transcript) -> None:
    ingest(settings)
    look = (
        "import sys; from whyfor.__main__ import main; main(sys.argv[1:]); print('textual' in "
        "sys.modules)"
    )
    for arguments in (["--help"], ["top", "--help"], ["top", "--once"], ["top", "--json"]):
        done = subprocess.run(
            [sys.executable, "-c", look, *arguments], capture_output=True, text=True, check=True
        )
        assert done.stdout.splitlines()[-1] == "False", arguments
    assert json.loads(
        subprocess.run(
            [sys.executable, "-m", "whyfor", "top", "--json"], capture_output=True, check=True
        ).stdout
    )
