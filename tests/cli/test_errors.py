"""Errors: two lines, what and what next, exit code 2; with --json one document."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.conftest import Result
from tests.transcripts import Transcript
from whyfor.cli.errors import run_command

Cli = Callable[..., Result]


@pytest.fixture
def ingested(home: Path, cli: Cli) -> list[str]:
    """Two sessions, ingested; their ids."""
    ids = []
    for name in ("a", "b"):
        transcript = Transcript(name)
        transcript.prompt(f"Prompt of {name}")
        transcript.save(home)
        ids.append(transcript.session_id)
    cli("ingest")
    return ids


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["show", "zzzz"], "not_found"),
        (["show", ""], "not_found"),
        (["sessions", "--since", "someday"], "bad_input"),
        (["sessions", "--agent", "nobody"], "bad_input"),
        (["sessions", "--project", "nowhere"], "not_found"),
        (["search", "!!!"], "bad_input"),
        (["search", '"open'], "bad_input"),
        (["search", "-only"], "bad_input"),
        (["search", "a", "OR"], "bad_input"),
        (["search", "x", "--in", "everything"], "bad_input"),
        (["search", "x", "--limt", "3"], "usage"),
        (["search"], "usage"),
        (["sessions", "--limit", "many"], "usage"),
        (["ingest", "--agent", "nobody"], "bad_input"),
        (["ingest", "/no/such/file"], "not_found"),
        (["sesions"], "usage"),
    ],
)
def test_an_error_is_two_lines_and_one_document(
    ingested: list[str], cli: Cli, arguments: list[str], kind: str
) -> None:
    plain = cli(*arguments)
    assert plain.code == 2
    assert plain.out == ""
    assert len(plain.err.strip().splitlines()) == 2
    machine = cli(*arguments, "--json")
    assert machine.code == 2
    assert machine.json["error"]["kind"] == kind
    assert machine.json["error"]["message"]
    assert machine.json["error"]["hint"]


def test_an_ambiguous_id_names_the_candidates(ingested: list[str], cli: Cli, home: Path) -> None:
    twin = Transcript("a")
    twin.session_id = ingested[0][:9] + "0000-4000-8000-000000000000"
    twin.prompt("A twin")
    twin.save(home)
    cli("ingest")
    error = cli("show", ingested[0][:8], "--json").json["error"]
    assert error["kind"] == "ambiguous"
    assert ingested[0] in error["message"]
    assert cli("show", ingested[0]).code == 0


def test_before_the_first_ingest_reading_says_what_to_run(cli: Cli) -> None:
    error = cli("sessions", "--json").json["error"]
    assert error["kind"] == "not_found"
    assert "whyfor ingest" in error["hint"]


def test_a_damaged_database_offers_rebuild_and_rebuild_brings_it_back(
    ingested: list[str], cli: Cli, tmp_path: Path
) -> None:
    before = cli("sessions", "--json").json
    database = tmp_path / "whyfor" / "whyfor.db"
    for suffix in ("-wal", "-shm"):
        database.with_name(database.name + suffix).unlink(missing_ok=True)
    database.write_bytes(b"this is no database" * 1000)
    error = cli("sessions", "--json").json["error"]
    assert error["kind"] == "corrupt_store"
    assert "whyfor rebuild" in error["hint"]
    assert cli("doctor").code == 1
    assert cli("rebuild").code == 0
    assert cli("sessions", "--json").json == before


def test_a_newer_database_is_refused(ingested: list[str], cli: Cli, tmp_path: Path) -> None:
    db = apsw.Connection(str(tmp_path / "whyfor" / "whyfor.db"))
    db.pragma("user_version", 999)
    db.close()
    for command in ("sessions", "ingest"):
        error = cli(command, "--json").json["error"]
        assert error["kind"] == "newer_store"
        assert "pgrade" in error["hint"]


def test_a_bad_config_file_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "whyfor").mkdir()
    (tmp_path / "whyfor" / "config.toml").write_text("[roots]\nclaude = 3\n")
    error = cli("ingest", "--json").json["error"]
    assert error["kind"] == "bad_input"
    assert "config.toml" in error["message"]


def test_further_roots_from_the_config_are_read(cli: Cli, tmp_path: Path) -> None:
    transcript = Transcript("elsewhere")
    transcript.prompt("From another profile")
    transcript.save(tmp_path / "profile")
    (tmp_path / "whyfor").mkdir()
    roots = f'[roots]\nclaude = ["{tmp_path / "profile" / ".claude" / "projects"}"]\n'
    (tmp_path / "whyfor" / "config.toml").write_text(roots)
    assert cli("ingest", "--json").json["sessions"] == 1


def test_without_a_stdout_a_command_does_its_work(
    ingested: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for args in (["sessions"], ["stats", "--json"], ["ingest"]):
        monkeypatch.setattr("sys.stdout", None)
        assert run_command(args) == 0
        assert sys.stdout is not None
        sys.stdout.close()
