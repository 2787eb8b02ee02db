"""What a person and a program see of each command."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor import __version__
from whyfor.cli import COMMANDS
from whyfor.config import Settings
from whyfor.service.ingest import ingest

Cli = Callable[..., Result]
SESSION_FIELDS = {
    "agent",
    "session_id",
    "project",
    "cwd",
    "branch",
    "title",
    "started_at",
    "ended_at",
    "prompts",
    "messages",
    "tool_calls",
    "tokens",
    "models",
    "files_modified",
    "parent_session_id",
    "unparsed",
}


@pytest.fixture
def two(home: Path, cli: Cli) -> tuple[Transcript, Transcript]:
    """A session in May on main that edits a file, and one in June on a branch, both ingested."""
    may = Transcript("may", day="2026-05-01")
    may.prompt("Make the checkout faster")
    may.think("The basket is computed twice")
    may.call(
        "Edit",
        {"file_path": "/code/shop/basket.py", "old_string": "slow()", "new_string": "quick()"},
    )
    may.call("Bash", {"command": "make test"}, "3 failed", failed=True)
    may.say("It is **faster** now.")
    june = Transcript("june", day="2026-06-10", branch="spike", cwd="/code/other")
    june.prompt("Explain the cache\nIn detail.")
    june.say("There is none.")
    for transcript in (may, june):
        transcript.save(home)
    assert cli("ingest").code == 0
    return may, june


def test_ingest_says_what_it_kept_and_a_second_run_finds_nothing_new(home: Path, cli: Cli) -> None:
    transcript = Transcript("one")
    transcript.prompt("Hello")
    transcript.save(home)
    first, second = cli("ingest", "--json").json, cli("ingest", "--json").json
    assert (first["files"], first["sessions"], first["records"], first["new_records"]) == (
        1,
        1,
        1,
        1,
    )
    assert (first["unparsed"], first["unknown_types"]) == (0, 0)
    assert first["bytes"] == transcript.path(home).stat().st_size
    assert (second["records"], second["new_records"], second["events"]) == (1, 0, first["events"])


def test_an_empty_machine_is_told_about_the_demo(cli: Cli) -> None:
    result = cli("ingest")
    assert result.code == 0
    assert "whyfor demo" in result.out


def test_sessions_are_listed_newest_first_with_every_promised_field(
    two: tuple[Transcript, Transcript], cli: Cli
) -> None:
    may, june = two
    found = cli("sessions", "--json").json
    assert [s["session_id"] for s in found] == [june.session_id, may.session_id]
    assert set(found[0]) >= SESSION_FIELDS
    session = found[1]
    assert session["title"] == "Make the checkout faster"
    assert (session["prompts"], session["messages"], session["tool_calls"]) == (1, 2, 2)
    assert session["tokens"] == {
        "input": 12,
        "cache_read": 400,
        "cache_write": 80,
        "output": 40,
        "reasoning": None,
    }
    assert session["models"] == ["claude-test-1"]
    assert session["files_modified"] == ["/code/shop/basket.py"]
    assert session["started_at"] == "2026-05-01T10:00:00.000Z"
    assert (session["project"], session["branch"]) == ("/code/shop", "main")


@pytest.mark.parametrize(
    ("options", "titles"),
    [
        (["--since", "2026-06-01"], ["Explain the cache"]),
        (["--until", "2026-05-01"], ["Make the checkout faster"]),
        (["--branch", "spike"], ["Explain the cache"]),
        (["--project", "shop"], ["Make the checkout faster"]),
        (["--project", "/code/other"], ["Explain the cache"]),
        (["--agent", "codex"], []),
        (["--limit", "1"], ["Explain the cache"]),
    ],
)
def test_filters_of_sessions(two: object, cli: Cli, options: list[str], titles: list[str]) -> None:
    assert [s["title"] for s in cli("sessions", *options, "--json").json] == titles


def test_show_reads_like_a_conversation(two: tuple[Transcript, Transcript], cli: Cli) -> None:
    shown = cli("show", two[0].session_id[:8]).out
    assert "Make the checkout faster" in shown
    assert "-slow()" in shown
    assert "+quick()" in shown
    assert "3 failed" in shown  # a failure is open
    assert "The basket is computed twice" not in shown
    assert "The basket is computed twice" in cli("show", two[0].session_id[:8], "--thinking").out


def test_show_turns_gives_prompt_tools_and_closing_words(
    two: tuple[Transcript, Transcript], cli: Cli
) -> None:
    told = cli("show", two[0].session_id, "--turns", "--json").json
    (turn,) = [t for t in told["turns"] if t["turn"] == 1]
    assert turn["tokens"] == told["session"]["tokens"] and turn["tokens"]["output"] > 0
    assert turn["prompt"] == "Make the checkout faster"
    assert turn["closing"] == "It is **faster** now."
    assert turn["tools"] == {"Edit": 1, "Bash": 1}
    assert turn["failures"] == 1


def test_show_raw_is_the_agents_file(
    two: tuple[Transcript, Transcript], cli: Cli, home: Path
) -> None:
    assert cli("show", two[0].session_id, "--raw").out == two[0].path(home).read_text(
        encoding="utf-8"
    )


def test_escape_sequences_in_a_transcript_never_reach_the_terminal(home: Path, cli: Cli) -> None:
    nasty = Transcript("nasty")
    nasty.prompt("clear \x1b[2J\x1b]0;title\x07 me")
    nasty.say("and \x1b[31mred\x1b[0m \x9b2J here")
    nasty.call(
        "Bash",
        {"command": "printf '\x1b[2J'"},
        "\x1b[2J\x1b]8;;http://example.com\x07x",
        failed=True,
    )
    nasty.save(home)
    cli("ingest")
    for arguments in (
        ["sessions"],
        ["show", nasty.session_id[:8], "--tools"],
        ["search", "clear"],
        ["search", "red"],
    ):
        out = cli(*arguments).out
        assert "\x1b[2J" not in out
        assert "\x1b]" not in out
        assert "\x9b" not in out


def test_stats_add_up(two: object, cli: Cli) -> None:
    stats = cli("stats", "--json").json
    assert (stats["sessions"], stats["turns"]) == (2, 2)
    assert stats["tokens"]["output"] == 50
    assert stats["tokens"]["reasoning"] is None
    for by in ("by_agent", "by_project", "by_day", "by_model"):
        assert sum(row["tokens"]["output"] for row in stats[by]) == 50
    assert [row["name"] for row in stats["by_day"]] == ["2026-05-01", "2026-06-10"]
    assert "█" in cli("stats").out


def test_doctor_is_green_when_all_is_well_and_names_what_is_new(
    two: object, cli: Cli, home: Path
) -> None:
    health = cli("doctor", "--deep", "--json")
    assert health.code == 0
    assert health.json["ok"] is True
    claude = next(a for a in health.json["agents"] if a["agent"] == "claude")
    assert (claude["files"], claude["waiting"]) == (2, 0)
    late = Transcript("late")
    late.prompt("One more")
    late.save(home)
    assert "1 files have something new" in cli("doctor").out


def test_doctor_fails_when_a_segment_is_gone(two: object, cli: Cli, tmp_path: Path) -> None:
    next((tmp_path / "whyfor" / "segments").glob("*/*.zst")).unlink()
    health = cli("doctor", "--json")
    assert health.code == 1
    assert any(problem["dropped"] for problem in health.json["problems"])


def test_demo_shows_every_screen_and_leaves_nothing(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    (tmp_path / "temp").mkdir()
    shown = cli("demo")
    assert shown.code == 0
    for words in (
        "$ whyfor sessions",
        "Why four attempts",
        "exponential backoff",
        "Explore: Find other callers",
    ):
        assert words in shown.out
    assert list((tmp_path / "temp").iterdir()) == []
    sessions = cli("demo", "--json").json["sessions"]
    assert {s["agent"] for s in sessions} == {"claude", "codex"}
    assert {s["project"] for s in sessions} == {"example.com/harbour/tidewatch"}
    assert sum(s["unparsed"] for s in sessions) == 0


def test_demo_keep_leaves_a_home_that_works(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = cli("demo", "--keep", "--json").json
    monkeypatch.setenv("HOME", kept["home"])
    monkeypatch.setenv("WHYFOR_HOME", kept["whyfor_home"])
    assert cli("ingest", "--json").json["new_records"] == 0
    assert len(cli("sessions", "--json").json) == 3
    assert cli("sessions", "--project", kept["repository"], "--json").json != []


def test_version_and_help_start_without_the_world() -> None:
    heavy = "'apsw' in sys.modules or 'rich' in sys.modules or 'obstore' in sys.modules"
    code = (
        f"import sys; from whyfor.__main__ import main; main(sys.argv[1:]); sys.exit(9 if {heavy} "
        "else 0)"
    )
    for argument, expected in (("--version", f"whyfor {__version__}"), ("--help", "Privacy:")):
        done = subprocess.run(
            [sys.executable, "-c", code, argument], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert expected in done.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_its_options(command: str, cli: Cli) -> None:
    shown = cli(command, "--help")
    assert shown.code == 0
    # these speak nothing but JSON, or what the program says that they run
    if "--json" in shown.out or command in ("lsp", "mcp", "run"):
        return
    _, _, parts = shown.out.partition("Commands:\n")
    names = re.findall(r"^  (\S+)  ", parts, re.MULTILINE)
    assert names
    without = [name for name in names if "--json" not in cli(command, name, "--help").out]
    assert without == []


# -- the shortest question -----------------------------------------------------------------------


def test_a_first_word_that_is_no_command_is_shown(
    settings: Settings, home: Path, cli: Callable[..., Result]
) -> None:
    told = Transcript("short")
    told.prompt("Why is this here?")
    told.save(home)
    ingest(settings)
    asked = cli("show", told.session_id, "--json")
    assert asked.code == 0
    assert cli(told.session_id, "--json") == asked
    assert cli(f"claude:{told.session_id[:8]}", "--json") == asked


def test_a_mistyped_command_is_not_taken_for_a_commit(cli: Callable[..., Result]) -> None:
    result = cli("sesions")
    assert result.code == 2
    assert "Did you mean sessions?" in result.err


def test_a_word_that_names_nothing_says_so(
    settings: Settings, home: Path, cli: Callable[..., Result]
) -> None:
    told = Transcript("short")
    told.prompt("Hello")
    told.save(home)
    ingest(settings)
    result = cli("quokka", "--json")
    assert (result.code, result.json["error"]["kind"]) == (2, "not_found")
