"""whyfor pause and resume: what is paused, how it is said, and that nobody forgets it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from tests.conftest import Result
from tests.service.pause.test_hooks import git, repository
from tests.transcripts import Transcript
from whyfor import config
from whyfor.capture.filters import pauses
from whyfor.config import Settings
from whyfor.locks import ingest_lock
from whyfor.service.ingest import ingest
from whyfor.service.pause import seconds_of
from whyfor.store.journal import Journal, PauseEntry
from whyfor.story.links.resolve import PAUSED

Cli = Callable[..., Result]


@pytest.fixture
def said(home: Path, settings: Settings) -> Transcript:
    """One session, stored."""
    found = Transcript("one")
    found.prompt("hello")
    found.save(home)
    ingest(settings)
    return found


def journalled(settings: Settings) -> list[PauseEntry]:
    return [entry for entry in Journal(settings.journal).entries() if isinstance(entry, PauseEntry)]


def test_a_pause_is_told_by_status_and_doctor_until_it_ends(said: Transcript, cli: Cli) -> None:
    assert cli("status", "--json").json["paused"] == []
    begun = cli("pause", "--json").json
    assert begun["begun"] == begun["paused"] == cli("status", "--json").json["paused"]
    [pause] = begun["paused"]
    assert (pause["what"], pause["until"], pause["resume"]) == ("everything", None, "whyfor resume")
    assert "Nothing is recorded: everywhere" in cli("status").out
    found = cli("doctor")
    assert (found.code, "nothing is recorded, everywhere" in found.out) == (0, True)
    assert "forgotten" not in found.out
    ended = cli("resume", "--json").json
    assert (len(ended["ended"]), ended["paused"]) == (1, [])
    assert "recorded" not in cli("status").out + cli("doctor").out


def test_doctor_asks_after_a_day_whether_it_was_forgotten(
    settings: Settings, said: Transcript, cli: Cli
) -> None:
    cli("pause")
    [pause] = pauses.pending_pauses(settings.home)
    since = pause.since - 3 * 86_400_000 - 5000
    pauses.write_pause(settings.home, msgspec.structs.replace(pause, since=since))
    assert "for 3 days now: forgotten?" in cli("doctor").out


def test_a_commit_made_in_a_pause_says_so_however_far_sessions_are(
    home: Path, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = repository(tmp_path / "repo")
    earlier = Transcript("earlier", cwd=str(folder), live=True, ago=timedelta(hours=2))
    earlier.prompt("hello")
    earlier.save(home)
    monkeypatch.chdir(folder)
    cli("ingest")
    cli("pause", "--repo")
    [pause] = pauses.pending_pauses(config.load().home)
    while time.time() < pause.since / 1000 + 1:  # git counts seconds
        time.sleep(0.05)
    git(folder, "commit", "-q", "--allow-empty", "-m", "in the pause")
    cli("ingest")
    cli("resume", "--repo")
    reasons = {row["subject"]: row["reason"] for row in cli("log", "--json").json}
    assert reasons["in the pause"] == PAUSED
    assert reasons["first"] != PAUSED


def test_a_pause_is_in_the_journal_at_once_and_again_when_it_ends(
    settings: Settings, said: Transcript, cli: Cli
) -> None:
    cli("pause")
    [begun] = journalled(settings)
    assert begun.until is None
    cli("resume")
    before, ended = journalled(settings)
    assert (before, ended.id, ended.since) == (begun, begun.id, begun.since)
    assert ended.until is not None
    assert pauses.pending_pauses(settings.home) == []
    cli("resume")
    cli("ingest")
    assert len(journalled(settings)) == 2


def test_a_pause_waits_for_no_lock_and_the_next_ingest_keeps_it(
    settings: Settings, said: Transcript, cli: Cli
) -> None:
    with ingest_lock(settings.home, 0):
        begun = time.monotonic()
        assert cli("pause", "--for", "1h").code == 0
        assert time.monotonic() - begun < 60, "the lock is held for as long as this takes"
        assert cli("resume").code == 0
        assert cli("pause").code == 0
        assert journalled(settings) == []
    ingest(settings)
    assert [entry.until is None for entry in journalled(settings)] == [False, True]


def test_before_the_first_ingest_too(settings: Settings, home: Path, cli: Cli) -> None:
    assert cli("pause").code == 0
    assert cli("resume").code == 0
    assert not settings.database.exists(), "a pause alone makes no store"
    ingest(settings)
    assert len(journalled(settings)) == 1


def test_a_longer_pause_is_not_made_shorter(settings: Settings, cli: Cli) -> None:
    hour = cli("pause", "--for", "1h", "--json").json["paused"][0]["until"]
    assert cli("pause", "--for", "5m", "--json").json["begun"] == []
    assert cli("status", "--json").code == 2, "nothing is kept yet"
    longer = cli("pause", "--for", "2h", "--json").json
    assert longer["begun"][0]["until"] > hour
    assert cli("pause", "--json").json["begun"][0]["until"] is None
    assert cli("pause", "--for", "3d", "--json").json["begun"] == []
    assert len(pauses.pending_pauses(settings.home)) == 1


def test_each_scope_is_ended_by_itself(
    said: Transcript, settings: Settings, cli: Cli, tmp_path: Path
) -> None:
    shop = repository(tmp_path / "the shop")
    git(shop, "worktree", "add", "-q", str(tmp_path / "tree"))
    for words in ([], ["--repo", tmp_path / "tree"], ["--session", said.session_id[:6]]):
        assert cli("pause", *words).code == 0
    told = {item["what"]: item for item in cli("status", "--json").json["paused"]}
    assert told["repository"]["repository"] == str(shop)
    assert told["repository"]["resume"] == f"whyfor resume --repo '{shop}'"
    assert told["session"]["session"] == f"claude:{said.session_id}"
    assert [item["what"] for item in cli("resume", "--json").json["paused"]] == [
        "repository",
        "session",
    ]
    assert [item["what"] for item in cli("resume", "--repo", shop, "--json").json["paused"]] == [
        "session"
    ]
    assert cli("resume", "--session", said.session_id, "--json").json["paused"] == []
    done = cli("resume")
    assert (done.code, done.out) == (0, "That was not paused.\n")


def test_a_paused_repository_that_is_gone_can_be_resumed(
    settings: Settings, cli: Cli, tmp_path: Path
) -> None:
    shop = repository(tmp_path / "shop")
    cli("pause", "--repo", shop)
    shop.rename(tmp_path / "moved")
    assert len(cli("resume", "--repo", shop, "--json").json["ended"]) == 1


def test_inside_a_session_it_is_known_which(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value, expected in (
        ("CODEX_THREAD_ID", "t-1", "codex:t-1"),
        ("CLAUDE_CODE_SESSION_ID", "c-1", "claude:c-1"),
        ("WHYFOR_SESSION", "gemini:g-1", "gemini:g-1"),
    ):
        monkeypatch.setenv(name, value)
        assert cli("pause", "--session", "--json").json["begun"][0]["session"] == expected
        assert cli("resume", "--session", "--json").json["ended"][0]["session"] == expected


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["--session"], "bad_input"),
        (["--session", "3f05"], "not_found"),
        (["--session", "claude:two words"], "bad_input"),
        (["--repo", "/"], "not_found"),
        (["--repo", "--session"], "bad_input"),
        (["--for", "0m"], "bad_input"),
        (["--for", "soon"], "bad_input"),
        (["--for", "400d"], "bad_input"),
    ],
)
def test_what_cannot_be_meant_is_refused_and_pauses_nothing(
    words: list[str], kind: str, settings: Settings, cli: Cli
) -> None:
    done = cli("pause", *words, "--json")
    assert (done.code, done.json["error"]["kind"]) == (2, kind)
    assert done.json["error"]["hint"]
    assert pauses.pending_pauses(settings.home) == []


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("90min", 5400), ("2h", 7200), ("1h30m", 5400), ("3 d", 259200)],
)
def test_a_length_of_time(text: str, seconds: int) -> None:
    assert seconds_of(text) == seconds


def test_a_home_that_cannot_be_written_says_that_nothing_is_paused(
    settings: Settings, cli: Cli
) -> None:
    settings.home.parent.joinpath(settings.home.name).write_text("a file")
    done = cli("pause")
    assert done.code == 2
    assert "Nothing is paused" in done.err


def test_twenty_at_once_lose_none(settings: Settings) -> None:
    command = [sys.executable, "-m", "whyfor", "pause", "--session"]
    running = [
        subprocess.Popen([*command, f"claude:s-{number}"], stdout=subprocess.DEVNULL)
        for number in range(20)
    ]
    assert [process.wait() for process in running] == [0] * 20
    assert {pause.session_id for pause in pauses.pending_pauses(settings.home)} == {
        f"s-{number}" for number in range(20)
    }
