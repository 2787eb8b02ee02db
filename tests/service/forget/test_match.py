"""A text is forgotten: every string that holds it, wherever it stands; what is around it stays
and can be resumed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.capture.snapshot import assert_equal, derived
from tests.capture.test_ingest import codex_rollout, external, story, write
from tests.service.forget.test_sessions import subagent
from tests.service.forget.traces import CANARY, traces
from tests.transcripts import Transcript
from whyfor.config import Settings
from whyfor.model.errors import BadInput, StoreError
from whyfor.service.doctor import examine
from whyfor.service.forget import ForgetArguments, forget
from whyfor.service.ingest import ingest
from whyfor.service.rebuild import rebuild
from whyfor.story.session_lookup import load_conversation

Cli = Callable[..., Any]
WORD = "vxhiddenxv"  # in every shape, so that any part of it that is left is found
SHAPES = {
    "plain": WORD,
    "escaped": f'{WORD} "quoted"\nand on a second line of {WORD}',
    "letters": f"{WORD} – Ünïcödé 🦛 {WORD}",
}


def mixed(text: str) -> Transcript:
    """A session in which some records hold the text and others do not."""
    said = Transcript("mixed")
    said.prompt("an innocent question about apples")
    said.say("an innocent answer about pears")
    said.prompt(f"now the secret: {text}")
    said.call("Bash", {"command": f"echo {text}", "description": "Say it"}, f"out: {text}")
    said.say(f"done with {text}")
    said.prompt("an innocent end about plums")
    said.say("goodbye")
    return said


@pytest.mark.parametrize("text", SHAPES.values(), ids=SHAPES)
def test_no_byte_is_left_in_any_spelling(text: str, settings: Settings, home: Path) -> None:
    said = mixed(text)
    path = said.path(home)
    inner = json.dumps({"inner": json.dumps({"deep": text})})
    said.prompt(inner)
    escapes = json.dumps(said.lines[2]).replace("x", "\\u0078")
    write(path, said.text() + escapes + "\n{torn " + json.dumps(text) + "\n")
    story("other").save(home)
    ingest(settings)
    report = forget(settings, Path.cwd(), ForgetArguments(match=text))
    assert traces(settings.home, WORD) == []
    assert report.records >= 6
    assert str(path) in report.files
    rebuild(settings)
    assert traces(settings.home, WORD) == []


def test_the_rest_is_readable_and_every_event_keeps_its_place(
    settings: Settings, home: Path
) -> None:
    said = mixed(CANARY)
    said.save(home)
    ingest(settings)
    before = [(e.seq, e.turn, e.kind) for e in load_conversation(settings, said.session_id).events]
    forget(settings, Path.cwd(), ForgetArguments(match=CANARY))
    after = load_conversation(settings, said.session_id).events
    assert [(e.seq, e.turn, e.kind) for e in after] == before
    texts = [e.text for e in after]
    assert "an innocent question about apples" in texts
    assert "an innocent end about plums" in texts
    assert any("[private]" in text for text in texts)


def test_the_database_is_what_a_rebuild_makes(settings: Settings, home: Path) -> None:
    said = mixed(CANARY)
    path = said.save(home)
    call = said.call("Bash", {"command": "cat all"}, "<persisted-output>saved</persisted-output>")
    write(path, said.text() + "{torn " + CANARY + "\n")
    external(said, home, call, f"{CANARY}\n" * 20)
    subagent(home, said)
    story("other").save(home)
    write(
        home / ".codex" / "sessions" / "rollout-2026-05-01T10-00-00-019d.jsonl",
        codex_rollout("019d"),
    )
    ingest(settings)
    before = derived(settings, segments=True)
    forget(settings, Path.cwd(), ForgetArguments(match=CANARY))
    assert traces(settings.home) == []
    after = derived(settings, segments=True)
    rebuild(settings)
    assert_equal(derived(settings, segments=True), after)
    other = story("other").session_id
    for name in ("events", "sessions", "usage", "touches"):
        assert [row for row in after[name] if other in repr(row)] == [
            row for row in before[name] if other in repr(row)
        ]


@pytest.mark.parametrize(
    "how", ["again", "grown", "rewritten", "moved", "rebuilt", "lost", "copied"]
)
def test_nothing_brings_it_back(how: str, settings: Settings, home: Path) -> None:
    said = mixed(CANARY)
    path = said.save(home)
    subagent(home, said)
    ingest(settings)
    forget(settings, Path.cwd(), ForgetArguments(match=CANARY))
    events = derived(settings)["events"]
    if how == "grown":
        said.prompt("one more about melons")
        said.save(home)
    elif how == "rewritten":
        write(path, "".join(said.text().splitlines(keepends=True)[1:]))
    elif how == "moved":
        write(path.parent.with_name("-elsewhere") / path.name, path.read_bytes())
        path.unlink()
    elif how == "rebuilt":
        rebuild(settings)
    elif how == "lost":
        for file in settings.home.glob("whyfor.db*"):
            file.unlink()
    elif how == "copied":
        fork = Transcript("fork")
        write(fork.path(home), said.text().replace(said.session_id, fork.session_id))
    ingest(settings)
    assert traces(settings.home) == []
    if how in ("again", "moved", "rebuilt", "lost"):
        assert derived(settings)["events"] == events
    if how == "grown":
        assert (
            load_conversation(settings, said.session_id).events[-1].text == "one more about melons"
        )
        assert len(derived(settings)["events"]) == len(events) + 1
    assert ingest(settings).new_records == 0


def test_what_is_too_short_or_nowhere_changes_nothing(
    settings: Settings, home: Path, cli: Cli
) -> None:
    story().save(home)
    ingest(settings)
    assert cli("forget", "--match", "a", "--yes", "--json").json["error"]["kind"] == "bad_input"
    before = derived(settings, segments=True)
    assert cli("forget", "--match", "nobody said this", "--yes", "--json").json["records"] == 0
    assert_equal(derived(settings, segments=True), before)


def test_a_line_that_was_being_written_stays_forgotten_when_it_is_whole(
    settings: Settings, home: Path
) -> None:
    said = mixed("nothing")
    whole = said.text().encode()
    said.prompt(f"it begins with {CANARY} and goes on for a while")
    path = write(
        said.path(home), whole + json.dumps(said.lines[-1]).encode()[:-150].partition(b"goes on")[0]
    )
    ingest(settings)
    assert traces(settings.home)
    forget(settings, Path.cwd(), ForgetArguments(match=CANARY))
    assert traces(settings.home) == []
    said.prompt("after it, about melons")
    write(path, said.text())
    ingest(settings)
    assert traces(settings.home) == []
    assert load_conversation(settings, said.session_id).events[-1].text == "after it, about melons"


def test_without_its_salt_nothing_is_read_until_somebody_decides(
    settings: Settings, home: Path
) -> None:
    mixed(WORD).save(home)
    ingest(settings)
    forget(settings, Path.cwd(), ForgetArguments(match=WORD))
    salt = settings.home / "salt"
    before = salt.read_bytes()
    story("other").save(home)
    write(
        home / ".claude" / "projects" / "-copy" / "copied.jsonl",
        mixed(WORD).text().replace("mixed", "copied"),
    )
    for lost in (salt.unlink, lambda: salt.write_bytes(b"x" * 32)):
        lost()
        with pytest.raises(StoreError, match="salt"):
            ingest(settings)
        with pytest.raises(StoreError, match="salt"):
            forget(settings, Path.cwd(), ForgetArguments(match="apples"))
        assert any(
            problem.dropped and "`salt`" in problem.what for problem in examine(settings).problems
        )
        assert traces(settings.home, WORD) == []
    salt.write_bytes(before)
    with pytest.raises(BadInput, match="not lost"):
        forget(settings, Path.cwd(), ForgetArguments(match="apples", new_salt=True))
    assert ingest(settings).new_records > 0
    assert traces(settings.home, WORD) == []

    salt.unlink()
    forget(settings, Path.cwd(), ForgetArguments(match="pears", new_salt=True))
    assert salt.read_bytes() != before
    assert not any("`salt`" in problem.what for problem in examine(settings).problems)
    rebuild(settings)
    ingest(settings)
    assert traces(settings.home, "pears") == []
