"""A word in private places of every agent's files is found nowhere: no byte of ours holds it,
whatever happens."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from tests.capture.snapshot import assert_equal, derived
from tests.conftest import Result
from tests.privacy.canary import (
    CANARY,
    CODEX,
    ONLY,
    OPEN,
    OpenCode,
    claude_beside,
    claude_turn,
    codex,
    found,
    save,
    write_all,
)
from tests.store.downgrade import downgrade
from tests.transcripts import Transcript
from whyfor.config import Settings

Cli = Callable[..., Result]
DAY = 86_400


def old(home: Path) -> None:
    """Beyond the time that a large result waits for its call."""
    for path in home.rglob("tool-results/*"):
        os.utime(path, (path.stat().st_mtime - 2 * DAY,) * 2)


@pytest.fixture
def kept(home: Path, settings: Settings, cli: Cli) -> Settings:
    write_all(home)
    old(home)
    assert cli("ingest").code == 0
    return settings


def test_no_byte_of_it_is_kept_and_what_stands_beside_it_is(kept: Settings) -> None:
    assert found(kept.home) == []
    assert found(kept.home, OPEN) != []


def test_every_agents_open_words_are_found_by_search(kept: Settings, cli: Cli) -> None:
    hits = cli("search", OPEN, "--json", "--limit", "50").json
    assert {hit["agent"] for hit in hits} == {"claude", "codex", "gemini", "copilot", "opencode"}
    third = {
        hit["session_id"] for hit in cli("search", f"{OPEN} third", "--json", "--limit", "50").json
    }
    assert len(third) == 8, (
        "after a private turn each goes on: two of each but OpenCode, and one packed"
    )
    assert cli("search", CANARY, "--json").json == []


def test_a_rebuild_gives_the_same_and_the_next_ingest_reads_nothing_again(
    kept: Settings, cli: Cli
) -> None:
    before = derived(kept, observed=True, segments=True)
    assert cli("rebuild").code == 0
    # it is no file of records
    before["sources"] = [row for row in before["sources"] if not row[1].endswith(".db")]
    assert_equal(derived(kept, observed=True, segments=True), before)
    assert cli("ingest", "--json").json["new_records"] == 0
    assert found(kept.home) == []


def test_doctor_and_export_and_restore_know_nothing_of_it(
    kept: Settings, home: Path, cli: Cli
) -> None:
    doctor = cli("doctor")
    assert CANARY not in doctor.out + doctor.err
    for session in ("claude:" + claude_turn().session_id, f"codex:{CODEX}"):
        assert CANARY not in cli("show", session).out
        assert CANARY not in cli("show", session, "--raw").out
        restored = cli("restore", "--session", session, "--json", "--yes")
        assert restored.code == 0, restored.err
        assert CANARY not in Path(restored.json["path"]).read_text(encoding="utf-8")
    assert found(kept.home) == []


def test_a_private_turn_shows_that_there_was_one(kept: Settings, cli: Cli) -> None:
    shown = cli("show", "claude:" + claude_turn().session_id, "--json").json
    said = [
        (e["turn"], e["kind"], e["text"]) for e in shown["events"] if e["kind"] != "session.started"
    ]
    assert [item for item in said if item[0] == 2] == [
        (2, "user.prompt", "\n[private] [private]\n")
    ]
    assert (3, "assistant.message", "done again") in said
    assert shown["session"]["title"] == f"{OPEN} first"


@pytest.mark.parametrize("step", [1, 7, 113, 1000])
def test_a_session_that_comes_in_pieces_gives_nothing_away(
    step: int, home: Path, settings: Settings, cli: Cli
) -> None:
    """Also inside a line, a tag or a private turn; and in the end all is as if it had come at
    once."""
    whole = claude_turn().text().encode()
    path = claude_turn().path(home)
    path.parent.mkdir(parents=True)
    step = step if step > 100 else len(whole) // 40 + step
    for end in range(step, len(whole) + step, step):
        path.write_bytes(whole[:end])
        assert cli("ingest").code == 0
        assert found(settings.home) == []
    pieces = derived(settings)
    for file in settings.home.rglob("*"):
        if file.is_file():
            file.unlink()
    assert cli("ingest").code == 0
    assert_equal(derived(settings), pieces)


def test_codex_in_pieces(home: Path, settings: Settings, cli: Cli) -> None:
    path = save(home / f".codex/sessions/2026/05/01/rollout-2026-05-01T10-00-00-{CODEX}.jsonl", "")
    whole = codex().splitlines(keepends=True)
    for number in range(1, len(whole) + 1):
        for half in (len(whole[number - 1]) // 2, None):
            path.write_text(
                "".join([*whole[: number - 1], whole[number - 1][:half]]), encoding="utf-8"
            )
            assert cli("ingest").code == 0
            assert found(settings.home) == [], whole[number - 1]
    models = [
        e["data"]["model"]
        for e in cli("show", CODEX, "--json").json["events"]
        if e["text"] == "fine"
    ]
    assert models == ["m-9"], "what the next turn says of itself stays"


def test_a_subagents_file_in_pieces(home: Path, settings: Settings, cli: Cli) -> None:
    """Its first line, too, may come before it is whole."""
    turn = claude_turn()
    turn.save(home)
    claude_beside(home, turn)
    (path,) = home.rglob("agent-abc.jsonl")
    whole = path.read_bytes()
    for end in range(20, len(whole) + 20, 20):
        path.write_bytes(whole[:end])
        assert cli("ingest").code == 0
        assert found(settings.home) == []


def test_rows_that_change_later_keep_their_turn_hidden(
    home: Path, settings: Settings, cli: Cli
) -> None:
    database = OpenCode(home)
    database.fill()
    assert cli("ingest").code == 0
    database.ask(3, 20_000, ONLY, summary={"title": CANARY})
    database.answer(4, 3, 20_001, f"{CANARY} more")
    database.answer(7, 6, 20_002, "fine, and done")
    assert cli("ingest").code == 0
    database.db.close()
    assert found(settings.home) == []
    texts = [e["text"] for e in cli("show", "ses_1", "--json").json["events"]]
    assert "fine, and done" in texts
    assert "[private]" in texts


def test_events_are_what_they_are_without_private_text(
    home: Path, settings: Settings, cli: Cli
) -> None:
    """Ids, keys, places and numbers do not depend on what is not kept."""

    def events(secret: str) -> list[tuple[object, ...]]:
        t = Transcript("same")
        t.prompt(f"Use {secret} here")
        t.call("Bash", {"command": f"echo {secret}"}, result=f"{secret}\nok")
        t.say(f"Done with {secret}")
        t.save(home)
        for file in settings.home.rglob("*"):
            if file.is_file():
                file.unlink()
        assert cli("ingest").code == 0
        db = apsw.Connection(str(settings.database), flags=apsw.SQLITE_OPEN_READONLY)
        rows = list(
            db.execute(
                "SELECT id, key, turn, kind, created_at, actor, name FROM events ORDER BY id"
            )
        )
        rows += list(db.execute("SELECT key, turn, input, output FROM usage ORDER BY key"))
        db.close()
        return rows

    assert events(f"<private>{CANARY}</private>") == events("nothing")


def test_a_database_from_before_is_brought_forward_and_goes_on_hiding(
    home: Path, settings: Settings, cli: Cli
) -> None:
    t = Transcript("before")
    t.prompt(f"{OPEN} one")
    t.save(home)
    assert cli("ingest").code == 0
    db = apsw.Connection(str(settings.database))
    downgrade(db, 2)
    db.close()
    t.prompt(ONLY)
    t.say(CANARY)
    t.save(home)
    assert cli("ingest", "--json").json["new_records"] == 1
    assert found(settings.home) == []


def test_the_journal_of_an_older_version_is_read(home: Path, settings: Settings, cli: Cli) -> None:
    t = Transcript("before")
    t.prompt(f"{OPEN} one")
    t.save(home)
    cli("ingest")
    entries = [json.loads(line) for line in settings.journal.read_text().splitlines()]
    assert all("gaps" not in entry and "hiding" not in entry for entry in entries), (
        "nothing hidden costs nothing"
    )
    assert cli("rebuild").code == 0
    assert cli("search", OPEN, "--json").json != []
